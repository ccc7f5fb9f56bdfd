//! What the server knows of the shape of objects: one arena of nodes for all built-in kinds, one for each version
//! of a custom resource.
//!
//! Decoding, defaulting, pruning, strategic merge, server-side apply and the published `OpenAPI` documents all read
//! the same nodes. The nodes of a custom resource are made when they are first asked for: most definitions of a cluster
//! are there for kinds of which it has no object.

pub mod table;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

/// An arena of nodes.
#[derive(Debug, Default)]
pub struct Types {
    nodes: Vec<Node>,
}

/// The place of a node in its arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// The JSON type of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Anything at all (`JSON`, `RawExtension`, a schema without type).
    #[default]
    Any,
    /// An object: known [`Node::fields`], or a map with values of [`Node::values`], or both.
    Object,
    /// A list of [`Node::items`].
    List,
    /// Text. `format` tells dates (`date-time`), bytes (`byte`) and the like.
    String,
    /// A whole number; `format` is `int32` or `int64`.
    Integer,
    /// Any number; `format` is `double` or `float`.
    Number,
    /// True or false.
    Boolean,
    /// A whole number or text.
    IntOrString,
    /// A resource quantity: text or a number, shown in canonical form.
    Quantity,
}

/// How a list is merged (`x-kubernetes-list-type`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ListKind {
    /// As one value.
    #[default]
    Atomic,
    /// As a set of scalars.
    Set,
    /// As a map, by these keys.
    Map(Box<[Box<str>]>),
}

/// How a strategic merge patch treats a list or object (`x-kubernetes-patch-strategy`, `…-merge-key`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchStrategy {
    /// `merge` is named.
    pub merge: bool,
    /// `retainKeys` is named.
    pub retain_keys: bool,
    /// `replace` is named: an object that is not merged but taken whole.
    pub replace: bool,
    /// The key by which list items are matched; empty for lists of scalars.
    pub merge_key: Box<str>,
}

/// How Go holds a built-in field, which decides what survives a round trip through the typed object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// A pointer, map, slice or raw value with `omitempty`: left out when absent, `null`, or an empty map or list;
    /// an explicit zero is kept.
    #[default]
    Optional,
    /// A plain scalar with `omitempty`: left out when zero (`""`, `0`, `false`).
    OmitZero,
    /// Always written: `default` holds the zero value that stands in when it is absent; `null` for what Go holds
    /// as a nil pointer, slice or map.
    Always,
}

/// One field of an object.
#[derive(Debug, Clone)]
pub struct Field {
    /// What it holds.
    pub node: NodeId,
    /// Whether the schema requires it.
    pub required: bool,
    /// Built-in kinds only.
    pub presence: Presence,
    /// How a strategic merge patch treats it.
    pub patch: PatchStrategy,
    /// The schema's `default`.
    pub default: Option<Value>,
}

/// One node of a schema.
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent marks of the schema language"
)]
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// The JSON type.
    pub shape: Shape,
    /// The schema's `format`.
    pub format: Box<str>,
    /// The name in `OpenAPI` (`io.k8s.api.apps.v1.DeploymentSpec`); empty for anonymous nodes and custom resources.
    pub name: Box<str>,
    /// Built-in kinds only: the type as Go's messages show it (`v1.Protocol`, `[]v1.Container`).
    pub go_type: Box<str>,
    /// Built-in kinds only: for fields that Go holds in an embedded struct, the path of its Go names
    /// (`VolumeSource`), which messages show.
    pub embedded_in: BTreeMap<Box<str>, Box<str>>,
    /// Known fields of an object.
    pub fields: BTreeMap<Box<str>, Field>,
    /// The type of the values of a map.
    pub values: Option<NodeId>,
    /// The type of the items of a list.
    pub items: Option<NodeId>,
    /// How the list merges.
    pub list: ListKind,
    /// The object or map merges as one value (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// Unknown fields are kept (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// The node holds a whole object with `apiVersion`, `kind` and `metadata` (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// `null` is a value (`nullable`).
    pub nullable: bool,
    /// The author of a custom resource described it: what stands here is known.
    pub described: bool,
    /// The schema's own `default`, custom resources only: items and values have no field that could carry it.
    pub default: Option<Box<Value>>,
}

impl Node {
    /// The Go struct's name: the last segment of the `OpenAPI` name.
    pub fn go_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }
}

