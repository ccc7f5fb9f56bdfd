#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use slipway_kernel::Purpose;
use slipway_kernel::fact::{Request, ScaleOf};

use super::*;

const IN_ALL: usize = 128;

fn key_in(cluster: ClusterId, name: &str) -> Key {
    Key {
        cluster,
        controller: "toy",
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn key(name: &str) -> Key {
    key_in(ClusterId::local(), name)
}

fn of(cluster: &str, name: &str) -> Key {
    key_in(ClusterId::remote(cluster), name)
}

fn question(of: &str, attempt: u32) -> Question {
    let id = QuestionId {
        controller: "toy",
        uid: of.to_owned(),
        purpose: Purpose::new("ask"),
        attempt,
        due: Timestamp::UNIX_EPOCH,
    };
    let of = ScaleOf {
        group: String::new(),
        kind: String::new(),
        namespace: String::new(),
        name: String::new(),
    };
    Question::new(id, Request::Scale(of), Duration::ZERO)
}

fn asked(of: &str, n: u32) -> Vec<Question> {
    (0..n).map(|attempt| question(of, attempt)).collect()
}

fn started(line: &mut Line) -> Vec<String> {
    std::iter::from_fn(|| line.next(|_| true))
        .map(|next| next.question.id.uid)
        .collect()
}

/// The attempt at a question that is under way, or a number that is none.
fn attempt(line: &Line, key: &Key, id: &QuestionId) -> Attempt {
    let asked = line.under_way.get(key).and_then(|all| all.get(id));
    asked.map_or(0, |asked| asked.attempt)
}

fn end(line: &mut Line, key: &Key, id: &QuestionId) -> bool {
    let attempt = attempt(line, key, id);
    line.end(key, id, attempt) == Ended::Answered
}

#[test]
fn a_key_asks_32_at_once_and_all_keys_take_turns() {
    let mut line = Line::new(IN_ALL);
    for name in ["a", "b"] {
        line.want(&key(name), asked(name, 100));
    }
    let first = started(&mut line);
    assert_eq!(first.len(), 2 * AT_ONCE);
    assert_eq!(first[..4], ["a", "b", "a", "b"]);
    assert!(end(&mut line, &key("a"), &question("a", 0).id));
    assert!(!end(&mut line, &key("a"), &question("a", 0).id));
    assert_eq!(started(&mut line), ["a"]);
    for n in 0..10 {
        let name = format!("k{n}");
        line.want(&key(&name), asked(&name, 100));
    }
    assert_eq!(started(&mut line).len(), IN_ALL - 2 * AT_ONCE);
}

#[test]
fn clusters_take_turns_and_one_that_does_not_answer_keeps_no_other_from_being_asked() {
    let mut line = Line::new(IN_ALL);
    for n in 0..9 {
        let name = format!("deaf-{n}");
        line.want(&of("deaf", &name), asked(&name, 100));
    }
    line.want(&of("well", "a"), asked("well", 100));
    let first = started(&mut line);
    assert_eq!(first[..4], ["deaf-0", "well", "deaf-1", "well"]);
    assert_eq!(first.len(), IN_ALL + AT_ONCE);
    end(&mut line, &of("well", "a"), &question("well", 0).id);
    assert_eq!(started(&mut line), ["well"]);
}

#[test]
fn nothing_is_asked_for_whom_this_replica_does_not_act() {
    let mut line = Line::new(IN_ALL);
    for name in ["a", "b"] {
        line.want(&key(name), asked(name, 3));
    }
    let acts = |key: &Key| key.name == "b";
    let names: Vec<String> = std::iter::from_fn(|| line.next(acts))
        .map(|next| next.key.name)
        .collect();
    assert_eq!(names, ["b", "b", "b"]);
    assert!(!line.is_open(&key("a")));
    line.want(&key("a"), asked("a", 3));
    line.take_back_of(&["other"]);
    assert!(line.is_open(&key("a")));
    line.take_back_of(&["toy"]);
    assert!(!line.is_open(&key("a")) && started(&mut line).is_empty());
}

#[test]
fn nothing_is_left_of_a_cluster_that_is_gone() {
    let mut line = Line::new(IN_ALL);
    let gone = of("gone", "a");
    line.want(&gone, asked("a", 40));
    assert_eq!(started(&mut line).len(), AT_ONCE);
    end(&mut line, &gone, &question("a", 0).id);
    line.drop_cluster(&gone.cluster);
    assert!(started(&mut line).is_empty());
    for attempt in 1..32 {
        end(&mut line, &gone, &question("a", attempt).id);
    }
    assert!(line.rooms.is_empty() && line.open.is_empty());
    assert!(line.under_way().next().is_none());
}

#[test]
fn a_new_plan_takes_back_what_is_not_asked_yet_and_asks_nothing_twice() {
    let mut line = Line::new(IN_ALL);
    let a = key("a");
    line.want(&a, asked("a", 100));
    assert_eq!(started(&mut line).len(), AT_ONCE);
    line.want(&a, asked("a", 33));
    for attempt in 0..32 {
        end(&mut line, &a, &question("a", attempt).id);
    }
    assert!(line.is_open(&a));
    assert_eq!(started(&mut line).len(), 1);
    end(&mut line, &a, &question("a", 32).id);
    assert!(!line.is_open(&a));
}

#[test]
fn what_was_not_asked_before_a_restore_is_not_asked_after_it() {
    let mut line = Line::new(IN_ALL);
    let a = key("a");
    line.want(&a, asked("a", 100));
    assert_eq!(started(&mut line).len(), AT_ONCE);
    line.take_back(&ClusterId::local());
    end(&mut line, &a, &question("a", 0).id);
    assert!(started(&mut line).is_empty());
    assert!(line.under_way().next().is_some());
}

/// The same name for something else.
fn other(of: &str, attempt: u32) -> Question {
    let mut other = question(of, attempt);
    if let Request::Scale(of) = &mut other.request {
        of.name = "another".to_owned();
    }
    other
}

#[test]
fn an_answer_to_what_its_name_does_not_mean_any_more_is_nobodys() {
    let mut line = Line::new(IN_ALL);
    let (a, asked) = (key("a"), question("a", 0));
    line.want(&a, vec![asked.clone()]);
    let first = line.next(|_| true).unwrap().attempt;
    line.want(&a, vec![other("a", 0)]);
    // What is under way in the cluster cannot be taken back, and the same name is not used twice at once.
    assert!(line.next(|_| true).is_none());
    assert_eq!(line.end(&a, &asked.id, first), Ended::Outdated);
    assert!(line.under_way().next().is_none() && line.outdated.is_empty());
    line.want(&a, vec![other("a", 0)]);
    let second = line.next(|_| true).unwrap().attempt;
    assert_eq!(line.end(&a, &asked.id, first), Ended::Unknown);
    assert_eq!(line.end(&a, &asked.id, second), Ended::Answered);
}

#[test]
fn what_nobody_wants_any_more_is_given_up_where_it_can_be() {
    let mut line = Line::giving_up(usize::MAX);
    let a = key("a");
    let handles: Vec<AbortHandle> = (0..3).map(|_| AbortHandle::new_pair().0).collect();
    line.want(&a, asked("a", 3));
    let mut attempts = Vec::new();
    for handle in &handles {
        let next = line.next(|_| true).unwrap();
        line.may_end(&a, &next.question.id, handle.clone());
        attempts.push(next.attempt);
    }
    // The second one is something else by now, and the third one is not wanted.
    line.want(&a, vec![question("a", 0), other("a", 1)]);
    let is_aborted: Vec<bool> = handles.iter().map(AbortHandle::is_aborted).collect();
    assert_eq!(is_aborted, [false, true, true]);
    let again = line.next(|_| true).unwrap();
    assert_eq!(again.question, other("a", 1));
    assert_eq!(
        line.end(&a, &again.question.id, attempts[1]),
        Ended::Unknown
    );
    assert!(line.next(|_| true).is_none());
    line.take_back(&ClusterId::local());
    assert!(handles[0].is_aborted() && line.under_way().next().is_none());
    assert!(line.rooms.values().all(|room| room.total == 0));
}

#[test]
fn who_is_given_up_with_all_others_is_not_waited_for() {
    let mut line = Line::giving_up(usize::MAX);
    for name in ["a", "b"] {
        line.want(&key(name), asked(name, 40));
    }
    assert_eq!(started(&mut line).len(), 2 * AT_ONCE);
    line.give_up_all();
    assert!(line.under_way().next().is_none() && started(&mut line).is_empty());
    let mut other = Line::new(IN_ALL);
    other.want(&key("a"), asked("a", 1));
    assert_eq!(started(&mut other).len(), 1);
    other.give_up_all();
    assert!(other.under_way().next().is_some());
}

#[test]
fn of_one_key_so_many_wait_for_the_world() {
    let mut line = Line::giving_up(usize::MAX);
    let a = key("a");
    line.want(&a, asked("a", 5_000));
    assert_eq!(line.waiting[&a].len(), MOST_WAITING);
    let mut inside = Line::new(IN_ALL);
    inside.want(&a, asked("a", 5_000));
    assert_eq!(inside.waiting[&a].len(), 5_000);
}

#[derive(Debug, Clone)]
enum Step {
    Want(u8, u32),
    Next,
    End(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_u8..6, 0_u32..40).prop_map(|(key, n)| Step::Want(key, n)),
        Just(Step::Next),
        Just(Step::Next),
        (0_usize..64).prop_map(Step::End),
    ];
    proptest::collection::vec(step, 0..300)
}

/// The key of a number: some at home, some elsewhere.
fn numbered(n: u8) -> Key {
    let cluster = if n < 3 {
        ClusterId::local()
    } else {
        ClusterId::remote("there")
    };
    key_in(cluster, &format!("k{n}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// What is kept beside the questions says the same as the questions.
    #[test]
    fn never_too_many_and_nobody_with_room_is_left_waiting(steps in steps()) {
        let mut line = Line::new(40);
        let mut running: Vec<(Key, QuestionId)> = Vec::new();
        for step in steps {
            match step {
                Step::Want(n, count) => {
                    let key = numbered(n);
                    line.want(&key, asked(&key.name, count));
                }
                Step::Next => if let Some(Next { key, question, .. }) = line.next(|_| true) {
                    prop_assert!(!running.contains(&(key.clone(), question.id.clone())));
                    running.push((key, question.id));
                },
                Step::End(which) if which < running.len() => {
                    let (key, id) = running.swap_remove(which);
                    prop_assert!(end(&mut line, &key, &id));
                }
                Step::End(_) => {}
            }
            let total = |cluster: &ClusterId| running.iter().filter(|(k, _)| k.cluster == *cluster).count();
            let busy = |key: &Key| running.iter().filter(|(k, _)| k == key).count();
            for n in 0..6 {
                let key = numbered(n);
                prop_assert!(busy(&key) <= AT_ONCE && total(&key.cluster) <= 40);
                let could = line.waiting.contains_key(&key) && busy(&key) < AT_ONCE;
                let room = line.rooms.get(&key.cluster);
                prop_assert_eq!(could, room.is_some_and(|room| room.ready.contains(&key)));
                prop_assert_eq!(room.map_or(0, |room| room.total), total(&key.cluster));
                if could && total(&key.cluster) < 40 {
                    prop_assert!(line.open.contains(&key.cluster));
                }
            }
            for cluster in &line.open {
                prop_assert!(total(cluster) < 40 && !line.rooms[cluster].ready.is_empty());
            }
            prop_assert_eq!(line.under_way().next().is_some(), !running.is_empty());
        }
    }
}
