//! What the operator knows is not left on a disk when it dies.

use std::process::Command;

use super::program::{Place, Running};

/// As many bytes of a core as the system lets us have.
const WITH_CORES: &str = "ulimit -c $(ulimit -Hc); exec \"$0\" \"$@\"";

const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: a, user: {token: marker}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
";

#[test]
fn no_core_of_an_operator_is_written() {
    let place = Place::new("cores");
    let file = place.path("kubeconfig");
    std::fs::write(&file, KUBECONFIG).unwrap();
    let file = file.to_str().unwrap();
    let run = ["run", "--kubeconfig", file, "--port", "0"];
    let plain = place.command(&run);
    let mut command = Command::new("sh");
    command.args(["-c", WITH_CORES]).arg(plain.get_program());
    command
        .args(plain.get_args())
        .current_dir(place.path("tmp"));
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut operator = Running::start(&mut command, true);
    operator.line("serving /healthz");
    let limits = operator.proc("limits");
    let cores = limits.lines().find(|line| line.contains("core file size"));
    let cores: Vec<&str> = cores.unwrap().split_whitespace().collect();
    assert_eq!(cores[4..6], ["0", "0"], "{limits}");
    assert!(!operator.abort(), "there is a core");
    let left = place.left_behind();
    assert!(left.is_empty(), "{left:?}");
}
