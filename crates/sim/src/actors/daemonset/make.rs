//! The pods of a `DaemonSet`.

use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};

use super::super::key::Kind;
use super::super::write::{Write, as_json};
use super::super::{owner, pod};
use super::{Daemons, HASH};

const NODE: &str = "metadata.name";
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// Troubles of a node that a daemon bears, with their effects.
const BORNE: [(&str, &str); 6] = [
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
];

/// A pod that is free to go to any node that its own rules allow.
pub(super) fn free(daemons: &Daemons<'_>) -> Pod {
    let meta = &daemons.set.metadata;
    let reference = owner::reference("apps/v1", "DaemonSet", meta);
    let mut made = pod::from_template(&daemons.spec.template, meta.namespace.clone(), reference);
    let labels = made.metadata.labels.get_or_insert_default();
    labels.insert(HASH.to_owned(), daemons.hash.clone());
    let annotations = meta.annotations.as_ref();
    if let Some(generation) = annotations.and_then(|a| a.get(GENERATION)) {
        labels.insert("pod-template-generation".to_owned(), generation.clone());
    }
    let name = meta.name.as_deref().unwrap_or_default();
    made.metadata.generate_name = Some(pod::prefix(name));
    bear(made.spec.get_or_insert_default());
    made
}

/// The write that makes the pod for a node: bound to it by affinity, so that the scheduler puts it there.
pub(super) fn create(daemons: &Daemons<'_>, node: &str) -> Write {
    let mut made = free(daemons);
    let spec = made.spec.get_or_insert_default();
    let affinity = spec.affinity.get_or_insert_default();
    let affinity = affinity.node_affinity.get_or_insert_default();
    let here = NodeSelectorRequirement {
        key: NODE.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_fields: Some(vec![here]),
            match_expressions: None,
        }],
    });
    Write::Create {
        kind: Kind::Pod,
        body: as_json(&made),
    }
}

/// The node that a pod is on, or on its way to.
pub(super) fn target(pod: &Pod) -> Option<String> {
    if let Some(node) = pod::node(pod) {
        return Some(node.to_owned());
    }
    let affinity = pod
        .spec
        .as_ref()?
        .affinity
        .as_ref()?
        .node_affinity
        .as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let mut fields = required
        .node_selector_terms
        .iter()
        .flat_map(|term| term.match_fields.iter().flatten());
    let field = fields.find(|field| field.key == NODE && field.operator == "In")?;
    field.values.as_ref()?.first().cloned()
}

/// Adds the tolerations that every daemon has.
fn bear(spec: &mut PodSpec) {
    let network = ("network-unavailable", "NoSchedule");
    let on_host = (spec.host_network == Some(true)).then_some(network);
    let tolerations = spec.tolerations.get_or_insert_default();
    for (trouble, effect) in BORNE.into_iter().chain(on_host) {
        let toleration = Toleration {
            key: Some(format!("node.kubernetes.io/{trouble}")),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
}
