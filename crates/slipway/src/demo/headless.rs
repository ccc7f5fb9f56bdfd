//! Scenarios at full speed, and what the oracles say.

use anyhow::Result;
use slipway_sim::runner;
use slipway_sim::scenario::Scenario;
use slipway_sim::trial::Trial;

use super::line::{Line, Style, Tone};
use super::model::Verdict;
use super::render;
use crate::scenarios;

/// How a scenario came out, for people, and whether all oracles hold that had something to judge.
pub(crate) fn judge(scenario: &Scenario, seed: u64, style: Style) -> Result<(Vec<String>, bool)> {
    let trial = Trial {
        seed,
        ..Trial::calm()
    };
    let (outcome, verdicts) = runner::judge(scenario, &scenarios::wiring(), &trial, None)?;
    let verdicts: Vec<Verdict> = verdicts.iter().map(Verdict::from).collect();
    let asked = verdicts.iter().filter(|v| v.is_asked()).count();
    let broken = verdicts.iter().filter(|v| !v.violations.is_empty()).count();
    let idle = verdicts.len() - asked;
    let mut lines =
        vec![Line::of(Tone::Bold, &scenario.name).and(Tone::Dim, format!(" · {}", scenario.about))];
    lines.extend(render::verdicts(&verdicts, style));
    let told = format!(
        "{} in virtual time, {} requests of the operator, {} changes of objects, seed {seed}, trace {:.12}",
        super::words::length(outcome.history.start, outcome.history.end),
        outcome.history.requests.len(),
        outcome.history.changes.len(),
        outcome.hash,
    );
    lines.extend([Line::default(), Line::of(Tone::Dim, told)]);
    lines.push(if broken == 0 {
        Line::of(
            Tone::Good,
            format!("{}: {asked} of {asked} oracles asked hold", scenario.name),
        )
        .and(Tone::Dim, format!("; {idle} had nothing to judge"))
    } else {
        let name = &scenario.name;
        let again = format!("slipway demo --headless --scenario {name} --seed {seed}");
        Line::of(
            Tone::Bad,
            format!("{name}: {broken} of {asked} oracles asked VIOLATED"),
        )
        .and(Tone::Plain, format!("; again: {again}"))
    });
    let text = lines
        .into_iter()
        .map(|line| line.styled(style).paint(style));
    Ok((text.collect(), broken == 0))
}
