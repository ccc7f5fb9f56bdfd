//! One webhook of a configuration, and whether a request is its business.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{AdmissionRequest, Gate, Gvk, Gvr, Operation, Shapes, condition, not_found};
use crate::selector::LabelSelector;
use crate::status::{Outcome, Status};
use crate::value;

const DEFAULT_TIMEOUT_SECONDS: i64 = 10;

/// A webhook as its configuration has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hook<'a> {
    hook: &'a Value,
}

/// A webhook that is to be asked, and in which version it wants the object.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    pub(super) hook: Hook<'a>,
    pub(super) resource: Gvr,
    pub(super) kind: Gvk,
    /// New and old object, converted; none if the request's version is the one.
    converted: Option<(Option<Value>, Option<Value>)>,
}

impl Invocation<'_> {
    /// The new object as this webhook sees it.
    pub(super) fn object<'r>(&'r self, request: &'r AdmissionRequest<'_>) -> Option<&'r Value> {
        match &self.converted {
            Some((object, _)) => object.as_ref(),
            None => request.object.as_ref(),
        }
    }

    /// The old object as this webhook sees it.
    pub(super) fn old_object<'r>(&'r self, request: &'r AdmissionRequest<'_>) -> Option<&'r Value> {
        match &self.converted {
            Some((_, old)) => old.as_ref(),
            None => request.old_object,
        }
    }
}

impl<'a> Hook<'a> {
    /// All webhooks in the order in which they are asked: by configuration name, then as written.
    pub(super) fn all(configurations: &'a [Value]) -> Vec<Self> {
        let mut sorted: Vec<&Value> = configurations.iter().collect();
        sorted.sort_by_key(|c| value::text(c, "metadata.name"));
        sorted
            .into_iter()
            .flat_map(|c| value::items(c, "webhooks"))
            .map(|hook| Self { hook })
            .collect()
    }

    pub(super) fn name(self) -> &'a str {
        value::text(self.hook, "name")
    }

    pub(super) fn ignores_failure(self) -> bool {
        value::text(self.hook, "failurePolicy") == "Ignore"
    }

    pub(super) fn reinvoked(self) -> bool {
        value::text(self.hook, "reinvocationPolicy") == "IfNeeded"
    }

    pub(super) fn supports_dry_run(self) -> bool {
        matches!(
            value::text(self.hook, "sideEffects"),
            "None" | "NoneOnDryRun"
        )
    }

    /// The first review version that both sides know.
    pub(super) fn review_version(self) -> Option<&'a str> {
        value::items(self.hook, "admissionReviewVersions")
            .iter()
            .filter_map(Value::as_str)
            .find(|version| matches!(*version, "v1" | "v1beta1"))
    }

    pub(super) fn timeout(self) -> Duration {
        let seconds = value::integer(self.hook, "timeoutSeconds");
        let seconds = seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS).max(1);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(1))
    }

    pub(super) fn ca_bundle(self) -> Vec<u8> {
        let text = value::text(self.hook, "clientConfig.caBundle");
        STANDARD.decode(text).unwrap_or_default()
    }

    /// Namespace and name of the service it is behind, if it is.
    pub(super) fn service(&self) -> Option<(&str, &str)> {
        let service = value::at(self.hook, "clientConfig.service")?;
        Some((
            value::text(service, "namespace"),
            value::text(service, "name"),
        ))
    }

    /// Where it listens, with the timeout as a parameter; none if neither a service nor a URL is named.
    pub(super) fn url(self) -> Option<String> {
        let text = |field: &str| value::text(self.hook, &format!("clientConfig.{field}"));
        let (base, path) = if value::has(self.hook, "clientConfig.service") {
            let port = value::integer(self.hook, "clientConfig.service.port").unwrap_or(443);
            let (name, namespace) = (text("service.name"), text("service.namespace"));
            let base = format!("https://{name}.{namespace}.svc:{port}");
            (base, text("service.path"))
        } else {
            let url = text("url").split(['?', '#']).next()?;
            let (scheme, rest) = url.split_once("://")?;
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (format!("{scheme}://{host}"), path)
        };
        let timeout = self.timeout().as_secs();
        Some(format!("{base}{}?timeout={timeout}s", clean_path(path)))
    }

    /// Whether the webhook is to be asked about this request.
    pub(super) async fn applies(
        self,
        gate: &Gate<'_>,
        request: &AdmissionRequest<'_>,
    ) -> Outcome<Option<Invocation<'a>>> {
        let Some((resource, kind)) = self.matching_version(gate.shapes, request) else {
            return Ok(None);
        };
        let namespace = self.matches_namespace(gate, request);
        let object = self.matches_object(request);
        if matches!(namespace, Ok(false)) || matches!(object, Ok(false)) {
            return Ok(None);
        }
        // A namespace that is not there is an error only for a webhook that would have been asked.
        namespace?;
        object?;
        let converted = if kind == request.kind {
            None
        } else {
            let mut pair = (None, None);
            if let Some(object) = &request.object {
                pair.0 = Some(gate.shapes.convert(object, &kind).await?);
            }
            if let Some(old) = request.old_object {
                pair.1 = Some(gate.shapes.convert(old, &kind).await?);
            }
            Some(pair)
        };
        let invocation = Invocation {
            hook: self,
            resource,
            kind,
            converted,
        };
        let conditions = value::items(self.hook, "matchConditions");
        let fails_closed = !self.ignores_failure();
        let matches = condition::matches(conditions, fails_closed, &invocation, request)?;
        Ok(matches.then_some(invocation))
    }

    fn matches_namespace(self, gate: &Gate<'_>, request: &AdmissionRequest<'_>) -> Outcome<bool> {
        let about_namespace = request.resource.resource == "namespaces";
        if request.namespace.is_empty() && !about_namespace {
            return Ok(true);
        }
        let selector = self.selector("namespaceSelector")?;
        if selector.is_empty() {
            return Ok(true);
        }
        let writes = request.operation != Operation::Delete && request.subresource.is_empty();
        let holder = if about_namespace && writes {
            request.object.as_ref()
        } else {
            gate.namespace
        };
        match holder {
            Some(holder) => Ok(selector.matches_object(holder)),
            None => Err(not_found(request.namespace)),
        }
    }

    fn matches_object(self, request: &AdmissionRequest<'_>) -> Outcome<bool> {
        let selector = self.selector("objectSelector")?;
        if selector.is_empty() {
            return Ok(true);
        }
        let objects = [request.object.as_ref(), request.old_object];
        let mut objects = objects.iter().flatten();
        Ok(objects.any(|object| selector.matches_object(object)))
    }

    /// A selector of the webhook; an absent one, which defaulting leaves no room for, selects everything.
    fn selector(self, field: &str) -> Outcome<LabelSelector> {
        let Some(object) = value::at(self.hook, field).filter(|o| !o.is_null()) else {
            return Ok(LabelSelector::everything());
        };
        LabelSelector::from_object(Some(object)).map_err(|why| Box::new(Status::internal(why)))
    }

    /// The resource and kind in which a rule matches: the request's own, or else an equivalent one.
    pub(super) fn matching_version(
        self,
        shapes: &dyn Shapes,
        request: &AdmissionRequest<'_>,
    ) -> Option<(Gvr, Gvk)> {
        let rules = value::items(self.hook, "rules");
        let own = &request.resource;
        if rules.iter().any(|rule| rule_matches(rule, own, request)) {
            return Some((own.clone(), request.kind.clone()));
        }
        if value::text(self.hook, "matchPolicy") == "Exact" {
            return None;
        }
        let equivalents = shapes.equivalents(own, request.subresource);
        rules.iter().find_map(|rule| {
            let mut others = equivalents.iter().filter(|(other, _)| other != own);
            others
                .find(|(other, _)| rule_matches(rule, other, request))
                .cloned()
        })
    }
}

