//! Tells a missing right from all else that the API answers with 403.
//!
//! A quota that is used up, a policy, or a namespace that is going: they have the same code and the same reason. What
//! follows from a missing right (one replica is assumed, a guard is left out) must not follow from those, and must not
//! hang on the words of a message. So the API is asked, by the review of one's own access that every user who is known to
//! it may ask for. While that is not answered, no right counts as missing; where it may not be asked, a kind that can be
//! done without is done without after a minute.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use slipway_api::purpose::runtime::RIGHTS;
use tokio::time::Instant;

use crate::channel::Carry;
use crate::request::{ApiRequest, Outcome, Reason};

/// For how long an answer counts.
const FRESH: Duration = Duration::from_secs(10);
/// How many answers are remembered.
const MOST: usize = 1_024;

/// Something that one may have a right to.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Access {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

impl Access {
    /// What a request to this path of the API asks for; none if it is no path of a resource.
    fn of(method: &Method, uri: &str) -> Option<Self> {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let mut parts = path.trim_matches('/').split('/');
        let (group, version) = match parts.next()? {
            "api" => ("", parts.next()?),
            "apis" => (parts.next()?, parts.next()?),
            _ => return None,
        };
        let rest: Vec<&str> = parts.collect();
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let (resource, rest) = rest.split_first()?;
        let (name, subresource) = match rest.split_first() {
            Some((name, rest)) => (*name, rest.join("/")),
            None => ("", String::new()),
        };
        let verb = match (method.as_str(), name.is_empty()) {
            ("GET", true) if query.contains("watch=true") => "watch",
            ("GET", true) => "list",
            ("GET", false) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "deletecollection",
            ("DELETE", false) => "delete",
            _ => return None,
        };
        Some(Self {
            verb,
            group: group.to_owned(),
            version: version.to_owned(),
            resource: (*resource).to_owned(),
            subresource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    fn review(&self) -> ApiRequest {
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": self.verb,
                "group": self.group,
                "version": self.version,
                "resource": self.resource,
                "subresource": self.subresource,
                "namespace": self.namespace,
                "name": self.name,
            }},
        });
        ApiRequest::review(body).traced(format!("purpose={RIGHTS}"))
    }
}

/// For how long the API may refuse to say, before a kind that can be done without is.
const UNTOLD: Duration = Duration::from_mins(1);

/// What the API says about a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Missing,
    Granted,
    /// This client may not ask.
    Refused,
    /// It did not answer, or could not decide.
    Unknown,
}

/// The rights of one client, as far as they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    known: Mutex<BTreeMap<Access, (Instant, bool)>>,
    /// Since when the API refuses to say.
    untold: Mutex<BTreeMap<Access, Instant>>,
}

impl Rights {
    /// What became of a request, with a missing right told from other refusals.
    pub(crate) async fn tell_apart(
        &self,
        client: &impl Carry,
        wanted: &ApiRequest,
        outcome: Outcome,
        timeout: Duration,
    ) -> Outcome {
        match outcome {
            Outcome::Refused(mut refused) if refused.reason == Reason::Forbidden => {
                // Who applies an object that is not there creates it.
                let also = wanted.is_apply().then_some(Method::POST);
                let asked = [Some(wanted.method.clone()), also];
                for method in asked.iter().flatten() {
                    if self.is_missing(client, method, &wanted.uri, timeout).await {
                        refused.reason = Reason::NoRight;
                        break;
                    }
                }
                Outcome::Refused(refused)
            }
            outcome => outcome,
        }
    }

    /// Whether the API says that this client may not make such a request.
    pub(crate) async fn is_missing(
        &self,
        client: &impl Carry,
        method: &Method,
        uri: &str,
        timeout: Duration,
    ) -> bool {
        let Some(access) = Access::of(method, uri) else {
            return false;
        };
        self.ask(client, access, timeout).await == Word::Missing
    }

