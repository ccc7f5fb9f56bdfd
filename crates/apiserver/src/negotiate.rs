//! Media types: what a client accepts, and what its bodies are.
//!
//! Answers are JSON or YAML. A client that lists protobuf or CBOR gets JSON if its list allows that, else a 406. Bodies
//! may be protobuf as well, but not CBOR. The texts differ between built-in and custom resources as they do in the real
//! server, where only the former pass through a router that looks at media types itself.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::status::{Outcome, Status};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const SUPPORTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// How an answer or a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Media {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`: bodies only.
    Protobuf,
}

/// What an answer becomes instead of the objects themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `as=Table`.
    Table,
    /// `as=PartialObjectMetadata`.
    Partial,
    /// `as=PartialObjectMetadataList`.
    PartialList,
}

/// A version of `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1beta1,
}

/// A transformation that the client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transform {
    /// Into what.
    pub shape: Shape,
    /// In which version.
    pub version: MetaVersion,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// How it is written.
    pub media: Media,
    /// What the objects become; none for themselves.
    pub transform: Option<Transform>,
    /// `pretty=1` stood in the media type.
    pub pretty: bool,
}

/// Which kind of endpoint negotiates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Endpoint {
    /// One object of a built-in resource.
    #[default]
    Object,
    /// A list or watch of a built-in resource.
    Collection,
    /// Anything of a custom resource.
    Custom,
}

impl Media {
    /// The `Content-Type` of an answer.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Yaml => YAML,
            Self::Protobuf => PROTOBUF,
        }
    }
}

impl MetaVersion {
    /// `meta.k8s.io/v1`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The form of an answer for this `Accept` header, for one object of a built-in resource.
pub fn accept(header: Option<&str>) -> Outcome<Form> {
    accept_at(header, Endpoint::Object)
}

/// The form of an answer for this `Accept` header.
pub fn accept_at(header: Option<&str>, endpoint: Endpoint) -> Outcome<Form> {
    let header = header.unwrap_or_default();
    if header.is_empty() {
        return Ok(Form::default());
    }
    if endpoint != Endpoint::Custom && !routes(header) {
        let more = match endpoint {
            Endpoint::Collection => format!(", {STREAMS}"),
            Endpoint::Object | Endpoint::Custom => String::new(),
        };
        return Err(no_route(&more).into());
    }
    for clause in clauses(header) {
        for media in [Media::Json, Media::Yaml] {
            if clause.covers(media)
                && let Some(form) = clause.form(media)
            {
                return Ok(form);
            }
        }
    }
    Err(not_acceptable(SUPPORTED).into())
}

/// Whether a client takes discovery in its aggregated form, which goes before every other it takes.
pub fn accepts_aggregated(header: &str) -> bool {
    clauses(header).iter().any(|clause| {
        let is = |name: &str, wanted: &str| {
            clause.parameters.get(name).map(String::as_str) == Some(wanted)
        };
        clause.covers(Media::Json)
            && is("g", "apidiscovery.k8s.io")
            && is("v", "v2")
            && is("as", "APIGroupDiscoveryList")
    })
}

/// Refuses a client that takes no plain document, as discovery is. `routed` tells whether the router looks first.
pub fn plain(header: &str, routed: bool) -> Outcome<()> {
    if header.is_empty() {
        return Ok(());
    }
    if routed && !routes(header) {
        return Err(no_route("").into());
    }
    let fits = clauses(header).iter().any(|clause| {
        let forms = [Media::Json, Media::Yaml].into_iter();
        forms
            .filter(|media| clause.covers(*media))
            .filter_map(|media| clause.form(media))
            .any(|form| form.transform.is_none())
    });
    if fits {
        Ok(())
    } else {
        Err(not_acceptable(SUPPORTED).into())
    }
}

fn no_route(more: &str) -> Status {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {SUPPORTED}{more}");
    Status::failure(406, "NotAcceptable", message).with_causes(Vec::new())
}

/// A watch is a stream of JSON: YAML has no stream.
pub fn stream(form: Form) -> Outcome<Form> {
    match form.media {
        Media::Json => Ok(form),
        Media::Yaml | Media::Protobuf => Err(not_acceptable(STREAMS).into()),
    }
}

fn not_acceptable(types: &str) -> Status {
    let message = format!("only the following media types are accepted: {types}");
    Status::failure(406, "NotAcceptable", message)
}

/// What the router in front of built-in resources asks: does one of the listed types, without parameters, exist?
fn routes(header: &str) -> bool {
    header.split(',').any(|part| {
        let media = part.split(';').next().unwrap_or_default().trim();
        media == "*/*" || SUPPORTED.split(", ").any(|known| known == media)
    })
}

#[derive(Debug)]
struct Clause {
    kind: String,
    subtype: String,
    quality: f64,
    parameters: BTreeMap<String, String>,
}

impl Clause {
    fn parse(part: &str) -> Option<Self> {
        let mut pieces = part.split(';');
        let media = pieces.next()?;
        let (kind, subtype) = match media.split_once('/') {
            Some((kind, subtype)) if !subtype.is_empty() => {
                // A second slash with something behind it makes no media type.
                let (subtype, rest) = subtype.split_once('/').unwrap_or((subtype, ""));
                if !rest.is_empty() {
                    return None;
                }
                (kind.trim_matches(' '), subtype.trim_matches(' '))
            }
            Some((kind, _)) if kind.trim_matches(' ') == "*" => ("*", "*"),
            None if media.trim_matches(' ') == "*" => ("*", "*"),
            _ => return None,
        };
        let mut clause = Self {
            kind: kind.to_owned(),
            subtype: subtype.to_owned(),
            quality: 1.0,
            parameters: BTreeMap::new(),
        };
        for piece in pieces {
            let Some((name, value)) = piece.split_once('=') else {
                continue;
            };
            if value.is_empty() || value.contains('=') {
                continue;
            }
            match name.trim_matches(' ') {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                name => {
                    let value = value.trim_matches(' ').to_owned();
                    clause.parameters.insert(name.to_owned(), value);
                }
            }
        }
        Some(clause)
    }

