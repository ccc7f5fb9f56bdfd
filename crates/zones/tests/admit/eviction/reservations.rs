//! What has been let go counts, for all replicas.

use slipway_api::zones;
use slipway_kernel::admission::{Admission, Admit};
use slipway_kernel::fact::{Answer, Missing, Right};
use slipway_kernel::identity::kinds;
use slipway_kernel::{Action, ClusterId};
use slipway_zones::Replicas;

use super::*;

/// T5 and T6: what has been let go counts at once, in its own zone and in others.
#[test]
fn a_pod_that_was_let_go_counts_before_anybody_sees_it_go() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let mut api = Api::default();
    let stores = world.stores();
    let mut ask = |letter: &str, ordinal: i64| {
        serve(
            &PodEviction::default(),
            &review(letter, ordinal),
            &stores,
            &Facts::default(),
            &mut api,
        )
    };
    assert!(ask("a", 0).is_allowed());
    assert_eq!(
        ask("a", 1).denial(),
        (Some(429), "1 pod not ready in ingester-zone-a")
    );
    assert_eq!(
        ask("b", 0).denial(),
        (Some(429), "1 pod not ready in ingester-zone-a")
    );
    // The same pod again is no second one.
    assert!(ask("a", 0).is_allowed());
}

/// D10, and W5.
#[test]
fn d10_a_dry_run_asks_nothing_and_consumes_nothing() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let dry = Review {
        is_dry_run: true,
        ..review("a", 0)
    };
    let served = serve(
        &PodEviction::default(),
        &dry,
        &world.stores(),
        &Facts::default(),
        &mut Nobody,
    );
    assert_eq!(served.verdict, Verdict::allowed());
    assert_eq!(served.remarks.hold, None);
    assert!(served.actions.is_empty());
    allowed(&world, "b", 0);
}

/// W7: of two replicas that look at the same moment, one finds the map changed and looks again.
#[test]
fn w7_two_replicas_let_one_pod_go() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let stores = world.stores();
    let mut api = Api::default();
    let (first, second) = (
        review("a", 0),
        Review {
            uid: "other".to_owned(),
            ..review("b", 0)
        },
    );
    let mut facts = [Facts::default(), Facts::default()];
    let mut verdicts = [None, None];
    while verdicts.contains(&None) {
        for (index, review) in [&first, &second].into_iter().enumerate() {
            if verdicts[index].is_some() {
                continue;
            }
            match PodEviction::default()
                .judge(review, &stores, &facts[index], now())
                .0
            {
                Admission::Decide(verdict, _) => verdicts[index] = Some(verdict),
                Admission::Read(collections) => read(&mut facts[index], collections, &mut api),
                Admission::Need(needs) => {
                    for need in needs {
                        let Action::Ask(question) = need else {
                            panic!()
                        };
                        let answer = api.answer(&question);
                        facts[index].answers.insert(question.id, (now(), answer));
                    }
                }
            }
        }
    }
    let [one, two] = verdicts;
    assert_eq!(one, Some(Verdict::allowed()));
    assert_eq!(
        two,
        Some(Verdict::refused(429, "1 pod not ready in ingester-zone-a"))
    );
}

#[test]
fn where_maps_are_forbidden_one_replica_remembers_by_itself() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let mut api = Api::default();
    for method in ["GET", "POST", "PUT"] {
        api.fix(
            method,
            "configmaps",
            Answer::NoRight("forbidden".to_owned()),
        );
    }
    let stores = world.stores();
    for (replicas, facts) in [
        (Replicas::One, Facts::default()),
        (Replicas::OneWithoutLease, without_lease()),
    ] {
        remembers(PodEviction { replicas }, &stores, facts, &mut api);
    }
}

fn without_lease() -> Facts {
    let lead = Right::Lead(zones::LEASE.to_owned());
    let mut facts = Facts::default();
    facts
        .missing
        .insert(Missing::new(&ClusterId::local(), &kinds::LEASE, lead));
    facts
}

/// In place of the original it serves before it is known whether there is a Lease by which replicas agree. Where there is,
/// there may be another one.
#[test]
fn where_maps_are_forbidden_the_drop_in_lets_nobody_go_before_it_knows_that_it_is_alone() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let mut api = Api::default();
    let none = Answer::NoRight("forbidden".to_owned());
    api.fix("GET", "configmaps", none);
    let replicas = Replicas::OneWithoutLease;
    let served = serve(
        &PodEviction { replicas },
        &review("a", 0),
        &world.stores(),
        &Facts::default(),
        &mut api,
    );
    let (code, text) = served.denial();
    assert_eq!(code, Some(429), "kubectl drain asks again");
    assert!(text.contains("other replicas would not know"), "{text}");
}

