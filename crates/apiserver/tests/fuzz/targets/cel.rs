//! CEL: rules of custom resources, from their text to their verdict.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_apiserver::crd::rules::Rules;
use slipway_apiserver::crd::structural::Structural;
use slipway_apiserver::resource::{Context, Resource};

use super::{law, told};
use crate::fuzz::corpus::corpus;
use crate::fuzz::generate::{damage, disturb};
use crate::fuzz::panics;
use crate::fuzz::tape::Tape;

const RULES: &[&str] = &[
    "self.replicas <= self.max",
    "self.items.all(i, i.size > 0)",
    "self.items.exists_one(i, i.name == 'a')",
    "has(self.name) && self.name.startsWith('a')",
    "self == oldSelf",
    "self.replicas >= oldSelf.replicas",
    "self.name.matches('^[a-z]+$')",
    "size(self.name) < 10",
    "self.labels.all(k, self.labels[k] != '')",
    "self.items.map(i, i.size).sum() < 100",
    "duration('1h') < duration('90m')",
    "timestamp('2026-01-01T00:00:00Z') < timestamp('2027-01-01T00:00:00Z')",
    "self.name in ['a', 'b']",
    "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
    "self.items.filter(i, has(i.name)).map(i, i.name).isSorted()",
    "url('https://a/b').getHost() == 'a'",
    "ip('10.0.0.1').family() == 4",
    "self.name.find('[0-9]+') != ''",
    "self.replicas % 2 == 0 ? true : self.max > 1",
    "self.name.split('-').size() < 3",
    "type(self.replicas) == int",
    "self.any.a.b == 1",
    "dyn(self.name) == 1",
    "self.items[0].size == 1u",
    "b'abc' == b'abc'",
    "'%s'.format([self.name]) == 'a'",
    "[1, 2].indexOf(2) == 1",
    "self.name.lowerAscii() == 'a'",
    "cel.bind(x, self.replicas, x > 1)",
    "optional.of(1).hasValue()",
    "self.?name.orValue('a') == 'a'",
    "self.items.all(i, v, v.size > i)",
];
const TOKENS: &[&str] = &[
    "self",
    "oldSelf",
    ".",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "&&",
    "||",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "<",
    "in",
    "?",
    ":",
    ",",
    "'",
    "\"",
    "true",
    "null",
    "1",
    "0",
    "9223372036854775807",
    "-9223372036854775808",
    "0u",
    "1.5",
    "1e308",
    "b''",
    "r'\\'",
    "\\u0000",
    "size(",
    "has(self.name)",
    ".all(x, ",
    ".exists(y, ",
    ".map(z, ",
    "self.items",
    "self.name",
    "self.replicas",
    "self.labels",
    "self.any",
    "timestamp('9999-12-31T23:59:59Z')",
    "duration('9223372036s')",
    "duration('-1ns')",
    "int(",
    "string(",
    "double(",
    "uint(",
    "dyn(",
    "type(",
    "matches(",
    "'(a+)+'",
    "é",
    "\u{1f980}",
    "//",
    "\n",
    "self.items.all(i, ",
    ".orValue(",
    "?.",
    "[?",
    "1 / 0",
    "1 % 0",
    ".substring(1, 0)",
    ".charAt(-1)",
    ".replace('', 'a')",
    ".format([",
    "'%d%x%e%.9999f'",
    "quantity('",
    ".split('', 99)",
    ".join('')",
    "ip('",
    "cidr('10.0.0.0/8')",
    "url('",
    "sets.contains([1],[1])",
    "semver('1.0.0')",
    "math.greatest(1,2)",
    "__result__",
    "@",
    "$",
    "`",
];

struct Stage {
    definitions: &'static Resource,
    template: Value,
}

fn stage() -> &'static Stage {
    static STAGE: LazyLock<Stage> = LazyLock::new(|| {
        let is_it = |resource: &&Resource| resource.names.kind == "CustomResourceDefinition";
        let item = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "size": {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 20}, "replicas": {"type": "integer"}, "max": {"type": "integer"}, "ratio": {"type": "number"},
                "items": {"type": "array", "maxItems": 10, "items": item},
                "labels": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 9}},
                "size": {"x-kubernetes-int-or-string": true}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "when": {"type": "string", "format": "date-time"}, "data": {"type": "string", "format": "byte"}, "old": {"type": "boolean"},
            },
            "x-kubernetes-validations": [{"rule": "true"}],
        }}});
        Stage {
            definitions: corpus().resources.iter().find(is_it).unwrap(),
            template: json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ws.fuzz.dev"}, "spec": {
                "group": "fuzz.dev", "scope": "Namespaced", "names": {"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList"},
                "conversion": {"strategy": "None"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            }}),
        }
    });
    &STAGE
}

