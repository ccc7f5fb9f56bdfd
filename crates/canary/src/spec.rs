//! A Canary as it is written, read into what the engine goes by.
//!
//! A spec that cannot be followed is a [`Problem`] that says which field and what to do; nothing is guessed, and nothing
//! panics: intervals of nanoseconds and years, ten thousand steps and numbers without bounds are refused or bounded.

mod sources;

use std::time::Duration;

use slipway_api::canary::{Analysis, CanarySpec, HookType, Metric};
use slipway_kernel::duration;
use slipway_kernel::question::prometheus::Query;

use crate::engine::{Finish, Good, Hook, Measure, Rules, Shift, Strategy, Way};
use crate::places::Places;
use crate::provider::{NotAProvider, Provider};
use crate::webhooks;

pub use sources::{Source, sources};

/// The least interval, as in the original.
pub const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// The interval where none is written, or one that cannot be read.
const USUAL_INTERVAL: Duration = Duration::from_mins(1);
/// The longest interval, pause and deadline.
const MAX_WAIT: Duration = Duration::from_hours(24 * 365);
/// The longest that a data plane that says nothing is given to take weights.
const MAX_GRACE: Duration = Duration::from_secs(30);
/// How many iterations there are where a router is missing and none are written.
const USUAL_ITERATIONS: u32 = 10;
/// The most steps: weights are whole percents.
const MAX_STEPS: usize = 101;
/// The most webhooks and measures of one Canary.
const MAX_CHECKS: usize = 100;
/// The progress deadline where none is written.
const USUAL_DEADLINE: i64 = 600;

/// Why a Canary is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The provider.
    #[error("spec.provider: {0}")]
    Provider(#[from] NotAProvider),
    /// The target's kind.
    #[error("spec.targetRef: kind {0} is not supported; use Deployment or DaemonSet")]
    Target(String),
    /// The autoscaler's kind.
    #[error("spec.autoscalerRef: kind {0} is not supported; use HorizontalPodAutoscaler")]
    Autoscaler(String),
    /// There is no analysis, and it is not skipped either.
    #[error("spec.analysis is missing; add it, or set spec.skipAnalysis")]
    NoAnalysis,
    /// Another field.
    #[error("{field}: {problem}")]
    Field {
        /// Which.
        field: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
}

impl Problem {
    /// Whether it asks for something that is not built, which has a reason of its own.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::Provider(NotAProvider::NotBuilt(_)) | Self::Target(_) | Self::Autoscaler(_)
        )
    }
}

/// A Canary that can be followed.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What the engine goes by.
    pub rules: Rules,
    /// What shifts traffic.
    pub provider: Provider,
    /// What was understood otherwise than it was written, for people.
    pub warnings: Vec<String>,
}

/// Reads a Canary; `usual` is the provider where none is written.
pub fn read(spec: &CanarySpec, usual: Provider) -> Result<Asked, Problem> {
    let provider = spec.provider.as_deref().filter(|name| !name.is_empty());
    read_with(spec, provider.map_or(Ok(usual), Provider::of)?)
}

