//! What is wanted of members is known only at run time: kinds, how closely they are looked at, and where plans may write.

use std::time::Duration;

use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_kernel::identity::{ClusterId, kinds};
use slipway_runtime::{Members, Quiet, Settings};

use super::herd::{Herd, NAME, gadget};
use super::stage::Fleet;
use super::{ALL, BAD, GOOD, defined, needing_widgets};
use crate::stage::{alone, secs, virtually};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(super) fn definition() -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.toy.dev"},
        "spec": {
            "group": "toy.dev", "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

#[test]
fn a_kind_that_an_object_names_is_watched_from_then_on_and_not_after() {
    virtually(async {
        let fleet = Fleet::new().await;
        let stage = &fleet.members[BAD];
        stage.create(DEFINITIONS, &definition()).await;
        secs(1).await;
        for name in ["a", "b"] {
            let gadget =
                json!({"apiVersion": "toy.dev/v1", "kind": "Gadget", "metadata": {"name": name}});
            stage
                .create("/apis/toy.dev/v1/namespaces/default/gadgets", &gadget)
                .await;
        }
        let replica = fleet.start(alone(), Herd::default());
        fleet.until_state(BAD, "Ready", 5).await;
        secs(30).await;
        let (tasks, watches) = (replica.view.tasks(), stage.cluster.watches());
        fleet.patch(BAD, json!({"data": {"sees": "gadgets"}})).await;
        secs(5).await;
        assert_eq!(stage.entry(NAME, "gadgets").await.as_deref(), Some("2"));
        assert_eq!(stage.cluster.watches(), watches + 1);
        let gadget_c =
            json!({"apiVersion": "toy.dev/v1", "kind": "Gadget", "metadata": {"name": "c"}});
        stage
            .create("/apis/toy.dev/v1/namespaces/default/gadgets", &gadget_c)
            .await;
        secs(1).await;
        assert_eq!(stage.entry(NAME, "gadgets").await.as_deref(), Some("3"));
        fleet.patch(BAD, json!({"data": {"sees": null}})).await;
        secs(5).await;
        assert_eq!(stage.entry(NAME, "gadgets").await.as_deref(), Some(""));
        assert_eq!(stage.cluster.watches(), watches);
        assert_eq!(replica.view.tasks(), tasks);
        let stores = replica.view.stores();
        let kind = gadget();
        assert_eq!(stores.of_kind(&ClusterId::remote(BAD), &kind).count(), 0);
    });
}

#[test]
fn what_a_cluster_serves_is_known_to_plans_and_kept_once() {
    virtually(async {
        let fleet = Fleet::new().await;
        let herd = Herd {
            discovers: true,
            ..Herd::default()
        };
        let stage = &fleet.members[BAD];
        stage.create(DEFINITIONS, &definition()).await;
        secs(1).await;
        let replica = fleet.start(alone(), herd);
        for name in ALL {
            fleet.until_state(name, "Ready", 5).await;
        }
        secs(5).await;
        for name in ALL {
            let serves = fleet.home.entry(name, "serves").await;
            assert_eq!(serves, Some((name == BAD).to_string()), "{name}");
        }
        let facts = replica.view.facts();
        let of = |name: &str| {
            let known = &facts.members[&ClusterId::remote(name)];
            known.discovery.clone().unwrap()
        };
        assert!(std::sync::Arc::ptr_eq(&of(GOOD[0]), &of(GOOD[1])));
        assert!(facts.discovery.unwrap().serves(&kinds::SECRET));
        fleet.members[GOOD[0]]
            .create(DEFINITIONS, &definition())
            .await;
        secs(1_000).await;
        let serves = fleet.home.entry(GOOD[0], "serves").await;
        assert_eq!(serves.as_deref(), Some("true"));
    });
}

/// Nothing is in it, so no object tells that the kind is there.
#[test]
fn home_is_told_that_a_kind_has_come_to_a_member_or_gone() {
    virtually(async {
        let fleet = Fleet::new().await;
        let herd = Herd {
            optional: true,
            ..needing_widgets()
        };
        let _replica = fleet.start(alone(), herd);
        for name in ALL {
            fleet.until_state(name, "Ready", 5).await;
        }
        secs(30).await;
        let told = async |expected: &str, after: u64| {
            // Less than a heartbeat: nothing else has home looked at.
            secs(after).await;
            for name in ALL {
                let told = fleet.home.entry(name, "widgets").await;
                let expected = (name == BAD).then_some(expected);
                assert_eq!(told.as_deref(), expected, "{name}");
            }
        };
        let (stage, widgets) = (&fleet.members[BAD], crate::rights::widgets());
        stage.create(crate::rights::DEFINITION, &widgets).await;
        told("true", 20).await;
        let path = format!("{}/widgets.toy.dev", crate::rights::DEFINITION);
        stage.send("DELETE", &path, &json!(null)).await;
        // A kind counts as gone only when that is sure, which takes longer.
        told("false", 60).await;
    });
}

#[test]
fn interests_are_opened_where_they_are_meant() {
    virtually(async {
        let fleet = Fleet::new().await;
        let replica = fleet.start(alone(), Herd::default());
        fleet.until_state(BAD, "Ready", 5).await;
        let stores = replica.view.stores();
        let count = |cluster: &ClusterId| stores.of_kind(cluster, &kinds::CONFIG_MAP).count();
        assert_eq!(count(&ClusterId::local()), 1, "of what means a cluster");
        assert_eq!(count(&ClusterId::remote(BAD)), 1, "of what is to follow");
        let there = ClusterId::remote(BAD);
        assert_eq!(stores.of_kind(&there, &kinds::SECRET).count(), 0);
    });
}

#[test]
fn a_plan_writes_into_no_other_cluster_than_its_keys() {
    virtually(async {
        let fleet = Fleet::new().await;
        fleet.patch(BAD, json!({"data": {"stray": "yes"}})).await;
        let replica = fleet.start(alone(), Herd::default());
        fleet.until(BAD, "1", 5).await;
        secs(10).await;
        assert!(fleet.home.entry("stray", "have").await.is_none());
        let metrics = replica.view.metrics();
        assert!(metrics.contains("outcome=\"misdirected\""), "{metrics}");
    });
}

#[test]
fn fields_are_applied_by_the_manager_that_the_plan_names() {
    virtually(async {
        let fleet = Fleet::new().await;
        let _replica = fleet.start(alone(), Herd::default());
        fleet.until(BAD, "1", 5).await;
        let path = format!("/api/v1/namespaces/default/configmaps/{NAME}");
        let map = fleet.members[BAD].get(&path).await;
        let manager = &map["metadata"]["managedFields"][0]["manager"];
        assert_eq!(manager, "slipway/north");
    });
}

#[test]
fn members_where_nothing_is_under_way_are_read_now_and_then_if_that_is_set() {
    virtually(async {
        let fleet = Fleet::new().await;
        fleet.patch(BAD, json!({"data": {"quiet": "yes"}})).await;
        let settings = Settings {
            members: Members {
                quiet: Quiet::Read {
                    every: Duration::from_mins(10),
                },
                check: Duration::from_mins(5),
                ..Members::default()
            },
            ..alone()
        };
        let _replica = fleet.start(settings, Herd::default());
        for name in ALL {
            fleet.until_state(name, "Ready", 5).await;
        }
        secs(60).await;
        let stage = &fleet.members[BAD];
        assert_eq!(stage.cluster.watches(), 0);
        assert!(fleet.members[GOOD[0]].cluster.watches() > 0);
        let asked = |name: &str| fleet.members[name].records(|r| r.agent == "one").len();
        let (before, close) = (asked(BAD), asked(GOOD[0]));
        secs(6_000).await;
        let (quiet, close) = (asked(BAD) - before, asked(GOOD[0]) - close);
        assert!(
            (10..60).contains(&quiet),
            "{quiet} requests, {close} of a close one"
        );
        // What home wants is done at once all the same.
        fleet.want(BAD, "2").await;
        fleet.until(BAD, "2", 5).await;
        // What is changed over there is seen late.
        let path = format!("/api/v1/namespaces/default/configmaps/{NAME}");
        stage
            .send("PATCH", &path, &json!({"data": {"have": "other"}}))
            .await;
        secs(1).await;
        assert_eq!(stage.have(NAME).await, "other");
        secs(800).await;
        assert_eq!(stage.have(NAME).await, "2");
        fleet.patch(BAD, json!({"data": {"quiet": null}})).await;
        secs(5).await;
        assert!(stage.cluster.watches() > 0);
    });
}

/// Each of its answers comes in time; all of them together take longer than one may.
#[test]
fn a_member_that_is_read_now_and_then_may_have_as_many_pages_as_it_likes() {
    virtually(async {
        let fleet = defined().await;
        fleet.patch(BAD, json!({"data": {"quiet": "yes"}})).await;
        let stage = &fleet.members[BAD];
        for n in 0..280 {
            let name = format!("w{n:03}");
            let widget =
                json!({"apiVersion": "toy.dev/v1", "kind": "Widget", "metadata": {"name": name}});
            let path = "/apis/toy.dev/v1/namespaces/default/widgets";
            stage.create(path, &widget).await;
        }
        let lists = Match {
            verb: "list".to_owned(),
            resource: "toy.dev/widgets".to_owned(),
            ..Match::default()
        };
        let slow = Fault::Delay(Duration::from_secs(8));
        let faults = stage.cluster.faults();
        faults.add(lists, Frequency::always(), slow);
        let settings = Settings {
            members: Members {
                quiet: Quiet::Read {
                    every: Duration::from_mins(10),
                },
                ..Members::default()
            },
            ..alone()
        };
        let replica = fleet.start(settings, needing_widgets());
        fleet.until_state(BAD, "Ready", 60).await;
        let stores = replica.view.stores();
        let (there, kind) = (ClusterId::remote(BAD), super::herd::WIDGET);
        let widgets = stores.of_kind(&there, &kind);
        let counts: Vec<usize> = widgets.map(|(_, store)| store.objects().count()).collect();
        assert_eq!(counts, [280]);
    });
}
