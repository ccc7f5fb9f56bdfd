//! Each expectation was read from kube-apiserver 1.36.3.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "tests"
)]

use serde_json::{Value, json};

use super::*;
use crate::resource::{Context, Part};

const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn with(mut schema: Value, key: &str, extra: Value) -> Value {
    schema[key] = extra;
    schema
}

fn xy() -> Value {
    object(json!({"x":{"type":"string"},"y":{"type":"string"}}))
}

fn spec() -> Value {
    object(json!({
        "i":{"type":"integer","minimum":1,"maximum":10},
        "i32":{"type":"integer","format":"int32"},
        "xi":{"type":"integer","minimum":1,"maximum":10,"exclusiveMinimum":true,"exclusiveMaximum":true},
        "n":{"type":"number","minimum":1.5,"maximum":9.5,"multipleOf":0.5},
        "mi":{"type":"integer","multipleOf":3},
        "s":{"type":"string","minLength":2,"maxLength":4,"pattern":"^[a-z]+$"},
        "e":{"type":"string","enum":["A","B"]},
        "ei":{"type":"integer","enum":[1,2]},
        "b":{"type":"boolean"},
        "l":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3},
        "m":{"type":"object","additionalProperties":{"type":"string"},"minProperties":1,"maxProperties":2},
        "r":with(object(json!({"x":{"type":"string"}})), "required", json!(["x","y"])),
        "ios":{"x-kubernetes-int-or-string":true},
        "any":with(xy(), "anyOf", json!([{"required":["x"]},{"required":["y"]}])),
        "one":with(xy(), "oneOf", json!([{"required":["x"]},{"required":["y"]}])),
        "all":with(xy(), "allOf", json!([{"required":["x"]},{"required":["y"]}])),
        "not":with(xy(), "not", json!({"required":["x"]})),
        "dt":{"type":"string","format":"date-time"},
        "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
        "lm":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
            "items":with(object(json!({"name":{"type":"string"},"v":{"type":"integer","maximum":5}})), "required", json!(["name"]))},
        "lm2":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","p"],
            "items":with(object(json!({"name":{"type":"string"},"p":{"type":"integer","default":5}})), "required", json!(["name"]))},
        "emb":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
        "cel":with(object(json!({"a":{"type":"integer"},"b":{"type":"integer"},"l":{"type":"array","items":{"type":"string"}}})),
            "x-kubernetes-validations", json!([{"rule":"self.a <= self.b"},{"rule":"self.a != 7","message":"not seven"},
            {"rule":"self.a != 8","messageExpression":"self.a == 8 ? 'a is eight' : 'x'","reason":"FieldValueForbidden","fieldPath":".a"},
            {"rule":"self.l[3] == 'x'","message":"l3"}])),
        "imm":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf","message":"imm is immutable"}]},
        "opt":{"type":"integer","x-kubernetes-validations":[{"rule":"!oldSelf.hasValue() || self >= oldSelf.value()","optionalOldSelf":true,"message":"must not shrink"}]},
        "celi":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 5"},{"rule":"self < 6","reason":"FieldValueDuplicate"},
            {"rule":"self < 7","reason":"FieldValueRequired","message":"req"}]},
        "ell":{"type":"array","x-kubernetes-validations":[{"rule":"self.size() < 2"}],"items":{"type":"string"}},
        "dur":{"type":"string","format":"duration","x-kubernetes-validations":[{"rule":"self < duration('1h')"}]},
        "replicas":{"type":"integer"}
    }))
}

fn definition() -> Value {
    json!({"metadata":{"name":"widgets.x.io"},"spec":{"group":"x.io","scope":"Namespaced",
        "names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
        "versions":[{"name":"v1","served":true,"storage":true,
            "schema":{"openAPIV3Schema":object(json!({"spec":spec(),"status":object(json!({
                "replicas":{"type":"integer"},"sel":{"type":"string"},"x":{"type":"string"},
                "s":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}}))}))},
            "selectableFields":[{"jsonPath":".spec.e"},{"jsonPath":".spec.i"}],
            "subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas","labelSelectorPath":".status.sel"}}}]}})
}

fn cx() -> Context<'static> {
    Context {
        version: "v1",
        now: "2024-01-01T00:00:00Z".parse().unwrap(),
        user: None,
    }
}

fn widget(spec: &Value) -> Value {
    json!({"apiVersion":"x.io/v1","kind":"Widget","metadata":{"name":"x"},"spec":spec})
}

