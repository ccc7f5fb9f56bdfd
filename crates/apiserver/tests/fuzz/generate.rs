//! Values, texts and damage, out of a tape's choices.

use serde_json::{Map, Value, json};

use super::tape::Tape;

/// Names and texts that the server looks at.
pub(crate) const WORDS: &[&str] = &[
    "metadata",
    "name",
    "labels",
    "spec",
    "status",
    "a",
    "b",
    "annotations",
    "ownerReferences",
    "finalizers",
    "containers",
    "template",
    "selector",
    "matchLabels",
    "matchExpressions",
    "operator",
    "values",
    "key",
    "replicas",
    "managedFields",
    "fieldsV1",
    "fieldsType",
    "manager",
    "operation",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "$setElementOrder/finalizers",
    "op",
    "path",
    "value",
    "rules",
    "kind",
    "apiVersion",
    "ports",
    "data",
    "binaryData",
    "stringData",
    "uid",
    "generateName",
    "namespace",
    "deletionTimestamp",
    "creationTimestamp",
    "resourceVersion",
    "generation",
    "versions",
    "schema",
    "openAPIV3Schema",
    "properties",
    "type",
    "x-kubernetes-validations",
    "rule",
    "items",
    "image",
    "env",
    "valueFrom",
    "volumes",
    "volumeMounts",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "strategy",
    "rollingUpdate",
    "maxSurge",
    "maxUnavailable",
    "conditions",
    "lastTransitionTime",
    "schedule",
    "timeZone",
    "webhooks",
    "clientConfig",
    "caBundle",
    "roleRef",
    "subjects",
    "additionalProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "default",
    "pattern",
    "enum",
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "nodePort",
    "port",
    "protocol",
    "targetPort",
];

/// Values at the edges of what fields take.
pub(crate) const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "default",
    "v1",
    "apps/v1",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.123456Z",
    "9999-12-31T23:59:59Z",
    "-001-01-01T00:00:00Z",
    "10%",
    "101%",
    "-1%",
    "%",
    "1e99Gi",
    "1Ki",
    "0.5",
    "100m",
    "-1",
    "1e-9n",
    "9223372036854775808",
    "99999999999999999999999999999999E",
    "remove",
    "replace",
    "delete",
    "merge",
    "keep",
    "/metadata",
    "/metadata/name",
    "/spec/-",
    "self.x > 1",
    "*/5 * * * *",
    "@every 1s",
    "TZ=UTC * * * * *",
    "1-0 * * * *",
    "Europe/Berlin",
    "TCP",
    "UDP",
    "Always",
    "In",
    "NotIn",
    "Exists",
    "10.0.0.1",
    "::1",
    "::ffff:1.2.3.4",
    "10.0.0.0/8",
    "10.0.0.1/33",
    "http",
    "https://a/b",
    "a/b",
    "a/b/c",
    "A",
    "-a",
    "a-",
    "a.b",
    "a..b",
    "kubernetes.io/metadata.name",
    "é",
    "\u{0}",
    "\n",
    "\"",
    "\\",
    "<&>",
    "🦀",
    "\u{fffd}",
    "^(a+)+$",
    "[",
    "object",
    "array",
    "string",
    "integer",
    "int-or-string",
    "Namespaced",
    "Cluster",
    "f:spec",
    "k:{\"name\":\"a\"}",
    "v:1",
    "i:0",
    "x",
    ".",
    "..",
    "aHR0cA==",
    "aGk",
    "a=",
    "1.5",
    "true",
    "null",
    "~",
    "0x10",
    "1_000",
    "00",
    "LoadBalancer",
    "ExternalName",
    "None",
    "IPv6",
    "RequireDualStack",
    "ClusterFirst",
    "RollingUpdate",
    "OnDelete",
    "Recreate",
    "Foreground",
];

pub(crate) fn leaf(tape: &mut Tape<'_>) -> Value {
    match tape.below(10) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 | 4 => json!(tape.number()),
        5 => json!(tape.pick(&[0.0, -0.0, 1.5, 1e300, -1e-300, 9.3e18, 1e21, 0.1])),
        6 => json!(tape.pick(WORDS)),
        7 => json!(text(tape)),
        _ => json!(tape.pick(TEXTS)),
    }
}

/// Text of any kind.
pub(crate) fn text(tape: &mut Tape<'_>) -> String {
    match tape.below(4) {
        0 => tape.pick(TEXTS).to_owned(),
        1 => String::from_utf8_lossy(&tape.bytes(12)).into_owned(),
        // Short enough for a key in YAML, which ends at 1,024 bytes.
        2 => tape
            .pick(TEXTS)
            .chars()
            .cycle()
            .take(tape.below(150))
            .collect(),
        _ => format!("{}{}", tape.pick(TEXTS), tape.pick(TEXTS)),
    }
}

