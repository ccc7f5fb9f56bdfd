//! The part of the operator: the production runtime with one small capability, alone in its process.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use slipway_e2e::client::connected_by;
use slipway_kernel::address::AllowedHosts;
use slipway_kernel::member::Member;
use slipway_runtime::connect::{Connect, Unconnected};
use slipway_runtime::link::Link;
use slipway_runtime::member::Kubeconfig;
use slipway_runtime::{Channel, Environment, Operator, Settings, View};

use crate::flotilla::{Flotilla, PLACE};
use crate::role;

/// The word by which it is asked what keeps it from going on.
pub(crate) const WHY: &str = "why";
/// Of so many blockers is said what they are.
const SHOWN: usize = 10;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes clients as the program does: from kubeconfigs, read strictly.
struct Members;

impl Connect for Members {
    fn connect(&self, _: &Member, credentials: &[u8]) -> Result<Channel, Unconnected> {
        let config = Kubeconfig::parse(credentials, &AllowedHosts::any());
        let config = config.map_err(|error| Unconnected(error.to_string()))?;
        let link = Link {
            request_timeout: PATIENCE,
            agent: "slipway-bench",
        };
        let made = config.channel(&link);
        made.map_err(|error| Unconnected(error.to_string()))
    }
}

/// Runs until nobody asks any more, and then ends in good order. The first thing that it is told is the kubeconfig of home; after
/// that it says how far it is whenever it is asked.
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
        connected_by(home).await?,
        settings(),
    );
    let operator = operator
        .with(Arc::new(Flotilla))
        .connecting(Arc::new(Members));
    let view = operator.view();
    let asked = async move {
        while let Some(asked) = told.recv().await {
            if role::say(&state(&view, asked == WHY)).is_err() {
                return;
            }
        }
    };
    operator.run(asked).await.context("running the operator")
}

/// As they are unless somebody says otherwise, in a namespace that every cluster has: a Lease cannot be where there is none.
fn settings() -> Settings {
    Settings {
        replica: format!("operator-{}", std::process::id()),
        namespace: PLACE.to_owned(),
        ..Settings::default()
    }
}

/// How far it is; with what keeps it from going on, of which there may be a lot.
fn state(view: &View, why: bool) -> Value {
    let facts = view.facts();
    let synced = facts.members.values().filter(|member| member.synced);
    let mut state = json!({
        "known": facts.members.len(),
        "synced": synced.count(),
        "tasks": view.tasks(),
    });
    if why {
        let blockers = view.blockers().into_iter().take(SHOWN);
        let said = blockers.map(|blocker| format!("{}: {}", blocker.reason, blocker.message));
        state[WHY] = said.collect();
        state["metrics"] = view.metrics().into();
    }
    state
}
