//! All worlds of three zones of two pods, each pod in five states and of two revisions: a million. Z1, Z2 and Z4 to Z6 hold in
//! every one, for every budget, whichever zone is paused and whatever is wrong with one.
//!
//! Optimised builds look at all of them, under each of these rules; others at every 97th. Which worlds were looked at is counted
//! in the same loop: a way to go through them that leaves a pod in one state would be seen.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::ClusterId;
use slipway_kernel::fact::Answers;
use slipway_kernel::instant::Written;
use slipway_kernel::store::{Item, Meta};
use slipway_zones::group::MaxUnavailable;
use slipway_zones::observe::{Owner, Pod, Scaling, Set, Status, Tracker, World, Zone};
use slipway_zones::plan::rollout::decide;
use slipway_zones::readiness::Survey;
use slipway_zones::{Settings, plan};

use crate::objects::{deleted, noon};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Unready,
    Terminating,
    Missing,
    Stuck,
}

const STATES: [State; 5] = [
    State::Ready,
    State::Unready,
    State::Terminating,
    State::Missing,
    State::Stuck,
];

/// A pod, and whether it is outdated.
type Cell = (State, bool);

const ZONES: usize = 3;
const PODS: usize = 2;
const WORLDS: u64 = 1_000_000;

fn cells(mut number: u64) -> [[Cell; PODS]; ZONES] {
    let mut all = [[(State::Ready, false); PODS]; ZONES];
    for cell in all.iter_mut().flatten() {
        *cell = (
            STATES[usize::try_from(number % 5).unwrap()],
            number / 5 % 2 == 1,
        );
        number /= 10;
    }
    all
}

fn meta(name: &str) -> Meta {
    Meta {
        namespace: "mimir".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        version: "1".to_owned(),
        generation: 1,
    }
}

fn item(zone: usize, ordinal: usize, (state, is_outdated): Cell) -> Item<Pod> {
    let revision = if is_outdated { "old" } else { "new" };
    let set = format!("zone-{zone}");
    let pod = Pod {
        labels: BTreeMap::from([("controller-revision-hash".to_owned(), revision.to_owned())]),
        owner: Owner::Set(format!("uid-{set}")),
        is_deleting: state == State::Terminating,
        is_idle: false,
        // A terminating pod may still be ready.
        is_ready: matches!(state, State::Ready | State::Terminating),
        ready_since: None,
        stuck: (state == State::Stuck).then(|| "CrashLoopBackOff".to_owned()),
    };
    Item::new(meta(&format!("{set}-{ordinal}")), pod)
}

/// What is the same in every world, made once.
struct Box3 {
    pods: Vec<Item<Pod>>,
}

impl Box3 {
    fn new() -> Self {
        let mut pods = Vec::new();
        for zone in 0..ZONES {
            for ordinal in 0..PODS {
                for state in STATES {
                    for is_outdated in [false, true] {
                        pods.push(item(zone, ordinal, (state, is_outdated)));
                    }
                }
            }
        }
        Self { pods }
    }

    fn pod(&self, zone: usize, ordinal: usize, (state, is_outdated): Cell) -> Item<Pod> {
        let place = ((zone * PODS + ordinal) * 5 + state as usize) * 2 + usize::from(is_outdated);
        self.pods[place].clone()
    }
}

#[derive(Debug, Clone, Copy)]
struct Rules {
    most: i64,
    paused: Option<usize>,
    strategy: &'static str,
    lag: i64,
    is_deleting: bool,
}

const PLAIN: Rules = Rules {
    most: 1,
    paused: None,
    strategy: "OnDelete",
    lag: 0,
    is_deleting: false,
};

fn set(zone: usize, rules: Rules) -> Item<Set> {
    let name = format!("zone-{zone}");
    let is_last = zone == ZONES - 1;
    let body = Set {
        labels: BTreeMap::new(),
        max_unavailable: Ok(MaxUnavailable::Pods(rules.most)),
        is_paused: rules.paused == Some(zone),
        claim: None,
        is_deleting: is_last && rules.is_deleting,
        strategy: if is_last { rules.strategy } else { "OnDelete" }.to_owned(),
        replicas: Some(2),
        start: 0,
        min_ready: Duration::ZERO,
        service: String::new(),
        pod_name_label: None,
        scaling: Scaling {
            last_downscale: Written::Missing,
            ..Scaling::default()
        },
        // The status of the StatefulSet knows nothing: the worst case.
        status: Status {
            observed_generation: 1 - if is_last { rules.lag } else { 0 },
            replicas: 2,
            ready: 2,
            current_revision: "old".to_owned(),
            update_revision: "new".to_owned(),
        },
    };
    Item::new(meta(&name), body)
}

