//! One stored object: encoded bytes and a header.

use bytes::Bytes;
use serde_json::{Map, Value};

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

/// One object in one version.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The resource version.
    pub version: u64,
    /// What is asked of it without decoding.
    pub header: Header,
    /// The JSON object without `apiVersion` and `kind`.
    pub bytes: Bytes,
}

impl Stored {
    /// Encodes `object` at `version`, which is written into it.
    pub fn encode(object: &Value, version: u64, fields: &[(String, String)]) -> Self {
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
        let header = Header {
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
        };
        Self {
            version,
            header,
            bytes: Bytes::from(body(object, version)),
        }
    }

    /// The same object at another version.
    #[must_use]
    pub fn at(&self, version: u64) -> Self {
        Self {
            version,
            header: self.header.clone(),
            bytes: Bytes::from(body(&self.decode(), version)),
        }
    }

    /// The object without `apiVersion` and `kind`.
    pub fn decode(&self) -> Value {
        // The bytes are our own encoding; an empty object stands in for what cannot happen.
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| Value::Object(Map::new()))
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
        body(object, self.version) == self.bytes
    }

    /// Appends the JSON with `apiVersion` and `kind` spliced in.
    pub fn write_as(&self, api_version: &str, kind: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"apiVersion\":\"");
        out.extend_from_slice(api_version.as_bytes());
        out.extend_from_slice(b"\",\"kind\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.push(b'"');
        if self.bytes.len() > 2 {
            out.push(b',');
        }
        out.extend_from_slice(self.bytes.get(1..).unwrap_or_default());
    }
}

impl Header {
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

/// The stored form: without `apiVersion` and `kind`, with the resource version.
fn body(object: &Value, version: u64) -> Vec<u8> {
    struct Body<'a>(&'a Map<String, Value>, String);
    struct Meta<'a>(&'a Map<String, Value>, &'a str);

    impl serde::Serialize for Meta<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeMap;
            let mut map = serializer.serialize_map(None)?;
            for (key, value) in self.0.iter().filter(|(k, _)| *k != "resourceVersion") {
                map.serialize_entry(key, value)?;
            }
            map.serialize_entry("resourceVersion", self.1)?;
            map.end()
        }
    }
    impl serde::Serialize for Body<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeMap;
            let mut map = serializer.serialize_map(None)?;
            let empty = Map::new();
            let meta = self
                .0
                .get("metadata")
                .and_then(Value::as_object)
                .unwrap_or(&empty);
            map.serialize_entry("metadata", &Meta(meta, &self.1))?;
            for (key, value) in self
                .0
                .iter()
                .filter(|(k, _)| !matches!(k.as_str(), "apiVersion" | "kind" | "metadata"))
            {
                map.serialize_entry(key, value)?;
            }
            map.end()
        }
    }
    let empty = Map::new();
    let map = object.as_object().unwrap_or(&empty);
    serde_json::to_vec(&Body(map, version.to_string())).unwrap_or_default()
}
