//! What follows from what a member says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::identity::{ClusterId, ObjectRef, kinds};
use slipway_kernel::member::{Attention, Credentials, Discovery, Member};

use super::*;
use crate::state::Asked;

fn member() -> Membership {
    let name = "north";
    let member = Arc::new(Member {
        cluster: ClusterId::remote(name),
        object: ObjectRef::local(kinds::CONFIG_MAP, "default", name),
        uid: "object".to_owned(),
        credentials: Credentials {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            key: "token".to_owned(),
            version: "1".to_owned(),
        },
        labels: BTreeMap::new(),
        confirmed: None,
        attention: Attention::Close,
    });
    let named = [("herd", member.clone())].into();
    Membership::new(member, named, Timestamp::UNIX_EPOCH)
}

/// A member says something that it was asked now.
fn say(member: &mut Membership, said: Said) -> Turn {
    let doubts = member.doubts.last();
    hear(member, doubts, said, Timestamp::UNIX_EPOCH)
}

/// Whether what a member says last, after all of these, is said by another cluster.
fn is_other(member: &mut Membership, said: impl IntoIterator<Item = Said>) -> bool {
    let turns = said.into_iter().map(|said| say(member, said));
    turns.last().is_some_and(|turn| turn.is_other)
}

fn uid(text: &str) -> Said {
    Said::Uid(text.to_owned())
}

#[test]
fn another_cluster_is_noticed_whatever_was_said_in_between() {
    let betweens = [
        Said::Forbidden("no right".to_owned()),
        Said::Refused("nobody".to_owned()),
        Said::Failed("busy".to_owned()),
        Said::Silent("no answer".to_owned()),
    ];
    assert!(!is_other(&mut member(), [uid("a")]));
    assert!(is_other(&mut member(), [uid("a"), uid("b")]));
    for between in betweens {
        let said = |last: &str| [uid("a"), between.clone(), uid(last)];
        assert!(is_other(&mut member(), said("b")), "{between:?}");
        assert!(!is_other(&mut member(), said("a")), "{between:?}");
    }
}

#[test]
fn what_another_cluster_serves_is_not_what_the_former_one_did() {
    let mut member = member();
    say(&mut member, uid("a"));
    member.state.discovery = Some(Arc::new(Discovery::new(Vec::new())));
    say(&mut member, uid("a"));
    assert!(member.state.discovery.is_some());
    say(&mut member, uid("b"));
    assert!(member.state.discovery.is_none());
}

#[test]
fn only_one_that_did_not_answer_is_listed_anew() {
    let returns = |said: Said| {
        let mut member = member();
        say(&mut member, said);
        say(&mut member, uid("a")).returns.is_some()
    };
    assert!(returns(Said::Silent("no answer".to_owned())));
    assert!(!returns(Said::Failed("busy".to_owned())));
    assert!(!returns(Said::Refused("nobody".to_owned())));
}

/// Whoever mends the first one has to hear of the second.
#[test]
fn why_a_member_cannot_be_reached_is_the_last_reason_and_since_when_is_the_first_time() {
    let mut member = member();
    let at = |second| Timestamp::from_second(second).unwrap_or_default();
    let mut turned = |reach: Reach, second| {
        turn(&mut member, reach, at(second));
        (member.state.reach.clone(), member.state.since)
    };
    let missing = |why: &str| Reach::NoCredentials(why.to_owned());
    for (why, second) in [("there is none", 1), ("it has an exec", 2)] {
        assert_eq!(turned(missing(why), second), (missing(why), at(1)));
    }
    assert_eq!(turned(Reach::Reached, 3), (Reach::Reached, at(3)));
}

