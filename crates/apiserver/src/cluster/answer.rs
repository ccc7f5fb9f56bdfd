//! From a request to an answer: who asks, for what, may they, and what came of it.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, USER_AGENT};
use http::{Method, Request, Response};

use super::{Cluster, encode};
use crate::authenticate::{self, User};
use crate::authorize::Attributes;
use crate::builtin::names;
use crate::exchange::{Content, Exchange, Reply};
use crate::faults::{Facts, Fault};
use crate::negotiate::{self, Endpoint, Form};
use crate::route::{Query, Route, Target, route};
use crate::shell::Body;
use crate::status::{Outcome, Status};
use crate::trace::{Ending, Record};
use crate::verbs;

/// The connection broke before the answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("connection reset by peer")]
pub struct Lost;

/// Everything about a request that its record and the faults need.
struct Asked {
    route: Route,
    query: Query,
    user: Outcome<User>,
    verb: String,
    resource: String,
    agent: String,
}

pub(super) async fn answer(
    cluster: &Arc<Cluster>,
    request: Request<Bytes>,
) -> Result<Response<Body>, Lost> {
    let before = cluster.store.version();
    let at = cluster.now();
    let asked = Asked::read(cluster, &request, at);
    let faults = cluster.faults.on_request(&asked.facts(cluster.trace.len()));
    let mut record = asked.record(&request, at);
    record.versions = (before, before);
    let mut pending = Pending {
        cluster,
        record: Some(record),
    };

    for fault in &faults {
        match fault {
            Fault::Delay(time) => tokio::time::sleep(*time).await,
            Fault::Unreachable => {
                pending.end(Ending::Unreachable, "");
                return Err(Lost);
            }
            Fault::Refuse(status) => {
                let reply = Reply::status(status);
                pending.end(Ending::Answered(reply.code), &status.reason);
                return Ok(encode(reply, Form::default(), false));
            }
            Fault::Lose | Fault::LoseAs(_) | Fault::Stale(_) => {}
        }
    }
    let stale = faults.iter().find_map(|f| {
        if let Fault::Stale(by) = f {
            Some(*by)
        } else {
            None
        }
    });
    let accept = request
        .headers()
        .get(ACCEPT)
        .and_then(|v| v.to_str().ok())
        .map(str::to_owned);
    let pretty = negotiate::pretty(asked.query.get("pretty"), Some(&asked.agent));
    // A failure is sent in the asked media type too, as far as there is one.
    let form = negotiate::accept(accept.as_deref()).unwrap_or_default();
    let pretty = pretty || form.pretty;
    // A request that was late on its way is carried out at the time of its arrival.
    let now = cluster.now();
    let reply = respond(cluster, request, asked, accept.as_deref(), now, stale).await;
    let reply = reply.unwrap_or_else(|status| Reply::status(&status));
    for fault in faults {
        match fault {
            Fault::Lose => {
                pending.end(Ending::Lost(reply.code), "");
                return Err(Lost);
            }
            Fault::LoseAs(status) => {
                pending.end(Ending::Lost(reply.code), &status.reason);
                return Ok(encode(Reply::status(&status), form, pretty));
            }
            _ => {}
        }
    }
    let reason = match &reply.content {
        Content::Value(value) if reply.code >= 400 => crate::value::text(value, "reason"),
        _ => "",
    };
    pending.end(Ending::Answered(reply.code), reason);
    Ok(encode(reply, form, pretty))
}

/// A request whose end is not known yet. One that is dropped was given up by its client.
struct Pending<'a> {
    cluster: &'a Cluster,
    record: Option<Record>,
}

impl Pending<'_> {
    fn end(&mut self, ending: Ending, reason: &str) {
        if let Some(mut record) = self.record.take() {
            record.versions.1 = self.cluster.store.version();
            record.ending = ending;
            reason.clone_into(&mut record.reason);
            self.cluster.trace.push(record);
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.end(Ending::GivenUp, "");
    }
}

impl Asked {
    fn read(cluster: &Cluster, request: &Request<Bytes>, now: jiff::Timestamp) -> Self {
        let route = route(request.uri().path());
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let (verb, resource) = match &route {
            Route::Resource(target) => {
                let mut resource = format!("{}/{}", target.group, target.resource);
                if !target.subresource.is_empty() {
                    resource.push('/');
                    resource.push_str(&target.subresource);
                }
                (verb(request.method(), target, &query), resource)
            }
            _ => (
                request.method().as_str().to_ascii_lowercase(),
                String::new(),
            ),
        };
        let agent = request
            .headers()
            .get(USER_AGENT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let user = authenticate::authenticate(request.headers(), &cluster.tokens, now);
        Self {
            route,
            query,
            user,
            verb,
            resource,
            agent,
        }
    }

    fn user_name(&self) -> &str {
        self.user.as_ref().map_or("", |user| user.name.as_str())
    }

    fn name(&self) -> &str {
        if let Route::Resource(target) = &self.route {
            &target.name
        } else {
            ""
        }
    }

    fn facts(&self, index: u64) -> Facts<'_> {
        Facts {
            verb: &self.verb,
            resource: &self.resource,
            name: self.name(),
            user: self.user_name(),
            agent: &self.agent,
            index,
        }
    }

