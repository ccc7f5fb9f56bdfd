//! Values for `${NAME}` in manifests. A name without a value and without a default is an error, as Flux has it.

use std::collections::BTreeMap;

use serde_json::Value;

/// Where a manifest says that it is to be left as it is: a label or an annotation.
const SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// Puts values into all texts of a manifest; the name that has none, if there is one.
pub(super) fn into(manifest: &mut Value, values: &BTreeMap<String, String>) -> Result<(), String> {
    let is_disabled = ["labels", "annotations"].iter().any(|marks| {
        let marks = manifest.pointer(&format!("/metadata/{marks}"));
        marks.and_then(|marks| marks.get(SUBSTITUTE)?.as_str()) == Some("disabled")
    });
    if values.is_empty() || is_disabled {
        return Ok(());
    }
    every(manifest, values)
}

fn every(value: &mut Value, values: &BTreeMap<String, String>) -> Result<(), String> {
    match value {
        Value::String(text) if text.contains("${") => {
            *text = substituted(text, values)?;
            Ok(())
        }
        Value::Array(all) => all.iter_mut().try_for_each(|one| every(one, values)),
        Value::Object(all) => all.values_mut().try_for_each(|one| every(one, values)),
        _ => Ok(()),
    }
}

fn substituted(text: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(escaped) = before.strip_suffix('$') {
            made.push_str(escaped);
            made.push_str("${");
            rest = after;
            continue;
        }
        made.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            made.push_str("${");
            rest = after;
            continue;
        };
        let defaults = [":-", ":=", "-", "="];
        let found = defaults.iter().find_map(|sign| inside.split_once(sign));
        let (name, default) = found.map_or((inside, None), |(name, default)| (name, Some(default)));
        match values.get(name).map(String::as_str).or(default) {
            Some(value) => made.push_str(value),
            None => return Err(name.to_owned()),
        }
        rest = after;
    }
    made.push_str(rest);
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_get_their_values_or_defaults_and_what_has_neither_is_an_error() {
        let values = BTreeMap::from([("colour".to_owned(), "blue".to_owned())]);
        let of = |text: &str| substituted(text, &values);
        assert_eq!(of("a ${colour}, ${colour}"), Ok("a blue, blue".to_owned()));
        assert_eq!(of("${size:=big}${x:-}"), Ok("big".to_owned()));
        assert_eq!(
            of("$${kept} $(plain) $x"),
            Ok("${kept} $(plain) $x".to_owned())
        );
        assert_eq!(of("${missing}"), Err("missing".to_owned()));
        assert_eq!(of("${open"), Ok("${open".to_owned()));
        let mut left = json!({"metadata": {"labels": {SUBSTITUTE: "disabled"}}, "a": "${missing}"});
        assert_eq!(into(&mut left, &values), Ok(()));
        let mut plain = json!({"a": "${missing}"});
        assert_eq!(
            into(&mut plain, &BTreeMap::new()),
            Ok(()),
            "where nothing is given nothing is done"
        );
    }
}
