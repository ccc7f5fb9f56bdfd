//! Why nothing is written into a cluster that could be written to: a person has to say so first, or to take one of two names away.
//!
//! The same holds for both layers: for what is written into a cluster, and for what Flux applies to it from here.

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::fleet::MAX_SYNCS;
use slipway_api::fleet::names::TAKE_OVER;
use slipway_kernel::fields::{strings, text};
use slipway_kernel::member::reasons;
use slipway_kernel::store::Item;
use slipway_kernel::{Blocker, ClusterId, Facts, ObjectRef};

use super::remote::Remote;
use super::view::{View, cluster_of, items, reference};
use crate::observe::assemblage::kubeconfig;
use crate::observe::seen::{Assembled, LeafSeen};
use crate::reasons::Reason;
use crate::remote::{Leaf, is_elsewhere};
use crate::{kinds, work};

/// What is in the way, what that means, and who ends it.
type Words = (&'static str, String, String);

/// What is in the way of writing into the cluster of a `RemoteAssemblage`, if something is. `since` is when the cluster was first
/// as it is now.
pub(super) fn objection(one: &Remote<'_>, facts: &Facts, since: Timestamp) -> Option<Blocker> {
    let object = one.target().object().clone();
    let words = mistaken(one, facts);
    let words = words.or_else(|| Some(another_hub(&object, &one.elsewhere()?)));
    let words = words
        .or_else(|| crowded(one))
        .or_else(|| unidentified(one.view, facts));
    let (reason, message, unblock) = words?;
    Some(Blocker {
        reason,
        message,
        object,
        since,
        until: None,
        unblock,
    })
}

/// Why the cluster is not the one that is meant by its name: then it is not recorded either.
pub(super) fn mistaken(one: &Remote<'_>, facts: &Facts) -> Option<Words> {
    let (view, object) = (one.view, one.object());
    let place = (one.item.meta().namespace.as_str(), cluster_of(object));
    another_kubeconfig(view, place, object).or_else(|| another_name(view, facts, place))
}

/// What is in the way of applying something to the cluster of an `Assemblage` that names one, and what that means.
pub(super) fn to_bootstrap(
    view: &View<'_>,
    facts: &Facts,
    item: &Item<Assembled>,
) -> Option<(&'static str, String)> {
    let object = item.body().object();
    let place = (item.meta().namespace.as_str(), cluster_of(object));
    let words = another_kubeconfig(view, place, object);
    let words = words.or_else(|| another_name(view, facts, place));
    let hub = || {
        let words = strings(object, "/metadata/annotations");
        let takes_over = words.get(TAKE_OVER).map(String::as_str);
        let member = work::member(place.0, place.1);
        let hub = elsewhere(view, &member, place.0, takes_over)?;
        let own = reference(&kinds::ASSEMBLAGE, item.meta());
        Some(another_hub(&own, &hub))
    };
    let (reason, message, unblock) = words.or_else(hub)?;
    Some((reason, format!("{message}: {unblock}")))
}

/// The control plane that has what is in a cluster, if that is another one than this.
fn elsewhere(
    view: &View<'_>,
    member: &ClusterId,
    namespace: &str,
    takes_over: Option<&str>,
) -> Option<String> {
    let ours = view.identity()?;
    let store = view.stores.typed::<LeafSeen>(member, &kinds::ASSEMBLAGE);
    let leaves = items::<LeafSeen>(store, namespace);
    let mut hubs = leaves
        .iter()
        .filter_map(|leaf| Leaf::hub_of(leaf.body().object()));
    hubs.find(|hub| is_elsewhere(hub, &ours, takes_over))
}

/// The cluster belongs to another control plane: two that write there would take away what only the other one knows.
fn another_hub(object: &ObjectRef, hub: &str) -> Words {
    (
        Reason::OtherHub.as_str(),
        format!(
            "the cluster belongs to another control plane, whose kube-system has the uid {hub}"
        ),
        format!(
            "if this one is to take its place, stop that one and annotate {object} with {TAKE_OVER}={hub}"
        ),
    )
}

/// There are more syncs in the cluster than anybody could have assigned.
fn crowded(one: &Remote<'_>) -> Option<Words> {
    let count = one.crowd()?;
    let meta = one.item.meta();
    Some((
        Reason::AssemblageFull.as_str(),
        format!(
            "its Assemblage has, or tells of, {count} syncs and at most {MAX_SYNCS} fit, so it is not read, and nothing is written there"
        ),
        format!(
            "whoever takes those away in the cluster that do not belong into Assemblage {}/{}, and installs our definition there",
            meta.namespace, meta.name
        ),
    ))
}

/// It cannot be known which control plane this is, and so not whose the cluster is.
fn unidentified(view: &View<'_>, facts: &Facts) -> Option<Words> {
    let is_hidden = facts.is_hidden_in(&view.home, &kinds::NAMESPACE, "");
    let is_unknown = is_hidden && view.identity().is_none();
    is_unknown.then(|| {
        (
            reasons::CLUSTER_UNIDENTIFIED,
            "which control plane this is may not be read, so nothing is written into clusters"
                .to_owned(),
            "grant the operator the right to get, list and watch the namespace kube-system"
                .to_owned(),
        )
    })
}

/// The assemblage says that the cluster is reached otherwise than what stands for it says.
fn another_kubeconfig(view: &View<'_>, place: (&str, &str), object: &Value) -> Option<Words> {
    let (named, own) = strayed(view, place.0, object)?;
    let cluster = place.1;
    Some((
        Reason::OwnedByOther.as_str(),
        format!(
            "it names Secret {named}, and the kubeconfig of cluster {cluster} is in Secret {own}"
        ),
        format!(
            "whoever puts {own} into its kubeconfigRef, or makes it one of another cluster by its clusterName"
        ),
    ))
}

/// The kubeconfig that an assemblage names, and that of its cluster, if that is another one.
fn strayed(view: &View<'_>, namespace: &str, object: &Value) -> Option<(String, String)> {
    let own = view.cluster(namespace, cluster_of(object))?.kubeconfig;
    let named = kubeconfig(object).filter(|name| !name.is_empty() && *name != own)?;
    Some((named.to_owned(), own))
}

/// The cluster has another name already: what is for one name would be changed in turn with what is for the other.
fn another_name(view: &View<'_>, facts: &Facts, place: (&str, &str)) -> Option<Words> {
    let (namespace, cluster) = place;
    let uid = facts
        .members
        .get(&work::member(namespace, cluster))?
        .uid()?;
    let mut claims = recorded(view, namespace, uid);
    if !claims.iter().any(|claim| claim.cluster == cluster) {
        // All are looked at only where it is not known yet which cluster it is.
        claims.extend(seen(view, facts, namespace, uid));
    }
    let (own, others): (Vec<&Claim>, Vec<&Claim>) =
        claims.iter().partition(|claim| claim.cluster == cluster);
    let first = others.into_iter().min()?;
    if own.into_iter().min().is_some_and(|own| own < first) {
        return None;
    }
    let name = &first.cluster;
    Some((
        Reason::TwoNames.as_str(),
        format!(
            "it is the same cluster as {name} (the uid of its kube-system is {uid}), which has it already"
        ),
        format!("whoever puts the kubeconfig of another cluster here, or deletes {name}"),
    ))
}

/// The claims of those that recorded the cluster of this uid, in both layers.
fn recorded(view: &View<'_>, namespace: &str, uid: &str) -> Vec<Claim> {
    let remotes = view.recorded(namespace, uid);
    let mut all: Vec<Claim> = remotes
        .iter()
        .map(|item| Claim::of(item.body().object(), true))
        .collect();
    let bootstraps = view.assemblages_recording(namespace, uid);
    let bootstraps = bootstraps.iter().map(Item::body);
    let named = bootstraps.filter(|one| one.cluster().is_some());
    all.extend(named.map(|one| Claim::of(one.object(), true)));
    all
}

/// The claims of those under whose name a cluster of this uid is seen, and that have recorded none.
fn seen(view: &View<'_>, facts: &Facts, namespace: &str, uid: &str) -> Vec<Claim> {
    let is_seen = |object: &Value| {
        let member = work::member(namespace, cluster_of(object));
        let state = facts.members.get(&member);
        let is_its = state.is_some_and(|state| state.uid() == Some(uid));
        // Who was led here by another one's kubeconfig has no claim.
        is_its && record_of(object).is_none() && strayed(view, namespace, object).is_none()
    };
    let remotes = view.all_remotes(namespace);
    let remotes = remotes.iter().map(|item| item.body().object());
    let bootstraps = view.assemblages(namespace);
    let bootstraps = bootstraps.iter().map(Item::body);
    let bootstraps = bootstraps.filter(|one| one.cluster().is_some());
    let all = remotes.chain(bootstraps.map(Assembled::object));
    all.filter(|object| is_seen(object))
        .map(|object| Claim::of(object, false))
        .collect()
}

/// That a cluster is the one that an assemblage is about. The lesser goes before: one that is recorded, and then the older.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    is_unrecorded: bool,
    made: String,
    cluster: String,
}

impl Claim {
    fn of(object: &Value, is_recorded: bool) -> Self {
        let made = text(object, "/metadata/creationTimestamp");
        Self {
            is_unrecorded: !is_recorded,
            made: made.unwrap_or_default().to_owned(),
            cluster: cluster_of(object).to_owned(),
        }
    }
}

/// The uid that is recorded of the cluster of an assemblage.
pub(super) fn record_of(assemblage: &Value) -> Option<&str> {
    text(assemblage, "/status/cluster/uid")
}
