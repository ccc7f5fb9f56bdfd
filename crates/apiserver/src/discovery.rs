//! Discovery: which groups, versions and resources there are.
//!
//! All functions take the resources of one cluster and give the document that a client gets. The order of groups
//! and versions and the preferred versions are those of the real server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::resource::Resource;

mod subresource;

pub use subresource::{Subresource, subresources};

/// Built-in groups in the order in which the real server lists them; custom groups follow by name.
const GROUPS: &[&str] = &[
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// `/api`. `address` is where clients reach the server: `127.0.0.1:6443`.
pub fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`.
pub fn groups(resources: &[&Resource]) -> Value {
    let groups: Vec<Value> = group_names(resources)
        .into_iter()
        .map(|name| Value::Object(group_entry(resources, name)))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`; none if there is no such group.
pub fn group(resources: &[&Resource], name: &str) -> Option<Value> {
    if name.is_empty() || versions(resources, name).is_empty() {
        return None;
    }
    let mut entry = group_entry(resources, name);
    entry.insert("kind".to_owned(), "APIGroup".into());
    entry.insert("apiVersion".to_owned(), "v1".into());
    Some(Value::Object(entry))
}

fn group_entry(resources: &[&Resource], name: &str) -> Map<String, Value> {
    let versions: Vec<Value> = versions(resources, name)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    let mut entry = Map::new();
    entry.insert("name".to_owned(), name.into());
    entry.insert(
        "preferredVersion".to_owned(),
        versions.first().cloned().unwrap_or_default(),
    );
    entry.insert("versions".to_owned(), versions.into());
    entry
}

/// `/api/v1` (the group is empty) and `/apis/GROUP/VERSION`; none if there is no such version.
pub fn resource_list(resources: &[&Resource], group: &str, version: &str) -> Option<Value> {
    let members = members(resources, group, version);
    if members.is_empty() && !(group.is_empty() && version == "v1") {
        return None;
    }
    let entries: Vec<Value> = members
        .iter()
        .flat_map(|resource| entries(resource, group))
        .collect();
    let mut list = json!({"kind": "APIResourceList", "resources": entries});
    if group.is_empty() {
        list["groupVersion"] = version.into();
    } else {
        list["apiVersion"] = "v1".into();
        list["groupVersion"] = format!("{group}/{version}").into();
    }
    Some(list)
}

/// The entries of a resource and its subresources in a resource list.
fn entries(resource: &Resource, group: &str) -> Vec<Value> {
    let names = &resource.names;
    let mut main = json!({
        "name": names.plural,
        "singularName": names.singular,
        "namespaced": resource.namespaced,
        "kind": names.kind,
        "verbs": resource.verbs,
    });
    put_names(&mut main, resource);
    if resource.verbs.contains(&"list") {
        main["storageVersionHash"] = storage_version_hash(resource).into();
    }
    let mut all = vec![main];
    for sub in subresources(resource) {
        let mut entry = json!({
            "name": format!("{}/{}", names.plural, sub.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": sub.kind,
            "verbs": sub.verbs,
        });
        // A kind of the resource's own group goes without saying.
        if !sub.group.is_empty() && sub.group != group {
            entry["group"] = sub.group.into();
            entry["version"] = sub.version.into();
        }
        all.push(entry);
    }
    all
}

/// Changes when the stored form does; clients compare it only.
fn storage_version_hash(resource: &Resource) -> String {
    let group = resource
        .stored_in
        .map_or(resource.names.group.as_str(), |other| other.group);
    let version = resource.hashed_as.unwrap_or(&resource.storage_version);
    let stored = format!("{group}/{version}/{}", resource.names.kind);
    let digest = Sha256::digest(stored);
    STANDARD.encode(digest.get(..8).unwrap_or_default())
}

fn put_names(entry: &mut Value, resource: &Resource) {
    if !resource.names.short_names.is_empty() {
        entry["shortNames"] = json!(resource.names.short_names);
    }
    if !resource.names.categories.is_empty() {
        entry["categories"] = json!(resource.names.categories);
    }
}

/// The media type of the aggregated form.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api` in the aggregated form.
pub fn aggregated_core(resources: &[&Resource]) -> Value {
    let mut core = aggregated_group(resources, "");
    core["metadata"] = json!({});
    aggregated(&[core])
}

/// `/apis` in the aggregated form.
pub fn aggregated_groups(resources: &[&Resource]) -> Value {
    let items: Vec<Value> = group_names(resources)
        .into_iter()
        .map(|name| aggregated_group(resources, name))
        .collect();
    aggregated(&items)
}

fn aggregated(items: &[Value]) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_group(resources: &[&Resource], group: &str) -> Value {
    let versions: Vec<Value> = versions(resources, group)
        .into_iter()
        .map(|version| {
            let entries: Vec<Value> = members(resources, group, version)
                .into_iter()
                .map(|resource| aggregated_resource(resource, version))
                .collect();
            json!({"version": version, "resources": entries, "freshness": "Current"})
        })
        .collect();
    json!({"metadata": {"name": group}, "versions": versions})
}

fn aggregated_resource(resource: &Resource, version: &str) -> Value {
    let names = &resource.names;
    // Built-in resources leave their own group and version out.
    let (own_group, own_version) = if resource.custom {
        (names.group.as_str(), version)
    } else {
        ("", "")
    };
    let mut entry = json!({
        "resource": names.plural,
        "responseKind": {"group": own_group, "version": own_version, "kind": names.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": names.singular,
        "verbs": resource.verbs,
    });
    put_names(&mut entry, resource);
    let subs: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|sub| {
            let (group, version) = if sub.group.is_empty() {
                (own_group, own_version)
            } else {
                (sub.group, sub.version)
            };
            json!({
                "subresource": sub.name,
                "responseKind": {"group": group, "version": version, "kind": sub.kind},
                "verbs": sub.verbs,
            })
        })
        .collect();
    if !subs.is_empty() {
        entry["subresources"] = subs.into();
    }
    entry
}

/// The names of all groups but the core group, in order.
pub fn group_names<'a>(resources: &[&'a Resource]) -> Vec<&'a str> {
    let mut names: Vec<&str> = resources
        .iter()
        .map(|r| r.names.group.as_str())
        .filter(|name| !name.is_empty())
        .collect();
    let rank = |name: &str| {
        GROUPS
            .iter()
            .position(|g| *g == name)
            .unwrap_or(GROUPS.len())
    };
    names.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
    names.dedup();
    names
}

