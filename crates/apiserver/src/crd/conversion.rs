//! Conversion between versions. Without a webhook only the `apiVersion` changes; with one, [`request`] builds what
//! is sent and [`answer`] reads what comes back. The call itself is made elsewhere.

use serde_json::{Value, json};

use crate::crd::prune::{self, prune};
use crate::meta;
use crate::resource::Resource;
use crate::value;

/// How a definition converts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conversion {
    /// Only the `apiVersion` changes.
    None,
    /// A webhook does it; here is its `clientConfig`.
    Webhook(Value),
}

impl Conversion {
    /// The strategy of a definition.
    pub fn of(crd: &Value) -> Self {
        let config = value::at(crd, "spec.conversion.webhook.clientConfig");
        match (value::text(crd, "spec.conversion.strategy"), config) {
            ("Webhook", Some(config)) => Self::Webhook(config.clone()),
            _ => Self::None,
        }
    }
}

/// Brings an object that is in any version, or came back from a webhook, into the form of `version`: its
/// `apiVersion`, without the fields that this version does not know, with its defaults.
pub fn shape(resource: &Resource, object: &mut Value, version: &str) {
    value::put(object, "apiVersion", resource.api_version(version));
    if let Some(served) = resource.version(version) {
        prune(&served.schema, object);
        prune::default(served.schema.view(), object);
    }
}

/// The body of the call that asks a webhook to convert `objects`; none if it understands no version of the review
/// that the server speaks. Objects that are in the wanted version already are not to be sent.
pub fn request(crd: &Value, uid: &str, desired: &str, objects: &[&Value]) -> Result<Value, String> {
    let version = value::items(crd, "spec.conversion.webhook.conversionReviewVersions")
        .iter()
        .filter_map(Value::as_str)
        .find(|v| matches!(*v, "v1" | "v1beta1"))
        .ok_or("no supported conversion review versions")?;
    Ok(json!({
        "kind": "ConversionReview",
        "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": {"uid": uid, "desiredAPIVersion": desired, "objects": objects},
    }))
}

/// Reads a webhook's answer: the converted objects, in the order of `objects`, with the metadata of the originals.
/// The error is the whole text that the API answers with.
pub fn answer(
    review: &Value,
    uid: &str,
    desired: &str,
    objects: &[&Value],
) -> Result<Vec<Value>, String> {
    let first = objects.first().copied().unwrap_or(&Value::Null);
    let what = group_version_kind(first);
    let failed = |why: String| format!("conversion webhook for {what} failed: {why}");
    let converted = converted(review, uid).map_err(failed)?;
    if converted.len() != objects.len() {
        let (got, wanted) = (converted.len(), objects.len());
        return Err(format!(
            "conversion webhook for {what} returned {got} objects, expected {wanted}"
        ));
    }
    let check = |(i, (original, new)): (usize, (&&Value, &Value))| {
        let at = |why: String| {
            format!("conversion webhook for {what} returned invalid object at index {i}: {why}")
        };
        same_object(original, new, desired).map_err(at)?;
        let metadata =
            |why: String| format!("conversion webhook for {what} returned invalid metadata: {why}");
        restore_metadata(original, new).map_err(metadata)
    };
    objects
        .iter()
        .zip(converted)
        .enumerate()
        .map(check)
        .collect()
}

/// How Go prints a `GroupVersionKind`.
fn group_version_kind(object: &Value) -> String {
    let api_version = value::text(object, "apiVersion");
    let kind = value::text(object, "kind");
    format!("{api_version}, Kind={kind}")
}

fn converted<'a>(review: &'a Value, uid: &str) -> Result<&'a [Value], String> {
    let v1 = value::text(review, "apiVersion") != "apiextensions.k8s.io/v1beta1";
    let got = group_version_kind(review);
    let wanted = "apiextensions.k8s.io/v1, Kind=ConversionReview";
    if v1 && got != wanted {
        return Err(format!("expected webhook response of {wanted}, got {got}"));
    }
    if !value::has(review, "response") {
        return Err("no response provided".to_owned());
    }
    let answered = value::text(review, "response.uid");
    if v1 && answered != uid {
        return Err(format!(
            "expected response.uid=\"{uid}\", got \"{answered}\""
        ));
    }
    let status = value::text(review, "response.result.status");
    if status != "Success" {
        let message = value::text(review, "response.result.message");
        return Err(if message.is_empty() {
            format!("response.result.status was '{status}', not 'Success'")
        } else {
            message.to_owned()
        });
    }
    Ok(value::items(review, "response.convertedObjects"))
}

