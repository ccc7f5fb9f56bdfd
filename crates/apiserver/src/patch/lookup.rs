//! What the schema says of a field that is merged, and what is left of a patch that finds nothing to merge with.

use serde_json::Value;

use super::strategic::{DIRECTIVE, Merged, Refusal};
use crate::field::quote;
use crate::schema::{PatchStrategy, View};

/// The field of a struct, by name or, as Go's decoder would, by name in other letters.
pub(super) fn lookup<'a>(view: View<'a>, key: &str) -> Merged<(&'a PatchStrategy, View<'a>)> {
    let exact = view.field(key);
    let found = exact.or_else(|| {
        view.fields()
            .find(|(name, ..)| name.eq_ignore_ascii_case(key))
            .map(|(_, field, child)| (field, child))
    });
    if let Some((field, child)) = found {
        return Ok((&field.patch, child));
    }
    Err(Refusal::Other(if view.node.values.is_some() {
        "merging an object in json but data type is not struct, instead is: map".to_owned()
    } else {
        format!(
            "unable to find api field in struct {} for the json field {}",
            view.node.go_name(),
            quote(key)
        )
    }))
}

/// As [`lookup`], for a list: the view is that of its items.
pub(super) fn lookup_list<'a>(view: View<'a>, key: &str) -> Merged<(&'a PatchStrategy, View<'a>)> {
    let (strategy, list) = lookup(view, key)?;
    match list.items() {
        None => {
            let text = "expected slice or array type, but got: struct";
            Err(Refusal::Other(text.to_owned()))
        }
        Some(items) if items.items().is_some() => {
            Err(Refusal::Other("unexpected slice of slice".to_owned()))
        }
        Some(items) => Ok((strategy, items)),
    }
}

/// A value of the patch that finds nothing to merge with. None if it is nothing but a directive.
pub(super) fn without_nulls_and_directives(mut value: Value) -> Option<Value> {
    discard_nulls(&mut value);
    without_directives(value)
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

pub(super) fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter()
                .filter_map(|(key, v)| Some((key, without_directives(v)?)))
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(
            items.into_iter().filter_map(without_directives).collect(),
        )),
        scalar => Some(scalar),
    }
}
