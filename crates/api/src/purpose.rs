//! What our requests are for: the names that appear in metrics, logs and in the trace of each request.
//!
//! They are values and not texts: whoever looks for one in a trace names the constant, and a renamed one does not
//! compile.

use std::fmt;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Purpose(&'static str);

impl Purpose {
    /// The purpose of this name.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Its name, as metrics and traces show it.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Purposes of the runtime's own requests.
pub mod runtime {
    use super::Purpose;

    /// A Lease is taken, renewed or given up.
    pub const LEASE: Purpose = Purpose::new("lease");
    /// A new leader touches what an old one may still write to.
    pub const FENCE: Purpose = Purpose::new("fence");
    /// An Event is written.
    pub const EVENT: Purpose = Purpose::new("event");
    /// An object is read that we may or may not have changed.
    pub const READ: Purpose = Purpose::new("read");
    /// The status of an object is written.
    pub const STATUS: Purpose = Purpose::new("status");
    /// The API is asked what we have a right to.
    pub const RIGHTS: Purpose = Purpose::new("rights");
    /// The uid of a member's `kube-system` is read, by which a cluster is known.
    pub const IDENTITY: Purpose = Purpose::new("identity");
    /// The credentials of a member are read.
    pub const CREDENTIALS: Purpose = Purpose::new("credentials");
    /// A cluster is asked which kinds it serves.
    pub const DISCOVERY: Purpose = Purpose::new("discovery");
    /// Objects are listed for reviews that wait for a read of their own time.
    pub const REVIEW: Purpose = Purpose::new("review");
}

/// Purposes of restarts.
pub mod restarts {
    use super::Purpose;

    /// The first stamp, or a repaired one.
    pub const STAMP: Purpose = Purpose::new("stamp");
    /// A restart.
    pub const RESTART: Purpose = Purpose::new("restart");
    /// The status of the default criteria.
    pub const STATUS_MAP: Purpose = Purpose::new("status");
}

/// Purposes of zones.
pub mod zones {
    use super::Purpose;

    /// A pod is deleted, to come back with the zone's revision.
    pub const REPLACE: Purpose = Purpose::new("replace");
    /// A zone is scaled, or how its leader is scaled is read.
    pub const SCALE: Purpose = Purpose::new("scale");
    /// A zone is claimed.
    pub const CLAIM: Purpose = Purpose::new("claim");
    /// A claim is given up.
    pub const RELEASE: Purpose = Purpose::new("release");
    /// The pods that go are noted for the webhooks.
    pub const NOTE: Purpose = Purpose::new("note");
    /// It is put on a zone when it was last scaled down.
    pub const DOWNSCALED: Purpose = Purpose::new("downscaled");
    /// A lock that was left behind is taken over.
    pub const TAKE_OVER: Purpose = Purpose::new("take-over");
    /// A lock is taken away.
    pub const UNLOCK: Purpose = Purpose::new("unlock");
    /// The status of a group.
    pub const STATUS_MAP: Purpose = Purpose::new("status");
    /// A pod is told that it goes, and prepares for it.
    pub const PREPARE: Purpose = Purpose::new("prepare-downscale");
    /// A pod that was told that it goes is told that it stays.
    pub const CANCEL: Purpose = Purpose::new("cancel-downscale");
    /// The same, for what a webhook did not see through.
    pub const KEEP: Purpose = Purpose::new("keep-pod");
    /// The same, by the webhook itself.
    pub const UNDO: Purpose = Purpose::new("undo-prepare");
    /// What was let go already is read.
    pub const READ_RESERVATIONS: Purpose = Purpose::new("read-reservations");
    /// What is let go is written down.
    pub const WRITE_RESERVATION: Purpose = Purpose::new("write-reservation");
    /// The workload whose scale is to be changed is read.
    pub const READ_PARENT: Purpose = Purpose::new("read-parent");
    /// The zones of a group are read.
    pub const LIST_GROUP: Purpose = Purpose::new("list-group");
    /// The locks of downscales are read.
    pub const READ_LOCKS: Purpose = Purpose::new("read-locks");
    /// The same, after somebody else wrote them.
    pub const READ_LOCK_AGAIN: Purpose = Purpose::new("read-lock-again");
    /// The map of locks is made.
    pub const CREATE_TRACKER: Purpose = Purpose::new("create-tracker");
    /// A group is locked for a downscale.
    pub const LOCK: Purpose = Purpose::new("lock");
    /// A downscale that was let through is written down.
    pub const RECORD: Purpose = Purpose::new("record");
    /// The same on the zone itself, where no map may be kept.
    pub const ANNOTATE: Purpose = Purpose::new("annotate");
}

/// Purposes of canary.
pub mod canary {
    use super::Purpose;

    /// The serving copy is made, or becomes of a version.
    pub const SERVE: Purpose = Purpose::new("serve");
    /// A side gets so many replicas.
    pub const SIZE: Purpose = Purpose::new("size");
    /// Other capabilities are kept from a workload for longer, or no more.
    pub const CLAIM: Purpose = Purpose::new("claim");
    /// Traffic is divided.
    pub const ROUTE: Purpose = Purpose::new("route");
    /// A Service leads to a side.
    pub const LEAD: Purpose = Purpose::new("lead");
    /// The serving copy gets an autoscaler.
    pub const AUTOSCALE: Purpose = Purpose::new("autoscale");
    /// A `ConfigMap` or Secret is copied for the serving copy.
    pub const CONFIGURE: Purpose = Purpose::new("configure");
    /// A Canary is kept until the workload was given back.
    pub const GUARD: Purpose = Purpose::new("guard");
    /// The workload is given back.
    pub const GIVE_BACK: Purpose = Purpose::new("give-back");
    /// A Canary is let go.
    pub const LET_GO: Purpose = Purpose::new("let-go");
    /// A webhook is asked.
    pub const ASK: Purpose = Purpose::new("ask");
    /// Something is measured.
    pub const MEASURE: Purpose = Purpose::new("measure");
    /// How much was measured.
    pub const COUNT: Purpose = Purpose::new("count");
    /// What the serving version has is measured.
    pub const COMPARE: Purpose = Purpose::new("compare");
    /// People are told.
    pub const TELL: Purpose = Purpose::new("tell");
}

/// Purposes of the fleet and of its agents.
pub mod fleet {
    use super::Purpose;

    /// A finalizer is added.
    pub const GUARD: Purpose = Purpose::new("guard");
    /// A finalizer is taken away.
    pub const RELEASE: Purpose = Purpose::new("release");
    /// A revision is kept.
    pub const KEEP: Purpose = Purpose::new("keep-revision");
    /// A revision that nobody needs any more is deleted.
    pub const RETIRE: Purpose = Purpose::new("retire-revision");
    /// A cluster is assigned a revision.
    pub const ASSIGN: Purpose = Purpose::new("assign");
    /// A cluster loses an assignment.
    pub const UNASSIGN: Purpose = Purpose::new("unassign");
    /// A Secret with values is made.
    pub const VALUES: Purpose = Purpose::new("values");
    /// A Secret with values that nobody needs any more is deleted.
    pub const COLLECT: Purpose = Purpose::new("collect");
    /// A person's word has been followed, and is taken away.
    pub const FOLLOWED: Purpose = Purpose::new("word-followed");
    /// An assemblage whose cluster is gone is deleted.
    pub const FORGET: Purpose = Purpose::new("forget-cluster");
    /// A cluster is told what it is to have.
    pub const TELL: Purpose = Purpose::new("tell-cluster");
    /// A cluster is cleared of what it was told.
    pub const CLEAR: Purpose = Purpose::new("clear-cluster");
    /// A namespace is made.
    pub const NAMESPACE: Purpose = Purpose::new("namespace");
    /// A source is made.
    pub const SOURCE: Purpose = Purpose::new("source");
    /// A Kustomization is changed to what it is to apply.
    pub const SWITCH: Purpose = Purpose::new("switch");
    /// Something that was made for a sync is deleted.
    pub const PRUNE: Purpose = Purpose::new("prune");
}
