//! The embedded server, called without a socket.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use slipway_apiserver::authenticate::User;
use slipway_apiserver::cluster::Config;
use slipway_apiserver::environment::InProcess;
use slipway_apiserver::server::InProcessService;
use slipway_e2e::record::{Content, Pair};
use tower::ServiceExt as _;

use crate::planted::Flaw;
use crate::start::AGENT;

const TOKEN: &str = "admin-token";

/// A cluster without controllers, and its administrator; it may be wrong on purpose.
pub(crate) struct Embedded {
    service: InProcessService,
    flaw: Option<Flaw>,
}

impl Embedded {
    pub(crate) fn start(flaw: Option<Flaw>) -> Self {
        let mut admin = User::new("admin", &["system:masters"]);
        "admin".clone_into(&mut admin.uid);
        let cluster = Config::seeded("replay", 1, Arc::new(InProcess::default()))
            .with_token(TOKEN, admin)
            .build();
        Self {
            service: InProcessService::new(cluster, None),
            flaw,
        }
    }

    /// Sends a recorded request with another path and body; gives code and answer.
    pub(crate) async fn ask(
        &self,
        pair: &Pair,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(u16, Content)> {
        let flaw = self.flaw_for(pair);
        let path = &flaw.map_or_else(|| path.to_owned(), |flaw| flaw.path(path));
        let response = self
            .service
            .clone()
            .oneshot(request(pair, path, body)?)
            .await
            .map_err(|error| anyhow!("{} {path}: {error}", pair.method))?;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| anyhow!("{} {path}: {error}", pair.method))?;
        let answer = match pair.method.as_str() {
            // What HTTP does with the body of such an answer.
            "HEAD" => Content::Empty,
            _ => Content::read(&body.to_bytes()),
        };
        let answer = match flaw {
            Some(flaw) => flaw.answer(&pair.method, answer),
            None => answer,
        };
        Ok((code, answer))
    }

    /// Sends a recorded watch with another path; what it shows goes to `line`, by lines.
    pub(crate) async fn watch(
        &self,
        pair: &Pair,
        path: &str,
        mut line: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<u16> {
        let flaw = self.flaw_for(pair);
        let path = &flaw.map_or_else(|| path.to_owned(), |flaw| flaw.path(path));
        let response = self
            .service
            .clone()
            .oneshot(request(pair, path, Vec::new())?)
            .await
            .map_err(|error| anyhow!("{} {path}: {error}", pair.method))?;
        let code = response.status().as_u16();
        let mut body = response.into_body();
        tokio::spawn(async move {
            let mut rest: Vec<u8> = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    line(&rest.drain(..=end).collect::<Vec<u8>>());
                }
            }
        });
        Ok(code)
    }

    /// What is wrong with the answer to a request; what the replay asks for itself is answered soundly.
    fn flaw_for(&self, pair: &Pair) -> Option<Flaw> {
        self.flaw.filter(|_| pair.program() != AGENT)
    }
}

fn request(pair: &Pair, path: &str, body: Vec<u8>) -> Result<Request<Full<Bytes>>> {
    let mut request = Request::builder()
        .method(pair.method.as_str())
        .uri(path)
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("user-agent", &pair.agent);
    for (name, value) in [("accept", &pair.accept), ("content-type", &pair.media)] {
        if !value.is_empty() {
            request = request.header(name, value);
        }
    }
    request
        .body(Full::new(Bytes::from(body)))
        .with_context(|| format!("asking {} {path} again", pair.method))
}
