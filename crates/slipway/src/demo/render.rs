//! The picture: a pure function of the model. The order is what needs a person, what moves, what will come, what was.

mod tree;

use super::line::{Line, Style, Tone, clean};
use super::model::{Model, Verdict};
use super::words::{self, ahead, length, moment};
use crate::model::{State, Waiting};

/// How many reasons to wait and how many events are shown.
const MAX_WAITING: usize = 3;
const MAX_EVENTS: usize = 5;
/// How many lines a reason takes at most.
const MAX_WRAPPED: usize = 3;
/// How many violations of one oracle are shown.
const MAX_VIOLATIONS: usize = 3;
/// Where the columns of the oracles begin.
const RESULT: usize = 8;
const CHECKS: usize = 21;
const RULE: usize = 29;
/// What goes first where there is no room for all, from last to first.
mod rank {
    /// Why something waits, in a line.
    pub(super) const WAITING: u16 = 5;
    pub(super) const VIOLATION: u16 = 6;
    pub(super) const TREE: u16 = 20;
    pub(super) const KUBECTL: u16 = 25;
    pub(super) const NEXT: u16 = 28;
    pub(super) const KEYS: u16 = 30;
    pub(super) const HELP: u16 = 50;
    pub(super) const EVENTS: u16 = 55;
    pub(super) const EMPTY: u16 = 70;
    pub(super) const ORACLES: u16 = 80;
    pub(super) const ABOUT: u16 = 90;
}

/// Where what stands beside a heading begins.
const BESIDE: usize = 9;

/// Draws the model, `width` columns wide.
pub(crate) fn render(model: &Model, width: usize, style: Style) -> Vec<Line> {
    let mut lines = header(model, width);
    lines.push(Line::default().ranked(rank::EMPTY));
    lines.extend(waiting(model, width));
    let rows = tree::rows(model, width, style).into_iter();
    lines.extend(rows.map(|row| row.ranked(rank::TREE)));
    lines.extend(events(model));
    lines.extend(verdicts(&model.verdicts, style));
    lines
        .into_iter()
        .map(|line| line.styled(style))
        .map(|line| line.cut(width, style))
        .collect()
}

/// The lines that fit on a screen: what matters least is left out, and a line says how much of the tree is.
pub(crate) fn fit(mut lines: Vec<Line>, height: usize) -> Vec<Line> {
    let mut hidden = 0;
    while lines.len() > height {
        let worst = lines.iter().map(Line::rank).max().unwrap_or_default();
        let Some(index) = lines.iter().rposition(|line| line.rank() == worst) else {
            break;
        };
        lines.remove(index);
        if worst == rank::TREE {
            hidden += 1;
            let text = format!(
                "({} more: make the window taller)",
                words::count(hidden + 1, "line")
            );
            if let Some(last) = index
                .checked_sub(1)
                .and_then(|before| lines.get_mut(before))
            {
                *last = Line::of(Tone::Dim, text).ranked(rank::TREE);
            }
        }
    }
    lines
}

fn header(model: &Model, width: usize) -> Vec<Line> {
    let clock = model.now.strftime("%F %T UTC").to_string();
    let pace = &model.pace;
    let speed = match (pace.paused, pace.automatic) {
        (true, _) => "paused".to_owned(),
        (false, true) => format!("{}× auto", number(pace.speed)),
        (false, false) => format!("{}×", number(pace.speed)),
    };
    let mut lines = vec![
        Line::of(Tone::Bold, "slipway demo")
            .and(Tone::Plain, format!(" · {} · {clock} · ", model.scenario))
            .and(if pace.paused { Tone::Wait } else { Tone::Plain }, speed)
            .and(Tone::Dim, format!(" · seed {}", model.seed)),
    ];
    let about = wrap(&clean(&model.about), width);
    lines.extend(
        about
            .into_iter()
            .map(|part| Line::of(Tone::Dim, part).ranked(rank::ABOUT)),
    );
    let beside = |heading: &str, text: String, rank: u16| {
        Line::of(Tone::Dim, heading)
            .at(BESIDE, Tone::Plain, text)
            .ranked(rank)
    };
    if !model.kubeconfig.is_empty() {
        lines.push(beside(
            "kubectl",
            format!("export KUBECONFIG={}", model.kubeconfig),
            rank::KUBECTL,
        ));
    }
    lines.push(beside(
        "keys",
        "space pause · + - speed · a auto · n next · o oracles · q quit".to_owned(),
        rank::KEYS,
    ));
    let next = match (&model.next_action, model.ends) {
        (Some((at, what)), _) => format!("{} {}", ahead(*at, model.now), clean(what)),
        (None, Some(end)) if model.now < end => {
            format!("{} the scenario ends", ahead(end, model.now))
        }
        (None, Some(_)) => "the scenario is over; the clusters go on until you quit".to_owned(),
        (None, None) => return lines,
    };
    lines.push(beside("next", next, rank::NEXT));
    lines
}

/// A speed without needless digits.
fn number(speed: f64) -> String {
    if speed >= 10.0 {
        format!("{speed:.0}")
    } else {
        format!("{speed:.2}")
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    }
}

