//! One stored object: encoded bytes and a header.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::Text;
use super::text::Piece;
use crate::value;

/// What is asked of an object without decoding it.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// Empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// The name.
    pub name: Box<str>,
    /// The uid.
    pub uid: Box<str>,
    /// Labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Values for field selectors besides name and namespace.
    pub fields: Box<[(Box<str>, Box<str>)]>,
    /// Uids of the owners.
    pub owners: Box<[Box<str>]>,
    /// Whether a deletion timestamp is set.
    pub deleting: bool,
}

/// Of an object's metadata, what keeps it and for whom it is there.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Ties {
    owner_references: Option<Vec<Value>>,
    finalizers: Option<Vec<Value>>,
}

impl Ties {
    /// The references to its owners.
    pub(crate) fn owners(&self) -> &[Value] {
        self.owner_references.as_deref().unwrap_or_default()
    }

    /// Whether it has this finalizer.
    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().flatten().any(|one| one == name)
    }
}

/// One object in one version.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The resource version.
    pub version: u64,
    /// What is asked of it without decoding.
    pub header: Arc<Header>,
    /// The JSON object without `apiVersion` and `kind`.
    pub text: Text,
    /// The number of the defaults of which it lacks none ([`Stored::has`]); 0 if that is not known.
    defaults: u64,
}

impl Stored {
    /// Encodes `object` at `version`, which is written into it.
    pub fn encode(object: &Value, version: u64, fields: &[(String, String)]) -> Self {
        Self {
            version,
            header: Arc::new(Header::of(object, fields)),
            text: Text::of(object, version),
            defaults: 0,
        }
    }

    /// The same, which lacks none of the defaults of this number.
    #[must_use]
    pub(crate) fn with(self, defaults: u64) -> Self {
        Self { defaults, ..self }
    }

    /// Whether it is known to lack none of the defaults of this number.
    pub(crate) fn has(&self, defaults: u64) -> bool {
        defaults != 0 && self.defaults == defaults
    }

    /// The same, of an object that many clusters have, each created at another moment.
    pub(crate) fn encode_dated(object: &Value, version: u64, fields: &[(String, String)]) -> Self {
        Self {
            text: Text::dated(object, version),
            ..Self::encode(object, version, fields)
        }
    }

    /// The same object, created at another moment; all else is shared.
    pub(crate) fn created(&self, moment: &str) -> Self {
        Self {
            version: self.version,
            header: self.header.clone(),
            text: self.text.created(moment),
            defaults: self.defaults,
        }
    }

    /// The same object at another version.
    #[must_use]
    pub fn at(&self, version: u64) -> Self {
        Self {
            version,
            header: self.header.clone(),
            text: Text::of(&self.decode(), version),
            defaults: self.defaults,
        }
    }

    /// The text of a top-level member, and the object without it and without other long members, a number in the
    /// place of each.
    pub(crate) fn split(&self, member: &str) -> (Piece, Value) {
        self.text.split(member)
    }

    /// The object without `apiVersion` and `kind`.
    pub fn decode(&self) -> Value {
        self.text.decode()
    }

    /// The object with `apiVersion` and `kind`.
    pub fn decode_as(&self, api_version: &str, kind: &str) -> Value {
        let mut object = self.decode();
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".into(), api_version.into());
            map.insert("kind".into(), kind.into());
        }
        object
    }

    /// Whether `object` at this version would encode to the same bytes: a write of it would change nothing.
    pub fn same(&self, object: &Value) -> bool {
        self.text.is_of(object, self.version)
    }

    /// What keeps it and for whom it is there, without decoding the rest.
    pub(crate) fn ties(&self) -> Ties {
        self.text.metadata().unwrap_or_default()
    }

    /// Appends the JSON of the metadata.
    pub(crate) fn write_metadata(&self, out: &mut Vec<u8>) {
        self.text.write_metadata(out);
    }

    /// Appends the JSON with `apiVersion` and `kind` spliced in.
    pub fn write_as(&self, api_version: &str, kind: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"apiVersion\":\"");
        out.extend_from_slice(api_version.as_bytes());
        out.extend_from_slice(b"\",\"kind\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.push(b'"');
        // The text is an object that has metadata at least: its brace becomes the comma.
        let brace = out.len();
        self.text.write(out);
        if let Some(brace) = out.get_mut(brace) {
            *brace = b',';
        }
    }
}

impl Header {
    fn of(object: &Value, fields: &[(String, String)]) -> Self {
        let labels = value::map(object, "metadata.labels")
            .map(|labels| {
                labels
                    .iter()
                    .map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into()))
                    .collect()
            })
            .unwrap_or_default();
        let owners = value::items(object, "metadata.ownerReferences")
            .iter()
            .map(|owner| value::text(owner, "uid").into())
            .collect();
        Self {
            namespace: value::text(object, "metadata.namespace").into(),
            name: value::text(object, "metadata.name").into(),
            uid: value::text(object, "metadata.uid").into(),
            labels,
            fields: fields
                .iter()
                .map(|(k, v)| (k.as_str().into(), v.as_str().into()))
                .collect(),
            owners,
            deleting: value::has(object, "metadata.deletionTimestamp"),
        }
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        self.labels.get(at).map(|(_, v)| &**v)
    }

    /// The value of a field for selectors.
    pub fn field(&self, name: &str) -> Option<&str> {
        match name {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.namespace),
            other => self
                .fields
                .iter()
                .find(|(k, _)| **k == *other)
                .map(|(_, v)| &**v),
        }
    }
}