/// Any JSON.
pub(crate) fn any_json(tape: &mut Tape<'_>, depth: usize) -> Value {
    if depth == 0 || tape.is_at_end() {
        return leaf(tape);
    }
    match tape.below(4) {
        0 => leaf(tape),
        1 => {
            let count = tape.below(4);
            Value::Array((0..count).map(|_| any_json(tape, depth - 1)).collect())
        }
        _ => {
            let count = tape.below(5);
            let fields = (0..count).map(|_| (key(tape), any_json(tape, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}

pub(crate) fn key(tape: &mut Tape<'_>) -> String {
    if tape.once_in(6) {
        text(tape)
    } else {
        tape.pick(WORDS).to_owned()
    }
}

/// A part of a value, chosen on the way down.
pub(crate) fn part<'v>(tape: &mut Tape<'_>, mut value: &'v mut Value) -> &'v mut Value {
    for _ in 0..12 {
        let count = match &*value {
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        };
        if count == 0 || tape.once_in(6) {
            break;
        }
        let at = tape.below(count);
        value = match value {
            Value::Array(items) => &mut items[at],
            Value::Object(map) => map.values_mut().nth(at).unwrap(),
            _ => unreachable!("it has parts"),
        };
    }
    value
}

/// Changes up to `most` things in a value; at the end of the tape nothing.
pub(crate) fn disturb(tape: &mut Tape<'_>, value: &mut Value, most: usize) {
    for _ in 0..tape.below(most + 1) {
        if tape.is_at_end() {
            return;
        }
        disturb_once(tape, value);
    }
}

fn disturb_once(tape: &mut Tape<'_>, value: &mut Value) {
    let other = {
        let mut copy = part(tape, value).clone();
        if size(&copy) > 400 {
            copy = Value::Null;
        }
        copy
    };
    let here = part(tape, value);
    match (tape.below(9), here) {
        (1, here) => *here = any_json(tape, 3),
        (2, here) => *here = other,
        (3, Value::Object(map)) if !map.is_empty() => {
            let name = map.keys().nth(tape.below(map.len())).unwrap().clone();
            map.remove(&name);
        }
        (3, Value::Array(items)) if !items.is_empty() => {
            items.remove(tape.below(items.len()));
        }
        (4, Value::Object(map)) => {
            map.insert(key(tape), other);
        }
        (4, Value::Array(items)) => items.push(other),
        (5, Value::Array(items)) if !items.is_empty() => {
            let twice = items[tape.below(items.len())].clone();
            items.push(twice);
        }
        (5, Value::Object(map)) => {
            map.insert(key(tape), leaf(tape));
        }
        (6, here) => *here = json!([here.take()]),
        (7, Value::String(text)) => {
            let mut bytes = std::mem::take(text).into_bytes();
            damage_once(tape, &mut bytes, &[]);
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        (7, here @ Value::Number(_)) => *here = json!(tape.number()),
        (_, here) => *here = leaf(tape),
    }
}

/// How many values there are in it.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Changes up to `most` things in bytes; `tokens` are pieces that mean something there.
pub(crate) fn damage(tape: &mut Tape<'_>, bytes: &mut Vec<u8>, tokens: &[&str], most: usize) {
    for _ in 0..tape.below(most + 1) {
        if tape.is_at_end() {
            return;
        }
        damage_once(tape, bytes, tokens);
    }
}

fn damage_once(tape: &mut Tape<'_>, bytes: &mut Vec<u8>, tokens: &[&str]) {
    let at = tape.below(bytes.len() + 1);
    let length = tape.below(16).min(bytes.len() - at);
    match tape.below(8) {
        0 if at < bytes.len() => bytes[at] = tape.byte(),
        1 if at < bytes.len() => bytes[at] ^= 1 << tape.below(8),
        2 => drop(bytes.drain(at..at + length)),
        3 => {
            let piece = bytes[at..at + length].to_vec();
            let to = tape.below(bytes.len() + 1);
            bytes.splice(to..to, piece);
        }
        4 => bytes.truncate(at),
        5 => {
            let piece = tape.bytes(8);
            bytes.splice(at..at, piece);
        }
        _ if !tokens.is_empty() => {
            let token = tape.pick(tokens);
            let times = if tape.once_in(8) {
                1 + tape.below(1500)
            } else {
                1
            };
            bytes.splice(at..at, token.repeat(times).into_bytes());
        }
        _ => bytes.splice(at..at, [tape.byte()]).for_each(drop),
    }
}

/// Some of an object: each field may be left out, down to the leaves.
pub(crate) fn thinned(tape: &mut Tape<'_>, value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter_map(|(name, value)| {
                // What names an item of a list has to stay for the list to make sense.
                let is_key = matches!(
                    name.as_str(),
                    "name" | "port" | "containerPort" | "protocol" | "apiVersion" | "kind"
                );
                (is_key || !tape.once_in(4)).then(|| (name.clone(), thinned(tape, value)))
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let kept = items.iter().filter_map(|item| {
                if tape.once_in(5) {
                    None
                } else {
                    Some(thinned(tape, item))
                }
            });
            Value::Array(kept.collect())
        }
        other => other.clone(),
    }
}

/// What items of lists are told apart by, in one kind or another.
const KEYS: &[&str] = &[
    "name",
    "port",
    "containerPort",
    "protocol",
    "uid",
    "type",
    "ip",
    "key",
    "mountPath",
    "devicePath",
    "topologyKey",
    "resourceName",
];

/// Whether a list has the same item twice, as far as merging is concerned: by one of the keys that there are, or only
/// by all of them.
pub(crate) fn has_twins(value: &Value, by_one: bool) -> bool {
    match value {
        Value::Object(map) => map.values().any(|value| has_twins(value, by_one)),
        Value::Array(items) => {
            let alike = |a: &Value, b: &Value| {
                let mut shared = KEYS
                    .iter()
                    .filter(|key| a.get(key).is_some() || b.get(key).is_some());
                match (a.is_object() && b.is_object(), by_one) {
                    (false, _) => a == b,
                    (true, true) => shared.any(|key| a.get(key) == b.get(key)),
                    (true, false) => shared.all(|key| a.get(key) == b.get(key)),
                }
            };
            let pair = |(i, a): (usize, &Value)| items.iter().skip(i + 1).any(|b| alike(a, b));
            items.iter().enumerate().any(pair) || items.iter().any(|item| has_twins(item, by_one))
        }
        _ => false,
    }
}
