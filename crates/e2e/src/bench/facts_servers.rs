//! The part of the others: home on an embedded server, and somebody who is asked and notes how late that is.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::net::TcpListener;

use crate::listener::{Listener, client};
use crate::role;
use crate::watch::{LABEL, PLACE};

/// How late each question was, in milliseconds.
type Late = Arc<Mutex<Vec<f64>>>;

/// Serves until nobody asks any more. Says where home is and who is asked, and after that, whenever it is told something, how
/// late questions were since the last time.
pub(crate) fn run(count: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the servers' runtime")?;
    runtime.block_on(serve(count))
}

async fn serve(count: usize) -> Result<()> {
    let mut told = role::told();
    let listener = Listener::open()?;
    let home = listener.home()?;
    let maps: Api<ConfigMap> = Api::namespaced(client(&home, PLACE), PLACE);
    for number in 0..count {
        let map =
            json!({"metadata": {"name": format!("key-{number:05}"), "labels": {LABEL: "yes"}}});
        let map = serde_json::from_value(map)?;
        maps.create(&PostParams::default(), &map).await?;
    }
    let late = Late::default();
    let world = world(late.clone()).await?;
    role::say(&json!({"home": listener.kubeconfig(&home), "world": world}))?;
    while told.recv().await.is_some() {
        let noted = std::mem::take(&mut *late.lock().unwrap_or_else(PoisonError::into_inner));
        role::say(&json!(noted))?;
    }
    Ok(())
}

/// Somebody who answers at once. Gives the address.
async fn world(late: Late) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let late = late.clone();
            let service = service_fn(move |request| answer(request, late.clone()));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(format!("http://{address}/"))
}

async fn answer(
    request: Request<Incoming>,
    late: Late,
) -> Result<Response<Full<Bytes>>, Infallible> {
    note(&request, &late);
    let is_query = request.uri().path() == "/api/v1/query";
    let _ = request.into_body().collect().await;
    let body = if is_query {
        r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[0,"0.01"]}]}}"#
    } else {
        "go on"
    };
    Ok(Response::new(Full::new(Bytes::from_static(
        body.as_bytes(),
    ))))
}

/// When a question was due is the last part of its name.
#[allow(
    clippy::disallowed_methods,
    reason = "a bench looks at the clock of the system"
)]
fn note(request: &Request<Incoming>, late: &Late) {
    let name = request.headers().get("idempotency-key");
    let due = name.and_then(|name| {
        name.to_str()
            .ok()?
            .rsplit('/')
            .next()?
            .parse::<Timestamp>()
            .ok()
    });
    let Some(due) = due else {
        return;
    };
    let by = Timestamp::now().duration_since(due).as_secs_f64() * 1e3;
    late.lock().unwrap_or_else(PoisonError::into_inner).push(by);
}
