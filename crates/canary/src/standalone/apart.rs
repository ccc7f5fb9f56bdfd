//! Whom pods keep apart from: where selectors in the workload's template are about its own pods, those of the copy are about the
//! copy's.

use serde_json::Value;
use slipway_api::flagger::PRIMARY;

use super::readiness::Workload;
use super::{Names, PodLabel, known_by};

/// Who made the copy: each has a rule of its own for what is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// Whatever names the label of the workload's pods, also where pods are drawn together.
    Us,
    /// Whatever names the Deployment, under any label that pods may be known by, but not where pods are drawn together; and
    /// nothing in a `DaemonSet`.
    Flagger,
}

/// Selectors that are renamed.
#[derive(Debug)]
pub(super) struct Apart<'a> {
    /// Where, in a pod's spec.
    places: &'a [&'static str],
    /// Under which labels.
    keys: Vec<String>,
    /// Which value.
    value: &'a str,
}

const SPREAD: &str = "/topologySpreadConstraints";
const REPELLED: &str = "/affinity/podAntiAffinity";
const DRAWN: &str = "/affinity/podAffinity";

impl<'a> Apart<'a> {
    /// Those that somebody renames in a copy.
    pub(super) fn by(
        maker: Maker,
        kind: Workload,
        names: &'a Names,
        label: &'a PodLabel,
        labels: &[String],
    ) -> Self {
        match maker {
            Maker::Us => Self {
                places: &[REPELLED, DRAWN, SPREAD],
                keys: vec![label.key.clone()],
                value: &label.value,
            },
            Maker::Flagger => Self {
                places: match kind {
                    Workload::Deployment => &[REPELLED, SPREAD],
                    Workload::DaemonSet => &[],
                },
                keys: known_by(labels),
                value: &names.target,
            },
        }
    }

    /// Renames them in a template.
    pub(super) fn rename(&self, template: &mut Value) {
        let Some(spec) = template.get_mut("spec") else {
            return;
        };
        for place in self.places {
            if let Some(rules) = spec.pointer_mut(place) {
                self.rename_below(rules);
            }
        }
    }

    fn rename_below(&self, value: &mut Value) {
        match value {
            Value::Array(all) => {
                for one in all {
                    self.rename_below(one);
                }
            }
            Value::Object(fields) => {
                if let Some(labels) = fields.get_mut("matchLabels").and_then(Value::as_object_mut) {
                    for (_, value) in labels.iter_mut().filter(|(key, _)| self.is_about(key)) {
                        self.rename_value(value);
                    }
                }
                let key = fields.get("key").and_then(Value::as_str);
                let is_about = key.is_some_and(|key| self.is_about(key));
                if is_about && let Some(Value::Array(values)) = fields.get_mut("values") {
                    for value in values {
                        self.rename_value(value);
                    }
                }
                for field in fields.values_mut() {
                    self.rename_below(field);
                }
            }
            _ => {}
        }
    }

    fn is_about(&self, key: &str) -> bool {
        self.keys.iter().any(|one| one == key)
    }

    fn rename_value(&self, value: &mut Value) {
        if value.as_str() == Some(self.value) {
            *value = Value::String(format!("{}{PRIMARY}", self.value));
        }
    }
}
