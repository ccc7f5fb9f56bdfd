//! A run goes on: what it comes to is written first, what follows from it is done when it has been.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::canary::{CanaryStatus, CheckStatus};
use slipway_kernel::event::EventType;
use slipway_kernel::{Action, Plan};

use super::report::{Report, difference};
use super::{Look, telling, unfollowed};
use crate::claims::{self, Held};
use crate::engine::{Checked, Next, advance, deeds};
use crate::measures::Subject;
use crate::questions::{Asker, Heard};
use crate::render;
use crate::standalone::acts::{Act, acts};
use crate::standalone::scene::Stand;
use crate::standalone::{adopt, cookies};

/// So many checks are shown.
const MAX_CHECKS: usize = 20;

pub(super) fn follow(look: &Look<'_>, stand: &Stand, plan: &mut Plan) {
    let canary = look.canary;
    let analysis = canary.spec.analysis().unwrap_or_default();
    let asker = Asker {
        subject: Subject {
            canary,
            world: look.world,
            settings: look.settings,
            provider: stand.asked.provider,
        },
        analysis: &analysis,
        run: &stand.run,
        sight: &stand.sight,
    };
    let mut heard = asker.heard();
    let next = decide(look, stand, &asker, &mut heard, plan);
    plan.keeps = heard.kept(next.run.due);
    let before = canary.status.clone().unwrap_or_default();
    plan.keeps.extend(telling::kept(look, &before));
    let generation = canary.metadata.generation.unwrap_or_default();
    let mut after = adopt::status(&next.run, &before, generation, look.now);
    cookies::record(canary, &next.run, &mut after);
    let is_intent = difference(&before, &after).is_some();
    record(&next.checks, &mut after, &Time(look.now));
    let report = Report::new(look.world, look.now);
    if is_intent {
        // Nothing is done before what it follows from is remembered, and nobody asked. Whoever is being told what happened before
        // goes on being told: else they would hear it again.
        plan.steps.clear();
        plan.prepares = true;
        telling::tell(look, &mut after, plan);
        telling::keep(look, &next.run, &next.news, &mut after);
        plan.statuses.extend(report.status(&before, &after));
        report.news(&next.news, plan);
        if before.observed_generation != Some(generation) {
            for warning in stand.asked.warnings.iter().chain(&unfollowed(look)) {
                plan.events.push(report.event(EventType::Warning, warning));
            }
        }
        return;
    }
    report.news(&next.news, plan);
    act(look, stand, &next, &report, plan);
    if let Some(at) = next.wake {
        plan.wake(at);
    }
    telling::tell(look, &mut after, plan);
    report.waiting(&before, &mut after, plan);
    plan.statuses.extend(report.status(&before, &after));
}

/// Asks the engine until it asks nothing that is known without asking anybody: what is left are questions of the plan.
fn decide(
    look: &Look<'_>,
    stand: &Stand,
    asker: &Asker<'_>,
    heard: &mut Heard,
    plan: &mut Plan,
) -> Next {
    loop {
        let rules = &stand.asked.rules;
        let next = advance(rules, &stand.run, &stand.sight, &heard.answers, look.now);
        let mut is_known = false;
        let mut open = Vec::new();
        for ask in &next.asks {
            match asker.put(*ask) {
                Ok(questions) => open.extend(questions),
                // The engine does not ask for what it has been told.
                Err(answer) => is_known |= heard.answers.insert(*ask, answer).is_none(),
            }
        }
        if !is_known {
            for question in open {
                plan.act(Action::Ask(question));
            }
            return next;
        }
    }
}

/// What follows from the run.
fn act(look: &Look<'_>, stand: &Stand, next: &Next, report: &Report<'_>, plan: &mut Plan) {
    let seen = look.seen();
    let deeds = deeds(&stand.asked.rules, &stand.run, &stand.sight, look.now);
    let acts = acts(&seen, stand, &deeds);
    for mut one in acts.list {
        if let Act::Write(write) = &mut one {
            if let Some(claim) = claims::of_other(look.world, stand, write, look.now) {
                report.claimed(&claim, plan);
                continue;
            }
            claims::mark(look.world, stand, write, look.now);
        }
        if let Some(action) = render::act(look.world, stand, one) {
            plan.act(action);
        }
    }
    claims::keep(look.world, &Held::followed(stand), plan, look.now);
    report.news(&deeds.news, plan);
    report.held(stand, &next.holds, plan);
    report.held(stand, &deeds.holds, plan);
    for obstacle in &acts.obstacles {
        report.obstacle(obstacle, plan);
    }
    report.refused(plan);
}

/// Shows what checks came to. One that came to the same keeps its time.
fn record(checks: &[Checked], status: &mut CanaryStatus, now: &Time) {
    if checks.is_empty() {
        return;
    }
    let before = std::mem::take(&mut status.checks);
    let shown = checks.iter().take(MAX_CHECKS).map(|check| {
        let mut shown = CheckStatus {
            name: check.name.clone(),
            verdict: check.verdict.as_str().to_owned(),
            value: check.value,
            message: Some(check.message.clone()).filter(|text| !text.is_empty()),
            at: now.clone(),
        };
        let is_same = |known: &&CheckStatus| {
            let is_called = known.name == shown.name && known.verdict == shown.verdict;
            is_called && known.message == shown.message && known.value == shown.value
        };
        if let Some(known) = before.iter().find(is_same) {
            shown.at = known.at.clone();
        }
        shown
    });
    status.checks = shown.collect();
}
