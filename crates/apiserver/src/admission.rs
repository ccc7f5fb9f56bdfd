//! Admission webhooks: which are asked, what they are sent, and what their answers mean.
//!
//! Promises the order, the matching, the reviews and the refusals of kube-apiserver. Outgoing calls go through
//! [`Dial`], so that nothing here knows of sockets. Not here: admission policies written in CEL, audit annotations,
//! and the `authorizer` variable of match conditions.

mod call;
mod condition;
mod hook;
mod patch;
mod review;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::authenticate::User;
use crate::environment::{Dial, Entropy};
use crate::status::{Outcome, Status};

use call::{Failure, ask};
use hook::{Hook, Invocation};

/// Group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gvk {
    /// Empty for the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `Pod`.
    pub kind: String,
}

/// Group, version and resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gvr {
    /// Empty for the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `pods`.
    pub resource: String,
}

impl Gvk {
    /// From its parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }
}

impl Gvr {
    /// From its parts.
    pub fn new(group: &str, version: &str, resource: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
        }
    }
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object, or a subresource such as `eviction`.
    Create,
    /// A change, by whatever verb.
    Update,
    /// A delete, also of each object of a collection.
    Delete,
}

impl Operation {
    /// As rules and reviews spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A write on its way to the store.
#[derive(Debug, Clone)]
pub struct AdmissionRequest<'a> {
    /// What is being done.
    pub operation: Operation,
    /// The kind of `object` and `old_object`: for `/scale` it is `autoscaling/v1` `Scale`, for `/eviction`
    /// `policy/v1` `Eviction`.
    pub kind: Gvk,
    /// The resource of the path.
    pub resource: Gvr,
    /// The subresource of the path, or empty.
    pub subresource: &'a str,
    /// The namespace; for `namespaces` the object's own name, as in the real server.
    pub namespace: &'a str,
    /// The name of the path or, on create, of the object with its generated name; empty for a collection.
    pub name: &'a str,
    /// The new object in the request's version; none for deletes.
    pub object: Option<Value>,
    /// The stored object in the request's version; none for creates.
    pub old_object: Option<&'a Value>,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions` with kind and `apiVersion: meta.k8s.io/v1`.
    pub options: Value,
    /// Nothing will be stored.
    pub dry_run: bool,
    /// Who asks.
    pub user: &'a User,
}

/// What admission needs to know of resources: the server's registry answers.
pub trait Shapes: Send + Sync {
    /// The same resource in its other groups and versions, with the kind there.
    fn equivalents(&self, _resource: &Gvr, _subresource: &str) -> Vec<(Gvr, Gvk)> {
        Vec::new()
    }

    /// `object` in the version of `to`.
    fn convert<'a>(&'a self, object: &'a Value, _to: &'a Gvk) -> BoxFuture<'a, Outcome<Value>> {
        let same = object.clone();
        Box::pin(async move { Ok(same) })
    }

    /// Whether there is a `Service` of this name.
    fn has_service(&self, _namespace: &str, _name: &str) -> bool {
        true
    }

    /// An object as a webhook patched it, decoded into its schema and defaulted; the error text is what decoding
    /// says of it.
    fn accept(&self, object: Value, _kind: &Gvk) -> Result<Value, String> {
        Ok(object)
    }
}

/// Knows no other versions and accepts every patched object as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyShape;

impl Shapes for AnyShape {}

/// What the webhooks of one request are asked with.
#[derive(Clone, Copy)]
pub struct Gate<'a> {
    /// Makes the calls.
    pub dial: &'a dyn Dial,
    /// Gives each review its uid.
    pub entropy: &'a dyn Entropy,
    /// Knows the resources.
    pub shapes: &'a dyn Shapes,
    /// The namespace object that the request is in, if it is there.
    pub namespace: Option<&'a Value>,
}

impl std::fmt::Debug for Gate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

/// Whether any webhook of `configurations` has a rule for such a request: it may still not be asked, by what is in the object.
pub fn concerns(
    shapes: &dyn Shapes,
    configurations: &[Value],
    request: &AdmissionRequest<'_>,
) -> bool {
    let mut hooks = Hook::all(configurations).into_iter();
    !exempt(&request.kind) && hooks.any(|hook| hook.matching_version(shapes, request).is_some())
}

