//! The part of the operator: the production runtime with one small capability, alone in its process.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use slipway_kernel::address::{Patterns, Rules, Url};
use slipway_kernel::question::OtherNamespaces;
use slipway_runtime::gather::{Gatherer, Http};
use slipway_runtime::outside::{Limits, NoSecrets, Outside, SystemResolver, Terms};
use slipway_runtime::{Environment, Operator, Settings};

use crate::role;
use crate::watch::{PLACE, Watch};

/// Runs until nobody asks any more. The first thing that it is told is the kubeconfig of home, and who is asked; after that it
/// says how many answers it keeps, and how its calls have ended, whenever it is asked.
pub(crate) fn run() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the operator's runtime")?;
    runtime.block_on(serve())
}

async fn serve() -> Result<()> {
    let mut told = role::told();
    let told_first = told.recv().await.context("nobody says where home is")?;
    let text = |field: &str| told_first.get(field).and_then(Value::as_str);
    let home = text("home").context("home is no text")?;
    let world = Url::parse(text("world").context("nobody is to be asked")?)?;
    // Its Lease is where its keys are: there is no other namespace at home.
    let settings = Settings {
        replica: format!("operator-{}", std::process::id()),
        namespace: PLACE.to_owned(),
        heartbeat: Duration::from_mins(5),
        ..Settings::default()
    };
    let operator = Operator::new(Environment::system()?, client(home).await?, settings);
    let outside = Outside::new(Terms {
        rules: Rules {
            special: Patterns::parse(["127.0.0.0/8"])?,
            ..Rules::default()
        },
        other_namespaces: OtherNamespaces::Refused,
        credentials_over_http: false,
        limits: Limits::default(),
        resolver: Arc::new(SystemResolver),
        secrets: Arc::new(NoSecrets),
        agent: "slipway-bench",
    });
    let gatherer = Gatherer::new(operator.client(), Arc::new(Http::new())).asking(&outside);
    let operator = operator
        .with(Arc::new(Watch { world }))
        .gathering(Arc::new(gatherer));
    let view = operator.view();
    let asked = async {
        while told.recv().await.is_some() {
            let (answered, failed) = outcomes(&view.metrics());
            let said = json!({"kept": view.answers(), "answered": answered, "failed": failed});
            role::say(&said)?;
        }
        Ok(())
    };
    tokio::select! {
        ended = operator.run(std::future::pending()) => ended.map_err(|error| anyhow!(error)),
        ended = asked => ended,
    }
}

/// How many calls were answered, and how many ended otherwise, as the program itself shows it.
fn outcomes(metrics: &str) -> (u64, u64) {
    let calls = metrics
        .lines()
        .filter(|line| line.starts_with("slipway_outside_calls_total{"));
    let (mut answered, mut failed) = (0, 0);
    for line in calls {
        let count = line.rsplit(' ').next().and_then(|count| count.parse().ok());
        let count: u64 = count.unwrap_or(0);
        if line.contains("outcome=\"answered\"") {
            answered += count;
        } else {
            failed += count;
        }
    }
    (answered, failed)
}

async fn client(home: &str) -> Result<Client> {
    let config = Kubeconfig::from_yaml(home).context("reading the kubeconfig of home")?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(config, &options).await?;
    config.default_retry = false;
    Client::try_from(config).context("making the client of home")
}
