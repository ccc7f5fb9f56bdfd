//! Made-up histories of a cluster whose place another one takes: home has recorded the first.

use serde_json::{Value, json};

use super::*;
use crate::history::{ChangeKind, Context, Ending};
use crate::scenario::Scenario;

const FIRST: &str = "west";
const SECOND: &str = "west~2";
/// Where a capability of this test records who a cluster is.
const RECORD: &str = "toy/uid";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn changed(
    second: i64,
    object: (&str, &str),
    (before, after): (Option<Value>, Value),
    by: Option<u64>,
) -> Change {
    Change {
        at: at(second),
        version: second.unsigned_abs(),
        kind: ChangeKind::Modified,
        object: (object.0.into(), "fleet".into(), object.1.into()),
        before: before.map(|value| Arc::new(Image::made(value))),
        after: Some(Arc::new(Image::made(after))),
        by,
    }
}

/// The object at home that means the cluster, with these annotations.
fn map(annotations: &[(&str, &str)]) -> Value {
    let annotations = annotations.iter();
    let annotations: BTreeMap<&str, &str> = annotations.copied().collect();
    json!({"metadata": {"annotations": annotations}})
}

fn request(number: u64, cluster: ClusterId, second: i64) -> Request {
    Request {
        number,
        cluster,
        at: at(second),
        replica: "slipway-0-0".to_owned(),
        method: "PATCH".to_owned(),
        uri: "/".to_owned(),
        media: String::new(),
        body: Value::Null,
        context: Context::default(),
        fault: None,
        ending: Ending::Answered(200),
        versions: (0, 1),
        tide: 0,
    }
}

/// A cluster of this uid.
fn cluster(uid: &str) -> Course {
    let system = json!({"metadata": {"uid": uid}});
    let mut system = changed(0, ("/namespaces", "kube-system"), (None, system), None);
    system.object.1 = "".into();
    Course {
        base: 0,
        changes: vec![system].into(),
    }
}

/// The operator has recorded the first cluster; then the object that means it is changed so, by a person or the operator.
fn history(then: &[(&str, &str)], by_operator: bool) -> History {
    let mut history = History::default();
    let members = [(FIRST, "uid-a"), (SECOND, "uid-b")];
    for (name, uid) in members {
        history
            .members
            .insert(ClusterId::remote(name), cluster(uid));
    }
    for number in 0..2 {
        history
            .requests
            .push(request(number, ClusterId::local(), 1));
    }
    let (empty, recorded) = (map(&[]), map(&[(RECORD, "uid-a")]));
    let west = ("/configmaps", "west");
    let first = changed(1, west, (Some(empty), recorded.clone()), Some(0));
    let by = by_operator.then_some(1);
    let second = changed(2, west, (Some(recorded), map(then)), by);
    history.changes = vec![first, second].into();
    history
}

/// The operator writes into a cluster.
fn writes(mut history: History, name: &str) -> History {
    let id = ClusterId::remote(name);
    let number = history.requests.len() as u64;
    history.requests.push(request(number, id.clone(), 5));
    let app = json!({"metadata": {"name": "app"}});
    let deed = changed(5, ("apps/deployments", "app"), (None, app), Some(number));
    history.members.get_mut(&id).unwrap().changes.push(deed);
    history
}

fn violations(history: &History) -> usize {
    let scenario = Scenario::read("a", "{name: a, about: a, duration: 1m}").unwrap();
    let case = Case {
        scenario: &scenario,
        history,
        reference: None,
        specifics: &[],
    };
    identity(&case).violations.len()
}

const KEPT: &[(&str, &str)] = &[(RECORD, "uid-a")];
/// The record follows whoever answers.
const FOLLOWS: &[(&str, &str)] = &[(RECORD, "uid-b")];
const CONFIRMED: &[(&str, &str)] = &[(RECORD, "uid-a"), (CONFIRM_CLUSTER, "uid-b")];

#[test]
fn only_what_a_person_has_confirmed_is_written_to_in_the_place_of_another() {
    let second = |then, by_operator| violations(&writes(history(then, by_operator), SECOND));
    assert_eq!(second(KEPT, true), 1, "nothing at home speaks of it");
    assert_eq!(second(FOLLOWS, true), 1, "the operator has taken it down");
    assert_eq!(
        second(CONFIRMED, true),
        1,
        "the operator has confirmed it itself"
    );
    assert_eq!(second(CONFIRMED, false), 0, "a person has");
    assert_eq!(violations(&writes(history(KEPT, true), FIRST)), 0);
}

#[test]
fn an_expectation_is_excused_by_a_persons_word_or_a_place_that_was_taken_and_by_no_record() {
    let is_excused = |then, by_operator, name, second| {
        let history = history(then, by_operator);
        is_disowned(&history, &ClusterId::remote(name), at(second))
    };
    assert!(!is_excused(KEPT, true, FIRST, 9));
    assert!(is_excused(KEPT, true, SECOND, 9), "it has taken a place");
    assert!(
        !is_excused(FOLLOWS, true, FIRST, 9),
        "the record had to stay"
    );
    assert!(is_excused(FOLLOWS, true, SECOND, 9));
    assert!(
        is_excused(CONFIRMED, false, FIRST, 9),
        "another one is meant"
    );
    assert!(!is_excused(CONFIRMED, false, FIRST, 1), "not yet");
    assert!(!is_excused(CONFIRMED, false, SECOND, 9));
    assert!(!is_excused(CONFIRMED, true, FIRST, 9), "nobody has said so");
}
