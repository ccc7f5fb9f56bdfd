//! Why nothing is done in a member, in words.

use super::{Identity, Member, MemberState, Reach};
use crate::blocker::Blocker;

/// Words that programs match on.
pub mod reasons {
    /// A member does not answer.
    pub const UNREACHABLE: &str = "Unreachable";
    /// A member does not know our credentials.
    pub const CREDENTIALS_REFUSED: &str = "CredentialsRefused";
    /// There are no credentials that can be used.
    pub const CREDENTIALS_MISSING: &str = "CredentialsMissing";
    /// The uid by which a cluster is known may not be read.
    pub const CLUSTER_UNIDENTIFIED: &str = "ClusterUnidentified";
    /// The uid of a cluster has not been recorded yet.
    pub const CLUSTER_UNCONFIRMED: &str = "ClusterUnconfirmed";
    /// It is another cluster than the one that was recorded.
    pub const CLUSTER_REPLACED: &str = "ClusterReplaced";
    /// What is needed of a member has not been listed yet.
    pub const NOT_SYNCED: &str = "NotSynced";
    /// A member has more of a kind than is taken in.
    pub const TOO_MUCH: &str = "TooMuch";
}

impl MemberState {
    /// Why nothing is done in a member, if nothing is.
    pub fn blocker(&self, member: &Member) -> Option<Blocker> {
        let (reason, message, unblock) = self.words(member)?;
        Some(Blocker {
            reason,
            message,
            object: member.object.clone(),
            since: self.since,
            until: None,
            unblock,
        })
    }

    fn words(&self, member: &Member) -> Option<(&'static str, String, String)> {
        let (cluster, secret) = (&member.cluster, &member.credentials);
        let secret = format!("Secret {}/{}", secret.namespace, secret.name);
        let known = match self.contact {
            Some(at) => format!("what is known of it is of {at}"),
            None => "nothing is known of it".to_owned(),
        };
        let by_itself = "nobody has to do anything; it goes on by itself".to_owned();
        let (reason, message, unblock) = match &self.reach {
            Reach::NoCredentials(why) => (
                reasons::CREDENTIALS_MISSING,
                format!("cluster {cluster} cannot be reached without credentials: {why}"),
                format!(
                    "put credentials into entry {} of {secret}",
                    member.credentials.key
                ),
            ),
            Reach::Refused(why) => (
                reasons::CREDENTIALS_REFUSED,
                format!("cluster {cluster} does not know our credentials ({why}); {known}"),
                format!("put credentials that it knows into {secret}"),
            ),
            Reach::Unreachable(why) => (
                reasons::UNREACHABLE,
                format!("cluster {cluster} does not answer ({why}); {known}"),
                format!("see to it that {cluster} can be reached; then it goes on by itself"),
            ),
            Reach::Connecting => (
                reasons::NOT_SYNCED,
                format!("cluster {cluster} has not been reached yet"),
                by_itself,
            ),
            Reach::Reached => return self.unsure(member, by_itself),
        };
        Some((reason, message, unblock))
    }