/// An answer that was on its way when versions ran backwards may be that of the cluster that was there before.
#[test]
fn an_answer_ends_no_doubt_that_has_arisen_since_it_was_asked_for() {
    let mut member = member();
    let now = Timestamp::UNIX_EPOCH;
    let before = member.doubts.last();
    member.distrust();
    hear(&mut member, before, uid("a"), now);
    assert!(member.is_distrusted() && member.checked.is_none());
    let between = member.doubts.last();
    member.doubt();
    hear(&mut member, between, uid("a"), now);
    assert!(!member.is_distrusted(), "it was asked after that");
    assert!(member.checked.is_none(), "and before the last one");
    say(&mut member, uid("a"));
    assert!(member.checked.is_some());
}

/// What is told over a connection that was made since, or while there is a doubt, may be told by whoever has taken its place.
#[test]
fn what_a_member_lists_is_its_own_once_it_has_said_over_that_connection_which_cluster_it_is() {
    let mut member = member();
    member.over = Some(1);
    say(&mut member, uid("a"));
    assert!(!member.suspect(Some(1)));
    for told in [Some(2), None] {
        assert!(member.suspect(told), "{told:?}");
        assert!(member.is_distrusted());
        say(&mut member, uid("a"));
        assert!(!member.is_distrusted() && !member.suspect(Some(1)));
    }
    let before = member.doubts.last();
    member.doubt();
    hear(&mut member, before, uid("a"), Timestamp::UNIX_EPOCH);
    assert!(member.suspect(Some(1)), "it was asked before the doubt");
    // One that does not say which it is has been asked as well.
    say(&mut member, Said::Forbidden("no right".to_owned()));
    assert!(!member.suspect(Some(1)));
}

/// Whoever writes has asked, and hears it before the loop does.
#[test]
fn what_it_has_said_to_one_who_writes_counts_at_once_unless_there_is_a_doubt() {
    let mut member = member();
    let confirmed = Member {
        confirmed: Some("a".to_owned()),
        ..member.member.as_ref().clone()
    };
    member.named = [("herd", Arc::new(confirmed))].into();
    let asked = |member: &Membership| Asked {
        run: member.run,
        doubts: member.doubts.last(),
        over: Some(1),
    };
    let is_fresh = |member: &Membership| member.is_fresh(Duration::from_secs(10), Some(1));
    let first = asked(&member);
    member.vouch("herd", &first);
    assert!(!is_fresh(&member), "the loop has heard nothing of it");
    say(&mut member, uid("a"));
    member.state.synced = true;
    member.doubt();
    member.vouch("herd", &first);
    assert!(!is_fresh(&member), "it was asked before the doubt");
    let second = asked(&member);
    member.vouch("stranger", &second);
    assert!(!is_fresh(&member));
    member.vouch("herd", &second);
    assert!(is_fresh(&member) && !member.is_fresh(Duration::from_secs(10), Some(2)));
}

/// Two capabilities name one cluster, each by an object of its own. What a person says of one object says nothing of the other.
#[test]
fn each_capability_writes_only_where_its_own_object_was_confirmed() {
    let mut member = member();
    let confirmed = |uid: &str| {
        Arc::new(Member {
            confirmed: Some(uid.to_owned()),
            ..member.member.as_ref().clone()
        })
    };
    let named: BTreeMap<_, _> = [("flock", confirmed("b")), ("herd", confirmed("a"))].into();
    assert!(member.is_confirmed_otherwise(&named));
    member.named = named;
    say(&mut member, uid("a"));
    member.state.synced = true;
    assert!(member.is_open_to("herd") && !member.is_open_to("flock"));
    assert!(!member.is_open_to("stranger"));
    assert_eq!(member.opened(), ["herd"].into());
    assert_eq!(member.opened(), [].into(), "it was open before");
    assert!(!member.is_replaced(), "one of them works there");
    let blocker = member.blocker().map(|blocker| blocker.reason);
    assert_eq!(
        blocker,
        Some(slipway_kernel::member::reasons::CLUSTER_REPLACED)
    );
    say(&mut member, uid("c"));
    assert!(member.is_replaced());
}
