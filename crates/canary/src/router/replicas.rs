//! Plain Services where the numbers of pods are the weights: nobody is needed who divides requests.
//!
//! ```text
//! weight 0        the apex finds the pods of what serves
//! 1 to 99         it finds those of both, by a label that all of them have; how many there are of each is the engine's business
//! 100             it finds the target's
//! ```
//!
//! So all traffic is taken from the target by one write of the apex, however many pods it has. A Service that leads to both says
//! by an annotation what the numbers of their pods stand for. Both are gone when the weight is 0 again.
//!
//! It does not promise more precision than there are replicas, nor that connections which stay are divided at all.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use slipway_api::flagger::{TRAFFIC, WEIGHT};
use slipway_kernel::fields::strings;

use super::kubernetes::OF_PODS;
use super::parts::{is_controlled, is_ours};
use super::{Abilities, CannotRoute, Objects, Pods, Route, Router, Write};
use crate::engine::{Routing, Weights};
use crate::kinds::SERVICE;

pub(crate) static ROUTER: Router = Router {
    names: &[("kubernetes:replicas", "")],
    can: Abilities {
        shift: true,
        ..Abilities::NONE
    },
    divides: true,
    acknowledges: false,
    kinds: |_| Vec::new(),
    seen: |route, objects| {
        Ok(Routing {
            weights: weight(route, objects).map(Weights::to_target),
            pending: None,
        })
    },
    writes,
    retreat: |_, route, objects| {
        let marked = marked(route, objects);
        let back = marked.map(|(pods, _)| lead(route, &Leads::to(pods, route, 0)));
        back.into_iter().collect()
    },
    check_match: |_| Err("plain Services lead all requests alike".to_owned()),
    borrows: |route, objects| {
        let apex = apex(route, objects).map(|(_, apex)| apex);
        apex.is_some_and(|apex| is_ours(route, apex) && !is_controlled(route, apex))
    },
    // What serves goes with the Canary: the pods of the workload are those that a person's Service found before.
    restore: |_, route, objects| {
        let marked = marked(route, objects);
        let own = marked.map(|(pods, _)| lead(route, &Leads::to_workload(pods)));
        own.into_iter().collect()
    },
    measures: OF_PODS,
};

/// What the apex is.
const KIND: &str = "Service";

/// What the apex has to say; none of a value means that it has no such field.
struct Leads<'a> {
    /// Its selector, as far as it is about the two sides.
    selector: BTreeMap<&'a str, Option<&'a str>>,
    /// The weight that it stands for.
    weight: Option<String>,
}

impl<'a> Leads<'a> {
    fn of(pods: &'a Pods, own: Option<&'a str>, both: Option<&'a str>, weight: u8) -> Self {
        Self {
            selector: [(pods.key.as_str(), own), (TRAFFIC, both)].into(),
            weight: (weight > 0).then(|| weight.to_string()),
        }
    }

    /// At this weight.
    fn to(pods: &'a Pods, route: &'a Route, weight: u8) -> Self {
        match weight {
            0 => Self::of(pods, Some(&pods.source), None, 0),
            1..100 => Self::of(pods, None, Some(&route.apex), weight),
            _ => Self::of(pods, Some(&pods.target), None, 100),
        }
    }

    /// As if there were no Canary.
    fn to_workload(pods: &'a Pods) -> Self {
        Self::of(pods, Some(&pods.target), None, 0)
    }

    /// Whether a Service says so.
    fn is_so(&self, apex: &Value) -> bool {
        let selector = strings(apex, "/spec/selector");
        let mut wanted = self.selector.iter();
        let is_led = wanted.all(|(name, value)| selector.get(*name).map(String::as_str) == *value);
        is_led && strings(apex, "/metadata/annotations").get(WEIGHT) == self.weight.as_ref()
    }
}

/// The change by which the apex comes to say so.
fn lead(route: &Route, leads: &Leads<'_>) -> Write {
    let selector = leads.selector.iter();
    let selector: Map<String, Value> = selector
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    Write::Patch {
        kind: SERVICE,
        name: route.apex.clone(),
        body: json!({
            "metadata": {"annotations": {WEIGHT: leads.weight}},
            "spec": {"selector": selector},
        }),
    }
}

/// The apex, where pods are known.
fn apex<'a>(route: &'a Route, objects: &'a Objects) -> Option<(&'a Pods, &'a Value)> {
    let pods = route.pods.as_ref()?;
    Some((pods, objects.get(KIND, &route.apex)?))
}

/// The same, where it leads to the target, or did and was changed since. One that another Canary controls is that one's to lead.
fn marked<'a>(route: &'a Route, objects: &'a Objects) -> Option<(&'a Pods, &'a Value)> {
    apex(route, objects).filter(|(_, apex)| {
        let has = |path: &str, name: &str| strings(apex, path).contains_key(name);
        let is_marked = has("/metadata/annotations", WEIGHT) || has("/spec/selector", TRAFFIC);
        is_marked && is_ours(route, apex)
    })
}

/// The weight that the apex stands for; none if it leads elsewhere.
fn weight(route: &Route, objects: &Objects) -> Option<u8> {
    let (pods, apex) = apex(route, objects)?;
    let written = strings(apex, "/metadata/annotations");
    let written = written.get(WEIGHT).map(|weight| weight.parse::<u8>());
    let weight = written.map_or(Some(0), Result::ok)?;
    Leads::to(pods, route, weight).is_so(apex).then_some(weight)
}

fn writes(
    _: &'static str,
    route: &Route,
    objects: &Objects,
    weights: Weights,
) -> Result<Vec<Write>, CannotRoute> {
    // Who makes it leads it to what serves.
    let Some((pods, apex)) = apex(route, objects) else {
        return Ok(Vec::new());
    };
    if !is_ours(route, apex) {
        return Err(CannotRoute::NotOurs {
            kind: KIND,
            name: route.apex.clone(),
        });
    }
    if (1..100).contains(&weights.target)
        && let Some(why) = unlabelled(route, objects)
    {
        return Err(CannotRoute::Spec(why));
    }
    let leads = Leads::to(pods, route, weights.target);
    if leads.is_so(apex) {
        return Ok(Vec::new());
    }
    Ok(vec![lead(route, &leads)])
}

/// Why the apex could not find the pods of both sides, if it could not: one of those that are there has not the label.
pub(crate) fn unlabelled(route: &Route, objects: &Objects) -> Option<String> {
    let pods = route.pods.as_ref()?;
    let apex = &route.apex;
    let lacks = |name: &str| {
        let workload = objects.get(&pods.kind, name);
        workload.is_some_and(|workload| {
            let labels = strings(workload, "/spec/template/metadata/labels");
            labels.get(TRAFFIC) != Some(apex)
        })
    };
    if lacks(&pods.of_target) {
        let name = &pods.of_target;
        return Some(format!(
            "Service {apex} has to find the pods of both versions: add the label {TRAFFIC}: {apex} to the pod template of {name}"
        ));
    }
    lacks(&pods.of_source).then(|| {
        let name = &pods.of_source;
        format!(
            "the pods of {name} have no label {TRAFFIC}: {apex}; let provider kubernetes promote a version that has it first"
        )
    })
}
