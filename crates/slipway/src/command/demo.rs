//! `slipway demo`: the product at work, without a cluster.

use std::io::IsTerminal;

use anyhow::Result;
use slipway_sim::scenario::Scenario;

use crate::args::{Color, Demo};
use crate::demo::{self, Show, Style};
use crate::exit::{Outcome, Usage};
use crate::{output, scenarios};

/// Shows a scenario, or judges one or all of them.
pub(crate) fn run(arguments: &Demo) -> Result<Outcome> {
    let style = Style {
        color: is_colored(arguments.color),
        ascii: arguments.ascii,
    };
    let chosen = match (&arguments.scenario, arguments.headless) {
        (Some(name), _) => vec![find(name)?],
        (None, true) => scenarios::all()?,
        (None, false) => scenarios::all()?.into_iter().take(1).collect(),
    };
    if arguments.headless {
        return judge(&chosen, arguments.seed, style);
    }
    let show = Show {
        seed: arguments.seed,
        speed: arguments.speed,
        style,
        frames: demo::is_terminal(),
    };
    match chosen.first() {
        Some(scenario) => demo::play(scenario, show),
        None => Ok(Outcome::Done),
    }
}

fn find(name: &str) -> Result<Scenario> {
    let Some(scenario) = scenarios::find(name) else {
        let known: Vec<&str> = scenarios::names();
        let known = known.join(", ");
        let text = format!("--scenario: there is no scenario {name:?}; there are: {known}");
        return Err(Usage(text).into());
    };
    Ok(scenario?)
}

fn judge(chosen: &[Scenario], seed: u64, style: Style) -> Result<Outcome> {
    let mut outcome = Outcome::Done;
    let mut broken = 0;
    for (index, scenario) in chosen.iter().enumerate() {
        if index > 0 {
            output::line("");
        }
        let (lines, holds) = demo::judge(scenario, seed, style)?;
        for line in lines {
            output::line(&line);
        }
        if !holds {
            outcome = Outcome::Violation;
            broken += 1;
        }
    }
    if chosen.len() > 1 {
        output::line(&format!(
            "\n{} scenarios, {broken} with violations",
            chosen.len()
        ));
    }
    Ok(outcome)
}

/// `NO_COLOR` counts when it is set to something, as its authors ask.
fn is_colored(color: Color) -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => !no_color && std::io::stdout().is_terminal(),
    }
}