    fn record(&self, request: &Request<Bytes>, at: jiff::Timestamp) -> Record {
        let context = request
            .headers()
            .get("x-trace-context")
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        let namespace = if let Route::Resource(target) = &self.route {
            target.namespace.clone()
        } else {
            String::new()
        };
        Record {
            index: 0,
            at,
            user: self.user_name().to_owned(),
            agent: self.agent.clone(),
            context: context.to_owned(),
            verb: self.verb.clone(),
            uri: request.uri().to_string(),
            resource: self.resource.clone(),
            namespace,
            name: self.name().to_owned(),
            ending: Ending::Unreachable,
            reason: String::new(),
            versions: (0, 0),
        }
    }
}

/// The verb, as authorisation and discovery name it.
fn verb(method: &Method, target: &Target, query: &Query) -> String {
    // On a named object the parameter means nothing.
    let asked = query
        .all("watch")
        .next()
        .is_some_and(|v| !matches!(v, "0" | "false"));
    let watch = target.watch || (asked && target.name.is_empty());
    let verb = match (method.as_str(), target.name.is_empty()) {
        ("GET" | "HEAD", _) if watch => "watch",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "deletecollection",
        ("DELETE", false) => "delete",
        (other, _) => return other.to_ascii_lowercase(),
    };
    verb.to_owned()
}

async fn respond(
    cluster: &Arc<Cluster>,
    request: Request<Bytes>,
    asked: Asked,
    accept: Option<&str>,
    now: jiff::Timestamp,
    stale: Option<u64>,
) -> Outcome<Reply> {
    let user = asked.user?;
    let path = request.uri().path().to_owned();
    let policy = cluster.policy();
    let selected = selected_name(&asked.query);
    let attributes = attributes(&user, &asked.route, &asked.verb, &path, selected.as_deref());
    let user = match authenticate::impersonate(request.headers(), &attributes, &policy)? {
        Some(other) => other,
        None => user,
    };
    let attributes = self::attributes(&user, &asked.route, &asked.verb, &path, selected.as_deref());
    let decision = policy.decide_silently(&attributes);
    cluster.audit().note(&attributes, &decision);
    decision.enforce(&attributes)?;
    let Route::Resource(target) = asked.route else {
        return super::nonresource::respond(
            cluster,
            &asked.route,
            request.method(),
            &path,
            request.headers(),
        );
    };
    let registry = cluster.registry();
    let resource = registry
        .find(&target.group, &target.resource)
        .filter(|r| r.version(&target.version).is_some())
        .cloned();
    let Some(resource) = resource else {
        let all: Vec<_> = registry.iter().map(AsRef::as_ref).collect();
        return Ok(super::nonresource::unserved(&all, &target.group));
    };
    if resource.namespaced && target.namespace.is_empty() && !target.watch {
        if !target.name.is_empty() {
            return Err(Box::new(Status::no_such_resource()));
        }
        if request.method() == Method::POST {
            return Err(Box::new(Status::method_not_allowed_here()));
        }
    }
    if !resource.namespaced && !target.namespace.is_empty() {
        return Ok(super::nonresource::unserved(&[&resource], &target.group));
    }
    if let Some(why) = names::path_segment(&target.name, false)
        .first()
        .filter(|_| !target.name.is_empty())
    {
        let message = format!(
            "Name parameter invalid: {}: {why}",
            crate::field::quote(&target.name)
        );
        return Err(Box::new(Status::bad_request(message)));
    }
    let deprecation = resource
        .version(&target.version)
        .and_then(|v| v.deprecation.clone());
    let endpoint = match (resource.custom, asked.verb.as_str()) {
        (true, _) => Endpoint::Custom,
        (false, "list" | "watch") => Endpoint::Collection,
        (false, _) => Endpoint::Object,
    };
    let form = negotiate::accept_at(accept, endpoint)?;
    let (parts, body) = request.into_parts();
    let exchange = Exchange {
        cluster,
        user,
        method: parts.method,
        headers: &parts.headers,
        query: asked.query,
        body,
        target,
        resource,
        form,
        now,
        stale,
    };
    let mut reply = verbs::dispatch(&exchange)
        .await
        .unwrap_or_else(|status| Reply::status(&status));
    if let Some(warning) = deprecation {
        reply.warnings.insert(0, warning);
    }
    Ok(reply)
}

/// The name that a field selector pins a list, watch or deletecollection to.
fn selected_name(query: &Query) -> Option<String> {
    let selector = crate::selector::FieldSelector::parse(query.get("fieldSelector")?).ok()?;
    selector
        .exact("metadata.name")
        .filter(|name| names::path_segment(name, false).is_empty())
        .map(str::to_owned)
}

/// What is asked for, as the authoriser sees it.
fn attributes<'a>(
    user: &'a User,
    route: &'a Route,
    verb: &'a str,
    path: &'a str,
    selected: Option<&'a str>,
) -> Attributes<'a> {
    let Route::Resource(target) = route else {
        return Attributes::path(user, verb, path);
    };
    // A namespace object lives in itself as far as rights are concerned.
    let is_namespace = target.group.is_empty() && target.resource == "namespaces";
    Attributes {
        user,
        verb,
        group: &target.group,
        version: &target.version,
        resource: &target.resource,
        subresource: &target.subresource,
        namespace: if is_namespace {
            &target.name
        } else {
            &target.namespace
        },
        name: match selected {
            Some(name) if target.name.is_empty() && verb != "create" => name,
            _ => &target.name,
        },
        path: None,
    }
}
