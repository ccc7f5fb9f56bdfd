//! What G8 does not compare.

use std::fmt;

use serde_json::Value;
use slipway_api::names::{DISRUPTION_CLAIM, FENCE, RESTARTED_AT};

use super::{Case, Fleeting, Specifics};
use crate::history::{Event, History, Mark, Object, Review};

/// How something is kept out of the comparison.
#[derive(Debug, Clone, Copy)]
enum Hides {
    /// Fields, labels and annotations of these names, wherever they are.
    Fields(&'static [&'static str]),
    /// Fields of these names in objects of a resource.
    Of(&'static str, &'static [&'static str]),
    /// What texts of these names say: that there is one is compared.
    Times(&'static [&'static str]),
    /// The order of lists of these names: what is in them is known by its type.
    Order(&'static [&'static str]),
    /// All objects of these resources.
    Resources(&'static [&'static str]),
    /// Names of objects of these resources: they are compared by owner and state.
    Names(&'static [&'static str]),
    /// What the capabilities say themselves ([`super::Fleeting`]): annotations, `ConfigMap`s, and what is in their own objects.
    Fleeting,
    /// All of a run.
    Runs(&'static str, fn(&History) -> bool),
}

/// Something that is not compared, and why.
#[derive(Debug, Clone, Copy)]
pub struct Mask {
    hides: Hides,
    why: &'static str,
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hides {
            Hides::Fields(names) => write!(f, "fields {}", names.join(", ")),
            Hides::Of(of, names) => write!(f, "fields {} of {of}", names.join(", ")),
            Hides::Times(names) => write!(f, "times {}", names.join(", ")),
            Hides::Order(names) => write!(f, "the order of {}", names.join(", ")),
            Hides::Resources(names) => write!(f, "all of {}", names.join(", ")),
            Hides::Names(names) => write!(f, "names of {}", names.join(", ")),
            Hides::Fleeting => write!(f, "what a capability calls fleeting"),
            Hides::Runs(which, _) => write!(f, "runs {which}"),
        }?;
        write!(f, ": {}", self.why)
    }
}

/// What is not compared, and why. There is no other mask: the comparison asks these, and these are printed.
pub const MASKED: &[Mask] = &[
    Mask {
        hides: Hides::Fields(&["resourceVersion", "managedFields"]),
        why: "count everybody's writes, also those that a fault made necessary",
    },
    Mask {
        hides: Hides::Fields(&[
            "uid",
            "pod-template-hash",
            "controller-revision-hash",
            "currentRevision",
            "updateRevision",
            "containerID",
            "podIP",
            "podIPs",
            "nodeName",
            "hostIP",
            "hostIPs",
        ]),
        why: "pods and replica sets are made when restarts are, and their hash covers restartedAt",
    },
    Mask {
        hides: Hides::Fields(&["clusterIP", "clusterIPs"]),
        why: "addresses of Services are drawn when they are made",
    },
    Mask {
        hides: Hides::Of("apps/deployments", COUNTED),
        why: "an annotation of a Deployment counts as a change of it, a new leader's fence or a claim that lasts longer; how often its spec was changed is compared",
    },
    Mask {
        hides: Hides::Fields(&["message"]),
        why: "has names, numbers and times in it that differ as above",
    },
    Mask {
        hides: Hides::Fields(&[RESTARTED_AT, DISRUPTION_CLAIM, FENCE]),
        why: "what a fault delayed has a later date, and who led when depends on the faults",
    },
    Mask {
        hides: Hides::Times(&[
            "lastTransitionTime",
            "lastUpdateTime",
            "since",
            "until",
            "startTime",
            "startedAt",
            "finishedAt",
            "time",
            "creationTimestamp",
            "updatedAt",
        ]),
        why: "what a fault delayed has a later date",
    },
    Mask {
        hides: Hides::Order(&["conditions"]),
        why: "whichever was told first is first in a list by types",
    },
    Mask {
        hides: Hides::Names(&["apps/replicasets", "apps/controllerrevisions", "/pods"]),
        why: "have a pod template's hash in them, or are drawn",
    },
    Mask {
        hides: Hides::Names(&["discovery.k8s.io/endpointslices"]),
        why: "are drawn; how many of a Service's pods are ready is compared, and not which",
    },
    Mask {
        hides: Hides::Resources(&["/endpoints"]),
        why: "say what slices say, with names and addresses of pods",
    },
    Mask {
        hides: Hides::Resources(&[
            "coordination.k8s.io/leases",
            "events.k8s.io/events",
            "/events",
            "/nodes",
        ]),
        why: "who leads, how often something was said, and when a node was last seen, depends on the faults",
    },
    Mask {
        hides: Hides::Resources(&["apiextensions.k8s.io/customresourcedefinitions"]),
        why: "what a fault takes away it puts back, as another object",
    },
    Mask {
        hides: Hides::Fleeting,
        why: "who was asked when, and when somebody was last restarted, depends on the faults",
    },
    Mask {
        hides: Hides::Runs("in which all was put back to before", History::is_restored),
        why: "what happened in between did not",
    },
    Mask {
        hides: Hides::Runs("in which a clock was off", History::is_out_of_time),
        why: "what is due when is another question then",
    },
    Mask {
        hides: Hides::Runs("that lost a definition", History::is_redefined),
        why: "its objects go with it and come back as others",
    },
    Mask {
        hides: Hides::Runs(
            "in which a member was replaced, was put back, or lost a definition",
            History::has_other_clusters,
        ),
        why: "for a time it was as it never is without faults",
    },
    Mask {
        hides: Hides::Runs("in which a webhook let something pass unseen", is_open),
        why: "what comes of that is for the other oracles",
    },
    Mask {
        hides: Hides::Runs("that came out otherwise for people", is_otherwise),
        why: "a webhook could not be asked, or was asked later; what comes of that is for the other oracles",
    },
];

