//! The `coordination` kinds.

use crate::resource::Resource;

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    Vec::new()
}
