//! Pods that answer over HTTP, as the script says: they can be told to prepare for their end, and that they stay.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use slipway_apiserver::environment::Clock;
use slipway_runtime::gather::{Dial, Unreached};

use crate::actors::Script;
use crate::history::{Call, Recorder};

/// How long an answer takes.
const LATENCY: Duration = Duration::from_millis(5);

/// The pods of a cluster. They outlive the operator's replicas, which each have a [`Line`] to them.
pub(super) struct Pods {
    pub(super) script: Script,
    pub(super) start: Timestamp,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) recorder: Recorder,
    /// Since when which pod is prepared, by uid.
    pub(super) prepared: Mutex<BTreeMap<String, i64>>,
}

/// One replica's way to the pods.
pub(super) struct Line {
    pub(super) pods: Arc<Pods>,
    pub(super) replica: String,
}

impl Dial for Line {
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Unreached>> {
        let (pods, replica) = (self.pods.clone(), self.replica.clone());
        Box::pin(async move {
            tokio::time::sleep(LATENCY).await;
            pods.answer(&request, replica)
        })
    }
}

impl Pods {
    fn answer(
        &self,
        request: &Request<Bytes>,
        replica: String,
    ) -> Result<Response<Bytes>, Unreached> {
        let host = request.uri().host().unwrap_or_default();
        let mut labels = host.split('.');
        let name = labels.next().unwrap_or_default();
        let namespace = labels.nth(1).unwrap_or_default();
        let image = self
            .recorder
            .latest(&("/pods".into(), namespace.into(), name.into()));
        let pod = image.and_then(|i| serde_json::from_value::<Pod>(i.value().clone()).ok());
        let uid = pod.as_ref().and_then(|pod| pod.metadata.uid.clone());
        let now = self.clock.now();
        let runs = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
            phase == Some("Running")
        };
        let code = pod
            .as_ref()
            .filter(runs)
            .map(|pod| self.script.answer(pod, now.duration_since(self.start)));
        self.recorder.called(Call {
            at: now,
            replica,
            method: request.method().to_string(),
            url: request.uri().to_string(),
            pod: (namespace.to_owned(), name.to_owned()),
            uid: uid.clone().unwrap_or_default(),
            code,
        });
        let Some(code) = code else {
            return Err(Unreached::Refused(format!(
                "dial tcp: lookup {host}: no such host"
            )));
        };
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = uid.unwrap_or_default();
        let mut since = 0;
        if code < 300 {
            match request.method().as_str() {
                "POST" => since = *prepared.entry(uid).or_insert(now.as_second()),
                "DELETE" => {
                    prepared.remove(&uid);
                }
                _ => since = prepared.get(&uid).copied().unwrap_or_default(),
            }
        }
        let body = json!({"timestamp": since}).to_string();
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() =
            StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Ok(response)
    }
}