/// Whether a webhook let something pass that it could not see.
fn is_open(history: &History) -> bool {
    history.reviews.iter().any(Review::is_open)
}

/// Whether what people did came out otherwise than it does without faults.
fn is_otherwise(history: &History) -> bool {
    let differs = |mark: &Mark| matches!(mark.what, Event::Otherwise(_));
    history.is_disturbed() && history.marks.iter().any(differs)
}

/// What counts changes of a spec: how often that is changed is compared, where it may differ by one.
const COUNTED: &[&str] = &["generation", "observedGeneration"];

/// What a capability says itself, as it is printed. All that it may call fleeting is named here: what is not printed does not compile.
pub(super) fn own(one: &Specifics) -> Vec<String> {
    let name = one.name;
    let Fleeting {
        annotations,
        maps,
        times,
        lists,
        annals,
        hashes,
        stable,
    } = one.fleeting;
    let told = [
        (annotations, "fields", "say when, or of whom"),
        (maps, "ConfigMaps that begin with", "say who was asked when"),
        (times, "times", "what a fault delayed has a later date"),
        (
            lists,
            "the order of",
            "whoever came first is first in a list by names",
        ),
        (
            annals,
            "where something was held up",
            "what people asked for meanwhile was never begun, or with others",
        ),
        (
            hashes,
            "hashes",
            "cover names with versions of other objects in them",
        ),
    ];
    let told = told.iter().filter(|(names, ..)| !names.is_empty());
    let told =
        told.map(|(names, what, why)| format!("in {name}: {what} {}: {why}", names.join(", ")));
    let counts = (!one.superseded.is_empty()).then(|| {
        let (fields, of) = (COUNTED.join(", "), one.superseded.join(", "));
        format!("in {name}: fields {fields} of {of}: how often a spec was changed is compared")
    });
    let stable = stable.map(|stable| {
        let hides = stable.hides;
        format!("in {name}: {hides}: are versions of other objects")
    });
    told.chain(stable).chain(counts).collect()
}

/// What is not compared of the objects of one resource.
pub(super) struct Masked {
    fields: Vec<&'static str>,
    times: Vec<&'static str>,
    lists: Vec<&'static str>,
    stable: Vec<fn(&str) -> Option<&str>>,
}

