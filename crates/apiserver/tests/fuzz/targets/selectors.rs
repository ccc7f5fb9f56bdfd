//! Label and field selectors.

use std::collections::BTreeMap;

use slipway_apiserver::selector::{FieldSelector, LabelSelector, Operator, Requirement};

use super::{law, told};
use crate::fuzz::generate::{damage, text};
use crate::fuzz::tape::Tape;

const KEYS: &[&str] = &[
    "a",
    "b",
    "app.kubernetes.io/name",
    "in",
    "notin",
    "x.y/z",
    "A-1_2.3",
];
const VALUES: &[&str] = &[
    "",
    "x",
    "y",
    "1",
    "2",
    "-1",
    "in",
    "a-b",
    "9223372036854775807",
    "00",
    "notin",
];
const TOKENS: &[&str] = &[
    "=", "==", "!=", "!", ",", "(", ")", " in ", " notin ", ">", "<", " ", "in", "a", "\0", "()",
    "(,", ",)", "=>", "!!", "é", "exists",
];

/// A selector that was printed means the same when read, and it selects what its conditions say.
pub(super) fn labels(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let model: Vec<(String, Operator, Vec<String>)> =
        (0..tape.below(4)).map(|_| condition(tape)).collect();
    let printed: Vec<String> = model
        .iter()
        .map(|(key, operator, values)| print(tape, key, *operator, values))
        .collect();
    let mut text = printed.join(",");
    told(|| format!("{text:?}"));
    let parsed =
        LabelSelector::parse(&text).unwrap_or_else(|status| panic!("{text:?}: {}", status.message));
    let sets: Vec<BTreeMap<&str, &str>> = (0..4)
        .map(|_| {
            (0..tape.below(4))
                .map(|_| (tape.pick(KEYS), tape.pick(VALUES)))
                .collect()
        })
        .collect();
    for set in &sets {
        let wanted = model.iter().all(|(key, operator, values)| {
            holds(set.get(key.as_str()).copied(), *operator, values)
        });
        assert_eq!(
            parsed.matches(|key| set.get(key).copied()),
            wanted,
            "{text:?} on {set:?}"
        );
    }
    read_again(&parsed, &sets);

    let mut bytes = text.into_bytes();
    damage(tape, &mut bytes, TOKENS, 5);
    text = String::from_utf8_lossy(&bytes).into_owned();
    told(|| format!("{text:?}"));
    match LabelSelector::parse(&text) {
        Ok(parsed) => read_again(&parsed, &sets),
        Err(status) => assert_eq!(status.code, 400),
    }
}

fn read_again(selector: &LabelSelector, sets: &[BTreeMap<&str, &str>]) {
    law();
    let printed = selector.to_string();
    let again = LabelSelector::parse(&printed)
        .unwrap_or_else(|status| panic!("{printed:?}: {}", status.message));
    assert_eq!(again.to_string(), printed);
    for set in sets {
        let look = |key: &str| set.get(key).copied();
        assert_eq!(
            again.matches(look),
            selector.matches(look),
            "{printed:?} on {set:?}"
        );
    }
}

fn condition(tape: &mut Tape<'_>) -> (String, Operator, Vec<String>) {
    let key = tape.pick(KEYS).to_owned();
    let operator = tape.pick(&[
        Operator::Equals,
        Operator::In,
        Operator::NotIn,
        Operator::DoubleEquals,
        Operator::NotEquals,
        Operator::Exists,
        Operator::DoesNotExist,
        Operator::GreaterThan,
        Operator::LessThan,
    ]);
    let numbers = ["1", "2", "-1", "9223372036854775807", "00"];
    let values = match operator {
        Operator::Exists | Operator::DoesNotExist => Vec::new(),
        Operator::In | Operator::NotIn => (0..=tape.below(3))
            .map(|_| tape.pick(VALUES).to_owned())
            .collect(),
        Operator::GreaterThan | Operator::LessThan => {
            // A label's value does not begin with a dash.
            let number = tape.pick(&numbers);
            vec![if number.starts_with('-') { "1" } else { number }.to_owned()]
        }
        _ => vec![tape.pick(VALUES).to_owned()],
    };
    let values = values
        .into_iter()
        .map(|value| {
            if value.starts_with('-') {
                "x".to_owned()
            } else {
                value
            }
        })
        .collect();
    let made = Requirement::new(&key, operator, Vec::clone(&values));
    assert!(made.is_ok(), "{made:?}");
    (key, operator, values)
}

