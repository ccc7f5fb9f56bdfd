//! Writes the table of field numbers: one line a message or field. `crates/apiserver/src/decode/protobuf/table.rs`
//! reads it and says what the words mean.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

use super::documents::Schemas;
use super::golang::{Declaration, Sources, Type};
use super::write;

/// Messages with a JSON form of their own, and the letter that stands for each.
const SPECIAL: &[(&str, &str)] = &[
    ("k8s.io.apimachinery.pkg.api.resource.Quantity", "q"),
    ("k8s.io.apimachinery.pkg.util.intstr.IntOrString", "x"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.Time", "t"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime", "m"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1", "r"),
    ("k8s.io.apimachinery.pkg.runtime.RawExtension", "r"),
    (
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON",
        "r",
    ),
];

/// One field of a message.
struct Field {
    number: u32,
    name: String,
    /// `[]` for many, `{}` for a map by text, or nothing.
    label: &'static str,
    /// A scalar, or a message by its full name.
    ty: String,
}

/// The messages of one package by name.
type Messages = BTreeMap<String, Vec<Field>>;

/// The whole table.
pub(super) fn table(version: &str, schemas: &Schemas, go: &mut Sources) -> Result<String> {
    let mut packages: BTreeMap<String, Messages> = BTreeMap::new();
    let mut waiting: Vec<String> = write::reachable(schemas)
        .into_iter()
        .map(message_name)
        .collect();
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if scalar(&name).is_some() || !seen.insert(name.clone()) {
            continue;
        }
        let (package, short) = name.rsplit_once('.').context("a message without package")?;
        if !packages.contains_key(package) {
            packages.insert(package.to_owned(), read(package, go)?);
        }
        // What OpenAPI names but protobuf does not (a list of words, say) stands where it is used.
        let Some(fields) = packages.get(package).and_then(|all| all.get(short)) else {
            continue;
        };
        let text = message(&name, fields, go)?;
        lines.insert(alias(&name), text);
        waiting.extend(fields.iter().map(|field| field.ty.clone()));
    }
    let mut out = format!(
        "# Made by `cargo xtask generate` from the protobuf declarations and Go types of k8s.io/kubernetes {version}; do not edit.\n"
    );
    for text in lines.values() {
        out.push_str(text);
    }
    Ok(out)
}

/// One message; nothing for one that is written in its own way wherever it stands.
fn message(name: &str, fields: &[Field], go: &mut Sources) -> Result<String> {
    let (package, short) = name.rsplit_once('.').context("a message without package")?;
    let declared = go.find(&import_path(package), short)?;
    if is_words(declared.as_ref()) {
        return Ok(String::new());
    }
    let Some(Declaration::Struct(held)) = declared else {
        bail!("no struct {name}")
    };
    let either = if write::either(name).is_some() {
        " either"
    } else {
        ""
    };
    let mut out = format!("message {}{either}\n", alias(name));
    for field in fields {
        let json = match held.iter().find(|h| h.number == Some(field.number)) {
            Some(held) if held.inline => "^",
            Some(held) => &held.json_name,
            // These are read as a whole, by type; the names only tell them apart.
            None if !either.is_empty() => &field.name,
            None => continue,
        };
        let ty = expression(&field.ty, go).with_context(|| format!("{name}.{}", field.name))?;
        writeln!(out, " {} {json} {}{ty}", field.number, field.label)?;
    }
    Ok(out)
}

/// The word that stands for a type.
fn expression(ty: &str, go: &mut Sources) -> Result<String> {
    if let Some(letter) = scalar(ty) {
        return Ok(letter.to_owned());
    }
    let (package, short) = ty.rsplit_once('.').context("a message without package")?;
    if is_words(go.find(&import_path(package), short)?.as_ref()) {
        return Ok("w".to_owned());
    }
    Ok(format!("@{}", alias(ty)))
}

/// Whether Go has a list of words where protobuf has a message.
fn is_words(declared: Option<&Declaration>) -> bool {
    matches!(declared, Some(Declaration::Defined(Type::Slice(of))) if **of == Type::Basic("string".to_owned()))
}

fn scalar(ty: &str) -> Option<&'static str> {
    Some(match ty {
        "string" => "s",
        "int32" | "int64" | "uint32" | "uint64" => "i",
        "bool" => "b",
        "double" => "d",
        "bytes" => "y",
        _ => {
            return SPECIAL
                .iter()
                .find(|(name, _)| *name == ty)
                .map(|(_, letter)| *letter);
        }
    })
}

/// `k8s.io.api.core.v1.Pod` for `io.k8s.api.core.v1.Pod`.
fn message_name(openapi: &str) -> String {
    format!("k8s.io.{}", openapi.trim_start_matches("io.k8s.")).replace('-', "_")
}

/// `k8s.io/api/core/v1` for `k8s.io.api.core.v1`.
fn import_path(package: &str) -> String {
    let below = package.trim_start_matches("k8s.io.").replace('.', "/");
    format!("k8s.io/{}", below.replace('_', "-"))
}

/// `core.v1.Pod` for `k8s.io.api.core.v1.Pod`.
fn alias(name: &str) -> String {
    let mut parts: Vec<&str> = name.rsplit('.').take(3).collect();
    parts.reverse();
    parts.join(".")
}

/// The messages that a package declares in its `generated.proto`.
fn read(package: &str, go: &Sources) -> Result<Messages> {
    let path = import_path(package);
    let folder = go
        .folder(&path)
        .with_context(|| format!("{path} is in no known module"))?;
    let file = folder.join("generated.proto");
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let mut all = Messages::new();
    let mut current: Option<(String, Vec<Field>)> = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("message ") {
            let name = rest.trim_end_matches('{').trim();
            current = Some((name.to_owned(), Vec::new()));
        } else if line == "}" {
            all.extend(current.take());
        } else if let Some((_, fields)) = &mut current
            && !line.starts_with("//")
            && let Some(field) = field(line, package)
        {
            fields.push(field);
        }
    }
    Ok(all)
}

/// `optional .k8s.io.api.core.v1.PodSpec spec = 2;` or `map<string, string> labels = 11;`.
fn field(line: &str, package: &str) -> Option<Field> {
    let (label, rest) = if let Some(rest) = line.strip_prefix("optional ") {
        ("", rest)
    } else if let Some(rest) = line.strip_prefix("repeated ") {
        ("[]", rest)
    } else {
        ("{}", line.strip_prefix("map<string, ")?)
    };
    let mut words = rest.split_whitespace();
    let ty = words.next()?.trim_end_matches('>');
    let name = words.next()?;
    let number = words.nth(1)?.trim_end_matches(';').parse().ok()?;
    let ty = match ty.strip_prefix('.') {
        Some(full) => full.to_owned(),
        None if ty.starts_with(char::is_uppercase) => format!("{package}.{ty}"),
        None => ty.to_owned(),
    };
    Some(Field {
        number,
        name: name.to_owned(),
        label,
        ty,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn fields_are_read() {
        let line = "map<string, .k8s.io.apimachinery.pkg.api.resource.Quantity> limits = 1;";
        let limits = field(line, "k8s.io.api.core.v1").unwrap();
        assert_eq!((limits.label, limits.number), ("{}", 1));
        assert_eq!(scalar(&limits.ty), Some("q"));
        let spec = field("optional PodSpec spec = 2;", "k8s.io.api.core.v1").unwrap();
        assert_eq!(alias(&spec.ty), "core.v1.PodSpec");
    }
}
