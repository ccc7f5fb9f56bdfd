//! `cargo xtask test --only drop-in --peer PATH`: the original's program and ours, asked the same.
//!
//! Both run on one embedded server, each in a namespace of its own with the same zones, and get the same admission calls over TLS.
//! Their answers, the flags that they take and the metrics that they have must be the same, but for what is known and says why.
//! Without `SLIPWAY_PEER` there is nobody to compare with, and all that is looked at is whether a difference would be seen.

#[path = "peer/calls.rs"]
mod calls;
#[path = "peer/told.rs"]
mod told;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use calls::Call;
use serde_json::json;
use slipway_e2e::client;
use slipway_e2e::cluster::Cluster;
use slipway_e2e::flood::{Connection, Target};
use slipway_e2e::operator::Operator;
use slipway_e2e::server::{self, Embedded, Server};
use slipway_e2e::suite::say;
use slipway_e2e::zones::{Place, ZONES, definitions, zone};
use told::Answer;

/// Where both keep their certificate.
const SECRET: &str = "rollout-operator-self-signed-certificate";
/// How long something that should happen at once may take on a loaded machine.
const SOON: Duration = Duration::from_mins(1);

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    let peer = std::env::var_os("SLIPWAY_PEER").map(PathBuf::from);
    let compared = sees().and_then(|()| {
        let Some(peer) = &peer else {
            say(
                "there is no original to compare with: cargo xtask test --only drop-in --peer PATH",
            );
            return Ok(0);
        };
        compare(peer)
    });
    match compared {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("drop-in: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether a difference is seen: in an answer, a flag and a metric. Everything is as it was but for one word.
fn sees() -> Result<()> {
    let review = |allowed: bool, message: &str| {
        let review =
            json!({"response": {"allowed": allowed, "status": {"message": message, "code": 400}}});
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
        Answer::read(format!("{head}{review}").as_bytes(), "theirs")
    };
    let call = calls::all()
        .into_iter()
        .next()
        .context("nothing is asked")?;
    let same = told::difference(&call, &review(false, "no"), &review(false, "no"));
    ensure!(same.is_none(), "a difference that is none: {same:?}");
    for other in [review(true, "no"), review(false, "yes"), Answer::none()] {
        let found = told::difference(&call, &review(false, "no"), &other);
        let found = found.context("an answer that differs is not seen")?;
        ensure!(told::why(&found).is_none(), "it is excused: {found}");
    }
    let metrics = |name: &str| told::families(&format!("# TYPE {name} counter\n{name} 1\n"));
    let missing = told::missing("metric", &metrics("a"), &metrics("b"));
    ensure!(
        missing == ["metric a counter: ours has none"],
        "{missing:?}"
    );
    let all = told::missing("metric", &metrics("go_a"), &metrics("b"));
    ensure!(all.is_empty(), "what the original's runtime has: {all:?}");
    let flags = told::flags_in("Usage:\n  -a.b value\n    \tabout it (default 1)\n  -c\tshort\n");
    let none = BTreeSet::new();
    ensure!(told::missing("flag", &flags, &none).len() == 2, "{flags:?}");
    Ok(())
}

/// What one of the two said.
struct Said {
    flags: BTreeSet<String>,
    answers: Vec<Answer>,
    metrics: BTreeSet<String>,
}

/// Asks both; gives how many differences nobody has explained.
fn compare(peer: &Path) -> Result<usize> {
    let kubectl = client::all()?
        .into_iter()
        .next()
        .context("there is no kubectl")?
        .program;
    let embedded = Embedded::start(&["--actors"])?;
    let cluster = Cluster::new(&kubectl, embedded.kubeconfig())?;
    cluster.apply(&definitions()?)?;
    let calls = calls::all();
    let ours = ask(&cluster, "ours", None, &calls).context("asking ours")?;
    let theirs = ask(&cluster, "theirs", Some(peer), &calls).context("asking the original")?;
    embedded.stop()?;
    let mut differences = told::missing("flag", &theirs.flags, &ours.flags);
    differences.extend(told::missing("metric", &theirs.metrics, &ours.metrics));
    let answers = calls.iter().zip(theirs.answers.iter().zip(&ours.answers));
    for (call, (theirs, ours)) in answers {
        differences.extend(told::difference(call, theirs, ours));
    }
    let (known, unknown): (Vec<_>, Vec<_>) = differences
        .into_iter()
        .partition(|difference| told::why(difference).is_some());
    for difference in &known {
        let why = told::why(difference).unwrap_or_default();
        say(&format!("known: {difference} ({why})"));
    }
    for difference in &unknown {
        say(&format!("DIFFERS: {difference}"));
    }
    say(&format!(
        "drop-in: {} calls, {} flags and {} metrics of the original; {} known differences, {} others",
        calls.len(),
        theirs.flags.len(),
        theirs.metrics.len(),
        known.len(),
        unknown.len()
    ));
    Ok(unknown.len())
}

fn ask(cluster: &Cluster, name: &str, original: Option<&Path>, calls: &[Call]) -> Result<Said> {
    let place = Place::new(cluster, name)?;
    let zones: Vec<_> = ZONES.iter().map(|name| zone(name, 3, "app:1", 1)).collect();
    place.apply(&zones)?;
    place.apply(&[calls::budget()])?;
    place.settled(9, "app:1", SOON)?;
    // With all rights, so that nothing is left out for want of one.
    let kubeconfig = &place.cluster.kubeconfig;
    let mut operator = Operator::rollout_operator(original, kubeconfig, &place.arguments()?, None)?;
    operator.wait_until_ready(SOON)?;
    let port = place.port.number();
    let target = Target::new(cluster, &place.name, SECRET, "localhost", port)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut answers = Vec::new();
    for call in calls {
        let request = Connection::request(call.path, &(call.body)(&place.name));
        // Each on a connection of its own: one that breaks off is no answer to the next.
        let answer = runtime.block_on(async {
            let mut connection = target.connect().await?;
            let answer = connection.ask(&request).await?;
            anyhow::Ok(Answer::read(answer, &place.name))
        });
        answers.push(answer.unwrap_or_else(|_| Answer::none()));
    }
    let metrics = told::families(&operator.get("/metrics").unwrap_or_default());
    operator.terminate()?;
    let program = match original {
        Some(path) => (path.to_owned(), Vec::new()),
        None => (server::program()?, vec!["rollout-operator"]),
    };
    Ok(Said {
        flags: told::flags(&program.0, &program.1)?,
        answers,
        metrics,
    })
}
