//! Writes the table: one line a package, type or field. `crates/apiserver/src/schema/table.rs` reads it and
//! says what the words mean.

mod numbers;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::documents::{self, Schemas, reference};
use super::golang::{Declaration, Field, Sources, Type};

/// Kinds that belong to every group, or to a request rather than a resource.
const ALSO: &[&str] = &[
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
];

/// Types with a JSON form of their own, and the letter that stands for each.
const SPECIAL: &[(&str, &str)] = &[
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "q"),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "x"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "t"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "m"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", "r"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "f"),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "j",
    ),
];

/// The whole table.
pub(super) fn table(version: &str, schemas: &Schemas, go: &mut Sources) -> Result<String> {
    let mut writer = Writer { schemas, go };
    let mut sections: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for name in reachable(schemas) {
        let (package, short) = name.rsplit_once('.').context("a name without package")?;
        let text = writer.type_(name, package, short)?;
        sections.entry(package).or_default().push((short, text));
    }
    let mut out = format!(
        "# Made by `cargo xtask generate` from the OpenAPI documents and Go types of k8s.io/kubernetes {version}; do not edit.\n"
    );
    for (package, types) in &sections {
        let go_name = package.rsplit('.').next().unwrap_or_default();
        writeln!(out, "package {} {package} {go_name}", alias(package))?;
        for (_, text) in types {
            out.push_str(text);
        }
    }
    Ok(out)
}

/// The names of all schemas that the wanted kinds are made of.
fn reachable(schemas: &Schemas) -> BTreeSet<&str> {
    let mut waiting: Vec<&str> = ALSO.to_vec();
    for (name, schema) in schemas {
        let kind = documents::kind(schema).map(|(_, _, kind)| kind);
        if kind.is_some_and(|kind| !kind.ends_with("List")) {
            waiting.push(name);
        }
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if special(name).is_some() || !seen.insert(name) {
            continue;
        }
        if let Some(schema) = schemas.get(name) {
            references(schema, &mut waiting);
        }
        if let Some(inner) = either(name) {
            waiting.push(inner);
        }
    }
    seen
}

fn references<'a>(schema: &'a Value, out: &mut Vec<&'a str>) {
    out.extend(reference(schema));
    match schema {
        Value::Object(map) => map.values().for_each(|v| references(v, out)),
        Value::Array(items) => items.iter().for_each(|v| references(v, out)),
        _ => {}
    }
}

fn special(name: &str) -> Option<&'static str> {
    SPECIAL
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, code)| *code)
}

/// For a type that is either a schema or something else, the name of the schema.
fn either(name: &str) -> Option<&str> {
    let at = name.find("JSONSchemaPropsOr")?;
    name.get(..at + "JSONSchemaProps".len())
}

/// `core.v1` for `io.k8s.api.core.v1`.
fn alias(package: &str) -> String {
    let mut parts = package.rsplit('.');
    let last = parts.next().unwrap_or_default();
    format!("{}.{last}", parts.next().unwrap_or_default())
}

/// `k8s.io/api/core/v1` for `io.k8s.api.core.v1`.
fn import_path(package: &str) -> String {
    let below = package.trim_start_matches("io.k8s.").replace('.', "/");
    format!("k8s.io/{below}")
}

/// How Go holds a value, as far as leaving it out goes.
#[derive(PartialEq)]
enum Holding {
    /// A pointer, slice, map, or a struct that is written as `null` when empty.
    Nil,
    Scalar,
    Struct,
}

struct Writer<'a> {
    schemas: &'a Schemas,
    go: &'a mut Sources,
}

