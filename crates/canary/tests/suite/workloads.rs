//! The standalone mode's copy: scenarios 1 to 6, 16 to 20, 27, 28, 90 to 95, 106 and D14 to D16.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::canary::{AutoscalerRef, Service};
use slipway_canary::engine::{Readiness, Revision};
use slipway_canary::standalone::configs::{self, Config, ConfigKind, Copy, Known};
use slipway_canary::standalone::primary::{self, Recipe};
use slipway_canary::standalone::readiness::{Demand, Workload, readiness};
use slipway_canary::standalone::services::{self, Which};
use slipway_canary::standalone::{Names, PodLabel, hash, scaler};
use slipway_kernel::fields::merge;

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "generation": 1,
            "labels": {"app": "shop-web", "team.io/name": "a"},
            "annotations": {"team.io/note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
        "spec": {
            "replicas": 3, "progressDeadlineSeconds": 60, "minReadySeconds": 3,
            "selector": {"matchLabels": {"app": "shop-web", "tier": "front"}},
            "template": {
                "metadata": {"labels": {"app": "shop-web", "tier": "front", "v": "1"}},
                "spec": {
                    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "shop-web"}}},
                        {"topologyKey": "zone", "labelSelector": {"matchExpressions": [
                            {"key": "app", "operator": "In", "values": ["shop-web", "other"]}]}},
                    ]}},
                    "topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"app": "shop-web"}}}],
                    "volumes": [
                        {"name": "a", "configMap": {"name": "conf"}},
                        {"name": "b", "secret": {"secretName": "keys"}},
                        {"name": "c", "projected": {"sources": [{"configMap": {"name": "part"}}, {"secret": {"name": "psecret"}}]}},
                    ],
                    "initContainers": [{"name": "init", "env": [{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "initconf", "key": "k"}}}]}],
                    "containers": [
                        {"name": "app", "image": "web:1",
                         "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
                         "env": [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "env", "key": "k", "optional": true}}}],
                         "envFrom": [{"configMapRef": {"name": "all"}}, {"secretRef": {"name": "allsecret"}}]},
                        {"name": "istio-proxy", "ports": [{"name": "proxy", "containerPort": 15001}]},
                    ],
                },
            },
        },
    })
}

fn label() -> PodLabel {
    PodLabel::of(&deployment(), &[]).unwrap()
}

fn names() -> Names {
    Names::of("web", "front")
}

fn owner() -> Value {
    json!({"kind": "Canary", "name": "web", "uid": "u1", "controller": true})
}

fn version(template: &str) -> Revision {
    Revision {
        template: template.to_owned(),
        configs: None,
    }
}

fn copy(kind: ConfigKind, name: &str) -> Copy {
    Copy {
        config: Config {
            kind,
            name: name.to_owned(),
        },
        to: format!("{name}-primary"),
    }
}

struct Kit {
    target: Value,
    names: Names,
    label: PodLabel,
    owner: Value,
    copies: BTreeSet<Copy>,
    revision: Revision,
    prefixes: Vec<String>,
    is_scaled: bool,
}

impl Kit {
    fn new() -> Self {
        let copies = [
            copy(ConfigKind::ConfigMap, "conf"),
            copy(ConfigKind::ConfigMap, "initconf"),
            copy(ConfigKind::Secret, "keys"),
        ];
        Self {
            target: deployment(),
            names: names(),
            label: label(),
            owner: owner(),
            copies: copies.into(),
            revision: version("r1"),
            prefixes: vec!["team.io/".to_owned()],
            is_scaled: false,
        }
    }

    fn recipe(&self) -> Recipe<'_> {
        Recipe {
            target: &self.target,
            kind: Workload::Deployment,
            names: &self.names,
            label: &self.label,
            labels: &[],
            owner: &self.owner,
            copies: &self.copies,
            revision: &self.revision,
            serving: None,
            attempt: 0,
            is_scaled: self.is_scaled,
            prefixes: &self.prefixes,
        }
    }
}

#[test]
fn the_copy_is_the_workload_under_another_name() {
    let kit = Kit::new();
    let made = primary::make(&kit.recipe());
    assert_eq!(made["metadata"]["name"], "web-primary");
    assert_eq!(
        made["metadata"]["labels"],
        json!({"app": "shop-web-primary", "team.io/name": "a"})
    );
    assert_eq!(made["metadata"]["annotations"]["team.io/note"], "n");
    assert_eq!(made["metadata"]["ownerReferences"], json!([owner()]));
    assert_eq!(made["spec"]["replicas"], 3);
    assert_eq!(made["spec"]["progressDeadlineSeconds"], 60);
    assert!(primary::is_of(&kit.recipe(), &made));
}