fn texts(errors: &crate::field::FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn judged(resource: &Resource, spec: &Value) -> Vec<String> {
    let mut object = widget(spec);
    prune(&resource.versions[0].schema, &mut object);
    resource.strategy.default(&mut object, &cx());
    texts(&resource.strategy.validate(&object, &cx()))
}

#[test]
fn bounds_and_sizes() {
    let r = resource(&definition()).unwrap();
    let cases = [
        (
            json!({"i":0}),
            "spec.i: Invalid value: 0: spec.i in body should be greater than or equal to 1",
        ),
        (
            json!({"i":11}),
            "spec.i: Invalid value: 11: spec.i in body should be less than or equal to 10",
        ),
        (
            json!({"xi":1}),
            "spec.xi: Invalid value: 1: spec.xi in body should be greater than 1",
        ),
        (
            json!({"xi":10}),
            "spec.xi: Invalid value: 10: spec.xi in body should be less than 10",
        ),
        (
            json!({"i32":3_000_000_000_u64}),
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.i32",
        ),
        (
            json!({"n":2.3}),
            "spec.n: Invalid value: 2.3: spec.n in body should be a multiple of 0.5",
        ),
        (
            json!({"n":1}),
            "spec.n: Invalid value: 0: factor MultipleOf declared for spec.n must be positive: 0",
        ),
        (
            json!({"mi":4}),
            "spec.mi: Invalid value: 4: spec.mi in body should be a multiple of 3",
        ),
        (
            json!({"s":"a"}),
            "spec.s: Invalid value: \"a\": spec.s in body should be at least 2 chars long",
        ),
        (
            json!({"s":"AB"}),
            "spec.s: Invalid value: \"AB\": spec.s in body should match '^[a-z]+$'",
        ),
        (
            json!({"l":[1]}),
            "spec.l: Invalid value: 1: spec.l in body should have at least 2 items",
        ),
        (
            json!({"m":{}}),
            "spec.m: Invalid value: 0: spec.m in body should have at least 1 properties",
        ),
        (
            json!({"one":{"x":"1","y":"2"}}),
            "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ),
        (
            json!({"not":{"x":"1"}}),
            "<nil>: Invalid value: \"\": \"spec.not\" must not validate the schema (not)",
        ),
        (
            json!({"set":["a","a","a"]}),
            "spec.set[1]: Duplicate value: \"a\"",
        ),
        (
            json!({"lm":[{"name":"a"},{"name":"a"}]}),
            "spec.lm[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (
            json!({"lm2":[{"name":"a"},{"name":"a"}]}),
            "spec.lm2[1]: Duplicate value: {\"name\":\"a\",\"p\":5}",
        ),
        (
            json!({"replicas":-1}),
            ".spec.replicas: Invalid value: -1: should be a non-negative integer",
        ),
        (
            json!({"replicas":9_999_999_999_u64}),
            ".spec.replicas: Invalid value: 9999999999: should be less than or equal to 2147483647",
        ),
        (
            json!({"ell":["a","b"]}),
            "spec.ell: Invalid value: failed rule: self.size() < 2",
        ),
        (
            json!({"cel":{"a":7,"b":9,"l":["a","b","c","x"]}}),
            "spec.cel: Invalid value: not seven",
        ),
        (
            json!({"cel":{"a":8,"b":9,"l":["a","b","c","x"]}}),
            "spec.cel.a: Forbidden: a is eight",
        ),
        (
            json!({"dur":"2h"}),
            "spec.dur: Invalid value: \"2h\": failed rule: self < duration('1h')",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(judged(&r, &spec), [expected], "{spec}");
    }
    for fine in [
        json!({"i":2.0}),
        json!({"i":null}),
        json!({"ios":"5%"}),
        json!({"dur":"5m"}),
        json!({"imm":"a","opt":3}),
        json!({"dt":"2024-01-01T00:00:00Z"}),
    ] {
        assert_eq!(judged(&r, &fine), [""; 0], "{fine}");
    }
}

#[test]
fn errors_that_keep_rules_from_running() {
    let r = resource(&definition()).unwrap();
    let cases: [(Value, &[&str]); 14] = [
        (
            json!({"i":"x","celi":9}),
            &[
                "spec.i: Invalid value: \"string\": spec.i in body must be of type integer: \"string\"",
            ],
        ),
        (
            json!({"i":1.5}),
            &[
                "spec.i: Invalid value: \"number\": spec.i in body must be of type integer: \"number\"",
                "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.i",
            ],
        ),
        (
            json!({"s":"abcde"}),
            &["spec.s: Too long: may not be more than 4 bytes"],
        ),
        (
            json!({"e":"C"}),
            &["spec.e: Unsupported value: \"C\": supported values: \"A\", \"B\""],
        ),
        (
            json!({"ei":3}),
            &["spec.ei: Unsupported value: 3: supported values: \"1\", \"2\""],
        ),
        (
            json!({"l":[1,2,3,4]}),
            &["spec.l: Too many: 4: must have at most 3 items"],
        ),
        (
            json!({"l":["a",2]}),
            &[
                "spec.l[0]: Invalid value: \"string\": spec.l[0] in body must be of type integer: \"string\"",
            ],
        ),
        (
            json!({"m":{"a":1,"b":"x"}}),
            &[
                "spec.m.a: Invalid value: \"integer\": spec.m.a in body must be of type string: \"integer\"",
            ],
        ),
        (
            json!({"r":{}}),
            &["spec.r.x: Required value", "spec.r.y: Required value"],
        ),
        (
            json!({"ios":true}),
            &[
                "spec.ios: Invalid value: \"boolean\": spec.ios in body must be of type integer,string: \"boolean\"",
            ],
        ),
        (
            json!({"any":{}}),
            &[
                "<nil>: Invalid value: \"\": \"spec.any\" must validate at least one schema (anyOf)",
                "spec.any.x: Required value",
            ],
        ),
        (
            json!({"all":{}}),
            &[
                "spec.all.x: Required value",
                "spec.all.y: Required value",
                "<nil>: Invalid value: \"\": \"spec.all\" must validate all the schemas (allOf). None validated",
            ],
        ),
        (
            json!({"dt":5}),
            &[
                "spec.dt: Invalid value: \"int64\": spec.dt in body must be of type date-time: \"int64\"",
            ],
        ),
        (
            json!({"emb":{}}),
            &[
                "spec.emb.apiVersion: Required value",
                "spec.emb.kind: Required value",
            ],
        ),
    ];
    for (spec, expected) in cases {
        let mut expected = expected.to_vec();
        expected.push(UNCHECKED);
        assert_eq!(judged(&r, &spec), expected, "{spec}");
    }
}

#[test]
fn rules_that_cannot_run_and_reasons() {
    let r = resource(&definition()).unwrap();
    assert_eq!(
        judged(&r, &json!({"cel":{"a":3,"b":2,"l":["x"]}})),
        [
            "spec.cel: Invalid value: failed rule: self.a <= self.b",
            "spec.cel: Invalid value: \"object\": index out of bounds: 3 evaluating rule: l3",
        ]
    );
    assert_eq!(
        judged(&r, &json!({"cel":{"b":2}})),
        [
            "spec.cel: Invalid value: \"object\": no such key: a evaluating rule: self.a <= self.b",
            "spec.cel: Invalid value: \"object\": no such key: a evaluating rule: not seven",
            "spec.cel: Invalid value: \"object\": no such key: a evaluating rule: self.a != 8",
            "spec.cel: Invalid value: \"object\": no such key: l evaluating rule: l3",
        ]
    );
    assert_eq!(
        judged(&r, &json!({"i":0,"celi":8})),
        [
            "spec.i: Invalid value: 0: spec.i in body should be greater than or equal to 1",
            "spec.celi: Invalid value: 8: failed rule: self < 5",
            "spec.celi: Duplicate value: 8",
            "spec.celi: Required value: req",
        ]
    );
}

#[test]
fn embedded_metadata() {
    let r = resource(&definition()).unwrap();
    let errors = judged(
        &r,
        &json!({"emb":{"apiVersion":"v1","kind":"A","metadata":{"name":"..","labels":{"a b":"c"}}}}),
    );
    assert_eq!(
        errors[0],
        "spec.emb.metadata.name: Invalid value: \"..\": may not be '..'"
    );
    assert!(
        errors[1].starts_with(
            "spec.emb.metadata.labels: Invalid value: \"a b\": name part must consist"
        )
    );
    let schema = &r.versions[0].schema;
    let bad = widget(&json!({"emb":{"apiVersion":"v1","kind":"A","metadata":{"name":5}}}));
    assert_eq!(
        embedded::readable(schema.view(), &bad)
            .unwrap_err()
            .to_string(),
        "spec.emb.metadata: Invalid value: {\"name\":5}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"
    );
}

#[test]
fn updates_see_the_old_value_and_tolerate_what_did_not_change() {
    let r = resource(&definition()).unwrap();
    let update = |old: Value, new: Value| {
        texts(
            &r.strategy
                .validate_update(Part::Main, &widget(&new), &widget(&old), &cx()),
        )
    };
    assert_eq!(
        update(json!({"imm":"a"}), json!({"imm":"b"})),
        ["spec.imm: Invalid value: \"b\": imm is immutable"]
    );
    assert_eq!(update(json!({}), json!({"imm":"b"})), [""; 0]);
    assert_eq!(
        update(json!({"opt":3}), json!({"opt":2})),
        ["spec.opt: Invalid value: 2: must not shrink"]
    );
    // What was invalid before and is the same now is let through; what is new is not.
    assert_eq!(update(json!({"i":99}), json!({"i":99,"e":"A"})), [""; 0]);
    assert_eq!(
        update(json!({"i":99}), json!({"i":98})),
        ["spec.i: Invalid value: 98: spec.i in body should be less than or equal to 10"]
    );
    assert_eq!(
        update(
            json!({"lm":[{"name":"a","v":9}]}),
            json!({"lm":[{"name":"b","v":1},{"name":"a","v":9}]})
        ),
        [""; 0]
    );
    assert_eq!(
        update(json!({"celi":9}), json!({"celi":9,"e":"A"})),
        [""; 0]
    );
    let warnings = r.strategy.warnings(
        &widget(&json!({"celi":9,"e":"A"})),
        Some(&widget(&json!({"celi":9}))),
        &cx(),
    );
    assert_eq!(
        warnings[0],
        "spec.celi: Invalid value: 9: failed rule: self < 5"
    );
    let judged = r.strategy.judge_update(
        Part::Main,
        &widget(&json!({"celi":9,"e":"A"})),
        &widget(&json!({"celi":9})),
        &cx(),
    );
    assert_eq!(judged, (Vec::new(), warnings), "both at once");
}

#[test]
fn status_and_main_keep_to_their_part() {
    let r = resource(&definition()).unwrap();
    let old = json!({"metadata":{"name":"x","labels":{"a":"b"},"managedFields":[1]},"spec":{"i":2},"status":{"x":"old"}});
    let asked = json!({"metadata":{"name":"x","labels":{},"managedFields":[2]},"spec":{"i":3},"status":{"x":"new"}});
    let mut object = asked.clone();
    r.strategy
        .prepare_update(Part::Status, &mut object, &old, &cx());
    assert_eq!(
        object,
        json!({"metadata":{"name":"x","labels":{"a":"b"},"managedFields":[2]},"spec":{"i":2},"status":{"x":"new"}})
    );
    assert!(r.strategy.generation_changed(&asked, &old));
    let mut object = asked;
    r.strategy
        .prepare_update(Part::Main, &mut object, &old, &cx());
    assert_eq!(object["status"], json!({"x":"old"}));
    let judged = |status: Value| {
        let mut new = old.clone();
        new["status"] = status;
        texts(&r.strategy.validate_update(Part::Status, &new, &old, &cx()))
    };
    assert_eq!(
        judged(json!({"x":5,"replicas":-1,"s":["a","a"]})),
        [
            "status.x: Invalid value: \"integer\": x in body must be of type string: \"integer\"",
            ".status.replicas: Invalid value: -1: should be a non-negative integer",
            "status.s[1]: Duplicate value: \"a\"",
            UNCHECKED,
        ]
    );
    assert_eq!(
        judged(json!({"sel":5})),
        [
            "status.sel: Invalid value: \"integer\": sel in body must be of type string: \"integer\"",
            ".status.sel: Invalid value: \"\": .status.sel accessor error: 5 is of the type int64, expected string",
            UNCHECKED,
        ]
    );
}

#[test]
fn the_resource_has_names_scale_and_selectable_fields() {
    let mut crd = definition();
    crd["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name":"v1beta1","served":true,"storage":false,"deprecated":true}));
    let r = resource(&crd).unwrap();
    let versions: Vec<&str> = r.versions.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(versions, ["v1", "v1beta1"]);
    assert_eq!(
        r.versions[1].deprecation.as_deref(),
        Some("x.io/v1beta1 Widget is deprecated; use x.io/v1 Widget")
    );
    assert_eq!(r.scale.as_ref().unwrap().selector, ".status.sel");
    let fields = r.strategy.fields(&widget(&json!({"e":"A","i":3})), "v1");
    assert_eq!(
        fields,
        [
            ("spec.e".to_owned(), "A".to_owned()),
            ("spec.i".to_owned(), "3".to_owned())
        ]
    );
    assert_eq!(r.strategy.selectable_names(), ["spec.e", "spec.i"]);
    assert!(!r.strategy.unconditional_update());
}

#[test]
fn stored_objects_lose_the_fields_that_the_version_that_is_read_does_not_know() {
    let mut crd = definition();
    crd["spec"]["versions"].as_array_mut().unwrap().push(json!({"name":"v2","served":true,"storage":false,
        "schema":{"openAPIV3Schema":object(json!({"spec":object(json!({"i":{"type":"integer"},"d":{"type":"string","default":"x"}}))}))}}));
    let r = resource(&crd).unwrap();
    assert!(!r.strategy.stored_as_is());
    let mut read = widget(&json!({"i":3,"e":"A"}));
    r.strategy.from_storage(&mut read, "v2");
    // Defaults are those of the version that is stored, as recorded from the real server.
    assert_eq!(read["spec"], json!({"i":3}));
    let mut written = widget(&json!({"i":3,"d":"x"}));
    r.strategy.to_storage(&mut written, "v2");
    assert_eq!(written["spec"], json!({"i":3}));
}
