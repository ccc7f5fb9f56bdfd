//! What the query says about a request: how to list, watch, write and delete.

use serde_json::Value;

use crate::field::{self, FieldError};
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

/// A resource version in a get or watch, where the real server does not make a bad request of a bad one.
pub(crate) fn parse_exact_version(text: &str) -> Outcome<u64> {
    text.parse().map_err(|_| {
        let quoted = field::quote(text);
        let why = format!("resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: invalid syntax");
        Box::new(Status::failure(500, "", why))
    })
}

/// A resource version as text.
pub(crate) fn parse_version(text: Option<&str>) -> Outcome<Option<u64>> {
    match text {
        None => Ok(None),
        Some(text) => text
            .parse()
            .map(Some)
            .map_err(|_| Box::new(Status::bad_request(format!("invalid resource version: resourceVersion: Invalid value: {0}: strconv.ParseUint: parsing {0}: invalid syntax", field::quote(text))))),
    }
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
    if values.is_empty() || values == [""] {
        return Ok(false);
    }
    if values.iter().all(|value| *value == "All") {
        return Ok(true);
    }
    let shown = Value::Array(
        values
            .iter()
            .map(|v| Value::String((*v).to_owned()))
            .collect(),
    );
    let error = FieldError::not_supported("dryRun", &shown, &["All"]);
    Err(Box::new(field::invalid("meta.k8s.io", kind, "", &[error])))
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
    fn name(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

impl DeleteOptions {
    /// From the body if there is one, else from the query, as the real server does.
    pub(crate) fn parse(query: &Query, body: Option<&Value>) -> Outcome<Self> {
        let options = match body {
            Some(body) => Self::from_body(body)?,
            None => Self::from_query(query)?,
        };
        if options.propagation.is_some() && options.orphan_dependents.is_some() {
            return Err(Box::new(field::invalid(
                "meta.k8s.io",
                "DeleteOptions",
                "",
                &[FieldError::invalid_str(
                    "propagationPolicy",
                    options.propagation.map_or("", Propagation::name),
                    "orphanDependents and deletionPropagation cannot be both set",
                )],
            )));
        }
        Ok(options)
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
        Ok(Self {
            dry_run: dry_run(&query.all("dryRun").collect::<Vec<_>>(), "DeleteOptions")?,
            grace_seconds,
            propagation: query
                .get("propagationPolicy")
                .map(propagation)
                .transpose()?,
            orphan_dependents: query
                .has("orphanDependents")
                .then(|| is_true(query, "orphanDependents")),
            uid: None,
            version: None,
        })
    }

    fn from_body(body: &Value) -> Outcome<Self> {
        let values: Vec<&str> = value::items(body, "dryRun")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let policy = value::at(body, "propagationPolicy").and_then(Value::as_str);
        let owned = |path: &str| {
            value::at(body, path)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        Ok(Self {
            dry_run: dry_run(&values, "DeleteOptions")?,
            grace_seconds: value::integer(body, "gracePeriodSeconds"),
            propagation: policy.map(propagation).transpose()?,
            orphan_dependents: value::at(body, "orphanDependents").and_then(Value::as_bool),
            uid: owned("preconditions.uid"),
            version: owned("preconditions.resourceVersion"),
        })
    }
}

fn propagation(text: &str) -> Outcome<Propagation> {
    match text {
        "Orphan" => Ok(Propagation::Orphan),
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        other => Err(Box::new(field::invalid(
            "meta.k8s.io",
            "DeleteOptions",
            "",
            &[FieldError::not_supported(
                "propagationPolicy",
                &Value::String(other.to_owned()),
                &["Foreground", "Background", "Orphan", "nil"],
            )],
        ))),
    }
}
