//! `slipway rollout-operator` as it is started, and what it says to flags that are wrong.

use super::operator::{address, eventually, status};
use super::program::{Place, Running, appears, binary, wait};

/// Exit code and lines on standard error; nothing else is printed.
fn said(arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let place = Place::new(&format!(
        "flags-{}",
        arguments.join("").replace(['-', '.', '=', '/'], "")
    ));
    let mut whole = vec!["rollout-operator"];
    whole.extend(arguments);
    let output = place.run(&whole);
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    let text = String::from_utf8(output.stderr).unwrap();
    (
        output.status.code(),
        text.lines().map(str::to_owned).collect(),
    )
}

#[test]
fn help_is_go_s_and_no_failure() {
    for help in ["-h", "-help", "--help"] {
        let (code, lines) = said(&[help]);
        assert_eq!(code, Some(0), "{help}");
        assert_eq!(lines[0], "Usage of rollout-operator:");
        assert!(lines.contains(&"  -kubernetes.namespace string".to_owned()));
    }
}

#[test]
fn what_go_cannot_read_is_said_with_the_usage_and_ends_with_2() {
    for (arguments, first) in [
        (&["-x"][..], "flag provided but not defined: -x"),
        (
            &["-server.port=many"],
            "invalid value \"many\" for flag -server.port: parse error",
        ),
        (
            &["-server-tls.enabled=perhaps"],
            "invalid boolean value \"perhaps\" for -server-tls.enabled: parse error",
        ),
        (
            &["-kubernetes.namespace"],
            "flag needs an argument: -kubernetes.namespace",
        ),
    ] {
        let (code, lines) = said(arguments);
        assert_eq!(code, Some(2), "{arguments:?}");
        assert_eq!(lines[0], first);
        assert_eq!(lines[1], "Usage of rollout-operator:");
    }
}

#[test]
fn what_makes_no_sense_is_one_line_and_ends_with_1() {
    for (arguments, line) in [
        (&[][..], "-kubernetes.namespace has not been specified"),
        (
            &["-kubernetes.namespace=a", "-kubernetes.config-file=f"],
            "either configure both -kubernetes.api-url and -kubernetes.config-file or neither",
        ),
        (
            &["-kubernetes.namespace=a", "-log.level=loud"],
            "unknown log level: loud",
        ),
        (
            &[
                "-kubernetes-namespace=a",
                "-use-zone-tracker",
                "-zone-tracker.config-map-name=",
            ],
            "-use-zone-tracker is true, but -zone-tracker.config-map-name has not been specified",
        ),
    ] {
        let (code, lines) = said(arguments);
        assert_eq!((code, lines), (Some(1), vec![line.to_owned()]));
    }
}

#[test]
fn outside_of_a_pod_without_a_kubeconfig_there_is_no_cluster() {
    let (code, lines) = said(&["-kubernetes.namespace=a", "-server.port=0"]);
    assert_eq!(code, Some(1));
    let last = lines.last().unwrap();
    assert!(
        last.starts_with("failed to build Kubernetes client config: "),
        "{lines:?}"
    );
}

#[test]
fn a_link_of_the_original_s_name_is_enough() {
    let place = Place::new("link");
    let link = place.path("rollout-operator");
    std::os::unix::fs::symlink(binary(), &link).unwrap();
    let output = std::process::Command::new(link).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text, "-kubernetes.namespace has not been specified\n");
}

/// `TestOTELTracingInitialization`: an endpoint that leads nowhere.
#[test]
fn otel_variables_are_warned_of_and_keep_nothing_from_ready() {
    let place = Place::new("otel");
    let admin = place.path("kubeconfig");
    let file = admin.to_str().unwrap();
    let server = ["apiserver", "--port", "0", "--kubeconfig-out", file];
    let server = Running::start(&mut place.command(&server), true);
    appears(&admin);
    let text = std::fs::read_to_string(&admin).unwrap();
    let url = text.split("server: ").nth(1).unwrap();
    let url = url.lines().next().unwrap().trim_matches('"');
    let operator = [
        "rollout-operator",
        "-kubernetes.namespace=default",
        "-kubernetes.api-url",
        url,
        "-kubernetes.config-file",
        file,
        "-server.port=0",
    ];
    let mut command = place.command(&operator);
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        .env("OTEL_TRACES_SAMPLER", "always_off");
    let mut operator = Running::start(&mut command, true);
    let warned = operator.line("traces are asked for");
    assert!(warned.starts_with("level=warn "), "{warned}");
    let probes = address(&operator.line("serving /healthz"));
    wait(eventually("it is ready", || async {
        status(&probes, "/ready").contains("200").then_some(())
    }));
    assert_eq!(operator.terminate(), Some(0));
    assert_eq!(server.terminate(), Some(0));
}
