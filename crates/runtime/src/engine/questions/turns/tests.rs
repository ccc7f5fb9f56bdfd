#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::Purpose;

use super::*;

fn key(name: &str) -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: "toy",
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn question(of: &str, attempt: u32) -> Question {
    Question {
        id: QuestionId {
            controller: "toy",
            uid: of.to_owned(),
            purpose: Purpose::new("ask"),
            attempt,
            due: Timestamp::UNIX_EPOCH,
        },
        method: "GET",
        url: String::new(),
        body: Value::Null,
        pause: Duration::ZERO,
        timeout: Duration::ZERO,
        until: None,
    }
}

fn asked(of: &str, n: u32) -> Vec<Question> {
    (0..n).map(|attempt| question(of, attempt)).collect()
}

fn started(questions: &mut Questions) -> Vec<String> {
    std::iter::from_fn(|| questions.next(|_| true))
        .map(|(_, question)| question.id.uid)
        .collect()
}

#[test]
fn a_key_asks_32_at_once_and_all_keys_take_turns() {
    let mut questions = Questions::default();
    for name in ["a", "b"] {
        questions.want(&key(name), asked(name, 100));
    }
    let first = started(&mut questions);
    assert_eq!(first.len(), 2 * AT_ONCE);
    assert_eq!(first[..4], ["a", "b", "a", "b"]);
    questions.ended(&key("a"), &question("a", 0).id);
    assert_eq!(started(&mut questions), ["a"]);
    for n in 0..10 {
        let name = format!("k{n}");
        questions.want(&key(&name), asked(&name, 100));
    }
    assert_eq!(started(&mut questions).len(), IN_ALL - 2 * AT_ONCE);
}

#[test]
fn a_new_plan_takes_back_what_is_not_asked_yet_and_asks_nothing_twice() {
    let mut questions = Questions::default();
    let a = key("a");
    questions.want(&a, asked("a", 100));
    assert_eq!(started(&mut questions).len(), AT_ONCE);
    questions.want(&a, asked("a", 33));
    for attempt in 0..32 {
        questions.ended(&a, &question("a", attempt).id);
    }
    assert!(questions.is_open(&a));
    assert_eq!(started(&mut questions).len(), 1);
    questions.ended(&a, &question("a", 32).id);
    assert!(!questions.is_open(&a));
}

#[test]
fn what_was_not_asked_before_a_restore_is_not_asked_after_it() {
    let mut questions = Questions::default();
    let a = key("a");
    questions.want(&a, asked("a", 100));
    assert_eq!(started(&mut questions).len(), AT_ONCE);
    questions.take_back(&ClusterId::local());
    questions.ended(&a, &question("a", 0).id);
    assert!(started(&mut questions).is_empty());
    assert!(questions.is_under_way());
}

#[test]
fn answers_are_kept_for_as_long_as_a_plan_needs_them_however_many_they_are() {
    let mut questions = Questions::default();
    let a = key("a");
    let all: BTreeSet<QuestionId> = asked("a", 10_000).into_iter().map(|q| q.id).collect();
    for id in &all {
        questions.ended(&a, id);
    }
    assert!(questions.forget(&a, &all).is_empty());
    let one: BTreeSet<QuestionId> = all.iter().take(1).cloned().collect();
    assert_eq!(questions.forget(&a, &one).len(), 9_999);
    assert_eq!(questions.forget(&a, &BTreeSet::new()).len(), 1);
    assert!(questions.answered.is_empty());
}

fn of(cluster: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::remote(cluster),
        ..key(name)
    }
}

#[test]
fn clusters_take_turns_and_one_that_does_not_answer_keeps_no_other_from_being_asked() {
    let mut questions = Questions::default();
    for n in 0..9 {
        let name = format!("deaf-{n}");
        questions.want(&of("deaf", &name), asked(&name, 100));
    }
    questions.want(&of("well", "a"), asked("well", 100));
    let first = started(&mut questions);
    assert_eq!(first[..4], ["deaf-0", "well", "deaf-1", "well"]);
    assert_eq!(first.len(), IN_ALL + AT_ONCE);
    questions.ended(&of("well", "a"), &question("well", 0).id);
    assert_eq!(started(&mut questions), ["well"]);
}

#[test]
fn nothing_is_asked_for_whom_this_replica_does_not_act() {
    let mut questions = Questions::default();
    for name in ["a", "b"] {
        questions.want(&key(name), asked(name, 3));
    }
    let acts = |key: &Key| key.name == "b";
    let names: Vec<String> = std::iter::from_fn(|| questions.next(acts))
        .map(|(key, _)| key.name)
        .collect();
    assert_eq!(names, ["b", "b", "b"]);
    assert!(!questions.is_open(&key("a")));
    questions.want(&key("a"), asked("a", 3));
    questions.take_back_of(&["other"]);
    assert!(questions.is_open(&key("a")));
    questions.take_back_of(&["toy"]);
    assert!(!questions.is_open(&key("a")) && started(&mut questions).is_empty());
}

#[test]
fn nothing_is_left_of_a_cluster_that_is_gone() {
    let mut questions = Questions::default();
    let gone = of("gone", "a");
    questions.want(&gone, asked("a", 40));
    assert_eq!(started(&mut questions).len(), AT_ONCE);
    questions.ended(&gone, &question("a", 0).id);
    questions.drop_cluster(&gone.cluster);
    assert!(started(&mut questions).is_empty());
    for attempt in 1..32 {
        questions.end(&gone, &question("a", attempt).id);
    }
    assert!(questions.rooms.is_empty() && questions.open.is_empty());
    assert!(!questions.is_under_way() && questions.answered.is_empty());
}

/// The same is found by looking at all of them, whatever comes and goes.
#[test]
fn what_can_be_asked_is_known_beforehand() {
    let mut questions = Questions::default();
    let keys: Vec<Key> = (0..30)
        .map(|n| of(&format!("c{}", n % 5), &format!("k{n}")))
        .collect();
    let mut draw: u64 = 7;
    let mut asked_for: Vec<(Key, QuestionId)> = Vec::new();
    for round in 0..2_000_u32 {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pick = usize::try_from(draw >> 33).unwrap();
        let key = keys[pick % keys.len()].clone();
        match round % 3 {
            0 => questions.want(&key, asked(&key.name, u32::try_from(pick % 60).unwrap())),
            1 if !asked_for.is_empty() => {
                let (key, id) = asked_for.swap_remove(pick % asked_for.len());
                questions.ended(&key, &id);
            }
            _ => asked_for.extend(questions.next(|_| true).map(|(key, q)| (key, q.id))),
        }
        let ready: BTreeSet<Key> = questions
            .waiting
            .keys()
            .filter(|key| questions.under_way.get(*key).map_or(0, BTreeSet::len) < AT_ONCE)
            .cloned()
            .collect();
        let known: BTreeSet<Key> = questions
            .rooms
            .values()
            .flat_map(|room| room.ready.clone())
            .collect();
        assert_eq!(ready, known, "round {round}");
        let totals: usize = questions.rooms.values().map(|room| room.total).sum();
        let under_way: usize = questions.under_way.values().map(BTreeSet::len).sum();
        assert_eq!(totals, under_way, "round {round}");
        let open: BTreeSet<ClusterId> = ready
            .iter()
            .map(|key| key.cluster.clone())
            .filter(|cluster| questions.rooms[cluster].total < IN_ALL)
            .collect();
        assert_eq!(open, questions.open, "round {round}");
    }
}