fn waiting(model: &Model, width: usize) -> Vec<Line> {
    let several = model.clusters.len() > 1;
    let clusters = model.clusters.iter();
    let mut all: Vec<(&Waiting, &String)> = clusters
        .flat_map(|cluster| cluster.waiting.iter().map(move |one| (one, &cluster.name)))
        .collect();
    all.sort();
    let more = all.len().saturating_sub(MAX_WAITING);
    let room = width.saturating_sub(BESIDE);
    let mut lines: Vec<Line> = Vec::new();
    for (one, cluster) in all.into_iter().take(MAX_WAITING) {
        let message = clean(&one.message);
        // Most messages name what they are about.
        let message = if message.starts_with(&one.object) || one.object == one.by {
            message
        } else {
            format!("{}: {message}", one.object)
        };
        let message = if several {
            format!("{cluster} {message}")
        } else {
            message
        };
        let until = one
            .until
            .map(|at| format!("until {} · ", ahead(at, model.now)));
        let help = format!(
            "{} · since {} · {}{}",
            one.reason,
            length(one.since, model.now),
            until.unwrap_or_default(),
            clean(&one.unblock)
        );
        for (tone, text) in [(Tone::Plain, message), (Tone::Dim, help)] {
            for (index, part) in wrap(&text, room).into_iter().take(MAX_WRAPPED).enumerate() {
                let heading = if lines.is_empty() { "WAITING" } else { "" };
                let is_first = tone == Tone::Plain && index == 0;
                let rank = if is_first { rank::WAITING } else { rank::HELP };
                lines.push(
                    Line::of(Tone::Wait, heading)
                        .at(BESIDE, tone, part)
                        .ranked(rank),
                );
            }
        }
    }
    if more > 0 {
        lines.push(
            Line::default()
                .at(BESIDE, Tone::Dim, format!("and {more} more"))
                .ranked(rank::HELP),
        );
    }
    if !lines.is_empty() {
        lines.push(Line::default().ranked(rank::EMPTY));
    }
    lines
}

/// Breaks a text between words into parts that are no longer than `room`, where words allow it.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match parts.last_mut() {
            Some(part) if part.chars().count() + 1 + word.chars().count() <= room => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
    }
    parts
}

fn events(model: &Model) -> Vec<Line> {
    let several = model.clusters.len() > 1;
    let mut all: Vec<_> = model
        .clusters
        .iter()
        .flat_map(|cluster| {
            cluster
                .events
                .iter()
                .map(move |event| (event, &cluster.name))
        })
        .collect();
    all.sort();
    let skipped = all.len().saturating_sub(MAX_EVENTS);
    let mut lines = Vec::new();
    let mut older = u16::try_from(all.len() - skipped).unwrap_or_default();
    for (event, cluster) in all.into_iter().skip(skipped) {
        if lines.is_empty() {
            let heading = Line::of(Tone::Dim, "EVENTS").ranked(rank::EVENTS);
            lines.extend([Line::default().ranked(rank::EMPTY), heading]);
        }
        let tone = if event.warning {
            Tone::Bad
        } else {
            Tone::Plain
        };
        let place = if several {
            format!("{cluster} ")
        } else {
            String::new()
        };
        let times = if event.count > 1 {
            format!(" (×{})", event.count)
        } else {
            String::new()
        };
        let note = clean(&event.note);
        // Most notes name what they are about.
        let about = if note.contains(&event.about) {
            String::new()
        } else {
            format!("{}: ", event.about)
        };
        lines.push(
            Line::of(Tone::Dim, moment(event.at, model.now))
                .and(tone, format!("  {}", event.reason))
                .and(Tone::Plain, format!("  {place}{about}{note}{times}"))
                // The oldest goes first, the heading after all of them.
                .ranked(rank::EVENTS + older),
        );
        older = older.saturating_sub(1);
    }
    lines
}

/// The oracles that had something to judge, and what they say.
pub(crate) fn verdicts(all: &[Verdict], style: Style) -> Vec<Line> {
    let asked: Vec<&Verdict> = all.iter().filter(|verdict| verdict.is_asked()).collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        Line::default().ranked(rank::EMPTY),
        Line::of(Tone::Dim, "ORACLE")
            .at(RESULT, Tone::Dim, "RESULT")
            .at(CHECKS, Tone::Dim, "CHECKS")
            .at(RULE, Tone::Dim, "RULE")
            .ranked(rank::ORACLES),
    ];
    for verdict in asked {
        let (tone, state, word) = if verdict.violations.is_empty() {
            (Tone::Good, State::Good, "holds")
        } else {
            (Tone::Bad, State::Bad, "VIOLATED")
        };
        lines.push(
            Line::of(Tone::Plain, &verdict.oracle)
                .at(
                    RESULT,
                    tone,
                    format!("{} {word}", tree::look(state, style).1),
                )
                .at(CHECKS, Tone::Plain, verdict.checked.to_string())
                .at(RULE, Tone::Dim, clean(&verdict.what))
                .ranked(match state {
                    State::Bad => rank::VIOLATION,
                    _ => rank::ORACLES,
                }),
        );
        for violation in verdict.violations.iter().take(MAX_VIOLATIONS) {
            lines.push(
                Line::default()
                    .at(RESULT, Tone::Bad, clean(violation))
                    .ranked(rank::VIOLATION),
            );
        }
    }
    lines
}

#[cfg(test)]
mod tests;
