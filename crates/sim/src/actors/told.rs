//! An object as it is told, before it is read: mostly it is the echo of an own write, and need not be.

use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// What tells an object apart, and where in its text stands what no actor asks for.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The resource version.
    pub(crate) version: String,
    fields: Option<Range<usize>>,
}

#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata<'a> {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

impl Head {
    /// The head of an object.
    pub(crate) fn of(text: &str) -> serde_json::Result<Self> {
        let Outline { metadata } = serde_json::from_str(text)?;
        Ok(Self {
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            version: metadata.resource_version,
            fields: metadata.managed_fields.map(|fields| {
                let fields = fields.get();
                let start = fields.as_ptr().addr() - text.as_ptr().addr();
                start..start + fields.len()
            }),
        })
    }

    /// The object of which this is the head, without its managed fields: they are half of it.
    pub(crate) fn read<K: DeserializeOwned>(&self, text: &str) -> serde_json::Result<K> {
        let around = self.fields.as_ref().and_then(|fields| {
            Some([text.get(..fields.start)?, "null", text.get(fields.end..)?].concat())
        });
        serde_json::from_str(around.as_deref().unwrap_or(text))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn an_object_is_read_without_its_managed_fields() {
        let text = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"ä":"1"},"managedFields":[{"manager":"x"}],
            "name":"a","resourceVersion":"7"},"spec":{"containers":[],"nodeName":"n"}}"#;
        let head = Head::of(text).unwrap();
        let told = (&*head.namespace, &*head.name, &*head.uid, &*head.version);
        assert_eq!(told, ("", "a", "", "7"));
        let mut whole: Pod = serde_json::from_str(text).unwrap();
        assert!(whole.metadata.managed_fields.take().is_some());
        assert_eq!(head.read::<Pod>(text).unwrap(), whole);
    }

    #[test]
    fn an_object_without_managed_fields_is_read_as_it_is() {
        for text in [
            r#"{"metadata":{"name":"a","managedFields":null}}"#,
            r#"{"metadata":{"name":"a"},"status":{"phase":"Running"}}"#,
            "{}",
        ] {
            let head = Head::of(text).unwrap();
            let whole: Pod = serde_json::from_str(text).unwrap();
            assert_eq!(head.read::<Pod>(text).unwrap(), whole);
        }
    }
}