fn print(tape: &mut Tape<'_>, key: &str, operator: Operator, values: &[String]) -> String {
    let space = tape.pick(&["", " ", "\t", "  "]);
    let list = values.join(&format!("{space},{space}"));
    let one = values.first().map_or("", String::as_str);
    match operator {
        Operator::In => format!("{key} in{space}({space}{list}{space})"),
        Operator::NotIn => format!("{space}{key} notin ({list})"),
        Operator::Equals => format!("{key}{space}={space}{one}"),
        Operator::DoubleEquals => format!("{key}{space}=={one}"),
        Operator::NotEquals => format!("{key}!={space}{one}"),
        Operator::Exists => format!("{space}{key}{space}"),
        Operator::DoesNotExist => format!("!{space}{key}"),
        Operator::GreaterThan => format!("{key}{space}>{space}{one}"),
        Operator::LessThan => format!("{key}<{one}"),
    }
}

fn holds(value: Option<&str>, operator: Operator, values: &[String]) -> bool {
    let listed = value.is_some_and(|value| values.iter().any(|v| v == value));
    let order = || {
        let number = |text: &str| {
            text.parse::<i128>()
                .ok()
                .filter(|n| i64::try_from(*n).is_ok())
        };
        Some(number(value?)?.cmp(&number(values.first()?)?))
    };
    match operator {
        Operator::In | Operator::Equals | Operator::DoubleEquals => listed,
        Operator::NotIn | Operator::NotEquals => !listed,
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::GreaterThan => order().is_some_and(std::cmp::Ordering::is_gt),
        Operator::LessThan => order().is_some_and(std::cmp::Ordering::is_lt),
    }
}

/// As for labels.
pub(super) fn fields(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let names = [
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "status.phase",
        "type",
    ];
    let model: Vec<(&str, bool, String)> = (0..tape.below(4))
        .map(|_| (tape.pick(&names), tape.once_in(3), text(tape)))
        .collect();
    let escape = |value: &str| {
        value
            .replace('\\', "\\\\")
            .replace(',', "\\,")
            .replace('=', "\\=")
    };
    let printed: Vec<String> = model
        .iter()
        .map(|(name, negated, value)| {
            let operator = if *negated {
                "!="
            } else {
                tape.pick(&["=", "=="])
            };
            format!("{name}{operator}{}", escape(value))
        })
        .collect();
    let mut text = printed.join(",");
    told(|| format!("{text:?}"));
    let parsed =
        FieldSelector::parse(&text).unwrap_or_else(|status| panic!("{text:?}: {}", status.message));
    let sets: Vec<BTreeMap<&str, &str>> = (0..4)
        .map(|_| {
            let mut pairs: BTreeMap<&str, &str> = model
                .iter()
                .filter(|_| tape.once_in(2))
                .map(|(n, _, v)| (*n, v.as_str()))
                .collect();
            pairs.insert(tape.pick(&names), tape.pick(VALUES));
            pairs
        })
        .collect();
    law();
    for set in &sets {
        let wanted = model.iter().all(|(name, negated, value)| {
            (set.get(name).copied().unwrap_or_default() == value) != *negated
        });
        assert_eq!(
            parsed.matches(|name| set.get(name).copied()),
            wanted,
            "{text:?} on {set:?}"
        );
    }
    let mut bytes = text.into_bytes();
    damage(
        tape,
        &mut bytes,
        &[
            "=",
            "==",
            "!=",
            ",",
            "\\",
            "\\,",
            "\\=",
            "\\\\",
            "\\x",
            " ",
            "metadata.name=",
            "!",
            "a",
        ],
        5,
    );
    text = String::from_utf8_lossy(&bytes).into_owned();
    told(|| format!("{text:?}"));
    for selector in [Ok(parsed), FieldSelector::parse(&text)] {
        match selector {
            Ok(selector) => {
                let printed = selector.to_string();
                let again = FieldSelector::parse(&printed)
                    .unwrap_or_else(|status| panic!("{printed:?}: {}", status.message));
                // In which order depends on how a term was written, in the real server too.
                let sort = |selector: &FieldSelector| {
                    let mut all: Vec<_> = selector
                        .requirements()
                        .iter()
                        .map(|r| (r.field.clone(), r.value.clone(), r.negated))
                        .collect();
                    all.sort();
                    all
                };
                assert_eq!(sort(&again), sort(&selector));
            }
            Err(status) => assert_eq!(status.code, 400),
        }
    }
}
