//! The demo: oracles, kubectl, and nothing left behind.

use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ListParams};
use kube::{Client, Config};

use super::program::{Place, Running, client, succeeded, wait};

#[test]
fn headless_prints_the_oracles_and_leaves_nothing_behind() {
    let place = Place::new("headless");
    let text = succeeded(&place.run(&["demo", "--headless", "--scenario", "nightly-restart"]));
    assert!(text.contains("ORACLE  RESULT"), "{text}");
    assert!(text.contains("✔ holds"), "{text}");
    let last = text.lines().last().unwrap();
    let hold = last.strip_prefix("nightly-restart: ").unwrap();
    let asked = text.lines().filter(|line| line.contains(" holds ")).count();
    let told = format!("{asked} of {asked} oracles asked hold; ");
    assert!(hold.starts_with(&told), "{asked}: {hold}");
    assert!(!text.contains("not asked"), "{text}");
    assert!(!text.contains('\u{1b}'), "escape codes without a terminal");
    assert_eq!(place.left_behind(), [""; 0]);
}

#[test]
fn a_rollout_of_zones_holds_its_oracles() {
    let place = Place::new("zones");
    let text = succeeded(&place.run(&["demo", "--headless", "--scenario", "zone-rollout"]));
    let checked = |oracle: &str| {
        let line = text.lines().find(|line| line.starts_with(oracle)).unwrap();
        let number = line
            .split_whitespace()
            .find_map(|word| word.parse::<u64>().ok());
        line.contains("holds") && number.is_some_and(|number| number > 0)
    };
    assert!(checked("Z1 ") && checked("Z2 ") && checked("W6 "), "{text}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let place = Place::new("seed");
    let run = |seed: &str| {
        succeeded(&place.run(&[
            "demo",
            "--headless",
            "--ascii",
            "--scenario",
            "nightly-restart",
            "--seed",
            seed,
        ]))
    };
    let trace = |text: &str| {
        text.lines()
            .find(|line| line.contains("trace "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(trace(&run("3")), trace(&run("3")));
    assert_ne!(trace(&run("3")), trace(&run("4")));
}

#[test]
fn without_a_terminal_it_tells_what_happens_and_kubectl_sees_it() {
    let place = Place::new("plain");
    // Fast, so that a night is over soon; nothing of the user's own is read.
    let mut command = place.command(&["demo", "--speed", "600", "--scenario", "nightly-restart"]);
    let mut demo = Running::start(&mut command, false);
    let line = demo.line("export KUBECONFIG=");
    let file = line.split_once('=').unwrap().1.to_owned();
    let server = wait(async {
        let client = client(Path::new(&file)).await;
        let all: Api<Deployment> = Api::all(client.clone());
        assert!(
            !all.list(&ListParams::default())
                .await
                .unwrap()
                .items
                .is_empty()
        );
        let read = kube::config::Kubeconfig::read_from(&file).unwrap();
        let config =
            Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default())
                .await
                .unwrap();
        // The tokens that the simulation itself uses are in the sources, so they must not work from outside.
        for token in ["admin-token", "operator-token"] {
            let mut other = config.clone();
            other.auth_info.token = Some(token.to_owned().into());
            let all: Api<Deployment> = Api::all(Client::try_from(other).unwrap());
            assert!(
                all.list(&ListParams::default()).await.is_err(),
                "{token} is let in"
            );
        }
        config.cluster_url.authority().unwrap().to_string()
    });
    demo.line("RestartTriggered");
    demo.line("WAITS: ");
    assert!(demo.seen.iter().all(|line| !line.contains('\u{1b}')));
    assert_eq!(demo.terminate(), Some(0));
    assert_eq!(place.left_behind(), [""; 0]);
    assert!(
        std::net::TcpStream::connect(server).is_err(),
        "somebody still listens"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_it_draws_frames_and_gives_the_terminal_back() {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    let place = Place::new("terminal");
    let program = place
        .command(&[])
        .get_program()
        .to_str()
        .unwrap()
        .to_owned();
    // `script` gives it a terminal.
    let mut command = Command::new("script");
    command
        .args([
            "-qec",
            &format!("stty rows 40 cols 100; {program} demo --scenario nightly-restart"),
            "/dev/null",
        ])
        .env("TERM", "xterm")
        .env("TMPDIR", place.path("tmp"))
        .env("HOME", place.path("home"))
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("util-linux's script runs");
    let mut keys = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut seen = Vec::new();
    let mut piece = [0_u8; 4096];
    let mut asked = false;
    loop {
        let read = screen.read(&mut piece).unwrap();
        if read == 0 {
            break;
        }
        seen.extend_from_slice(&piece[..read]);
        // Once a frame is there.
        if !asked && String::from_utf8_lossy(&seen).contains("Flipper/nightly") {
            keys.write_all(b" q").unwrap();
            asked = true;
        }
    }
    let text = String::from_utf8_lossy(&seen).into_owned();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.contains("\u{1b}[?1049h"), "no screen of its own");
    assert!(text.contains("├─") && text.contains("⎈ hub"), "{text}");
    let after = text.rsplit("\u{1b}[?1049l").next().unwrap();
    assert!(after.contains("\u{1b}[?25h"), "the cursor stays hidden");
    assert!(
        after.contains("slipway demo"),
        "the last picture does not stay"
    );
    assert_eq!(place.left_behind(), [""; 0]);
}
