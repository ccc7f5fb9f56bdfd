//! Why a question has no answer.

use std::borrow::Cow;

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

    /// Whether whoever was asked is better left alone for a while, by everybody: nobody is there, or it says itself that it
    /// has too much to do. One question that takes too long is not held against others.
    pub fn is_of_target(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { code, .. } => matches!(code, 429 | 503),
            Self::Timeout(_) | Self::Malformed(_) | Self::TooLarge { .. } | Self::NotAllowed(_) => {
                false
            }
        }
    }
}
