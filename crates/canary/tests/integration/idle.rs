//! What is looked at: only kinds that some Canary needs, for as long as it is there.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stage::{CANARIES, Stage, play, secs};

/// Kinds that every Canary needs.
const ALWAYS: [&str; 5] = [
    "/configmaps",
    "/secrets",
    "/services",
    "apps/deployments",
    "flagger.app/canaries",
];

/// How often the operator asks for what in the next minutes: verb, and resource or path.
async fn asked(stage: &Stage, minutes: u64) -> BTreeMap<(String, String), usize> {
    let mut all = BTreeMap::new();
    for _ in 0..minutes {
        let before = stage.requests();
        secs(60).await;
        for record in stage.asked_since(before) {
            let is_path = record.resource.is_empty();
            let of = if is_path { record.uri } else { record.resource };
            *all.entry((record.verb, of)).or_default() += 1;
        }
    }
    all
}

/// Half an hour in which nothing happens: watches are opened again as they end, each kind is listed once more, and nothing else is
/// asked.
#[test]
fn an_idle_canary_costs_nothing_but_the_watches_of_what_it_needs() {
    play(|stage| async move {
        stage.workload("web:1").await;
        stage.canary(&json!({"analysis": {"iterations": 1}})).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        secs(60).await;
        let asked = asked(&stage, 30).await;
        for ((verb, of), times) in &asked {
            let most = match verb.as_str() {
                "watch" => 8,
                "list" => 1,
                _ => 0,
            };
            assert!(ALWAYS.contains(&of.as_str()), "{of}: {asked:?}");
            assert!(*times <= most, "{verb} {of}: {asked:?}");
        }
    });
}

#[test]
fn a_router_s_kinds_are_watched_while_a_canary_uses_them() {
    play(|stage| async move {
        stage.workload("web:1").await;
        let _operator = stage.operate();
        secs(30).await;
        let (start, watches) = (stage.requests(), stage.watches());
        stage
            .canary(&json!({
                "provider": "gatewayapi:v1",
                "service": {"port": 80, "gatewayRefs": [{"name": "gateway", "namespace": "default"}]},
                "analysis": {"stepWeights": [50]},
            }))
            .await;
        // No route is there yet, so none tells that all have been listed.
        stage.until("Initialized", 30).await;
        let routes = "gateway.networking.k8s.io/httproutes";
        let asked = stage.asked_since(start);
        let looks = asked.iter().filter(|one| one.verb == "list");
        let mut looked_at: Vec<&str> = looks.map(|one| one.resource.as_str()).collect();
        looked_at.sort_unstable();
        assert_eq!(looked_at, ["/configmaps", "/secrets", routes]);
        assert_eq!(stage.watches(), watches + 3);
        stage
            .send("DELETE", &format!("{CANARIES}/web"), &Value::Null)
            .await;
        secs(30).await;
        assert_eq!(stage.watches(), watches);
    });
}

/// The provider that counts where a Canary names none is looked at too.
#[test]
fn a_canary_that_names_no_provider_has_the_kinds_of_the_usual_one_watched() {
    play(|stage| async move {
        stage.workload("web:1").await;
        let _operator = stage.operate();
        secs(30).await;
        let start = stage.requests();
        stage
            .canary(&json!({"provider": null, "analysis": {"stepWeights": [50]}}))
            .await;
        secs(30).await;
        let asked = stage.asked_since(start);
        let is_istio = |one: &&str| one.contains("istio");
        let looked_at = asked.iter().map(|one| one.uri.as_str());
        assert!(looked_at.clone().any(|one| one.contains("virtualservices")));
        assert!(
            looked_at
                .clone()
                .any(|one| one.contains("destinationrules"))
        );
        let others = ["httproutes", "trafficsplits", "ingresses"];
        let is_other = |one: &&str| !is_istio(one) && others.iter().any(|of| one.contains(of));
        assert_eq!(looked_at.filter(is_other).count(), 0);
    });
}
