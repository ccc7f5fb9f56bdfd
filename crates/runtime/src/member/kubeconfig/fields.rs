//! Which fields there are, and what is in them.

use std::collections::BTreeMap;

use slipway_kernel::Sensitive;

use super::error::KubeconfigError;
use super::tree::{Node, Value};

/// How many entries a list may have.
const MOST_ENTRIES: usize = 256;

/// The fields of one part of the file.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    /// Those that are read or passed over.
    known: &'static [&'static str],
    /// Those that are known and refused, and why.
    refused: &'static [(&'static str, &'static str)],
}

#[cfg(test)]
impl Fields {
    /// The names of those that are refused.
    pub(super) fn refused(self) -> impl Iterator<Item = &'static str> {
        self.refused.iter().map(|(name, _)| *name)
    }
}

const PATH: &str =
    "it names a file of the operator's; put what is in the file into the field that ends in -data";
const IMPERSONATES: &str =
    "requests would be made in somebody else's name; use that user's own credentials";
const PASSWORD: &str =
    "API servers take no passwords any more; use a token or a client certificate";

pub(super) const FILE: Fields = Fields {
    known: &[
        "apiVersion",
        "kind",
        "clusters",
        "contexts",
        "users",
        "current-context",
        "preferences",
        "extensions",
    ],
    refused: &[],
};

pub(super) const CLUSTER: Fields = Fields {
    known: &[
        "server",
        "certificate-authority-data",
        "disable-compression",
        "extensions",
    ],
    refused: &[
        ("certificate-authority", PATH),
        (
            INSECURE_FIELD,
            "anybody could pose as the server; give its CA in certificate-authority-data",
        ),
        (
            "proxy-url",
            "requests with our credentials would go through somebody else's server",
        ),
        (
            "tls-server-name",
            "a proxy that goes by it would lead to another server than the one that was allowed; use a server address that its certificate is for",
        ),
    ],
};

pub(super) const CONTEXT: Fields = Fields {
    known: &["cluster", "user", "namespace", "extensions"],
    refused: &[],
};

pub(super) const USER: Fields = Fields {
    known: &[
        "token",
        "client-certificate-data",
        "client-key-data",
        "extensions",
    ],
    refused: &[
        (
            "exec",
            "it would run a program in the operator's container; use a token or a client certificate",
        ),
        (
            "auth-provider",
            "it would run a plugin; use a token or a client certificate",
        ),
        ("tokenFile", PATH),
        ("client-certificate", PATH),
        ("client-key", PATH),
        ("username", PASSWORD),
        ("password", PASSWORD),
        ("as", IMPERSONATES),
        ("as-uid", IMPERSONATES),
        ("as-groups", IMPERSONATES),
        ("as-user-extra", IMPERSONATES),
    ],
};

/// The one field that may be there if it says no.
const INSECURE_FIELD: &str = "insecure-skip-tls-verify";

/// A part of the file.
pub(super) struct Section<'a> {
    place: String,
    fields: Option<&'a BTreeMap<String, Node>>,
}

