//! Values of Secrets, by reference.

use std::collections::BTreeSet;
use std::fmt;

/// A value in a Secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretRef {
    /// Where the Secret is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// Which of its values.
    pub key: String,
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace,
            name,
            key,
        } = self;
        write!(f, "{key} of the Secret {namespace}/{name}")
    }
}

/// Why a Secret is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the Secret {namespace}/{name} is in another namespace than {asker}, which the administrator does not allow"
)]
pub struct NotYours {
    /// Where the Secret is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// From where it was asked for.
    pub asker: String,
}

/// Whether an object may have us use Secrets of other namespaces than its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OtherNamespaces {
    /// Never.
    #[default]
    Refused,
    /// Secrets of these namespaces.
    Listed(BTreeSet<String>),
    /// Secrets of any namespace.
    Allowed,
}

impl OtherNamespaces {
    /// Whether an object in the namespace `asker` may have us use this Secret.
    pub fn check(&self, asker: &str, reference: &SecretRef) -> Result<(), NotYours> {
        let is_allowed = match self {
            Self::Refused => false,
            Self::Listed(namespaces) => namespaces.contains(&reference.namespace),
            Self::Allowed => true,
        };
        if is_allowed || reference.namespace == asker {
            return Ok(());
        }
        Err(NotYours {
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
            asker: asker.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_another_namespace_is_used_only_where_that_is_allowed() {
        let of = |namespace: &str| SecretRef {
            namespace: namespace.to_owned(),
            name: "s".to_owned(),
            key: "token".to_owned(),
        };
        let listed = OtherNamespaces::Listed(["shared".to_owned()].into());
        let table = [
            (&OtherNamespaces::Refused, "mine", true),
            (&OtherNamespaces::Refused, "shared", false),
            (&listed, "mine", true),
            (&listed, "shared", true),
            (&listed, "other", false),
            (&OtherNamespaces::Allowed, "other", true),
        ];
        for (rule, namespace, is_allowed) in table {
            let checked = rule.check("mine", &of(namespace));
            assert_eq!(checked.is_ok(), is_allowed, "{rule:?} {namespace}");
        }
        let told = OtherNamespaces::Refused
            .check("mine", &of("theirs"))
            .unwrap_err();
        assert!(
            told.to_string()
                .contains("theirs/s is in another namespace than mine")
        );
    }
}
