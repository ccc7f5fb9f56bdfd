//! The scripted kubectl session: the same commands on the embedded server and on a real kube-apiserver.
//!
//! ```text
//! cargo test -p slipway-e2e --test kubectl                                the embedded server
//! SLIPWAY_REAL_BARE=kubeconfig cargo test … --test kubectl                and the real one
//! SLIPWAY_REAL_BARE=kubeconfig cargo test … --test kubectl -- --record    record the truth anew
//! ```
//!
//! The truth is `kubectl/golden-VERSION.txt`, the normalised transcript of the real server; the session is
//! `kubectl/session.yaml`; `kubectl/README.md` says how steps are written and which real server this needs.
//! Words after `--` choose runs by name: `embedded`, `real`, `1.36`.

#[path = "kubectl/normalise.rs"]
mod normalise;
#[path = "../../apiserver/tests/conformance/origins.rs"]
mod origins;
#[path = "kubectl/run.rs"]
mod run;
#[path = "kubectl/session.rs"]
mod session;
#[path = "kubectl/transcript.rs"]
mod transcript;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Error, Result, bail, ensure};
use normalise::Masks;
use origins::Origins;
use serde_json::Value;
use session::Session;
use slipway_apiserver::origin;
use slipway_e2e::client::{self, Client};
use slipway_e2e::score::Score;
use slipway_e2e::server::{self, Embedded, Server};
use transcript::Transcript;

/// So many commands there are: none goes missing unseen. Who adds one says so here.
const COUNT: usize = 336;