impl Masked {
    /// By the table, and by what the capabilities call fleeting.
    pub(super) fn of(case: &Case<'_>, resource: &str, is_held_up: bool) -> Self {
        let mut all = Self {
            fields: Vec::new(),
            times: Vec::new(),
            lists: Vec::new(),
            stable: Vec::new(),
        };
        for mask in MASKED {
            match mask.hides {
                Hides::Fields(names) => all.fields.extend(names),
                Hides::Of(of, names) if of == resource => all.fields.extend(names),
                Hides::Times(names) => all.times.extend(names),
                Hides::Order(names) => all.lists.extend(names),
                Hides::Fleeting => all.add_fleeting(case, resource, is_held_up),
                _ => {}
            }
        }
        all
    }

    fn add_fleeting(&mut self, case: &Case<'_>, resource: &str, is_held_up: bool) {
        for one in case.specifics {
            self.fields.extend(one.fleeting.annotations);
            self.fields.extend(one.fleeting.hashes);
            self.stable.extend(one.fleeting.stable.map(|one| one.of));
            if one.superseded.contains(&resource) {
                self.fields.extend(COUNTED);
            }
            // A status may be in a map too.
            let is_map = resource == "/configmaps";
            if is_map || one.statuses.iter().any(|(own, _)| *own == resource) {
                self.times.extend(one.fleeting.times);
                self.lists.extend(one.fleeting.lists);
                if is_held_up {
                    self.fields.extend(one.fleeting.annals);
                }
            }
        }
    }

    /// Takes out of a value what is not compared.
    pub(super) fn hide(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|key, _| !self.fields.contains(&key.as_str()));
                for (key, field) in fields.iter_mut() {
                    if field.is_string() && self.times.contains(&key.as_str()) {
                        *field = Value::String("a time".to_owned());
                        continue;
                    }
                    self.hide(field);
                    if let (true, Value::Array(list)) = (self.lists.contains(&key.as_str()), field)
                    {
                        list.sort_by_cached_key(known_by);
                    }
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|one| self.hide(one)),
            // A status inside a ConfigMap.
            Value::String(text) if text.starts_with('{') => {
                if let Ok(mut inside) = serde_json::from_str::<Value>(text) {
                    self.hide(&mut inside);
                    *value = inside;
                }
            }
            Value::String(text) => {
                let said: &str = text;
                let stable = self.stable.iter().find_map(|stable| stable(said));
                if let Some(hidden) = stable.map(|stable| format!("{stable}*")) {
                    *text = hidden;
                }
            }
            _ => {}
        }
    }
}

/// By what something in a list by names or types is known there.
fn known_by(one: &Value) -> Option<String> {
    let known = one.get("name").or_else(|| one.get("type"));
    known.map(Value::to_string)
}

/// What is compared of the name of an object that has a version of another one in it.
pub(super) fn stable<'a>(case: &Case<'_>, name: &'a str) -> Option<&'a str> {
    let mut all = case.specifics.iter();
    all.find_map(|one| (one.fleeting.stable?.of)(name))
}

/// Whether nothing of a run is compared.
pub(super) fn is_apart(history: &History) -> bool {
    let mut masks = MASKED.iter();
    masks.any(|mask| matches!(mask.hides, Hides::Runs(_, is_one) if is_one(history)))
}

/// Whether objects of a resource are not compared at all.
pub(super) fn is_left_out(resource: &str) -> bool {
    let mut masks = MASKED.iter();
    masks.any(|mask| matches!(mask.hides, Hides::Resources(all) if all.contains(&resource)))
}

/// Whether objects of a resource are compared by owner and state.
pub(super) fn is_counted(resource: &str) -> bool {
    let mut masks = MASKED.iter();
    masks.any(|mask| matches!(mask.hides, Hides::Names(all) if all.contains(&resource)))
}

/// Whether it is a `ConfigMap` that a capability calls fleeting.
pub(super) fn is_fleeting(case: &Case<'_>, (resource, _, name): &Object) -> bool {
    let mut masks = MASKED.iter();
    let mut maps = case.specifics.iter().flat_map(|one| one.fleeting.maps);
    masks.any(|mask| matches!(mask.hides, Hides::Fleeting))
        && &**resource == "/configmaps"
        && maps.any(|own| name.starts_with(own))
}
