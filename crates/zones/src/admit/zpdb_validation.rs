//! `/admission/zpdb-validation`: a budget that makes no sense is not stored.

use jiff::Timestamp;
use slipway_kernel::admission::{Admission, Admit, Expiry, Remarks, Review, Verdict};
use slipway_kernel::parts::Parts;
use slipway_kernel::{Facts, Stores};

use crate::zpdb::Budget;

/// The webhook.
#[derive(Debug, Clone, Copy, Default)]
pub struct ZpdbValidation;

fn verdict(review: &Review) -> Verdict {
    match Budget::parse(&review.object) {
        Ok(_) => Verdict::allowed(),
        Err(error) => Verdict::refused(400, error.to_string()),
    }
}

impl Admit for ZpdbValidation {
    fn path(&self) -> &'static str {
        "/admission/zpdb-validation"
    }

    fn judge_name(&self) -> &'static str {
        "admission.ZpdbValidation()"
    }

    fn is_self_contained(&self) -> bool {
        true
    }

    fn reads(&self) -> Parts {
        Parts::NONE
    }

    fn judge(&self, review: &Review, _: &Stores, _: &Facts, _: Timestamp) -> (Admission, Remarks) {
        let decided = Admission::Decide(verdict(review), Vec::new());
        (decided, Remarks::default())
    }

    fn expire(&self, review: &Review, _: &Stores, _: &Facts, _: Timestamp) -> Expiry {
        Expiry {
            verdict: verdict(review),
            undo: Vec::new(),
        }
    }
}
