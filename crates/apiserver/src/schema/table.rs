//! The schemas of the built-in kinds, from a table that `cargo xtask generate` makes.

mod read;
#[cfg(test)]
mod tests;
pub mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::{Node, NodeId, Schema, Types};
use read::Reader;

const TABLE: &str = include_str!("builtin.types");

static BUILTIN: LazyLock<Table> = LazyLock::new(|| Table::read(TABLE));

/// The schema of a built-in kind; a kind that the table does not know accepts anything.
pub fn kind(group: &str, version: &str, kind: &str) -> Schema {
    let name = format!("{group}/{version}/{kind}");
    let root = BUILTIN.kinds.get(name.as_str());
    BUILTIN.schema(root.copied().unwrap_or(BUILTIN.anything))
}

/// Whether the table has this kind.
pub fn knows(group: &str, version: &str, kind: &str) -> bool {
    let name = format!("{group}/{version}/{kind}");
    BUILTIN.kinds.contains_key(name.as_str())
}

/// The schema of a type by its `OpenAPI` name: `io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions`.
pub fn named(openapi_name: &str) -> Option<Schema> {
    let root = BUILTIN.names.get(openapi_name)?;
    Some(BUILTIN.schema(*root))
}

/// The group, version and kind of a type by its `OpenAPI` name, if it stands for a kind of its own.
pub fn kind_of(openapi_name: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let kind = match openapi_name {
        // These belong to every group.
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions" => "/v1/DeleteOptions",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status" => "/v1/Status",
        _ => {
            let id = BUILTIN.names.get(openapi_name)?;
            BUILTIN.kinds_by_node.get(id)?
        }
    };
    let mut parts = kind.split('/');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

/// `metav1.ObjectMeta`, which custom resources have as well.
pub fn object_meta() -> Schema {
    named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        .unwrap_or_else(|| BUILTIN.schema(BUILTIN.anything))
}

struct Table {
    types: Arc<Types>,
    kinds: BTreeMap<Box<str>, NodeId>,
    kinds_by_node: BTreeMap<NodeId, Box<str>>,
    names: BTreeMap<Box<str>, NodeId>,
    anything: NodeId,
}

impl Table {
    fn schema(&self, root: NodeId) -> Schema {
        Schema::new(self.types.clone(), root)
    }

    fn read(text: &str) -> Self {
        let mut reader = Reader::default();
        let anything = reader.types.push(Node {
            preserve_unknown: true,
            nullable: true,
            ..Node::default()
        });
        reader.specials();
        reader.declare(text);
        reader.fill(text);
        reader.make_granular();
        Self {
            types: Arc::new(reader.types),
            kinds_by_node: reader
                .kinds
                .iter()
                .map(|(name, id)| (*id, name.clone()))
                .collect(),
            kinds: reader.kinds,
            names: reader.names,
            anything,
        }
    }
}
