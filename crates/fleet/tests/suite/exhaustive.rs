//! All worlds of three clusters, each in eleven states, with every stage of a change, stable revision, budget and strategy.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::fleet::assemblage::SyncState;
use slipway_api::fleet::rollout::status::Run;
use slipway_fleet::budget::Amount;
use slipway_fleet::decide;
use slipway_fleet::observe::rollout::Asked;
use slipway_fleet::observe::{
    Cluster, Entry, EntryStatus, Revision, Rollout, Strategy, Wanted, World,
};
use slipway_fleet::plan::{Decision, Move};

use crate::stage::{noon, step};

const NAMES: [&str; 3] = ["x", "y", "z"];
/// What is assigned, and whether the cluster is ready with it.
const ENTRIES: [Option<(&str, bool)>; 5] = [
    None,
    Some(("a", true)),
    Some(("a", false)),
    Some(("b", true)),
    Some(("b", false)),
];
/// Each of these reachable or not, and one that is somebody else's.
const STATES: usize = ENTRIES.len() * 2 + 1;

fn cluster(state: usize) -> Cluster {
    let entry = |revision: &str, is_ready: bool| Entry {
        is_ours: true,
        revision: Some(revision.to_owned()),
        status: Some(EntryStatus {
            observed: Some(revision.to_owned()),
            state: if is_ready {
                SyncState::Succeeded
            } else {
                SyncState::Failed
            },
            ..EntryStatus::default()
        }),
    };
    let known = |revision: &str| Revision::Known(revision.to_owned());
    let made = match ENTRIES.get(state / 2) {
        Some(Some((revision, is_ready))) => Some(entry(revision, *is_ready)),
        Some(None) => None,
        None => Some(Entry {
            is_ours: false,
            ..entry("theirs", true)
        }),
    };
    Cluster {
        is_reachable: state.is_multiple_of(2),
        wanted: known("b"),
        stable: Some(known("a")),
        entry: made,
        ..Cluster::default()
    }
}

fn run(stage: usize) -> Option<Run> {
    let run = Run {
        revision: "b".to_owned(),
        started: Time(noon()),
        canary: Some("x".to_owned()),
        canary_passed: None,
        skipped: Vec::new(),
    };
    let passed = Some(Time(noon()));
    match stage {
        0 => None,
        1 => Some(run),
        2 => Some(Run {
            canary_passed: passed,
            ..run
        }),
        3 => Some(Run {
            canary_passed: passed,
            skipped: vec!["y".to_owned()],
            ..run
        }),
        _ => Some(Run {
            revision: "c".to_owned(),
            ..run
        }),
    }
}

fn all(mut look: impl FnMut(&World, &Wanted)) -> usize {
    let mut count = 0;
    let strategies = [Strategy::Incremental, Strategy::Replace, Strategy::External];
    for states in 0..STATES.pow(3) {
        let states = [
            states % STATES,
            states / STATES % STATES,
            states / STATES.pow(2),
        ];
        let clusters = NAMES.iter().zip(states);
        let clusters = clusters.map(|(name, state)| ((*name).to_owned(), cluster(state)));
        let mut world = World {
            clusters: clusters.collect(),
            ..World::default()
        };
        for (strategy, stage, stable, budget) in choices(&strategies) {
            let wanted = Wanted {
                strategy,
                target: "b".to_owned(),
                max_unready: Amount::Number(budget),
                ..Wanted::default()
            };
            let mut rollout = Rollout {
                name: "shop/web".to_owned(),
                wanted: Asked::For(wanted.clone()),
                ..Rollout::default()
            };
            rollout.status.run = run(stage);
            rollout.status.stable_revision = stable.map(str::to_owned);
            world.rollout = rollout;
            look(&world, &wanted);
            count += 1;
        }
    }
    count
}

