//! From a change to a write, and when there is nothing to do.

use serde_json::json;
use slipway_apiserver::trace::Ending;

use crate::stage::{Stage, alone, secs, virtually};
use crate::toy::Toy;

#[test]
fn what_is_wanted_is_done_and_told() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 5).await;
        assert!(replica.view.is_ready());
        assert!(replica.view.is_leader("toy"));
        stage.want("a", "2").await;
        stage.until_have("a", "2", 1).await;
        secs(1).await;
        let writes = stage.writes();
        assert_eq!(writes.len(), 2, "{writes:#?}");
        assert!(writes.iter().all(|w| w.ending == Ending::Answered(200)));
        let context = &writes[0].context;
        assert!(
            context
                .starts_with("controller=toy;replica=one;epoch=0;purpose=follow;basis=configmaps:"),
            "{context}"
        );
        let events = stage
            .get("/apis/events.k8s.io/v1/namespaces/default/events")
            .await;
        let notes: Vec<&str> = events["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["note"].as_str().unwrap())
            .collect();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert_eq!(events["items"][0]["reportingController"], "slipway.dev/toy");
    });
}
