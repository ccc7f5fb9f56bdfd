//! What must be true of every history of the convoy. Read from the history alone.

mod apart;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use slipway_kernel::ClusterId;
use slipway_sim::history::{Change, Ending, History, Image, Object, Request};
use slipway_sim::oracles::{Case, Findings, Fleeting, Oracle, Specifics, workload};

use super::{DONE, FLAVOUR, LEASE, NAME, PLACE, PREFIX, RECORD, SAIL, TURN, UID};

pub(super) static SPECIFICS: Specifics = Specifics {
    name: NAME,
    lease: LEASE,
    oracles: ORACLES,
    maps: &[PREFIX],
    copies: &[],
    fleeting: Fleeting {
        annotations: &[UID],
        ..Fleeting::NONE
    },
    statuses: &[],
    orders: &["configmaps"],
    superseded: &[],
    follows: |_, _| false,
    is_unconditional: |_| false,
    has_secret: |_| false,
    may_change: |_, change, request| {
        !request.is_home() && &*change.object.0 == "apps/deployments" && &*change.object.2 == "app"
    },
    harmless: &[],
    nothing_left: |_, _| {},
};

const ORACLES: &[Oracle] = &[
    Oracle {
        id: "C1",
        what: "no more members are under way than the order allows",
        check: budget,
    },
    Oracle {
        id: "C2",
        what: "what is written into a member is its own flavour, and the image of its own turn",
        check: own,
    },
    Oracle {
        id: "C3",
        what: "a member with a problem delays no other",
        check: apart::apart,
    },
    Oracle {
        id: "C4",
        what: "nothing is changed in a member where somebody holds it, or may",
        check: holds,
    },
    Oracle {
        id: "C5",
        what: "the uid that is recorded for a member is its own",
        check: recorded,
    },
];

/// A new leader knows what has been there for so long, and has fenced off the former one so long after it took over.
const HELD: SignedDuration = SignedDuration::from_secs(25);
const FENCED: SignedDuration = SignedDuration::from_secs(10);

/// That a kind is not defined is believed when discovery has said so again and again for so long.
const BELIEVED: SignedDuration = SignedDuration::from_secs(20);

fn named(name: &str) -> Object {
    ("/configmaps".into(), PLACE.into(), name.into())
}

fn app() -> Object {
    ("apps/deployments".into(), PLACE.into(), "app".into())
}

/// A member as the operator means it, whichever cluster was there.
fn meant(cluster: &ClusterId) -> &str {
    let name = cluster.as_str();
    name.split_once('~').map_or(name, |(name, _)| name)
}

fn image(deployment: &Image) -> Option<&str> {
    deployment.text("/spec/template/spec/containers/0/image")
}

/// Changes of members' Deployments by the operator, in the order of its requests.
fn sails(history: &History) -> Vec<(&ClusterId, &Change, &Request)> {
    let members = history.members.keys();
    let mut all: Vec<_> = members
        .flat_map(|member| {
            let deeds = history.deeds_in(member);
            let sails = deeds.filter(|(_, request)| request.is_for(SAIL));
            sails.map(move |(change, request)| (member, change, request))
        })
        .collect();
    all.sort_by_key(|(_, _, request)| request.number);
    all
}

/// How many members the order allows, as of a version at home.
fn most(history: &History, version: u64) -> usize {
    let order = history.state(&named("convoy-order"), version);
    let most = order.and_then(|order| order.text("/data/most")?.parse().ok());
    most.unwrap_or(0)
}

/// Members' maps at home whose turn is not done, as of a version.
fn under_way(history: &History, version: u64) -> usize {
    let maps = history.states("/configmaps", version);
    let maps = maps
        .iter()
        .filter(|(object, _)| object.2.starts_with(PREFIX));
    maps.filter(|(_, map)| is_under_way(map)).count()
}

/// Whether a member has its turn, by its map, and is not done.
fn is_under_way(map: &Image) -> bool {
    let turn = map.annotation(TURN);
    turn.is_some() && turn != map.annotation(DONE)
}