fn remembers(hook: PodEviction, stores: &Stores, mut facts: Facts, api: &mut Api) {
    let served = serve(&hook, &review("a", 0), stores, &facts, api);
    let hold = served.remarks.hold.clone().unwrap();
    assert!(served.is_allowed());
    facts.evictions_allowed_here.insert(hold.uid, hold.until);
    let served = serve(&hook, &review("b", 0), stores, &facts, api);
    assert_eq!(
        served.denial(),
        (Some(429), "1 pod not ready in ingester-zone-a")
    );
}

/// What one replica remembers by itself another one does not know.
#[test]
fn where_maps_are_forbidden_none_of_several_replicas_lets_a_pod_go() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    for forbidden in [&["GET", "POST", "PUT"][..], &["POST"]] {
        let mut api = Api::default();
        for method in forbidden {
            let none = Answer::NoRight("forbidden".to_owned());
            api.fix(method, "configmaps", none);
        }
        let served = ask_at(&world, &review("a", 0), &mut api);
        let (code, text) = served.denial();
        assert_eq!(code, Some(500));
        assert!(
            text.starts_with("the eviction could not be recorded: "),
            "{text}"
        );
        assert_eq!(served.remarks.hold, None);
    }
}

/// What the API says when a quota is used up; a missing right has the same code.
fn exceeded() -> Answer {
    let message = "configmaps \"slipway-zpdb-ingester\" is forbidden: exceeded quota: objects, requested: configmaps=1, used: configmaps=9, limited: configmaps=9";
    let details = json!({"name": "slipway-zpdb-ingester", "kind": "configmaps"});
    said(
        403,
        &json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message, "details": details}),
    )
}

/// The only replica, which could remember by itself, does not take a quota or an accident for a missing right either.
#[test]
fn what_cannot_be_recorded_is_not_allowed() {
    let world = guarded(&json!({}));
    for replicas in [Replicas::Several, Replicas::One] {
        for (method, answer) in [
            ("GET", exceeded()),
            ("POST", exceeded()),
            ("GET", said(500, &json!({"message": "boom"}))),
            ("GET", Answer::timeout()),
            ("POST", Answer::unreachable("no")),
        ] {
            let mut api = Api::default();
            api.fix(method, "configmaps", answer);
            let served = serve(
                &PodEviction { replicas },
                &review("a", 0),
                &world.stores(),
                &Facts::default(),
                &mut api,
            );
            assert_eq!(served.denial().0, Some(500));
            assert_eq!(pair(&served), "sts-pod-status-not-determined/500");
        }
    }
    let expiry =
        PodEviction::default().expire(&review("a", 0), &world.stores(), &Facts::default(), now());
    assert!(matches!(
        expiry.verdict,
        Verdict::Denied {
            code: Some(500),
            ..
        }
    ));
}

/// What was let go counts until a read that began after its time has shown what became of it, and so does what this
/// replica is deleting: no clock alone ends either.
#[test]
fn what_was_let_go_or_is_being_deleted_counts_until_it_is_known_what_became_of_it() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let text = "1 pod not ready in ingester-zone-b";
    let ask = |facts: &Facts| {
        let (stores, mut api) = (world.stores(), Api::default());
        serve(
            &PodEviction::default(),
            &review("a", 0),
            &stores,
            facts,
            &mut api,
        )
    };
    let mut facts = Facts::default();
    let past = "2026-03-04T11:00:00Z".parse().unwrap();
    facts
        .evictions_allowed_here
        .insert("pod-b-0".to_owned(), past);
    assert_eq!(ask(&facts).denial(), (Some(429), text));
    facts.evictions_allowed_here.clear();
    let ahead = "2026-03-04T12:00:01Z".parse().unwrap();
    facts.deletions.insert("pod-b-0".to_owned(), ahead);
    assert_eq!(ask(&facts).denial(), (Some(429), text));
    facts.deletions.clear();
    assert!(ask(&facts).is_allowed());
}

/// An entry of another replica counts for as long as a review may have been read for before its end.
#[test]
fn an_entry_that_has_ended_during_the_review_counts() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let ask = |until: &str| {
        let mut api = Api::default();
        let name = "slipway-zpdb-budget-0";
        let data = json!({"pod-b-0": until});
        api.put(name, json!({"metadata": {"name": name}, "data": data}));
        ask_at(&world, &review("a", 0), &mut api).is_allowed()
    };
    assert!(!ask("2026-03-04T12:00:30Z"));
    assert!(!ask("2026-03-04T11:59:51Z"));
    assert!(ask("2026-03-04T11:59:50Z"));
}

