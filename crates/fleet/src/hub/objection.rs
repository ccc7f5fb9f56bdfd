//! Why nothing is written into a cluster that could be written to: a person has to say so first, or to take one of two names away.

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::fleet::names::TAKE_OVER;
use slipway_kernel::fields::text;
use slipway_kernel::store::Item;
use slipway_kernel::{Blocker, Facts};

use super::remote::Remote;
use super::view::{View, cluster_of, member_of, status_of};
use crate::kinds;
use crate::observe::assemblage::kubeconfig;
use crate::observe::seen::Whole;
use crate::reasons::Reason;

/// What is in the way, what that means, and who ends it.
type Words = (Reason, String, String);

/// What is in the way of writing into the cluster of a `RemoteAssemblage`, if something is. `since` is when the cluster was first
/// as it is now.
pub(super) fn objection(one: &Remote<'_>, facts: &Facts, since: Timestamp) -> Option<Blocker> {
    let (reason, message, unblock) = mistaken(one, facts).or_else(|| another_hub(one))?;
    Some(Blocker {
        reason: reason.as_str(),
        message,
        object: one.target().object().clone(),
        since,
        until: None,
        unblock,
    })
}

/// Why the cluster is not the one that is meant by its name: then it is not recorded either.
pub(super) fn mistaken(one: &Remote<'_>, facts: &Facts) -> Option<Words> {
    another_kubeconfig(one).or_else(|| another_name(one, facts))
}

/// The cluster belongs to another control plane: two that write there would take away what only the other one knows.
fn another_hub(one: &Remote<'_>) -> Option<Words> {
    let hub = one.elsewhere()?;
    let object = one.target().object().clone();
    Some((
        Reason::OtherHub,
        format!(
            "the cluster belongs to another control plane, whose kube-system has the uid {hub}"
        ),
        format!(
            "if this one is to take its place, stop that one and annotate {object} with {TAKE_OVER}={hub}"
        ),
    ))
}

/// The assemblage says that the cluster is reached otherwise than what stands for it says.
fn another_kubeconfig(one: &Remote<'_>) -> Option<Words> {
    let (named, own) = strayed(one.view, &one.item)?;
    let cluster = cluster_of(one.object());
    Some((
        Reason::OwnedByOther,
        format!(
            "it names Secret {named}, and the kubeconfig of cluster {cluster} is in Secret {own}"
        ),
        format!(
            "whoever puts {own} into its kubeconfigRef, or makes it one of another cluster by its clusterName"
        ),
    ))
}

/// The kubeconfig that an assemblage names, and that of its cluster, if that is another one.
fn strayed(view: &View<'_>, item: &Item<Whole>) -> Option<(String, String)> {
    let object = item.body().object();
    let own = view
        .cluster(&item.meta().namespace, cluster_of(object))?
        .kubeconfig;
    let named = kubeconfig(object).filter(|name| !name.is_empty() && *name != own)?;
    Some((named.to_owned(), own))
}

/// The cluster has another name already: what is for one name would be changed in turn with what is for the other.
fn another_name(one: &Remote<'_>, facts: &Facts) -> Option<Words> {
    let uid = facts.members.get(&one.member)?.uid()?;
    let own = Claim::of(&one.item, uid);
    let all = one
        .view
        .all(&kinds::REMOTE_ASSEMBLAGE, &one.item.meta().namespace);
    let others = all.iter().filter(|other| {
        let object = other.body().object();
        let member = member_of(other.meta(), object);
        let recorded = recorded(object);
        let state = facts.members.get(&member);
        let seen = || state.and_then(|state| state.uid()).map(str::to_owned);
        // Who was led here by another one's kubeconfig has no claim.
        let is_strayed = recorded.is_none() && strayed(one.view, other).is_some();
        let is_claimed = recorded.or_else(seen).as_deref() == Some(uid);
        member != one.member && is_claimed && !is_strayed
    });
    let claims = others.map(|other| Claim::of(other, uid));
    let first = claims.min().filter(|first| *first < own)?;
    let name = first.cluster;
    Some((
        Reason::TwoNames,
        format!(
            "it is the same cluster as {name} (the uid of its kube-system is {uid}), which has it already"
        ),
        format!("whoever puts the kubeconfig of another cluster here, or deletes {name}"),
    ))
}

/// That a cluster is the one that an assemblage is about. The lesser goes before: one that is recorded, and then the older.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    is_unrecorded: bool,
    made: String,
    cluster: String,
}

impl Claim {
    /// The claim of an assemblage to the cluster of this uid.
    fn of(item: &Item<Whole>, uid: &str) -> Self {
        let object = item.body().object();
        let made = text(object, "/metadata/creationTimestamp");
        Self {
            is_unrecorded: recorded(object).as_deref() != Some(uid),
            made: made.unwrap_or_default().to_owned(),
            cluster: cluster_of(object).to_owned(),
        }
    }
}

/// The uid that is recorded of the cluster of an assemblage.
fn recorded(assemblage: &Value) -> Option<String> {
    status_of(assemblage).cluster.and_then(|record| record.uid)
}
