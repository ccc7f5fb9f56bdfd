//! Where measures come from.

use slipway_api::canary::{Metric, ObjectReference};

use super::{DURATION, SUCCESS_RATE};

/// Where a measure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// A query that we know.
    Builtin,
    /// A query in the Canary.
    Inline(&'a str),
    /// A `MetricTemplate`.
    Template(&'a ObjectReference),
    /// Nobody says.
    Unknown,
}

/// All measures, in the order of the engine's: a metric that says more than one source is measured by each.
pub fn sources(metrics: &[Metric]) -> Vec<(&Metric, Source<'_>)> {
    let mut all = Vec::new();
    for metric in metrics {
        let before = all.len();
        let inline = metric.query.as_deref().filter(|query| !query.is_empty());
        if [SUCCESS_RATE, DURATION].contains(&metric.name.as_str()) && metric.template_ref.is_none()
        {
            all.push((metric, Source::Builtin));
        }
        all.extend(inline.map(|query| (metric, Source::Inline(query))));
        let template = metric.template_ref.as_ref();
        all.extend(template.map(|reference| (metric, Source::Template(reference))));
        if all.len() == before {
            all.push((metric, Source::Unknown));
        }
    }
    all
}
