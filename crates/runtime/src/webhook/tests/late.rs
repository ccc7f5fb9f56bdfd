//! What happens when time is up, and after it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use slipway_kernel::Purpose;
use slipway_kernel::action::Action;
use slipway_kernel::admission::{Admission, Remarks, Review};
use slipway_kernel::fact::{Question, QuestionId, Request};
use tokio::time::Instant;

use super::stage::{Pods, Toy, allowed, operator, post, questions, said};

fn unlock(review: &Review) -> Action {
    let id = QuestionId {
        controller: "toy",
        uid: review.uid.clone(),
        purpose: Purpose::new("unlock"),
        attempt: 0,
        due: jiff::Timestamp::UNIX_EPOCH,
    };
    let request = Request::Api {
        method: "PUT",
        path: "/api/v1/namespaces/a/configmaps/locks".to_owned(),
        body: Value::Null,
    };
    Action::Ask(Question::new(id, request, Duration::from_secs(5)))
}

fn preparing(pods: u32) -> Toy {
    Toy::new("/admission/toy", move |review, facts| {
        if review.uid == "quick" || facts.answers.len() == pods as usize {
            return allowed();
        }
        (
            Admission::Need(questions(review, "prepare", 0..pods)),
            Remarks::default(),
        )
    })
    .undoing(move |review| {
        let mut undo = questions(review, "undo", 0..pods);
        undo.push(unlock(review));
        undo
    })
}

async fn end(stop: tokio::sync::oneshot::Receiver<()>) {
    let _ = stop.await;
}

#[tokio::test(start_paused = true)]
async fn at_nine_tenths_of_the_time_the_last_word_is_said_and_what_was_begun_is_undone_after_it() {
    let pods = Pods::silent().failing(3);
    let operator = operator(pods.clone()).admitting(vec![Arc::new(preparing(2))]);
    let admissions = operator.admissions();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(operator.run(end(stopped)));
    let began = Instant::now();
    let answer = said(
        &admissions
            .answer(post("/admission/toy?timeout=5s", "a"))
            .await,
    );
    assert_eq!(answer["response"]["status"]["message"], "time is up");
    assert_eq!(began.elapsed(), Duration::from_millis(4_500), "W6");
    let posts = pods.heard().len();
    assert_eq!(posts, 2, "nothing is undone before the answer");
    tokio::time::sleep(Duration::from_mins(1)).await;
    let heard: Vec<(u128, String)> = pods
        .heard()
        .split_off(posts)
        .into_iter()
        .map(|(at, what)| (at.as_millis(), what))
        .collect();
    let delete = |at: u128, pod: u32| (at, format!("DELETE http://pod-{pod}/prepare"));
    assert_eq!(
        heard,
        [
            delete(4_500, 0),
            delete(4_500, 1),
            delete(5_500, 0),
            delete(5_500, 1),
            delete(7_500, 0),
            (
                7_500,
                "PUT /api/v1/namespaces/a/configmaps/locks".to_owned()
            ),
        ],
        "in order, each until it is done, and no oftener"
    );
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_newer_review_asks_of_a_pod_is_not_undone_by_an_older_one() {
    let pods = Pods::silent().failing(1_000);
    let operator = operator(pods.clone()).admitting(vec![Arc::new(preparing(1))]);
    let admissions = operator.admissions();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(operator.run(end(stopped)));
    let old = said(
        &admissions
            .answer(post("/admission/toy?timeout=5s", "old"))
            .await,
    );
    assert_eq!(old["response"]["allowed"], false);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(pods.heard().len() > 4, "it is tried again and again");
    let newer =
        tokio::spawn(async move { said(&admissions.answer(post("/admission/toy", "new")).await) });
    tokio::time::sleep(Duration::from_mins(1)).await;
    let heard = pods.heard();
    let post = heard.iter().rposition(|(_, what)| what.starts_with("POST"));
    let after = &heard[post.unwrap() + 1..];
    assert!(
        after.iter().all(|(_, what)| !what.starts_with("DELETE")),
        "never during this time: {after:?}"
    );
    newer.await.unwrap();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_ends_tries_to_undo_what_is_left() {
    let pods = Pods::silent().failing(2);
    let operator = operator(pods.clone()).admitting(vec![Arc::new(preparing(1))]);
    let admissions = operator.admissions();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(operator.run(end(stopped)));
    said(
        &admissions
            .answer(post("/admission/toy?timeout=5s", "a"))
            .await,
    );
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    let last = pods.heard().pop().map(|(_, what)| what);
    assert_eq!(
        last.as_deref(),
        Some("PUT /api/v1/namespaces/a/configmaps/locks")
    );
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_a_verdict_is_done_before_the_answer() {
    let toy = Toy::new("/admission/toy", |review, _| {
        let (admission, remarks) = allowed();
        let Admission::Decide(verdict, _) = admission else {
            return (admission, remarks);
        };
        (Admission::Decide(verdict, vec![unlock(review)]), remarks)
    });
    let pods = Pods::silent();
    let admissions = operator(pods.clone())
        .admitting(vec![Arc::new(toy)])
        .admissions();
    said(&admissions.answer(post("/admission/toy", "a")).await);
    assert_eq!(pods.heard().len(), 1);
}
