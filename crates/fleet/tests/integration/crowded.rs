//! A cluster that shows more than anybody gave it keeps no other waiting.

use serde_json::{Value, json};

use crate::stage::{DEFINITIONS, Fleet, secs, virtually};

const ASSEMBLAGE: &str = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages";

/// Who administers a cluster may define there what an Assemblage is.
#[test]
fn an_assemblage_with_more_syncs_than_fit_is_not_read_and_that_is_told() {
    virtually(async {
        let mut fleet = Fleet::settled("Replace", "v1").await;
        fleet.stop_agents();
        let berlin = fleet.leaves["berlin"].clone();
        let definition = format!("{DEFINITIONS}/assemblages.fleet.squaremo.dev");
        let mut versions = berlin.get(&definition).await["spec"]["versions"].clone();
        let spec = &mut versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let syncs = spec["properties"]["syncs"].as_object_mut().unwrap();
        assert!(syncs.remove("maxItems").is_some());
        let patch = json!({"spec": {"versions": versions}});
        berlin.patch(&definition, &patch).await;
        secs(2).await;
        let crowd: Vec<Value> = (0..3_000)
            .map(|n| json!({"name": format!("s{n}"), "source": {"git": {"url": "https://example.com/a.git", "version": {"tag": "v1"}}}}))
            .collect();
        let path = format!("{ASSEMBLAGE}/berlin");
        let full = json!({
            "metadata": {"annotations": {"fleet.squaremo.dev/written-by": "x"}}, "spec": {"syncs": crowd},
        });
        berlin.patch(&path, &full).await;
        fleet
            .until("told", 10, async |fleet: &Fleet| {
                let told = fleet.reachable("berlin").await?;
                (told["reason"] == "AssemblageFull").then_some(())
            })
            .await;
        let writes = berlin.writes().len();
        fleet.roll("web", "v2").await;
        fleet
            .until("the others have it", 10, async |fleet: &Fleet| {
                for cluster in ["paris", "rome"] {
                    let path = format!("{ASSEMBLAGE}/{cluster}");
                    let found = fleet.leaves[cluster].find(&path).await?;
                    let tag = &found["spec"]["syncs"][0]["source"]["git"]["version"]["tag"];
                    if tag != "v2" {
                        return None;
                    }
                }
                Some(())
            })
            .await;
        secs(60).await;
        assert_eq!(berlin.writes().len(), writes, "nothing is tried there");
        let emptied = json!({"spec": {"syncs": []}});
        berlin.patch(&path, &emptied).await;
        fleet
            .until("read again", 20, async |fleet: &Fleet| {
                let told = fleet.reachable("berlin").await?;
                let found = fleet.leaves["berlin"].find(&path).await?;
                let tag = &found["spec"]["syncs"][0]["source"]["git"]["version"]["tag"];
                (told["status"] == "True" && tag == "v2").then_some(())
            })
            .await;
    });
}