/// Reads a Canary whose traffic is shifted by this provider, whatever it says itself.
pub fn read_with(spec: &CanarySpec, provider: Provider) -> Result<Asked, Problem> {
    if !["Deployment", "DaemonSet"].contains(&spec.target_ref.kind.as_str()) {
        return Err(Problem::Target(spec.target_ref.kind.clone()));
    }
    let scaler = spec.autoscaler_ref.as_ref();
    if let Some(scaler) = scaler.filter(|scaler| scaler.kind != "HorizontalPodAutoscaler") {
        return Err(Problem::Autoscaler(scaler.kind.clone()));
    }
    if provider.divides() {
        divisible(spec, provider)?;
    }
    let skips = spec.skip_analysis == Some(true);
    let analysis = match spec.analysis() {
        Some(analysis) => analysis,
        None if skips => Analysis {
            iterations: Some(1),
            ..Analysis::default()
        },
        None => return Err(Problem::NoAnalysis),
    };
    let mut warnings = Vec::new();
    let strategy = strategy(&analysis, provider, &mut warnings)?;
    let interval = interval(analysis.interval.as_deref());
    let rules = Rules {
        interval,
        patience: patience(&analysis),
        threshold: u32::try_from(analysis.threshold.unwrap_or(1))
            .unwrap_or(1)
            .max(1),
        deadline: deadline(spec.progress_deadline_seconds),
        mirror: mirror(&analysis, provider, &mut warnings),
        promotion_step: percent(analysis.step_weight_promotion.unwrap_or_default()),
        pauses: pauses(&analysis)?,
        skip: skips,
        suspend: spec.suspend == Some(true),
        hooks: hooks(&analysis)?,
        metrics: metrics(&analysis)?,
        shift: if provider.divides() {
            Shift::Replicas
        } else if provider.shifts() {
            Shift::Router
        } else {
            Shift::Nothing
        },
        router: provider.full_name().to_owned(),
        places: Places::of_spec(spec).kept(),
        grace: if provider.router().acknowledges {
            Duration::ZERO
        } else {
            grace(spec)
        },
        first_grace: grace(spec),
        finish: Finish::IntoSource,
        strategy,
    };
    affinity(&analysis, provider)?;
    unverified(&analysis, &mut warnings);
    Ok(Asked {
        rules,
        provider,
        warnings,
    })
}

/// Whether the replicas of the workload can be divided by somebody who is not its autoscaler.
fn divisible(spec: &CanarySpec, provider: Provider) -> Result<(), Problem> {
    let name = provider.full_name();
    if spec.target_ref.kind == "DaemonSet" {
        let problem = format!("a DaemonSet has no replicas that {name} could divide");
        return Err(field("spec.targetRef", problem));
    }
    if spec.autoscaler_ref.is_some() {
        let problem = format!(
            "with {name} the numbers of replicas are the weights; remove it, or use another provider"
        );
        return Err(field("spec.autoscalerRef", problem));
    }
    Ok(())
}

fn field(field: &'static str, problem: impl Into<String>) -> Problem {
    Problem::Field {
        field,
        problem: problem.into(),
    }
}

/// How long a data plane that says nothing is given.
pub(crate) fn grace(spec: &CanarySpec) -> Duration {
    let analysis = spec.analysis().unwrap_or_default();
    interval(analysis.interval.as_deref()).min(MAX_GRACE)
}

/// An interval, as the original takes it: what cannot be read is a minute, what is too short is ten seconds.
pub fn interval(text: Option<&str>) -> Duration {
    let read = text.and_then(|text| duration::parse(text).ok());
    read.unwrap_or(USUAL_INTERVAL).clamp(MIN_INTERVAL, MAX_WAIT)
}

/// For how long a run may make no progress.
pub(crate) fn deadline(seconds: Option<i64>) -> Duration {
    let seconds = seconds.filter(|seconds| *seconds > 0);
    let seconds = u64::try_from(seconds.unwrap_or(USUAL_DEADLINE)).unwrap_or_default();
    Duration::from_secs(seconds).min(MAX_WAIT)
}

fn percent(number: i64) -> u8 {
    u8::try_from(number.clamp(0, 100)).unwrap_or_default()
}

/// How often the version is checked, as it is written.
fn iterations(analysis: &Analysis) -> u32 {
    u32::try_from(analysis.iterations.unwrap_or_default()).unwrap_or_default()
}

/// How the version proves itself, also where the rest cannot be followed.
pub(crate) fn way(analysis: &Analysis, provider: Provider) -> Way {
    match iterations(analysis) {
        _ if !provider.shifts() => Way::Switch,
        0 => Way::Weights,
        _ if analysis.matching.is_empty() => Way::Switch,
        _ => Way::Matching,
    }
}

