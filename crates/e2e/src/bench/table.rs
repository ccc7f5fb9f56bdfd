//! What the bench prints.
#![allow(clippy::print_stdout, reason = "this module is the output")]

use crate::measure::Measurement;

/// A line beside the table.
pub(crate) fn note(text: &str) {
    println!("{text}");
}

/// One column a run.
pub(crate) fn print(runs: &[Measurement], deployments: usize) {
    println!("\nrestarts of {deployments} Deployments");
    let row = |name: &str, value: &dyn Fn(&Measurement) -> String| {
        let cells: Vec<String> = runs
            .iter()
            .map(|run| format!("{:>20}", value(run)))
            .collect();
        println!("{name:44}{}", cells.join(""));
    };
    row("", &|run| format!("{} on {}", run.contender, run.server));
    row("resident memory", &|run| {
        format!("{:.1} MB", mega(run.resident))
    });
    row("processor time, whole run", &|run| {
        format!("{:.2} s", run.processor.as_secs_f64())
    });
    row("due to patched, p50 (one after another)", &|run| {
        seconds(run.spread.p50, run.started_late)
    });
    row("due to patched, p99", &|run| {
        seconds(run.spread.p99, run.started_late)
    });
    row("mutations of workloads per restart", &|run| {
        format!("{:.3}", run.spread.mutations_per_restart)
    });
    row("  beside them: events", &|run| {
        run.spread.events.to_string()
    });
    row("  beside them: statuses", &|run| {
        run.spread.statuses.to_string()
    });
    row("  beside them: lease renewals", &|run| {
        run.spread.leases.to_string()
    });
    row("mutations of workloads, idle 30 s", &|run| {
        run.idle.mutations.to_string()
    });
    row("  beside them: events", &|run| run.idle.events.to_string());
    row("  beside them: statuses", &|run| {
        run.idle.statuses.to_string()
    });
    row("  beside them: lease renewals", &|run| {
        run.idle.leases.to_string()
    });
    row("processor, idle", &|run| {
        format!("{:.2} %", run.idle.processor * 100.0)
    });
    row("all due at once, until the last is patched", &|run| {
        format!("{:.1} s", run.herd.all.as_secs_f64())
    });
    row("  mutations of workloads per restart", &|run| {
        format!("{:.3}", run.herd.mutations_per_restart)
    });
}

#[allow(clippy::cast_precision_loss, reason = "megabytes for people")]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn seconds(delay: jiff::SignedDuration, late: bool) -> String {
    let mark = if late { " (late start)" } else { "" };
    format!("{:.3} s{mark}", delay.as_secs_f64())
}
