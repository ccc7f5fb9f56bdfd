//! The subresources of a resource, with the kinds and verbs that discovery shows.

use crate::resource::Resource;

/// A subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource<'a> {
    /// `status`.
    pub name: &'a str,
    /// The group of its kind; empty if the kind is of the resource's own group and version.
    pub group: &'a str,
    /// The version of its kind; empty if [`Subresource::group`] is.
    pub version: &'a str,
    /// The kind that requests and answers have.
    pub kind: &'a str,
    /// What one can do with it.
    pub verbs: &'static [&'static str],
}

const WRITE: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];
const CONNECT: &[&str] = &["create", "get"];
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];

/// The subresources of a resource: by name for built-in ones, status before scale for custom ones.
pub fn subresources(resource: &Resource) -> Vec<Subresource<'_>> {
    let mut names: Vec<&str> = Vec::new();
    if resource.status {
        names.push("status");
    }
    if resource.scale.is_some() {
        names.push("scale");
    }
    names.extend(&resource.subresources);
    if !resource.custom {
        names.sort_unstable();
        names.dedup();
    }
    names
        .into_iter()
        .map(|name| describe(name, resource))
        .collect()
}

fn describe<'a>(name: &'a str, resource: &'a Resource) -> Subresource<'a> {
    let own = resource.names.kind.as_str();
    let ((group, version, kind), verbs) = match name {
        "scale" => (("autoscaling", "v1", "Scale"), WRITE),
        "eviction" => (("policy", "v1", "Eviction"), CREATE),
        "token" => (("authentication.k8s.io", "v1", "TokenRequest"), CREATE),
        "binding" => (("", "", "Binding"), CREATE),
        "finalize" => (("", "", own), &["update"] as &[&str]),
        "log" => (("", "", own), &["get"] as &[&str]),
        "exec" => (("", "", "PodExecOptions"), CONNECT),
        "attach" => (("", "", "PodAttachOptions"), CONNECT),
        "portforward" => (("", "", "PodPortForwardOptions"), CONNECT),
        "proxy" if own == "Pod" => (("", "", "PodProxyOptions"), PROXY),
        "proxy" if own == "Node" => (("", "", "NodeProxyOptions"), PROXY),
        "proxy" => (("", "", "ServiceProxyOptions"), PROXY),
        _ => (("", "", own), WRITE),
    };
    Subresource {
        name,
        group,
        version,
        kind,
        verbs,
    }
}
