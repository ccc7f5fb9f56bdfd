//! Whatever is waited for, somebody says why.

use serde_json::{Value, json};

use crate::stage::{Fleet, of_cluster, rollout, secs, virtually};

const SECRETS: &str = "/api/v1/namespaces/fleet/secrets";
const GROUP: &str = "fleet.squaremo.dev";

async fn until_waiting(fleet: &Fleet, reason: &str) -> Value {
    fleet
        .until(reason, 300, async |fleet: &Fleet| {
            let found = fleet.get("rollouts", "web").await?;
            let waiting = found["status"]["waitingFor"].as_array()?.clone();
            waiting.into_iter().find(|one| one["reason"] == reason)
        })
        .await
}

/// The agents do not run: that is told from agents that are slow.
#[test]
fn an_agent_that_does_not_run_is_told_of() {
    virtually(async {
        let mut fleet = Fleet::settled("Incremental", "v1").await;
        fleet.stop_agents();
        fleet.roll("web", "v2").await;
        let hold = until_waiting(&fleet, "AgentSilent").await;
        assert!(
            hold["message"].as_str().unwrap().contains("agent"),
            "{hold}"
        );
        let writes = fleet.hub.writes().len();
        secs(600).await;
        assert_eq!(fleet.hub.writes().len(), writes, "it rests");
        fleet.start_agents();
        fleet.until_ready("web", 300).await;
    });
}

/// A cluster that nothing is assigned to yet has no object of ours that could say why it cannot be reached.
#[test]
fn why_a_new_cluster_cannot_be_reached_is_told_on_the_rollout() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "rome", "labels": {"env": "prod", "fleet.squaremo.dev/cluster": "true"}},
            "data": {"wrong": "eA=="},
        });
        fleet.hub.create(SECRETS, &secret).await;
        fleet.start();
        fleet
            .make("rollouts", "web", &rollout("Incremental", "v1"))
            .await;
        let found = fleet
            .until("told", 120, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let is_ready = of_cluster(&found, "berlin")["state"] == "Ready";
                is_ready.then_some(found)
            })
            .await;
        let told = of_cluster(&found, "rome");
        assert_eq!(told["reason"], "Unreachable");
        assert!(
            told["message"].as_str().unwrap().contains("no entry value"),
            "{told}"
        );
        let waiting = found["status"]["waitingFor"].to_string();
        assert!(waiting.contains("no entry value"), "{waiting}");
    });
}

/// Whoever touches a kubeconfig, as tools do that write tokens anew, makes no cluster unready.
#[test]
fn a_touched_kubeconfig_is_nobodys_news() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        secs(120).await;
        let writes = fleet.hub.writes().len();
        for name in ["rome", "berlin-kubeconfig"] {
            let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
            fleet
                .hub
                .patch(&format!("{SECRETS}/{name}"), &touched)
                .await;
            secs(60).await;
        }
        let new = fleet.hub.writes().split_off(writes);
        assert!(new.is_empty(), "{new:#?}");
        // And they are read anew.
        fleet.roll("web", "v2").await;
        fleet.until_ready("web", 120).await;
    });
}

/// The right to know which control plane this is, is missing: nothing is written into clusters, and that is said.
#[test]
fn a_control_plane_that_may_not_know_itself_says_so() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        let rights: [(&str, &[&str]); 7] = [
            (GROUP, &["*"]),
            ("", &["secrets", "configmaps", "events"]),
            ("apps", &["controllerrevisions"]),
            ("cluster.x-k8s.io", &["*"]),
            ("source.toolkit.fluxcd.io", &["*"]),
            ("kustomize.toolkit.fluxcd.io", &["*"]),
            ("apiextensions.k8s.io", &["customresourcedefinitions"]),
        ];
        fleet.hub.grant(&rights).await;
        fleet.start_weak();
        fleet
            .make("rollouts", "web", &rollout("Replace", "v1"))
            .await;
        let told = fleet
            .until("told", 300, async |fleet: &Fleet| {
                let found = fleet.get("remoteassemblages", "berlin").await?;
                let conditions = found["status"]["conditions"].as_array()?.clone();
                let mut all = conditions.into_iter();
                all.find(|one| one["type"] == "Reachable" && one["status"] == "False")
            })
            .await;
        assert_eq!(told["reason"], "ClusterUnidentified", "{told}");
        let found = fleet
            .until("told on the Rollout", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let told = of_cluster(&found, "berlin");
                (told["reason"] == "Unreachable").then_some(told)
            })
            .await;
        let message = found["message"].as_str().unwrap();
        assert!(message.contains("which control plane this is"), "{message}");
        assert_eq!(fleet.kustomization("berlin", "web").await, None);
    });
}

/// The agent may not see Flux' objects: it says so, and does not look again every second.
#[test]
fn an_agent_without_the_right_to_flux_says_so() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.stop_agents();
        fleet.register("berlin").await;
        let rights: [(&str, &[&str]); 4] = [
            (GROUP, &["*"]),
            ("", &["secrets", "configmaps", "events", "namespaces"]),
            ("source.toolkit.fluxcd.io", &["*"]),
            ("apiextensions.k8s.io", &["customresourcedefinitions"]),
        ];
        fleet.leaves["berlin"].grant(&rights).await;
        fleet.start_weak_agents();
        fleet.start();
        fleet
            .make("rollouts", "web", &rollout("Incremental", "v1"))
            .await;
        let hold = until_waiting(&fleet, "CanaryFailed").await;
        assert!(
            hold["message"].as_str().unwrap().contains("no right"),
            "{hold}"
        );
        let found = fleet.get("rollouts", "web").await.unwrap();
        assert_eq!(of_cluster(&found, "berlin")["reason"], "FluxMissing");
    });
}
