//! Cookies by which clients are kept at a version.
//!
//! A cookie is a function of the Canary and the version, so that nobody has to draw it: the same run has the same one,
//! whoever leads.

use slipway_api::canary::{Canary, CanaryStatus, SessionAffinity};

use super::hash::digest;
use super::primary::stamp;
use crate::engine::Run;
use crate::router::Affinity;
use crate::spec::interval;

/// How clients are kept now, if they are to be.
pub fn affinity(canary: &Canary, run: &Run) -> Option<Affinity> {
    let analysis = canary.spec.analysis()?;
    let rules = analysis.session_affinity.clone()?;
    let status = canary.status.clone().unwrap_or_default();
    let kept = cookies(canary, &rules, &status, run);
    let seconds = interval(analysis.interval.as_deref()).as_secs();
    Some(Affinity {
        cookie: kept.session,
        previous: kept.previous,
        primary: kept.primary.map(|cookie| (cookie, seconds)),
        rules,
    })
}

/// Writes the cookies of a run into the status that carries it.
pub fn record(canary: &Canary, run: &Run, status: &mut CanaryStatus) {
    let analysis = canary.spec.analysis();
    let Some(rules) = analysis.and_then(|analysis| analysis.session_affinity) else {
        return;
    };
    let kept = cookies(canary, &rules, status, run);
    status.session_affinity_cookie = kept.session;
    status.previous_session_affinity_cookie = kept.previous;
    status.primary_session_affinity_cookie = kept.primary;
}

/// The cookies of a status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cookies {
    /// Of those who have seen the new version.
    pub session: Option<String>,
    /// Of the run before.
    pub previous: Option<String>,
    /// Of those who have seen the serving version.
    pub primary: Option<String>,
}

/// The cookies that a run has: while the new version has traffic there is one, and afterwards clients are to forget it.
pub fn cookies(
    canary: &Canary,
    rules: &SessionAffinity,
    before: &CanaryStatus,
    run: &Run,
) -> Cookies {
    if run.weight == 0 {
        let session = before.session_affinity_cookie.clone();
        return Cookies {
            previous: session.or_else(|| before.previous_session_affinity_cookie.clone()),
            ..Cookies::default()
        };
    }
    let value = |side: &str| {
        let uid = canary.metadata.uid.as_deref().unwrap_or_default();
        let version = run.target.as_ref().map(stamp).unwrap_or_default();
        digest(format!("{uid}/{version}/{}/{side}", run.attempt).as_bytes())
    };
    let primary = rules.primary_cookie_name.as_ref();
    let kept = before.session_affinity_cookie.clone();
    let name = &rules.cookie_name;
    let is_named = |cookie: &String| cookie.starts_with(&format!("{name}="));
    Cookies {
        // One that Flagger drew is kept for its run.
        session: kept
            .filter(is_named)
            .or_else(|| Some(format!("{name}={}", value("target")))),
        previous: None,
        primary: primary.map(|name| format!("{name}={}", value("source"))),
    }
}
