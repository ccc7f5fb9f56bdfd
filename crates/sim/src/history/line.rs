//! A history for people: the last lines before something went wrong.

use std::fmt::Write as _;

use jiff::Timestamp;
use slipway_kernel::identity::ClusterId;

use super::{Asked, Call, Change, ChangeKind, Ending, Event, History, Request, Review};

/// The last `count` lines of a history up to a moment: requests of the operator, changes by others, marks.
pub fn tell(history: &History, until: Timestamp, count: usize) -> Vec<String> {
    // In the order of the cluster's versions, as far as that tells.
    let mut lines: Vec<(Timestamp, u64, u64, String)> = Vec::new();
    let requests = history.requests.iter().filter(|r| r.at <= until);
    lines.extend(requests.map(|r| (r.at, r.versions.1, r.number + 1, request(r))));
    let home = ClusterId::local();
    for cluster in std::iter::once(&home).chain(history.members.keys()) {
        let all = history.changes_in(cluster).iter();
        let others = all.filter(|c| c.by.is_none());
        let others = others.filter(|c| c.at <= until && c.at > history.start);
        lines.extend(others.map(|c| (c.at, c.version, 0, change(cluster, c))));
    }
    let marks = history.marks.iter().filter(|m| m.at <= until);
    lines.extend(marks.map(|m| (m.at, u64::MAX, 0, mark(&m.what))));
    let reviews = history.reviews.iter().filter(|r| r.ended <= until);
    lines.extend(reviews.map(|r| (r.ended, r.versions.1, u64::MAX, review(r))));
    let calls = history.calls.iter().filter(|c| c.at <= until);
    lines.extend(calls.map(|c| (c.at, u64::MAX - 1, 0, call(c))));
    let asked = history.asked.iter().filter(|a| a.at <= until);
    lines.extend(asked.map(|a| (a.at, u64::MAX - 1, a.number, outside(a))));
    lines.sort_by_key(|line| (line.0, line.1, line.2));
    let skip = lines.len().saturating_sub(count);
    lines
        .into_iter()
        .skip(skip)
        .map(|(at, _, _, text)| {
            let since = at.duration_since(history.start);
            format!("{:>10} {text}", format!("{:.1}s", since.as_secs_f64()))
        })
        .collect()
}

fn request(request: &Request) -> String {
    let ending = match request.ending {
        Ending::Answered(code) => format!("{code}"),
        Ending::Lost(code) => format!("{code}, lost"),
        Ending::Unreachable => "did not arrive".to_owned(),
        Ending::GivenUp => "given up".to_owned(),
    };
    let mut text = format!(
        "#{:<3} {} {} {}{} → {ending}",
        request.number,
        request.replica,
        request.method,
        abroad(&request.cluster),
        request.uri
    );
    if !request.context.purpose.is_empty() {
        let _ = write!(
            text,
            " ({}, epoch {})",
            request.context.purpose, request.context.epoch
        );
    }
    if request.is_committed() {
        let _ = write!(text, " v{}", request.versions.1);
    }
    if let Some(fault) = request.fault {
        let _ = write!(text, " ⚡{fault}");
    }
    text
}

fn review(review: &Review) -> String {
    let said = match &review.said {
        None => "no answer".to_owned(),
        Some(_) if review.is_allowed() => "allowed".to_owned(),
        Some(said) => {
            let message = said.pointer("/status/message").and_then(|m| m.as_str());
            format!("denied: {}", message.unwrap_or_default())
        }
    };
    let dry = if review.is_dry_run() {
        " (dry run)"
    } else {
        ""
    };
    format!(
        "     {} {} {}/{}{dry} → {said} v{}",
        review.replica,
        review.path,
        review.text("/namespace"),
        review.text("/name"),
        review.versions.1
    )
}

fn call(call: &Call) -> String {
    let code = call.code.map_or("no answer".to_owned(), |c| c.to_string());
    format!(
        "     {} {} {} → {code}",
        call.replica, call.method, call.url
    )
}

fn outside(asked: &Asked) -> String {
    let Asked {
        number,
        replica,
        method,
        url,
        id,
        ..
    } = asked;
    let told = asked
        .told
        .map_or("no answer".to_owned(), |(_, code)| code.to_string());
    let fault = asked.fault.map_or(String::new(), |f| format!(" ⚡{f}"));
    format!("@{number:<3} {replica} {method} {url} → {told} ({id}){fault}")
}

/// The name of a cluster besides home, before what is told of it.
fn abroad(cluster: &ClusterId) -> String {
    if cluster.is_local() {
        return String::new();
    }
    format!("{cluster}: ")
}

fn change(cluster: &ClusterId, change: &Change) -> String {
    let (resource, namespace, name) = &change.object;
    let what = match change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "changed",
        ChangeKind::Deleted => "gone",
    };
    format!(
        "     {}{resource} {namespace}/{name} {what} v{}",
        abroad(cluster),
        change.version
    )
}

fn mark(event: &Event) -> String {
    let text = match event {
        Event::Started(replica) => format!("{replica} starts"),
        Event::Crashed(replica) => format!("{replica} dies"),
        Event::Ended(replica, why) => format!("{replica} ended: {why}"),
        Event::Paused(replica, time) => format!("{replica} stands still for {time:?}"),
        Event::CutOff(replica, time) => format!("{replica} is cut off for {time:?}"),
        Event::Skewed(replica, by) => format!("the clock of {replica} is off by {by} s"),
        Event::Watch(cluster, what, fault) => {
            format!("{}watch event of {what} ⚡{fault}", abroad(cluster))
        }
        Event::User(text) => format!("user: {text}"),
        Event::Failed(text) => format!("user: failed: {text}"),
        Event::Otherwise(text) => format!("user: otherwise: {text}"),
        Event::Spell(spell) => format!("from here on: {spell}"),
        Event::Restored => "everything is put back".to_owned(),
        Event::Ready(replica, true) => format!("{replica} is ready"),
        Event::Ready(replica, false) => format!("{replica} is not ready"),
        Event::Panicked(text) => format!("panic: {text}"),
        Event::Endless(requests) => format!("{requests} requests: no more are taken"),
    };
    format!("     — {text}")
}