/// Whether a member's Deployment was rolled out between two moments.
fn is_done(changes: &[Change], from: Timestamp, to: Timestamp) -> bool {
    let app = app();
    let later = changes
        .iter()
        .filter(|c| c.object == app && c.at > from && c.at <= to);
    later
        .filter_map(|change| change.after.as_deref())
        .any(|after| workload::is_complete(&app, after))
}

/// An annotation before and after a change.
fn marks<'a>(change: &'a Change, name: &str) -> (Option<&'a str>, Option<&'a str>) {
    let before = change.before.as_ref();
    let after = change.after.as_ref();
    let mark = |image: &'a Arc<Image>| image.annotation(name);
    (before.and_then(mark), after.and_then(mark))
}

/// C1: by what is written down at home, and by what is the case.
fn budget(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, request) in history.deeds().filter(|(_, r)| r.is_for(RECORD)) {
        let is_under_way = |map: &Option<Arc<Image>>| map.as_deref().is_some_and(is_under_way);
        if is_under_way(&change.before) || !is_under_way(&change.after) {
            continue;
        }
        let allowed = most(history, change.version).max(most(history, request.versions.0));
        let count = under_way(history, change.version);
        findings.check(change.at, count <= allowed, || {
            format!("{count} members have a turn, and {allowed} may")
        });
    }
    let mut begun: BTreeMap<&str, (&ClusterId, Timestamp)> = BTreeMap::new();
    for (member, change, _) in sails(history) {
        begun.insert(meant(member), (member, change.at));
        let rolling = begun.values().filter(|(member, since)| {
            let changes = history.changes_in(member);
            !is_done(changes, *since, change.at)
        });
        let count = rolling.count();
        let orders = history.changes.iter().filter(|c| c.at <= change.at);
        let allowed = orders.map(|c| most(history, c.version)).max();
        let allowed = allowed.unwrap_or_default();
        findings.check(change.at, count <= allowed, || {
            format!("{count} members are rolling, and {allowed} may")
        });
    }
    findings
}

/// Whether an object ever had this value until then.
fn ever(
    changes: &[Change],
    object: &Object,
    until: Timestamp,
    is: impl Fn(&Image) -> bool,
) -> bool {
    let mut of = changes
        .iter()
        .filter(|c| c.object == *object && c.at <= until);
    of.any(|change| change.after.as_deref().is_some_and(&is))
}

/// C2.
fn own(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let local = named("convoy-local");
    for (member, change, _) in sails(history) {
        let Some(after) = change.after.as_deref() else {
            continue;
        };
        let flavour = after.annotation(FLAVOUR).unwrap_or_default();
        let is_own = ever(history.changes_in(member), &local, change.at, |map| {
            map.text("/data/flavour") == Some(flavour)
        });
        findings.check(change.at, is_own, || {
            format!("{member} got the flavour {flavour:?}, which was never its own")
        });
        let map = named(&format!("{PREFIX}{}", meant(member)));
        let wanted = image(after);
        let has_turn = ever(&history.changes, &map, change.at, |map| {
            map.annotation(TURN) == wanted
        });
        findings.check(change.at, has_turn, || {
            format!("{member} got {wanted:?}, and never had the turn for it")
        });
    }
    findings
}

/// C4.
fn holds(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (member, change, request) in sails(history) {
        let name = meant(member);
        let lacks = case.scenario.clusters.iter().any(|cluster| {
            let may_not_see = cluster.lacks.iter().any(|what| what == "flippers");
            cluster.name == name && may_not_see && cluster.definitions
        });
        findings.check(change.at, !lacks, || {
            format!("{member} was changed, and who holds it there cannot be seen")
        });
        // As of what the decision was made on. What is in no list any more has no version.
        let changes = history.changes_in(member);
        let seen = request.context.basis.get("flippers").copied();
        let seen = seen.unwrap_or(request.versions.0);
        let is_held = |version: u64| {
            let known = changes.iter().take_while(|c| c.version <= version);
            held(known).is_some()
        };
        let is_known = is_held(seen)
            && listed(history, request).is_none_or(is_held)
            && !is_denied(history, request);
        findings.check(change.at, !is_known, || {
            format!("{member} was changed, and somebody holds it there")
        });
        // Whoever leads now knows better, and has fenced off who decided it.
        let there = changes.iter().take_while(|c| c.version < change.version);
        let is_old = held(there).is_some_and(|since| change.at.duration_since(since) > HELD);
        findings.check(
            change.at,
            !(is_old && is_late(history, change, request)),
            || {
                format!(
                    "{member} was changed by a former leader, and somebody has held it for long"
                )
            },
        );
    }
    findings
}

