//! A member that has more of a kind than is taken in is said to, and costs nobody else anything.

use serde_json::{Value, json};
use slipway_kernel::identity::ClusterId;
use slipway_runtime::{Members, Settings};

use super::{BAD, GOOD, defined, needing_widgets};
use crate::stage::{Stage, alone, secs, virtually};

const WIDGETS: &str = "/apis/toy.dev/v1/namespaces/default/widgets";
/// So many are taken in.
const BOUND: usize = 5;

async fn make(stage: &Stage, number: usize) {
    let name = format!("w{number}");
    let widget = json!({"apiVersion": "toy.dev/v1", "kind": "Widget", "metadata": {"name": name}});
    stage.create(WIDGETS, &widget).await;
}

async fn remove(stage: &Stage, number: usize) {
    let path = format!("{WIDGETS}/w{number}");
    stage.send("DELETE", &path, &Value::Null).await;
}

#[test]
fn a_kind_of_which_a_member_has_too_much_is_named_and_stops_that_member_only() {
    virtually(async {
        let fleet = defined().await;
        let stage = &fleet.members[BAD];
        for number in 0..=BOUND {
            make(stage, number).await;
        }
        let settings = Settings {
            members: Members {
                objects: BOUND,
                ..Members::default()
            },
            ..alone()
        };
        let replica = fleet.start(settings, needing_widgets());
        fleet.until_state(BAD, "TooMuch", 30).await;
        for name in GOOD {
            fleet.until_state(name, "Ready", 30).await;
        }
        let blockers = replica.view.blockers();
        let said = blockers.iter().find(|b| b.reason == "TooMuch").unwrap();
        assert!(said.message.contains(BAD), "{}", said.message);
        assert!(said.message.contains("widgets"), "{}", said.message);
        assert!(
            said.unblock.contains("--member-objects"),
            "{}",
            said.unblock
        );
        let lists = || {
            let lists = stage.records(|r| r.verb == "list" && r.resource == "toy.dev/widgets");
            lists.len()
        };
        let before = lists();
        secs(600).await;
        let asked = lists() - before;
        assert!((2..12).contains(&asked), "{asked} lists in ten minutes");
        // What there is room for is known again.
        fleet.want(BAD, "2").await;
        remove(stage, 0).await;
        fleet.until(BAD, "2", 400).await;
        fleet.until_state(BAD, "Ready", 10).await;
        // What a stream adds counts as well.
        make(stage, 0).await;
        fleet.until_state(BAD, "TooMuch", 10).await;
        let known = replica.view.facts().members[&ClusterId::remote(BAD)].clone();
        assert!(!known.synced);
        fleet.want(BAD, "3").await;
        secs(20).await;
        assert_eq!(stage.have(super::herd::NAME).await, "2");
        remove(stage, 0).await;
        fleet.until(BAD, "3", 400).await;
        fleet.until_state(BAD, "Ready", 10).await;
    });
}
