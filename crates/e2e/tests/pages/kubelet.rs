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
        let list = self.cluster.json(&[
            "get",
            "deployments",
            "-A",
            "-l",
            "app.kubernetes.io/part-of=slipway",
        ])?;
        let wanted = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|deployment| deployment["spec"]["replicas"].as_i64() > Some(0));
        let id = wanted.map(|deployment| {
            format!(
                "{} {}",
                deployment["metadata"]["uid"], deployment["spec"]["template"]
            )
        });
        if self.running.as_ref().map(|(id, _)| id) == id.as_ref() {
            return Ok(());
        }
        self.stop()?;
        if let (Some(deployment), Some(id)) = (wanted, id) {
            self.running = Some((id, self.started(deployment)?));
        }
        Ok(())
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
        let has_webhooks = arguments.iter().any(|argument| argument == "--webhooks");
        if has_webhooks {
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
        if has_webhooks {
            self.reach(namespace)?;
        }
        Ok(operator)
    }

    /// Nothing routes to a Service's address here: registrations of our Service are changed to our address as soon as the
    /// operator has put its CA into them.
    fn reach(&self, namespace: &str) -> Result<()> {
        for kind in [
            "validatingwebhookconfiguration",
            "mutatingwebhookconfiguration",
        ] {
            let list = self.cluster.json(&["get", kind])?;
            let items = list["items"].as_array().cloned().unwrap_or_default();
            for item in items {
                let service = item.pointer("/webhooks/0/clientConfig/service");
                if service.is_some_and(|service| service["namespace"] == namespace) {
                    self.redirect(kind, &item)?;
                }
            }
        }
        Ok(())
    }

    fn redirect(&self, kind: &str, item: &Value) -> Result<()> {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let hooks = item["webhooks"].as_array().map_or(0, Vec::len);
        for index in 0..hooks {
            let config = format!("/webhooks/{index}/clientConfig");
            let (path, object) =
                self.cluster
                    .eventually("a CA in a registration", SOON, |cluster| {
                        let object = cluster.json(&["get", kind, name])?;
                        let path = object.pointer(&format!("{config}/service/path"));
                        let path = path.and_then(Value::as_str).unwrap_or_default().to_owned();
                        let bundle = object.pointer(&format!("{config}/caBundle"));
                        let has_bundle = bundle
                            .and_then(Value::as_str)
                            .is_some_and(|ca| !ca.is_empty());
                        Ok(has_bundle.then_some((path, object)))
                    })?;
            let patch = json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": object["metadata"]["resourceVersion"]},
                {"op": "remove", "path": format!("{config}/service")},
                {"op": "add", "path": format!("{config}/url"), "value": format!("https://localhost:{}{path}", self.port)},
            ]);
            let patch = patch.to_string();
            self.cluster
                .kubectl(&["patch", kind, name, "--type=json", "-p", &patch])?;
        }
        Ok(())
    }
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
