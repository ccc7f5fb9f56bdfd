//! Who acts, and when another one does.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::status::Status;

use crate::contact::Lines;
use crate::stage::{Stage, committed, one_of_many, secs, virtually};
use crate::toy::Toy;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/slipway-system/leases/toy";

#[test]
fn one_acts_the_other_plans_and_takes_over_in_time_l4() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        stage.map("idle", json!({"x": "y"})).await;
        let a = stage.start(one_of_many("a"), Toy::default());
        stage.until_have("a", "1", 5).await;
        let b = stage.start(one_of_many("b"), Toy::default());
        secs(60).await;
        assert!(a.view.is_leader("toy"));
        assert!(!b.view.is_leader("toy"));
        assert!(b.view.is_ready(), "a follower is ready");
        assert!(!b.view.blockers().is_empty(), "a follower plans");
        assert_eq!(stage.get(LEASE).await["spec"]["holderIdentity"], "a");
        drop(a);
        stage.want("a", "2").await;
        let took = stage.until_have("a", "2", 60).await;
        // Lease duration, a poll, request timeout, skew, one plan.
        assert!(
            took <= Duration::from_millis(15_000 + 2_000 + 12_000 + 500),
            "{took:?}"
        );
        assert!(
            took >= Duration::from_secs(25),
            "the old one is waited out: {took:?}"
        );
        assert!(b.view.is_leader("toy"));
        assert!(
            stage
                .writes()
                .last()
                .unwrap()
                .context
                .contains("replica=b;epoch=2")
        );
    });
}

#[test]
fn a_standby_says_who_leads_and_says_so_again_when_that_changes() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let told = || {
        let all = lines.0.lock().unwrap();
        let told = all
            .iter()
            .filter(|line| line.contains("another replica leads"));
        told.cloned().collect::<Vec<String>>()
    };
    virtually(async {
        let stage = Stage::new().await;
        let a = stage.start(one_of_many("a"), Toy::default());
        secs(5).await;
        let b = stage.start(one_of_many("b"), Toy::default());
        secs(600).await;
        assert_eq!(told().len(), 1, "{:#?}", told());
        assert!(told()[0].starts_with("INFO") && told()[0].contains("holder=\"a\""));
        a.stop().await;
        secs(5).await;
        assert!(b.view.is_leader("toy"));
        let _c = stage.start(one_of_many("c"), Toy::default());
        secs(600).await;
        assert_eq!(told().len(), 2, "{:#?}", told());
        assert!(told()[1].contains("holder=\"b\""), "{:#?}", told());
    });
}

#[test]
fn a_released_lease_is_taken_without_waiting_after_a_new_list() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let a = stage.start(one_of_many("a"), Toy::default());
        let b = stage.start(one_of_many("b"), Toy::default());
        stage.until_have("a", "1", 5).await;
        secs(10).await;
        let before = stage.cluster.trace().len();
        a.stop().await;
        stage.want("a", "2").await;
        let took = stage.until_have("a", "2", 60).await;
        assert!(took < Duration::from_secs(3), "{took:?}");
        let since = stage.records(|r| r.agent == "b" && r.index >= before);
        let list = since.iter().position(|r| r.verb == "list").unwrap();
        let patch = since.iter().position(|r| r.verb == "patch").unwrap();
        assert!(list < patch, "listed before the first write");
        drop(b);
    });
}

#[test]
fn failing_renewals_end_the_leadership_before_anybody_else_can_take_it_l2() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let a = stage.start(one_of_many("a"), Toy::default());
        stage.until_have("a", "1", 5).await;
        let b = stage.start(one_of_many("b"), Toy::default());
        secs(5).await;
        let about = Match {
            agent: "a".to_owned(),
            verb: "update".to_owned(),
            ..Match::default()
        };
        let busy = Status::failure(429, "TooManyRequests", "later").retry_after(1);
        stage
            .cluster
            .faults()
            .add(about, Frequency::always(), Fault::Refuse(Box::new(busy)));
        let mut both = 0;
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            both += u32::from(a.view.is_leader("toy") && b.view.is_leader("toy"));
        }
        assert_eq!(both, 0, "never during this time");
        assert!(b.view.is_leader("toy"));
        stage.want("a", "2").await;
        stage.until_have("a", "2", 5).await;
        assert!(stage.writes().last().unwrap().context.contains("replica=b"));
    });
}

