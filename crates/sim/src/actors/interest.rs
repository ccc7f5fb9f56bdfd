//! Who has to look again when something changes.

use std::collections::BTreeSet;

use kube::api::ObjectMeta;

use super::endpoints;
use super::flux::{APPLIED_BY, APPLIED_FROM};
use super::gateway;
use super::key::{Actor, Job, Key, Kind};
use super::owner;
use super::pod;
use super::world::{Change, World};

/// The jobs that follow from a change.
pub(crate) fn jobs(world: &World, change: &Change) -> BTreeSet<Job> {
    let mut jobs = BTreeSet::new();
    let mut add = |actor, key: Key| {
        jobs.insert(Job { actor, key });
    };
    match change.kind {
        Kind::Deployment => add(Actor::Deployment, change.key.clone()),
        Kind::ReplicaSet => add(Actor::ReplicaSet, change.key.clone()),
        Kind::StatefulSet => add(Actor::StatefulSet, change.key.clone()),
        Kind::DaemonSet => add(Actor::DaemonSet, change.key.clone()),
        Kind::Budget => add(Actor::Budget, change.key.clone()),
        Kind::Autoscaler => add(Actor::Autoscaler, change.key.clone()),
        Kind::Node => {
            for (key, _) in world.daemon_sets.iter() {
                add(Actor::DaemonSet, key.clone());
            }
            for (key, pod) in world.pods.iter() {
                match pod::node(pod) {
                    None => add(Actor::Scheduler, key.clone()),
                    Some(node) if node == change.key.name => add(Actor::Kubelet, key.clone()),
                    Some(_) => {}
                }
            }
        }
        Kind::Pod => {
            add(Actor::Scheduler, change.key.clone());
            add(Actor::Kubelet, change.key.clone());
            for key in budgets(world, change) {
                add(Actor::Budget, key);
            }
            for key in services(world, change) {
                add(Actor::Endpoints, key);
            }
        }
        Kind::Service => add(Actor::Endpoints, change.key.clone()),
        // What nobody's Service is about is not ours.
        Kind::Endpoints if world.services.get(&change.key).is_some() => {
            add(Actor::Endpoints, change.key.clone());
        }
        Kind::Slice => {
            for meta in [&change.old, &change.new].into_iter().flatten() {
                let service = endpoints::service(meta);
                if let Some(key) = service.filter(|key| world.services.get(key).is_some()) {
                    add(Actor::Endpoints, key);
                }
            }
        }
        Kind::GitRepository => {
            add(Actor::Source, change.key.clone());
            for key in kustomizations(world, change) {
                add(Actor::Kustomize, key);
            }
        }
        Kind::Kustomization => add(Actor::Kustomize, change.key.clone()),
        Kind::HttpRoute | Kind::VirtualService | Kind::TrafficSplit | Kind::Ingress => {
            add(Actor::Gateway(change.kind), change.key.clone());
        }
        Kind::Taken => {
            if let Some((kind, key)) = gateway::about(&change.key) {
                add(Actor::Gateway(kind), key);
            }
        }
        Kind::Endpoints | Kind::Revision | Kind::Claim | Kind::Secret | Kind::ConfigMap => {}
    }
    for meta in [&change.old, &change.new].into_iter().flatten() {
        if let Some(key) = applied_by(world, meta) {
            add(Actor::Kustomize, key);
        }
        match owner::controller(meta) {
            Some(owner) => {
                let actor = match owner.kind.as_str() {
                    "Deployment" => Actor::Deployment,
                    "ReplicaSet" => Actor::ReplicaSet,
                    "StatefulSet" => Actor::StatefulSet,
                    "DaemonSet" => Actor::DaemonSet,
                    _ => continue,
                };
                add(actor, Key::new(&change.key.namespace, &owner.name));
            }
            None => adopters(world, change.kind, meta, &mut add),
        }
    }
    scaled(world, change, &mut add);
    jobs
}

/// The budgets over a pod, as it was and as it is.
fn budgets(world: &World, change: &Change) -> Vec<Key> {
    let budgets = world.budgets.within(&change.key.namespace);
    budgets
        .filter(|(_, budget)| {
            let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let selector = owner::selector(selector);
            let mut metas = [&change.old, &change.new].into_iter().flatten();
            metas.any(|meta| owner::matches(&selector, meta))
        })
        .map(|(key, _)| key.clone())
        .collect()
}

/// The Services of a pod, as it was and as it is.
fn services(world: &World, change: &Change) -> Vec<Key> {
    let services = world.services.within(&change.key.namespace);
    services
        .filter(|(_, service)| {
            let mut metas = [&change.old, &change.new].into_iter().flatten();
            let spec = service.spec.as_ref();
            spec.is_some_and(|spec| metas.any(|m| endpoints::is_selected(spec, m.labels.as_ref())))
        })
        .map(|(key, _)| key.clone())
        .collect()
}

/// The Kustomizations of a source.
fn kustomizations(world: &World, change: &Change) -> Vec<Key> {
    let all = world.kustomizations.within(&change.key.namespace);
    all.filter(|(_, one)| one.spec.source_ref.name == change.key.name)
        .map(|(key, _)| key.clone())
        .collect()
}

/// The Kustomization that applied something, if there is one.
fn applied_by(world: &World, meta: &ObjectMeta) -> Option<Key> {
    let labels = meta.labels.as_ref()?;
    let key = Key::new(labels.get(APPLIED_FROM)?, labels.get(APPLIED_BY)?);
    world.kustomizations.get(&key).map(|_| key)
}

/// The controllers that may adopt an orphan.
fn adopters(world: &World, kind: Kind, orphan: &ObjectMeta, add: &mut impl FnMut(Actor, Key)) {
    let namespace = orphan.namespace.as_deref().unwrap_or_default();
    let fits = |selector| owner::matches(&owner::selector(selector), orphan);
    if kind == Kind::ReplicaSet {
        for (key, object) in world.deployments.within(namespace) {
            if fits(object.spec.as_ref().map(|spec| &spec.selector)) {
                add(Actor::Deployment, key.clone());
            }
        }
    }
    if kind == Kind::Pod {
        for (key, object) in world.replica_sets.within(namespace) {
            if fits(object.spec.as_ref().map(|spec| &spec.selector)) {
                add(Actor::ReplicaSet, key.clone());
            }
        }
        for (key, object) in world.stateful_sets.within(namespace) {
            if fits(object.spec.as_ref().map(|spec| &spec.selector)) {
                add(Actor::StatefulSet, key.clone());
            }
        }
        for (key, object) in world.daemon_sets.within(namespace) {
            if fits(object.spec.as_ref().map(|spec| &spec.selector)) {
                add(Actor::DaemonSet, key.clone());
            }
        }
    }
}

/// The autoscalers of a workload.
fn scaled(world: &World, change: &Change, add: &mut impl FnMut(Actor, Key)) {
    let kind = match change.kind {
        Kind::Deployment => "Deployment",
        Kind::ReplicaSet => "ReplicaSet",
        Kind::StatefulSet => "StatefulSet",
        _ => return,
    };
    for (key, autoscaler) in world.autoscalers.within(&change.key.namespace) {
        let target = autoscaler.spec.as_ref().map(|spec| &spec.scale_target_ref);
        if target.is_some_and(|t| t.kind == kind && t.name == change.key.name) {
            add(Actor::Autoscaler, key.clone());
        }
    }
}