fn same_object(original: &Value, new: &Value, desired: &str) -> Result<(), String> {
    let got = value::text(new, "apiVersion");
    if got != desired {
        return Err(format!(
            "invalid groupVersion (expected {desired}, received {got})"
        ));
    }
    let (old_kind, new_kind) = (value::text(original, "kind"), value::text(new, "kind"));
    if old_kind != new_kind {
        return Err(format!(
            "invalid kind (expected {old_kind}, received {new_kind})"
        ));
    }
    for (key, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let path = format!("metadata.{key}");
        let (old, new) = (value::text(original, &path), value::text(new, &path));
        if old != new {
            return Err(format!("must have the same {name}: {old} != {new}"));
        }
    }
    Ok(())
}

/// The converted object with the original's metadata, but its own labels and annotations.
fn restore_metadata(original: &Value, new: &Value) -> Result<Value, String> {
    let Some(given) = new.get("metadata") else {
        return Err("missing metadata in converted object".to_owned());
    };
    let mut result = new.clone();
    let kept = original
        .get("metadata")
        .cloned()
        .unwrap_or_else(|| json!({}));
    value::put(&mut result, "metadata", kept);
    for (key, path) in [
        ("labels", "metadata.labels"),
        ("annotations", "metadata.annotations"),
    ] {
        let field = given.get(key).filter(|v| !v.is_null());
        let Some(field) = field else {
            value::take(&mut result, path);
            continue;
        };
        let entries = field.as_object().ok_or_else(|| {
            format!(
                "invalid metadata.{key} of type {} in converted object",
                go_type(field)
            )
        })?;
        if let Some((name, bad)) = entries.iter().find(|(_, v)| !v.is_string()) {
            let kind = go_type(bad);
            return Err(format!(
                "metadata.{key}[{name}] must be a string, but is {kind} in converted object"
            ));
        }
        if value::at(original, path) != Some(field) {
            let errors = if key == "labels" {
                meta::validate_labels(field, path)
            } else {
                meta::validate_annotations(field, "metadata.annotation")
            };
            if !errors.is_empty() {
                return Err(crate::field::aggregate(&errors));
            }
        }
        value::put(&mut result, path, field.clone());
    }
    Ok(result)
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn original() -> Value {
        json!({"apiVersion":"x.io/v1","kind":"W","metadata":{"name":"a","uid":"u","labels":{"a":"b"}},"spec":{"x":1}})
    }

    fn review(object: &Value) -> Value {
        json!({"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"1",
            "result":{"status":"Success"},"convertedObjects":[object]}})
    }

    #[test]
    fn a_review_is_asked_for_in_the_first_version_that_both_speak() {
        let crd = json!({"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v3","v1"]}}}});
        let body = request(&crd, "1", "x.io/v2", &[&original()]).unwrap();
        assert_eq!(body["apiVersion"], "apiextensions.k8s.io/v1");
        assert_eq!(body["request"]["desiredAPIVersion"], "x.io/v2");
    }

    #[test]
    fn the_answer_keeps_the_originals_metadata_and_its_own_labels() {
        let old = original();
        let new = json!({"apiVersion":"x.io/v2","kind":"W","metadata":{"name":"a","uid":"u","labels":{"c":"d"},"finalizers":["x"]},"spec":{"y":1}});
        let got = answer(&review(&new), "1", "x.io/v2", &[&old]).unwrap();
        assert_eq!(
            got,
            [
                json!({"apiVersion":"x.io/v2","kind":"W","metadata":{"name":"a","uid":"u","labels":{"c":"d"}},"spec":{"y":1}})
            ]
        );
    }

    #[test]
    fn bad_answers_are_refused_in_the_words_of_the_server() {
        let old = original();
        let mut other = original();
        value::put(&mut other, "apiVersion", "x.io/v2");
        value::put(&mut other, "metadata.name", "b");
        assert_eq!(
            answer(&review(&other), "1", "x.io/v2", &[&old]).unwrap_err(),
            "conversion webhook for x.io/v1, Kind=W returned invalid object at index 0: must have the same name: a != b"
        );
        assert_eq!(
            answer(&review(&other), "2", "x.io/v2", &[&old]).unwrap_err(),
            "conversion webhook for x.io/v1, Kind=W failed: expected response.uid=\"2\", got \"1\""
        );
        let failed = json!({"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"1",
            "result":{"status":"Failure","message":"no"}}});
        assert_eq!(
            answer(&failed, "1", "x.io/v2", &[&old]).unwrap_err(),
            "conversion webhook for x.io/v1, Kind=W failed: no"
        );
    }
}
