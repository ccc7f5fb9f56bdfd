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

/// Why a text names no Secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no Secrets: write NAMESPACE/NAME, or NAMESPACE/* for all of a namespace")]
pub struct NotSecrets(String);

/// Secrets that objects of every namespace may have us use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedSecrets {
    namespace: String,
    /// None means all of them.
    name: Option<String>,
}

impl SharedSecrets {
    /// Reads `namespace/name` or `namespace/*`.
    pub fn parse(text: &str) -> Result<Self, NotSecrets> {
        let is_known =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
        let is_name = |text: &str| !text.is_empty() && text.bytes().all(is_known);
        let parts = text.split_once('/');
        let parts = parts.filter(|(place, name)| is_name(place) && (*name == "*" || is_name(name)));
        let (place, name) = parts.ok_or_else(|| NotSecrets(text.to_owned()))?;
        Ok(Self {
            namespace: place.to_owned(),
            name: (name != "*").then(|| name.to_owned()),
        })
    }

    fn has(&self, reference: &SecretRef) -> bool {
        let is_name = |name: &String| *name == reference.name;
        self.namespace == reference.namespace && self.name.as_ref().is_none_or(is_name)
    }
}

/// Whether an object may have us use Secrets of other namespaces than its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OtherNamespaces {
    /// Never.
    #[default]
    Refused,
    /// These.
    Listed(BTreeSet<SharedSecrets>),
    /// Secrets of any namespace.
    Allowed,
}

impl OtherNamespaces {
    /// Whether an object in the namespace `asker` may have us use this Secret.
    pub fn check(&self, asker: &str, reference: &SecretRef) -> Result<(), NotYours> {
        let is_allowed = match self {
            Self::Refused => false,
            Self::Listed(secrets) => secrets.iter().any(|one| one.has(reference)),
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

    fn listed(texts: &[&str]) -> OtherNamespaces {
        let all = texts.iter().map(|text| SharedSecrets::parse(text).unwrap());
        OtherNamespaces::Listed(all.collect())
    }

    #[test]
    fn a_secret_of_another_namespace_is_used_only_where_that_is_allowed() {
        let of = |namespace: &str, name: &str| SecretRef {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            key: "token".to_owned(),
        };
        let (one, all) = (listed(&["shared/s"]), listed(&["other/s", "shared/*"]));
        let table = [
            (&OtherNamespaces::Refused, "mine", "s", true),
            (&OtherNamespaces::Refused, "shared", "s", false),
            (&one, "mine", "s", true),
            (&one, "shared", "s", true),
            (&one, "shared", "another", false),
            (&one, "other", "s", false),
            (&all, "shared", "another", true),
            (&all, "other", "another", false),
            (&OtherNamespaces::Allowed, "other", "s", true),
        ];
        for (rule, namespace, name, is_allowed) in table {
            let checked = rule.check("mine", &of(namespace, name));
            assert_eq!(checked.is_ok(), is_allowed, "{rule:?} {namespace}/{name}");
        }
        let told = OtherNamespaces::Refused
            .check("mine", &of("theirs", "s"))
            .unwrap_err();
        assert!(
            told.to_string()
                .contains("theirs/s is in another namespace than mine")
        );
    }

    #[test]
    fn whose_secrets_are_shared_is_written_out() {
        for text in [
            "shared", "shared/", "/s", "*/s", "*", "", "a/b/c", "a/b*", "A/b",
        ] {
            assert!(SharedSecrets::parse(text).is_err(), "{text}");
        }
    }
}
