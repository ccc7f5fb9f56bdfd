//! What a behaviour leaves behind, and its removal, so that a long run does not fill a real server.
//!
//! Nothing here can fail a behaviour: what cannot be removed stays until the test server is thrown away.

use crate::ask;
use crate::target::{Answer, Call, Target};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

/// The namespace of a behaviour, and what it made outside of it or with finalizers.
pub(crate) struct Leftovers {
    namespace: String,
    /// Path, and whether finalizers hold it.
    objects: Vec<(String, bool)>,
}

impl Leftovers {
    /// Makes the namespace.
    pub(crate) async fn begin(target: &dyn Target, namespace: &str) -> Result<Self, String> {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let call = by_admin(Method::POST, "/api/v1/namespaces", Some(&object));
        let is_refusal = |code| ask::is_too_busy(target, code);
        let answer = ask::asked(&call, is_refusal, |call| target.send(call)).await?;
        // Nobody else has this name: where it is taken, a busy server made it and could not say so.
        let is_made = answer.code == 201 || (target.is_busy() && answer.code == 409);
        if !is_made {
            return Err(format!(
                "the namespace cannot be made: {}",
                String::from_utf8_lossy(&answer.body)
            ));
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            objects: Vec::new(),
        })
    }

    /// Notes what the end of the namespace would not remove.
    pub(crate) fn note(&mut self, call: &Call, answer: &Answer, body: &Value) {
        let namespaced = call.path.contains("/namespaces/");
        let finalizers = body.pointer("/metadata/finalizers").is_some();
        let name = body.pointer("/metadata/name").and_then(Value::as_str);
        let path = call.path.split('?').next().unwrap_or_default();
        let dry = call.path.contains("dryRun")
            || body.get("kind").and_then(Value::as_str) == Some("Status");
        let made = answer.code == 201 || (finalizers && answer.code == 200);
        let Some(name) = name.filter(|_| made && !dry && (finalizers || !namespaced)) else {
            return;
        };
        let path = if call.method == Method::POST {
            format!("{path}/{name}")
        } else {
            path.to_owned()
        };
        if !self.objects.iter().any(|(known, _)| *known == path) {
            self.objects.push((path, finalizers));
        }
    }

    /// Removes everything.
    pub(crate) async fn end(self, target: &dyn Target) {
        for (path, finalizers) in self.objects.iter().rev() {
            let _ = admin(target, Method::DELETE, path, None).await;
            if *finalizers {
                let patch = json!({"metadata": {"finalizers": null}});
                let _ = admin(target, Method::PATCH, path, Some(&patch)).await;
            }
        }
        // No kubelet ends the pods that are bound to a node.
        let namespace = format!("/api/v1/namespaces/{}", self.namespace);
        let _ = admin(
            target,
            Method::DELETE,
            &format!("{namespace}/pods?gracePeriodSeconds=0"),
            None,
        )
        .await;
        let _ = admin(target, Method::DELETE, &namespace, None).await;
    }
}

async fn admin(
    target: &dyn Target,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Answer, String> {
    target.send(by_admin(method, path, body)).await
}

fn by_admin(method: Method, path: &str, body: Option<&Value>) -> Call {
    let content_type = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    Call {
        method,
        path: path.to_owned(),
        headers: vec![
            ("content-type".to_owned(), content_type.to_owned()),
            ("user-agent".to_owned(), "conformance/1.0".to_owned()),
        ],
        body: body
            .map(|body| Bytes::from(body.to_string()))
            .unwrap_or_default(),
        user: "admin".to_owned(),
        token: None,
    }
}
