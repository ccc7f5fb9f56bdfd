//! What the query says about a request: how to list, watch, write and delete.

use serde_json::Value;

use crate::field::{self, Fault, FieldError};
use crate::route::Query;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::{Outcome, Status};
use crate::value;

/// How to list or watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListOptions {
    /// Which labels.
    pub labels: LabelSelector,
    /// Which fields.
    pub fields: FieldSelector,
    /// At most so many; 0 for all.
    pub limit: usize,
    /// Where the last page ended.
    pub continue_token: Option<String>,
    /// `resourceVersion`; none where it is absent or empty.
    pub version: Option<u64>,
    /// `resourceVersionMatch`.
    pub version_match: Option<VersionMatch>,
    /// `watch`.
    pub watch: bool,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `sendInitialEvents`.
    pub initial_events: Option<bool>,
    /// `timeoutSeconds`.
    pub timeout_seconds: Option<u64>,
}

/// How `resourceVersion` is meant in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    /// At least as new.
    NotOlderThan,
    /// Exactly that one.
    Exact,
}

fn is_true(query: &Query, name: &str) -> bool {
    // As in the API machinery: a parameter that is there without value, or with any value but these, is true.
    query.has(name)
        && query
            .all(name)
            .next()
            .is_some_and(|v| !matches!(v, "0" | "false"))
}

impl ListOptions {
    /// Reads and checks them.
    pub(crate) fn parse(query: &Query, watch_prefix: bool) -> Outcome<Self> {
        let number = |name: &str| match query.get(name) {
            None => Ok(None),
            Some(text) => text.parse::<i64>().map(Some).map_err(|_| {
                let why = if text.chars().all(|c| c.is_ascii_digit()) {
                    "value out of range"
                } else {
                    "invalid syntax"
                };
                Box::new(Status::bad_request(format!(
                    "strconv.ParseInt: parsing {}: {why}",
                    field::quote(text)
                )))
            }),
        };
        let limit = number("limit")?.unwrap_or(0);
        let timeout = number("timeoutSeconds")?;
        let options = Self {
            labels: LabelSelector::parse(query.get("labelSelector").unwrap_or_default())?,
            fields: FieldSelector::parse(query.get("fieldSelector").unwrap_or_default())?,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.get("continue").map(str::to_owned),
            version: None,
            version_match: None,
            watch: watch_prefix || is_true(query, "watch"),
            bookmarks: is_true(query, "allowWatchBookmarks"),
            initial_events: query
                .has("sendInitialEvents")
                .then(|| is_true(query, "sendInitialEvents")),
            timeout_seconds: timeout.and_then(|t| u64::try_from(t).ok()),
        };
        options.with_version(query)
    }

