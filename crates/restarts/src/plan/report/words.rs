//! Sentences for people: what is waited for, and who can change that.

use slipway_api::flipper::FlipperStatus;
use slipway_kernel::{ObjectRef, duration};

use crate::due::Cadence;
use crate::plan::active::Active;
use crate::plan::gates::Held;
use crate::reasons::Reason;
use crate::render::stamp_of;
use crate::settings::Settings;

/// Why one workload is held back.
pub(crate) fn message(policy: &Active<'_>, held: &Held, workload: &ObjectRef) -> String {
    let by = held.by.as_deref().unwrap_or_default();
    let what = match held.reason {
        Reason::ClaimedByOther => format!("is being disrupted by {by}"),
        Reason::Deleting => "is being deleted".to_owned(),
        Reason::DisruptionBudget if by.is_empty() => {
            "cannot be checked against pod disruption budgets, because those cannot be read"
                .to_owned()
        }
        Reason::DisruptionBudget => {
            format!("is protected by PodDisruptionBudget {by}, which allows no disruption now")
        }
        Reason::DryRun => "would be restarted now".to_owned(),
        Reason::ExcludedDate => "is due on an excluded date".to_owned(),
        Reason::Jitter => format!(
            "waits for its turn within {} of jitter",
            duration::render(policy.policy.jitter)
        ),
        Reason::MaxConcurrent => "waits until fewer workloads are rolling".to_owned(),
        Reason::NeverRestarted => format!(
            "was never restarted; without dryRun its first restart would be {}",
            first(policy)
        ),
        Reason::OnDeleteStrategy => {
            "has the update strategy OnDelete: a restart would replace no pod".to_owned()
        }
        Reason::OptedOut => "asks by annotation not to be restarted".to_owned(),
        Reason::OutsideWindow => "waits for a window to open".to_owned(),
        Reason::Partition => {
            format!("has partition {by}: a restart would not reach the pods below that ordinal")
        }
        Reason::Paused => "is paused".to_owned(),
        Reason::PolicyInvalid => format!(
            "is matched by {}, whose spec is invalid, and is not restarted until that is fixed",
            policy.name()
        ),
        Reason::RefusedByApi => format!("could not be written: {by}"),
        Reason::RolloutFailed => {
            format!(
                "has a rollout that did not finish within its progress deadline ({by}); a restart would hide that"
            )
        }
        Reason::RolloutInProgress => format!("is rolling: {by}"),
        Reason::Snoozed if by.is_empty() => "asks by annotation for a later restart".to_owned(),
        Reason::Snoozed => {
            format!(
                "asks by annotation for a later restart, but {by:?} is not a valid RFC 3339 time"
            )
        }
        Reason::StampInFuture => format!(
            "has the stamp {by}, which lies in the future: a clock was wrong, or somebody wrote it; the next restart counts from there"
        ),
        Reason::StampRemoved => {
            "has lost its stamp; the next restart counts from restartedAt in its pod template"
                .to_owned()
        }
        Reason::Suspended => "is due, but the policy is suspended".to_owned(),
        Reason::Unavailable => format!("is not fully available: {by}"),
        Reason::ZeroReplicas => "has no replicas".to_owned(),
    };
    format!("{workload} {what}")
}

/// Why many workloads are held back by the same thing; `held` is about the one that waits longest.
pub(crate) fn together(
    policy: &Active<'_>,
    settings: &Settings,
    held: &Held,
    many: usize,
    longest: &ObjectRef,
) -> String {
    let why = match held.reason {
        Reason::NeverRestarted => {
            return format!(
                "{many} never restarted: without dryRun the first restart of each would be {}",
                first(policy)
            );
        }
        Reason::PolicyInvalid => {
            return format!("{many} matched and not restarted, because the spec is invalid");
        }
        Reason::MaxConcurrent => match (policy.policy.max_concurrent, settings.max_concurrent) {
            (Some(1), _) => "no other may be rolling (maxConcurrent)".to_owned(),
            (Some(most), _) => format!("at most {most} may be rolling (maxConcurrent)"),
            (None, Some(most)) => format!("at most {most} may be rolling in the cluster"),
            (None, None) => "others are rolling".to_owned(),
        },
        Reason::OutsideWindow => "no window is open".to_owned(),
        Reason::ExcludedDate => "today is an excluded date".to_owned(),
        Reason::DryRun => "they would be restarted, but this is a dry run".to_owned(),
        Reason::Suspended => "the policy is suspended".to_owned(),
        // A reason that nobody has put into words yet: its name is better than another's words.
        other => other.as_str().to_owned(),
    };
    let since = stamp_of(held.since);
    format!("{many} due; oldest {longest}, since {since}: {why}")
}

