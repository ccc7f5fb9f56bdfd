//! Objects that bindings refer to: which kind is meant, that they are watched, and what was seen of them.
//!
//! Each has a store of its own, so that it is known of each whether it has been looked for: what is not there is told from
//! what has not been read yet.

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_bindings::known::Version;
use slipway_bindings::{Found, Known, Read, Reference};
use slipway_kernel::interest::{Interest, Triggers};
use slipway_kernel::{ClusterId, Facts, Kind, Stores};

use super::seen::{Defined, Referred, Whole};
use crate::assemblage::KustomizationSeen;
use crate::{kinds, naming};

/// Where references are looked up.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// What has been seen.
    pub stores: &'a Stores,
    /// In which cluster.
    pub cluster: &'a ClusterId,
    /// In which namespace.
    pub namespace: &'a str,
    /// The assemblage whose syncs are the other modules; none where there are none.
    pub assemblage: Option<&'a str>,
}

/// What a reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meant {
    /// This object, of a kind that is known to be there or only thought to be.
    Object {
        kind: Kind,
        namespace: String,
        name: String,
        is_known: bool,
    },
    /// None, for this reason.
    Nothing(Nothing),
    /// Which kinds there are has to be known first.
    Unread,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Nothing {
    NoSuchKind,
    SeveralKinds(Vec<String>),
    NoSuchModule,
    SeveralObjects,
    Missing,
}

