//! Resource quantities: `500m`, `1Gi`, `2e3`.
//!
//! They are read, compared, summed and shown as the API does it, with one limit: amounts beyond about 10²⁹ count
//! as the largest amount there is.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// How an amount is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `12M`.
    DecimalSi,
    /// `12Mi`.
    BinarySi,
    /// `12e6`.
    DecimalExponent,
}

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a number with a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The suffix is none.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// An amount. Equality and order are those of the amounts, however they are written.
#[derive(Debug, Clone)]
pub struct Quantity {
    nanos: i128,
    format: Format,
    /// The text it was read from, where the API shows that instead of the canonical form.
    text: Option<Box<str>>,
}

const NANO: i128 = 1_000_000_000;

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::DecimalSi,
        text: None,
    };

    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::split(text)?;
        let (base, exponent, format) = suffix(parts.suffix).ok_or(QuantityError::Suffix)?;
        let digits: String = [parts.whole, parts.fraction].concat();
        let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
        let amount: i128 = digits.parse().unwrap_or(i128::MAX);
        let amount = if base == 2 {
            let factor = 1_i128
                .checked_shl(exponent.unsigned_abs())
                .unwrap_or(i128::MAX);
            let nanos = scale(amount.saturating_mul(factor), 9_i32.saturating_sub(places));
            nanos.min(i128::from(i64::MAX) * NANO)
        } else {
            scale(amount, exponent.saturating_sub(places).saturating_add(9))
        };
        let format = match format {
            Format::BinarySi if amount > 0 && amount < NANO => Format::DecimalSi,
            format => format,
        };
        let kept = parts.is_kept(&digits, base, exponent);
        Ok(Self {
            nanos: if parts.negative { -amount } else { amount },
            format,
            text: kept.then(|| text.into()),
        })
    }

    /// Reads a quantity as it stands in an object: text or a number.
    pub fn from_value(value: &Value) -> Result<Self, QuantityError> {
        match value {
            Value::Null => Ok(Self::ZERO),
            Value::String(text) => Self::parse(text.trim()),
            Value::Number(number) => {
                let text = number.to_string();
                Self::parse(text.strip_suffix(".0").unwrap_or(&text))
            }
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(QuantityError::Format),
        }
    }

    /// The amount in whole units, rounded away from zero.
    pub fn units(&self) -> i64 {
        self.rounded(NANO)
    }

    /// The amount in thousandths, rounded away from zero.
    pub fn millis(&self) -> i64 {
        self.rounded(NANO / 1000)
    }

    fn rounded(&self, step: i128) -> i64 {
        let rounded = divide(self.nanos, step);
        i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
    }

    /// Rounded away from zero to thousandths, as the amounts in resource lists are.
    #[must_use]
    pub fn in_millis(&self) -> Self {
        let step = NANO / 1000;
        if self.nanos % step == 0 {
            return self.clone();
        }
        Self {
            nanos: divide(self.nanos, step).saturating_mul(step),
            format: self.format,
            text: None,
        }
    }

    /// Less than, equal to or greater than nothing.
    pub fn sign(&self) -> Ordering {
        self.nanos.cmp(&0)
    }

    /// Whether it is a whole number of units.
    pub fn is_whole(&self) -> bool {
        self.nanos % NANO == 0
    }

    /// The sum; shown in the format of `self` unless that is zero.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            format: if self.nanos == 0 {
                other.format
            } else {
                self.format
            },
            text: None,
        }
    }

    /// The difference; shown in the format of `self` unless that is zero.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut negated = other.clone();
        negated.nanos = -negated.nanos;
        self.plus(&negated)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let small = self.nanos.abs() < 1024 * NANO;
        if self.format == Format::BinarySi && !small && self.is_whole() {
            let mut amount = self.nanos / NANO;
            let mut suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter();
            let mut suffix = suffixes.next();
            while amount % 1024 == 0 {
                amount /= 1024;
                suffix = suffixes.next();
            }
            return write!(f, "{amount}{}", suffix.copied().unwrap_or_default());
        }
        let mut amount = self.nanos;
        let mut exponent = -9;
        while amount % 10 == 0 {
            amount /= 10;
            exponent += 1;
        }
        while exponent % 3 != 0 {
            amount *= 10;
            exponent -= 1;
        }
        match (self.format, exponent) {
            (Format::DecimalExponent, 0) => write!(f, "{amount}"),
            (Format::DecimalExponent, _) => write!(f, "{amount}e{exponent}"),
            _ => write!(f, "{amount}{}", decimal_suffix(exponent)),
        }
    }
}

