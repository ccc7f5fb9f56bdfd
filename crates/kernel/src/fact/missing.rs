//! What is off because a right or a definition is missing.

use std::fmt;

use crate::identity::{ClusterId, Kind};

/// In which way a kind is not seen as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unseen {
    /// It is not defined, or there is no right to it and it can be done without: as if there were none.
    Absent,
    /// It is defined and there is no right to see it: there may be some.
    Forbidden,
    /// It is defined, and has not been listed yet, or cannot be read just now: there may be others than those known.
    OutOfSync,
    /// It is listed again and again instead of being watched: changes are seen late.
    Late,
}

/// What cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// To see objects as they are.
    See(Unseen),
    /// To list objects, where nothing is watched.
    List,
    /// To change objects.
    Patch,
    /// To change the statuses of objects.
    PatchStatus,
    /// To change objects so that a former leader cannot any more.
    Fence,
    /// To use the Lease of this name.
    Lead(String),
    /// To tell events.
    Tell,
}

/// Something that is off because a right or a definition is missing. Shown as metrics and logs name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// Where.
    pub cluster: ClusterId,
    /// Of which kind.
    pub kind: Kind,
    /// In which namespace; empty if it is missing in all that are looked at, or it is not known in which.
    pub namespace: String,
    /// What.
    pub right: Right,
}

impl Missing {
    /// A right to a kind, in any namespace.
    pub fn new(cluster: &ClusterId, kind: &Kind, right: Right) -> Self {
        Self {
            cluster: cluster.clone(),
            kind: kind.clone(),
            namespace: String::new(),
            right,
        }
    }

    /// A kind is not seen as it is.
    pub fn unseen(how: Unseen, cluster: &ClusterId, kind: &Kind) -> Self {
        Self::new(cluster, kind, Right::See(how))
    }

    /// The same, in this namespace only.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        let namespace = namespace.to_owned();
        Self { namespace, ..self }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = &self.kind.plural;
        match &self.right {
            Right::See(Unseen::Absent) => write!(f, "watch {plural}"),
            Right::See(Unseen::Forbidden) => write!(f, "see {plural}"),
            Right::See(Unseen::OutOfSync) => write!(f, "sync {plural}"),
            Right::See(Unseen::Late) => write!(f, "stream {plural}"),
            Right::List => write!(f, "list {plural}"),
            Right::Patch => write!(f, "patch {plural}"),
            Right::PatchStatus => write!(f, "patch {plural}/status"),
            Right::Fence => write!(f, "fence {plural}"),
            Right::Lead(name) => write!(f, "lease {name}"),
            Right::Tell => f.write_str(plural),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Missing, Right, Unseen};
    use crate::fact::Facts;
    use crate::identity::{ClusterId, Kind, kinds};

    #[test]
    fn each_is_shown_by_one_name() {
        let shown = |kind: &Kind, right| Missing::new(&ClusterId::local(), kind, right).to_string();
        let see = |how| shown(&kinds::POD, Right::See(how));
        assert_eq!(see(Unseen::Absent), "watch pods");
        assert_eq!(see(Unseen::Forbidden), "see pods");
        assert_eq!(see(Unseen::OutOfSync), "sync pods");
        assert_eq!(see(Unseen::Late), "stream pods");
        assert_eq!(
            shown(&kinds::STATEFUL_SET, Right::PatchStatus),
            "patch statefulsets/status"
        );
        assert_eq!(shown(&kinds::POD, Right::Fence), "fence pods");
        assert_eq!(shown(&kinds::SECRET, Right::List), "list secrets");
        assert_eq!(shown(&kinds::SECRET, Right::Patch), "patch secrets");
        assert_eq!(
            shown(&kinds::LEASE, Right::Lead("toy".to_owned())),
            "lease toy"
        );
        assert_eq!(shown(&kinds::EVENT, Right::Tell), "events");
    }

    #[test]
    fn what_is_off_in_one_cluster_is_on_in_another() {
        let (here, there) = (ClusterId::local(), ClusterId::remote("b"));
        let mut facts = Facts::default();
        let missing = Missing::unseen(Unseen::Forbidden, &there, &kinds::POD);
        facts.missing.insert(missing);
        assert!(facts.is_blind_to(&there, &kinds::POD));
        assert!(!facts.is_blind_to(&here, &kinds::POD));
        assert!(!facts.is_blind_to(&there, &kinds::SECRET));
        assert!(!facts.is_absent(&there, &kinds::POD));
    }

    #[test]
    fn what_is_off_in_one_namespace_is_on_in_another() {
        let here = ClusterId::local();
        let mut facts = Facts::default();
        let absent = Missing::unseen(Unseen::Absent, &here, &kinds::CONFIG_MAP);
        facts.missing.insert(absent.clone().within("one"));
        let is_absent_in =
            |facts: &Facts, place| facts.is_absent_in(&here, &kinds::CONFIG_MAP, place);
        assert!(is_absent_in(&facts, "one") && !is_absent_in(&facts, "other"));
        assert!(!facts.is_absent(&here, &kinds::CONFIG_MAP));
        facts.missing.insert(absent);
        assert!(is_absent_in(&facts, "one") && is_absent_in(&facts, "other"));
        assert!(facts.is_absent(&here, &kinds::CONFIG_MAP));
    }
}
