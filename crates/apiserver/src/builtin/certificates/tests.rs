#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use super::*;
use crate::authenticate::User;
use crate::resource::Strategy;

fn texts(errors: &FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn request() -> Value {
    let pem = STANDARD
        .encode("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n");
    json!({"spec": {"request": pem, "signerName": "example.com/mine", "usages": ["client auth"]}})
}

#[test]
fn the_server_writes_down_who_asks() {
    let user = User::new("alice", &["dev"]);
    let cx = Context {
        version: "v1",
        now: jiff::Timestamp::UNIX_EPOCH,
        user: Some(&user),
    };
    let mut asked = request();
    asked["spec"]["username"] = json!("root");
    asked["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
    Strategy::prepare_create(&RULES, &mut asked, &cx);
    assert_eq!(asked["spec"]["username"], "alice");
    assert_eq!(asked["spec"]["groups"], json!(["dev"]));
    assert_eq!(asked["status"], json!({}));
    assert!(texts(&validate(&asked)).is_empty());
}

#[test]
fn only_approval_approves_and_only_once() {
    let cx = Context {
        version: "v1",
        now: jiff::Timestamp::UNIX_EPOCH,
        user: None,
    };
    let old = request();
    let mut new = request();
    new["status"] =
        json!({"conditions": [{"type": "Approved", "status": "True"}], "certificate": "QQ=="});
    let errors = Strategy::validate_update(&RULES, Part::Status, &new, &old, &cx);
    assert_eq!(
        texts(&errors),
        ["status.conditions: Forbidden: updates may not add a condition of type \"Approved\""]
    );
    prepare_approval(&mut new, &old, &cx);
    assert!(texts(&validate_approval(&new, &old)).is_empty());
    assert!(!value::has(&new, "status.certificate"));
    assert_eq!(
        new["status"]["conditions"][0]["lastTransitionTime"],
        "1970-01-01T00:00:00Z"
    );
    assert_eq!(
        texts(&validate_approval(&old, &new)),
        ["status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""]
    );
}
