//! Tells alert providers and webhooks of type `event` what happened.
//!
//! What is to be told is in the status from the write that brought it about until everybody has heard it, or could not be
//! reached for long enough: so it is told at least once, whoever dies. Nothing of a run waits for it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use slipway_api::canary::{
    Alert, Analysis, CanaryStatus, HookType, ObjectReference, Phase, Untold, Webhook,
};
use slipway_api::purpose::canary as purpose;
use slipway_kernel::address::Url;
use slipway_kernel::event::EventType;
use slipway_kernel::fact::{Question, QuestionId};
use slipway_kernel::question::{
    Call, Credential, Header, Method, SecretRef, Target, Trust, Wanted,
};
use slipway_kernel::{Action, Plan};

use super::Look;
use crate::alerts::{self, Service, Told};
use crate::engine::{Level, News, Run};
use crate::questions::{may_pass, named};
use crate::webhooks::{self, About};

/// So much is kept to be told; of more, the oldest is not.
const MOST: usize = 16;
/// How often somebody who could not be reached is told again.
const AGAIN: u32 = 3;
/// How long to pause before that.
const PAUSE: Duration = Duration::from_secs(10);

/// Keeps what is to be told, if anybody wants to know it.
pub(super) fn keep(look: &Look<'_>, run: &Run, news: &[News], status: &mut CanaryStatus) {
    let analysis = look.canary.spec.analysis().unwrap_or_default();
    let told_all = !event_hooks(look, &analysis).is_empty();
    for one in news {
        let level = one.alert.filter(|level| is_alerted(&analysis, *level));
        if !told_all && level.is_none() {
            continue;
        }
        status.untold.push(Untold {
            text: one.text.clone(),
            is_warning: one.is_warning,
            level: level.map(|level| level.as_str().to_owned()),
            phase: run.phase.as_str().to_owned(),
            checksum: webhooks::checksum(run.target.as_ref()),
            at: Time(look.now),
        });
    }
    let over = status.untold.len().saturating_sub(MOST);
    status.untold.drain(..over);
}

fn is_event(hook: &Webhook) -> bool {
    HookType::of(hook.kind.as_deref()) == Some(HookType::Event)
}

/// Webhooks that are told everything: the Canary's own, else the administrator's.
fn event_hooks(look: &Look<'_>, analysis: &Analysis) -> Vec<Webhook> {
    let own = analysis.webhooks.iter().filter(|hook| is_event(hook));
    let own: Vec<Webhook> = own.cloned().collect();
    if !own.is_empty() {
        return own;
    }
    let common = look.settings.event_webhook.iter();
    common
        .map(|url| Webhook {
            kind: Some(HookType::Event.as_str().to_owned()),
            name: "events".to_owned(),
            url: url.clone(),
            ..Webhook::default()
        })
        .collect()
}

fn is_alerted(analysis: &Analysis, level: Level) -> bool {
    let mut alerts = analysis.alerts.iter();
    alerts.any(|alert| alerts::is_wanted(alert, level))
}

/// The questions by which something was told that the status still has.
pub(super) fn kept(look: &Look<'_>, status: &CanaryStatus) -> Vec<QuestionId> {
    let moments: BTreeSet<Timestamp> = status.untold.iter().map(|one| one.at.0).collect();
    let asked = look.world.answers.keys();
    let told = asked.filter(|id| id.purpose == purpose::TELL && moments.contains(&id.due));
    told.cloned().collect()
}

/// Tells what has not been told, and takes out of the status what everybody has heard.
pub(super) fn tell(look: &Look<'_>, status: &mut CanaryStatus, plan: &mut Plan) {
    let analysis = look.canary.spec.analysis().unwrap_or_default();
    let mut places = BTreeSet::new();
    for (place, untold) in status.untold.iter().enumerate() {
        let mut is_told = true;
        for (sink, call) in calls(look, &analysis, untold).into_iter().enumerate() {
            is_told &= deliver(look, untold, sink, &call, plan);
        }
        if is_told {
            places.insert(place);
        }
    }
    let mut place = 0;
    status.untold.retain(|_| {
        place += 1;
        !places.contains(&(place - 1))
    });
}

