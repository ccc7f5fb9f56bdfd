//! Why a question has no answer.

use std::borrow::Cow;

use super::prometheus;
use crate::text;

/// How much is kept of what stands behind a failure, in characters.
const LONGEST_WHY: usize = 256;

/// What was waited for when the time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiting {
    /// For being asked at all: too many other questions were under way.
    Turn,
    /// For the other side.
    Answer,
}

/// Why a question has no answer. That is an answer too: whoever asked decides what it means. Texts name who was asked,
/// and nothing that is secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Not within the time.
    #[error("no answer within the time{}", match .0 {
        Waiting::Turn => ": it was not asked yet, because too many other questions were under way",
        Waiting::Answer => "",
    })]
    Timeout(Waiting),
    /// The other side answers, and says no.
    #[error("refused with code {code}: {message}")]
    Refused {
        /// The HTTP status code.
        code: u16,
        /// What it says.
        message: String,
    },
    /// There is an answer, and it cannot be understood.
    #[error("the answer cannot be understood: {0}")]
    Malformed(String),
    /// There is more of an answer than may be read.
    #[error("the answer is too large: {what} of more than {most} bytes")]
    TooLarge {
        /// What of it.
        what: &'static str,
        /// How much may be read.
        most: usize,
    },
    /// Nobody is there, or it is not who was meant.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It must not be asked, or not with these credentials.
    #[error("must not be asked: {0}")]
    NotAllowed(String),
}

impl Failure {
    /// All words that metrics have for it.
    pub const OUTCOMES: [&'static str; 7] = [
        "not_asked",
        "timeout",
        "refused",
        "malformed",
        "too_large",
        "unreachable",
        "not_allowed",
    ];

    /// The same with a text that is short and plain, whoever has written it.
    #[must_use]
    pub fn shortened(self) -> Self {
        match self {
            Self::Refused { code, message } => Self::Refused {
                code,
                message: short(&message),
            },
            Self::Malformed(why) => Self::Malformed(short(&why)),
            Self::Unreachable(why) => Self::Unreachable(short(&why)),
            Self::NotAllowed(why) => Self::NotAllowed(short(&why)),
            failure @ (Self::Timeout(_) | Self::TooLarge { .. }) => failure,
        }
    }

    /// One word, as metrics have it.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Timeout(Waiting::Turn) => "not_asked",
            Self::Timeout(Waiting::Answer) => "timeout",
            Self::Refused { .. } => "refused",
            Self::Malformed(_) => "malformed",
            Self::TooLarge { .. } => "too_large",
            Self::Unreachable(_) => "unreachable",
            Self::NotAllowed(_) => "not_allowed",
        }
    }

    /// What stands behind it, without what kind of failure it is.
    pub fn why(&self) -> Cow<'_, str> {
        match self {
            Self::Refused { message, .. } => message.into(),
            Self::Malformed(why) | Self::Unreachable(why) | Self::NotAllowed(why) => why.into(),
            Self::Timeout(_) | Self::TooLarge { .. } => self.to_string().into(),
        }
    }

    /// How many bytes of text there are in it.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Refused { message, .. } => message.len(),
            Self::Malformed(why) | Self::Unreachable(why) | Self::NotAllowed(why) => why.len(),
            Self::Timeout(_) | Self::TooLarge { .. } => 0,
        }
    }

    /// Whether whoever was asked is better left alone for a while: nobody is there, or it says itself that it has too much
    /// to do. One question that takes too long, also for Prometheus by its own word, is not held against others.
    pub fn is_of_target(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { code: 503, message } => !prometheus::is_too_slow(message),
            Self::Refused { code, .. } => *code == 429,
            Self::Timeout(_) | Self::Malformed(_) | Self::TooLarge { .. } | Self::NotAllowed(_) => {
                false
            }
        }
    }
}

/// As much of it as is kept.
fn short(text: &str) -> String {
    text::shortened(text, LONGEST_WHY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_a_failure_is_short_and_plain() {
        let long = format!("a\u{1b}[2Jb\r\n{}", "é".repeat(5_000));
        for failure in [
            Failure::Unreachable(long.clone()),
            Failure::NotAllowed(long.clone()),
            Failure::Malformed(long.clone()),
            Failure::Refused {
                code: 400,
                message: long.clone(),
            },
        ] {
            let failure = failure.shortened();
            let why = failure.why();
            assert!(why.starts_with("a[2Jbé") && why.ends_with('…'), "{why}");
            assert_eq!(why.chars().count(), LONGEST_WHY + 1);
        }
        let plain = Failure::Malformed("as it was".to_owned());
        assert_eq!(plain.clone().shortened(), plain);
    }

    #[test]
    fn only_what_is_the_targets_own_is_held_against_it() {
        let refused = |code: u16, message: &str| Failure::Refused {
            code,
            message: message.to_owned(),
        };
        for (failure, is) in [
            (Failure::Unreachable(String::new()), true),
            (refused(429, "slow down"), true),
            (refused(503, "overloaded"), true),
            // Prometheus says so of one query that took too long, or that its asker gave up.
            (
                refused(503, "timeout: query timed out in expression evaluation"),
                false,
            ),
            (
                refused(503, "canceled: query was canceled in query execution"),
                false,
            ),
            (refused(500, "internal: no"), false),
            (Failure::Timeout(Waiting::Answer), false),
            (Failure::Malformed(String::new()), false),
            (Failure::NotAllowed(String::new()), false),
        ] {
            assert_eq!(failure.is_of_target(), is, "{failure}");
        }
    }

    #[test]
    fn every_outcome_is_one_of_all() {
        for failure in [
            Failure::Timeout(Waiting::Turn),
            Failure::Timeout(Waiting::Answer),
            Failure::Malformed(String::new()),
            Failure::Unreachable(String::new()),
            Failure::NotAllowed(String::new()),
            Failure::TooLarge { what: "a", most: 1 },
            Failure::Refused {
                code: 400,
                message: String::new(),
            },
        ] {
            assert!(Failure::OUTCOMES.contains(&failure.outcome()), "{failure}");
        }
    }
}
