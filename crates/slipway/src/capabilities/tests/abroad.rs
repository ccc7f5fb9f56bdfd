//! Histories with a second cluster that never happened.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_kernel::identity::ClusterId;
use slipway_sim::history::{Change, ChangeKind, Event, Image, Object};
use slipway_sim::spell::{Disturbance, Spell};

use super::made::{Made, object};

/// The uid of the second cluster.
const UID: &str = "11111111-2222";
/// The uid of another one that has its name.
const OTHER: &str = "33333333-4444";

fn east() -> ClusterId {
    ClusterId::remote("east")
}

/// An object changes in the second cluster.
fn put(made: &mut Made, object: Object, value: Value, by: Option<u64>) {
    put_in(made, &east(), object, value, by);
}

fn put_in(made: &mut Made, cluster: &ClusterId, object: Object, value: Value, by: Option<u64>) {
    let at = made.now();
    let course = made.history.members.entry(cluster.clone()).or_default();
    let version = course.changes.len() as u64 + 1;
    let before = course.state(&object, version).cloned();
    course.changes.push(Change {
        at,
        version,
        kind: match before {
            None => ChangeKind::Added,
            Some(_) => ChangeKind::Modified,
        },
        object,
        before,
        after: Some(Image::made(value).into()),
        by,
    });
}

/// The operator changes a Deployment in the second cluster.
fn deed(made: &mut Made) {
    let uri = "/apis/apps/v1/namespaces/shop/deployments/app?fieldManager=slipway";
    let body = json!({"metadata": {"resourceVersion": "1", "uid": "app"}});
    let number = made.request("PATCH", uri, body);
    made.last_request().cluster = east();
    put(
        made,
        object("apps/deployments", "app"),
        json!({}),
        Some(number),
    );
}

/// A second cluster that is called `east` too, and is the one that home knew first, or not; home says that not all is well.
fn replaced(first: &str) -> Made {
    let mut made = Made::new();
    let system: Object = ("/namespaces".into(), "".into(), "kube-system".into());
    for (name, uid) in [("east", UID), ("east~2", OTHER)] {
        let there = json!({"metadata": {"uid": uid}});
        put_in(
            &mut made,
            &ClusterId::remote(name),
            system.clone(),
            there,
            None,
        );
    }
    let record = json!({"metadata": {"annotations": {"recorded": first}}, "data": {"all": "ill"}});
    made.put(object("/configmaps", "told"), record, None);
    made.scenario.clusters = serde_json::from_value(json!([{"name": "east"}])).unwrap();
    let lasts = Duration::from_mins(1);
    let spell = Spell::new(Disturbance::Replaced, Duration::ZERO, lasts).within("east");
    made.mark(Event::Spell(spell), 0);
    made.pass(60);
    made.history.calm = made.now();
    made.pass(3_600);
    made
}

/// What depends on all clusters is not expected where nothing may be done in one of them, and only there.
#[test]
fn home_is_excused_only_by_who_is_not_meant_and_only_in_what_depends_on_all() {
    for (first, of_all, is_bad) in [
        (OTHER, true, false),
        (OTHER, false, true),
        (UID, true, true),
        (UID, false, true),
    ] {
        let mut made = replaced(first);
        let expected = json!({
            "object": "ConfigMap shop/told", "path": "data.all", "is": "well", "ofAll": of_all,
        });
        made.scenario.expect = vec![serde_json::from_value(expected).unwrap()];
        let objections = made.objections();
        let is_met = objections.iter().all(|(id, _)| *id != "expect");
        assert_eq!(!is_met, is_bad, "{first} {of_all}: {objections:?}");
    }
}

/// A definition that is put back late excuses whoever cannot decide without it until then, and not for longer.
#[test]
fn a_definition_is_missed_until_it_is_back() {
    let definition: Object = (
        "apiextensions.k8s.io/customresourcedefinitions".into(),
        "".into(),
        "flippers.flipper.io.github.com".into(),
    );
    for (back, ready, is_bad) in [
        (60, 90, false),
        (60, 170, true),
        (140, 170, false),
        (140, 250, true),
    ] {
        let mut made = Made::new();
        let replica = || "slipway-0-0".to_owned();
        made.mark(Event::Started(replica()), 0);
        made.mark(Event::Ready(replica(), false), 0);
        let undefined = Disturbance::Undefined(definition.2.to_string());
        let spell = Spell::new(undefined, Duration::ZERO, Duration::from_mins(1));
        made.mark(Event::Spell(spell), 0);
        made.pass(back);
        made.put(definition.clone(), json!({}), None);
        made.pass(ready - back);
        made.mark(Event::Ready(replica(), true), 0);
        made.pass(600);
        let objects = made.objections().iter().any(|(id, _)| *id == "V1");
        assert_eq!(
            objects, is_bad,
            "back after {back} s, ready after {ready} s"
        );
    }
}

