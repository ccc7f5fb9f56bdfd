//! Places that reviews take.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use jiff::Timestamp;
use slipway_kernel::Purpose;
use slipway_kernel::action::{Action, Target};
use slipway_kernel::admission::{Admission, Collection, Hold, Remarks, Verdict};
use slipway_kernel::capability::Lane;
use slipway_kernel::fact::Facts;
use slipway_kernel::identity::{ClusterId, Key, ObjectRef, kinds};
use slipway_kernel::store::Meta;

use super::stage::{Pods, Toy, operator, post, said};
use crate::execute::{LATE, UnconfirmedWrite};
use crate::queue::LaneId;
use crate::webhook::Admissions;

/// Lets a pod go if no other one is away.
fn one_place(uid: &str, facts: &Facts, until: Timestamp) -> (Admission, Remarks) {
    if !facts.evictions_allowed_here.is_empty() {
        let verdict = Verdict::refused(429, "the place is taken");
        return (Admission::Decide(verdict, Vec::new()), Remarks::default());
    }
    let remarks = Remarks {
        hold: Some(Hold {
            uid: uid.to_owned(),
            until,
            within: Collection {
                kind: kinds::POD,
                namespace: "mimir".to_owned(),
            },
        }),
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
    let held: Vec<String> = view.facts().evictions_allowed_here.into_keys().collect();
    assert_eq!(held, ["second"]);
}

/// What a rollout deletes and what a review lets go exclude each other: of the two the later one finds the number changed,
/// and looks again at what the other took.
#[tokio::test(start_paused = true)]
async fn a_deletion_and_a_review_do_not_take_one_place() {
    let operator = operator(Pods::silent());
    let shared = operator.shared();
    let now = shared.environment.now();
    let hold = |uid: &str| Hold {
        uid: uid.to_owned(),
        until: now,
        within: Collection {
            kind: kinds::POD,
            namespace: "mimir".to_owned(),
        },
    };
    let mut state = shared.lock();
    let planned = state.home.holds;
    assert_eq!(state.hold(planned, &hold("evicted")), Some(true));
    let late = state.hold_deletion(&ClusterId::local(), planned, "replaced", now);
    assert_eq!(late, None, "planned without the eviction");
    let looked = state.home.holds;
    assert!(
        state
            .hold_deletion(&ClusterId::local(), looked, "replaced", now)
            .is_some()
    );
    let late = state.hold(looked, &hold("other"));
    assert_eq!(late, None, "judged without the deletion");
    let looked = state.home.holds;
    let again = state.hold(looked, &hold("evicted"));
    assert_eq!(again, Some(false), "it is waited for once");
    assert!(state.home.facts.deletions.contains_key("replaced"));
    state.release_deletion(&ClusterId::local(), "replaced", None);
    assert!(state.home.facts.deletions.is_empty());
}

/// Whoever does not lead any more finds out nothing: a deletion that was not answered holds its place for as long as the API
/// server may work on it, not for ever.
#[tokio::test(start_paused = true)]
async fn evictions_go_on_after_a_leader_was_deposed_in_the_middle_of_a_deletion() {
    let operator = operator(Pods::silent());
    let shared = operator.shared();
    let now = shared.environment.now();
    let pod = ObjectRef::local(kinds::POD, "mimir", "a");
    let meta = Meta {
        uid: "unanswered".to_owned(),
        ..Meta::default()
    };
    let action = Action::Delete {
        target: Target::seen(pod.clone(), &meta),
        purpose: Purpose::new("replace"),
    };
    let key = Key {
        cluster: ClusterId::local(),
        controller: "toy",
        namespace: String::new(),
        name: String::new(),
    };
    let lane = LaneId::new(&key, Lane::Cluster);
    let mut state = shared.lock();
    let seen = state.home.holds;
    assert!(
        state
            .hold_deletion(&ClusterId::local(), seen, "unanswered", now)
            .is_some()
    );
    let doubts = state.home.unconfirmed.entry(lane.clone()).or_default();
    doubts.insert(pod, UnconfirmedWrite::about(&action, Vec::new()));
    state.bound_deletions(&ClusterId::local(), now, |of| of.controller == "other");
    let held = state.home.facts.deletions.get("unanswered").copied();
    assert_eq!(held, Some(Timestamp::MAX), "its leader is looking");
    state.rewind(&ClusterId::local(), now);
    let held = state.home.facts.deletions.get("unanswered").copied();
    assert_eq!(held, now.checked_add(LATE).ok(), "nobody is looking");
    assert!(state.home.unconfirmed.is_empty());
}