#[test]
fn d16_every_label_of_the_selector_survives() {
    let made = primary::make(&Kit::new().recipe());
    let wanted = json!({"app": "shop-web-primary", "tier": "front"});
    assert_eq!(made["spec"]["selector"]["matchLabels"], wanted);
    let labels = &made["spec"]["template"]["metadata"]["labels"];
    assert_eq!(
        *labels,
        json!({"app": "shop-web-primary", "tier": "front", "v": "1"})
    );
}

#[test]
fn pods_of_the_copy_keep_apart_from_one_another() {
    let made = primary::make(&Kit::new().recipe());
    let spec = &made["spec"]["template"]["spec"];
    let rules =
        &spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(
        rules[0]["labelSelector"]["matchLabels"]["app"],
        "shop-web-primary"
    );
    let values = &rules[1]["labelSelector"]["matchExpressions"][0]["values"];
    assert_eq!(*values, json!(["shop-web-primary", "other"]));
    let spread = &spec["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]["app"];
    assert_eq!(*spread, "shop-web-primary");
}

#[test]
fn the_copy_uses_copies_of_configs_in_init_containers_too() {
    let made = primary::make(&Kit::new().recipe());
    let spec = &made["spec"]["template"]["spec"];
    assert_eq!(spec["volumes"][0]["configMap"]["name"], "conf-primary");
    assert_eq!(spec["volumes"][1]["secret"]["secretName"], "keys-primary");
    assert_eq!(
        spec["volumes"][2]["projected"]["sources"][0]["configMap"]["name"],
        "part"
    );
    let init = &spec["initContainers"][0]["env"][0]["valueFrom"]["configMapKeyRef"]["name"];
    assert_eq!(*init, "initconf-primary");
}

/// The copy after a patch.
fn patched(primary: &Value, patch: &Value) -> Value {
    let mut after = primary.clone();
    merge(&mut after, patch);
    after
}

#[test]
fn a_promotion_gives_the_copy_the_whole_template_and_can_be_taken_back() {
    let mut kit = Kit::new();
    let before = primary::make(&kit.recipe());
    kit.target["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    kit.target["spec"]["template"]["spec"]
        .as_object_mut()
        .unwrap()
        .remove("affinity");
    kit.target["spec"]["template"]["metadata"]["labels"] =
        json!({"app": "shop-web", "tier": "front"});
    kit.target["spec"]["replicas"] = json!(5);
    kit.revision = version("r2");
    assert!(!primary::is_of(&kit.recipe(), &before));
    let patch = primary::promote(&kit.recipe(), &before);
    let after = patched(&before, &patch);
    let spec = &after["spec"]["template"]["spec"];
    assert_eq!(spec["containers"][0]["image"], "web:2");
    assert_eq!(spec["affinity"], Value::Null);
    assert_eq!(
        after["spec"]["template"]["metadata"]["labels"]["v"],
        Value::Null
    );
    assert_eq!(after["spec"]["replicas"], 5);
    assert_eq!(after["spec"]["selector"], before["spec"]["selector"]);
    assert!(primary::is_of(&kit.recipe(), &after));
    let back = primary::give_back(&after, &version("r1")).unwrap();
    let restored = patched(&after, &back);
    assert_eq!(restored["spec"]["template"], before["spec"]["template"]);
    kit.revision = version("r1");
    assert!(primary::is_of(&kit.recipe(), &restored));
    assert_eq!(primary::give_back(&restored, &version("r1")), None);
}

#[test]
fn the_same_version_does_not_restart_the_copy_and_another_attempt_does() {
    let kit = Kit::new();
    let made = primary::make(&kit.recipe());
    let patch = primary::promote(&kit.recipe(), &made);
    assert_eq!(patch["spec"], json!({}));
    let again = Recipe {
        attempt: 1,
        ..kit.recipe()
    };
    assert_ne!(primary::promote(&again, &made)["spec"], json!({}));
}

#[test]
fn with_an_autoscaler_or_at_zero_a_promotion_leaves_the_replicas() {
    let mut kit = Kit::new();
    let made = primary::make(&kit.recipe());
    kit.is_scaled = true;
    kit.target["spec"]["replicas"] = json!(9);
    assert_eq!(
        primary::promote(&kit.recipe(), &made)["spec"]["replicas"],
        Value::Null
    );
    kit.is_scaled = false;
    kit.target["spec"]["replicas"] = json!(0);
    assert_eq!(
        primary::promote(&kit.recipe(), &made)["spec"]["replicas"],
        Value::Null
    );
}

#[test]
fn a_copy_of_flaggers_make_is_compared_by_its_template() {
    // As Flagger leaves it: one label, a random id, init containers with the person's own configs.
    let kit = Kit::new();
    let mut theirs = primary::make(&kit.recipe());
    theirs["metadata"]["annotations"] = json!({});
    theirs["spec"]["selector"]["matchLabels"] = json!({"app": "shop-web-primary"});
    theirs["spec"]["template"]["metadata"]["labels"] = json!({"app": "shop-web-primary"});
    theirs["spec"]["template"]["metadata"]["annotations"] = json!({"flagger-id": "abc"});
    theirs["spec"]["template"]["spec"]["initContainers"] =
        deployment()["spec"]["template"]["spec"]["initContainers"].clone();
    assert!(primary::is_of(&kit.recipe(), &theirs));
    theirs["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:0");
    assert!(!primary::is_of(&kit.recipe(), &theirs));
}

/// What keeps the pods of the copy apart, as Flagger makes it.
fn kept_apart_by_flagger(kit: &Kit, spec: &Value) -> Value {
    let mut theirs = primary::make(&kit.recipe());
    theirs["metadata"]["annotations"] = json!({});
    for field in ["affinity", "topologySpreadConstraints"] {
        theirs["spec"]["template"]["spec"][field] = spec[field].clone();
    }
    theirs
}

#[test]
fn a_copy_of_flaggers_make_may_keep_apart_from_others_than_ours() {
    let mut kit = Kit::new();
    // Flagger renames what names the Deployment, not what names the label: a chart's label names the chart.
    let own = deployment()["spec"]["template"]["spec"].clone();
    assert!(primary::is_of(
        &kit.recipe(),
        &kept_apart_by_flagger(&kit, &own)
    ));
    // And under any label that pods may be known by, but not where pods are drawn together.
    let spec = |name: &str, drawn: &str| {
        let terms = |name: &str| {
            let selector = json!({"matchLabels": {"app.kubernetes.io/name": name, "other": "web"}});
            json!({"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": selector}}]})
        };
        let affinity = json!({"podAntiAffinity": terms(name), "podAffinity": terms(drawn)});
        json!({"affinity": affinity, "topologySpreadConstraints": []})
    };
    for (field, rules) in spec("web", "web").as_object().unwrap() {
        kit.target["spec"]["template"]["spec"][field] = rules.clone();
    }
    let is_of = |spec: &Value| primary::is_of(&kit.recipe(), &kept_apart_by_flagger(&kit, spec));
    assert!(is_of(&spec("web-primary", "web")));
    assert!(!is_of(&spec("web-primary", "web-primary")));
    assert!(!is_of(&spec("else", "web")));
}