/// Any text compiles or is refused; what compiles gives the same verdict twice; none of it takes long.
pub(super) fn cel(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let text = if tape.once_in(3) {
        expression(tape, 4)
    } else {
        damaged_rule(tape)
    };
    told(|| text.clone());
    let stage = stage();
    let mut definition = stage.template.clone();
    let schema = definition
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema")
        .unwrap();
    let spec = &mut schema["properties"]["spec"];
    spec["x-kubernetes-validations"] = json!([{"rule": text, "optionalOldSelf": tape.once_in(4)}]);
    if tape.once_in(4) {
        spec["x-kubernetes-validations"][0]["messageExpression"] = json!(text);
    }
    let schema = schema.clone();
    let cx = Context {
        version: "v1",
        now: Timestamp::constant(1_767_225_600, 0),
        user: None,
    };
    stage
        .definitions
        .strategy
        .prepare_create(&mut definition, &cx);
    let wrong = stage.definitions.strategy.validate(&definition, &cx);
    for error in &wrong {
        law();
        assert!(error.path.contains("openAPIV3Schema"), "{error:?}");
    }
    if !wrong.is_empty() {
        return;
    }
    let structural = Structural::read(&schema);
    let Some(rules) = Rules::compile(&structural, true) else {
        return;
    };
    let mut value = json!({"spec": {"name": "abc", "replicas": 1, "max": 3, "ratio": 1.5, "items": [{"name": "a", "size": 1}, {"size": 0}],
        "labels": {"a": "b"}, "size": "10%", "any": {"a": {"b": 1}}, "when": "2026-01-01T00:00:00Z", "data": "aGk="}});
    disturb(tape, &mut value, 2);
    let old = json!({"spec": {"name": "ab", "replicas": 2}});
    for old in [None, Some(&old)] {
        // The engine's panics are caught where it is called.
        let [first, second] =
            [(); 2].map(|()| panics::tolerated(|| rules.run(&structural, &value, old, "")));
        law();
        assert_eq!(
            format!("{:?}", first.errors),
            format!("{:?}", second.errors)
        );
    }
}

fn damaged_rule(tape: &mut Tape<'_>) -> String {
    let mut bytes = tape.pick(RULES).as_bytes().to_vec();
    damage(tape, &mut bytes, TOKENS, 5);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The ends of expressions.
const LEAVES: &[&str] = &[
    "self.name",
    "self.replicas",
    "self.items",
    "self.labels",
    "self.any",
    "1",
    "0",
    "-1",
    "1u",
    "1.5",
    "'a'",
    "''",
    "b'a'",
    "true",
    "null",
    "[]",
    "{}",
    "self.ratio",
    "self.size",
    "self.when",
    "self.data",
    "oldSelf.name",
    "9223372036854775807",
    "duration('1h')",
    "[1, 2, 3]",
    "{'a': 1}",
    "self.items[0]",
];

/// Functions of one value.
const FUNCTIONS: &[&str] = &[
    "size",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "dyn",
    "type",
    "timestamp",
    "duration",
    "quantity",
    "url",
    "ip",
    "cidr",
    "bool",
];

/// Methods with one argument.
const METHODS: &[&str] = &[
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "indexOf",
    "split",
    "join",
    "find",
    "findAll",
    "charAt",
    "substring",
    "format",
    "isGreaterThan",
    "add",
];

/// Methods without arguments.
const GETTERS: &[&str] = &[
    "size",
    "getHours",
    "getFullYear",
    "getSeconds",
    "min",
    "max",
    "sum",
    "isSorted",
    "lowerAscii",
    "trim",
    "asInteger",
    "sign",
    "family",
    "getHost",
    "masked",
    "hasValue",
];

/// An expression that is well formed.
fn expression(tape: &mut Tape<'_>, depth: usize) -> String {
    if depth == 0 || tape.is_at_end() {
        return tape.pick(LEAVES).to_owned();
    }
    let a = expression(tape, depth - 1);
    let b = expression(tape, depth - 1);
    match tape.below(14) {
        0 => format!("({a} && {b})"),
        1 => format!("({a} || {b})"),
        2 => format!("!({a})"),
        3 => format!(
            "({a} {} {b})",
            tape.pick(&["==", "!=", "<", "<=", ">", ">="])
        ),
        4 => format!("({a} {} {b})", tape.pick(&["+", "-", "*", "/", "%"])),
        5 => format!("({a} in {b})"),
        6 => format!("({a} ? {b} : {})", expression(tape, depth - 1)),
        7 => format!(
            "{a}.{}(x, {b})",
            tape.pick(&["all", "exists", "exists_one", "map", "filter"])
        ),
        8 => format!("{}({a})", tape.pick(FUNCTIONS)),
        9 => format!("{a}.{}({b})", tape.pick(METHODS)),
        10 => format!("{a}[{b}]"),
        11 => format!("[{a}, {b}]"),
        12 => format!("{{{a}: {b}}}"),
        _ => format!("{a}.{}()", tape.pick(GETTERS)),
    }
}
