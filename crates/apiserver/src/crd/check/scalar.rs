//! Types, allowed values and strings.

use serde_json::{Number, Value};

use super::number::{go_float, whole_part};
use super::{Checker, Findings, format};
use crate::crd::structural::Structural;
use crate::field::{Fault, FieldError, quote, show};

/// The JSON type of a value and the format Go gives it.
fn go_type(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Number(n) if is_whole(n) => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Whether Go would hold this number as an int64.
pub(super) fn is_whole(number: &Number) -> bool {
    number.is_i64()
}

/// Whether a float stands for a whole number that JSON can carry exactly.
#[allow(clippy::float_cmp, reason = "the test is about exact whole numbers")]
pub(super) fn is_integral(float: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    float.is_finite() && float.abs() <= LARGEST && float == float.trunc()
}

/// Whether a number is an allowed one once it has the allowed one's type: 1.5 counts as 1 where 1 is allowed.
fn same_number(allowed: &Number, given: &Number) -> bool {
    match (allowed.as_i64(), given.as_f64()) {
        (Some(allowed), Some(float)) if given.as_i64().is_none() => whole_part(float) == allowed,
        (Some(allowed), _) => given.as_i64() == Some(allowed),
        (None, float) => allowed.as_f64() == float,
    }
}

impl Checker<'_> {
    /// The type of a value.
    pub(super) fn types(&self, schema: &Structural, value: &Value, name: &str) -> Findings {
        let mut findings = Findings::default();
        let types = schema.types();
        let fault = match value {
            Value::Null if types.is_empty() || schema.nullable => None,
            Value::Null => Some(self.type_error(name, &types.join(","), "null")),
            _ => self.wrong_type(schema, &types, value, name),
        };
        match fault {
            Some(finding) => findings.add(finding),
            None => findings.matches += 1,
        }
        findings
    }

    fn wrong_type(
        &self,
        schema: &Structural,
        types: &[&str],
        value: &Value,
        name: &str,
    ) -> Option<super::Finding> {
        let (kind, go_format) = go_type(value);
        let wants = |t: &str| types.contains(&t);
        let float_as_whole =
            kind == "number" && value.as_f64().is_some_and(is_integral) && wants("integer");
        let whole_as_float = kind == "integer" && wants("number");
        let textual = matches!(kind, "string" | "array");
        let format = &*schema.format;
        let fits = wants(kind) || float_as_whole || whole_as_float;
        if !textual && !format.is_empty() && !fits && go_format != format {
            return Some(self.type_error(name, format, go_format));
        }
        if !wants("number") && !wants("integer") && !format.is_empty() && textual {
            return None;
        }
        (!fits).then(|| self.type_error(name, &types.join(","), kind))
    }

    /// `enum`.
    pub(super) fn allowed(&self, schema: &Structural, value: &Value, name: &str) -> Findings {
        let mut findings = Findings::default();
        let same = |allowed: &Value| match (allowed, value) {
            (Value::Number(allowed), Value::Number(given)) => same_number(allowed, given),
            (allowed, given) => allowed == given,
        };
        if schema.allowed.is_empty() || schema.allowed.iter().any(same) {
            return findings;
        }
        let names: Vec<String> = schema
            .allowed
            .iter()
            .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut error = FieldError::not_supported(self.path(name), value, &names);
        if let Some(float) = value.as_f64().filter(|_| value.is_f64()) {
            error.shown = go_float(float);
        }
        let text = format!("{name} in body should be one of [{}]", names.join(" "));
        findings.add(super::Finding { text, error });
        findings
    }

    /// Length, pattern and format of a string.
    pub(super) fn string(&self, schema: &Structural, text: &str, name: &str) -> Findings {
        let mut findings = Findings::default();
        if let Some(finding) = self.string_rule(schema, text, name) {
            findings.add(finding);
        }
        if matches!(&*schema.kind, "" | "string") && !schema.format.is_empty() {
            // The format is a validator of its own in the real server, and so counts as one.
            findings.matches += 1;
            if !format::matches(&schema.format, text) {
                findings.add(self.type_error(name, &schema.format, text));
            }
        }
        findings
    }

    fn string_rule(&self, schema: &Structural, text: &str, name: &str) -> Option<super::Finding> {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        let limits = schema.limits();
        if let Some(max) = limits.max_length.filter(|max| length > *max) {
            let message = format!("{name} in body should be at most {max} chars long");
            let mut finding = self.finding(Fault::TooLong, name, String::new(), message);
            finding.error.detail = too_long(max);
            return Some(finding);
        }
        if let Some(min) = limits.min_length.filter(|min| length < *min) {
            let message = format!("{name} in body should be at least {min} chars long");
            return Some(self.finding(Fault::Invalid, name, quote(text), message));
        }
        let pattern = limits.pattern.as_ref()?;
        let message = match pattern.machine() {
            Ok(machine) if machine.is_match(text) => return None,
            Ok(_) => format!("{name} in body should match '{}'", pattern.text()),
            Err(why) => {
                let pattern = pattern.text();
                format!("{name} in body should match '{pattern}, but pattern is invalid: {why}'")
            }
        };
        Some(self.finding(Fault::Invalid, name, show(&Value::from(text)), message))
    }
}

fn too_long(max: i64) -> String {
    let noun = if max == 1 { "byte" } else { "bytes" };
    format!("may not be more than {max} {noun}")
}
