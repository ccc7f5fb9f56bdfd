//! What a cluster is assigned: one entry of its assemblage, in one write.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use slipway_api::fleet::names::{ASSIGNED_BY, VALUES_FOR, field_manager};
use slipway_api::fleet::sync::{ModuleReference, NamedSync};
use slipway_bindings::Text;

use super::{Applied, object};
use crate::observe::elements::Element;
use crate::observe::kept::Kept;
use crate::{kinds, naming};

/// Where assignments of a cluster are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// In its `RemoteAssemblage`: applied in the cluster.
    Remote,
    /// In an `Assemblage` that names it: applied from the control plane.
    Bootstrap,
}

/// A cluster, as its assemblage names it.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The cluster's name.
    pub cluster: &'a str,
    /// The Secret with its kubeconfig: as the assemblage has it, where it is there, so that nobody's word is changed.
    pub kubeconfig: &'a str,
}

/// Writes the one entry of `by` (`Rollout/name`). Entries of others are not in it, and so not touched.
pub fn assign(layer: Layer, place: Place<'_>, by: &str, sync: &NamedSync) -> Applied {
    let syncs = [sync];
    let kubeconfig = json!({"name": place.kubeconfig});
    let (object, body) = match layer {
        Layer::Remote => {
            let spec = json!({"kubeconfigRef": kubeconfig, "assemblage": {"syncs": syncs}});
            let rest = json!({ "spec": spec });
            object(
                kinds::REMOTE_ASSEMBLAGE,
                place.namespace,
                place.cluster,
                &rest,
            )
        }
        Layer::Bootstrap => {
            let name = naming::bootstrap(place.cluster);
            let spec =
                json!({"kubeconfigRef": kubeconfig, "clusterName": place.cluster, "syncs": syncs});
            object(
                kinds::ASSEMBLAGE,
                place.namespace,
                &name,
                &json!({ "spec": spec }),
            )
        }
    };
    Applied {
        object,
        manager: field_manager(by),
        force: false,
        body,
    }
}

/// Takes the entry of this name out of an assemblage, as a merge patch that is good for exactly this version of it: a list has
/// to be written as a whole. To apply none in its place would leave no list at all where it was the last one, which is no list.
pub fn take_away(layer: Layer, assemblage: &Kept, name: &str) -> Value {
    let others = assemblage.syncs().iter();
    let others = others.filter(|sync| sync.name() != Some(name));
    let others: Vec<Value> = others.map(Element::value).collect();
    match layer {
        Layer::Remote => json!({"spec": {"assemblage": {"syncs": others}}}),
        Layer::Bootstrap => json!({"spec": {"syncs": others}}),
    }
}

/// An entry that only names a module's revision: what somebody else moves from revision to revision.
pub fn reference(name: &str, by: &str, module: &str, revision: &str) -> NamedSync {
    NamedSync {
        name: name.to_owned(),
        assigned_by: Some(by.to_owned()),
        module: Some(ModuleReference {
            name: module.to_owned(),
            revision: Some(revision.to_owned()),
        }),
        ..NamedSync::default()
    }
}

/// The Secret with secret values for one cluster. It has to be there before the assignment that refers to it.
pub fn values(place: Place<'_>, by: &str, name: &str, data: &BTreeMap<String, Text>) -> Applied {
    let (object, body) = object(
        kinds::SECRET,
        place.namespace,
        name,
        &json!({
            "metadata": {"labels": {VALUES_FOR: label(place.cluster), ASSIGNED_BY: label(by)}},
            "immutable": true,
            "data": revealed(data),
        }),
    );
    Applied {
        object,
        manager: field_manager(by),
        force: false,
        body,
    }
}

/// A name as the value of a label.
pub fn label(name: &str) -> String {
    naming::fitted(&[&name.replace('/', ".")], naming::LONGEST_LABEL)
}

/// Secret values as the data of a Secret: the only place where they are written.
pub(crate) fn revealed(data: &BTreeMap<String, Text>) -> Value {
    let encoded = |text: &Text| Value::from(STANDARD.encode(text.reveal()));
    let pairs = data.iter().map(|(key, text)| (key.clone(), encoded(text)));
    Value::Object(pairs.collect())
}