fn strategy(
    analysis: &Analysis,
    provider: Provider,
    warnings: &mut Vec<String>,
) -> Result<Strategy, Problem> {
    match way(analysis, provider) {
        Way::Weights => Ok(Strategy::Weights(steps(analysis)?)),
        Way::Switch => Ok(Strategy::Switch(switch(analysis, provider, warnings))),
        Way::Matching => {
            check_matches(analysis, provider)?;
            Ok(Strategy::Matching(iterations(analysis)))
        }
    }
}

/// How often a version is checked beside the traffic.
fn switch(analysis: &Analysis, provider: Provider, warnings: &mut Vec<String>) -> u32 {
    let iterations = iterations(analysis);
    if !provider.shifts() && !analysis.matching.is_empty() {
        warnings.push("spec.analysis.match is ignored: the provider cannot route by it".into());
    }
    if iterations > 0 {
        return iterations;
    }
    warnings.push(format!(
        "the provider cannot shift traffic; {USUAL_ITERATIONS} iterations are made instead"
    ));
    USUAL_ITERATIONS
}

fn check_matches(analysis: &Analysis, provider: Provider) -> Result<(), Problem> {
    if !provider.matches() {
        let problem = "the provider cannot route by headers; use stepWeight, or another provider";
        return Err(field("spec.analysis.match", problem));
    }
    for (place, one) in analysis.matching.iter().enumerate() {
        let checked = (provider.router().check_match)(one);
        checked
            .map_err(|why| field("spec.analysis.match", format!("entry {}: {why}", place + 1)))?;
    }
    Ok(())
}

/// The weights of all steps, rising.
fn steps(analysis: &Analysis) -> Result<Vec<u8>, Problem> {
    if !analysis.step_weights.is_empty() {
        return listed(&analysis.step_weights);
    }
    let step = analysis.step_weight.unwrap_or_default();
    if step <= 0 {
        let problem = "it must be above 0; or use stepWeights or iterations";
        return Err(field("spec.analysis.stepWeight", problem));
    }
    let most = analysis.max_weight.filter(|most| *most > 0).unwrap_or(100);
    let most = percent(most);
    let step = percent(step);
    let mut all = Vec::new();
    let mut weight = 0_u8;
    while weight < most {
        weight = weight.saturating_add(step).min(100);
        all.push(weight);
    }
    Ok(all)
}

fn listed(weights: &[i64]) -> Result<Vec<u8>, Problem> {
    let name = "spec.analysis.stepWeights";
    if weights.len() > MAX_STEPS {
        return Err(field(
            name,
            format!("there are more than {MAX_STEPS} steps"),
        ));
    }
    let all: Vec<u8> = weights.iter().copied().map(percent).collect();
    let rises = all.iter().zip(all.iter().skip(1)).all(|(a, b)| a < b);
    if !rises || all.first().is_none_or(|first| *first == 0) {
        let problem = "each weight must be above the one before it, and the first above 0";
        return Err(field(name, problem));
    }
    Ok(all)
}

fn mirror(analysis: &Analysis, provider: Provider, warnings: &mut Vec<String>) -> bool {
    let wanted = analysis.mirror == Some(true);
    if wanted && !provider.mirrors() {
        warnings.push("spec.analysis.mirror is ignored: the provider cannot copy requests".into());
    }
    wanted && provider.mirrors()
}

fn pauses(analysis: &Analysis) -> Result<Vec<Duration>, Problem> {
    let name = "spec.analysis.stepPauses";
    if analysis.step_pauses.len() > MAX_STEPS {
        return Err(field(
            name,
            format!("there are more than {MAX_STEPS} pauses"),
        ));
    }
    let each = analysis.step_pauses.iter();
    each.map(|text| {
        let read = duration::parse(text).map_err(|error| field(name, error.to_string()))?;
        Ok(read.min(MAX_WAIT))
    })
    .collect()
}