/// What a server asks for cannot cost a leader its lease, nor keep everybody from it.
#[test]
fn a_long_retry_after_on_the_lease_neither_ends_a_leadership_nor_puts_it_off() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let busy = || {
            let status = Status::failure(429, "TooManyRequests", "later");
            Fault::Refuse(Box::new(status.retry_after(u32::MAX)))
        };
        let leases = |verb: &str| Match {
            verb: verb.to_owned(),
            resource: "coordination.k8s.io/leases".to_owned(),
            ..Match::default()
        };
        let faults = stage.cluster.faults();
        faults.add(leases("get"), Frequency::once(), busy());
        let a = stage.start(one_of_many("a"), Toy::default());
        stage.until_have("a", "1", 20).await;
        let faults = stage.cluster.faults();
        faults.add(leases("update"), Frequency::once(), busy());
        for _ in 0..60 {
            secs(1).await;
            assert!(a.view.is_leader("toy"));
        }
    });
}

/// L-3.
#[test]
fn a_lease_that_is_deleted_edited_or_moved_by_hand_does_no_harm() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "0"})).await;
        let _a = stage.start(one_of_many("a"), Toy::default());
        stage.until_have("a", "0", 5).await;
        // An edit beside the point costs nothing.
        stage
            .send("PATCH", LEASE, &json!({"metadata": {"labels": {"x": "y"}}}))
            .await;
        secs(5).await;
        stage.want("a", "1").await;
        stage.until_have("a", "1", 2).await;
        // Deleted: the leader writes it anew with its next renewal, unless somebody else was faster.
        stage.send("DELETE", LEASE, &Value::Null).await;
        secs(3).await;
        stage.want("a", "2").await;
        stage.until_have("a", "2", 2).await;
        assert_eq!(stage.get(LEASE).await["spec"]["holderIdentity"], "a");
        // Given to somebody who does not exist: taken over when it expires.
        stage
            .send(
                "PATCH",
                LEASE,
                &json!({"spec": {"holderIdentity": "ghost", "leaseTransitions": 3}}),
            )
            .await;
        secs(3).await;
        stage.want("a", "3").await;
        secs(10).await;
        assert_eq!(stage.have("a").await, "2", "the leader stepped down");
        stage.until_have("a", "3", 60).await;
        // Nonsense in it.
        stage.send("PATCH", LEASE, &json!({"spec": null})).await;
        stage.want("a", "4").await;
        stage.until_have("a", "4", 60).await;
    });
}

#[test]
fn a_renewal_whose_answer_is_lost_is_no_lost_leadership() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "0"})).await;
        let a = stage.start(one_of_many("a"), Toy::default());
        stage.until_have("a", "0", 5).await;
        let about = Match {
            agent: "a".to_owned(),
            verb: "update".to_owned(),
            ..Match::default()
        };
        stage
            .cluster
            .faults()
            .add(about, Frequency::seeded(300, 5), Fault::Lose);
        for _ in 0..600 {
            secs(1).await;
            assert!(a.view.is_leader("toy"));
        }
        let epoch = stage.get(LEASE).await["spec"]["leaseTransitions"]
            .as_i64()
            .unwrap();
        assert_eq!(epoch, 1);
    });
}

/// L-4: three replicas, one after the other is replaced, under load.
#[test]
fn rolling_replacement_loses_nothing_and_never_has_two_writers_g6() {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..20 {
            stage.map(&format!("m{n:02}"), json!({"want": "0"})).await;
        }
        let mut replicas = Vec::new();
        for name in ["r0", "r1", "r2"] {
            replicas.push(stage.start(one_of_many(name), Toy::default()));
        }
        for round in 1..8_u32 {
            secs(10).await;
            for n in 0..20 {
                stage.want(&format!("m{n:02}"), &round.to_string()).await;
            }
            let old = replicas.remove(0);
            if round % 2 == 0 {
                drop(old);
            } else {
                old.stop().await;
            }
            replicas.push(stage.start(one_of_many(&format!("n{round}")), Toy::default()));
        }
        secs(60).await;
        for n in 0..20 {
            assert_eq!(stage.have(&format!("m{n:02}")).await, "7");
        }
        crate::fencing::assert_epochs_never_go_back(&stage);
        assert!(
            stage.writes().iter().all(committed),
            "no conflicts: {:#?}",
            stage.writes().iter().filter(|w| !committed(w)).count()
        );
    });
}

#[test]
fn a_clock_that_is_wrong_by_a_day_changes_nothing_t5() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let environment = slipway_runtime::Environment::virtual_from(crate::stage::epoch(), 7);
        let skewed = environment.skewed(jiff::SignedDuration::from_hours(-24));
        let operator = slipway_runtime::Operator::new(skewed, stage.client("a"), one_of_many("a"));
        let a = crate::stage::Replica::run(operator.with(std::sync::Arc::new(Toy::default())));
        let b = stage.start(one_of_many("b"), Toy::default());
        stage.until_have("a", "1", 5).await;
        for _ in 0..120 {
            secs(1).await;
            assert!(a.view.is_leader("toy") != b.view.is_leader("toy"));
        }
    });
}
