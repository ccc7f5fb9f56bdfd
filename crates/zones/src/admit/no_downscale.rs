//! `/admission/no-downscale`: an object labelled `grafana.com/no-downscale: true` keeps its replicas.
//!
//! It promises that a downscale of a labelled object is refused whenever it can see both numbers and the label, also
//! when the same change takes the label away, and also for a dry run. Whatever it cannot see it lets pass with a
//! warning: that is the design. With `strict` it refuses instead, and takes an absent number as one.

use jiff::Timestamp;
use slipway_api::zones;
use slipway_kernel::admission::{Admission, Admit, Expiry, Remarks, Review, Verdict};
use slipway_kernel::parts::Parts;
use slipway_kernel::{Facts, Stores};

use super::inquiry::{Decision, Inquiry, Pending, expiry};
use super::replicas::{Change, Downscale, change, marked, parent};

/// The webhook.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDownscale {
    /// Whether what cannot be seen is refused.
    pub strict: bool,
}

impl NoDownscale {
    fn decide(self, review: &Review, inquiry: &mut Inquiry<'_>) -> Result<Decision, Pending> {
        let down = match change(review, self.strict) {
            Change::Settled(verdict) => return Ok(verdict.into()),
            Change::Unclear(verdict) => return Ok(self.unclear(verdict).into()),
            Change::Down(down) => down,
        };
        let fetched;
        let labelled = if down.is_scale {
            match parent(review, inquiry)? {
                Ok(object) => fetched = object,
                Err(failure) => {
                    let Review {
                        resource,
                        name,
                        namespace,
                        ..
                    } = review;
                    let warning = format!(
                        "can't get {resource}/{name} in namespace {namespace}, allowing the change: {failure}"
                    );
                    return Ok(self.unclear(Verdict::warned(warning)).into());
                }
            }
            &fetched
        } else {
            &review.old
        };
        if marked(labelled, "labels", zones::NO_DOWNSCALE) != Some("true") {
            return Ok(Verdict::allowed().into());
        }
        let message = format!(
            "{} because it has the label '{}=true'",
            refusal(review, down),
            zones::NO_DOWNSCALE
        );
        Ok(Verdict::denied(message).into())
    }

    /// What is said where the design lets a change pass.
    fn unclear(self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Allowed { warnings, .. } if self.strict => {
                let why = warnings.join("; ").replace(", allowing the change", "");
                Verdict::refused(503, format!("{why} (refused by --strict-admission)"))
            }
            other => other,
        }
    }
}

/// How every refusal of a downscale begins.
pub(super) fn refusal(review: &Review, down: Downscale) -> String {
    format!(
        "downscale of {}/{} in {} from {} to {} replicas is not allowed",
        review.resource, review.name, review.namespace, down.from, down.to
    )
}

impl Admit for NoDownscale {
    fn path(&self) -> &'static str {
        "/admission/no-downscale"
    }

    fn judge_name(&self) -> &'static str {
        "admission.NoDownscale()"
    }

    fn is_self_contained(&self) -> bool {
        true
    }

    fn reads(&self) -> Parts {
        Parts::NONE
    }

    fn judge(
        &self,
        review: &Review,
        _: &Stores,
        facts: &Facts,
        _: Timestamp,
    ) -> (Admission, Remarks) {
        let mut inquiry = Inquiry::open(review, facts);
        let decided = self.decide(review, &mut inquiry);
        inquiry.admission(decided)
    }

    fn expire(&self, review: &Review, _: &Stores, facts: &Facts, _: Timestamp) -> Expiry {
        let mut inquiry = Inquiry::over(review, facts);
        let decided = self.decide(review, &mut inquiry);
        let open = Verdict::warned("context deadline exceeded, allowing the change");
        expiry(decided, self.unclear(open))
    }
}
