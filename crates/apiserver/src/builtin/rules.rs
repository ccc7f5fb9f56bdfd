//! A [`Strategy`] written down as a table of functions, for the many kinds that differ from each other in little.
//!
//! Start from [`PLAIN`] (no status, no generation, nothing to check) and name what differs. A kind with a status
//! gets the usual treatment here: dropped on create, kept by writes to the main resource, and the only thing that
//! writes to `status` change.

use serde_json::{Value, json};

use crate::field::FieldErrors;
use crate::meta;
use crate::resource::{Context, Derived, Part, Strategy};
use crate::table::Column;
use crate::value;

/// A column: name, type and priority. The type `name` stands for a string in the format `name`.
pub type ColumnRow = (&'static str, &'static str, i32);

/// A field for field selectors, and how to read it.
pub type Selectable = (&'static str, fn(&Value) -> String);

/// What a write to the status may change besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BesideStatus {
    /// Labels, annotations and the rest of the metadata.
    Metadata,
    /// Nothing.
    Nothing,
}

/// The rules of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Has a `status` that the main resource may not write.
    pub status: bool,
    /// What else whoever writes the status may write.
    pub beside_status: BesideStatus,
    /// See [`Strategy::default`].
    pub default: fn(&mut Value),
    /// See [`Strategy::prepare_create`]; called when the status is gone.
    pub prepare_create: fn(&mut Value, &Context<'_>),
    /// See [`Strategy::prepare_update`]; called when status (or for the status subresource the spec) is put back.
    pub prepare_update: fn(Part, &mut Value, &Value, &Context<'_>),
    /// See [`Strategy::validate`].
    pub validate: fn(&Value, &Context<'_>) -> FieldErrors,
    /// See [`Strategy::validate_update`].
    pub validate_update: fn(Part, &Value, &Value, &Context<'_>) -> FieldErrors,
    /// See [`Strategy::warnings`].
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// What makes a new generation; `None` for kinds that have none.
    pub generation: Option<fn(&Value, &Value) -> bool>,
    /// See [`Strategy::reset_fields`]; the usual ones for a kind with a status are added.
    pub reset: fn(Part) -> Vec<&'static str>,
    /// Fields for field selectors.
    pub selectable: &'static [Selectable],
    /// Fields that another form of the same stored objects is selected by.
    pub also_selectable: &'static [Selectable],
    /// See [`Strategy::check_name`].
    pub name: fn(&str, bool) -> Vec<String>,
    /// See [`Strategy::trim_row`].
    pub trim_row: fn(&mut Value),
    /// See [`Strategy::derived`].
    pub derived: Derived,
    /// See [`Strategy::create_on_update`].
    pub create_on_update: bool,
    /// See [`Strategy::unconditional_update`].
    pub unconditional_update: bool,
    /// The columns of the table form.
    pub columns: &'static [ColumnRow],
    /// The cells of the table form.
    pub cells: fn(&Value, &Context<'_>) -> Vec<Value>,
}

/// What most kinds are like.
pub const PLAIN: Rules = Rules {
    status: false,
    beside_status: BesideStatus::Metadata,
    default: |_| (),
    prepare_create: |_, _| (),
    prepare_update: |_, _, _, _| (),
    validate: |_, _| Vec::new(),
    validate_update: |_, _, _, _| Vec::new(),
    warnings: |_, _| Vec::new(),
    generation: None,
    reset: |_| Vec::new(),
    selectable: &[],
    also_selectable: &[],
    name: super::names::dns_subdomain,
    trim_row: |_| (),
    derived: Derived::Nothing,
    create_on_update: false,
    unconditional_update: true,
    columns: &[("Name", "string", 0), ("Age", "string", 0)],
    cells: |object, cx| vec![super::cells::name(object), super::cells::age(object, cx)],
};

/// The table of kinds for which the real server has no printer of its own.
pub const CREATED_AT: Rules = Rules {
    columns: &[("Name", "string", 0), ("Created At", "date", 0)],
    cells: |object, _| {
        let created = value::text(object, "metadata.creationTimestamp");
        vec![super::cells::name(object), created.into()]
    },
    ..PLAIN
};

/// For [`Rules::generation`]: the spec counts.
pub fn spec_changed(object: &Value, old: &Value) -> bool {
    value::at(object, "spec") != value::at(old, "spec")
}

/// For [`Rules::generation`]: it is 1 from creation on, and nothing raises it.
pub fn never(_object: &Value, _old: &Value) -> bool {
    false
}

/// What a write to `part` of a kind with a status leaves alone.
pub fn other_part(part: Part) -> &'static str {
    match part {
        Part::Status => "spec",
        Part::Main | Part::Scale => "status",
    }
}

/// Before update: a write to one part leaves the other as it was.
pub fn keep_other_part(part: Part, object: &mut Value, old: &Value) {
    value::copy(object, old, other_part(part));
}

impl Strategy for Rules {
    fn default(&self, object: &mut Value, _cx: &Context<'_>) {
        (self.default)(object);
    }

    fn prepare_create(&self, object: &mut Value, cx: &Context<'_>) {
        if self.status {
            // Never nothing: Go has a struct there.
            value::put(object, "status", json!({}));
        }
        (self.prepare_create)(object, cx);
    }

    fn validate(&self, object: &Value, cx: &Context<'_>) -> FieldErrors {
        (self.validate)(object, cx)
    }

    fn prepare_update(&self, part: Part, object: &mut Value, old: &Value, cx: &Context<'_>) {
        if self.beside_status == BesideStatus::Nothing && part == Part::Status {
            meta::keep_all_but_status(object, old);
        } else if self.status {
            keep_other_part(part, object, old);
        }
        (self.prepare_update)(part, object, old, cx);
    }

    fn validate_update(
        &self,
        part: Part,
        object: &Value,
        old: &Value,
        cx: &Context<'_>,
    ) -> FieldErrors {
        (self.validate_update)(part, object, old, cx)
    }

    fn warnings(&self, object: &Value, old: Option<&Value>, _cx: &Context<'_>) -> Vec<String> {
        (self.warnings)(object, old)
    }

    fn generation_changed(&self, object: &Value, old: &Value) -> bool {
        self.generation.is_some_and(|changed| changed(object, old))
    }

    fn has_generation(&self) -> bool {
        self.generation.is_some()
    }

    fn reset_fields(&self, part: Part) -> Vec<&'static str> {
        let mut fields = (self.reset)(part);
        if self.beside_status == BesideStatus::Nothing && part == Part::Status {
            fields.push("metadata");
        }
        if self.status {
            fields.push(other_part(part));
        }
        fields
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        self.selectable
            .iter()
            .chain(self.also_selectable)
            .map(|(name, read)| (*name, read(object)))
            .collect()
    }

    fn selectable_names(&self) -> Vec<String> {
        self.selectable
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect()
    }

    fn check_name(&self, name: &str, prefix: bool) -> Vec<String> {
        (self.name)(name, prefix)
    }

    fn trim_row(&self, shown: &mut Value) {
        (self.trim_row)(shown);
    }

    fn derived(&self) -> Derived {
        self.derived
    }

    fn create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn unconditional_update(&self) -> bool {
        self.unconditional_update
    }

    fn columns(&self, _version: &str) -> Vec<Column> {
        self.columns
            .iter()
            .map(|(name, kind, priority)| match *kind {
                "name" => Column {
                    format: "name".to_owned(),
                    ..Column::new(name, "string", *priority)
                },
                kind => Column::new(name, kind, *priority),
            })
            .collect()
    }

    fn cells(&self, object: &Value, cx: &Context<'_>) -> Vec<Value> {
        (self.cells)(object, cx)
    }
}
