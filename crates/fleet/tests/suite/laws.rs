//! What holds for every plan of every story.

use std::collections::BTreeSet;

use slipway_bindings::revision::template_of;
use slipway_fleet::observe::rollout::Asked;
use slipway_fleet::observe::{Cluster, Entry, Revision, Strategy, Wanted, World};
use slipway_fleet::plan::{Assignment, Decision, Move};

use crate::story::{Story, is_selected, touched};

/// What holds for every plan.
pub(crate) fn check(story: &Story, decision: &Decision) {
    let world = &story.world;
    let Asked::For(wanted) = &world.rollout.wanted else {
        return;
    };
    let mut written = BTreeSet::new();
    for cluster in touched(decision) {
        assert!(written.insert(cluster), "{cluster} is written twice");
        let entry = world.clusters[cluster].entry.as_ref();
        assert!(
            entry.is_none_or(|entry| entry.is_ours),
            "{cluster} is somebody else's"
        );
    }
    for one in &decision.assign {
        let cluster = &world.clusters[&one.cluster];
        assert!(is_selected(Some(cluster)), "{one:?} is not selected");
        assert!(cluster.is_initialized, "{one:?} is not there yet");
        let waits = cluster.refused.as_ref().map(|refused| refused.retry_at);
        assert!(
            waits.is_none_or(|until| until <= story.now),
            "{one:?} is tried too soon"
        );
        let known = [cluster.wanted.known()];
        let stable = cluster.stable.as_ref().and_then(Revision::known);
        assert!(
            known
                .into_iter()
                .chain([stable])
                .flatten()
                .any(|known| known == one.revision),
            "{one:?} is neither wanted nor proved"
        );
        let before = cluster
            .entry
            .as_ref()
            .and_then(|entry| entry.revision.as_ref());
        assert_ne!(before, Some(&one.revision), "nothing changes");
        assert_eq!(one.kind == Move::Switch, before.is_some());
    }
    if wanted.is_paused {
        assert!(decision.is_idle(), "{decision:#?}");
    }
    unassigned(story, decision);
    match wanted.strategy {
        Strategy::Incremental => incremental(story, wanted, decision),
        Strategy::External => assert!(decision.assign.iter().all(|one| one.kind == Move::First)),
        Strategy::Replace => {}
    }
}

/// Who loses its assignment is not selected; and without a person's word it is one within an hour, of so few.
fn unassigned(story: &Story, decision: &Decision) {
    let is_late = |name: &&String| story.now.duration_since(story.lost[*name]).as_secs() < 3_600;
    let mut lost: BTreeSet<&String> = story.lost.keys().filter(is_late).collect();
    for name in &decision.unassign {
        let cluster = story.world.clusters.get(name);
        assert!(!is_selected(cluster), "{name} is selected");
        lost.insert(name);
    }
    let is_allowed = story.world.rollout.confirmed.is_some() || decision.unassign.is_empty();
    assert!(
        is_allowed || lost.len() <= 1,
        "{lost:?} lose it within an hour"
    );
}

