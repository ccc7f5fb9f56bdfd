#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;

const SMALL: &str = r#"
name: small
about: One Deployment, one restart.
duration: 25m
workloads:
  - {name: web, in: shop, labels: {mesh: "true"}, replicas: 2}
objects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: shop}}
actions:
  - {at: 5m, setImage: {workload: Deployment shop/web, image: "web:2"}}
  - {at: 6m, note: "and nothing else"}
expect:
  - {restarts: {Deployment shop/web: 1}}
  - {during: {from: 1m, to: 2m}, object: Deployment shop/web, path: spec.replicas, is: 2}
"#;

fn problem(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    Scenario::read("small.yaml", &SMALL.replace(from, to))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_scenario_is_read_with_its_namespaces() {
    let scenario = Scenario::read("small.yaml", SMALL).unwrap();
    let names: Vec<String> = scenario
        .manifests()
        .iter()
        .map(|m| Named::of(m).unwrap().to_string())
        .collect();
    assert_eq!(
        names,
        ["Namespace shop", "Deployment shop/web", "ConfigMap shop/m"]
    );
    assert_eq!(scenario.duration, Duration::from_mins(25));
    assert!(scenario.asks("R1"));
    assert!(matches!(
        scenario.actions[0].deed().unwrap(),
        Deed::SetImage(_)
    ));
}

#[test]
fn what_is_wrong_is_named() {
    assert!(problem("duration: 25m", "durations: 25m").contains("durations"));
    assert!(problem("duration: 25m", "duration: soon").contains("soon"));
    let both = problem("setImage", "evict: shop/web, setImage");
    assert!(both.contains("actions[0]"), "{both}");
    assert!(both.contains("setImage and evict"), "{both}");
    let late = problem("at: 5m", "at: 5h");
    assert!(late.contains("actions[0]: at"), "{late}");
    let kind = problem("object: Deployment shop/web", "object: Deploy shop/web");
    assert!(kind.contains("\"Deploy\""), "{kind}");
    let form = problem("object: Deployment shop/web", "object: Deployment web");
    assert!(form.contains("needs a namespace"), "{form}");
    let nothing = problem(", path: spec.replicas, is: 2", "");
    assert!(nothing.contains("expect[1]"), "{nothing}");
    let manifest = problem("kind: ConfigMap", "kind: Config");
    assert!(manifest.contains("objects[0]"), "{manifest}");
}

#[test]
fn many_workloads_are_numbered() {
    let many = SMALL.replace("name: web, in", "name: web, count: 40, in");
    let scenario = Scenario::read("many.yaml", &many).unwrap();
    let names: Vec<String> = scenario
        .manifests()
        .iter()
        .map(|m| Named::of(m).unwrap().to_string())
        .collect();
    assert_eq!(names.len(), 42);
    assert_eq!(names[40], "Deployment shop/web-39");
}

const SEVERAL: &str = r#"
name: several
about: Home and another cluster.
duration: 10m
clusters:
  - name: east
    clock: -30s
    lacks: [secrets]
    objects:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: far}}
spells: ["outage~east/1@1m+30s"]
actions:
  - {at: 1m, cluster: east, delete: ConfigMap far/m}
expect:
  - {cluster: east, object: ConfigMap far/m, exists: false}
"#;

#[test]
fn what_names_a_cluster_is_about_that_one() {
    let scenario = Scenario::read("several.yaml", SEVERAL).unwrap();
    let east = &scenario.clusters[0];
    assert_eq!(
        (east.clock, east.definitions, east.actors),
        (-30, true, true)
    );
    assert!(scenario.manifests().is_empty());
    let there = scenario.manifests_in(east);
    let names: Vec<String> = there
        .iter()
        .map(|m| Named::of(m).unwrap().to_string())
        .collect();
    assert_eq!(names, ["Namespace far", "ConfigMap far/m"]);
    let places = [None, Some("east"), Some("west")].map(|name| scenario.place(name));
    assert_eq!(places, [Some(0), Some(1), None]);
    assert_eq!(scenario.spells[0].cluster.as_deref(), Some("east"));
}

#[test]
fn a_cluster_that_is_not_there_is_named() {
    for (from, to, wrong) in [
        (
            "cluster: east, delete",
            "cluster: west, delete",
            "actions[0]",
        ),
        (
            "{cluster: east, object",
            "{cluster: west, object",
            "expect[0]",
        ),
        ("outage~east", "outage~west", "spells[0]"),
        ("outage~east", "rain~east", "rain~east"),
        ("name: east", "name: hub", "clusters[0].name"),
        ("kind: ConfigMap", "kind: Config", "clusters[0].objects[0]"),
    ] {
        assert!(SEVERAL.contains(from), "{from}");
        let read = Scenario::read("several.yaml", &SEVERAL.replacen(from, to, 1));
        let problem = read.unwrap_err().to_string();
        assert!(problem.contains(wrong), "{problem}");
    }
    let twice = SEVERAL.replace("clusters:\n", "clusters:\n  - {name: east}\n");
    let problem = Scenario::read("several.yaml", &twice)
        .unwrap_err()
        .to_string();
    assert!(problem.contains("two of the name"), "{problem}");
}