fn hooks(analysis: &Analysis) -> Result<Vec<Hook>, Problem> {
    let name = "spec.analysis.webhooks";
    if analysis.webhooks.len() > MAX_CHECKS {
        return Err(field(name, format!("there are more than {MAX_CHECKS}")));
    }
    let each = analysis.webhooks.iter();
    each.map(|hook| {
        let kind = HookType::of(hook.kind.as_deref()).ok_or_else(|| {
            let kind = hook.kind.as_deref().unwrap_or_default();
            field(
                name,
                format!("type {kind:?} of {} does not exist", hook.name),
            )
        })?;
        if hook.signing.as_ref().is_some_and(|one| one.name.is_empty()) {
            let problem = format!("signing of {} names no Secret", hook.name);
            return Err(field(name, problem));
        }
        Ok(Hook {
            name: hook.name.clone(),
            kind,
            mute: hook.mute_alert == Some(true),
        })
    })
    .collect()
}

fn metrics(analysis: &Analysis) -> Result<Vec<Measure>, Problem> {
    let name = "spec.analysis.metrics";
    if analysis.metrics.len() > MAX_CHECKS {
        return Err(field(name, format!("there are more than {MAX_CHECKS}")));
    }
    let all = sources(&analysis.metrics).into_iter();
    Ok(all.map(|(metric, _)| measure(metric)).collect())
}

/// How long the questions of a check may take: webhooks one after the other, with their retries, then all measures at once.
fn patience(analysis: &Analysis) -> Duration {
    let hooks = analysis.webhooks.iter().map(webhooks::whole_time);
    let measures = if analysis.metrics.is_empty() {
        Duration::ZERO
    } else {
        Query::TIMEOUT
    };
    hooks.fold(measures, Duration::saturating_add)
}

/// Whose certificates a person does not want to be verified: they are, all the same.
fn unverified(analysis: &Analysis, warnings: &mut Vec<String>) {
    for hook in &analysis.webhooks {
        if hook.disable_tls == Some(true) {
            let name = &hook.name;
            warnings.push(format!(
                "spec.analysis.webhooks: disableTLS of {name} is not followed, its certificate is verified"
            ));
        }
    }
}

/// The builtin measure of which more is better.
pub const SUCCESS_RATE: &str = "request-success-rate";
/// The builtin measure in whole milliseconds.
pub const DURATION: &str = "request-duration";

fn measure(metric: &Metric) -> Measure {
    let is_rate = metric.name == SUCCESS_RATE;
    let is_whole = metric.name == DURATION;
    let good = match (metric.threshold_range, metric.threshold) {
        (Some(range), _) => Good {
            min: range.min,
            max: range.max,
        },
        // The former way: the least of a rate, the most of anything else.
        (None, threshold) if is_rate => Good {
            min: Some(threshold.unwrap_or_default()),
            max: None,
        },
        (None, threshold) => Good {
            min: None,
            max: Some(threshold.unwrap_or_default()),
        },
    };
    let whole =
        |bound: Option<f64>| bound.map(|bound| if is_whole { bound.trunc() } else { bound });
    let baseline = metric.baseline.unwrap_or_default();
    Measure {
        name: metric.name.clone(),
        good: Good {
            min: whole(good.min),
            max: whole(good.max),
        },
        is_whole,
        no_data: metric.no_data.unwrap_or_default(),
        min_samples: metric.minimum_samples.as_ref().map(|least| least.count),
        max_increase: baseline.max_increase_percent,
        max_decrease: baseline.max_decrease_percent,
        dry_run: metric.dry_run == Some(true),
    }
}

fn affinity(analysis: &Analysis, provider: Provider) -> Result<(), Problem> {
    let name = "spec.analysis.sessionAffinity";
    let Some(affinity) = &analysis.session_affinity else {
        return Ok(());
    };
    if affinity.primary_cookie_name.as_ref() == Some(&affinity.cookie_name) {
        let problem = "cookieName and primaryCookieName must differ";
        return Err(field(name, problem));
    }
    if !provider.has_affinity() {
        let problem = "the provider cannot keep clients at a version; remove it";
        return Err(field(name, problem));
    }
    Ok(())
}
