//! Where each cluster stands.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_bindings::revision::template_of;
use slipway_kernel::capability::show::count;

use super::{Assignment, Hold, Move};
use crate::observe::{Cluster, Entry, Refused, Revision, Strategy, Wanted, World};
use crate::order;
use crate::reasons::Reason;

/// Where a cluster stands with a Rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is being deleted, and does not count.
    Going,
    /// It is no longer selected, and still has an assignment of ours.
    Deselected,
    /// Somebody else has an assignment of this name there.
    Foreign,
    /// It has no assignment.
    New,
    /// Its assignment is not what it should be.
    Outdated,
    /// Its assignment is what it should be.
    Current,
}

/// A cluster, and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is known of it.
    pub cluster: &'a Cluster,
    /// Where it stands.
    pub standing: Standing,
    /// Whether it came lately, and is on its way with what had proved itself: it has never been ready.
    pub has_joined: bool,
    /// Whether it is written down that it came lately.
    pub is_told: bool,
    /// When it counts as ready with what it should have: none while it is not.
    settled: Option<Timestamp>,
    now: Timestamp,
}

impl<'a> Seen<'a> {
    fn of(
        (name, cluster): (&'a str, &'a Cluster),
        wanted: &Wanted,
        joined: &[String],
        now: Timestamp,
    ) -> Option<Self> {
        let ours = cluster.entry.as_ref().filter(|entry| entry.is_ours);
        let standing = match (&cluster.entry, cluster.is_selected) {
            (None, false) => return None,
            (Some(entry), false) if !entry.is_ours => return None,
            _ if cluster.is_deleting => Standing::Going,
            (Some(_), false) => Standing::Deselected,
            (None, true) => Standing::New,
            (Some(entry), true) if !entry.is_ours => Standing::Foreign,
            (Some(entry), true) => {
                let known = cluster.wanted.known();
                if known.is_some() && entry.revision.as_deref() == known {
                    Standing::Current
                } else {
                    Standing::Outdated
                }
            }
        };
        let since = ours.and_then(Entry::ready_since);
        let settled = since.filter(|_| standing == Standing::Current && cluster.is_reachable);
        let is_on_its_way = ours.is_some() && since.is_none();
        let is_told = joined.iter().any(|one| one == name);
        Some(Self {
            name,
            cluster,
            standing,
            has_joined: is_on_its_way && is_told,
            is_told,
            settled: settled.map(|since| wanted.settles(since)),
            now,
        })
    }

    /// Whether the Rollout is for it.
    pub fn is_selected(&self) -> bool {
        !matches!(self.standing, Standing::Going | Standing::Deselected)
    }

