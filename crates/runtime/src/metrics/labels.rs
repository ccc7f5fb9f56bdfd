//! Values of labels that come from outside. There are always few of them: whoever may send anything must not be able to
//! make series without end.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use http::StatusCode;

/// What all values are called that are not told apart.
pub(super) const OTHER: &str = "other";

/// How many values of one label are told apart.
const MOST: usize = 64;
/// Longer ones are not told apart.
const LONGEST: usize = 128;

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE",
];

/// A method of HTTP, if it is one of HTTP's own.
pub(super) fn method(method: &str) -> &'static str {
    let known = METHODS.iter().find(|known| **known == method);
    known.copied().unwrap_or(OTHER)
}

/// A status code, if it has a meaning.
pub(super) fn status(code: u16) -> String {
    let known = StatusCode::from_u16(code).ok();
    let known = known.filter(|code| code.canonical_reason().is_some());
    known.map_or_else(|| OTHER.to_owned(), |code| code.as_str().to_owned())
}

/// The values of one label that others choose: the first ones are told apart.
#[derive(Debug, Default)]
pub(super) struct Few(Mutex<BTreeSet<String>>);

impl Few {
    /// The value, or what stands for all further ones.
    pub(super) fn tell<'a>(&self, value: &'a str) -> &'a str {
        if value.len() > LONGEST {
            return OTHER;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(value) {
            return value;
        }
        if known.len() >= MOST {
            return OTHER;
        }
        known.insert(value.to_owned());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_http_knows_is_told_and_all_else_is_other() {
        assert_eq!(method("PATCH"), "PATCH");
        assert_eq!(method("patch"), OTHER);
        assert_eq!(method("MADEUP"), OTHER);
        assert_eq!(status(200), "200");
        assert_eq!(status(511), "511");
        for odd in [0, 299, 666, 999, 1_000] {
            assert_eq!(status(odd), OTHER, "{odd}");
        }
    }

    #[test]
    fn the_first_values_stay_and_further_ones_are_one() {
        let few = Few::default();
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(few.tell(&long), OTHER);
        for n in 0..MOST {
            let value = n.to_string();
            assert_eq!(few.tell(&value), value);
        }
        assert_eq!(few.tell("one more"), OTHER);
        assert_eq!(few.tell("7"), "7");
    }
}
