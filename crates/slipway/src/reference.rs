//! Pages of the reference that are made from the program itself, so that they cannot be wrong. Pure.

use std::fmt::Write as _;

use serde_json::Value;
use slipway_kernel::capability::Profile;
use slipway_kernel::permission::{Permission, Scope};

const MADE: &str = "<!-- Made by `cargo xtask generate`; edit the sources instead. -->\n";

/// The command line: the help of every command.
pub(crate) fn command_line(mut root: clap::Command) -> String {
    let mut page = format!("{MADE}\n# Command line\n");
    root.build();
    section(&mut root, "slipway", &mut page);
    page
}

fn section(command: &mut clap::Command, path: &str, page: &mut String) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let _ = write!(page, "\n## {path}\n\n```text\n{}\n```\n", lines.join("\n"));
    let below: Vec<String> = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
        .map(|sub| sub.get_name().to_owned())
        .collect();
    for name in below {
        if let Some(sub) = command.find_subcommand_mut(&name) {
            section(sub, &format!("{path} {name}"), page);
        }
    }
}

/// Why each capability may wait.
pub(crate) fn reasons(profiles: &[&Profile]) -> String {
    let mut page = format!(
        "{MADE}\n# Reasons\n\nWhy nothing, or not more, is done: the same word in `waitingFor` of a status, in events, in \
         metrics and in the log, each time with a message, since when, until when if that is known, and who can end it.\n"
    );
    for profile in profiles
        .iter()
        .filter(|profile| !profile.reasons.is_empty())
    {
        let name = profile.name;
        let _ = write!(page, "\n## {name}\n\n| reason | meaning |\n|---|---|\n");
        for (reason, meaning) in profile.reasons {
            let _ = writeln!(page, "| `{reason}` | {} |", cell(meaning));
        }
    }
    page
}

/// What the operator may do, and what for.
pub(crate) fn permissions(table: &[Permission]) -> String {
    let mut page = format!(
        "{MADE}\n# Permissions\n\nThe operator runs under exactly these rights (`slipway manifests` grants them). Where one \
         is missing, what it is for is off, which is logged once; nothing crashes.\n\n| where | group | resource | verbs | only | what for |\n\
         |---|---|---|---|---|---|\n"
    );
    for line in table {
        let place = match line.scope {
            Scope::Watched => "watched namespaces",
            Scope::Own => "its own namespace",
            Scope::Cluster => "the cluster",
        };
        let group = if line.group.is_empty() {
            "core"
        } else {
            line.group
        };
        let _ = writeln!(
            page,
            "| {place} | {group} | {} | {} | {} | {} |",
            line.resource,
            line.verbs.join(", "),
            line.names.join(", "),
            cell(line.why)
        );
    }
    page
}

/// A kind, field by field, from its definition.
pub(crate) fn kind(definition: &Value) -> String {
    let name = text(definition, "/spec/names/kind");
    let mut page = format!(
        "{MADE}\n# {name}\n\n`{}`",
        text(definition, "/metadata/name")
    );
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    for version in versions.into_iter().flatten() {
        let _ = write!(page, ", version `{}`.", text(version, "/name"));
        let schema = version
            .pointer("/schema/openAPIV3Schema")
            .unwrap_or(&Value::Null);
        let _ = writeln!(page, " {}", text(schema, "/description"));
        for part in ["spec", "status"] {
            let _ = write!(
                page,
                "\n## {part}\n\n| field | type | what it means |\n|---|---|---|\n"
            );
            let schema = schema
                .pointer(&format!("/properties/{part}"))
                .unwrap_or(&Value::Null);
            fields(schema, part, &mut page);
        }
        let _ = write!(
            page,
            "\n## Columns of `kubectl get`\n\n| column | from | only with `-o wide` |\n|---|---|---|\n"
        );
        let columns = version
            .pointer("/additionalPrinterColumns")
            .and_then(Value::as_array);
        for column in columns.into_iter().flatten() {
            let wide = column
                .pointer("/priority")
                .and_then(Value::as_i64)
                .unwrap_or_default()
                > 0;
            let wide = if wide { "yes" } else { "" };
            let path = cell(&text(column, "/jsonPath"));
            let _ = writeln!(page, "| {} | `{path}` | {wide} |", text(column, "/name"));
        }
    }
    page
}

fn fields(schema: &Value, path: &str, page: &mut String) {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let path = format!("{path}.{name}");
        let items = property.get("items");
        let shown = match items {
            Some(items) => format!("list of {}", type_of(items)),
            None => type_of(property),
        };
        let must = if required.contains(&name.as_str()) {
            ", required"
        } else {
            ""
        };
        let about = cell(&text(property, "/description"));
        let _ = writeln!(page, "| `{path}` | {shown}{must} | {about} |");
        // Conditions and times are known from elsewhere.
        match items {
            Some(_) if name == "conditions" => {}
            Some(items) => fields(items, &format!("{path}[]"), page),
            None => fields(property, &path, page),
        }
    }
}

fn type_of(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        let options: Vec<String> = options
            .iter()
            .filter_map(Value::as_str)
            .map(|o| format!("`{o}`"))
            .collect();
        return options.join(" or ");
    }
    let kind = text(schema, "/type");
    match text(schema, "/format").as_str() {
        "date-time" => "time".to_owned(),
        "duration" => "duration".to_owned(),
        _ if schema.get("additionalProperties").is_some() => "map of strings".to_owned(),
        _ => kind,
    }
}

fn text(value: &Value, path: &str) -> String {
    value
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Text that fits into a cell of a table.
fn cell(text: &str) -> String {
    let one_line: Vec<&str> = text.split_whitespace().collect();
    one_line.join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_not_hidden_has_its_help() {
        let page = command_line(crate::registry::Registry::default().command());
        for command in [
            "slipway demo",
            "slipway run",
            "slipway apiserver",
            "slipway crds",
            "slipway manifests",
        ] {
            assert!(page.contains(&format!("\n## {command}\n")), "{command}");
        }
        assert!(
            page.contains("--restarts-default-criteria") && !page.contains("slipway reference")
        );
    }

    #[test]
    fn every_field_of_a_kind_is_explained() {
        let definition = serde_json::to_value(slipway_api::flipper::definition()).unwrap();
        let page = kind(&definition);
        assert!(page.contains("| `spec.interval` | duration |"), "{page}");
        assert!(
            page.contains("| `spec.windows[].cron` | string, required |"),
            "{page}"
        );
        let unexplained: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `spec") && line.ends_with("|  |"))
            .collect();
        assert!(unexplained.is_empty(), "{unexplained:?}");
    }
}
