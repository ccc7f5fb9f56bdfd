//! Pod disruption budgets: whom they protect, and whether they allow a disruption.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::selector::Selector;
use slipway_kernel::store::{Projection, Undecodable};

use super::integer;

/// What is kept of a pod disruption budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Without one it protects nobody.
    selector: Option<Selector>,
    /// How many pods may be disrupted now.
    pub allowed: i64,
}

impl Projection for Budget {
    const READS: Parts = Parts::NONE.and(Part::Status);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let selector = object.pointer("/spec/selector");
        Ok(Self {
            selector: selector
                .filter(|selector| !selector.is_null())
                .map(Selector::read),
            allowed: integer(object, "/status/disruptionsAllowed").unwrap_or_default(),
        })
    }
}

impl Budget {
    /// Whether it protects pods with these labels.
    pub fn protects(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.selector.as_ref();
        selector.is_some_and(|selector| selector.selects(labels))
    }
}