/// Who or what can end it.
pub(crate) fn unblock(reason: Reason) -> &'static str {
    match reason {
        Reason::ClaimedByOther => "the other capability, when it is done",
        Reason::Deleting => "nobody: the workload goes away",
        Reason::DisruptionBudget => {
            "more available pods, a wider budget, or respectPodDisruptionBudgets: false"
        }
        Reason::DryRun | Reason::NeverRestarted => "set spec.dryRun to false",
        Reason::ExcludedDate => "the next day, or a change of spec.excludeDates",
        Reason::Jitter => "time, or a shorter spec.jitter",
        Reason::MaxConcurrent => "the rollouts that go on, or a higher maxConcurrent",
        Reason::OnDeleteStrategy => {
            "set the update strategy to RollingUpdate, or opt the workload out"
        }
        Reason::OptedOut => "remove the annotation slipway.dev/restarts",
        Reason::OutsideWindow => "the next window, or a change of spec.windows",
        Reason::Partition => "set the partition to 0",
        Reason::Paused => "resume the workload",
        Reason::PolicyInvalid => "fix the fields of the spec that the condition Accepted names",
        Reason::RefusedByApi => "whoever refuses: a role, an admission webhook or a quota",
        Reason::RolloutFailed => "repair the rollout, or set spec.whenRolloutInProgress to Ignore",
        Reason::RolloutInProgress => {
            "the rollout, when it is done, or spec.whenRolloutInProgress: Ignore"
        }
        Reason::Snoozed => "remove or change the annotation slipway.dev/restart-not-before",
        Reason::StampInFuture => {
            "whoever removes the annotation flipper.io/rollout-last-restart: the next restart then counts from that moment"
        }
        Reason::StampRemoved => "whoever removes the annotation flipper.io/rollout-last-restart",
        Reason::Suspended => "set spec.suspend to false",
        Reason::Unavailable => "more available pods",
        Reason::ZeroReplicas => "scale the workload up",
    }
}

/// When a workload is restarted that is seen for the first time.
fn first(policy: &Active<'_>) -> String {
    match &policy.cadence {
        Cadence::Every(interval) => format!("{} after that", duration::render(*interval)),
        Cadence::At(_) => "at the next time of the schedule".to_owned(),
    }
}

/// What a policy matches.
pub(crate) fn matched(made: &FlipperStatus) -> String {
    let all = made
        .matched
        .and_then(|count| usize::try_from(count).ok())
        .unwrap_or_default();
    let more = match all.saturating_sub(made.workloads.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("Matches {all}: {}{more}", made.workloads.join(", "))
}

/// The criteria of a policy, in one line.
pub(crate) fn criteria(policy: &Active<'_>) -> String {
    let labels: Vec<String> = policy
        .policy
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let namespaces: Vec<&str> = policy
        .policy
        .namespaces
        .iter()
        .map(String::as_str)
        .collect();
    let all = |list: String| {
        if list.is_empty() {
            "any".to_owned()
        } else {
            list
        }
    };
    let often = match &policy.cadence {
        Cadence::Every(interval) => duration::render(*interval),
        Cadence::At(_) => "schedule".to_owned(),
    };
    format!(
        "interval={often} labels={} namespaces={}",
        all(labels.join(",")),
        all(namespaces.join(","))
    )
}
