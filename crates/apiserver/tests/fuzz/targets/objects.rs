//! Objects of built-in kinds: decoding, and the rules of each kind.

use jiff::Timestamp;
use serde_json::Value;
use slipway_apiserver::authenticate::User;
use slipway_apiserver::decode::{self, Decoded, Media, Target};
use slipway_apiserver::resource::{Context, Part, Resource};

use super::decoders::{escaped, same};
use super::{law, told};
use crate::fuzz::corpus::{Object, corpus};
use crate::fuzz::generate::disturb;
use crate::fuzz::tape::Tape;

/// An object of the corpus, disturbed.
fn any_object<'a>(tape: &mut Tape<'_>) -> (&'a Object, &'static Resource, Value) {
    let object = tape.pick_ref(&corpus().objects);
    let mut value = object.value.clone();
    disturb(tape, &mut value, 5);
    (object, &corpus().resources[object.resource], value)
}

fn decoded(object: &Object, body: &[u8], media: Media) -> Option<Decoded> {
    let resource = &corpus().resources[object.resource];
    let target = Target {
        group: &resource.names.group,
        version: &object.version,
        kind: &resource.names.kind,
    };
    let schema = &resource.version(&object.version).unwrap().schema;
    match decode::builtin(body, media, &target, schema) {
        Ok(decoded) => Some(decoded),
        Err(status) => {
            assert_eq!((status.code, status.status.as_str()), (400, "Failure"));
            assert!(!status.message.is_empty());
            None
        }
    }
}

/// What has been decoded and written is decoded to the same; JSON and YAML say the same.
pub(super) fn objects(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let (object, _, value) = any_object(tape);
    let body = escaped(&value);
    told(|| body.clone());
    let first = decoded(object, body.as_bytes(), Media::Json);
    let Some(first) = first else {
        return;
    };
    law();
    let again = decoded(object, first.value.to_string().as_bytes(), Media::Json);
    let again = again.unwrap_or_else(|| panic!("what has been decoded does not decode"));
    assert_eq!(again.value, first.value);
    assert!(again.strict.is_empty(), "{:?}", again.strict);
    let yaml = decoded(object, body.as_bytes(), Media::Yaml)
        .unwrap_or_else(|| panic!("what decodes as JSON does not decode as YAML"));
    assert!(same(&yaml.value, &first.value), "as YAML {}", yaml.value);
}

/// Defaults are filled in once; an object that is good is a good update of itself; nothing panics.
pub(super) fn strategies(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let (object, resource, value) = any_object(tape);
    let mut other = object.value.clone();
    disturb(tape, &mut other, 4);
    told(|| format!("{value}\n  after {other}"));
    let Some(new) = decoded(object, value.to_string().as_bytes(), Media::Json) else {
        return;
    };
    let user = User::new("fuzz", &["dev"]);
    let cx = Context {
        version: &object.version,
        now: Timestamp::constant(1_767_225_600, 0),
        user: Some(&user),
    };
    let strategy = &resource.strategy;
    let mut new = new.value;
    strategy.default(&mut new, &cx);
    let once = new.clone();
    strategy.default(&mut new, &cx);
    assert_eq!(new, once, "defaults are filled in once");
    strategy.prepare_create(&mut new, &cx);
    let wrong = strategy.validate(&new, &cx);
    let _ = strategy.warnings(&new, None, &cx);
    assert_eq!(
        strategy.columns(cx.version).len(),
        strategy.cells(&new, &cx).len()
    );
    let _ = strategy.fields(&new, cx.version);
    let _ = strategy.row_condition(&new);
    assert!(!strategy.generation_changed(&new, &new));

    if wrong.is_empty() {
        law();
        let mut same = new.clone();
        strategy.prepare_update(Part::Main, &mut same, &new, &cx);
        assert_eq!(same, new, "an update that changes nothing");
        let wrong = strategy.validate_update(Part::Main, &same, &new, &cx);
        assert!(
            wrong.is_empty(),
            "an update that changes nothing is wrong: {wrong:?}"
        );
        let stored = resource.to_storage(&new, cx.version);
        let shown = resource.from_storage(stored.clone(), cx.version);
        assert_eq!(
            resource.to_storage(&shown, cx.version),
            stored,
            "stored, shown and stored"
        );
        update(object, resource, &other, &new, &cx);
    }
}

fn update(object: &Object, resource: &Resource, other: &Value, old: &Value, cx: &Context<'_>) {
    let strategy = &resource.strategy;
    let Some(other) = decoded(object, other.to_string().as_bytes(), Media::Json) else {
        return;
    };
    for part in [Part::Main, Part::Status] {
        let mut new = other.value.clone();
        strategy.default(&mut new, cx);
        strategy.prepare_update(part, &mut new, old, cx);
        let _ = strategy.validate_update(part, &new, old, cx);
        let _ = strategy.warnings(&new, Some(old), cx);
        let _ = strategy.generation_changed(&new, old);
        let _ = strategy.cells(&new, cx);
    }
}
