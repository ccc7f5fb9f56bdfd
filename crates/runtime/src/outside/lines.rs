//! As what turns and waits know a call: known before any Secret is read for it.

use std::hash::{DefaultHasher, Hash, Hasher};

use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::question::{Call, Target, Trust};

/// Whose turns are whose: namespaces of one cluster, and then keys.
pub(super) type Place = (ClusterId, String);

/// The names of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    /// On whose behalf: the cluster and the namespace.
    pub(super) place: Place,
    /// The same in one word.
    pub(super) namespace: String,
    /// Who has to answer. Of an address that is secret, where it is.
    pub(super) target: String,
    /// Who has to answer to this namespace.
    pub(super) share: String,
    /// Who is left alone by this namespace: whom it takes for somebody else, it may fail to reach by its own fault.
    pub(super) wait: String,
    /// Host and port, where they are known: who cannot be reached there can be reached by nobody.
    pub(super) host: Option<String>,
}

impl Lines {
    pub(super) fn of(key: &Key, call: &Call) -> Self {
        let place = (key.cluster.clone(), key.namespace.clone());
        let cluster = if key.cluster.is_local() {
            // No member is called that.
            String::new()
        } else {
            key.cluster.to_string()
        };
        let namespace = format!("{cluster}/{}", key.namespace);
        let (target, host, scheme) = match &call.target {
            Target::Url(url) => {
                let at = host_of(&url.host.bare(), url.port);
                (at.clone(), Some(at), url.scheme.as_str())
            }
            Target::Secret(reference) | Target::SecretWith(reference, _) => {
                (reference.to_string(), None, "secret")
            }
        };
        let share = format!("{namespace} {target}");
        let wait = format!("{namespace} {scheme} {target} {}", trusted(&call.trust));
        Self {
            place,
            namespace,
            target,
            share,
            wait,
            host,
        }
    }
}

/// Somebody at a port, in one word.
pub(super) fn host_of(host: &str, port: u16) -> String {
    format!("{host}:{port}")
}

fn trusted(trust: &Trust) -> String {
    match trust {
        Trust::System => String::new(),
        Trust::Secret(reference) => reference.to_string(),
        Trust::Pem(pem) => {
            let mut hasher = DefaultHasher::new();
            pem.hash(&mut hasher);
            hasher.finish().to_string()
        }
    }
}
