//! What is in the Secret of a member is in nothing that an operator leaves behind: no log line of any level, no event, no object
//! that it writes, no metric, and no core.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use slipway_e2e::process::Folder;
use slipway_runtime::cores;
use tracing_subscriber::filter::LevelFilter;

use crate::operator::WHY;
use crate::role::Role;
use crate::stage::{Stage, asked};
use crate::{BACK, BEGIN, LOGGED, OPERATOR};

/// A token that nobody knows, and a password that nobody takes.
const TOKEN: &str = "marker-5ecret-token-of-a-member";
const PASSWORD: &str = "marker-5ecret-password-of-a-member";

/// What the program does before it is an operator.
pub(crate) fn prepare(is_logged: bool) -> Result<()> {
    if is_logged {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_writer(std::io::stderr)
            .init();
    }
    cores::forbid().context("forbidding cores")
}

/// A member is reached by a token, then refused another one, then not asked because of a kubeconfig that is not taken; and at
/// last the operator dies.
pub(crate) fn kept(stage: &Stage) -> Result<()> {
    ensure!(sees(TOKEN) && sees(PASSWORD), "a secret would not be found");
    is_possible()?;
    let [_, marked, ..] = stage.ships() else {
        bail!("there are no two members");
    };
    let account = marked.account("marked")?;
    let taken = token(&account).context("there is no token")?.to_owned();
    stage.name(marked, &account)?;
    let folder = Folder::new("secrecy")?;
    let words = [OPERATOR.to_owned(), LOGGED.to_owned()];
    let mut operator = Role::start_in(folder.path(), &words)?;
    stage.show_home(&mut operator)?;
    let mut told = String::new();
    stage.all_get("1", BEGIN)?;
    told += &asked(&mut operator)?.to_string();
    let mut unknown = account.clone();
    unknown["users"][0]["user"]["token"] = json!(TOKEN);
    stage.name(marked, &unknown)?;
    told += &until(&mut operator, "CredentialsRefused")?;
    let mut odd = account;
    odd["users"][0]["user"]["password"] = json!(PASSWORD);
    stage.name(marked, &odd)?;
    told += &until(&mut operator, "CredentialsMissing")?;
    told += &stage.readable()?;
    let ended = operator.abort()?;
    ensure!(ended.signal() == Some(6), "it ended with {ended}");
    ensure!(!ended.core_dumped(), "there is a core");
    ensure!(
        log_of(folder.path())?.contains("CredentialsMissing"),
        "it logged nothing"
    );
    for secret in [taken.as_str(), TOKEN, PASSWORD] {
        ensure!(!holds(told.as_bytes(), secret), "a secret is told");
        let found = files(folder.path(), secret)?;
        ensure!(found.is_empty(), "a secret is in {found:?}");
    }
    Ok(())
}

fn token(kubeconfig: &Value) -> Option<&str> {
    kubeconfig.pointer("/users/0/user/token")?.as_str()
}

fn log_of(folder: &Path) -> Result<String> {
    let bytes = std::fs::read(folder.join("log"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Waits until the operator gives this as a reason why it does nothing; gives all that it says then.
fn until(operator: &mut Role, reason: &str) -> Result<String> {
    let start = Instant::now();
    loop {
        let said = asked(operator)?;
        let why = said[WHY].as_array().into_iter().flatten();
        if why
            .filter_map(Value::as_str)
            .any(|why| why.starts_with(reason))
        {
            return Ok(said.to_string());
        }
        ensure!(start.elapsed() < BACK, "not {reason} but {}", said[WHY]);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Whether bytes have a secret in them, as it is or as Secrets have it.
fn holds(bytes: &[u8], secret: &str) -> bool {
    let mut forms = vec![secret.to_owned()];
    // Three bytes are four characters: of those at both ends some depend on what stands beside the secret.
    for (before, cut) in [(0, 0), (1, 2), (2, 3)] {
        let text = BASE64_STANDARD.encode("x".repeat(before) + secret);
        let end = text.len().saturating_sub(4);
        forms.extend(text.get(cut..end).map(str::to_owned));
    }
    let found = |form: &String| {
        let mut parts = bytes.windows(form.len());
        parts.any(|part| part == form.as_bytes())
    };
    forms.iter().any(found)
}

/// Whether a secret is found in each form in which it could be left behind, wherever it begins, and not where it is not.
fn sees(secret: &str) -> bool {
    let encoded = |before: &str| BASE64_STANDARD.encode(format!("{before}{secret}\n}}"));
    let befores = ["", "t", "to", "tok", "toke"];
    holds(format!("token={secret}").as_bytes(), secret)
        && befores.iter().all(|before| {
            let text = json!({"data": {"kubeconfig": encoded(before)}}).to_string();
            holds(text.as_bytes(), secret)
        })
        && !holds(b"", secret)
        && !holds(
            BASE64_STANDARD.encode("of somebody else").as_bytes(),
            secret,
        )
}

/// Fails where no process leaves a core behind, whatever it says: there it would tell nothing that ours does not.
fn is_possible() -> Result<()> {
    let folder = Folder::new("cores")?;
    let died = Command::new("sh")
        .args(["-c", "ulimit -c $(ulimit -Hc); kill -ABRT $$"])
        .current_dir(folder.path())
        .status()?;
    ensure!(
        died.core_dumped(),
        "a process that dies here leaves no core behind ({died}), so nothing can be said of ours: raise the hard limit (ulimit -Hc)"
    );
    Ok(())
}

/// The files of a folder that have a secret in them, whatever they are.
fn files(folder: &Path, secret: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if holds(&std::fs::read(entry.path())?, secret) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(found)
}