    /// The assignment that we made.
    pub fn entry(&self) -> Option<&'a Entry> {
        self.cluster.entry.as_ref().filter(|entry| entry.is_ours)
    }

    /// The revision of the template of its assignment.
    pub fn template(&self) -> Option<&'a str> {
        self.entry()?.revision.as_deref().map(template_of)
    }

    /// Whether it has been ready with what it should have for long enough.
    pub fn is_settled(&self) -> bool {
        self.settled.is_some_and(|at| at <= self.now)
    }

    /// Whether it is ready with what it has, whatever that is. One without an assignment is.
    pub fn is_ready(&self) -> bool {
        self.cluster.is_reachable && self.entry().is_none_or(Entry::is_ready)
    }

    /// Whether it is unready: with what it should have, or with what it had.
    pub fn is_unready(&self) -> bool {
        match self.standing {
            Standing::Current => !self.is_settled(),
            Standing::Outdated => !self.is_ready(),
            _ => false,
        }
    }

    /// Whether what it has failed there: then another version costs nothing, and may be what mends it. Not so one that is on its
    /// way to being ready.
    pub fn is_ill(&self) -> bool {
        self.cluster.is_reachable && self.entry().is_some_and(Entry::has_failed)
    }

    /// Whether it has joined, and is on its way to being ready.
    pub fn is_coming_up(&self) -> bool {
        self.has_joined && !self.is_ill()
    }

    /// Whether what its bindings refer to has not been read yet.
    fn is_unresolved(&self) -> bool {
        let unread = Reason::BindingUnread.as_str();
        matches!(&self.cluster.wanted, Revision::Blocked { reason, .. } if reason == unread)
    }

    /// Whether it could be given what it should have.
    pub fn can_move(&self) -> bool {
        matches!(self.standing, Standing::New | Standing::Outdated)
            && self.can_be_written()
            && self.cluster.wanted.known().is_some()
    }

    /// Whether an assignment could be written for it: what the API refused is tried again in its time, and takes nobody's
    /// place before.
    pub fn can_be_written(&self) -> bool {
        self.cluster.is_initialized && self.retried_at().is_none()
    }

    /// What the API refused to have written, where that still is to be written.
    pub fn refused(&self) -> Option<&'a Refused> {
        let is_behind = matches!(self.standing, Standing::New | Standing::Outdated);
        self.cluster.refused.as_ref().filter(|_| is_behind)
    }

    /// When what the API refused is tried again, if that is later.
    fn retried_at(&self) -> Option<Timestamp> {
        let refused = self.refused()?;
        (refused.retry_at > self.now).then_some(refused.retry_at)
    }

    /// When it counts as ready with what it should have, where it is and does not yet.
    pub fn settles_at(&self) -> Option<Timestamp> {
        self.settled.filter(|at| *at > self.now)
    }

    /// What it should have, as an assignment.
    pub fn wanted(&self) -> Option<Assignment> {
        Some(self.assignment(self.cluster.wanted.known()?))
    }

    /// What has proved itself, where that is known for this cluster: of the template `stable`.
    pub fn proved(&self, stable: &str, target: &str) -> Option<Assignment> {
        let revision = if stable == target {
            Some(&self.cluster.wanted)
        } else {
            self.cluster.stable.as_ref()
        };
        Some(self.assignment(revision?.known()?))
    }

    /// An assignment of this revision.
    pub fn assignment(&self, revision: &str) -> Assignment {
        Assignment {
            cluster: self.name.to_owned(),
            revision: revision.to_owned(),
            kind: match self.entry() {
                Some(_) => Move::Switch,
                None => Move::First,
            },
        }
    }

    /// Why it cannot be given anything, whatever the strategy.
    pub fn hold(&self) -> Option<Hold> {
        if !self.is_selected() {
            return None;
        }
        let hold = match (self.standing, &self.cluster.wanted) {
            (Standing::Foreign, _) => {
                let message =
                    "somebody else has an assignment of this name in the cluster; it is left alone";
                Hold::new(
                    Reason::OwnedByOther,
                    message,
                    "whoever takes that assignment away, or renames the Rollout",
                )
            }
            (_, Revision::Blocked { reason, message }) => {
                let reason = Reason::of(reason).unwrap_or(Reason::InvalidBinding);
                Hold::new(
                    reason,
                    message.clone(),
                    "whoever mends what is missing; other clusters go on",
                )
            }
            _ if self.refused().is_some() => {
                let message = self.refused().map(|refused| refused.message.clone());
                Hold::new(
                    Reason::RefusedByApi,
                    message.unwrap_or_default(),
                    "whoever mends what the API refuses; it is tried again by itself",
                )
                .until(self.retried_at())
            }
            (Standing::New, _) if !self.cluster.is_initialized => {
                let message = "the control plane of the cluster has not been there yet";
                Hold::new(
                    Reason::ClusterNotReady,
                    message,
                    "the cluster, when its control plane is initialized",
                )
            }
            _ => return None,
        };
        Some(hold.at(self.name))
    }
}

/// All clusters of a Rollout, and where they stand.
#[derive(Debug, Clone)]
pub struct Survey<'a> {
    seen: BTreeMap<&'a str, Seen<'a>>,
    rollout: &'a str,
    target: &'a str,
}

impl<'a> Survey<'a> {
    /// Looks at all clusters.
    pub fn of(world: &'a World, wanted: &'a Wanted, now: Timestamp) -> Self {
        let seen = world.clusters.iter();
        let joined = &world.rollout.status.joined;
        let seen = seen.filter_map(|one| Seen::of((one.0, one.1), wanted, joined, now));
        Self {
            seen: seen.map(|one| (one.name, one)).collect(),
            rollout: &world.rollout.name,
            target: &wanted.target,
        }
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Seen<'a>> {
        self.seen.values()
    }