fn incremental(story: &Story, wanted: &Wanted, decision: &Decision) {
    let world = &story.world;
    let run = world.rollout.status.run.as_ref();
    let has_joined = |name: &String| {
        let entry = world.clusters[name].entry.as_ref();
        let is_ready = entry.is_none_or(Entry::is_ready);
        !is_ready && world.rollout.status.joined.contains(name)
    };
    let is_skipped =
        |name: &String| has_joined(name) || run.is_some_and(|run| run.skipped.contains(name));
    let ready = |cluster: &Cluster| {
        cluster.is_reachable && cluster.entry.as_ref().is_none_or(Entry::is_ready)
    };
    // Who is ready with what it should have counts as such only after a while.
    let settles = |cluster: &Cluster| {
        let entry = cluster.entry.as_ref()?;
        let is_current = entry.revision.as_deref() == cluster.wanted.known();
        is_current.then(|| wanted.settles(entry.ready_since().unwrap_or_default()))
    };
    let is_well = |cluster: &Cluster| {
        ready(cluster) && settles(cluster).is_none_or(|since| since <= story.now)
    };
    let selected = || {
        let all = world.clusters.iter();
        all.filter(|(_, cluster)| is_selected(Some(*cluster)))
    };
    let mut unread = selected().filter(|(_, cluster)| cluster.is_reachable && !cluster.is_seen);
    assert!(
        decision.assign.is_empty() || unread.next().is_none(),
        "not all have been looked at"
    );
    let ours = |cluster: &Cluster| cluster.entry.as_ref().is_some_and(|entry| entry.is_ours);
    let unready = selected()
        .filter(|(name, c)| ours(c) && !is_well(c) && !is_skipped(name))
        .count();
    let is_target = |revision: &str| template_of(revision) == wanted.target;
    let newly = decision
        .assign
        .iter()
        .filter(|one| is_target(&one.revision) && ready(&world.clusters[&one.cluster]));
    // Those that come while the target has proved itself before are assigned at once.
    let is_served = world.rollout.status.stable_revision.as_deref() == Some(&wanted.target)
        && run.is_some_and(|run| run.canary_passed.is_none());
    let newly = newly
        .filter(|one| one.kind == Move::Switch || !is_served)
        .count();
    let allowed = wanted.max_unready.of(selected().count());
    assert!(
        newly == 0 || unready + newly <= allowed,
        "{unready} are unready, {newly} move, {allowed} may be: {decision:#?}"
    );
    for one in &decision.assign {
        assert!(
            world.clusters[&one.cluster].is_reachable,
            "{one:?} cannot be reached"
        );
        // Else it would count, and might even be tried with, as soon as a status is lost.
        let joins = one.kind == Move::First && !is_target(&one.revision);
        assert!(
            !joins || world.rollout.status.joined.contains(&one.cluster),
            "{one:?} has joined, and that is not written down"
        );
        // It would not count, as long as it is written down that it came lately.
        let is_back = one.kind == Move::Switch && ready(&world.clusters[&one.cluster]);
        assert!(
            !is_back || !world.rollout.status.joined.contains(&one.cluster),
            "{one:?} came lately and is ready, and that is not written down"
        );
        if is_skipped(&one.cluster) {
            left_for_later(world, one);
        }
    }
    // Until some cluster has been ready with it, no second one gets it.
    let had = |name: &String| {
        let entry = world.clusters[name].entry.as_ref();
        let revision = entry.and_then(|entry| entry.revision.as_deref());
        revision.is_some_and(is_target)
    };
    let mut gets = decision
        .assign
        .iter()
        .filter(|one| is_target(&one.revision));
    let moves = gets.any(|one| !had(&one.cluster));
    if moves && !story.proved.contains(&wanted.target) {
        let have = world.clusters.iter().filter(|(name, cluster)| {
            let entry = cluster
                .entry
                .as_ref()
                .and_then(|entry| entry.revision.as_deref());
            let later = decision.assign.iter().find(|one| one.cluster == **name);
            later
                .map(|one| one.revision.as_str())
                .or(entry)
                .is_some_and(is_target)
        });
        let have: Vec<&String> = have.map(|(name, _)| name).collect();
        let selected: Vec<&&String> = have
            .iter()
            .filter(|name| is_selected(world.clusters.get(**name)))
            .collect();
        assert!(
            selected.len() <= 1,
            "{have:?} have {} and none was ready with it",
            wanted.target
        );
    }
}

/// Who is left for later stays so until it is back. But who can be reached and is not ready with an earlier revision of this Rollout is
/// reached by what may mend it (R25: "when it is ready again" may be never), and only when somebody was ready with that, or nobody
/// else is there to try it. It is broken already, so that it costs nobody anything. Not so who joined, and is on its way.
fn left_for_later(world: &World, one: &Assignment) {
    let cluster = &world.clusters[&one.cluster];
    assert!(
        cluster
            .entry
            .as_ref()
            .is_some_and(|entry| !entry.is_ready()),
        "{one:?} is left for later, and is well"
    );
    let status = &world.rollout.status;
    let run = status.run.as_ref().unwrap();
    let has_failed = cluster.entry.as_ref().is_some_and(Entry::has_failed);
    assert!(
        has_failed || !status.joined.contains(&one.cluster),
        "{one:?} has joined, and is on its way"
    );
    let canary = run.canary.as_ref();
    let has_passed = run.canary_passed.is_some()
        || canary.is_some_and(|name| {
            let cluster = world
                .clusters
                .get(name)
                .filter(|cluster| cluster.is_reachable);
            let entry = cluster.and_then(|cluster| cluster.entry.as_ref());
            let revision = entry.and_then(|entry| entry.revision.as_deref());
            let is_target = revision.is_some_and(|it| template_of(it) == run.revision);
            is_target && entry.is_some_and(Entry::is_ready)
        });
    assert!(
        has_passed || canary == Some(&one.cluster),
        "{one:?} is left for later, and nobody was ready with it: {run:?}"
    );
}