/// The served versions of a group, most preferred first.
pub fn versions<'a>(resources: &[&'a Resource], group: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = resources
        .iter()
        .filter(|r| r.names.group == group)
        .flat_map(|r| r.versions.iter().map(|v| v.name.as_str()))
        .collect();
    names.sort_by(|a, b| version_rank(b).cmp(&version_rank(a)).then_with(|| a.cmp(b)));
    names.dedup();
    names
}

/// Orders versions as Kubernetes does: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then everything else by name.
pub fn version_rank(version: &str) -> (u8, u64, u64) {
    let parsed = (|| {
        let rest = version.strip_prefix('v')?;
        let (major, stage) = match rest.find(|c: char| !c.is_ascii_digit()) {
            None => (rest, ""),
            Some(at) => rest.split_at_checked(at)?,
        };
        let major: u64 = major.parse().ok()?;
        if stage.is_empty() {
            return Some((3, major, 0));
        }
        let (rank, minor) = match stage.strip_prefix("beta") {
            Some(minor) => (2, minor),
            None => (1, stage.strip_prefix("alpha")?),
        };
        Some((rank, major, minor.parse().ok()?))
    })();
    parsed.unwrap_or((0, 0, 0))
}

/// The resources served in a group and version, by name.
pub fn members<'a>(resources: &[&'a Resource], group: &str, version: &str) -> Vec<&'a Resource> {
    let mut members: Vec<&Resource> = resources
        .iter()
        .copied()
        .filter(|r| r.names.group == group && r.version(version).is_some())
        .collect();
    members.sort_by(|a, b| a.names.plural.cmp(&b.names.plural));
    members
}

#[cfg(test)]
pub(crate) mod tests;
