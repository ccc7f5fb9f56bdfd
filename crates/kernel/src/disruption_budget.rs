//! Pod disruption budgets: whom they protect, and whether they allow a disruption.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fields::integer;
use crate::parts::{Part, Parts};
use crate::selector::Selector;
use crate::store::{Projection, Undecodable};

/// What is kept of a pod disruption budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// Without one it protects nobody.
    selector: Option<Selector>,
    /// How many pods may be disrupted now; none if nobody has said yet.
    pub allowed: i64,
}

impl Projection for DisruptionBudget {
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

impl DisruptionBudget {
    /// Whether it protects pods with these labels.
    pub fn protects(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.selector.as_ref();
        selector.is_some_and(|selector| selector.selects(labels))
    }

    /// Whether it protects pods with these labels, and none of them may be disrupted now.
    pub fn forbids(&self, labels: &BTreeMap<String, String>) -> bool {
        self.allowed < 1 && self.protects(labels)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::DisruptionBudget;
    use crate::store::Projection;

    fn forbids(spec: &Value, status: &Value) -> bool {
        let budget = DisruptionBudget::read(&json!({"spec": spec, "status": status}));
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        budget.is_ok_and(|budget| budget.forbids(&labels))
    }

    #[test]
    fn it_forbids_only_what_it_protects_and_only_while_it_is_spent() {
        let (web, api) = (
            json!({"selector": {"matchLabels": {"app": "web"}}}),
            json!({"selector": {"matchLabels": {"app": "api"}}}),
        );
        assert!(forbids(&web, &json!({"disruptionsAllowed": 0})));
        assert!(forbids(&web, &json!({})));
        assert!(!forbids(&web, &json!({"disruptionsAllowed": 1})));
        assert!(!forbids(&api, &json!({"disruptionsAllowed": 0})));
    }

    #[test]
    fn without_a_selector_it_protects_nobody_and_with_an_empty_one_everybody() {
        let spent = json!({"disruptionsAllowed": 0});
        assert!(!forbids(&json!({}), &spent));
        assert!(!forbids(&json!({"selector": null}), &spent));
        assert!(forbids(&json!({"selector": {}}), &spent));
    }
}
