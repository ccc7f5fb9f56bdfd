//! Pieces of work, by name: those of the control plane are about one object each, those of a member about one assemblage there.

use slipway_kernel::{ClusterId, Key, Kind};

use crate::kinds;

/// Kinds whose objects are work in the control plane.
const WORKED_ON: [Kind; 5] = [
    kinds::ROLLOUT,
    kinds::MODULE,
    kinds::BOOTSTRAP_MODULE,
    kinds::REMOTE_ASSEMBLAGE,
    kinds::ASSEMBLAGE,
];

/// The work of an object in the control plane.
pub(crate) fn at_home(kind: &Kind, namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: crate::NAME,
        namespace: namespace.to_owned(),
        name: format!("{}/{name}", kind.kind),
    }
}

/// The kind and the name of the object that some work is about.
pub(crate) fn object(key: &Key) -> Option<(Kind, &str)> {
    let (kind, name) = key.name.split_once('/')?;
    let kind = WORKED_ON.into_iter().find(|known| known.kind == kind)?;
    Some((kind, name))
}

/// The work of a `RemoteAssemblage` in its cluster.
pub(crate) fn over_there(cluster: &ClusterId, namespace: &str, name: &str) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: crate::NAME,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// The work of the agent: one assemblage.
pub(crate) fn of_agent(namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: crate::AGENT,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// A cluster of the fleet, as members are called: names of namespaces and of clusters have no slash.
pub(crate) fn member(namespace: &str, cluster: &str) -> ClusterId {
    ClusterId::remote(&format!("{namespace}/{cluster}"))
}

/// The namespace and the name of a member.
pub(crate) fn place(member: &ClusterId) -> Option<(&str, &str)> {
    member.as_str().split_once('/')
}

#[cfg(test)]
mod tests {
    use super::{at_home, member, object, place};
    use crate::kinds;

    #[test]
    fn work_is_called_by_what_it_is_about() {
        let key = at_home(&kinds::ROLLOUT, "fleet", "web.1");
        assert_eq!(object(&key), Some((kinds::ROLLOUT, "web.1")));
        assert_eq!(place(&member("fleet", "berlin")), Some(("fleet", "berlin")));
    }
}