fn world(sets: &[Item<Set>]) -> World {
    World {
        cluster: ClusterId::local(),
        namespace: "mimir".to_owned(),
        group: "g".to_owned(),
        zones: sets
            .iter()
            .map(|set| Zone {
                set: set.clone(),
                pods: Vec::new(),
            })
            .collect(),
        neighbours: Vec::new(),
        budgets: Vec::new(),
        blind: None,
        tracker: Tracker::default(),
        locks: Vec::new(),
        downscales: BTreeMap::new(),
        announced: Some(BTreeMap::new()),
        is_alone: false,
        status_map: None,
        answers: Answers::default(),
        refusals: BTreeMap::new(),
        holds: BTreeMap::new(),
        basis: BTreeMap::new(),
    }
}

/// How many pods of a zone are down. Written anew here, as the oracle; Z6: a terminating pod is down.
fn down(zone: &[Cell]) -> i64 {
    let down = zone.iter().filter(|(state, _)| *state != State::Ready);
    i64::try_from(down.count()).unwrap()
}

/// Which worlds were looked at.
#[derive(Debug, Default, PartialEq)]
struct Looked {
    worlds: u64,
    /// In how many of them something is deleted.
    acted: u64,
    /// Of each pod, a bit for each state and revision that it was in.
    taken: [[u16; PODS]; ZONES],
}

impl Looked {
    fn note(&mut self, cells: &[[Cell; PODS]; ZONES]) {
        self.worlds += 1;
        let taken = self.taken.iter_mut().flatten();
        for (taken, (state, is_outdated)) in taken.zip(cells.iter().flatten()) {
            *taken |= 1 << (*state as usize * 2 + usize::from(*is_outdated));
        }
    }

    /// States that some pod was never in.
    fn missing(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (zone, pods) in self.taken.iter().enumerate() {
            for (pod, taken) in pods.iter().enumerate() {
                for state in STATES {
                    for is_outdated in [false, true] {
                        let bit = 1 << (state as usize * 2 + usize::from(is_outdated));
                        if taken & bit == 0 {
                            let age = if is_outdated { "outdated" } else { "new" };
                            all.push(format!("zone-{zone}-{pod} is never {state:?} and {age}"));
                        }
                    }
                }
            }
        }
        all
    }

    /// All worlds were looked at, or in a build for debugging as many as there is time for; every pod took every state.
    fn is_whole(&self) {
        assert_eq!(self.missing(), [""; 0]);
        assert_eq!(self.worlds, WORLDS.div_ceil(u64::try_from(step()).unwrap()));
    }
}

/// Worlds under these rules, in steps.
fn look(rules: Rules, step: usize) -> Looked {
    let now: Timestamp = noon();
    let parts = Box3::new();
    let sets: Vec<Item<Set>> = (0..ZONES).map(|zone| set(zone, rules)).collect();
    let mut world = world(&sets);
    let mut looked = Looked::default();
    for number in (0..WORLDS).step_by(step) {
        let cells = cells(number);
        for (place, zone) in world.zones.iter_mut().enumerate() {
            zone.pods.clear();
            for (ordinal, cell) in cells[place].iter().enumerate() {
                if cell.0 != State::Missing {
                    zone.pods.push(parts.pod(place, ordinal, *cell));
                }
            }
        }
        looked.note(&cells);
        looked.acted += u64::from(check(&world, &cells, rules, now));
    }
    looked
}

fn check(world: &World, cells: &[[Cell; PODS]; ZONES], rules: Rules, now: Timestamp) -> bool {
    let surveys: Vec<Survey<'_>> = world.surveys(now);
    let rollout = decide(world, &surveys, now);
    let seen = || format!("{cells:?} {rules:?}");
    let Some(first) = rollout.victims.first() else {
        // Whoever waits says why, unless there is nothing to do.
        let is_idle = cells
            .iter()
            .flatten()
            .all(|(state, old)| *state == State::Ready && !old);
        let is_told = !rollout.blockers.is_empty() || !rollout.settled.is_empty();
        assert!(is_told || is_idle, "no word about {}", seen());
        return false;
    };
    let fit = rules.strategy == "OnDelete" && rules.lag == 0 && !rules.is_deleting;
    assert!(fit, "Z4: {}", seen());
    assert_ne!(rules.paused, Some(first.zone), "Z12: {}", seen());
    for (place, zone) in cells.iter().enumerate() {
        assert!(place == first.zone || down(zone) == 0, "Z1: {}", seen());
    }
    let mut after = cells[first.zone];
    for victim in &rollout.victims {
        assert_eq!(victim.zone, first.zone, "Z1, Z7: {}", seen());
        let cell = &mut after[usize::try_from(victim.member.ordinal).unwrap()];
        assert!(cell.1, "Z5: {}", seen());
        assert!(
            !matches!(cell.0, State::Terminating | State::Missing),
            "Z6: {}",
            seen()
        );
        cell.0 = State::Terminating;
    }
    let before = down(&cells[first.zone]);
    let most = rules.most.max(before);
    assert!(down(&after) <= most, "Z2: {}", seen());
    true
}

