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

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn plain() -> Value {
    object(json!({"spec": object(json!({"a":{"type":"string"}}))}))
}

fn crd(schema: Value) -> Value {
    json!({"metadata":{"name":"widgets.x.example.com"},"spec":{"group":"x.example.com","scope":"Namespaced",
        "names":{"plural":"widgets","kind":"Widget"},
        "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":schema}}]}})
}

fn cx() -> Context<'static> {
    Context {
        version: "v1",
        now: "2024-01-01T00:00:00Z".parse().unwrap(),
        user: None,
    }
}

fn judged(mut crd: Value) -> Vec<String> {
    Definition.default(&mut crd, &cx());
    Definition.prepare_create(&mut crd, &cx());
    Definition
        .validate(&crd, &cx())
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn changed(path: &str, to: Value) -> Value {
    let mut one = crd(plain());
    *one.pointer_mut(path).unwrap() = to;
    one
}

#[test]
fn a_plain_definition_is_accepted_and_defaulted() {
    assert_eq!(judged(crd(plain())), [""; 0]);
    let mut one = crd(plain());
    Definition.default(&mut one, &cx());
    assert_eq!(
        one["spec"]["names"],
        json!({"plural":"widgets","kind":"Widget","singular":"widget","listKind":"WidgetList"})
    );
    assert_eq!(one["spec"]["conversion"], json!({"strategy":"None"}));
    assert_eq!(one["status"]["storedVersions"], json!(["v1"]));
}

#[test]
fn names_scope_and_group() {
    assert_eq!(
        judged(changed("/metadata/name", json!("foo.bar.com"))),
        [
            "metadata.name: Invalid value: \"foo.bar.com\": must be spec.names.plural+\".\"+spec.group"
        ]
    );
    assert_eq!(
        judged(changed("/spec/scope", json!("Foo"))),
        ["spec.scope: Unsupported value: \"Foo\": supported values: \"Cluster\", \"Namespaced\""]
    );
    let mut one = changed("/spec/group", json!("foo"));
    one["metadata"]["name"] = json!("Widgets.foo");
    one["spec"]["names"] = json!({"plural":"Widgets","kind":"9Wid","singular":"X.","listKind":"9Wid","shortNames":["A_"],"categories":["B_"]});
    let mixed = "may have mixed case, but should otherwise match: ";
    assert_eq!(
        judged(one),
        [
            "spec.group: Invalid value: \"foo\": should be a domain with at least one dot"
                .to_owned(),
            format!("spec.names.plural: Invalid value: \"Widgets\": {LABEL}"),
            format!("spec.names.singular: Invalid value: \"X.\": {LABEL}"),
            format!("spec.names.kind: Invalid value: \"9Wid\": {mixed}{LABEL}"),
            format!("spec.names.listKind: Invalid value: \"9Wid\": {mixed}{LABEL}"),
            format!("spec.names.shortNames[0]: Invalid value: \"A_\": {LABEL}"),
            "spec.names.listKind: Invalid value: \"9Wid\": kind and listKind may not be the same"
                .to_owned(),
            format!("spec.names.categories[0]: Invalid value: \"B_\": {LABEL}"),
        ]
    );
    let mut one = changed("/spec/group", json!("foo.k8s.io"));
    one["metadata"]["name"] = json!("widgets.foo.k8s.io");
    assert_eq!(
        judged(one),
        [
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        ]
    );
}

#[test]
fn versions() {
    let version = |name: &str, storage: bool| json!({"name":name,"served":true,"storage":storage,"schema":{"openAPIV3Schema":plain()}});
    let shown = |name: &str, storage: bool| {
        format!(
            "{{\"Name\":\"{name}\",\"Served\":true,\"Storage\":{storage},\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}"
        )
    };
    assert_eq!(
        judged(changed(
            "/spec/versions",
            json!([version("v1", true), version("v2", true)])
        )),
        [
            format!(
                "spec.versions: Invalid value: [{},{}]: must have exactly one version marked as storage version",
                shown("v1", true),
                shown("v2", true)
            ),
            "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2"
                .to_owned(),
        ]
    );
    assert_eq!(
        judged(changed(
            "/spec/versions",
            json!([version("v1", true), version("v1", false)])
        )),
        [format!(
            "spec.versions: Invalid value: [{},{}]: must contain unique version names",
            shown("v1", true),
            shown("v1", false)
        ),]
    );
    assert_eq!(
        judged(changed(
            "/spec/versions",
            json!([{"name":"v1","served":true,"storage":true}])
        )),
        ["spec.versions[0].schema.openAPIV3Schema: Required value"]
    );
    assert_eq!(
        judged(changed("/spec/versions", json!([]))),
        [
            "spec.versions: Invalid value: []: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ]
    );
    assert_eq!(
        judged(changed("/spec/versions/0/name", json!("V_"))),
        [
            format!("spec.versions[0].name: Invalid value: \"V_\": {LABEL}"),
            format!("spec.version: Invalid value: \"V_\": {LABEL}"),
        ]
    );
}

#[test]
fn schemas_must_be_structural() {
    let s = "spec.validation.openAPIV3Schema";
    let cases: [(Value, &[&str]); 15] = [
        (
            json!({"properties":{"spec":{"properties":{"a":{}}}}}),
            &[
                ".properties[spec].properties[a].type: Required value: must not be empty for specified object fields",
                ".properties[spec].type: Required value: must not be empty for specified object fields",
                ".type: Required value: must not be empty at the root",
            ],
        ),
        (
            object(json!({"metadata":{"type":"object","description":"x"}})),
            &[
                ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
        (
            object(json!({"metadata":{"type":"string"}})),
            &[".properties[metadata].type: Invalid value: \"string\": must be object"],
        ),
        (
            object(json!({"kind":{"type":"object"}})),
            &[".properties[kind].type: Invalid value: \"object\": must be string"],
        ),
        (
            object(json!({"spec":{"type":"array"}})),
            &[".properties[spec].items: Required value: must be specified"],
        ),
        (
            object(json!({"spec":{"type":"foo"}})),
            &[
                ".properties[spec].type: Unsupported value: \"foo\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            ],
        ),
        (
            json!({"type":"string"}),
            &[".type: Invalid value: \"string\": must be object at the root"],
        ),
        (
            object(
                json!({"spec":{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"b":{"type":"string","description":"d"}}}]}}),
            ),
            &[
                ".properties[spec].anyOf[0].properties[b].description: Forbidden: must be empty to be structural",
                ".properties[spec].anyOf[0].properties[b].type: Forbidden: must be empty to be structural",
            ],
        ),
        (
            object(json!({"spec":{"type":"object","nullable":true,"$ref":"#/x"}})),
            &[".properties[spec].$ref: Forbidden: $ref is not supported"],
        ),
        (
            object(json!({"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":false}})),
            &[
                ".properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
            ],
        ),
        (
            object(json!({"spec":{"x-kubernetes-embedded-resource":true}})),
            &[
                ".properties[spec].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
                ".properties[spec].type: Required value: must be object if x-kubernetes-embedded-resource is true",
            ],
        ),
        (
            object(json!({"apiVersion":{"type":"string","default":"x"}})),
            &[
                ".properties[apiVersion].default: Forbidden: must not be set in top-level apiVersion",
            ],
        ),
        (
            object(
                json!({"spec":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}}),
            ),
            &[
                ".properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ],
        ),
        (
            object(json!({"spec":{"type":"string","pattern":"("}})),
            &[
                ".properties[spec].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
            ],
        ),
        (
            object(json!({"spec":{"type":"array","uniqueItems":true,"items":{"type":"string"}}})),
            &[
                ".properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ],
        ),
    ];
    for (schema, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|e| format!("{s}{e}")).collect();
        assert_eq!(judged(crd(schema.clone())), expected, "{schema}");
    }
}

#[test]
fn lists_and_defaults() {
    let s = "spec.validation.openAPIV3Schema.properties[spec]";
    let list = |extra: Value| {
        let mut schema = json!({"type":"array"});
        schema
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        judged(crd(object(json!({"spec": schema}))))
    };
    assert_eq!(
        list(
            json!({"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":object(json!({"name":{"type":"string"}}))})
        ),
        [format!(
            "{s}.items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        )]
    );
    assert_eq!(
        list(
            json!({"x-kubernetes-list-type":"set","items":object(json!({"name":{"type":"string"}}))})
        ),
        [format!(
            "{s}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set"
        )]
    );
    assert_eq!(
        list(json!({"x-kubernetes-list-map-keys":["a"],"items":{"type":"string"}})),
        [format!(
            "{s}.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty"
        )]
    );
    let defaults = object(
        json!({"spec":object(json!({"l":{"type":"integer","default":"x"},"o":{"type":"object","default":{"z":1}},"e":{"type":"string","enum":["A"],"default":"B"}}))}),
    );
    assert_eq!(
        judged(crd(defaults)),
        [
            format!("{s}.properties[e].default: Unsupported value: \"B\": supported values: \"A\""),
            format!(
                "{s}.properties[l].default: Invalid value: \"string\":  in body must be of type integer: \"string\""
            ),
            format!(
                "{s}.properties[o].default: Invalid value: {{\"z\":1}}: must not have unknown fields"
            ),
        ]
    );
}

#[test]
fn columns_scale_and_selectable_fields() {
    let version = |key: &str, value: Value| {
        let mut one = crd(plain());
        one["spec"]["versions"][0][key] = value;
        judged(one)
    };
    assert_eq!(
        version(
            "additionalPrinterColumns",
            json!([{"name":"A","type":"foo","jsonPath":"spec.a"},{"name":"B","type":"string","format":"zz","jsonPath":".spec"},{"name":"","type":"string","jsonPath":""}])
        ),
        [
            "spec.additionalPrinterColumns[0].type: Invalid value: \"foo\": must be one of boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec.a\": must be a simple json path starting with .",
            "spec.additionalPrinterColumns[1].format: Invalid value: \"zz\": must be one of byte,date,date-time,double,float,int32,int64,password",
            "spec.additionalPrinterColumns[2].name: Required value",
            "spec.additionalPrinterColumns[2].JSONPath: Required value",
        ]
    );
    assert_eq!(
        version(
            "subresources",
            json!({"scale":{"specReplicasPath":".status.x","statusReplicasPath":"spec.x","labelSelectorPath":".foo.x"}})
        ),
        [
            "spec.subresources.scale.specReplicasPath: Invalid value: \".status.x\": should be a json path under .spec",
            "spec.subresources.scale.statusReplicasPath: Invalid value: \"spec.x\": must be a simple json path starting with .",
            "spec.subresources.scale.labelSelectorPath: Invalid value: \".foo.x\": should be a json path under either .spec or .status",
        ]
    );
    assert_eq!(
        version(
            "selectableFields",
            json!([{"jsonPath":".spec.zz"},{"jsonPath":".spec"},{"jsonPath":".spec.a"},{"jsonPath":".spec.a"}])
        ),
        [
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec.zz\": is an invalid path: does not refer to a valid field",
            "spec.selectableFields[1].jsonPath: Invalid value: \".spec\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
            "spec.selectableFields[3].jsonPath: Duplicate value: \".spec.a\"",
        ]
    );
}

#[test]
fn conversion() {
    let with = |conversion: Value| {
        let mut one = crd(plain());
        one["spec"]["conversion"] = conversion;
        judged(one)
    };
    assert_eq!(
        with(json!({"strategy":"Webhook"})),
        [
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ]
    );
    assert_eq!(
        with(
            json!({"strategy":"Webhook","webhook":{"clientConfig":{"url":"http://foo"},"conversionReviewVersions":["v3","v3"]}})
        ),
        [
            "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v3\": duplicate version",
            "spec.conversion.conversionReviewVersions: Invalid value: [\"v3\",\"v3\"]: must include at least one of v1, v1beta1",
        ]
    );
    assert_eq!(
        with(
            json!({"strategy":"Foo","webhook":{"clientConfig":{"url":"https://foo"},"conversionReviewVersions":["v1"]}})
        ),
        [
            "spec.conversion.strategy: Unsupported value: \"Foo\": supported values: \"None\", \"Webhook\"",
            "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
        ]
    );
}

#[test]
fn what_an_update_may_change() {
    let mut old = crd(plain());
    Definition.default(&mut old, &cx());
    old["status"] = crd::establish(&old, &Vec::new, cx().now);
    let update = |change: fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        Definition.prepare_update(Part::Main, &mut new, &old, &cx());
        let errors = Definition.validate_update(Part::Main, &new, &old, &cx());
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        update(|c| c["spec"]["scope"] = json!("Cluster")),
        ["spec.scope: Invalid value: \"Cluster\": field is immutable"]
    );
    assert_eq!(
        update(|c| c["spec"]["names"]["shortNames"] = json!(["w"])),
        [""; 0]
    );
    assert_eq!(
        update(|c| c["spec"]["versions"][0]["name"] = json!("v2")),
        [
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
        ]
    );
}

#[test]
fn unknown_formats_earn_a_warning() {
    let one = crd(object(json!({"spec":{"type":"string","format":"zzz"}})));
    assert_eq!(
        Definition.warnings(&one, None, &cx()),
        ["unrecognized format \"zzz\""]
    );
    assert_eq!(Definition.warnings(&one, Some(&one), &cx()), [""; 0]);
}

#[test]
fn rules_are_compiled() {
    let spec = json!({"type":"object","properties":{"l":{"type":"integer"},"s":{"type":"string"}},"x-kubernetes-validations":[
        {"rule":"self.foo > 1"},{"rule":"self.l"},{"rule":"self.l > 1","messageExpression":"self.l"},{"rule":"self.l>1","optionalOldSelf":true}]});
    let at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations";
    let shown = |rule: &str, message: &str| {
        format!(
            "{{\"Rule\":\"{rule}\",\"Message\":\"\",\"MessageExpression\":\"{message}\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}}"
        )
    };
    assert_eq!(
        judged(crd(object(json!({"spec":spec})))),
        [
            format!(
                "{at}[0].rule: Invalid value: {}: compilation failed: ERROR: <input>:1:5: undefined field 'foo'\n | self.foo > 1\n | ....^",
                shown("self.foo \\u003e 1", "")
            ),
            format!(
                "{at}[1].rule: Invalid value: {}: cel expression must evaluate to a bool",
                shown("self.l", "")
            ),
            format!(
                "{at}[2].messageExpression: Invalid value: {}: messageExpression must evaluate to a string",
                shown("self.l \\u003e 1", "self.l")
            ),
            format!(
                "{at}[3].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
            ),
        ]
    );
    let items = json!({"type":"array","maxItems":5,"items":{"type":"string","maxLength":5,
        "x-kubernetes-validations":[{"rule":"self == oldSelf"}]}});
    assert_eq!(
        judged(crd(object(json!({"spec":items})))),
        [
            "spec.validation.openAPIV3Schema.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec]",
        ]
    );
}

#[test]
fn a_schema_that_was_accepted_is_not_refused_for_the_cost_of_a_rule() {
    let list = json!({"type":"array","items":{"type":"integer"},
        "x-kubernetes-validations":[{"rule":"self.all(x, x > 1 && x < 5)"}]});
    let mut old = crd(object(json!({"spec":list})));
    Definition.default(&mut old, &cx());
    Definition.prepare_create(&mut old, &cx());
    let refused = |new: &Value| {
        let errors = Definition.validate_update(Part::Main, new, &old, &cx());
        errors.iter().any(|e| e.detail.contains("exceeds budget"))
    };
    assert!(!refused(&old));
    let mut new = old.clone();
    let schema = new.pointer_mut("/spec/versions/0/schema/openAPIV3Schema");
    schema.unwrap()["description"] = json!("x");
    assert!(refused(&new));
}
