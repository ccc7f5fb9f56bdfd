//! Places that reviews take.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use slipway_kernel::admission::{Admission, Remarks, Verdict};
use slipway_kernel::fact::Facts;

use super::stage::{Pods, Toy, operator, post, said};
use crate::webhook::Admissions;

/// Lets a pod go if no other one is away.
fn one_place(uid: &str, facts: &Facts, until: Timestamp) -> (Admission, Remarks) {
    if !facts.holds.is_empty() {
        let verdict = Verdict::refused(429, "the place is taken");
        return (Admission::Decide(verdict, Vec::new()), Remarks::default());
    }
    let remarks = Remarks {
        hold: Some((uid.to_owned(), until)),
        ..Remarks::default()
    };
    (Admission::Decide(Verdict::allowed(), Vec::new()), remarks)
}

#[tokio::test(start_paused = true)]
async fn two_reviews_are_not_let_through_on_one_place() {
    let me: Arc<OnceLock<Admissions>> = Arc::default();
    let looks = Arc::new(AtomicU32::new(0));
    let (own, seen) = (me.clone(), looks.clone());
    let toy = Toy::new("/admission/toy", move |review, facts| {
        let until = Timestamp::from_second(60).unwrap();
        let decided = one_place(&review.uid, facts, until);
        // While the first one is being judged, a second one is, from beginning to end.
        if review.uid == "first" && seen.fetch_add(1, Ordering::SeqCst) == 0 {
            let second = own.get().unwrap().answer(post("/admission/toy", "second"));
            let second = said(&second.now_or_never().expect("nobody waits for a judgement"));
            assert_eq!(second["response"]["allowed"], true);
        }
        decided
    });
    let operator = operator(Pods::silent()).admitting(vec![Arc::new(toy)]);
    let (admissions, view) = (operator.admissions(), operator.view());
    me.set(admissions.clone()).unwrap();
    let first = said(&admissions.answer(post("/admission/toy", "first")).await);
    assert_eq!(first["response"]["allowed"], false);
    assert_eq!(looks.load(Ordering::SeqCst), 2, "it is looked at again");
    let held: Vec<String> = view.facts().holds.into_keys().collect();
    assert_eq!(held, ["second"]);
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_over_is_forgotten() {
    let toy = Toy::new("/admission/toy", |review, facts| {
        let until = Timestamp::from_second(if review.uid == "late" { 600 } else { 60 }).unwrap();
        let mut now = facts.clone();
        if review.uid == "late" {
            now.holds.clear();
        }
        one_place(&review.uid, &now, until)
    });
    let operator = operator(Pods::silent()).admitting(vec![Arc::new(toy)]);
    let (admissions, view) = (operator.admissions(), operator.view());
    said(&admissions.answer(post("/admission/toy", "early")).await);
    assert!(view.facts().holds.contains_key("early"));
    tokio::time::sleep(Duration::from_secs(61)).await;
    said(&admissions.answer(post("/admission/toy", "late")).await);
    let held: Vec<String> = view.facts().holds.into_keys().collect();
    assert_eq!(held, ["late"]);
}