/// Who looks at several of a kind by their names looks at several things; but at each of them not more often than at one.
#[test]
fn what_is_selected_by_name_is_counted_by_name() {
    for (names, is_bad) in [(1, true), (5, false)] {
        let mut made = Made::new();
        for turn in 0..1_000 {
            made.pass(3);
            let name = turn % names;
            let uri = format!("/api/v1/nodes?limit=1&fieldSelector=metadata.name%3Dn{name}");
            made.request("GET", &uri, json!(null));
        }
        let objects = made.objections().iter().any(|(id, _)| *id == "G11");
        assert_eq!(objects, is_bad, "{names}");
    }
}

/// One bad history for each oracle that is about other clusters.
pub(super) fn bad(id: &str) -> Option<Made> {
    let mut made = Made::new();
    let system: Object = ("/namespaces".into(), "".into(), "kube-system".into());
    put(&mut made, system, json!({"metadata": {"uid": UID}}), None);
    let record = json!({"metadata": {"annotations": {"recorded": UID}}});
    match id {
        "M1" => deed(&mut made),
        "M2" => {
            made.put(object("/configmaps", "east"), record, None);
            made.epoch = 2;
            deed(&mut made);
            made.epoch = 1;
            deed(&mut made);
        }
        "M3" => {
            made.put(object("/configmaps", "east"), record, None);
            deed(&mut made);
        }
        _ => return None,
    }
    Some(made)
}

/// Clusters, each with a Deployment. The operator gives those with a number a new image, and they have that generation in the end.
fn rolled(generations: &[(&str, Option<i64>)]) -> Made {
    let mut made = Made::new();
    let app = object("apps/deployments", "app");
    let deployment = |image: &str, generation: i64| {
        json!({
            "metadata": {"uid": "app", "generation": generation},
            "spec": {"replicas": 1, "image": image},
            "status": {"observedGeneration": generation},
        })
    };
    for (name, generation) in generations {
        let cluster = ClusterId::remote(name);
        put_in(&mut made, &cluster, app.clone(), deployment("1", 1), None);
        if let Some(course) = made.history.members.get_mut(&cluster) {
            course.base = 1;
        }
        let Some(generation) = generation else {
            continue;
        };
        let uri = "/apis/apps/v1/namespaces/shop/deployments/app?fieldManager=slipway";
        let number = made.request("PATCH", uri, json!({}));
        made.last_request().cluster = cluster.clone();
        let after = deployment("2", *generation);
        put_in(&mut made, &cluster, app.clone(), after, Some(number));
    }
    made.pass(3_600);
    made
}

/// A run in which one member is away and some of the members are not changed, beside the one in which all are.
pub(super) fn unchanged(away: &str, unchanged: &[&str]) -> Made {
    let all = ["east", "west"];
    let wanted = rolled(&all.map(|name| (name, Some(2))));
    let changed = |name: &&str| !unchanged.contains(name);
    let mut made = rolled(&all.map(|name| (name, changed(&name).then_some(2))));
    let lasts = Duration::from_mins(1);
    let spell = Spell::new(Disturbance::Outage, Duration::ZERO, lasts).within(away);
    made.mark(Event::Spell(spell), -3_600);
    made.reference = Some(Box::new(wanted.history));
    made
}

/// A run in which an object in a member was changed once more, and says nothing else: a Deployment, which a new leader's fence
/// changes, or something else, which it does not.
pub(super) fn counted(resource: &str) -> Made {
    let made = |generation: i64| {
        let mut made = rolled(&[("east", Some(2))]);
        let value = json!({"metadata": {"generation": generation}});
        put(&mut made, object(resource, "one"), value, None);
        made
    };
    let wanted = made(1);
    let mut found = made(2);
    found.reference = Some(Box::new(wanted.history));
    found
}