    /// Those that the Rollout is for.
    pub fn selected(&self) -> impl Iterator<Item = &Seen<'a>> {
        self.all().filter(|seen| seen.is_selected())
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Seen<'a>> {
        self.seen.get(name)
    }

    /// The revision of the template.
    pub fn target(&self) -> &'a str {
        self.target
    }

    /// Those that came lately, and are on their way, or about to be.
    pub(super) fn joined(&self) -> Vec<String> {
        let comes = |seen: &&Seen<'_>| seen.is_told && seen.standing == Standing::New;
        let joined = self.selected();
        let joined = joined.filter(|seen| seen.has_joined || comes(seen));
        joined.map(|seen| seen.name.to_owned()).collect()
    }

    /// How many the Rollout is for.
    pub fn total(&self) -> usize {
        self.selected().count()
    }

    /// Those that are to be looked at, in the order in which they are changed.
    pub fn in_order<'b>(&'b self, keep: impl Fn(&Seen<'a>) -> bool) -> Vec<&'b Seen<'a>> {
        let mut chosen: Vec<&Seen<'a>> = self.selected().filter(|seen| keep(seen)).collect();
        chosen.sort_by_cached_key(|seen| order::place(self.rollout, seen.name));
        chosen
    }

    /// Whether every cluster that can have the target is ready with it, and at least one is: then it has proved itself, even
    /// if nobody remembers how it came there.
    pub fn is_settled(&self) -> bool {
        let is_settled = |seen: &Seen<'a>| match seen.standing {
            Standing::Current => seen.is_settled(),
            Standing::Foreign => true,
            _ => !seen.can_move(),
        };
        let mut all = self.selected();
        all.all(is_settled) && self.selected().any(Seen::is_settled)
    }

    /// Who is waited for where nothing is in the way: the first cluster that is not ready with what it has.
    pub(super) fn awaited(&self, strategy: Strategy) -> Option<Hold> {
        let is_unready = |seen: &Seen<'a>| match strategy {
            Strategy::External => seen.entry().is_some() && !seen.is_ready(),
            Strategy::Replace | Strategy::Incremental => seen.is_unready(),
        };
        let unready = self.in_order(is_unready);
        let first = unready.first()?;
        let (reason, what) = if first.cluster.is_reachable {
            (
                Reason::ClusterUnready,
                "the cluster is not ready yet".to_owned(),
            )
        } else {
            let because = first.cluster.because();
            (
                Reason::Unreachable,
                format!("the cluster cannot be reached{because}"),
            )
        };
        let more = match unready.len() {
            1 => String::new(),
            all => format!("; {} besides are like it", count(all - 1, "cluster")),
        };
        let hold = Hold::new(
            reason,
            format!("{what}{more}"),
            "the clusters, when they are ready",
        );
        Some(hold.until(first.settles_at()).at(first.name))
    }

    /// Who has not been looked at yet since we began: what was told of it before may be true no more.
    pub(super) fn unread(&self) -> Option<Hold> {
        let unread = self.in_order(|seen| seen.cluster.is_reachable && !seen.cluster.is_seen);
        let first = unread.first()?;
        let message = format!(
            "{} not been looked at yet since the operator started",
            match unread.len() {
                1 => "1 cluster has".to_owned(),
                all => format!("{all} clusters have"),
            }
        );
        let hold = Hold::new(
            Reason::ClusterUnread,
            message,
            "nobody has to do anything; it goes on by itself",
        );
        Some(hold.at(first.name))
    }

    /// Somebody whose bindings have not been read yet, so that what it is to have is not known: whether a change is over is not either.
    pub(super) fn unresolved(&self) -> Option<Hold> {
        let first = *self.in_order(Seen::is_unresolved).first()?;
        let hold = Hold::new(
            Reason::BindingUnread,
            "what bindings refer to has not been read yet".to_owned(),
            "nobody has to do anything; it goes on by itself",
        );
        Some(hold.at(first.name))
    }

    /// When the next write that the API refused is tried again.
    pub fn next_retry(&self) -> Option<Timestamp> {
        self.selected().filter_map(Seen::retried_at).min()
    }

    /// When the next cluster has been ready for long enough.
    pub fn next_to_settle(&self) -> Option<Timestamp> {
        let settles = self.selected().filter(|seen| !seen.is_settled());
        settles.filter_map(|seen| seen.settled).min()
    }
}
