//! The part of the operator: the production runtime with one small capability, alone in its process.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig as HomeConfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use slipway_kernel::address::AllowedHosts;
use slipway_kernel::member::Member;
use slipway_runtime::connect::{Connect, Unconnected};
use slipway_runtime::link::Link;
use slipway_runtime::member::Kubeconfig;
use slipway_runtime::{Environment, Operator, Settings, View};

use crate::flotilla::Flotilla;
use crate::role;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes clients as the program does: from kubeconfigs, read strictly.
struct Members;

impl Connect for Members {
    fn connect(&self, _: &Member, credentials: &[u8]) -> Result<Client, Unconnected> {
        let config = Kubeconfig::parse(credentials, &AllowedHosts::any());
        let config = config.map_err(|error| Unconnected(error.to_string()))?;
        let link = Link {
            request_timeout: PATIENCE,
            agent: "slipway-bench",
        };
        let made = config.client(&link);
        made.map_err(|error| Unconnected(error.to_string()))
    }
}

/// Runs until nobody asks any more. The first thing that it is told is the kubeconfig of home; after that it says how far it
/// is whenever it is asked.
pub(crate) fn run() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the operator's runtime")?;
    runtime.block_on(serve())
}

async fn serve() -> Result<()> {
    let mut told = role::told();
    let home = told.recv().await.context("nobody says where home is")?;
    let home = home.as_str().context("home is no text")?;
    let operator = Operator::new(
        Environment::system()?,
        client(home).await?,
        Settings::default(),
    );
    let operator = operator
        .with(Arc::new(Flotilla))
        .connecting(Arc::new(Members));
    let view = operator.view();
    let asked = async {
        while told.recv().await.is_some() {
            role::say(&state(&view))?;
        }
        Ok(())
    };
    tokio::select! {
        ended = operator.run(std::future::pending()) => ended.map_err(|error| anyhow!(error)),
        ended = asked => ended,
    }
}

fn state(view: &View) -> Value {
    let facts = view.facts();
    let synced = facts.members.values().filter(|member| member.synced);
    json!({
        "known": facts.members.len(),
        "synced": synced.count(),
        "tasks": view.tasks(),
    })
}

async fn client(home: &str) -> Result<Client> {
    let config = HomeConfig::from_yaml(home).context("reading the kubeconfig of home")?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(config, &options).await?;
    config.default_retry = false;
    Client::try_from(config).context("making the client of home")
}
