//! Asking the admission webhooks about a write.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::scale;
use crate::admission::{self, AdmissionRequest, Gate, Gvk, Gvr, Operation, Shapes};
use crate::exchange::Exchange;
use crate::resource::bucket;
use crate::status::Outcome;
use crate::value;

const GROUP: &str = "admissionregistration.k8s.io";

/// What the webhooks of one exchange need to know of resources.
struct Registered<'a>(&'a Exchange<'a>);

impl Shapes for Registered<'_> {
    fn equivalents(&self, resource: &Gvr, _subresource: &str) -> Vec<(Gvr, Gvk)> {
        let served = &self.0.resource;
        served
            .versions
            .iter()
            .filter(|version| version.name != resource.version)
            .map(|version| {
                let group = &served.names.group;
                (
                    Gvr::new(group, &version.name, &served.names.plural),
                    Gvk::new(group, &version.name, &served.names.kind),
                )
            })
            .collect()
    }

    fn convert<'a>(&'a self, object: &'a Value, to: &'a Gvk) -> BoxFuture<'a, Outcome<Value>> {
        let mut converted = object.clone();
        value::put(
            &mut converted,
            "apiVersion",
            self.0.resource.api_version(&to.version),
        );
        Box::pin(async move { Ok(converted) })
    }

    fn has_service(&self, namespace: &str, name: &str) -> bool {
        self.0
            .cluster
            .store
            .get("/services", namespace, name)
            .is_some()
    }

    fn accept(&self, object: Value, kind: &Gvk) -> Result<Value, String> {
        if kind.kind != self.0.resource.names.kind {
            return Ok(object);
        }
        self.0.shape(object).map(|(object, _)| object)
    }
}

/// Lets the mutating webhooks change an object on its way in.
pub(super) async fn mutate(
    ex: &Exchange<'_>,
    operation: Operation,
    object: Value,
    old: Option<&Value>,
    dry_run: bool,
    warnings: &mut Vec<String>,
) -> Outcome<Value> {
    let hooks = configurations(ex, "mutatingwebhookconfigurations");
    if hooks.is_empty() || !is_scale(ex) && !concerns(ex, &hooks, operation) {
        return Ok(object);
    }
    let view = Viewed::new(ex, Some(&object), old);
    let namespace = namespace(ex);
    let shapes = Registered(ex);
    let mut request = view.request(ex, operation, dry_run);
    admission::mutate(
        &gate(ex, &shapes, namespace.as_ref()),
        &hooks,
        &mut request,
        warnings,
    )
    .await?;
    let changed = request.object.take().unwrap_or(Value::Null);
    Ok(view.put_back(ex, changed, object))
}

/// Asks the validating webhooks. `object` is none for deletes.
pub(super) async fn validate(
    ex: &Exchange<'_>,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Value>,
    dry_run: bool,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    let hooks = configurations(ex, "validatingwebhookconfigurations");
    if !concerns(ex, &hooks, operation) {
        return Ok(());
    }
    let view = Viewed::new(ex, object, old);
    let namespace = namespace(ex);
    let shapes = Registered(ex);
    let request = view.request(ex, operation, dry_run);
    admission::validate(
        &gate(ex, &shapes, namespace.as_ref()),
        &hooks,
        &request,
        warnings,
    )
    .await
}

/// Asks all webhooks about a delete; a mutating one cannot change anything, but it can refuse.
pub(super) async fn delete(
    ex: &Exchange<'_>,
    old: &Value,
    dry_run: bool,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    let hooks = configurations(ex, "mutatingwebhookconfigurations");
    if concerns(ex, &hooks, Operation::Delete) {
        let view = Viewed::new(ex, None, Some(old));
        let namespace = namespace(ex);
        let shapes = Registered(ex);
        let mut request = view.request(ex, Operation::Delete, dry_run);
        admission::mutate(
            &gate(ex, &shapes, namespace.as_ref()),
            &hooks,
            &mut request,
            warnings,
        )
        .await?;
    }
    validate(ex, Operation::Delete, None, Some(old), dry_run, warnings).await
}

/// Asks all webhooks about a subresource that is created, such as an eviction.
pub(super) async fn create_subresource(
    ex: &Exchange<'_>,
    kind: Gvk,
    object: Value,
    dry_run: bool,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    let view = Viewed {
        kind,
        object: Some(object),
        old: None,
        is_scale: false,
    };
    let namespace = namespace(ex);
    let shapes = Registered(ex);
    let gate = gate(ex, &shapes, namespace.as_ref());
    let mut request = view.request(ex, Operation::Create, dry_run);
    admission::mutate(
        &gate,
        &configurations(ex, "mutatingwebhookconfigurations"),
        &mut request,
        warnings,
    )
    .await?;
    admission::validate(
        &gate,
        &configurations(ex, "validatingwebhookconfigurations"),
        &request,
        warnings,
    )
    .await
}