fn step() -> usize {
    if cfg!(debug_assertions) { 97 } else { 1 }
}

#[test]
fn every_world_with_a_budget_of_one() {
    let looked = look(PLAIN, step());
    looked.is_whole();
    assert!(looked.acted > 0);
}

#[test]
fn every_world_with_a_budget_of_two() {
    let looked = look(Rules { most: 2, ..PLAIN }, step());
    looked.is_whole();
    assert!(looked.acted > 0);
}

fn every_world_while_a_zone_is_paused(paused: usize) {
    let rules = Rules {
        paused: Some(paused),
        ..PLAIN
    };
    let looked = look(rules, step());
    looked.is_whole();
    assert!(looked.acted > 0);
}

// One test each, so that they run beside each other.
#[test]
fn every_world_with_a_paused_zone() {
    every_world_while_a_zone_is_paused(0);
}

#[test]
fn every_world_with_the_second_zone_paused() {
    every_world_while_a_zone_is_paused(1);
}

#[test]
fn every_world_with_the_last_zone_paused() {
    every_world_while_a_zone_is_paused(2);
}

/// Z4.
#[test]
fn every_world_with_a_zone_that_is_not_fit() {
    for rules in [
        Rules {
            strategy: "RollingUpdate",
            ..PLAIN
        },
        Rules { lag: 1, ..PLAIN },
        Rules {
            is_deleting: true,
            ..PLAIN
        },
    ] {
        let looked = look(rules, step());
        looked.is_whole();
        assert_eq!(looked.acted, 0, "{rules:?}");
    }
}

/// Every fifth world is a way to go through them that leaves the first pod as it was: numbers of worlds are read in base ten.
#[test]
fn a_stride_that_leaves_a_pod_in_one_state_is_seen() {
    let rules = Rules {
        paused: Some(2),
        ..PLAIN
    };
    let missing = look(rules, 5).missing();
    assert_eq!(missing.len(), 8, "{missing:?}");
    assert!(
        missing
            .iter()
            .all(|text| text.starts_with("zone-0-0 is never"))
    );
    assert!(missing.contains(&"zone-0-0 is never Terminating and outdated".to_owned()));
    assert_eq!(look(rules, 97).missing(), [""; 0]);
}

/// The whole planner says what the decision says, once the zone is claimed.
#[test]
fn the_plan_is_the_decision() {
    let now = noon();
    let parts = Box3::new();
    let sets: Vec<Item<Set>> = (0..ZONES).map(|zone| set(zone, PLAIN)).collect();
    let mut world = world(&sets);
    let claim = serde_json::json!({"holder": "zones", "until": "2026-03-04T13:00:00Z"}).to_string();
    for number in (0..WORLDS).step_by(997) {
        let cells = cells(number);
        for (place, zone) in world.zones.iter_mut().enumerate() {
            zone.set = sets[place].clone();
            let pods = cells[place].iter().enumerate();
            zone.pods = pods
                .filter(|(_, cell)| cell.0 != State::Missing)
                .map(|(ordinal, cell)| parts.pod(place, ordinal, *cell))
                .collect();
        }
        let surveys: Vec<Survey<'_>> = world.surveys(now);
        let rollout = decide(&world, &surveys, now);
        let victims = rollout.victims.iter();
        let names: Vec<String> = victims.map(|v| v.member.pod.meta().name.clone()).collect();
        let turn = rollout.victims.first().map(|v| v.zone);
        assert!(deleted(&plan::plan(&Settings::default(), &world, now)).is_empty());
        if let Some(turn) = turn {
            let mut body = sets[turn].body().clone();
            body.claim = Some(claim.clone());
            world.zones[turn].set = Item::new(sets[turn].meta().clone(), body);
        }
        assert_eq!(
            deleted(&plan::plan(&Settings::default(), &world, now)),
            names
        );
    }
}
