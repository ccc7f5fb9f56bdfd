//! What a watch asks for, read anew: a server that shows anything else has ignored its namespace or its selectors.

use anyhow::{Result, bail};
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// What a request selects.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Selected {
    namespace: Option<String>,
    /// The pointer of a field, the value, and whether it is to be equal.
    fields: Vec<(String, String, bool)>,
    labels: Vec<(String, String, bool)>,
}

impl Selected {
    /// What a path asks for. Only equality is understood: nobody who was recorded asked for more.
    pub(crate) fn by(path: &str) -> Result<Self> {
        let (place, query) = path.split_once('?').unwrap_or((path, ""));
        let mut selected = Self::default();
        let mut words = place.split('/').skip_while(|word| *word != "namespaces");
        if let (Some(_), Some(namespace), Some(_)) = (words.next(), words.next(), words.next()) {
            selected.namespace = Some(namespace.to_owned());
        }
        for part in query.split('&') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            match name {
                "fieldSelector" => selected.fields = terms(&value)?,
                "labelSelector" => selected.labels = terms(&value)?,
                _ => {}
            }
        }
        for (field, _, _) in &mut selected.fields {
            *field = format!("/{}", field.replace('.', "/"));
        }
        Ok(selected)
    }

    /// Whether an object is among what was asked for.
    pub(crate) fn has(&self, object: &Value) -> bool {
        let text = |path: &str| {
            let value = object.pointer(path).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let label = |name: &str| {
            let labels = object.pointer("/metadata/labels");
            let value = labels.and_then(|labels| labels.get(name)?.as_str());
            value.map(str::to_owned)
        };
        let is_placed = self
            .namespace
            .as_ref()
            .is_none_or(|namespace| text("/metadata/namespace") == *namespace);
        is_placed
            && self
                .fields
                .iter()
                .all(|(path, value, is_equal)| (text(path) == *value) == *is_equal)
            && self
                .labels
                .iter()
                .all(|(name, value, is_equal)| (label(name).as_ref() == Some(value)) == *is_equal)
    }
}

fn terms(text: &str) -> Result<Vec<(String, String, bool)>> {
    let terms = text.split(',').filter(|term| !term.is_empty());
    terms
        .map(|term| {
            let (name, value, is_equal) = if let Some((name, value)) = term.split_once("!=") {
                (name, value, false)
            } else if let Some((name, value)) = term.split_once('=') {
                (name, value.trim_start_matches('='), true)
            } else {
                bail!("the replay does not understand the selector {text:?}");
            };
            Ok((name.to_owned(), value.to_owned(), is_equal))
        })
        .collect()
}
