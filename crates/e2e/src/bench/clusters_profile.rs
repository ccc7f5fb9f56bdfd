//! Where memory, processor time and requests go of an operator that misses a goal: what the kernel knows of its process, what its
//! own metrics say, and what `perf` sees where there is one.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use slipway_e2e::process::Folder;

/// So many lines of each kind.
const LINES: usize = 12;
/// How long `perf` looks, in seconds.
const LOOK: &str = "10";
/// The metric that counts requests to API servers.
const REQUESTS: &str = "slipway_kubernetes_api_client_request_duration_seconds_count{";

/// What is known of a process, given its metrics before and after it was looked at for a while.
pub(crate) fn of(id: u32, members: usize, before: &str, after: &str) -> Vec<String> {
    let mut all = vec![format!("profile of the operator with {members} members:")];
    all.extend(memory(id, members));
    all.extend(threads(id));
    all.extend(requests(before, after));
    all.extend(perf(id));
    all
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn memory(id: u32, members: usize) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
    let wanted = ["Rss:", "Anonymous:", "Private_Clean:", "Shared_Clean:"];
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(size)) = (words.next(), words.next()) else {
            continue;
        };
        if let (true, Ok(kilobytes)) = (wanted.contains(&name), size.parse::<f64>()) {
            let each = kilobytes / members.max(1) as f64;
            lines.push(format!(
                "  memory, {name:15} {:>8.1} MB, {each:>8.1} KB a member",
                kilobytes / 1e3
            ));
        }
    }
    lines
}

/// Processor time by the names of threads.
fn threads(id: u32) -> Vec<String> {
    let mut times: BTreeMap<String, u64> = BTreeMap::new();
    let tasks = fs::read_dir(format!("/proc/{id}/task"))
        .into_iter()
        .flatten();
    for task in tasks.flatten() {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let Some((head, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let name = head.split_once('(').map_or("", |(_, name)| name);
        let ticks = rest.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
        *times.entry(name.to_owned()).or_default() += ticks;
    }
    let times = largest(times).into_iter();
    times
        .map(|(name, ticks)| {
            format!(
                "  processor, {name:28} {:>8} ms since its start",
                ticks * 10
            )
        })
        .collect()
}

/// Requests to API servers in between, by what they are about.
fn requests(before: &str, after: &str) -> Vec<String> {
    let (before, mut counts) = (counted(before), counted(after));
    for (name, count) in &mut counts {
        *count = count.saturating_sub(before.get(name).copied().unwrap_or_default());
    }
    counts.retain(|_, count| *count > 0);
    let counts = largest(counts).into_iter();
    counts
        .map(|(name, count)| format!("  requests while idle, {count:>8} of {name}"))
        .collect()
}

fn counted(metrics: &str) -> BTreeMap<String, u64> {
    let lines = metrics
        .lines()
        .filter_map(|line| line.strip_prefix(REQUESTS));
    let counts = lines.filter_map(|line| line.rsplit_once("} "));
    counts
        .filter_map(|(labels, count)| Some((labels.to_owned(), count.trim().parse().ok()?)))
        .collect()
}

/// The largest first, and not too many.
fn largest(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all.truncate(LINES);
    all
}

/// The functions that take most of the time, while nothing happens.
fn perf(id: u32) -> Vec<String> {
    let seen = Folder::new("perf").ok().and_then(|folder| {
        let file = folder.path().join("seen");
        let id = id.to_string();
        let recorded = Command::new("perf")
            .args(["record", "-q", "-F", "499", "-p", &id, "-o"])
            .arg(&file)
            .args(["--", "sleep", LOOK])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        recorded.ok().filter(std::process::ExitStatus::success)?;
        let report = Command::new("perf")
            .args(["report", "--stdio", "-q", "--sort", "symbol", "-i"])
            .arg(&file)
            .stderr(Stdio::null())
            .output();
        report.ok().filter(|report| report.status.success())
    });
    let Some(seen) = seen else {
        return vec!["  functions: there is no perf that works here".to_owned()];
    };
    let text = String::from_utf8_lossy(&seen.stdout).into_owned();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.take(LINES);
    lines
        .map(|line| format!("  function, idle, {line}"))
        .collect()
}