    /// The real comparison: a better quality, or fewer wildcards.
    fn precedes(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }

    fn covers(&self, media: Media) -> bool {
        let name = match media {
            Media::Json => "json",
            Media::Yaml => "yaml",
            Media::Protobuf => "vnd.kubernetes.protobuf",
        };
        match (self.kind.as_str(), self.subtype.as_str()) {
            ("*", "*") => true,
            ("application", subtype) => subtype == "*" || subtype == name,
            _ => false,
        }
    }

    /// The form that the parameters ask for; none if this server cannot give it.
    fn form(&self, media: Media) -> Option<Form> {
        let get = |name: &str| self.parameters.get(name).map(String::as_str);
        let stream = get("stream").unwrap_or_default();
        if !(stream.is_empty() || (stream == "watch" && media == Media::Json)) {
            return None;
        }
        if !matches!(get("sv"), None | Some("" | "v1")) {
            return None;
        }
        let transform = match (get("as"), get("g"), get("v")) {
            (None, None, None) => None,
            (Some(kind), Some("meta.k8s.io"), Some(version)) => Some(Transform {
                shape: match kind {
                    "Table" => Shape::Table,
                    "PartialObjectMetadata" => Shape::Partial,
                    "PartialObjectMetadataList" => Shape::PartialList,
                    _ => return None,
                },
                version: match version {
                    "v1" => MetaVersion::V1,
                    "v1beta1" => MetaVersion::V1beta1,
                    _ => return None,
                },
            }),
            _ => return None,
        };
        Some(Form {
            media,
            transform,
            pretty: get("pretty") == Some("1"),
        })
    }
}

/// The clauses of an `Accept` header, most wanted first.
fn clauses(header: &str) -> Vec<Clause> {
    let mut sorted: Vec<Clause> = Vec::new();
    for clause in header
        .split(',')
        .filter_map(|p| Clause::parse(p.trim_matches(' ')))
    {
        // Insertion keeps the header's order among equals, and gives the same outcome as the real sort, whose
        // comparison is no order, for lists as short as clients send.
        let mut at = sorted.len();
        while at > 0
            && sorted
                .get(at - 1)
                .is_some_and(|before| clause.precedes(before))
        {
            at -= 1;
        }
        sorted.insert(at, clause);
        if sorted.len() > MAX_CLAUSES {
            sorted.truncate(MAX_CLAUSES);
        }
    }
    sorted
}

/// More clauses than this are ignored, so that sorting them stays cheap.
const MAX_CLAUSES: usize = 64;

/// How a request body is written; a type that is not known is a 415.
pub fn body(content_type: Option<&str>) -> Outcome<Media> {
    match media_type(content_type.unwrap_or_default()).as_deref() {
        Some("" | JSON) => Ok(Media::Json),
        Some(YAML) => Ok(Media::Yaml),
        Some(PROTOBUF) => Ok(Media::Protobuf),
        _ => Err(unknown_body().into()),
    }
}

/// The 415 of a body that is none of what bodies may be.
pub fn unknown_body() -> Status {
    unknown_format(SUPPORTED)
}

/// The 415 of a body in a format that is not among `accepted`.
pub fn unknown_format(accepted: &str) -> Status {
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    ))
}

/// The media type in small letters; none if the header is malformed.
fn media_type(header: &str) -> Option<String> {
    let mut pieces = header.split(';');
    let media = pieces.next()?.trim().to_ascii_lowercase();
    let mut seen: Vec<String> = Vec::new();
    for piece in pieces.map(str::trim).filter(|p| !p.is_empty()) {
        let (name, value) = piece.split_once('=')?;
        let name = name.trim().to_ascii_lowercase();
        if name.is_empty() || value.is_empty() || seen.contains(&name) {
            return None;
        }
        seen.push(name);
    }
    Some(media)
}

/// Whether JSON is written for people: `?pretty=`, or a client that people use by hand.
pub fn pretty(parameter: Option<&str>, user_agent: Option<&str>) -> bool {
    if let Some(parameter) = parameter.filter(|p| !p.is_empty()) {
        return ["1", "t", "T", "true", "TRUE", "True"].contains(&parameter);
    }
    let agent = user_agent.unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"]
        .iter()
        .any(|people| agent.starts_with(people))
}
