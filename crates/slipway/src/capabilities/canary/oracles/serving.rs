//! T7, T10: whoever is sent requests has pods that take them.

use jiff::{SignedDuration, Timestamp};
use slipway_sim::history::{Change, History};
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::routes::{self, TAKEN};

use super::{CANARIES, Canary, SERVICES, SLICES, Scene, later};

/// How long it takes until a version without pods is noticed, and a gateway has taken what follows.
const NOTICED: SignedDuration = SignedDuration::from_secs(20);

/// The same after something went wrong.
const NOTICED_LATER: SignedDuration = SignedDuration::from_mins(2);

/// How long a Service may be without pods while it turns from one side to the other.
const TURNING: SignedDuration = SignedDuration::from_secs(5);

/// Moments at which it may have changed who is sent requests, or who takes them.
fn moments(history: &History) -> impl Iterator<Item = &Change> {
    let of = [TAKEN, SLICES, SERVICES, CANARIES];
    let changes = history.changes.iter();
    changes.filter(move |change| of.contains(&&*change.object.0))
}

/// Times in which something was so without a break, by what is so at each moment: beginning and end.
fn spans(history: &History, is_so: impl Fn(&Scene<'_>) -> bool) -> Vec<(Timestamp, Timestamp)> {
    let mut all = Vec::new();
    let mut began = None;
    for change in moments(history) {
        let is_so = is_so(&Scene::at(history, change.version));
        match (began, is_so) {
            (None, true) => began = Some(change.at),
            (Some(from), false) => {
                all.push((from, change.at));
                began = None;
            }
            _ => {}
        }
    }
    all.extend(began.map(|from| (from, history.end)));
    all
}

/// Whether a Service is sent requests. Where pods are the weights, a version is sent some as soon as one of its pods is ready, by
/// what the Service says that clients know: it must not even be led to.
fn is_sent(scene: &Scene<'_>, canary: &Canary<'_>, service: &str) -> bool {
    let is_new = canary.is_by_pods() && *service == *canary.new_service();
    routes::reaches(&scene.taken(canary), service)
        || is_new && routes::reaches(&scene.written(canary), service)
}

/// T7. Whoever has no pods gets nothing a moment later, where somebody else has some.
pub(in super::super) fn deserted(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    if history.is_restored() || history.is_redefined() {
        return findings;
    }
    let last = Scene::at(history, u64::MAX);
    for canary in last.canaries() {
        let sides = [canary.new_service(), canary.serving_service()];
        let [new, serving] = &sides;
        for (one, other) in [(new, serving), (serving, new)] {
            let spans = spans(history, |scene| {
                is_sent(scene, &canary, one)
                    && scene.ready_behind(&canary, one) == 0
                    && scene.ready_behind(&canary, other) > 0
            });
            let (calm, limit) = if history.is_disturbed() {
                (history.calm, NOTICED_LATER)
            } else {
                (history.start, NOTICED)
            };
            findings.check(history.start, true, String::new);
            for (from, to) in spans {
                let from = from.max(calm);
                findings.check(to, to <= later(from, limit), || {
                    let seconds = to.duration_since(from).as_secs();
                    format!("{one} was sent requests for {seconds} s and had no pods")
                });
            }
        }
    }
    findings
}

/// T10. Whatever happens to the operator, the Service that clients know has pods: from when a Canary is initialised, and after it
/// is gone where the workload was to be given back. Before it is initialised, whoever falls by itself is not missed; but from when the
/// Service first had pods, it is not led to a copy that has none.
pub(in super::super) fn served(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    if history.is_restored() || history.is_redefined() {
        return findings;
    }
    for canary in known(history) {
        let apex = canary.apex();
        let is_deserted = |scene: &Scene<'_>| {
            let there = scene.object(&canary, SERVICES, &apex).is_some();
            there && scene.ready_behind(&canary, &apex) == 0
        };
        let initialised = initialised(history, &canary);
        let until = left(history, &canary).unwrap_or(history.end);
        let mut judge = |from: Timestamp, until: Timestamp, spans: Vec<_>| {
            findings.check(from, true, String::new);
            for (began, ended) in spans {
                let (began, ended) = (from.max(began), until.min(ended));
                findings.check(ended, ended <= later(began, TURNING), || {
                    let seconds = ended.duration_since(began).as_secs();
                    format!("{apex} had no pods for {seconds} s")
                });
            }
        };
        if let Some(from) = first_served(history, &canary) {
            let is_misled = |scene: &Scene<'_>| is_deserted(scene) && is_turned(scene, &canary);
            let until = initialised.map_or(until, |at| until.min(at));
            judge(from, until, spans(history, is_misled));
        }
        if let Some(from) = initialised {
            judge(from, until, spans(history, is_deserted));
        }
    }
    findings
}

/// Whether the Service that clients know leads to the copy.
fn is_turned(scene: &Scene<'_>, canary: &Canary<'_>) -> bool {
    let selector = |name: &str| scene.object(canary, SERVICES, name)?.at("/spec/selector");
    let apex = selector(&canary.apex());
    apex.is_some() && apex == selector(&canary.serving_service())
}

/// All Canaries that there have been, each as it was last.
pub(super) fn known(history: &History) -> Vec<Canary<'_>> {
    let mut all: Vec<Canary<'_>> = Vec::new();
    let changes = history.changes.iter();
    for change in changes.filter(|change| &*change.object.0 == CANARIES) {
        let image = change.after.as_deref().or(change.before.as_deref());
        let Some(image) = image else { continue };
        all.retain(|known| known.object != &change.object);
        all.push(Canary {
            object: &change.object,
            image,
        });
    }
    all
}

/// When a Canary was first initialised.
fn initialised(history: &History, canary: &Canary<'_>) -> Option<Timestamp> {
    let mut changes = history.changes.iter();
    let first = changes.find(|change| {
        let phase = change
            .after
            .as_ref()
            .and_then(|after| after.text("/status/phase"));
        change.object == *canary.object && phase == Some("Initialized")
    })?;
    Some(first.at)
}

/// When the Service that clients know first had pods beside its Canary.
fn first_served(history: &History, canary: &Canary<'_>) -> Option<Timestamp> {
    let apex = canary.apex();
    let mut all = moments(history).map(|change| (change.at, Scene::at(history, change.version)));
    let first = all.find(|(_, scene)| {
        let is_there = scene.canaries().any(|one| one.object == canary.object);
        is_there && scene.ready_behind(canary, &apex) > 0
    })?;
    Some(first.0)
}

/// When a Canary was gone that gives nothing back; none if it is there, or had to.
fn left(history: &History, canary: &Canary<'_>) -> Option<Timestamp> {
    let mut changes = history.changes.iter();
    let gone = changes.find(|change| change.object == *canary.object && change.after.is_none())?;
    (!canary.is("/spec/revertOnDeletion")).then_some(gone.at)
}
