//! Collections: selectors, pages, versions.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{render, watch};
use crate::exchange::{Exchange, Reply};
use crate::options::{ListOptions, VersionMatch};
use crate::status::{Outcome, Status};
use crate::store::{self, Compacted, Snapshot, Stored};

/// Where the next page starts, and in which version.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

/// Lists, or watches if that is asked.
pub(super) fn list(ex: &Exchange<'_>) -> Outcome<Reply> {
    let options = options(ex)?;
    if options.watch {
        return watch::watch(ex, options);
    }
    let snapshot = select(ex, &options)?;
    let metadata = metadata(ex, &options, &snapshot);
    render::list(ex, &snapshot, &metadata)
}

/// The list options of a request, with the field selector checked against what the resource can select by.
pub(super) fn options(ex: &Exchange<'_>) -> Outcome<ListOptions> {
    let mut options = ListOptions::parse(&ex.query, ex.target.watch)?;
    if !ex.target.name.is_empty() {
        options.fields =
            crate::selector::FieldSelector::parse(&format!("metadata.name={}", ex.target.name))?;
    }
    options.fields = options.fields.resolve(&ex.resource, ex.resource.custom)?;
    Ok(options)
}

/// Whether the selectors of a request match an object.
pub(super) fn matches(options: &ListOptions, object: &Stored) -> bool {
    options.labels.matches(|key| object.header.label(key))
        && options
            .fields
            .matches(|name| Some(object.header.field(name).unwrap_or_default()))
}

fn select(ex: &Exchange<'_>, options: &ListOptions) -> Outcome<Snapshot> {
    let current = ex.cluster.store.version();
    if let Some(asked) = options.version
        && asked > current
    {
        return Err(Box::new(Status::too_large_version(asked, current)));
    }
    let token = options
        .continue_token
        .as_deref()
        .map(Token::decode)
        .transpose()?;
    let at = match (&token, options.version, options.version_match) {
        (Some(token), _, _) if token.rv > 0 => u64::try_from(token.rv).ok(),
        (None, Some(asked), Some(VersionMatch::Exact)) => Some(asked),
        // A page of an old version without a rule how to read it is exact, as documented.
        (None, Some(asked), None) if asked > 0 && options.limit > 0 => Some(asked),
        _ => ex.stale.map(|by| current.saturating_sub(by)),
    };
    let start = token.as_ref().map(|token| token.start.as_str());
    ex.cluster
        .store
        .page(
            &ex.bucket(),
            &ex.target.namespace,
            at,
            start,
            options.limit,
            &|o| matches(options, o),
        )
        .map_err(|compacted| Box::new(expired(ex, token.as_ref(), at, compacted)))
}

fn expired(
    _ex: &Exchange<'_>,
    token: Option<&Token>,
    at: Option<u64>,
    compacted: Compacted,
) -> Status {
    match token {
        None => Status::expired(format!(
            "The resourceVersion for the provided list is too old. ({} < {})",
            at.unwrap_or_default(),
            compacted.oldest
        )),
        Some(token) => {
            let next = Token {
                v: token.v.clone(),
                rv: -1,
                start: token.start.clone(),
            }
            .encode();
            let mut status = Status::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new \
                 list without the continue parameter, or use the continue token in this response to retrieve the \
                 remainder of the results. Continuing with the provided token results in an inconsistent list - \
                 objects that were created, modified, or deleted between the time the first chunk was returned and \
                 now may show up in the list.",
            );
            status.set_continue(&next);
            status
        }
    }
}

fn metadata(ex: &Exchange<'_>, options: &ListOptions, snapshot: &Snapshot) -> Value {
    let mut metadata = json!({"resourceVersion": snapshot.version.to_string()});
    if ex.resource.custom {
        // Lists of custom objects are untyped, and say that nothing follows.
        metadata["continue"] = json!("");
    }
    if options.limit > 0
        && snapshot.remaining > 0
        && let Some(last) = snapshot.objects.last()
    {
        // The next key after the last one: keys are text without NUL.
        let start = format!(
            "{}\0",
            store::key(&last.header.namespace, &last.header.name)
        );
        let version = i64::try_from(snapshot.version).unwrap_or(i64::MAX);
        let token = Token {
            v: "meta.k8s.io/v1".to_owned(),
            rv: version,
            start,
        };
        metadata["continue"] = json!(token.encode());
        // With a selector the real server does not know how many are left.
        if options.labels.is_empty() && options.fields.is_empty() {
            metadata["remainingItemCount"] = json!(snapshot.remaining);
        }
    }
    metadata
}

impl Token {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(text: &str) -> Outcome<Self> {
        let bad = |why: String| {
            Box::new(Status::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            )))
        };
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .map_err(|_| bad("illegal base64 data at input byte 0".to_owned()))?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|_| {
            let first = bytes.first().map_or('\0', |b| *b as char);
            let shown = if first.is_control() {
                format!("\\u{:04x}", first as u32)
            } else {
                first.to_string()
            };
            bad(format!(
                "invalid character '{shown}' looking for beginning of value"
            ))
        })?;
        if token.v != "meta.k8s.io/v1" {
            return Err(bad(format!(
                "server does not recognize this encoded version \"{}\"",
                token.v
            )));
        }
        Ok(token)
    }
}
