//! Clusters that a capability works on besides the one that the operator runs in: its members.
//!
//! A member is meant by an object at home, which names its credentials and carries the identity that was recorded: the uid of the
//! `kube-system` namespace. What is known of its state is a fact ([`MemberState`]). Nothing is written into a cluster whose uid
//! was not read, or is not the one that was recorded or confirmed by a person.

mod discovery;
mod waits;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::identity::{ClusterId, ObjectRef};

pub use discovery::Discovery;
pub use waits::reasons;

/// A cluster, as an object at home means it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What it is called in keys, stores and facts. Never home.
    pub cluster: ClusterId,
    /// The object at home that means it.
    pub object: ObjectRef,
    /// The uid of that object: another object of the same name is another member.
    pub uid: String,
    /// How it is reached.
    pub credentials: Credentials,
    /// By which capabilities choose it.
    pub labels: BTreeMap<String, String>,
    /// The uid of the `kube-system` namespace of the cluster that may be written to; none while none is recorded. See
    /// [`confirmed`].
    pub confirmed: Option<String>,
    /// How closely it is looked at.
    pub attention: Attention,
}

/// Where the credentials of a member are. They are read by the runtime, and in no store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The namespace of the Secret.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The entry of its data.
    pub key: String,
    /// Whatever changes when the Secret does, such as its resourceVersion: then it is read again.
    pub version: String,
}

/// How closely a member is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Attention {
    /// Something is under way there: it is watched.
    #[default]
    Close,
    /// Nothing is: it is looked at as cheaply as the operator's settings say.
    Quiet,
}

/// The uid of the cluster that may be written to: the one that a person confirmed, or else the one that was recorded.
pub fn confirmed(recorded: Option<&str>, by_a_person: Option<&str>) -> Option<String> {
    let known = |uid: &&str| !uid.is_empty();
    let person = by_a_person.filter(known);
    person.or(recorded.filter(known)).map(str::to_owned)
}

/// Whether a member can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It has not been tried yet.
    Connecting,
    /// It answers.
    Reached,
    /// It does not answer, or answers that it fails; how.
    Unreachable(String),
    /// It does not know our credentials; what it says.
    Refused(String),
    /// There are no credentials that can be used; why.
    NoCredentials(String),
}

/// Which cluster a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// It has not been read.
    Unread,
    /// It may not be read; what the API says.
    Forbidden(String),
    /// The uid of its `kube-system` namespace.
    Uid(String),
}

/// What is known of a member besides its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberState {
    /// Whether it can be reached.
    pub reach: Reach,
    /// Since when that is so.
    pub since: Timestamp,
    /// When it last answered: what is known of its objects is not newer while it cannot be reached. None if it never has.
    pub contact: Option<Timestamp>,
    /// Whether all that is needed of it has been listed, and it can be reached. Nothing is decided before.
    pub synced: bool,
    /// Since when that is not so, though it may answer: whoever reads credentials anew lists anew. None while it is so.
    pub unsynced: Option<Timestamp>,
    /// What it has more of than is taken in, in words, if it does: that is why not all of it is known.
    pub excess: Option<Arc<str>>,
    /// Which cluster it is.
    pub identity: Identity,
    /// Which kinds it serves, where a capability wants to know and it is known.
    pub discovery: Option<Arc<Discovery>>,
}

impl MemberState {
    /// A member that has not been tried yet.
    pub fn new(since: Timestamp) -> Self {
        Self {
            reach: Reach::Connecting,
            since,
            contact: None,
            synced: false,
            unsynced: Some(since),
            excess: None,
            identity: Identity::Unread,
            discovery: None,
        }
    }

    /// The uid by which it is known, if it was read.
    pub fn uid(&self) -> Option<&str> {
        match &self.identity {
            Identity::Uid(uid) => Some(uid),
            Identity::Unread | Identity::Forbidden(_) => None,
        }
    }

    /// Whether it answers.
    pub fn is_reached(&self) -> bool {
        self.reach == Reach::Reached
    }

    /// Whether it is the cluster that may be written to.
    pub fn is_confirmed(&self, member: &Member) -> bool {
        self.uid().is_some() && self.uid() == member.confirmed.as_deref()
    }

    /// Whether it is another cluster than the one that may be written to.
    pub fn is_replaced(&self, member: &Member) -> bool {
        let uids = self.uid().zip(member.confirmed.as_deref());
        uids.is_some_and(|(seen, confirmed)| seen != confirmed)
    }
}