fn rule_matches(rule: &Value, resource: &Gvr, request: &AdmissionRequest<'_>) -> bool {
    let listed = |field: &str, wanted: &str| {
        let mut items = value::items(rule, field).iter().filter_map(Value::as_str);
        items.any(|item| item == "*" || item == wanted)
    };
    let namespace_object = resource.group.is_empty() && resource.resource == "namespaces";
    let cluster = namespace_object || request.namespace.is_empty();
    let in_scope = match value::text(rule, "scope") {
        "" | "*" => true,
        "Namespaced" => !cluster,
        "Cluster" => cluster,
        _ => false,
    };
    let mut resources = value::items(rule, "resources")
        .iter()
        .filter_map(Value::as_str);
    in_scope
        && listed("operations", request.operation.as_str())
        && listed("apiGroups", &resource.group)
        && listed("apiVersions", &resource.version)
        && resources.any(|item| {
            let (name, subresource) = item.split_once('/').unwrap_or((item, ""));
            (name == "*" || name == resource.resource)
                && (subresource == "*" || subresource == request.subresource)
        })
}

/// A path without empty, `.` and `..` steps and without a trailing slash.
fn clean_path(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn url(config: &Value) -> String {
        Hook {
            hook: &json!({"clientConfig": config, "timeoutSeconds": 2}),
        }
        .url()
        .unwrap()
    }

    #[test]
    fn urls_as_the_real_server_calls_them() {
        let service = json!({"service": {"name": "svc", "namespace": "x"}});
        assert_eq!(url(&service), "https://svc.x.svc:443/?timeout=2s");
        let service =
            json!({"service": {"name": "svc", "namespace": "x", "path": "/p", "port": 8443}});
        assert_eq!(url(&service), "https://svc.x.svc:8443/p?timeout=2s");
        for (given, called) in [
            ("https://h:1", "https://h:1/"),
            ("https://h:1/a/b/", "https://h:1/a/b"),
            ("https://h/a//b/../c", "https://h/a/c"),
        ] {
            let called = format!("{called}?timeout=2s");
            assert_eq!(url(&json!({"url": given})), called);
        }
    }
}