impl Place<'_> {
    /// Reads what can be read of these. What is missing in the answer has not been seen yet.
    pub fn read(&self, facts: &Facts, references: &BTreeSet<Reference>) -> Known {
        let read = references.iter();
        read.filter_map(|reference| Some((reference.clone(), self.one(facts, reference)?)))
            .collect()
    }

    fn one(&self, facts: &Facts, reference: &Reference) -> Option<Read> {
        let (kind, namespace, name, is_known) = match self.meant(reference) {
            Meant::Object {
                kind,
                namespace,
                name,
                is_known,
            } => (kind, namespace, name, is_known),
            Meant::Unread => return None,
            Meant::Nothing(why) => {
                return Some(match why {
                    Nothing::NoSuchKind => Read::NoSuchKind,
                    Nothing::SeveralKinds(all) => Read::SeveralKinds(all),
                    Nothing::NoSuchModule => Read::NoSuchModule,
                    Nothing::SeveralObjects => Read::SeveralObjects,
                    Nothing::Missing => Read::Missing,
                });
            }
        };
        if let Some(values) = self.values(&kind, &namespace, &name) {
            return Some(values);
        }
        let slot = slot(&namespace, &name);
        let store = self.stores.slot::<Referred>(self.cluster, &kind, &slot)?;
        let found = store.entries::<Referred>().next();
        if let Some(found) = found {
            return Some(of_kind(&kind, found.body.object()));
        }
        if facts.is_hidden_in(self.cluster, &kind, &namespace) && !store.is_synced() {
            let absent = facts.is_absent_in(self.cluster, &kind, &namespace);
            return match (absent, is_known) {
                (true, true) => Some(Read::Forbidden),
                (true, false) => Some(Read::NoSuchKind),
                (false, _) => None,
            };
        }
        store.is_synced().then_some(Read::Missing)
    }

    /// A Secret with values that was made for a cluster: these are seen anyway.
    fn values(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Read> {
        if *kind != kinds::SECRET {
            return None;
        }
        let found = self
            .stores
            .get::<Whole>(self.cluster, kind, namespace, name)?;
        Some(of_kind(kind, found.body.object()))
    }

    /// What has to be watched for these to be known.
    pub fn interests(
        &self,
        references: &BTreeSet<Reference>,
        triggers: Triggers,
        definitions: Triggers,
    ) -> Vec<Interest> {
        let mut all = Vec::new();
        let mut wants_definitions = false;
        for reference in references {
            let meant = self.meant(reference);
            wants_definitions |= self.needs_definitions(reference);
            let Meant::Object {
                kind,
                namespace,
                name,
                ..
            } = meant
            else {
                continue;
            };
            if self.values(&kind, &namespace, &name).is_some() {
                continue;
            }
            let slot = slot(&namespace, &name);
            let interest = Interest::of::<Referred>(kind, triggers);
            all.push(interest.only(namespace, name).in_slot(slot).optional());
        }
        if wants_definitions {
            all.push(Interest::of::<Defined>(kinds::DEFINITION, definitions).optional());
        }
        all
    }

    fn needs_definitions(&self, reference: &Reference) -> bool {
        match (reference.version(), reference) {
            (Version::Inventory, _) => self
                .applied(reference)
                .is_ok_and(|(kind, _, is_known)| !is_known || !is_builtin(&kind)),
            (Version::Is(version), _) => !self.has_any(&builtin(Some(version), reference.kind())),
            (Version::ClusterApi, _) => !self.has_any(&[kinds::CLUSTER, kinds::CLUSTER_BEFORE]),
            (Version::Discovered, _) => !self.has_any(&builtin(None, reference.kind())),
        }
    }

    /// Whether one of these kinds is there for certain, without a look at what is defined.
    fn has_any(&self, kinds: &[Kind]) -> bool {
        let is_seen = |kind: &Kind| {
            let mut stores = self.stores.of_kind(self.cluster, kind);
            stores.any(|(_, store)| store.is_synced())
        };
        kinds.iter().any(|kind| is_native(kind) || is_seen(kind))
    }

    /// Whether a kind has to be taken for one that is there: it is, or what is defined cannot be seen.
    fn is_known(&self, kind: &Kind) -> bool {
        let is_it = |defined: &Defined| {
            let found = of_defined(defined, Some(&kind.version));
            found.as_ref() == Some(kind)
        };
        let is_seen = self.has_any(std::slice::from_ref(kind));
        is_seen || self.definitions().is_none_or(|mut all| all.any(is_it))
    }

    fn meant(&self, reference: &Reference) -> Meant {
        match reference {
            Reference::Module { name, .. } => match self.applied(reference) {
                Ok((kind, namespace, is_known)) => Meant::Object {
                    kind,
                    namespace,
                    name: name.clone(),
                    is_known,
                },
                Err(why) => Meant::Nothing(why),
            },
            Reference::Object { kind, name, .. } => match self.kind(reference, kind) {
                Ok(Some((kind, is_known))) => Meant::Object {
                    namespace: if kind.namespaced {
                        self.namespace.to_owned()
                    } else {
                        String::new()
                    },
                    name: name.clone(),
                    kind,
                    is_known,
                },
                Ok(None) => Meant::Unread,
                Err(why) => Meant::Nothing(why),
            },
        }
    }

    /// The kind of a reference, and whether it is known to be there; none while that has not been read.
    fn kind(&self, reference: &Reference, kind: &str) -> Result<Option<(Kind, bool)>, Nothing> {
        match reference.version() {
            Version::Is(version) => Ok(Some(self.of_version(version, kind))),
            Version::ClusterApi => {
                let served = [kinds::CLUSTER, kinds::CLUSTER_BEFORE];
                let is_seen = |kind: &&Kind| self.stores.is_synced::<Whole>(self.cluster, kind);
                let found = served.iter().find(is_seen).cloned();
                let found = found.unwrap_or(kinds::CLUSTER);
                let is_known = self.is_known(&found);
                Ok(Some((found, is_known)))
            }
            Version::Discovered | Version::Inventory => {
                let known = builtin(None, kind);
                if let Some(first) = known.first() {
                    return Ok(Some((first.clone(), self.is_known(first))));
                }
                let Some(definitions) = self.definitions() else {
                    return Ok(None);
                };
                let found: Vec<Kind> = definitions
                    .filter(|defined| defined.kind == kind)
                    .filter_map(|defined| of_defined(defined, None))
                    .collect();
                match found.as_slice() {
                    [] => Err(Nothing::NoSuchKind),
                    [only] => Ok(Some((only.clone(), true))),
                    several => {
                        let versions = several.iter().map(Kind::api_version);
                        Err(Nothing::SeveralKinds(versions.collect()))
                    }
                }
            }
        }
    }

    /// The kind of this version: of those that are built in, or defined; else as most kinds are called.
    fn of_version(&self, version: &str, kind: &str) -> (Kind, bool) {
        if let Some(known) = builtin(Some(version), kind).first() {
            return (known.clone(), self.is_known(known));
        }
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let mut definitions = self.definitions().into_iter().flatten();
        let defined = definitions.find(|defined| defined.group == group && defined.kind == kind);
        let defined = defined.and_then(|defined| of_defined(defined, Some(version)));
        match defined {
            Some(kind) => (kind, true),
            None => (
                Kind::owned(group, version, kind, guessed_plural(kind), true),
                false,
            ),
        }
    }

    /// What is defined, if that has been seen.
    fn definitions(&self) -> Option<impl Iterator<Item = &Defined>> {
        let store = self
            .stores
            .typed::<Defined>(self.cluster, &kinds::DEFINITION)?;
        let all = store.entries::<Defined>().map(|entry| entry.body);
        store.is_synced().then_some(all)
    }

    /// The kind and the namespace of an object that another sync applied.
    fn applied(&self, reference: &Reference) -> Result<(Kind, String, bool), Nothing> {
        let Reference::Module { module, kind, name } = reference else {
            return Err(Nothing::NoSuchModule);
        };
        let assemblage = self.assemblage.ok_or(Nothing::NoSuchModule)?;
        let kustomization = naming::kustomization(assemblage, module);
        let found = self.stores.get::<KustomizationSeen>(
            self.cluster,
            &kinds::KUSTOMIZATION,
            self.namespace,
            &kustomization,
        );
        let status = &found.ok_or(Nothing::NoSuchModule)?.body.status;
        if status.applied.is_none() {
            return Err(Nothing::NoSuchModule);
        }
        let Some(applied) = status.find(kind, name) else {
            let is_there = status.inventory.iter().any(|(id, _)| {
                let parts: Vec<&str> = id.split('_').collect();
                parts.get(1) == Some(&name.as_str()) && parts.get(3) == Some(&kind.as_str())
            });
            return Err(if is_there {
                Nothing::SeveralObjects
            } else {
                Nothing::Missing
            });
        };
        let version = if applied.group.is_empty() {
            applied.version.clone()
        } else {
            format!("{}/{}", applied.group, applied.version)
        };
        let (mut kind, is_known) = self.of_version(&version, kind);
        kind.namespaced = !applied.namespace.is_empty();
        Ok((kind, applied.namespace, is_known))
    }
}

