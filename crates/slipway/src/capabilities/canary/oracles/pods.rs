//! Traffic that nobody divides (`kubernetes:replicas`): the Service that clients know leads to the pods of one version or of both, and
//! each version has the share that its pods are of all of these.
//!
//! What is written is the selector, with the numbers of pods that are asked for; what is so in fact is which ready pods are behind
//! the Service.

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_sim::history::{Change, History, Image, Request};
use slipway_sim::oracles::Findings;
use slipway_sim::routes::{Rule, WHOLE};

use super::leaving::leads_to;
use super::promoting::is_selected;
use super::{Canary, SERVICES, Scene, both, size, takes_requests};

/// The provider whose traffic is divided so.
const REPLICAS: &str = "kubernetes:replicas";

impl Canary<'_> {
    /// Whether its traffic is divided by numbers of pods.
    pub(super) fn is_by_pods(&self) -> bool {
        let fields = ["/spec/provider", "/status/run/provider"];
        fields.iter().any(|field| self.text(field) == REPLICAS)
    }
}

impl<'a> Scene<'a> {
    /// Who gets the requests of the Service that clients know, if that says so: each version by the pods that are asked of it.
    pub(super) fn selected(&self, canary: &Canary<'_>, apex: &Image) -> Rule {
        let sides = [
            (canary.target(), canary.new_service()),
            (canary.primary(), canary.serving_service()),
        ];
        let found = sides.into_iter().filter_map(|(name, service)| {
            let workload = self.workload(canary, &name)?;
            leads_to(apex, workload).then(|| (service, size(workload)))
        });
        Rule {
            weights: found.collect(),
            ..Rule::default()
        }
    }

    /// Who gets them in fact: each version by its pods among those that are ready behind that Service.
    pub(super) fn divided(&self, canary: &Canary<'_>) -> Rule {
        let name = |one: &'a Value| one.pointer("/targetRef/name").and_then(Value::as_str);
        let known = self.endpoints(canary, &canary.apex()).into_iter();
        let ready = known.filter(|one| takes_requests(one)).filter_map(name);
        let ready: BTreeSet<&str> = ready.collect();
        let sides = [canary.new_service(), canary.serving_service()];
        let shares = sides.into_iter().map(|service| {
            let of_it = self.endpoints(canary, &service).into_iter();
            let shared = of_it.filter_map(name).filter(|pod| ready.contains(pod));
            let shared = i64::try_from(shared.count()).unwrap_or_default();
            (service, shared)
        });
        Rule {
            weights: shares.collect(),
            ..Rule::default()
        }
    }
}

/// T1 where pods are the weights: the Service that clients know leads to the new version where a share of that was remembered, to what
/// serves where there is a rest, and to nobody else; so both shares are a whole. To lead to what serves alone is always right.
pub(super) fn whole(
    history: &History,
    (change, request): (&Change, &Request),
    findings: &mut Findings,
) {
    let selector = "/spec/selector";
    let Some((before, after)) = both(change).filter(|_| &*change.object.0 == SERVICES) else {
        return;
    };
    let basis = request.context.basis.get("canaries").copied();
    let seen = Scene::at(history, basis.unwrap_or(change.version));
    let mut canaries = seen.canaries();
    let is_meant = |canary: &Canary<'_>| {
        canary.text("/spec/provider") == REPLICAS && canary.is_routed_by(&change.object)
    };
    let canary = canaries.find(is_meant);
    let Some(canary) = canary.filter(|_| before.at(selector) != after.at(selector)) else {
        return;
    };
    let scene = Scene::at(history, change.version);
    let sides = [canary.target(), canary.primary()];
    let [Some(target), Some(copy)] = sides.map(|name| scene.workload(&canary, &name)) else {
        return;
    };
    let weight = canary.image.number("/status/canaryWeight");
    let is_ending = !canary.text("/metadata/deletionTimestamp").is_empty();
    let led = (leads_to(after, target), leads_to(after, copy));
    let is_whole = match led {
        (false, leads_to_copy) => leads_to_copy,
        (true, true) => (1..100).contains(&weight),
        (true, false) => weight == 100 || is_ending,
    };
    findings.check(change.at, is_whole, || {
        let name = &change.object.2;
        format!("{name} leads to (new, serving) {led:?}, and the new version is to have {weight}%")
    });
    let strangers = strangers(&scene, &canary, after, [target, copy]);
    findings.check(change.at, strangers == 0, || {
        let name = &change.object.2;
        format!("{name} leads to {strangers} pods that are of neither version")
    });
}

/// How many pods a Service selects that are of neither workload.
fn strangers(scene: &Scene<'_>, canary: &Canary<'_>, service: &Image, sides: [&Image; 2]) -> usize {
    let pods = scene.history.states("/pods", scene.version).into_iter();
    let here = pods.filter(|(object, _)| object.1 == canary.object.1);
    let selected = here.filter(|(_, pod)| {
        let labels = pod.at("/metadata/labels");
        let mut sides = sides.iter();
        let is_ours = sides.any(|side| is_selected(side.at("/spec/selector/matchLabels"), labels));
        !is_ours && is_selected(service.at("/spec/selector"), labels)
    });
    selected.count()
}

/// Whether replicas are not divided by the weight yet, where their numbers are the weights: together they are more than there were.
pub(super) fn is_undivided(scene: &Scene<'_>, canary: &Canary<'_>) -> bool {
    let mut known = scene.canaries().filter(Canary::is_by_pods);
    let remembered = known.find(|one| one.object == canary.object);
    let sizes = [canary.target(), canary.primary()];
    let sizes = sizes.iter().filter_map(|name| scene.workload(canary, name));
    let all: i64 = sizes.map(size).sum();
    // Before a run has divided any, nothing is remembered of how many there were.
    let had = remembered.map_or(0, |known| known.image.number("/status/run/replicas"));
    had > 0 && all > had
}

/// T2 where pods are the weights: what serves has fewer of those that requests go to. How much the new version has then.
pub(super) fn thinned<'a>(scene: &Scene<'a>, change: &Change) -> Option<(Canary<'a>, (i64, i64))> {
    let (before, after) = both(change)?;
    let canary = scene.of(&change.object)?;
    let is_copy = &*change.object.0 == canary.workloads() && *change.object.2 == *canary.primary();
    let is_tried = ["Progressing", "WaitingPromotion"].contains(&canary.phase());
    if !canary.is_by_pods() || !is_copy || !is_tried {
        return None;
    }
    let apex = scene.object(&canary, SERVICES, &canary.apex())?;
    let target = scene.workload(&canary, &canary.target())?;
    let new = size(target);
    let share = |copy: &Image| (new * WHOLE).checked_div(new + size(copy));
    let shares = share(before).zip(share(after))?;
    leads_to(apex, target).then_some((canary, shares))
}