impl Types {
    /// Adds a node.
    pub fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        id
    }

    /// Replaces a node that was added as a placeholder.
    pub fn set(&mut self, id: NodeId, node: Node) {
        if let Some(slot) = self.nodes.get_mut(id.0 as usize) {
            *slot = node;
        }
    }

    /// Gives back what room is left, when all nodes are there.
    pub fn finish(&mut self) {
        self.nodes.shrink_to_fit();
    }

    /// All nodes with their ids, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(i, n)| (NodeId(u32::try_from(i).unwrap_or(u32::MAX)), n))
    }

    /// A view of one node.
    pub fn view(&self, id: NodeId) -> View<'_> {
        View {
            types: self,
            node: self.nodes.get(id.0 as usize).unwrap_or(&ANY),
            id,
        }
    }
}

/// What an id that does not belong to an arena resolves to, so that walking a schema cannot fail.
static ANY: std::sync::LazyLock<Node> = std::sync::LazyLock::new(|| Node {
    preserve_unknown: true,
    nullable: true,
    ..Node::default()
});

/// A node together with its arena, so that one can walk on from it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    types: &'a Types,
    /// The node itself.
    pub node: &'a Node,
    /// Its place.
    pub id: NodeId,
}

impl<'a> View<'a> {
    /// The field of this name, if the schema knows it.
    pub fn field(&self, name: &str) -> Option<(&'a Field, View<'a>)> {
        let field = self.node.fields.get(name)?;
        Some((field, self.types.view(field.node)))
    }

    /// All known fields, by name.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, &'a Field, View<'a>)> + use<'a> {
        let types = self.types;
        self.node
            .fields
            .iter()
            .map(move |(name, field)| (&**name, field, types.view(field.node)))
    }

    /// The values of a map.
    pub fn values(&self) -> Option<View<'a>> {
        self.node.values.map(|id| self.types.view(id))
    }

    /// The items of a list.
    pub fn items(&self) -> Option<View<'a>> {
        self.node.items.map(|id| self.types.view(id))
    }

    /// What stands below `name`: a known field, or else the map's value type.
    pub fn child(&self, name: &str) -> Option<View<'a>> {
        self.field(name)
            .map(|(_, view)| view)
            .or_else(|| self.values())
    }
}

/// The schema of one kind in one version. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Schema(Origin);

#[derive(Debug, Clone)]
enum Origin {
    /// One of an arena.
    Made(Arc<Types>, NodeId),
    /// The author's of a custom resource.
    Written(Arc<Written>),
}

/// How nodes are made of an `OpenAPI` schema, and where the kind starts in them.
pub type Build = fn(&Value) -> (Types, NodeId);

#[derive(Debug)]
struct Written {
    source: Arc<str>,
    build: Build,
    made: OnceLock<(Types, NodeId)>,
}

impl Schema {
    /// The kind that starts at `root` in an arena.
    pub fn new(types: Arc<Types>, root: NodeId) -> Self {
        Self(Origin::Made(types, root))
    }

    /// The kind that an author describes by this JSON; `build` is called when somebody wants to see a node.
    pub fn written(source: Arc<str>, build: Build) -> Self {
        Self(Origin::Written(Arc::new(Written {
            source,
            build,
            made: OnceLock::new(),
        })))
    }

    /// The root node.
    pub fn view(&self) -> View<'_> {
        match &self.0 {
            Origin::Made(types, root) => types.view(*root),
            Origin::Written(written) => {
                let (types, root) = written
                    .made
                    .get_or_init(|| (written.build)(&written.read()));
                types.view(*root)
            }
        }
    }

    /// The name in `OpenAPI`; empty for custom resources.
    pub fn name(&self) -> &str {
        match &self.0 {
            Origin::Made(..) => &self.view().node.name,
            Origin::Written(_) => "",
        }
    }

    /// The `OpenAPI` schema that the author of a custom resource wrote, as JSON.
    pub fn source(&self) -> Option<&str> {
        match &self.0 {
            Origin::Made(..) => None,
            Origin::Written(written) => Some(&written.source),
        }
    }

    /// [`Schema::source`] as a value.
    pub fn read_source(&self) -> Option<Value> {
        match &self.0 {
            Origin::Made(..) => None,
            Origin::Written(written) => Some(written.read()),
        }
    }
}

impl Written {
    fn read(&self) -> Value {
        // It is our own encoding: it can be read.
        serde_json::from_str(&self.source).unwrap_or_default()
    }
}