/// `amount` times ten to the `power`, rounded away from zero.
fn scale(amount: i128, power: i32) -> i128 {
    if amount == 0 {
        return 0;
    }
    match 10_i128.checked_pow(power.unsigned_abs()) {
        Some(factor) if power >= 0 => amount.saturating_mul(factor),
        Some(factor) => divide(amount, factor),
        None if power >= 0 => i128::MAX,
        None => 1,
    }
}

/// Division that rounds away from zero.
fn divide(amount: i128, by: i128) -> i128 {
    let quotient = amount / by;
    if amount % by == 0 {
        quotient
    } else {
        quotient + amount.signum()
    }
}

fn decimal_suffix(exponent: i32) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}

/// Base, exponent and format that a suffix stands for.
fn suffix(suffix: &str) -> Option<(u8, i32, Format)> {
    let decimal = |exponent| Some((10, exponent, Format::DecimalSi));
    let binary = |exponent| Some((2, exponent, Format::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        other => {
            let digits = other.strip_prefix(['e', 'E'])?;
            let exponent: i64 = digits.parse().ok()?;
            let exponent = i32::try_from(exponent).unwrap_or(i32::MAX);
            Some((10, exponent, Format::DecimalExponent))
        }
    }
}

/// The pieces of a quantity's text.
struct Parts<'a> {
    negative: bool,
    /// Without leading zeros, but never empty.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let significant = unsigned.trim_start_matches('0');
        let after = significant.trim_start_matches(|c: char| c.is_ascii_digit());
        let whole = significant.strip_suffix(after).unwrap_or_default();
        let (fraction, suffix) = match after.strip_prefix('.') {
            Some(rest) => {
                let suffix = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                (rest.strip_suffix(suffix).unwrap_or_default(), suffix)
            }
            None => ("", after),
        };
        let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        // A text that ends with the letters of its suffix is judged by what the suffix means, not by its form.
        if !exponent.is_empty() && !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(QuantityError::Format);
        }
        Ok(Self {
            negative: text.starts_with('-'),
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            suffix,
        })
    }

    /// Whether the API shows the text as it came: it takes some for canonical that are not quite.
    fn is_kept(&self, digits: &str, base: u8, exponent: i32) -> bool {
        let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
        let Ok(value) = digits.parse::<i64>() else {
            return false;
        };
        if base == 2 {
            let precision = 15 - length - exponent * 3 / 10 - 1;
            return self.fraction.is_empty() && precision >= 0 && value & 7 != 0;
        }
        let places = i32::try_from(self.fraction.len()).unwrap_or(i32::MAX);
        let scale = exponent.saturating_sub(places);
        length <= 18
            && scale >= -9
            && scale % 3 == 0
            && !digits.ends_with("000")
            && !digits.starts_with('0')
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "tests"
    )]

    use super::*;

    #[test]
    fn shows_quantities_as_the_server_does() {
        for (text, shown) in [
            ("0", "0"),
            ("0.0", "0"),
            ("500m", "500m"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1000m", "1"),
            ("1.500", "1.500"),
            ("1024Mi", "1Gi"),
            ("1500Mi", "1500Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("100e3", "100e3"),
            ("1000e3", "1e6"),
            ("2000", "2k"),
            ("-1.5", "-1500m"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("128974848", "128974848"),
            ("129e6", "129e6"),
            ("1Ei", "1Ei"),
            ("9Ei", "9223372036854775807"),
            ("100", "100"),
            ("+5", "+5"),
            ("m", "0"),
            (".", "0"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_none() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("1GiB", QuantityError::Format),
            ("1gi", QuantityError::Format),
            ("1KM", QuantityError::Suffix),
            ("1Kii", QuantityError::Suffix),
            ("1ee3", QuantityError::Suffix),
            ("1.2.3", QuantityError::Format),
            ("5Gi5", QuantityError::Suffix),
        ] {
            assert_eq!(Quantity::parse(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn compares_and_sums_amounts() {
        let parse = |text| Quantity::parse(text).unwrap();
        assert_eq!(parse("1"), parse("1000m"));
        assert!(parse("1Gi") > parse("1G"));
        assert_eq!(parse("1Gi").plus(&parse("1Gi")).to_string(), "2Gi");
        assert_eq!(parse("0").plus(&parse("1Gi")).to_string(), "1Gi");
        assert_eq!(parse("250m").plus(&parse("0.75")).to_string(), "1");
        assert_eq!(parse("1500m").units(), 2);
        assert_eq!(parse("-1500m").units(), -2);
        assert_eq!(parse("1.5").millis(), 1500);
        assert_eq!(
            Quantity::from_value(&Value::from(0.5)).unwrap().to_string(),
            "500m"
        );
    }
}
