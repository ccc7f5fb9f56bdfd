//! The picture: a pure function of the model. The order is what needs a person, what moves, what will come, what was.

mod tree;

use super::line::{Line, Style, Tone, clean};
use super::model::{Model, State, Verdict, Waiting};
use super::words::{ahead, length, moment};

/// How many reasons to wait and how many events are shown.
const MOST_WAITING: usize = 3;
const MOST_EVENTS: usize = 5;
/// How many lines a reason takes at most.
const MOST_WRAPPED: usize = 3;
/// How many violations of one oracle are shown.
const MOST_VIOLATIONS: usize = 3;
/// Where the columns of the oracles begin.
const RESULT: usize = 8;
const CHECKS: usize = 21;
const RULE: usize = 29;
/// Where what stands beside a heading begins.
const BESIDE: usize = 9;

/// Draws the model, `width` columns wide.
pub(crate) fn render(model: &Model, width: usize, style: Style) -> Vec<Line> {
    let mut lines = header(model, width);
    lines.push(Line::default());
    lines.extend(waiting(model, width));
    lines.extend(tree::rows(model, width, style));
    lines.extend(events(model));
    lines.extend(verdicts(&model.verdicts, style));
    lines
        .into_iter()
        .map(|line| line.styled(style))
        .map(|line| line.cut(width, style))
        .collect()
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
    lines.extend(about.into_iter().map(|part| Line::of(Tone::Dim, part)));
    let beside =
        |heading: &str, text: String| Line::of(Tone::Dim, heading).at(BESIDE, Tone::Plain, text);
    if !model.kubeconfig.is_empty() {
        lines.push(beside(
            "kubectl",
            format!("export KUBECONFIG={}", model.kubeconfig),
        ));
    }
    lines.push(beside(
        "keys",
        "space pause · + - speed · a auto · n next · o oracles · q quit".to_owned(),
    ));
    let next = match (&model.next_action, model.ends) {
        (Some((at, what)), _) => format!("{} {}", ahead(*at, model.now), clean(what)),
        (None, Some(end)) if model.now < end => {
            format!("{} the scenario ends", ahead(end, model.now))
        }
        (None, Some(_)) => "the scenario is over; the clusters go on until you quit".to_owned(),
        (None, None) => return lines,
    };
    lines.push(beside("next", next));
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
    let mut all: Vec<&Waiting> = model.clusters.iter().flat_map(|c| &c.waiting).collect();
    all.sort();
    let more = all.len().saturating_sub(MOST_WAITING);
    let room = width.saturating_sub(BESIDE);
    let mut lines: Vec<Line> = Vec::new();
    for one in all.into_iter().take(MOST_WAITING) {
        let message = clean(&one.message);
        // Most messages name what they are about.
        let message = if message.starts_with(&one.object) || one.object == one.by {
            message
        } else {
            format!("{}: {message}", one.object)
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
            for part in wrap(&text, room).into_iter().take(MOST_WRAPPED) {
                let heading = if lines.is_empty() { "WAITING" } else { "" };
                lines.push(Line::of(Tone::Wait, heading).at(BESIDE, tone, part));
            }
        }
    }
    if more > 0 {
        lines.push(Line::default().at(BESIDE, Tone::Dim, format!("and {more} more")));
    }
    if !lines.is_empty() {
        lines.push(Line::default());
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
    let skipped = all.len().saturating_sub(MOST_EVENTS);
    let mut lines = Vec::new();
    for (event, cluster) in all.into_iter().skip(skipped) {
        if lines.is_empty() {
            lines.extend([Line::default(), Line::of(Tone::Dim, "EVENTS")]);
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
                .and(Tone::Plain, format!("  {place}{about}{note}{times}")),
        );
    }
    lines
}

/// The oracles and what they say.
pub(crate) fn verdicts(all: &[Verdict], style: Style) -> Vec<Line> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        Line::default(),
        Line::of(Tone::Dim, "ORACLE")
            .at(RESULT, Tone::Dim, "RESULT")
            .at(CHECKS, Tone::Dim, "CHECKS")
            .at(RULE, Tone::Dim, "RULE"),
    ];
    for verdict in all {
        let (tone, state) = match (verdict.violations.is_empty(), verdict.checked) {
            (false, _) => (Tone::Bad, State::Bad),
            (true, 0) => (Tone::Dim, State::Idle),
            (true, _) => (Tone::Good, State::Good),
        };
        let word = match state {
            State::Bad => "VIOLATED",
            State::Idle => "not asked",
            _ => "holds",
        };
        lines.push(
            Line::of(Tone::Plain, &verdict.oracle)
                .at(
                    RESULT,
                    tone,
                    format!("{} {word}", tree::look(state, style).1),
                )
                .at(CHECKS, Tone::Plain, verdict.checked.to_string())
                .at(RULE, Tone::Dim, clean(&verdict.what)),
        );
        for violation in verdict.violations.iter().take(MOST_VIOLATIONS) {
            lines.push(Line::default().at(RESULT, Tone::Bad, clean(violation)));
        }
    }
    lines
}

#[cfg(test)]
mod tests;
