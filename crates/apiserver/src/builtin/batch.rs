//! The `batch` kinds: jobs and cron jobs.

mod cronjob;
mod finish;
mod indexes;
mod job;
mod schedule;
mod spec;

use std::sync::Arc;

use crate::builtin::describe;
use crate::resource::Resource;

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    vec![
        describe::resource(
            "batch",
            "v1",
            "CronJob",
            "cronjobs",
            Arc::new(cronjob::RULES),
        )
        .short(&["cj"])
        .category("all")
        .status()
        .build(),
        describe::resource("batch", "v1", "Job", "jobs", Arc::new(job::RULES))
            .category("all")
            .status()
            .build(),
    ]
}

#[cfg(test)]
mod tests;