#[test]
fn entries_end_after_a_minute_or_with_their_pod() {
    let mut world = guarded(&json!({}));
    let mut api = Api::default();
    let data =
        json!({"pod-a-0": "2026-03-04T11:59:50Z", "gone": "2026-03-04T13:00:00Z", "bad": "never"});
    api.put(
        "slipway-zpdb-budget-0",
        json!({"metadata": {"name": "slipway-zpdb-budget-0"}, "data": data}),
    );
    let served = serve(
        &PodEviction::default(),
        &review("b", 0),
        &world.stores(),
        &Facts::default(),
        &mut api,
    );
    assert!(served.is_allowed());
    // What is void is swept out with the next write.
    let data = &api.map("slipway-zpdb-budget-0")["data"];
    assert_eq!(
        *data,
        json!({"pod-b-0": "2026-03-04T12:01:00Z", "gone": "2026-03-04T13:00:00Z"})
    );
    // A new pod of the same name is another one.
    world.pod_mut("b", 0)["metadata"]["uid"] = json!("pod-b-0-anew");
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &world.stores(),
        &Facts::default(),
        &mut api,
    );
    assert!(served.is_allowed());
}

/// A pod that a rollout is about to delete is as good as gone, and the note outlives what the webhook writes.
#[test]
fn a_pod_that_a_rollout_deletes_counts_before_it_is_seen() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let ask = |noted: &str, evicted: &Value| {
        let mut api = Api::default();
        let pods = json!({"pod-b-1": noted}).to_string();
        let annotations = json!({"slipway.dev/rollout-pods": pods});
        let name = "slipway-zpdb-budget-0";
        let metadata = json!({"name": name, "annotations": annotations.clone()});
        api.put(name, json!({"metadata": metadata, "data": evicted}));
        let served = ask_at(&world, &review("a", 0), &mut api);
        assert_eq!(api.map(name)["metadata"]["annotations"], annotations);
        served
    };
    let (ahead, over) = ("2026-03-04T12:00:30Z", "2026-03-04T11:59:50Z");
    let text = "1 pod not ready in ingester-zone-b";
    assert_eq!(ask(ahead, &json!({})).denial(), (Some(429), text));
    assert!(ask(over, &json!({})).is_allowed(), "it is over");
    // An eviction of the same pod that was let through once and did not come about says nothing of the rollout.
    let stale = json!({"pod-b-1": "2026-03-04T11:00:00Z"});
    assert_eq!(ask(ahead, &stale).denial(), (Some(429), text));
    let fresh = json!({"pod-b-1": ahead});
    assert_eq!(ask(over, &fresh).denial(), (Some(429), text));
    assert!(ask(over, &stale).is_allowed());
}

/// What this replica knows of a pod does not shorten what others noted of it.
#[test]
fn of_what_is_known_here_and_what_is_noted_the_later_counts() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let name = "slipway-zpdb-budget-0";
    let ask = |here: &str, noted: &str| {
        let mut api = Api::default();
        let data = json!({"pod-b-0": noted});
        api.put(name, json!({"metadata": {"name": name}, "data": data}));
        let mut facts = Facts::default();
        let here = here.parse().unwrap();
        facts.deletions.insert("pod-b-0".to_owned(), here);
        let stores = world.stores();
        let hook = PodEviction::default();
        serve(&hook, &review("a", 0), &stores, &facts, &mut api).is_allowed()
    };
    let (ahead, over) = ("2026-03-04T12:00:30Z", "2026-03-04T11:59:50Z");
    assert!(!ask(over, ahead));
    assert!(!ask(ahead, over));
    assert!(ask(over, over));
}

/// The original's eviction cache: a pod that was let go and is seen to be down counts once; one that is gone counts as missing only.
#[test]
fn a_pod_that_was_let_go_and_is_down_counts_once() {
    let mut world = guarded(&json!({"maxUnavailable": 2}));
    let mut facts = Facts::default();
    let until = "2026-03-04T12:00:30Z".parse().unwrap();
    facts
        .evictions_allowed_here
        .insert("pod-a-1".to_owned(), until);
    let ask = |world: &World| {
        serve(
            &PodEviction::default(),
            &review("a", 0),
            &world.stores(),
            &facts,
            &mut Api::default(),
        )
    };
    assert!(ask(&world).is_allowed());
    world.fail("a", 1);
    assert!(ask(&world).is_allowed());
    world.pods.remove("ingester-zone-a-1");
    assert!(ask(&world).is_allowed());
    world.fail("a", 2);
    let served = ask(&world);
    let text = "1 pod not ready, 1 pod unknown in ingester-zone-a";
    assert_eq!(served.denial(), (Some(429), text));
}