/// What the replica of this request was answered before it by the cluster that it went to.
fn answered<'a>(
    history: &'a History,
    request: &'a Request,
) -> impl DoubleEndedIterator<Item = (&'a Request, u16)> {
    let all = history.requests.iter().filter(move |one| {
        let is_earlier = one.number < request.number;
        is_earlier && one.cluster == request.cluster && one.replica == request.replica
    });
    all.filter_map(|one| match one.ending {
        Ending::Answered(code) => Some((one, code)),
        _ => None,
    })
}

/// As of when a replica was last told, before a request of it, which Flippers there are in the cluster that it went to.
fn listed(history: &History, request: &Request) -> Option<u64> {
    let is_list = |(one, code): &(&Request, u16)| {
        let is_asked = one.uri.contains("/flippers?") && !one.uri.contains("watch=true");
        one.method == "GET" && is_asked && !one.is_probe() && *code == 200
    };
    let lists = answered(history, request).filter(is_list);
    lists.map(|(one, _)| one.versions.0).max()
}

/// Whether the cluster has said for so long that it knows no Flippers, and nothing else, that it is believed.
fn is_denied(history: &History, request: &Request) -> bool {
    let is_asked =
        |(one, _): &(&Request, u16)| one.path().ends_with("/flipper.io.github.com/v1alpha1");
    let latest = answered(history, request).rev().filter(is_asked);
    let since = latest.take_while(|(_, code)| *code == 404).last();
    since.is_some_and(|(one, _)| request.at.duration_since(one.at) >= BELIEVED)
}

/// Since when somebody holds a member, after these changes; none if nobody does.
fn held<'a>(changes: impl Iterator<Item = &'a Change>) -> Option<Timestamp> {
    let mut since: BTreeMap<&Object, Timestamp> = BTreeMap::new();
    for change in changes.filter(|c| c.object.0.ends_with("/flippers")) {
        if change.after.is_some() {
            since.entry(&change.object).or_insert(change.at);
        } else {
            since.remove(&change.object);
        }
    }
    since.into_values().min()
}

/// Whether a change was carried out when another replica had been leading for long: only where the cluster could be fenced.
fn is_late(history: &History, change: &Change, request: &Request) -> bool {
    let name = Some(meant(&request.cluster));
    let mut spells = history.all_spells();
    let is_well = spells.all(|(_, spell)| spell.cluster.as_deref() != name);
    let fenced = change.at.checked_sub(FENCED).unwrap_or(Timestamp::MIN);
    let mut others = history.requests.iter().filter(|other| {
        other.is_home() && other.path().contains("/leases") && other.replica != request.replica
    });
    let is_taken = |other: &Request| {
        other.is_write() && other.is_committed() && other.at > request.at && other.at < fenced
    };
    is_well && others.any(is_taken)
}

/// C5.
fn recorded(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, _) in history.deeds().filter(|(_, r)| r.is_for(RECORD)) {
        let (before, after) = marks(change, UID);
        if after.is_none() || after == before {
            continue;
        }
        let name = change.object.2.strip_prefix(PREFIX).unwrap_or_default();
        let mut own = history.members.iter().filter(|(id, _)| meant(id) == name);
        let is_own = own.any(|(_, course)| course.uid() == after);
        findings.check(change.at, is_own, || {
            format!("{name} was recorded as {after:?}, which it never was")
        });
    }
    findings
}