#[test]
fn scenario_27_a_hash_is_of_what_is_said_and_not_of_how_it_is_held() {
    let before = hash::template(&deployment());
    assert!(hash::is_ours(&before));
    assert!(!hash::is_ours("6d57f9d7b4"));
    let mut same = deployment();
    same["spec"]["replicas"] = json!(9);
    same["metadata"]["labels"] = json!({});
    same["spec"]["template"]["spec"]["nodeSelector"] = json!({});
    same["spec"]["template"]["metadata"]["annotations"] = Value::Null;
    assert_eq!(hash::template(&same), before);
    same["spec"]["template"]["spec"]["nodeSelector"] = json!({"flagger.app/scale-to-zero": "true"});
    assert_eq!(hash::template(&same), before);
    // Pinned: another value here would start a run of every Canary.
    assert_eq!(hash::digest(b"slipway"), "05d5d9c721bc99ea");
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
    let pinned = hash::template(&json!({"spec": {"template": template}}));
    assert_eq!(pinned, "43d399471f6f256a");
    let mut annotated = deployment();
    annotated["spec"]["template"]["metadata"]["annotations"] = json!({"a": "b"});
    assert_ne!(hash::template(&annotated), before, "scenario 16");
}

#[test]
fn scenario_17_every_way_to_use_a_config_is_found() {
    let references = configs::references(&deployment()["spec"]["template"]);
    let found: Vec<String> = references.keys().map(Config::key).collect();
    assert_eq!(
        found,
        [
            "configmap/all",
            "configmap/conf",
            "configmap/initconf",
            "configmap/part",
            "secret/allsecret",
            "secret/env",
            "secret/keys",
            "secret/psecret",
        ]
    );
    let optional: Vec<&str> = references
        .iter()
        .filter(|(_, optional)| **optional)
        .map(|(config, _)| config.name.as_str())
        .collect();
    assert_eq!(optional, ["env"]);
}

