//! Stands for the kubelet of the operator's pods, whose image nobody can pull here: the program runs beside the cluster,
//! with the arguments of its Deployment and the token of its service account.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::operator::Operator;
use slipway_e2e::ports::Port;

use crate::reader::SOON;

/// Arguments with a value that are this machine's to choose.
const OURS: &[&str] = &["--port", "--webhooks-port"];

/// What the manifests put on everything.
const OF_SLIPWAY: &str = "app.kubernetes.io/part-of=slipway";

/// One running operator, and whose it is.
pub(crate) struct Kubelet<'a> {
    cluster: &'a Cluster,
    running: Option<(String, Operator)>,
    port: Port,
}

impl<'a> Kubelet<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> Result<Self> {
        Ok(Self {
            cluster,
            running: None,
            port: Port::draw()?,
        })
    }

    /// Starts what is to run, ends what is not, and waits until it is ready and asked by the API server.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let list = self
            .cluster
            .json(&["get", "deployments", "-A", "-l", OF_SLIPWAY])?;
        let wanted = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|deployment| deployment["spec"]["replicas"].as_i64() > Some(0));
        let id = wanted.map(|deployment| {
            let spec = &deployment["spec"]["template"]["spec"];
            format!("{} {spec}", deployment["metadata"]["uid"])
        });
        if self.running.as_ref().map(|(id, _)| id) != id.as_ref() {
            self.stop()?;
            if let (Some(deployment), Some(id)) = (wanted, id) {
                self.running = Some((id, self.started(deployment)?));
            }
        }
        self.reach()
    }

    /// Ends the operator, if one runs.
    pub(crate) fn stop(&mut self) -> Result<()> {
        match self.running.take() {
            Some((_, operator)) => operator.terminate(),
            None => Ok(()),
        }
    }

    /// What the operator said last.
    pub(crate) fn log(&self) -> String {
        let log = self.running.as_ref().map(|(_, operator)| operator.log());
        let log = log.unwrap_or_else(|| "no operator runs".to_owned());
        let lines: Vec<&str> = log.lines().rev().take(12).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    fn started(&self, deployment: &Value) -> Result<Operator> {
        let text = |path: &str| deployment.pointer(path).and_then(Value::as_str);
        let namespace = text("/metadata/namespace").context("a Deployment without a namespace")?;
        let account = text("/spec/template/spec/serviceAccountName").unwrap_or("default");
        let account = self.cluster.service_account(namespace, account)?;
        let arguments = deployment.pointer("/spec/template/spec/containers/0/args");
        let arguments: Vec<String> = serde_json::from_value(arguments.cloned().unwrap_or_default())
            .context("reading the arguments of the Deployment")?;
        let (command, mut arguments) = own(&arguments)?;
        if arguments.iter().any(|argument| argument == "--webhooks") {
            arguments.extend(["--webhooks-port".to_owned(), self.port.to_string()]);
            arguments.extend(["--tls-self-signed-dns-name", "localhost"].map(str::to_owned));
        }
        if !arguments
            .iter()
            .any(|argument| argument == "--operator-namespace")
        {
            arguments.extend(["--operator-namespace".to_owned(), namespace.to_owned()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut operator = Operator::command(&command, &account, &arguments)?;
        operator.wait_until_ready(SOON)?;
        Ok(operator)
    }

    /// Nothing routes to a Service's address here: registrations of a Service of ours are changed to our address, and used
    /// as soon as the API server trusts us.
    fn reach(&self) -> Result<()> {
        let Some((_, operator)) = &self.running else {
            return Ok(());
        };
        let mut changed = Vec::new();
        for kind in [
            "validatingwebhookconfiguration",
            "mutatingwebhookconfiguration",
        ] {
            let list = self.cluster.json(&["get", kind, "-l", OF_SLIPWAY])?;
            for item in list["items"].as_array().into_iter().flatten() {
                changed.extend(self.redirect(kind, item)?);
            }
        }
        for webhook in changed {
            let what = format!("the API server asks {webhook}");
            let before = operator.answered(&webhook);
            self.cluster.eventually(&what, SOON, |cluster| {
                knock(cluster, &webhook)?;
                Ok((operator.answered(&webhook) > before).then_some(()))
            })?;
        }
        Ok(())
    }

    /// Changes one registration, if it is still that of a Service; the webhooks that can be tried.
    fn redirect(&self, kind: &str, item: &Value) -> Result<Vec<String>> {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let hooks = item["webhooks"].as_array();
        let mut patch = Vec::new();
        let mut changed = Vec::new();
        for (index, hook) in hooks.into_iter().flatten().enumerate() {
            let service = hook.pointer("/clientConfig/service/path");
            let Some(path) = service.and_then(Value::as_str) else {
                continue;
            };
            let config = format!("/webhooks/{index}/clientConfig");
            let url = format!("https://localhost:{}{path}", self.port);
            patch.push(json!({"op": "remove", "path": format!("{config}/service")}));
            patch.push(json!({"op": "add", "path": format!("{config}/url"), "value": url}));
            let webhook = path.rsplit('/').next().unwrap_or_default().to_owned();
            changed.extend((webhook == "zpdb-validation").then_some(webhook));
        }
        if !patch.is_empty() {
            let patch = Value::from(patch).to_string();
            self.cluster
                .kubectl(&["patch", kind, name, "--type=json", "-p", &patch])?;
        }
        Ok(changed)
    }
}

/// Tries a budget in every namespace, which changes nothing: the API server has the CA of one webhook when it has that of
/// all.
fn knock(cluster: &Cluster, webhook: &str) -> Result<()> {
    let all = cluster.kubectl(&[
        "get",
        "namespaces",
        "-o",
        "jsonpath={.items[*].metadata.name}",
    ])?;
    for namespace in all.split_whitespace() {
        let budget = json!({
            "apiVersion": "rollout-operator.grafana.com/v1",
            "kind": "ZoneAwarePodDisruptionBudget",
            "metadata": {"name": webhook, "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"nobody": "here"}}, "maxUnavailable": 1},
        });
        let _ = cluster.dry_create(&budget.to_string());
    }
    Ok(())
}

/// The command, and its arguments without those that this machine chooses.
fn own(arguments: &[String]) -> Result<(String, Vec<String>)> {
    let mut words = arguments.iter();
    let command = words.next().context("the Deployment has no arguments")?;
    let mut rest = Vec::new();
    while let Some(word) = words.next() {
        if OURS.contains(&word.as_str()) {
            words.next();
        } else if !OURS
            .iter()
            .any(|ours| word.starts_with(&format!("{ours}=")))
        {
            rest.push(word.clone());
        }
    }
    Ok((command.clone(), rest))
}
