//! What the bench prints.
#![allow(clippy::print_stdout, reason = "this module is the output")]

use crate::turns::Measurement;

/// A line beside the table.
pub(crate) fn note(text: &str) {
    println!("{text}");
}

/// One column for each contender and server.
pub(crate) fn print(columns: &[Measurement], deployments: usize) {
    println!("\nrestarts of {deployments} Deployments");
    let row = |name: &str, value: &dyn Fn(&Measurement) -> String| {
        let cells: Vec<String> = columns
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
        run.spread.beside.events.to_string()
    });
    row("  beside them: statuses", &|run| {
        run.spread.beside.statuses.to_string()
    });
    row("  beside them: lease renewals", &|run| {
        run.spread.beside.leases.to_string()
    });
    row("mutations of workloads, idle 30 s", &|run| {
        run.idle.mutations.to_string()
    });
    row("  beside them: events", &|run| {
        run.idle.beside.events.to_string()
    });
    row("  beside them: statuses", &|run| {
        run.idle.beside.statuses.to_string()
    });
    row("  beside them: lease renewals", &|run| {
        run.idle.beside.leases.to_string()
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

fn seconds(delay: f64, late: bool) -> String {
    let mark = if late { " (late start)" } else { "" };
    format!("{delay:.3} s{mark}")
}