#[test]
fn scenarios_18_to_20_and_28_what_is_tracked() {
    let map = |object: Value| configs::known(ConfigKind::ConfigMap, &object);
    let secret = |object: Value| configs::known(ConfigKind::Secret, &object);
    assert!(map(json!({"data": {"a": "b"}})).is_tracked);
    let disabled = json!({"flagger.app/config-tracking": "disabled"});
    assert!(!map(json!({"metadata": {"annotations": disabled}})).is_tracked);
    assert!(secret(json!({"type": "Opaque"})).is_tracked);
    assert!(!secret(json!({"type": "kubernetes.io/dockerconfigjson"})).is_tracked);
    // D15: binary data counts.
    let plain = map(json!({"data": {"a": "b"}})).checksum;
    let binary = map(json!({"data": {"a": "b"}, "binaryData": {"c": "ZA=="}})).checksum;
    assert_ne!(plain, binary);
    // As Flagger makes it: the first eight bytes of the SHA-256 of {"a":"b"}.
    assert_eq!(plain, hash::digest(br#"{"a":"b"}"#));
    let escaped = map(json!({"data": {"a": "<b>&"}})).checksum;
    assert_eq!(escaped, hash::digest(br#"{"a":"\u003cb\u003e\u0026"}"#));

    let config = |name: &str| Config {
        kind: ConfigKind::ConfigMap,
        name: name.to_owned(),
    };
    let there = BTreeMap::from([
        (
            config("a"),
            Known {
                checksum: "1".to_owned(),
                is_tracked: true,
                owners: BTreeSet::new(),
            },
        ),
        (
            config("b"),
            Known {
                checksum: "2".to_owned(),
                is_tracked: false,
                owners: BTreeSet::new(),
            },
        ),
    ]);
    let references = BTreeMap::from([
        (config("a"), false),
        (config("b"), false),
        (config("c"), true),
    ]);
    let tracked = configs::track(&references, &there).unwrap();
    assert_eq!(
        tracked.checksums,
        BTreeMap::from([("configmap/a".to_owned(), "1".to_owned())])
    );
    assert_eq!(tracked.copies.len(), 1);
    let missing = BTreeMap::from([(config("c"), false)]);
    let error = configs::track(&missing, &there).unwrap_err();
    assert!(error.to_string().contains("configmap c does not exist"));
}

#[test]
fn a_shared_copy_keeps_its_other_owners_without_control() {
    let copy = json!({"metadata": {"ownerReferences": [{"uid": "u2", "controller": true}]}});
    let owners = configs::owners(&copy, &owner());
    assert_eq!(owners, [json!({"uid": "u2", "controller": false}), owner()]);
    let again = json!({"metadata": {"ownerReferences": owners}});
    assert_eq!(configs::owners(&again, &owner()).len(), 2);
}

fn service(spec: Value, which: Which, seen: Option<&Value>) -> Value {
    let mut with_port = json!({"port": 80});
    merge(&mut with_port, &spec);
    let spec: Service = serde_json::from_value(with_port).unwrap();
    let (names, label, owner, target) = (names(), label(), owner(), deployment());
    let recipe = services::Recipe {
        namespace: "shop",
        service: &spec,
        names: &names,
        label: &label,
        target: &target,
        owner: &owner,
        is_led: false,
    };
    services::service(&recipe, which, seen)
}

#[test]
fn scenario_3_services_select_by_the_label_and_not_by_the_name() {
    let selected = |which| service(json!({}), which, None)["spec"]["selector"].clone();
    assert_eq!(selected(Which::Canary), json!({"app": "shop-web"}));
    assert_eq!(selected(Which::Primary), json!({"app": "shop-web-primary"}));
    assert_eq!(selected(Which::Apex), json!({"app": "shop-web-primary"}));
    let name = |which| service(json!({}), which, None)["metadata"]["name"].clone();
    assert_eq!(
        Which::ALL.map(name),
        ["front-canary", "front-primary", "front"]
    );
}

#[test]
fn scenarios_4_and_5_ports_are_found_and_named() {
    let ports = |spec: Value| service(spec, Which::Apex, None)["spec"]["ports"].clone();
    let plain = ports(json!({}));
    assert_eq!(
        plain,
        json!([{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80}])
    );
    let by_name = ports(json!({"targetPort": "http", "portName": "web", "appProtocol": "grpc"}));
    assert_eq!(by_name[0]["targetPort"], "http");
    assert_eq!(
        (&by_name[0]["name"], &by_name[0]["appProtocol"]),
        (&json!("web"), &json!("grpc"))
    );
    let found = ports(json!({"targetPort": 8080, "portDiscovery": true}));
    let names: Vec<&Value> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|port| &port["name"])
        .collect();
    assert_eq!(
        names,
        ["http", "metrics"],
        "neither the declared one nor the proxy's"
    );
    let found = ports(json!({"targetPort": "http", "portDiscovery": true}));
    assert_eq!(found.as_array().unwrap().len(), 2);
}

#[test]
fn scenario_6_a_persons_apex_keeps_what_is_theirs() {
    let seen = json!({"metadata": {"name": "front", "labels": {"mine": "1"}},
        "spec": {"type": "NodePort", "ports": [{"name": "http", "port": 80, "nodePort": 30080}]}});
    let wanted = service(json!({}), Which::Apex, Some(&seen));
    assert_eq!(wanted["spec"]["ports"][0]["nodePort"], 30080);
    assert_eq!(wanted["spec"]["type"], Value::Null);
    assert_eq!(
        wanted["metadata"]["ownerReferences"],
        Value::Null,
        "it does not go with the Canary"
    );
    assert_eq!(wanted["metadata"]["labels"], Value::Null);
}

#[test]
fn scenario_106_what_is_not_managed_is_not_named() {
    let spec = json!({"apex": {"labels": {"x": "1", "y": "2"}, "annotations": {"z": "3"}},
        "unmanagedMetadata": {"labels": ["x"], "annotations": ["z"]}});
    let wanted = service(spec, Which::Apex, None);
    assert_eq!(
        wanted["metadata"]["labels"],
        json!({"app": "front", "y": "2"})
    );
    assert_eq!(wanted["metadata"]["annotations"]["z"], Value::Null);
}

fn hpa() -> Value {
    json!({"metadata": {"name": "web", "namespace": "shop", "labels": {"a": "1"}},
        "spec": {"minReplicas": 2, "maxReplicas": 20, "metrics": [{"type": "Resource"}],
            "behavior": {"scaleDown": {}}, "scaleTargetRef": {"name": "web"}}})
}

#[test]
fn scenarios_94_and_95_d14_the_copys_autoscaler_is_the_persons_pointed_at_the_copy() {
    let mut asked: AutoscalerRef = serde_json::from_value(
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "web"}),
    )
    .unwrap();
    let made = scaler::scaler(&asked, &hpa(), &names(), &owner());
    assert_eq!(made["metadata"]["name"], "web-primary");
    assert_eq!(made["metadata"]["labels"], json!({"a": "1"}));
    assert_eq!(made["spec"]["scaleTargetRef"]["name"], "web-primary");
    for field in ["minReplicas", "maxReplicas", "metrics", "behavior"] {
        assert_eq!(made["spec"][field], hpa()["spec"][field], "{field}");
    }
    asked.primary_scaler_replicas =
        serde_json::from_value(json!({"minReplicas": 5, "maxReplicas": 50})).unwrap();
    let made = scaler::scaler(&asked, &hpa(), &names(), &owner());
    assert_eq!(
        (&made["spec"]["minReplicas"], &made["spec"]["maxReplicas"]),
        (&json!(5), &json!(50))
    );
    assert_eq!(scaler::most(&made), Some(50));
}

#[test]
fn a_workload_comes_up_with_as_many_as_it_should() {
    let sized = |replicas: u32| {
        let mut one = deployment();
        one["spec"]["replicas"] = json!(replicas);
        one
    };
    let from = |target: u32, primary: u32, scaler: Option<&Value>| {
        scaler::from_zero(
            Workload::Deployment,
            &sized(target),
            Some(&sized(primary)),
            scaler,
        )
    };
    assert_eq!(from(4, 7, None), 4);
    assert_eq!(from(0, 7, None), 7);
    assert_eq!(from(0, 7, Some(&hpa())), 2);
    assert_eq!(from(0, 0, None), 1);
}

fn ready(object: Value, percent: u8, now: i64) -> Readiness {
    let demand = Demand {
        percent,
        deadline: Duration::from_mins(1),
    };
    let now = Timestamp::from_second(now).unwrap();
    readiness(Workload::Deployment, &object, demand, now)
}

fn with_status(desired: i64, status: Value) -> Value {
    json!({"metadata": {"generation": 2}, "spec": {"replicas": desired}, "status": status})
}

#[test]
fn scenarios_90_to_92_readiness_is_what_the_controller_says() {
    let status = |updated: i64, all: i64, available: i64| json!({"observedGeneration": 2, "updatedReplicas": updated, "replicas": all, "availableReplicas": available});
    let is_ready =
        |desired, status, percent| ready(with_status(desired, status), percent, 0).is_ready();
    assert!(is_ready(4, status(4, 4, 4), 100));
    let stale = json!({"observedGeneration": 1, "updatedReplicas": 4, "replicas": 4, "availableReplicas": 4});
    assert!(!is_ready(4, stale, 100));
    assert!(!is_ready(4, status(3, 4, 4), 100));
    assert!(!is_ready(4, status(4, 5, 4), 100));
    assert!(!is_ready(4, status(4, 4, 3), 100));
    assert!(is_ready(4, status(4, 4, 2), 50));
    assert!(!is_ready(4, status(4, 4, 1), 50));
    assert!(matches!(
        ready(with_status(4, status(4, 4, 0)), 100, 0),
        Readiness::Down(_)
    ));
    assert!(matches!(
        ready(with_status(4, status(4, 4, 1)), 100, 0),
        Readiness::Partly(_)
    ));
}

#[test]
fn scenarios_90_to_92_a_daemon_set_is_ready_by_the_same_rules() {
    let found = |seen: i64, (desired, updated, available): (i64, i64, i64), percent: u8| {
        let status = json!({"observedGeneration": seen, "desiredNumberScheduled": desired,
            "updatedNumberScheduled": updated, "numberAvailable": available});
        let object = json!({"metadata": {"generation": 2}, "spec": {}, "status": status});
        let demand = Demand {
            percent,
            deadline: Duration::from_mins(1),
        };
        readiness(Workload::DaemonSet, &object, demand, Timestamp::UNIX_EPOCH)
    };
    assert!(found(2, (4, 4, 4), 100).is_ready());
    assert!(!found(1, (4, 4, 4), 100).is_ready());
    assert!(!found(2, (4, 3, 4), 100).is_ready());
    assert!(matches!(found(2, (4, 4, 3), 100), Readiness::Partly(_)));
    assert!(found(2, (4, 4, 2), 50).is_ready());
    assert!(!found(2, (4, 4, 1), 50).is_ready());
    assert!(found(2, (4, 4, 0), 50).is_down());
}

#[test]
fn scenario_93_a_deadline_that_is_over_is_the_end() {
    let conditions = |all: Value| {
        with_status(
            2,
            json!({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "conditions": all}),
        )
    };
    let exceeded = json!([{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]);
    assert!(matches!(
        ready(conditions(exceeded), 100, 0),
        Readiness::Stuck(_)
    ));
    let unavailable = json!([{"type": "Available", "status": "False",
        "reason": "MinimumReplicasUnavailable", "lastUpdateTime": "1970-01-01T00:00:10Z"}]);
    assert!(matches!(
        ready(conditions(unavailable.clone()), 100, 69),
        Readiness::Down(_)
    ));
    assert!(matches!(
        ready(conditions(unavailable), 100, 70),
        Readiness::Stuck(_)
    ));
}

#[test]
fn a_daemon_set_is_put_away_by_a_node_selector() {
    let mut set = deployment();
    set["kind"] = json!("DaemonSet");
    assert_eq!(Workload::DaemonSet.size(&set), 1);
    merge(&mut set, &primary::sized(Workload::DaemonSet, 0));
    assert_eq!(Workload::DaemonSet.size(&set), 0);
    assert_eq!(hash::template(&set), hash::template(&deployment()));
    merge(&mut set, &primary::sized(Workload::DaemonSet, 1));
    assert_eq!(Workload::DaemonSet.size(&set), 1);
}