    /// The same of a kind that can be done without, or of an object. Where this client may not even ask, it counts as missing after a while: the
    /// operator would wait for ever.
    pub(crate) async fn is_hidden_for_long(
        &self,
        client: &impl Carry,
        (path, timeout): (&str, Duration),
    ) -> bool {
        let Some(access) = Access::of(&Method::GET, path) else {
            return false;
        };
        let word = self.ask(client, access.clone(), timeout).await;
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        match word {
            Word::Missing | Word::Granted => {
                untold.remove(&access);
                word == Word::Missing
            }
            Word::Refused => {
                let since = untold.entry(access).or_insert_with(Instant::now);
                since.elapsed() >= UNTOLD
            }
            Word::Unknown => false,
        }
    }

    async fn ask(&self, client: &impl Carry, access: Access, timeout: Duration) -> Word {
        let word = |is_missing: bool| {
            if is_missing {
                Word::Missing
            } else {
                Word::Granted
            }
        };
        if let Some(known) = self.known(&access) {
            return word(known);
        }
        let said = match access.review().send(client, timeout).await {
            Outcome::Done(review) => read(&review),
            Outcome::Refused(refused) if refused.is_forbidden() => return Word::Refused,
            _ => None,
        };
        let Some(is_missing) = said else {
            return Word::Unknown;
        };
        self.remember(access, is_missing);
        word(is_missing)
    }

    fn known(&self, access: &Access) -> Option<bool> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, is_missing) = known.get(access)?;
        (at.elapsed() < FRESH).then_some(*is_missing)
    }

    fn remember(&self, access: Access, is_missing: bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (at, _)| at.elapsed() < FRESH);
        }
        if known.len() < MOST {
            known.insert(access, (Instant::now(), is_missing));
        }
    }
}

/// Whether a review says that a right is missing; none if whoever decides could not.
fn read(review: &Value) -> Option<bool> {
    let status = review.get("status")?;
    let problem = status.get("evaluationError").and_then(Value::as_str);
    match (status.get("allowed")?.as_bool()?, problem.unwrap_or("")) {
        (true, _) => Some(false),
        (false, "") => Some(true),
        (false, _) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn access(method: &Method, uri: &str) -> String {
        let Some(a) = Access::of(method, uri) else {
            return "none".to_owned();
        };
        let (group, of) = (&a.group, &a.resource);
        let (part, place, name) = (&a.subresource, &a.namespace, &a.name);
        format!("{} {group}|{of}|{part}|{place}|{name}", a.verb)
    }

    #[test]
    fn what_a_request_asks_for_is_read_from_its_path() {
        let maps = "/api/v1/namespaces/mimir/configmaps";
        let one = format!("{maps}/a?fieldManager=x");
        assert_eq!(access(&Method::POST, maps), "create |configmaps||mimir|");
        assert_eq!(access(&Method::GET, &one), "get |configmaps||mimir|a");
        assert_eq!(access(&Method::PUT, &one), "update |configmaps||mimir|a");
        assert_eq!(access(&Method::GET, maps), "list |configmaps||mimir|");
        let watch = format!("{maps}?watch=true");
        assert_eq!(access(&Method::GET, &watch), "watch |configmaps||mimir|");
        assert_eq!(
            access(
                &Method::PATCH,
                "/apis/apps/v1/namespaces/m/statefulsets/z/status"
            ),
            "patch apps|statefulsets|status|m|z"
        );
        assert_eq!(
            access(&Method::GET, "/api/v1/namespaces/mimir"),
            "get |namespaces|||mimir"
        );
        assert_eq!(
            access(&Method::DELETE, "/api/v1/nodes/n"),
            "delete |nodes|||n"
        );
        assert_eq!(access(&Method::GET, "/version"), "none");
    }

    #[test]
    fn a_review_that_could_not_be_decided_says_nothing() {
        let said = |status: Value| read(&json!({"status": status}));
        assert_eq!(said(json!({"allowed": true})), Some(false));
        assert_eq!(said(json!({"allowed": false})), Some(true));
        let torn = json!({"allowed": false, "evaluationError": "webhook timed out"});
        assert_eq!(said(torn), None);
        assert_eq!(said(json!({})), None);
        assert_eq!(read(&json!({})), None);
    }
}
