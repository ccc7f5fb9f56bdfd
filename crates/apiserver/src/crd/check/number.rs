//! Bounds of numbers. Limits are floats in the schema; a whole number is held against their whole part, as in the
//! real server.

use serde_json::Number;

use super::scalar::{is_integral, is_whole};
use super::{Checker, Finding, Findings};
use crate::crd::structural::Structural;
use crate::field::Fault;

/// A float as Go's `%v` prints it.
pub(crate) fn go_float(float: f64) -> String {
    if float == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..21).contains(&exponent) {
        format!("{float}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}

/// A number to be held against limits: whole numbers and floats follow different rules.
#[derive(Clone, Copy)]
enum Measured {
    Whole(i64),
    Float(f64),
}

impl Measured {
    fn of(number: &Number) -> Self {
        number.as_i64().filter(|_| is_whole(number)).map_or_else(
            || Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            Self::Whole,
        )
    }

    fn shown(self) -> String {
        match self {
            Self::Whole(n) => n.to_string(),
            Self::Float(f) => go_float(f),
        }
    }
}

/// The whole part of a limit.
#[allow(
    clippy::cast_possible_truncation,
    reason = "Go converts limits in the same way"
)]
pub(super) fn whole_part(limit: f64) -> i64 {
    limit as i64
}

impl Checker<'_> {
    /// Range of the type, `multipleOf`, `minimum`, `maximum`.
    pub(super) fn number(&self, schema: &Structural, number: &Number, name: &str) -> Findings {
        let mut findings = Findings::default();
        let measured = Measured::of(number);
        if let Some(finding) = self.out_of_range(schema, measured, name) {
            findings.add(finding);
        }
        let limits = schema.limits();
        let checks = [
            limits
                .multiple_of
                .and_then(|by| self.multiple(measured, by, name)),
            limits
                .minimum
                .and_then(|min| self.minimum(measured, min, limits.exclusive_minimum, name)),
            limits
                .maximum
                .and_then(|max| self.maximum(measured, max, limits.exclusive_maximum, name)),
        ];
        checks.into_iter().flatten().for_each(|f| findings.add(f));
        findings.matches += 1;
        findings
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "the test is about what a float32 can hold"
    )]
    fn out_of_range(&self, schema: &Structural, measured: Measured, name: &str) -> Option<Finding> {
        let (kind, format) = (&*schema.kind, &*schema.format);
        let fits = match (kind, measured) {
            ("integer", Measured::Whole(n)) => format != "int32" || i32::try_from(n).is_ok(),
            ("integer", Measured::Float(f)) => is_integral(f),
            (_, Measured::Float(f)) => format != "float" || (f as f32).is_finite(),
            _ => true,
        };
        if fits {
            return None;
        }
        let which = if format.is_empty() {
            format!("{kind} (default format)")
        } else {
            format!("{kind} with format {format}")
        };
        Some(self.loose(format!("Checked value must be of type {which} in {name}")))
    }

    fn multiple(&self, measured: Measured, by: f64, name: &str) -> Option<Finding> {
        let invalid = |shown: String, text: String| self.finding(Fault::Invalid, name, shown, text);
        let (positive, agrees, factor) = match measured {
            Measured::Whole(n) => {
                let by = whole_part(by);
                (by > 0, by > 0 && n % by == 0, by.to_string())
            }
            Measured::Float(f) => {
                let quotient = if by < 1.0 { 1.0 / by * f } else { f / by };
                (by > 0.0, is_integral(quotient), go_float(by))
            }
        };
        if !positive {
            let text = format!("factor MultipleOf declared for {name} must be positive: {factor}");
            return Some(invalid(factor, text));
        }
        let text = format!("{name} in body should be a multiple of {factor}");
        (!agrees).then(|| invalid(measured.shown(), text))
    }

    fn minimum(
        &self,
        measured: Measured,
        min: f64,
        exclusive: bool,
        name: &str,
    ) -> Option<Finding> {
        let (below, limit) = match measured {
            Measured::Whole(n) => {
                let min = whole_part(min);
                (if exclusive { n <= min } else { n < min }, min.to_string())
            }
            Measured::Float(f) => (if exclusive { f <= min } else { f < min }, go_float(min)),
        };
        let than = if exclusive {
            "greater than"
        } else {
            "greater than or equal to"
        };
        below.then(|| self.bound(measured, than, &limit, name))
    }

    fn maximum(
        &self,
        measured: Measured,
        max: f64,
        exclusive: bool,
        name: &str,
    ) -> Option<Finding> {
        let (above, limit) = match measured {
            Measured::Whole(n) => {
                let max = whole_part(max);
                (if exclusive { n >= max } else { n > max }, max.to_string())
            }
            Measured::Float(f) => (if exclusive { f >= max } else { f > max }, go_float(max)),
        };
        let than = if exclusive {
            "less than"
        } else {
            "less than or equal to"
        };
        above.then(|| self.bound(measured, than, &limit, name))
    }

    fn bound(&self, measured: Measured, than: &str, limit: &str, name: &str) -> Finding {
        let text = format!("{name} in body should be {than} {limit}");
        self.finding(Fault::Invalid, name, measured.shown(), text)
    }
}