    fn with_version(mut self, query: &Query) -> Outcome<Self> {
        let version = query.get("resourceVersion");
        let matching = query.get("resourceVersionMatch");
        let errors = if self.watch {
            self.watch_errors(matching)
        } else {
            self.list_errors(version, matching)
        };
        if !errors.is_empty() {
            return Err(Box::new(field::invalid(
                "meta.k8s.io",
                "ListOptions",
                "",
                &errors,
            )));
        }
        self.version_match = match matching {
            Some("Exact") => Some(VersionMatch::Exact),
            Some(_) => Some(VersionMatch::NotOlderThan),
            None => None,
        };
        if !self.watch && self.continue_token.is_some() && version.is_some_and(|v| v != "0") {
            return Err(Box::new(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            )));
        }
        self.version = match version {
            Some(text) if self.watch => Some(parse_exact_version(text)?),
            other => parse_version(other)?,
        };
        Ok(self)
    }

    fn watch_errors(&self, matching: Option<&str>) -> Vec<FieldError> {
        let path = "resourceVersionMatch";
        let mut errors = Vec::new();
        if self.initial_events.is_some() && matching != Some("NotOlderThan") {
            errors.push(FieldError::forbidden(
                path,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if self.continue_token.is_some() {
            errors.push(FieldError::forbidden(path, MATCH_WITH_CONTINUE));
        }
        let Some(text) = matching else { return errors };
        if self.initial_events.is_none() {
            errors.push(FieldError::forbidden(
                path,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if text != "NotOlderThan" {
            errors.push(FieldError::not_supported(
                path,
                &Value::from(text),
                &["NotOlderThan"],
            ));
        }
        errors
    }

    fn list_errors(&self, version: Option<&str>, matching: Option<&str>) -> Vec<FieldError> {
        let path = "resourceVersionMatch";
        let mut errors = Vec::new();
        if let Some(text) = matching {
            if version.is_none() {
                errors.push(FieldError::forbidden(
                    path,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if self.continue_token.is_some() {
                errors.push(FieldError::forbidden(path, MATCH_WITH_CONTINUE));
            }
            if !matches!(text, "Exact" | "NotOlderThan") {
                errors.push(FieldError::not_supported(
                    path,
                    &Value::from(text),
                    &["Exact", "NotOlderThan", ""],
                ));
            }
            if text == "Exact" && version == Some("0") {
                errors.push(FieldError::forbidden(
                    path,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }
}

const MATCH_WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

/// A number without sign, or why it is none, as Go says it.
pub(crate) fn parse_uint(text: &str) -> Result<u64, String> {
    let why = match text.parse() {
        Ok(number) if !text.starts_with('+') => return Ok(number),
        Err(error)
            if *error.kind() == std::num::IntErrorKind::PosOverflow && !text.starts_with('+') =>
        {
            "value out of range"
        }
        _ => "invalid syntax",
    };
    Err(format!(
        "strconv.ParseUint: parsing {}: {why}",
        field::quote(text)
    ))
}

/// A resource version, or why it is none.
fn parse_text(text: &str) -> Result<u64, String> {
    let quoted = field::quote(text);
    parse_uint(text).map_err(|why| format!("resourceVersion: Invalid value: {quoted}: {why}"))
}

/// A resource version in a get or watch, where the real server does not make a bad request of a bad one.
pub(crate) fn parse_exact_version(text: &str) -> Outcome<u64> {
    parse_text(text).map_err(|why| Box::new(Status::failure(500, "", why)))
}

/// A resource version as text.
pub(crate) fn parse_version(text: Option<&str>) -> Outcome<Option<u64>> {
    let parsed = text.map(parse_text).transpose();
    parsed.map_err(|why| {
        Box::new(Status::bad_request(format!(
            "invalid resource version: {why}"
        )))
    })
}

/// What a write says besides its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Nothing is persisted.
    pub dry_run: bool,
    /// Who owns the written fields; empty for "by user agent".
    pub field_manager: String,
    /// `force`, for apply.
    pub force: Option<bool>,
}

impl WriteOptions {
    /// Reads and checks them. `kind` is the options' kind in messages: `CreateOptions`, `UpdateOptions`, …
    pub(crate) fn parse(query: &Query, kind: &str) -> Outcome<Self> {
        Ok(Self {
            dry_run: dry_run(&query.all("dryRun").collect::<Vec<_>>(), kind)?,
            field_manager: query.get("fieldManager").unwrap_or_default().to_owned(),
            force: query.has("force").then(|| is_true(query, "force")),
        })
    }
}

/// Judges the values of `dryRun`.
fn dry_run(values: &[&str], kind: &str) -> Outcome<bool> {
    match dry_run_error(values) {
        None => Ok(!values.is_empty()),
        Some(error) => Err(Box::new(field::invalid("meta.k8s.io", kind, "", &[error]))),
    }
}

fn dry_run_error(values: &[&str]) -> Option<FieldError> {
    if values.iter().all(|value| *value == "All") {
        return None;
    }
    let shown = Value::from(values.to_vec());
    Some(FieldError::not_supported("dryRun", &shown, &["All"]))
}

/// How to delete.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    /// Nothing is persisted.
    pub dry_run: bool,
    /// `gracePeriodSeconds`.
    pub grace_seconds: Option<i64>,
    /// `propagationPolicy`.
    pub propagation: Option<Propagation>,
    /// `orphanDependents`, the older form.
    pub orphan_dependents: Option<bool>,
    /// The uid the object must have.
    pub uid: Option<String>,
    /// The resource version the object must have.
    pub version: Option<String>,
}

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They lose this owner.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted before.
    Foreground,
}

impl Propagation {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "Orphan" => Some(Self::Orphan),
            "Background" => Some(Self::Background),
            "Foreground" => Some(Self::Foreground),
            _ => None,
        }
    }
}

/// The parts of delete options that can be wrong, as they were sent.
struct Asked<'a> {
    dry_run: Vec<&'a str>,
    propagation: Option<&'a str>,
    orphan_dependents: bool,
}

impl Asked<'_> {
    fn errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let path = "propagationPolicy";
        if let Some(policy) = self.propagation {
            if self.orphan_dependents {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError {
                    fault: Fault::Invalid,
                    path: path.to_owned(),
                    shown: field::show_json(&policy.into()),
                    detail: detail.to_owned(),
                });
            }
            if Propagation::parse(policy).is_none() {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(path, &policy.into(), &known));
            }
        }
        errors.extend(dry_run_error(&self.dry_run));
        errors
    }
}

impl DeleteOptions {
    /// From the body if there is one, else from the query, as the real server does.
    pub(crate) fn parse(query: &Query, body: Option<&Value>) -> Outcome<Self> {
        match body {
            Some(body) => Self::from_body(body),
            None => Self::from_query(query),
        }
    }

    fn from_query(query: &Query) -> Outcome<Self> {
        let grace_seconds = match query.get("gracePeriodSeconds") {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| {
                Status::bad_request(format!(
                    "strconv.ParseInt: parsing {}: invalid syntax",
                    field::quote(text)
                ))
            })?),
        };
        let options = Self {
            grace_seconds,
            orphan_dependents: query
                .has("orphanDependents")
                .then(|| is_true(query, "orphanDependents")),
            ..Self::default()
        };
        options.judged(&Asked {
            dry_run: query.all("dryRun").collect(),
            propagation: query.all("propagationPolicy").next(),
            orphan_dependents: query.has("orphanDependents"),
        })
    }

    fn from_body(body: &Value) -> Outcome<Self> {
        let owned = |path: &str| {
            value::at(body, path)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let options = Self {
            grace_seconds: value::integer(body, "gracePeriodSeconds"),
            orphan_dependents: value::at(body, "orphanDependents").and_then(Value::as_bool),
            uid: owned("preconditions.uid"),
            version: owned("preconditions.resourceVersion"),
            ..Self::default()
        };
        let orphan_dependents = options.orphan_dependents.is_some();
        options.judged(&Asked {
            dry_run: value::items(body, "dryRun")
                .iter()
                .filter_map(Value::as_str)
                .collect(),
            propagation: value::at(body, "propagationPolicy").and_then(Value::as_str),
            orphan_dependents,
        })
    }

    /// With what was asked, unless that is wrong.
    fn judged(mut self, asked: &Asked<'_>) -> Outcome<Self> {
        let errors = asked.errors();
        if !errors.is_empty() {
            return Err(Box::new(field::invalid(
                "meta.k8s.io",
                "DeleteOptions",
                "",
                &errors,
            )));
        }
        self.dry_run = !asked.dry_run.is_empty();
        self.propagation = asked.propagation.and_then(Propagation::parse);
        Ok(self)
    }
}