impl Writer<'_> {
    fn type_(&mut self, name: &str, package: &str, short: &str) -> Result<String> {
        let schema = self
            .schemas
            .get(name)
            .with_context(|| format!("no schema {name}"))?;
        let mut out = format!("type {short}");
        if let Some((group, version, kind)) = documents::kind(schema) {
            write!(out, " gvk={group}/{version}/{kind}")?;
        }
        if text(schema, "x-kubernetes-map-type") == "atomic" {
            out.push_str(" atomic");
        }
        if let Some(inner) = either(name) {
            write!(
                out,
                " either={}",
                inner.rsplit('.').next().unwrap_or_default()
            )?;
        }
        out.push('\n');
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(out);
        };
        let mut held = BTreeMap::new();
        self.check_numbers(&import_path(package), short)?;
        for (through, field) in self.go.fields(&import_path(package), short)? {
            held.insert(field.json_name.clone(), (through, field));
        }
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        for (property, schema) in properties {
            let (through, field) = held
                .get(property)
                .with_context(|| format!("{name} has no Go field for {property}"))?;
            let line = self
                .field(
                    schema,
                    through,
                    field,
                    required.contains(&property.as_str()),
                )
                .with_context(|| format!("{name}.{property}"))?;
            writeln!(out, " {property} {line}")?;
        }
        Ok(out)
    }

    fn field(
        &mut self,
        schema: &Value,
        through: &[String],
        field: &Field,
        required: bool,
    ) -> Result<String> {
        let mut out = self.expression(schema, &field.ty)?;
        out.push_str(&self.numbers(field)?);
        if required {
            out.push_str(" !");
        }
        let presence = self.presence(field)?;
        out.push_str(presence);
        match text(schema, "x-kubernetes-list-type") {
            "set" => out.push_str(" set"),
            "map" => {
                let keys: Vec<&str> = schema
                    .get("x-kubernetes-list-map-keys")
                    .and_then(Value::as_array)
                    .map(|keys| keys.iter().filter_map(Value::as_str).collect())
                    .unwrap_or_default();
                write!(out, " map={}", keys.join(","))?;
            }
            _ => {}
        }
        if let word @ ("atomic" | "granular") = text(schema, "x-kubernetes-map-type") {
            write!(out, " {word}")?;
        }
        for (word, key) in [
            ("patch", "x-kubernetes-patch-strategy"),
            ("key", "x-kubernetes-patch-merge-key"),
        ] {
            if let value @ [_, ..] = text(schema, key).as_bytes() {
                write!(out, " {word}={}", String::from_utf8_lossy(value))?;
            }
        }
        if !through.is_empty() {
            let through = through.join(".");
            if through != "TypeMeta" {
                write!(out, " in={through}")?;
            }
        }
        // Where a field is always written, its zero value goes without saying.
        let implied = |default: &&Value| presence == " a" && is_zero(default);
        if let Some(default) = schema.get("default").filter(|d| !implied(d)) {
            write!(out, " default={default}")?;
        }
        Ok(out)
    }

    /// The word for when Go writes the field.
    fn presence(&mut self, field: &Field) -> Result<&'static str> {
        let holding = self.holding(&field.ty)?;
        Ok(match (holding, field.omit_zero, field.omit_empty) {
            (Holding::Nil, false, false) => " n",
            // A struct is never empty, so that `omitempty` says nothing of it.
            (Holding::Struct, false, _) | (Holding::Scalar, false, false) => " a",
            (Holding::Scalar, _, _) | (Holding::Struct, true, _) => " z",
            (Holding::Nil, _, _) => match &field.ty {
                // Held as a struct that is written as `null`, whatever the tag says.
                Type::Named(..) if !field.omit_zero && self.is_struct(&field.ty)? => " n",
                _ => "",
            },
        })
    }

    fn is_struct(&mut self, ty: &Type) -> Result<bool> {
        let Type::Named(package, name) = self.go.follow_aliases(ty)? else {
            return Ok(false);
        };
        Ok(matches!(
            self.go.find(&package, &name)?,
            Some(Declaration::Struct(_))
        ))
    }

    fn holding(&mut self, ty: &Type) -> Result<Holding> {
        let ty = self.go.follow_aliases(ty)?;
        Ok(match &ty {
            Type::Pointer(_) | Type::Slice(_) | Type::Map(..) => Holding::Nil,
            Type::Basic(_) => Holding::Scalar,
            Type::Named(_, name)
                if ["Time", "MicroTime", "RawExtension", "JSON"].contains(&name.as_str()) =>
            {
                Holding::Nil
            }
            Type::Named(package, name) => match self.go.find(package, name)? {
                Some(Declaration::Struct(_)) => Holding::Struct,
                Some(Declaration::Defined(to) | Declaration::Alias(to)) => self.holding(&to)?,
                None => bail!("no type {name} in {package}"),
            },
        })
    }

    /// The type with names taken off until its form shows.
    fn underlying(&mut self, ty: &Type) -> Result<Type> {
        let mut ty = self.go.follow_aliases(ty)?;
        while let Type::Named(package, name) = &ty {
            match self.go.find(package, name)? {
                Some(Declaration::Defined(to)) => ty = self.go.follow_aliases(&to)?,
                _ => break,
            }
        }
        Ok(ty)
    }

    /// The word for a type.
    fn expression(&mut self, schema: &Value, ty: &Type) -> Result<String> {
        let mut ty = self.go.follow_aliases(ty)?;
        while let Type::Pointer(to) = ty {
            ty = self.go.follow_aliases(&to)?;
        }
        if let Some(name) = reference(schema) {
            let (package, short) = name.rsplit_once('.').context("a name without package")?;
            return Ok(special(name)
                .map_or_else(|| format!("@{}.{short}", alias(package)), ToOwned::to_owned));
        }
        let shown = ty.show();
        let underlying = self.underlying(&ty)?;
        let (code, plain) = match (text(schema, "type"), text(schema, "format"), &underlying) {
            ("array", _, Type::Slice(of)) => {
                let items = schema.get("items").context("a list without items")?;
                let inner = self.expression(items, of)?;
                let plain = format!("[]{}", of.show());
                let named = if shown == plain { "" } else { &shown };
                return Ok(format!("[{named}]{inner}"));
            }
            ("object", _, Type::Map(key, of)) => {
                let values = schema
                    .get("additionalProperties")
                    .context("a map without values")?;
                let inner = self.expression(values, of)?;
                let plain = format!("map[string]{}", of.show());
                let named = if key.show() == "string" && shown == plain {
                    ""
                } else {
                    &shown
                };
                return Ok(format!("{{{}}}{inner}", named.replace(['[', ']'], "|")));
            }
            ("string", "byte", _) => ("y", "[]uint8"),
            ("string", _, _) => ("s", "string"),
            ("boolean", _, _) => ("b", "bool"),
            ("integer", "int32", _) => ("i", "int32"),
            ("integer", "int64", _) => ("l", "int64"),
            ("number", _, _) => ("d", "float64"),
            (other, format, ty) => bail!("{other} {format} is held as {ty:?}"),
        };
        let named = if shown == plain {
            String::new()
        } else {
            format!(":{shown}")
        };
        Ok(format!("{code}{named}"))
    }
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a default is the zero value.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(flag) => !flag,
        Value::Null | Value::Array(_) => false,
    }
}
