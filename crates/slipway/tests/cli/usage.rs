//! Exit codes and messages of a wrong command line.

use super::program::{Place, succeeded};

fn refused(arguments: &[&str]) -> String {
    let place = Place::new(&format!(
        "usage-{}",
        arguments.join("").replace(['-', ' '], "")
    ));
    let output = place.run(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_not_there_is_wrong_usage() {
    refused(&["sail"]);
    refused(&["run", "--bogus"]);
    refused(&["crds", "extra"]);
    refused(&["demo", "--speed", "fast"]);
    refused(&["run", "--restarts-default-interval", "soon"]);
    refused(&["run", "--restarts-default-labels", "mesh"]);
    refused(&["run", "--lease-duration", "0"]);
    refused(&["run", "--member-quiet", "0"]);
    refused(&["run", "--member-check", "10ms"]);
    refused(&["run", "--member-hosts", "*.*"]);
    refused(&["run", "--log-level", "loud"]);
    refused(&["apiserver", "--service", "rollout-operator=8443"]);
    refused(&[]);
}

#[test]
fn an_unknown_controller_is_refused_with_the_names_of_all() {
    let text = refused(&["run", "--controllers", "restarts,canaries"]);
    assert!(
        text.contains("\"canaries\"") && text.contains("there are: restarts"),
        "{text}"
    );
    let text = refused(&["manifests", "--controllers", "canaries"]);
    assert!(text.contains("there are: restarts"), "{text}");
}

#[test]
fn an_unknown_scenario_is_refused_with_the_names_of_all() {
    for arguments in [
        &["demo", "--scenario", "none"][..],
        &["demo", "--headless", "--scenario", "none"],
    ] {
        let text = refused(arguments);
        assert!(
            text.contains("\"none\"") && text.contains("nightly-restart"),
            "{text}"
        );
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_read_is_named_and_no_usage_error() {
    let place = Place::new("nokubeconfig");
    let output = place.run(&["run", "--kubeconfig", "/nowhere/kc", "--port", "0"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("/nowhere/kc"), "{text}");
}

#[test]
fn help_names_every_command() {
    let place = Place::new("help");
    let text = succeeded(&place.run(&["--help"]));
    for command in ["demo", "run", "apiserver", "crds", "manifests"] {
        assert!(
            text.contains(&format!("\n  {command} ")),
            "{command}: {text}"
        );
    }
}