    /// Why nothing is done in a member that answers.
    fn unsure(&self, member: &Member, by_itself: String) -> Option<(&'static str, String, String)> {
        let cluster = &member.cluster;
        let words = match (&self.identity, &member.confirmed) {
            (Identity::Forbidden(why), _) => (
                reasons::CLUSTER_UNIDENTIFIED,
                format!(
                    "which cluster {cluster} is may not be read ({why}), so nothing is written there"
                ),
                format!("grant our user of {cluster} the right to get namespaces kube-system"),
            ),
            (Identity::Uid(seen), Some(confirmed)) if seen != confirmed => (
                reasons::CLUSTER_REPLACED,
                format!(
                    "{cluster} is another cluster than before: the uid of its kube-system is {seen}, and was {confirmed}"
                ),
                format!(
                    "if that is right, annotate {} with {}={seen}",
                    member.object,
                    slipway_api::names::CONFIRM_CLUSTER
                ),
            ),
            (Identity::Uid(_), None) => (
                reasons::CLUSTER_UNCONFIRMED,
                format!("which cluster {cluster} is has not been recorded yet"),
                by_itself,
            ),
            (Identity::Unread, _) => (
                reasons::NOT_SYNCED,
                format!("which cluster {cluster} is has not been read yet"),
                by_itself,
            ),
            (Identity::Uid(_), Some(_)) if !self.synced && self.excess.is_some() => (
                reasons::TOO_MUCH,
                format!(
                    "there is more in cluster {cluster} than is taken in of one: {}",
                    self.excess.as_deref().unwrap_or_default()
                ),
                format!(
                    "remove from {cluster} what nobody needs there, or raise --member-objects; it is listed again within minutes"
                ),
            ),
            (Identity::Uid(_), Some(_)) if !self.synced => (
                reasons::NOT_SYNCED,
                format!("not everything in {cluster} has been listed yet"),
                by_itself,
            ),
            (Identity::Uid(_), Some(_)) => return None,
        };
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::*;
    use crate::identity::{ClusterId, ObjectRef, kinds};
    use crate::member::{Attention, Credentials};

    fn member(confirmed: Option<&str>) -> Member {
        Member {
            cluster: ClusterId::remote("east"),
            object: ObjectRef::local(kinds::CONFIG_MAP, "fleet", "east"),
            uid: "1".to_owned(),
            credentials: Credentials {
                namespace: "fleet".to_owned(),
                name: "east".to_owned(),
                key: "kubeconfig".to_owned(),
                version: "7".to_owned(),
            },
            labels: BTreeMap::new(),
            confirmed: confirmed.map(str::to_owned),
            attention: Attention::Close,
        }
    }

    fn state(reach: Reach, identity: Identity) -> MemberState {
        MemberState {
            reach,
            identity,
            synced: true,
            ..MemberState::new(Timestamp::UNIX_EPOCH)
        }
    }

    #[test]
    fn each_cause_has_its_word_and_a_member_that_is_well_has_none() {
        let reason = |state: &MemberState, confirmed| {
            let blocker = state.blocker(&member(confirmed));
            blocker.map_or("none", |blocker| blocker.reason)
        };
        let uid = |uid: &str| Identity::Uid(uid.to_owned());
        let why = || "because".to_owned();
        let well = state(Reach::Reached, uid("a"));
        assert_eq!(reason(&well, Some("a")), "none");
        assert_eq!(reason(&well, Some("b")), reasons::CLUSTER_REPLACED);
        assert_eq!(reason(&well, None), reasons::CLUSTER_UNCONFIRMED);
        let unlisted = MemberState {
            synced: false,
            ..well.clone()
        };
        assert_eq!(reason(&unlisted, Some("a")), reasons::NOT_SYNCED);
        let crowded = MemberState {
            excess: Some("gadgets: more than 5 objects".into()),
            ..unlisted
        };
        assert_eq!(reason(&crowded, Some("a")), reasons::TOO_MUCH);
        let blocker = crowded.blocker(&member(Some("a")));
        let message = blocker.map(|blocker| blocker.message).unwrap_or_default();
        assert!(
            message.contains("east") && message.contains("gadgets"),
            "{message}"
        );
        let hidden = state(Reach::Reached, Identity::Forbidden(why()));
        assert_eq!(reason(&hidden, Some("a")), reasons::CLUSTER_UNIDENTIFIED);
        for (reach, word) in [
            (Reach::Unreachable(why()), reasons::UNREACHABLE),
            (Reach::Refused(why()), reasons::CREDENTIALS_REFUSED),
            (Reach::NoCredentials(why()), reasons::CREDENTIALS_MISSING),
            (Reach::Connecting, reasons::NOT_SYNCED),
        ] {
            assert_eq!(reason(&state(reach, uid("a")), Some("a")), word);
        }
    }

    #[test]
    fn who_is_told_of_another_cluster_is_told_how_to_confirm_it() {
        let replaced = state(Reach::Reached, Identity::Uid("new".to_owned()));
        let blocker = replaced.blocker(&member(Some("old")));
        let unblock = blocker.map(|blocker| blocker.unblock).unwrap_or_default();
        assert!(
            unblock.ends_with("slipway.dev/confirm-cluster=new"),
            "{unblock}"
        );
    }

    #[test]
    fn a_person_goes_before_the_record_and_no_text_is_none() {
        use crate::member::confirmed;
        let said = |recorded, person| confirmed(recorded, person).unwrap_or_default();
        assert_eq!(said(Some("a"), None), "a");
        assert_eq!(said(Some("a"), Some("b")), "b");
        assert_eq!(said(Some("a"), Some("")), "a");
        assert_eq!(confirmed(Some(""), None), None);
    }
}
