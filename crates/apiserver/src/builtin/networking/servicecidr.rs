//! Ranges from which services get addresses.

use serde_json::Value;

use crate::builtin::cells;
use crate::builtin::checks::invalid_texts;
use crate::builtin::names;
use crate::builtin::rules::{BesideStatus, PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::Part;
use crate::value;

const PATH: &str = "spec.cidrs";

pub(super) const RULES: Rules = Rules {
    status: true,
    beside_status: BesideStatus::Nothing,
    validate: |object, _| validate(object),
    validate_update: |part, object, old, _| match part {
        Part::Status => Vec::new(),
        Part::Main | Part::Scale => validate_update(object, old),
    },
    columns: &[
        ("Name", "string", 0),
        ("CIDRs", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            ranges(object).join(",").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

fn ranges(object: &Value) -> Vec<&str> {
    cells::strings(object, PATH).collect()
}

fn validate(object: &Value) -> FieldErrors {
    let all = ranges(object);
    match all.as_slice() {
        [] => return vec![FieldError::required(PATH, "at least one CIDR required")],
        [_] | [_, _] => {}
        _ => {
            let spec = value::at(object, "spec").cloned().unwrap_or_default();
            return vec![FieldError::invalid(
                PATH,
                &spec,
                "may only hold up to 2 values",
            )];
        }
    }
    let mut errors = Vec::new();
    for (index, range) in all.iter().enumerate() {
        let path = format!("{PATH}[{index}]");
        errors.extend(invalid_texts(&path, range, names::cidr(range)));
    }
    if let [first, second] = all.as_slice()
        && errors.is_empty()
        && first.contains(':') == second.contains(':')
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(PATH, &all.into(), detail));
    }
    errors
}

/// Ranges stay; one of the other family may be added.
fn validate_update(object: &Value, old: &Value) -> FieldErrors {
    const IMMUTABLE: &str = "field is immutable";
    let (new, old) = (ranges(object), ranges(old));
    let grows = old.len() == 1 && new.len() == 2;
    if new.len() != old.len() && !grows {
        return vec![FieldError::invalid(PATH, &new.into(), IMMUTABLE)];
    }
    let mut errors: FieldErrors = old
        .iter()
        .zip(&new)
        .enumerate()
        .filter(|(_, (before, now))| before != now)
        .map(|(index, (_, now))| {
            FieldError::invalid_str(format!("{PATH}[{index}]"), now, IMMUTABLE)
        })
        .collect();
    if grows {
        errors.extend(validate(object));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ranges_stay_and_are_of_different_families() {
        let of = |ranges: &[&str]| json!({"spec": {"cidrs": ranges}});
        let one = of(&["10.0.0.0/16"]);
        assert!(validate(&one).is_empty());
        assert!(validate_update(&of(&["10.0.0.0/16", "2001:db8::/64"]), &one).is_empty());
        for wrong in [&["10.1.0.0/16"] as &[&str], &["10.0.0.0/16", "10.1.0.0/16"]] {
            assert_eq!(validate_update(&of(wrong), &one).len(), 1, "{wrong:?}");
        }
        assert_eq!(validate(&of(&[])).len(), 1);
    }
}
