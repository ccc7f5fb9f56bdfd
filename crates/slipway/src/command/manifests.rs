//! `slipway manifests`: everything that installs the operator.

use anyhow::Result;
use serde_json::Value;

use crate::args::{Command, Manifests, Run};
use crate::exit::Usage;
use crate::manifests::{CLUSTER_S_OWN, Install, install};
use crate::registry::{self, Registry};
use crate::{output, yaml};

/// Prints it.
pub(crate) fn run(registry: &Registry, arguments: &Manifests) -> Result<()> {
    output::text(&yaml::documents(&objects(registry, arguments)?)?);
    Ok(())
}

/// The objects.
pub(crate) fn objects(registry: &Registry, arguments: &Manifests) -> Result<Vec<Value>> {
    let profiles = registry::profiles(&registry.named(&arguments.controllers)?);
    let mut guards = profiles.iter().flat_map(|profile| profile.registrations);
    let serves = arguments.webhooks && guards.next().is_some();
    if arguments.webhooks && !serves {
        return Err(registry.no_webhooks().into());
    }
    let is_clusters_own = |name: &String| name == CLUSTER_S_OWN;
    if serves && arguments.namespace.iter().any(is_clusters_own) {
        return Err(Usage(format!(
            "--namespace: webhooks cannot guard {CLUSTER_S_OWN}: the cluster must come up without them"
        ))
        .into());
    }
    let definitions = if arguments.no_crds {
        Vec::new()
    } else {
        registry::definitions(&profiles)?
    };
    let mut options = Install {
        namespace: &arguments.operator_namespace,
        image: &arguments.image,
        replicas: arguments.replicas.unwrap_or(if serves { 2 } else { 1 }),
        controllers: &arguments.controllers,
        profiles: &profiles,
        watched: &arguments.namespace,
        webhooks: serves,
        opt_in: true,
        no_namespace: arguments.no_namespace,
        drain: std::time::Duration::ZERO,
        flags: &[],
    };
    let plain = told(registry, &options)?;
    options.flags = &arguments.flags;
    let told = told(registry, &options)?;
    check(&options, &plain, &told)?;
    options.drain = told.given.webhooks.drain;
    let permissions = registry::permissions(&profiles, serves);
    Ok(install(&options, &permissions, definitions))
}

/// What the program will make of its arguments.
fn told(registry: &Registry, options: &Install<'_>) -> Result<Box<Run>> {
    let line = std::iter::once("slipway".to_owned()).chain(options.arguments());
    let parsed = registry
        .parse(line.map(Into::into))
        .map_err(|error| Usage(format!("the flags after --: {}", error.render())))?;
    match parsed.command {
        Command::Run(run) => Ok(run),
        _ => Err(Usage("the flags after --: they are for `slipway run`".to_owned()).into()),
    }
}

/// Refuses flags that would contradict the rest of the manifests.
fn check(options: &Install<'_>, plain: &Run, told: &Run) -> Result<()> {
    let decided = |run: &Run| {
        let webhooks = &run.given.webhooks;
        (
            (run.controllers.clone(), run.namespace.clone()),
            (webhooks.is_on, webhooks.port, run.port, run.bind),
            webhooks.tls_self_signed_secret_name.clone(),
            webhooks.tls_self_signed_dns_name.clone(),
            run.election.operator_namespace.clone(),
        )
    };
    let contradiction = if decided(plain) != decided(told) {
        "controllers, namespaces, webhooks, ports, addresses and the names of Service and Secret are decided by `slipway manifests`: \
         write those that it has before the --, and leave the others out"
    } else if told.election.no_leader_elect && options.replicas > 1 {
        "--no-leader-elect is for one replica: add --replicas 1 before the --"
    } else {
        return Ok(());
    };
    Err(Usage(format!("the flags after --: {contradiction}")).into())
}