/// One of `clusters`, `contexts` or `users`.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) body: Section<'a>,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn root(node: &'a Node) -> Result<Self, KubeconfigError> {
        match &node.value {
            Value::Map(_) => Self::new(String::new(), Some(node)),
            _ => Err(KubeconfigError::Syntax {
                line: node.line,
                what: "it is not a mapping of fields",
            }),
        }
    }

    fn new(place: String, node: Option<&'a Node>) -> Result<Self, KubeconfigError> {
        let fields = match node.map(|node| &node.value) {
            None | Some(Value::Null) => None,
            Some(Value::Map(fields)) => Some(fields),
            Some(_) => {
                return Err(KubeconfigError::Wrong {
                    field: place,
                    expected: "a mapping of fields",
                });
            }
        };
        Ok(Self { place, fields })
    }

    /// Where in the file.
    pub(super) fn place(&self) -> &str {
        if self.place.is_empty() {
            "the file"
        } else {
            &self.place
        }
    }

    /// The name of a field with its place.
    pub(super) fn path(&self, field: &str) -> String {
        if self.place.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.place)
        }
    }

    fn get(&self, field: &str) -> Option<&'a Node> {
        self.fields?.get(field)
    }

    /// Refuses all that is not known.
    pub(super) fn check(&self, fields: Fields) -> Result<(), KubeconfigError> {
        self.check_names(fields.known, fields.refused)
    }

    fn check_names(
        &self,
        known: &[&str],
        refused: &[(&str, &'static str)],
    ) -> Result<(), KubeconfigError> {
        for (name, node) in self.fields.into_iter().flatten() {
            if known.contains(&name.as_str()) {
                continue;
            }
            match refused.iter().find(|(field, _)| field == name) {
                Some(_) if is_unset(name, node) => {}
                Some((field, why)) => {
                    return Err(KubeconfigError::Refused {
                        field: self.path(field),
                        line: node.line,
                        why,
                    });
                }
                None => {
                    return Err(KubeconfigError::Unknown {
                        place: self.place().to_owned(),
                        line: node.line,
                        name: shown(name),
                    });
                }
            }
        }
        Ok(())
    }

    /// A text, if it is there and not empty.
    pub(super) fn text(
        &self,
        field: &'static str,
    ) -> Result<Option<&'a Sensitive<String>>, KubeconfigError> {
        match self.get(field).map(|node| &node.value) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text).filter(|text| !text.expose().is_empty())),
            Some(_) => Err(KubeconfigError::Wrong {
                field: self.path(field),
                expected: "a text",
            }),
        }
    }

    /// What a field has to say if it is there.
    pub(super) fn expect(
        &self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<(), KubeconfigError> {
        match self.text(field)? {
            Some(text) if text.expose() != expected => Err(KubeconfigError::Wrong {
                field: self.path(field),
                expected,
            }),
            _ => Ok(()),
        }
    }

    /// The entries of a list, each with a name of its own and what is below `inner`.
    pub(super) fn entries(
        &self,
        list: &'static str,
        inner: &'static str,
        fields: Fields,
    ) -> Result<Vec<Entry<'a>>, KubeconfigError> {
        let items: &[Node] = match self.get(list).map(|node| &node.value) {
            None | Some(Value::Null) => &[],
            Some(Value::List(items)) if items.len() <= MOST_ENTRIES => items,
            Some(_) => {
                return Err(KubeconfigError::Wrong {
                    field: self.path(list),
                    expected: "a list of at most 256 entries",
                });
            }
        };
        let mut entries: Vec<Entry<'a>> = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let entry = Self::entry(format!("{list}[{index}]"), item, inner, fields)?;
            if entries.iter().any(|other| other.name == entry.name) {
                return Err(KubeconfigError::Duplicate(format!("{list}[{index}].name")));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn entry(
        place: String,
        item: &'a Node,
        inner: &'static str,
        fields: Fields,
    ) -> Result<Entry<'a>, KubeconfigError> {
        let outer = Self::new(place, Some(item))?;
        let name = outer.text("name")?;
        let name = name.ok_or_else(|| KubeconfigError::Missing(outer.path("name")))?;
        let body = Self::new(outer.path(inner), outer.get(inner))?;
        body.check(fields)?;
        outer.check_names(&["name", inner], &[])?;
        Ok(Entry {
            name: name.expose(),
            body,
        })
    }
}

/// Whether a field that is refused says nothing: tools write empty ones.
fn is_unset(name: &str, node: &Node) -> bool {
    match &node.value {
        Value::Null => true,
        Value::Text(text) if name == INSECURE_FIELD => {
            matches!(text.expose().as_str(), "" | "false")
        }
        Value::Text(text) => text.expose().is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(_) => false,
    }
}

/// The name of a field, if it looks like one: what is secret may have come to stand in its place.
fn shown(name: &str) -> Option<String> {
    let is_name = name.len() <= 40 && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-');
    is_name.then(|| name.to_owned())
}