/// Asks the mutating webhooks of `configurations` one after the other and changes `request.object` as they say.
/// Warnings are for the client whether the request passes or not.
pub async fn mutate(
    gate: &Gate<'_>,
    configurations: &[Value],
    request: &mut AdmissionRequest<'_>,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    if configurations.is_empty() || exempt(&request.kind) {
        return Ok(());
    }
    let hooks = Hook::all(configurations);
    let mut rounds = Rounds::new(hooks.len());
    for again in [false, true] {
        if again && !rounds.changed {
            break;
        }
        for (index, hook) in hooks.iter().enumerate() {
            let Some(invocation) = hook.applies(gate, request).await? else {
                continue;
            };
            if again && !rounds.is_due(index) {
                continue;
            }
            match mutate_one(gate, &invocation, request, warnings).await {
                Ok(changed) => rounds.note(index, changed, hook.reinvoked()),
                Err(Failure::Call(_)) if hook.ignores_failure() => {
                    rounds.note(index, false, hook.reinvoked());
                }
                Err(failure) => return Err(failure.into_status(hook.name())),
            }
        }
    }
    Ok(())
}

/// Asks all validating webhooks of `configurations` that match, at once; the first refusal in their order counts.
pub async fn validate(
    gate: &Gate<'_>,
    configurations: &[Value],
    request: &AdmissionRequest<'_>,
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    if configurations.is_empty() || exempt(&request.kind) {
        return Ok(());
    }
    let hooks = Hook::all(configurations);
    let mut invocations = Vec::new();
    for hook in &hooks {
        invocations.extend(hook.applies(gate, request).await?);
    }
    let calls = invocations.iter().map(|invocation| async move {
        let mut warnings = Vec::new();
        let outcome = ask(gate, invocation, request, false, &mut warnings).await;
        (outcome, warnings)
    });
    let answers = futures::future::join_all(calls).await;
    let mut refusal = None;
    for (invocation, (outcome, said)) in invocations.iter().zip(answers) {
        warn(warnings, said);
        let hook = &invocation.hook;
        match outcome {
            Ok(_) => {}
            Err(Failure::Call(_)) if hook.ignores_failure() => {}
            Err(failure) => {
                refusal.get_or_insert_with(|| failure.into_status(hook.name()));
            }
        }
    }
    refusal.map_or(Ok(()), Err)
}

/// Asks one webhook and applies its patch. Tells whether the object is another one now.
async fn mutate_one(
    gate: &Gate<'_>,
    invocation: &Invocation<'_>,
    request: &mut AdmissionRequest<'_>,
    warnings: &mut Vec<String>,
) -> Result<bool, Failure> {
    let mut said = Vec::new();
    let answer = ask(gate, invocation, request, true, &mut said).await;
    warn(warnings, said);
    let Some(operations) = answer? else {
        return Ok(false);
    };
    if request.object.is_none() {
        return Err(Failure::internal(format!(
            "admission webhook {} attempted to modify the object, which is not supported for this operation",
            crate::field::quote(invocation.hook.name())
        )));
    }
    let before = invocation.object(request).cloned().unwrap_or(Value::Null);
    let patched = patch::apply(&operations, &before)?;
    let after = gate
        .shapes
        .accept(patched, &invocation.kind)
        .map_err(Failure::internal)?;
    let changed = before != after;
    request.object = Some(if invocation.kind == request.kind {
        after
    } else {
        let back = gate.shapes.convert(&after, &request.kind).await;
        back.map_err(Failure::Refused)?
    });
    Ok(changed)
}

/// Which webhooks are asked a second time because a later one changed the object.
struct Rounds {
    changed: bool,
    invoked: Vec<bool>,
    due: Vec<bool>,
}

impl Rounds {
    fn new(hooks: usize) -> Self {
        Self {
            changed: false,
            invoked: vec![false; hooks],
            due: vec![false; hooks],
        }
    }

    fn is_due(&self, hook: usize) -> bool {
        self.due.get(hook).copied().unwrap_or_default()
    }

    /// A change makes all those due that were asked before it; the one that made it is not among them.
    fn note(&mut self, hook: usize, changed: bool, reinvoked: bool) {
        if changed {
            self.changed = true;
            for (due, invoked) in self.due.iter_mut().zip(&mut self.invoked) {
                *due |= std::mem::take(invoked);
            }
        }
        if let Some(invoked) = self.invoked.get_mut(hook)
            && reinvoked
        {
            *invoked = true;
        }
    }
}

/// Adds warnings as the real server does: no empty ones, none twice.
fn warn(warnings: &mut Vec<String>, said: Vec<String>) {
    for text in said {
        if !text.is_empty() && !warnings.contains(&text) {
            warnings.push(text);
        }
    }
}

/// Webhooks never stand between a person and the configuration of webhooks.
fn exempt(kind: &Gvk) -> bool {
    kind.group == "admissionregistration.k8s.io"
        && matches!(
            kind.kind.as_str(),
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

fn not_found(namespace: &str) -> Box<Status> {
    Box::new(Status::not_found("", "namespaces", namespace))
}

#[cfg(test)]
mod tests;