fn main() -> ExitCode {
    match suite() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("kubectl: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn suite() -> Result<bool> {
    let (options, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|word| word.starts_with("--"));
    let wanted = |name: &str| words.iter().all(|word| name.contains(word.as_str()));
    let session = Session::load()?;
    ensure!(
        session.commands() == COUNT,
        "the session has {} commands, and not {COUNT}",
        session.commands()
    );
    let recorded = transcript::recorded()?;
    ensure!(
        is_missed(&recorded),
        "with CI set, one kubectl of two would do: {recorded:?}"
    );
    let masks = Masks::load(&session)?;
    ensure!(
        masks.know_servers(),
        "the masks take a server's port for one of a node"
    );
    let clients = client::all()?;
    let real = std::env::var_os("SLIPWAY_REAL_BARE").map(PathBuf::from);
    if options.iter().any(|option| option == "--list") {
        return Ok(true);
    }
    if options.iter().any(|option| option == "--record") {
        let real =
            real.context("--record needs SLIPWAY_REAL_BARE, the kubeconfig of a real cluster")?;
        for client in clients.iter().filter(|client| wanted(&client.version)) {
            record(&session, &masks, client, real.clone())?;
        }
        return Ok(true);
    }
    say(&masks.table());
    let (mut on_embedded, mut on_real) = (Score::default(), Score::default());
    // Side by side: a session mostly waits for its server.
    std::thread::scope(|scope| -> Result<()> {
        let embedded = scope.spawn(|| {
            clients.iter().try_fold(Score::default(), |score, client| {
                if !wanted(&format!("embedded {}", client.version)) {
                    return Ok(score);
                }
                let server = Embedded::start(&[])?;
                let score = judge(&session, &masks, client, &server, score);
                server.stop()?;
                score
            })
        });
        let real = scope.spawn(|| {
            clients
                .iter()
                .try_fold(Score::default(), |score, client| match &real {
                    Some(kubeconfig) if wanted(&format!("real {}", client.version)) => judge(
                        &session,
                        &masks,
                        client,
                        &server::Real(kubeconfig.clone()),
                        score,
                    ),
                    _ => Ok(score),
                })
        });
        on_embedded = joined(embedded)?;
        on_real = joined(real)?;
        Ok(())
    })?;
    if real.is_none() {
        say(
            "SLIPWAY_REAL_BARE is not set: nothing was compared with a real server now, only with its recording",
        );
    }
    let names: Vec<String> = recorded.iter().map(|it| transcript::name(it)).collect();
    let unknown = origins()?.unknown(names.iter().map(String::as_str));
    if !unknown.is_empty() {
        bail!("nobody says of which real server these were recorded (origins.txt): {unknown:?}");
    }
    let absent = absent(&recorded, &clients);
    for version in &absent {
        say(&format!(
            "there is a recording of kubectl {version} and no such kubectl: put it on the PATH or name it with SLIPWAY_KUBECTL"
        ));
    }
    say(&format!("kubectl: {on_embedded} embedded, {on_real} real"));
    let is_whole = is_enough(&absent, is_ci(), &words);
    Ok(is_whole && on_embedded.held == on_embedded.ran && on_real.held == on_real.ran)
}

/// Whether it may be left at this: without these kubectls, and with these words that select.
fn is_enough(absent: &[String], is_ci: bool, words: &[String]) -> bool {
    absent.is_empty() || !is_ci || !words.is_empty()
}

/// Whether each recorded kubectl is missed where it alone is not here and nothing may be left out, and none where all are or something
/// may be.
fn is_missed(recorded: &[String]) -> bool {
    let without = |away: Option<&String>| {
        let here = recorded.iter().filter(|version| Some(*version) != away);
        let here = here.map(|version| Client {
            program: PathBuf::new(),
            version: version.clone(),
        });
        absent(recorded, &here.collect::<Vec<_>>())
    };
    let is_enough_without = |away: Option<&String>| is_enough(&without(away), true, &[]);
    recorded.len() > 1
        && is_enough_without(None)
        && !recorded.iter().any(|away| is_enough_without(Some(away)))
        && recorded
            .iter()
            .all(|away| is_enough(&without(Some(away)), false, &[]))
}

/// Whether nothing may be left out.
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// Versions that were recorded and that no program here is of.
fn absent(recorded: &[String], clients: &[Client]) -> Vec<String> {
    let is_here = |version: &&String| clients.iter().any(|client| client.version == **version);
    let absent = recorded.iter().filter(|version| !is_here(version));
    absent.cloned().collect()
}

fn joined(thread: std::thread::ScopedJoinHandle<'_, Result<Score>>) -> Result<Score> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs the session and compares it with the recording.
fn judge(
    session: &Session,
    masks: &Masks,
    client: &Client,
    server: &dyn Server,
    score: Score,
) -> Result<Score> {
    let start = Instant::now();
    let name = format!("{} kubectl {}", server.name(), client.version);
    let golden = Transcript::read(&client.version)?;
    let transcript = run::run(session, masks, client, server).with_context(|| name.clone())?;
    let differences = golden.differences(&transcript);
    let mut text = String::new();
    for difference in &differences {
        text.push_str(difference);
        text.push('\n');
    }
    let (ran, held) = (
        session.commands(),
        session.commands().saturating_sub(differences.len()),
    );
    say(&format!(
        "{text}{name}: {held}/{ran} in {:.1} s",
        start.elapsed().as_secs_f32()
    ));
    Ok(Score {
        ran: score.ran + ran,
        held: score.held + held,
    })
}

/// Runs the session on the real server and writes down what it said.
fn record(session: &Session, masks: &Masks, client: &Client, real: PathBuf) -> Result<()> {
    let version = version(client, &real)?;
    origin::of_real(&version)?;
    let transcript = run::run(session, masks, client, &server::Real(real))?;
    let path = transcript.write(&client.version)?;
    let golden = transcript::name(&client.version);
    origins()?.note(&golden, &version).map_err(Error::msg)?;
    say(&format!(
        "recorded {} commands in {}",
        session.commands(),
        path.display()
    ));
    Ok(())
}

/// What a server says of its version.
fn version(client: &Client, kubeconfig: &Path) -> Result<Value> {
    let asked = Command::new(&client.program)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["get", "--raw", "/version"])
        .output()
        .context("asking the server for its version")?;
    serde_json::from_slice(&asked.stdout).context("reading the server's version")
}

/// Where the recordings come from.
fn origins() -> Result<Origins> {
    Origins::read(session::folder().join("origins.txt")).map_err(Error::msg)
}

fn say(text: &str) {
    // Whoever does not want to read it may go.
    let _ = writeln!(std::io::stdout(), "{text}");
}
