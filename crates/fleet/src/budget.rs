//! How many of all: `maxUnreadyClusters` and `maxUnreachable`.

use serde::{Deserialize, Serialize};
use slipway_api::fleet::binding::Literal;

/// A number, or a percentage of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Amount {
    /// So many.
    Number(usize),
    /// So many of a hundred.
    Percent(usize),
}

/// What holds where a Rollout does not say.
pub const DEFAULT: Amount = Amount::Percent(10);

/// Why something is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAmount {
    /// It cannot be read.
    #[error("{field}: {text:?} is neither a number nor a percentage, such as 2 or 10%")]
    Unreadable {
        /// Which field.
        field: &'static str,
        /// What it says.
        text: String,
    },
    /// Nothing could ever move.
    #[error("{0}: with 0 no cluster could ever be changed; use paused instead")]
    None(&'static str),
}

impl Amount {
    /// Reads a field. Where it is absent, the default holds.
    pub fn read(field: &'static str, value: Option<&Literal>) -> Result<Self, NoAmount> {
        let Some(value) = value else {
            return Ok(DEFAULT);
        };
        let text = value.text();
        let unreadable = || NoAmount::Unreadable {
            field,
            text: text.clone(),
        };
        match text.strip_suffix('%') {
            Some(percent) => match percent.parse() {
                Ok(percent @ 0..=100) => Ok(Self::Percent(percent)),
                _ => Err(unreadable()),
            },
            None => text.parse().map(Self::Number).map_err(|_| unreadable()),
        }
    }

    /// The same, where nothing is no answer.
    pub fn read_some(field: &'static str, value: Option<&Literal>) -> Result<Self, NoAmount> {
        match Self::read(field, value)? {
            Self::Number(0) | Self::Percent(0) => Err(NoAmount::None(field)),
            amount => Ok(amount),
        }
    }

    /// How many that is of so many: percentages are rounded down, but to at least one, unless none was asked for.
    pub fn of(self, total: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Percent(0) => 0,
            Self::Percent(percent) => (total * percent / 100).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use slipway_api::fleet::binding::Literal;

    use super::{Amount, NoAmount};

    fn read(text: &str) -> Result<Amount, NoAmount> {
        Amount::read_some("maxUnreadyClusters", Some(&Literal::from(text)))
    }

    #[test]
    fn percentages_are_rounded_down_to_at_least_one() {
        for (amount, total, expected) in [
            (Amount::Percent(10), 0, 1),
            (Amount::Percent(10), 1, 1),
            (Amount::Percent(10), 19, 1),
            (Amount::Percent(10), 20, 2),
            (Amount::Percent(99), 100, 99),
            (Amount::Percent(100), 3, 3),
            (Amount::Percent(0), 100, 0),
            (Amount::Number(2), 1, 2),
            (Amount::Number(0), 5, 0),
        ] {
            assert_eq!(amount.of(total), expected, "{amount:?} of {total}");
        }
    }

    #[test]
    fn amounts_are_read_as_people_write_them() {
        assert_eq!(Amount::read("f", None), Ok(Amount::Percent(10)));
        assert_eq!(read("2"), Ok(Amount::Number(2)));
        assert_eq!(read("25%"), Ok(Amount::Percent(25)));
        for text in ["0", "0%"] {
            assert_eq!(read(text), Err(NoAmount::None("maxUnreadyClusters")));
        }
        for text in ["", "%", "101%", "-1", "1.5", "a few"] {
            assert!(
                matches!(read(text), Err(NoAmount::Unreadable { .. })),
                "{text}"
            );
        }
    }
}
