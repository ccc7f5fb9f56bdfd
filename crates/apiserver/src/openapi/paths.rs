//! The `paths` of a document.

use serde_json::{Map, Value, json};

use super::schemas::{self, reference};
use crate::discovery::{self, Subresource};
use crate::resource::Resource;

/// A kind with the name of its schema.
struct Subject<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    schema: String,
}

const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
/// Of those, what makes no sense where everything is deleted that is listed.
const LIST_ONLY: &[&str] = &["allowWatchBookmarks", "watch"];
const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const PATCH: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];
const DELETE: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];

/// Adds the paths of a resource in one version.
pub(super) fn add(paths: &mut Map<String, Value>, resource: &Resource, version: &str) {
    let names = &resource.names;
    let root = if names.group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{}/{version}", names.group)
    };
    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let kind = Subject {
        group: &names.group,
        version,
        kind: &names.kind,
        schema: schemas::name_of(resource, version),
    };
    let writer = Writer {
        resource,
        suffix: String::new(),
        stem: format!("{}{}", pascal(&names.group), pascal(version)),
    };
    let plural = &names.plural;
    let collection = writer.collection(&kind, version);
    insert(paths, format!("{root}{scope}/{plural}"), collection);
    if resource.namespaced && resource.verbs.contains(&"list") {
        let everywhere = writer.everywhere(&kind, version);
        insert(paths, format!("{root}/{plural}"), everywhere);
    }
    let item = format!("{root}{scope}/{plural}/{{name}}");
    insert(paths, item.clone(), writer.item(&kind, &resource.verbs));
    for sub in discovery::subresources(resource) {
        let kind = kind_of(&sub, resource, version);
        let writer = Writer {
            suffix: pascal(sub.name),
            stem: writer.stem.clone(),
            resource,
        };
        let operations = writer.item(&kind, sub.verbs);
        insert(paths, format!("{item}/{}", sub.name), operations);
    }
}

fn kind_of<'a>(sub: &Subresource<'a>, resource: &'a Resource, version: &'a str) -> Subject<'a> {
    let own = sub.group.is_empty() && sub.kind == resource.names.kind;
    // The real server marks the scale of a custom resource with the resource's own kind.
    let custom = resource.custom;
    let schema = match sub.group {
        "" if own => schemas::name_of(resource, version),
        "" => format!("io.k8s.api.core.v1.{}", sub.kind),
        group => {
            let package = group.split('.').next().unwrap_or_default();
            format!("io.k8s.api.{package}.{}.{}", sub.version, sub.kind)
        }
    };
    let (group, version, kind) = match sub.group {
        "" => (resource.names.group.as_str(), version, sub.kind),
        _ if custom => (
            resource.names.group.as_str(),
            version,
            resource.names.kind.as_str(),
        ),
        group => (group, sub.version, sub.kind),
    };
    Subject {
        group,
        version,
        kind,
        schema,
    }
}

fn insert(paths: &mut Map<String, Value>, path: String, operations: Map<String, Value>) {
    if operations.is_empty() {
        return;
    }
    let mut entry = operations;
    let mut parameters: Vec<Value> = Vec::new();
    for name in ["name", "namespace"] {
        if path.contains(&format!("{{{name}}}")) {
            parameters.push(json!({"name": name, "in": "path", "required": true,
                "schema": {"type": "string", "uniqueItems": true}}));
        }
    }
    parameters.push(query("pretty"));
    entry.insert("parameters".to_owned(), parameters.into());
    paths.insert(path, Value::Object(entry));
}

fn query(name: &str) -> Value {
    let ty = match name {
        "allowWatchBookmarks" | "sendInitialEvents" | "watch" | "force" | "orphanDependents" => {
            "boolean"
        }
        "limit" | "timeoutSeconds" | "gracePeriodSeconds" => "integer",
        name if name.starts_with("ignoreStoreReadError") => "boolean",
        _ => "string",
    };
    json!({"name": name, "in": "query", "schema": {"type": ty, "uniqueItems": true}})
}

/// `SchemaExample` for `schema.example`, `Core` for the core group, `RbacAuthorization` for
/// `rbac.authorization.k8s.io`.
fn pascal(text: &str) -> String {
    if text.is_empty() {
        return "Core".to_owned();
    }
    let text = text.strip_suffix(".k8s.io").unwrap_or(text);
    text.split(['.', '-'])
        .map(|part| {
            let mut letters = part.chars();
            letters
                .next()
                .map(|first| first.to_uppercase().chain(letters).collect::<String>())
                .unwrap_or_default()
        })
        .collect()
}