fn configurations(ex: &Exchange<'_>, plural: &str) -> Arc<[Value]> {
    ex.cluster.decoded(&bucket(GROUP, plural))
}

/// Whether any webhook has a rule for this write, whatever is in it. Most writes are no webhook's business, and need not be
/// shown to any.
fn concerns(ex: &Exchange<'_>, hooks: &[Value], operation: Operation) -> bool {
    if hooks.is_empty() {
        return false;
    }
    let view = Viewed::new(ex, None, None);
    let request = view.request(ex, operation, false);
    admission::concerns(&Registered(ex), hooks, &request)
}

fn is_scale(ex: &Exchange<'_>) -> bool {
    ex.resource.scale.is_some() && ex.target.subresource == "scale"
}

fn namespace(ex: &Exchange<'_>) -> Option<Value> {
    let name = if ex.group().is_empty() && ex.plural() == "namespaces" {
        &ex.target.name
    } else {
        &ex.target.namespace
    };
    ex.cluster
        .store
        .get("/namespaces", "", name)
        .map(|stored| stored.decode_as("v1", "Namespace"))
}

fn gate<'a>(
    ex: &'a Exchange<'_>,
    shapes: &'a dyn Shapes,
    namespace: Option<&'a Value>,
) -> Gate<'a> {
    let environment = &ex.cluster.environment;
    Gate {
        dial: &*environment.dial,
        entropy: &*environment.entropy,
        shapes,
        namespace,
    }
}

/// A write as webhooks see it: for `/scale` a `Scale` without the parent's labels.
struct Viewed {
    kind: Gvk,
    object: Option<Value>,
    old: Option<Value>,
    is_scale: bool,
}

impl Viewed {
    fn new(ex: &Exchange<'_>, object: Option<&Value>, old: Option<&Value>) -> Self {
        match ex
            .resource
            .scale
            .as_ref()
            .filter(|_| ex.target.subresource == "scale")
        {
            Some(paths) => Self {
                kind: Gvk::new("autoscaling", "v1", "Scale"),
                object: object.map(|o| scale::view(paths, o)),
                old: old.map(|o| scale::view(paths, o)),
                is_scale: true,
            },
            None => Self {
                kind: Gvk::new(ex.group(), &ex.target.version, ex.kind()),
                object: object.cloned(),
                old: old.cloned(),
                is_scale: false,
            },
        }
    }

    fn request<'a>(
        &'a self,
        ex: &'a Exchange<'_>,
        operation: Operation,
        dry_run: bool,
    ) -> AdmissionRequest<'a> {
        let is_namespace = ex.group().is_empty() && ex.plural() == "namespaces";
        let shown = self.object.as_ref().or(self.old.as_ref());
        let name = match ex.target.name.as_str() {
            "" => shown.map_or("", |o| value::text(o, "metadata.name")),
            name => name,
        };
        let options = match operation {
            Operation::Create => "CreateOptions",
            Operation::Update if ex.method == http::Method::PATCH => "PatchOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
        };
        let mut options = json!({"kind": options, "apiVersion": "meta.k8s.io/v1"});
        if dry_run {
            value::put(&mut options, "dryRun", json!(["All"]));
        }
        if let Some(manager) = ex.query.get("fieldManager") {
            value::put(&mut options, "fieldManager", manager);
        }
        AdmissionRequest {
            operation,
            kind: self.kind.clone(),
            resource: Gvr::new(ex.group(), &ex.target.version, ex.plural()),
            subresource: &ex.target.subresource,
            namespace: if is_namespace {
                name
            } else {
                &ex.target.namespace
            },
            name,
            object: self.object.clone(),
            old_object: self.old.as_ref(),
            options,
            dry_run,
            user: &ex.user,
        }
    }

    /// The whole object after the webhooks changed what they saw of it.
    fn put_back(&self, ex: &Exchange<'_>, changed: Value, mut whole: Value) -> Value {
        if !self.is_scale {
            return changed;
        }
        if let (Some(paths), Some(replicas)) =
            (&ex.resource.scale, value::at(&changed, "spec.replicas"))
        {
            value::put(
                &mut whole,
                paths.spec_replicas.trim_start_matches('.'),
                replicas.clone(),
            );
        }
        whole
    }
}
