//! Numbers as others write them.

/// What a measurement came to. Zero has no sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A number.
    Finite(f64),
    /// Nothing was measured, or nothing was divided by nothing.
    NotANumber,
    /// Beyond all numbers.
    Infinite,
    /// Below all numbers.
    NegativeInfinite,
}

impl Number {
    /// Reads what Prometheus and people write: `1`, `-0.5`, `1e-3`, `NaN`, `+Inf`, `-Inf`. A number that is too large to be
    /// one is none, rather than infinite.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "NaN" => return Some(Self::NotANumber),
            "Inf" | "+Inf" => return Some(Self::Infinite),
            "-Inf" => return Some(Self::NegativeInfinite),
            _ => {}
        }
        let is_decimal = |b: u8| b.is_ascii_digit() || b"+-.eE".contains(&b);
        if text.is_empty() || text.len() > 400 || !text.bytes().all(is_decimal) {
            return None;
        }
        let number: f64 = text.parse().ok()?;
        Self::finite(number)
    }

    /// A number that is one.
    pub fn finite(number: f64) -> Option<Self> {
        // -0.0 + 0.0 is 0.0.
        number.is_finite().then_some(Self::Finite(number + 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_what_is_none_is_not() {
        let table = [
            ("1", Some(Number::Finite(1.0))),
            ("+1", Some(Number::Finite(1.0))),
            ("99.25", Some(Number::Finite(99.25))),
            ("1e-3", Some(Number::Finite(0.001))),
            ("1E3", Some(Number::Finite(1_000.0))),
            ("5.", Some(Number::Finite(5.0))),
            (".5", Some(Number::Finite(0.5))),
            ("1e308", Some(Number::Finite(1e308))),
            ("1e-400", Some(Number::Finite(0.0))),
            ("NaN", Some(Number::NotANumber)),
            ("+Inf", Some(Number::Infinite)),
            ("Inf", Some(Number::Infinite)),
            ("-Inf", Some(Number::NegativeInfinite)),
            ("1e400", None),
            ("-1e400", None),
            ("nan", None),
            ("infinity", None),
            ("0x10", None),
            ("1_000", None),
            ("1,5", None),
            (" 1", None),
            ("", None),
            ("-", None),
            ("1e", None),
            ("١", None),
        ];
        for (text, number) in table {
            assert_eq!(Number::parse(text), number, "{text}");
        }
        for zero in ["0", "-0", "+0", "-0.0", "0e5"] {
            let Some(Number::Finite(number)) = Number::parse(zero) else {
                panic!("{zero}")
            };
            assert!(number == 0.0 && number.is_sign_positive(), "{zero}");
        }
        assert_eq!(Number::parse(&"1".repeat(500)), None);
    }
}
