//! L1: what is due is done, or somebody says why not.

use super::{Case, Findings};

/// L1.
pub(super) fn nothing_left(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for one in case.specifics {
        (one.nothing_left)(case, &mut findings);
    }
    findings
}