struct Writer<'a> {
    resource: &'a Resource,
    /// What operation ids end with: the subresource.
    suffix: String,
    /// What they have after their verb: group and version.
    stem: String,
}

impl Writer<'_> {
    fn collection(&self, kind: &Subject<'_>, version: &str) -> Map<String, Value> {
        let verbs = &self.resource.verbs;
        let mut out = Map::new();
        let list = schemas::list_name(self.resource, version);
        if verbs.contains(&"list") {
            let operation = self.operation("list", "list", kind, LIST, &list);
            out.insert("get".to_owned(), operation);
        }
        if verbs.contains(&"create") {
            let mut operation = self.operation("create", "post", kind, WRITE, &kind.schema);
            operation["requestBody"] = body(&["*/*"], &kind.schema);
            out.insert("post".to_owned(), operation);
        }
        if verbs.contains(&"deletecollection") {
            let listed = LIST.iter().filter(|name| !LIST_ONLY.contains(name));
            let parameters: Vec<&str> = listed.chain(DELETE).copied().collect();
            let mut operation = self.operation(
                "delete",
                "deletecollection",
                kind,
                &parameters,
                schemas::STATUS,
            );
            let id = self.id("delete", "Collection", kind);
            operation["operationId"] = id.into();
            out.insert("delete".to_owned(), operation);
        }
        out
    }

    fn everywhere(&self, kind: &Subject<'_>, version: &str) -> Map<String, Value> {
        let list = schemas::list_name(self.resource, version);
        let mut operation = self.operation("list", "list", kind, LIST, &list);
        let id = format!("list{}{}ForAllNamespaces", self.stem, kind.kind);
        operation["operationId"] = id.into();
        Map::from_iter([("get".to_owned(), operation)])
    }

    fn item(&self, kind: &Subject<'_>, verbs: &[&str]) -> Map<String, Value> {
        let mut out = Map::new();
        let own = |verb: &str| verbs.contains(&verb);
        if own("get") {
            let operation = self.operation("read", "get", kind, &[], &kind.schema);
            out.insert("get".to_owned(), operation);
        }
        if own("update") {
            let mut operation = self.operation("replace", "put", kind, WRITE, &kind.schema);
            operation["requestBody"] = body(&["*/*"], &kind.schema);
            out.insert("put".to_owned(), operation);
        }
        if own("patch") {
            let mut operation = self.operation("patch", "patch", kind, PATCH, &kind.schema);
            let mut kinds = vec![
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ];
            if !self.resource.custom {
                kinds.push("application/strategic-merge-patch+json");
            }
            operation["requestBody"] = body(&kinds, schemas::PATCH);
            out.insert("patch".to_owned(), operation);
        }
        // Subresources are created at the item's own path.
        if own("create") && !self.suffix.is_empty() {
            let mut operation = self.operation("create", "post", kind, WRITE, &kind.schema);
            operation["requestBody"] = body(&["*/*"], &kind.schema);
            out.insert("post".to_owned(), operation);
        }
        if own("delete") && self.suffix.is_empty() {
            let mut operation = self.operation("delete", "delete", kind, DELETE, schemas::STATUS);
            operation["requestBody"] = body(&["*/*"], schemas::DELETE_OPTIONS);
            out.insert("delete".to_owned(), operation);
        }
        out
    }

    fn id(&self, verb: &str, before: &str, kind: &Subject<'_>) -> String {
        let scope = if self.resource.namespaced {
            "Namespaced"
        } else {
            ""
        };
        let own = if self.suffix.is_empty() {
            kind.kind
        } else {
            self.resource.names.kind.as_str()
        };
        format!("{verb}{}{before}{scope}{own}{}", self.stem, self.suffix)
    }

    fn operation(
        &self,
        verb: &str,
        action: &str,
        kind: &Subject<'_>,
        parameters: &[&str],
        answer: &str,
    ) -> Value {
        let parameters: Vec<Value> = parameters.iter().map(|name| query(name)).collect();
        json!({
            "operationId": self.id(verb, "", kind),
            "parameters": parameters,
            "responses": {
                "200": {"description": "OK", "content": content(&["application/json", "application/yaml"], answer)},
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        })
    }
}

fn content(media: &[&str], schema: &str) -> Value {
    media
        .iter()
        .map(|media| ((*media).to_owned(), json!({"schema": reference(schema)})))
        .collect::<Map<_, _>>()
        .into()
}

fn body(media: &[&str], schema: &str) -> Value {
    json!({"content": content(media, schema), "required": true})
}
