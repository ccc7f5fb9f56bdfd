//! Instant queries of Prometheus, and what it answers.
//!
//! Every way in which an answer can be no single number is an answer of its own: no data, several series, not a number,
//! infinite, and only a part of the data. Whether that is good or bad is decided by who asked. What Prometheus says of its
//! own mistakes (`status: error`) is a refusal; what is none of this is malformed.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::{Call, Credential, Method, Target, Trust};
use super::failure::Failure;
use super::header::Header;
use super::number::Number;
use super::reply::{Wanted, refused};
use crate::address::{Url, escaped};

/// Longer queries are sent as a form: servers and proxies limit the length of addresses.
const LONGEST_IN_URL: usize = 4 * 1024;
/// How many warnings are kept, and how much of each.
const MOST_WARNINGS: usize = 4;
const LONGEST_WARNING: usize = 256;

/// An instant query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Where Prometheus is; its path is kept.
    pub address: Url,
    /// What is asked, in `PromQL`.
    pub query: String,
    /// What is said besides.
    pub headers: Vec<Header>,
    /// Who we are.
    pub credentials: Vec<Credential>,
    /// Whose word is taken.
    pub trust: Trust,
    /// How long all of it may take.
    pub timeout: Duration,
}

impl Query {
    /// How long a query may take unless it says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
    /// How much of an answer is read: room for many series, of which we need to know that there are several.
    const LARGEST: usize = 1024 * 1024;

    /// A query of somebody, without credentials.
    pub fn new(address: Url, query: &str) -> Self {
        Self {
            address,
            query: query.to_owned(),
            headers: Vec::new(),
            credentials: Vec::new(),
            trust: Trust::System,
            timeout: Self::TIMEOUT,
        }
    }

    /// The call that asks it.
    pub fn call(&self) -> Call {
        let url = self.address.clone().join("api/v1/query");
        let query = self.query.trim();
        let mut headers = self.headers.clone();
        let (method, url, body) = if query.len() > LONGEST_IN_URL {
            headers.push(Header::form());
            (Method::Post, url, format!("query={}", escaped(query)))
        } else {
            (
                Method::Get,
                url.with_parameter("query", query),
                String::new(),
            )
        };
        Call {
            method,
            target: Target::Url(url),
            headers,
            body,
            credentials: self.credentials.clone(),
            signed_with: None,
            trust: self.trust.clone(),
            redirects: 0,
            timeout: self.timeout,
            largest: Self::LARGEST,
            wanted: Wanted::Measured,
        }
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// On all data.
    Whole(Reading),
    /// On some of it: not all stores answered, or the query is doubtful.
    Partial {
        /// What came of it all the same.
        reading: Reading,
        /// Why, in the words of Prometheus; not more than a few.
        warnings: Vec<String>,
    },
}

/// What a query came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// A scalar.
    Scalar(Number),
    /// The only series of a vector.
    Vector(Number),
    /// A vector without series.
    NoData,
    /// A vector with so many series, where one number was expected.
    Several(usize),
}

impl Measured {
    /// What it came to, if it was measured on all data.
    pub fn whole(&self) -> Option<&Reading> {
        match self {
            Self::Whole(reading) => Some(reading),
            Self::Partial { .. } => None,
        }
    }

    /// What it came to, although that may be on some of the data only: for whoever shows it, not for whoever decides by it.
    pub fn even_if_partial(&self) -> &Reading {
        match self {
            Self::Whole(reading) | Self::Partial { reading, .. } => reading,
        }
    }
}

/// Whether a refusal is about one query that took too long, in the words of [`read`].
pub(super) fn is_too_slow(message: &str) -> bool {
    ["timeout: ", "canceled: "]
        .iter()
        .any(|kind| message.starts_with(kind))
}

#[derive(Deserialize)]
struct Envelope<'a> {
    status: String,
    #[serde(borrow)]
    data: Option<Data<'a>>,
    #[serde(rename = "errorType", default)]
    error_type: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    warnings: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(rename = "resultType")]
    kind: String,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// When, and what.
type Sample = (f64, String);

#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    value: Option<Sample>,
    #[serde(default)]
    histogram: Option<serde::de::IgnoredAny>,
}

/// Reads an answer of `/api/v1/query`.
pub fn read(code: u16, body: &[u8]) -> Result<Measured, Failure> {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(body) else {
        if code >= 300 {
            return Err(refused(code, body));
        }
        return Err(malformed("it is no answer of Prometheus"));
    };
    if envelope.status != "success" || code >= 300 {
        let kind = envelope.error_type.unwrap_or_default();
        let error = envelope.error.unwrap_or_default();
        return Err(refused(code, format!("{kind}: {error}").as_bytes()));
    }
    let data = envelope.data.ok_or_else(|| malformed("it has no data"))?;
    let result = data.result.map_or("null", RawValue::get);
    let reading = match data.kind.as_str() {
        "scalar" => Reading::Scalar(scalar(result)?),
        "vector" => vector(result)?,
        "matrix" => return Err(malformed("it is a range of values; ask for one moment")),
        _ => return Err(malformed("it is neither a scalar nor a vector")),
    };
    let warnings = envelope.warnings.unwrap_or_default();
    Ok(if warnings.is_empty() {
        Measured::Whole(reading)
    } else {
        Measured::Partial {
            reading,
            warnings: kept(warnings),
        }
    })
}

fn malformed(what: &str) -> Failure {
    Failure::Malformed(what.to_owned())
}

fn kept(warnings: Vec<String>) -> Vec<String> {
    let short = |warning: String| {
        let plain = warning.chars().filter(|c| !c.is_control());
        plain.take(LONGEST_WARNING).collect()
    };
    warnings
        .into_iter()
        .take(MOST_WARNINGS)
        .map(short)
        .collect()
}

fn scalar(result: &str) -> Result<Number, Failure> {
    let sample: Sample =
        serde_json::from_str(result).map_err(|_| malformed("its scalar is no time and text"))?;
    number(&sample)
}

fn number((_, text): &Sample) -> Result<Number, Failure> {
    Number::parse(text).ok_or_else(|| malformed("its value is no number"))
}

fn vector(result: &str) -> Result<Reading, Failure> {
    let all: Vec<Series> =
        serde_json::from_str(result).map_err(|_| malformed("its vector is no list of series"))?;
    match all.as_slice() {
        [] => Ok(Reading::NoData),
        [
            Series {
                histogram: Some(_), ..
            },
        ] => Err(malformed("its series is a histogram")),
        [
            Series {
                value: Some(sample),
                ..
            },
        ] => Ok(Reading::Vector(number(sample)?)),
        [_] => Err(malformed("its series has no value")),
        several => Ok(Reading::Several(several.len())),
    }
}

#[cfg(test)]
mod tests;