/// An object that was found. Lists leave out which kind their objects are of.
fn of_kind(kind: &Kind, object: &Value) -> Read {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.as_ref().into());
    }
    Read::Found(Found::new(object))
}

fn slot(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

fn of_defined(defined: &Defined, version: Option<&str>) -> Option<Kind> {
    let version = match version {
        Some(version) => defined.versions.iter().find(|one| *one == version)?,
        None => defined.versions.first()?,
    };
    Some(Kind::owned(
        defined.group.clone(),
        version.clone(),
        defined.kind.clone(),
        defined.plural.clone(),
        defined.namespaced,
    ))
}

/// The plural of a kind, as nearly all kinds are called.
fn guessed_plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    let is_hissing = ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|end| lower.ends_with(end));
    if is_hissing {
        return format!("{lower}es");
    }
    match lower.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{lower}s"),
    }
}

fn is_builtin(kind: &Kind) -> bool {
    !builtin(Some(&kind.api_version()), &kind.kind).is_empty()
}

/// Whether every cluster has a kind.
fn is_native(kind: &Kind) -> bool {
    NATIVE.contains(kind)
}

/// The kinds of this name that need not be looked up, of this version if one is said.
fn builtin(version: Option<&str>, kind: &str) -> Vec<Kind> {
    let all = NATIVE.iter().chain(FLEET);
    let named = all.filter(|known| known.kind == kind);
    let is_meant = |known: &&Kind| version.is_none_or(|version| known.api_version() == version);
    named.filter(is_meant).cloned().collect()
}

/// Kinds that every cluster has.
const NATIVE: &[Kind] = &[
    kinds::CONFIG_MAP,
    kinds::SECRET,
    kinds::NAMESPACE,
    kinds::POD,
    kinds::DEPLOYMENT,
    kinds::STATEFUL_SET,
    kinds::DAEMON_SET,
    Kind::namespaced("", "v1", "Service", "services"),
    Kind::namespaced("", "v1", "ServiceAccount", "serviceaccounts"),
    Kind::namespaced("", "v1", "Endpoints", "endpoints"),
    Kind::namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    Kind::clustered("", "v1", "PersistentVolume", "persistentvolumes"),
    Kind::clustered("", "v1", "Node", "nodes"),
    Kind::namespaced("batch", "v1", "Job", "jobs"),
    Kind::namespaced("batch", "v1", "CronJob", "cronjobs"),
    Kind::namespaced("networking.k8s.io", "v1", "Ingress", "ingresses"),
    Kind::clustered("networking.k8s.io", "v1", "IngressClass", "ingressclasses"),
    Kind::clustered("storage.k8s.io", "v1", "StorageClass", "storageclasses"),
];

/// Kinds that the fleet itself works on: they have a definition, where they are there.
const FLEET: &[Kind] = &[
    kinds::ROLLOUT,
    kinds::MODULE,
    kinds::BOOTSTRAP_MODULE,
    kinds::REMOTE_ASSEMBLAGE,
    kinds::ASSEMBLAGE,
    kinds::CLUSTER,
    kinds::CLUSTER_BEFORE,
    kinds::GIT_REPOSITORY,
    kinds::KUSTOMIZATION,
];

#[cfg(test)]
mod tests {
    use super::{builtin, guessed_plural};

    #[test]
    fn plurals_are_guessed_as_most_kinds_are_called() {
        for (kind, plural) in [
            ("Gadget", "gadgets"),
            ("Policy", "policies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Mesh", "meshes"),
        ] {
            assert_eq!(guessed_plural(kind), plural);
        }
    }

    #[test]
    fn a_kind_that_is_built_in_is_found_with_and_without_its_version() {
        assert_eq!(builtin(None, "ConfigMap").len(), 1);
        assert_eq!(builtin(Some("apps/v1"), "Deployment").len(), 1);
        assert!(builtin(Some("apps/v2"), "Deployment").is_empty());
        assert!(builtin(None, "Gadget").is_empty());
    }
}
