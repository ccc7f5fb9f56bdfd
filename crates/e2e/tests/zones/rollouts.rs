//! Whole rollouts, with what the API's watches showed of them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use slipway_e2e::flood::{Flood, Target};
use slipway_e2e::operator::Operator;
use slipway_e2e::review;
use slipway_e2e::suite::say;
use slipway_e2e::zones::{Place, Seen, Trace, ZONES};

use crate::stage::{NODES, Stage, bound, zones};

/// How long a rollout of all zones may take on a loaded machine.
const ROLLOUT: Duration = Duration::from_mins(4);

const KILLS: usize = 30;

/// How many pods a zone has, and how many of them may be away. The simulated kubelets take three seconds for a pod.
fn size(stage: &Stage) -> (usize, usize) {
    if stage.real { (100, 10) } else { (20, 10) }
}

/// Three zones of so many pods, ready with version 1.
fn settle<'a>(stage: &'a Stage, name: &str, replicas: usize, away: usize) -> Result<Place<'a>> {
    let place = stage.place(name)?;
    place.apply(&zones(3, replicas, "app:1", away))?;
    place.settled(3 * replicas, "app:1", ROLLOUT)?;
    Ok(place)
}

/// Makes sure that every pod went so often, and that one zone went after another, so many times.
fn is_whole(seen: &Seen, replicas: usize, times: usize) -> Result<()> {
    let pods = 3 * replicas;
    ensure!(
        seen.gone.len() == pods && seen.gone.values().all(|count| *count == times),
        "not each of {pods} pods went {times} times: {:?}",
        seen.gone
            .iter()
            .filter(|(_, count)| **count != times)
            .collect::<Vec<_>>()
    );
    let expected: Vec<&str> = ZONES.iter().copied().cycle().take(3 * times).collect();
    ensure!(
        seen.order == expected,
        "zones went in the order {:?}",
        seen.order
    );
    Ok(())
}

/// Guarantees 1, 2 and 4 of the design; the whole budget is used.
pub(crate) fn whole(stage: &Stage) -> Result<()> {
    let (replicas, away) = size(stage);
    let place = stage.place("whole")?;
    let version = |image: &str| bound(&place.name, zones(3, replicas, image, away));
    stage.open(&place, &NODES)?;
    place.apply(&version("app:1"))?;
    place.settled(3 * replicas, "app:1", ROLLOUT)?;
    let trace = Trace::start(&place)?;
    let operator = place.operator(&[])?;
    // Who goes does not come back before all are away who may be.
    stage.close(&place)?;
    place.apply(&version("app:2"))?;
    let rest = 3 * replicas - away;
    place
        .cluster
        .eventually("the whole budget is used", ROLLOUT, |_| {
            Ok((place.ready()?.len() == rest).then_some(()))
        })
        .with_context(|| tail(&operator))?;
    let during = Duration::from_secs(3);
    place
        .cluster
        .throughout("no more than the budget is used", during, |_| {
            Ok(place.ready()?.len() == rest)
        })?;
    stage.open(&place, &NODES)?;
    place
        .settled(3 * replicas, "app:2", ROLLOUT)
        .with_context(|| tail(&operator))?;
    let seen = trace.judge(away)?;
    is_whole(&seen, replicas, 1)?;
    ensure!(
        seen.most == away,
        "never more than {} of {away} were away",
        seen.most
    );
    operator.terminate()
}

/// The same, with an operator that is killed at any moment and started again: nothing else is different.
pub(crate) fn killed(stage: &Stage) -> Result<()> {
    let (replicas, away) = size(stage);
    let place = settle(stage, "killed", replicas, away)?;
    let trace = Trace::start(&place)?;
    let mut version = 2;
    let image = |version: usize| format!("app:{version}");
    place.apply(&zones(3, replicas, &image(version), away))?;
    let mut random = u64::from(std::process::id()) | 1;
    let mut kills = 0;
    while kills < KILLS {
        let mut operator = start(&place)?;
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Some before they are ready, some in the middle of something.
        if (random >> 60) % 4 != 0 {
            operator.wait_until_ready(ROLLOUT)?;
        }
        std::thread::sleep(Duration::from_millis((random >> 33) % 900));
        let is_done = place
            .settled(3 * replicas, &image(version), Duration::ZERO)
            .is_ok();
        operator.kill()?;
        kills += 1;
        if is_done {
            version += 1;
            place.apply(&zones(3, replicas, &image(version), away))?;
        }
    }
    let operator = place.operator(&[])?;
    place
        .settled(3 * replicas, &image(version), ROLLOUT)
        .with_context(|| tail(&operator))?;
    is_whole(&trace.judge(away)?, replicas, version - 1)?;
    operator.terminate()
}

fn start(place: &Place<'_>) -> Result<Operator> {
    Operator::rollout_operator(None, &place.account, &place.arguments()?, None)
}

/// A rollout while 32 connections ask a webhook without a pause takes not much longer than one without.
pub(crate) fn flooded(stage: &Stage) -> Result<()> {
    let (replicas, away) = if stage.real { (20, 5) } else { (3, 3) };
    let place = settle(stage, "flooded", replicas, away)?;
    let operator = place.operator(&[])?;
    let mut times = Vec::new();
    let mut answered = 0;
    for (image, is_flooded) in [("app:2", false), ("app:3", true)] {
        let trace = Trace::start(&place)?;
        let flood = is_flooded.then(|| flood(&place)).transpose()?;
        let start = Instant::now();
        place.apply(&zones(3, replicas, image, away))?;
        // As often as can be: how long it takes is what is asked.
        place
            .cluster
            .eventually("the rollout is over", ROLLOUT, |_| {
                let is_over = place.has_settled(3 * replicas, image)?;
                Ok(is_over.then_some(()))
            })?;
        times.push(start.elapsed());
        if let Some(flood) = flood {
            let figures = flood.end()?;
            ensure!(
                figures.failed == 0,
                "{} requests of the flood failed",
                figures.failed
            );
            answered = figures.latencies.len();
        }
        is_whole(&trace.judge(away)?, replicas, 1)?;
    }
    let [without, with] = times.as_slice() else {
        unreachable!("two rollouts")
    };
    say(&format!(
        "a rollout took {without:.1?}, and {with:.1?} while {answered} webhook requests were answered"
    ));
    ensure!(answered > 1_000, "that was no flood: {answered} requests");
    // The flood's own processor time is the machine's, and so is that of the servers; how much it takes, the bench says. A
    // controller that waits for webhooks would wait for the flood's end.
    ensure!(
        *with < *without * 2 + Duration::from_secs(2),
        "{without:?} became {with:?}"
    );
    operator.terminate()
}

fn flood(place: &Place<'_>) -> Result<Flood> {
    let secret = "rollout-operator-self-signed-certificate";
    let target = Target::new(
        place.cluster,
        &place.name,
        secret,
        "localhost",
        place.port.number(),
    )?;
    let path = "/admission/no-downscale".to_owned();
    Ok(Flood::start(
        target,
        path,
        review::downscale(&place.name),
        "is not allowed because".to_owned(),
        32,
    ))
}

/// The last lines of a log.
pub(crate) fn tail(operator: &Operator) -> String {
    let log = operator.log();
    let lines: Vec<&str> = log.lines().collect();
    let from = lines.len().saturating_sub(12);
    lines.get(from..).unwrap_or_default().join("\n")
}
