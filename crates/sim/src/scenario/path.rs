//! Fields of objects, as scenarios name them: `status.conditions[Ready].status`.

use serde_json::Value;

/// The value at a path: names joined by dots, `[2]` for the third of a list, `[Ready]` for the one of a list whose
/// `type`, `name` or `reason` this is, `["a.b/c"]` for a name with dots in it.
pub fn look<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = object;
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(inside) = rest.strip_prefix('[') {
            let (step, after) = match inside.strip_prefix('"') {
                Some(quoted) => quoted.split_once("\"]")?,
                None => inside.split_once(']')?,
            };
            at = into(at, step)?;
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (step, after) = rest.split_at(end);
            at = at.get(step)?;
            rest = after;
        }
    }
    Some(at)
}

fn into<'a>(value: &'a Value, step: &str) -> Option<&'a Value> {
    let Some(list) = value.as_array() else {
        return value.get(step);
    };
    if let Ok(index) = step.parse::<usize>() {
        return list.get(index);
    }
    list.iter().find(|item| {
        ["type", "name", "reason"]
            .iter()
            .any(|field| item.get(field).and_then(Value::as_str) == Some(step))
    })
}

#[cfg(test)]
mod tests {
    use super::look;
    use serde_json::json;

    #[test]
    fn a_path_goes_through_maps_lists_and_names_with_dots() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "n": [1, 2]}
        });
        let text = |path| look(&object, path).cloned();
        assert_eq!(text("status.conditions[Ready].status"), Some(json!("True")));
        assert_eq!(text("metadata.annotations[\"a.b/c\"]"), Some(json!("x")));
        assert_eq!(text("status.n[1]"), Some(json!(2)));
        assert_eq!(text("status.conditions[Stalled].status"), None);
        assert_eq!(text("status.n[7]"), None);
    }
}
