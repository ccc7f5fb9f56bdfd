//! The way from the API server to the webhooks of the replicas, in the process.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde_json::Value;
use slipway_apiserver::environment::{Call, CallError, Peer};
use slipway_runtime::webhook::Admissions;

use super::process::Crew;
use crate::history::Review;
use crate::replica::{Alive, End, Replica};

/// Answers calls to webhooks: by any replica that lives, in turns. One that stands still does not answer.
pub(super) fn door(crew: &Arc<Crew>) -> Peer {
    // The server outlives nobody by this: the crew has the server.
    let crew = Arc::downgrade(crew);
    Arc::new(move |call: Call| {
        let crew: Weak<Crew> = crew.clone();
        Box::pin(async move {
            let chosen = crew.upgrade().and_then(Crew::doorkeeper);
            let refused = || CallError::Failed("connect: connection refused".to_owned());
            let (replica, admissions, crew) = chosen.ok_or_else(refused)?;
            answer(&replica, &admissions, &crew, call).await
        })
    })
}

async fn answer(
    replica: &Replica,
    admissions: &Admissions,
    crew: &Crew,
    call: Call,
) -> Result<(u16, Bytes), CallError> {
    let path = call.url.splitn(4, '/').nth(3).unwrap_or_default();
    let path = format!("/{}", path.split('?').next().unwrap_or_default());
    let asked: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let (at, version) = (crew.clock.now(), crew.recorder.version());
    let number = crew.recorder.asked(Review {
        replica: replica.name().to_owned(),
        path,
        patience: call.timeout,
        at,
        ended: at,
        asked: asked.get("request").cloned().unwrap_or_default(),
        said: None,
        versions: (version, version),
    });
    let failed = |error: String| CallError::Failed(error);
    let request = http::Request::post(&call.url)
        .header(CONTENT_TYPE, "application/json")
        .body(call.body)
        .map_err(|error| failed(error.to_string()))?;
    match Alive::new(replica, admissions.answer(request)).await {
        End::Crashed => Err(failed("EOF".to_owned())),
        End::Done(response) => {
            let said: Value = serde_json::from_slice(response.body()).unwrap_or_default();
            let said = said.get("response").cloned().unwrap_or_default();
            crew.recorder.said(number, said);
            Ok((response.status().as_u16(), response.into_body()))
        }
    }
}