/// Tells somebody; gives whether that is over.
fn deliver(look: &Look<'_>, untold: &Untold, sink: usize, call: &Call, plan: &mut Plan) -> bool {
    let uid = look.canary.metadata.uid.as_deref().unwrap_or_default();
    for retry in 0..=AGAIN {
        let id: QuestionId = named(uid, purpose::TELL, (sink, retry), call, untold.at.0);
        let Some((_, answer)) = look.world.answers.get(&id) else {
            let mut question = Question::outside(id, call.clone());
            if retry > 0 {
                question.pause = PAUSE;
            }
            plan.act(Action::Ask(question));
            return false;
        };
        if !may_pass(answer) {
            return true;
        }
    }
    true
}

/// All calls by which something is told. Whom it cannot be told to is left out.
fn calls(look: &Look<'_>, analysis: &Analysis, untold: &Untold) -> Vec<Call> {
    let hooks = event_hooks(look, analysis);
    let events = hooks.iter().filter_map(|hook| event(look, hook, untold));
    let mut all: Vec<Call> = events.collect();
    if let Some(level) = untold.level.as_deref().and_then(Level::of) {
        let alerts = analysis.alerts.iter();
        let wanted = alerts.filter(|alert| alerts::is_wanted(alert, level));
        all.extend(wanted.filter_map(|alert| message(look, alert, untold, level)));
    }
    all
}

/// A webhook of type `event`.
fn event(look: &Look<'_>, hook: &Webhook, untold: &Untold) -> Option<Call> {
    let metadata = &look.canary.metadata;
    let about = About {
        name: metadata.name.as_deref().unwrap_or_default(),
        namespace: metadata.namespace.as_deref().unwrap_or_default(),
        phase: Phase::of(Some(&untold.phase)),
        revision: None,
    };
    let severity = if untold.is_warning {
        EventType::Warning
    } else {
        EventType::Normal
    };
    let told = (severity, untold.text.as_str());
    let mut body = webhooks::event_body(&about, hook, told, untold.at.0);
    if let Some(fields) = body.as_object_mut() {
        // That of then: there may be another version by now.
        fields.insert("checksum".to_owned(), json!(untold.checksum));
    }
    let mut call = Call::post(Url::parse(&hook.url).ok()?, body.to_string());
    call.timeout = webhooks::timeout(hook);
    call.wanted = Wanted::Status;
    call.signed_with = webhooks::signed_with(hook, look.namespace());
    Some(call)
}

/// An alert.
fn message(look: &Look<'_>, alert: &Alert, untold: &Untold, level: Level) -> Option<Call> {
    let own = look.namespace();
    let ObjectReference { name, namespace } = &alert.provider_ref;
    let namespace = namespace.as_deref().unwrap_or(own).to_owned();
    let place = (namespace.clone(), name.clone());
    let provider = look.world.providers.get(&place)?.0.as_ref().ok()?;
    let spec = &provider.spec;
    let service = Service::of(&spec.kind).ok()?;
    let target = &look.canary.spec.target_ref;
    let fields = [
        ("Target", format!("{}/{}.{own}", target.kind, target.name)),
        ("Phase", untold.phase.clone()),
    ];
    let told = Told {
        name: look.canary.metadata.name.as_deref().unwrap_or_default(),
        namespace: own,
        text: &untold.text,
        level,
        fields: &fields,
    };
    let body = alerts::body(service, &spec.channel, &spec.username, &told).to_string();
    let mut credentials = Vec::new();
    let to = match &spec.secret_ref {
        None => Target::Url(Url::parse(&service.address(&spec.address)).ok()?),
        Some(secret) => {
            let value = |key: &str| SecretRef {
                namespace: namespace.clone(),
                name: secret.name.clone(),
                key: key.to_owned(),
            };
            let place = (namespace.clone(), secret.name.clone());
            let keys = look.world.secrets.get(&place);
            if keys.is_some_and(|keys| keys.contains("token")) {
                credentials.push(Credential::Bearer(value("token")));
            }
            match service.path() {
                "" => Target::Secret(value("address")),
                path => Target::SecretWith(value("address"), path),
            }
        }
    };
    Some(Call {
        method: Method::Post,
        target: to,
        headers: vec![Header::new("content-type", "application/json").ok()?],
        body,
        credentials,
        signed_with: None,
        trust: Trust::System,
        redirects: 0,
        timeout: Call::TIMEOUT,
        largest: Call::LARGEST,
        wanted: Wanted::Status,
    })
}