type Choice = (Strategy, usize, Option<&'static str>, usize);

fn choices(strategies: &[Strategy]) -> Vec<Choice> {
    let mut all = Vec::new();
    for strategy in strategies {
        for stage in 0..5 {
            for stable in [None, Some("a"), Some("b")] {
                all.extend([1, 2].map(|budget| (*strategy, stage, stable, budget)));
            }
        }
    }
    all
}

fn check(world: &World, wanted: &Wanted, decision: &Decision) {
    let mut touched = BTreeSet::new();
    for one in &decision.assign {
        assert!(
            touched.insert(&one.cluster),
            "written twice: {world:#?} {decision:#?}"
        );
        let entry = world.clusters[&one.cluster].entry.as_ref();
        assert!(
            entry.is_none_or(|entry| entry.is_ours),
            "{world:#?} {decision:#?}"
        );
        assert_ne!(
            entry.and_then(|entry| entry.revision.as_ref()),
            Some(&one.revision)
        );
    }
    assert!(decision.unassign.is_empty());
    let switches = decision
        .assign
        .iter()
        .filter(|one| one.kind == Move::Switch);
    match wanted.strategy {
        Strategy::External => assert_eq!(switches.count(), 0),
        Strategy::Replace => {}
        Strategy::Incremental => incremental(world, wanted, decision),
    }
}

fn incremental(world: &World, wanted: &Wanted, decision: &Decision) {
    let run = world.rollout.status.run.as_ref();
    let Some(run) = run.filter(|run| run.revision == wanted.target) else {
        assert!(
            decision.assign.is_empty(),
            "nobody moves before it is written down: {world:#?} {decision:#?}"
        );
        return;
    };
    let ready = |cluster: &Cluster| {
        cluster.is_reachable && cluster.entry.as_ref().is_none_or(Entry::is_ready)
    };
    let is_counted = |name: &str, cluster: &Cluster| {
        let ours = cluster.entry.as_ref().is_some_and(|entry| entry.is_ours);
        ours && !ready(cluster) && !run.skipped.iter().any(|one| one == name)
    };
    let unready = world
        .clusters
        .iter()
        .filter(|(name, cluster)| is_counted(name, cluster))
        .count();
    let stable = world.rollout.status.stable_revision.as_deref();
    let to_target = decision
        .assign
        .iter()
        .filter(|one| one.revision == wanted.target);
    let to_target: Vec<_> = to_target.collect();
    let has_passed = run.canary_passed.is_some() || {
        let canary = run
            .canary
            .as_ref()
            .and_then(|name| world.clusters.get(name));
        canary.is_some_and(|canary| {
            canary.is_reachable
                && canary
                    .entry
                    .as_ref()
                    .is_some_and(|e| e.is_ready() && e.revision.as_deref() == Some("b"))
        })
    };
    if !has_passed && stable != Some("b") {
        assert!(to_target.len() <= 1, "{world:#?} {decision:#?}");
        assert!(
            to_target
                .iter()
                .all(|one| Some(&one.cluster) == run.canary.as_ref())
        );
    }
    if has_passed {
        let newly = to_target
            .iter()
            .filter(|one| ready(&world.clusters[&one.cluster]))
            .count();
        let allowed = wanted.max_unready.of(world.clusters.len());
        assert!(
            newly == 0 || unready + newly <= allowed,
            "{world:#?} {decision:#?}"
        );
    }
}

#[test]
fn no_small_world_breaks_a_law() {
    let count = all(|world, wanted| check(world, wanted, &decide(world, noon())));
    assert_eq!(count, STATES.pow(3) * 3 * 5 * 3 * 2);
}

/// Optimised builds look at all of them; others would take too long.
#[test]
fn every_small_world_comes_to_rest() {
    let mut number = 0;
    all(|world, _| {
        number += 1;
        if cfg!(debug_assertions) && number % 97 != 0 {
            return;
        }
        let mut world = world.clone();
        for _ in 0..6 {
            step(&mut world, noon());
        }
        let before = world.clone();
        let again = step(&mut world, noon());
        assert!(again.is_idle(), "{world:#?} {again:#?}");
        assert_eq!(before, world);
    });
}
