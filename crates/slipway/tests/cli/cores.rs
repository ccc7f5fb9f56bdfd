//! What the operator knows is not left on a disk when it dies.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use super::program::{Place, Running};

/// As many bytes of a core as the system lets us have, and more where we may say so ourselves.
const WITH_CORES: &str = "if (ulimit -Hc unlimited) 2>/dev/null; then ulimit -Hc unlimited; fi; ulimit -c $(ulimit -Hc); ";

/// Whether a process that dies in a folder leaves a core behind, if nobody forbids it.
fn leaves_cores(folder: &Path) -> bool {
    let mut dies = Command::new("sh");
    dies.args(["-c", &format!("{WITH_CORES} kill -ABRT $$")]);
    let status = dies.current_dir(folder).status().unwrap();
    assert_eq!(status.signal(), Some(6), "{status}");
    status.core_dumped()
}

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
    let script = format!("{WITH_CORES} exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(plain.get_program());
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
    // Where nobody's cores are written, that there is none of ours tells nothing; then it shows by what others may read.
    let is_closed = operator.try_proc("environ").is_err();
    assert!(
        leaves_cores(&place.path("home")) || is_closed,
        "nothing can be said here: no process leaves a core, and everything may be read"
    );
    assert!(!operator.abort(), "there is a core");
    let left = place.left_behind();
    assert!(left.is_empty(), "{left:?}");
}
