//! The clusters of the fleet, as the runtime reaches them.

use std::collections::BTreeSet;

use slipway_api::fleet::names::KUBECONFIG_KEY;
use slipway_api::names::CONFIRM_CLUSTER;
use slipway_kernel::fields::{strings, text};
use slipway_kernel::member::{Attention, Credentials, confirmed};
use slipway_kernel::store::Store;
use slipway_kernel::{ClusterId, Member, ObjectRef};

use super::view::{View, cluster_of, reference};
use crate::observe::cluster::{self, Registered};
use crate::observe::kept::Kept;
use crate::observe::seen::RemoteSeen;
use crate::{kinds, work};

/// All members: clusters whose control plane has been there, and whatever else an assemblage is about.
pub(super) fn all(view: &View<'_>) -> Vec<Member> {
    let mut names: BTreeSet<ClusterId> = BTreeSet::new();
    for cluster in view.all_clusters() {
        names.insert(work::member(&cluster.namespace, &cluster.name));
    }
    let remotes = view
        .stores
        .typed::<RemoteSeen>(&view.home, &kinds::REMOTE_ASSEMBLAGE);
    for remote in remotes.into_iter().flat_map(Store::entries::<RemoteSeen>) {
        let cluster = cluster_of(remote.body.object());
        names.insert(work::member(&remote.meta.namespace, cluster));
    }
    names.iter().filter_map(|name| one(view, name)).collect()
}

/// One of them.
pub(super) fn one(view: &View<'_>, member: &ClusterId) -> Option<Member> {
    let (namespace, name) = work::place(member)?;
    let registered = view.cluster(namespace, name);
    let remotes = view.remotes(namespace, name);
    let remote = remotes.first();
    let known = registered.as_ref().filter(|cluster| cluster.is_initialized);
    if known.is_none() && remote.is_none() {
        return None;
    }
    let kept = remote.map(|remote| remote.body().kept());
    let named = kept.and_then(|kept| text(kept.object(), "/spec/kubeconfigRef/name"));
    let secret = named.map(str::to_owned).or_else(|| {
        registered
            .as_ref()
            .map(|cluster| cluster.kubeconfig.clone())
    })?;
    let version = view.kubeconfig_version(namespace, &secret);
    Some(Member {
        cluster: member.clone(),
        object: match (remote, &registered) {
            (Some(remote), _) => reference(&kinds::REMOTE_ASSEMBLAGE, remote.meta()),
            (None, Some(cluster)) => standing_for(cluster),
            (None, None) => return None,
        },
        uid: identity(
            registered.as_ref(),
            remote.map(|remote| &*remote.meta().uid),
        ),
        credentials: Credentials {
            namespace: namespace.to_owned(),
            name: secret,
            key: KUBECONFIG_KEY.to_owned(),
            version: version.unwrap_or_default().to_owned(),
        },
        labels: registered.map(|cluster| cluster.labels).unwrap_or_default(),
        confirmed: kept.and_then(confirmed_by),
        attention: attention(kept),
    })
}

/// Another cluster object of the same name is another member; where there is none, another assemblage is.
fn identity(registered: Option<&Registered>, remote: Option<&str>) -> String {
    let uid = registered.map(|cluster| cluster.uid.as_str()).or(remote);
    uid.unwrap_or_default().to_owned()
}

fn standing_for(cluster: &Registered) -> ObjectRef {
    let kind = if cluster.kind == cluster::SECRET {
        kinds::SECRET
    } else {
        kinds::CLUSTER
    };
    ObjectRef::local(kind, &cluster.namespace, &cluster.name)
}

/// The cluster that may be written to: as a person said, or as it was recorded.
fn confirmed_by(assemblage: &Kept) -> Option<String> {
    let record = assemblage.status_but_syncs().cluster.unwrap_or_default();
    let annotations = strings(assemblage.object(), "/metadata/annotations");
    let person = annotations.get(CONFIRM_CLUSTER).map(String::as_str);
    confirmed(record.uid.as_deref(), person)
}

/// Where everything is as it should be, nothing is under way.
fn attention(assemblage: Option<&Kept>) -> Attention {
    let summary = assemblage.and_then(|assemblage| assemblage.status_but_syncs().summary);
    match summary {
        Some(summary) if summary.succeeded == summary.total => Attention::Quiet,
        _ => Attention::Close,
    }
}
