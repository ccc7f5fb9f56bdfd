//! What is wrong with a template.

/// What is wrong with a template, or with what is to be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// `{{` without `}}`.
    #[error("line {line}: there is a {{{{ without a }}}}")]
    Unclosed {
        /// Where.
        line: usize,
    },
    /// `{{ }}`.
    #[error("line {line}: there is nothing between {{{{ and }}}}")]
    Empty {
        /// Where.
        line: usize,
    },
    /// A name that nobody knows.
    #[error(
        "line {line}: {word:?} is not known; there are name, namespace, target, service, ingress, route, interval, variables.NAME, and the functions index, print, printf, urlquery, html and js"
    )]
    Unknown {
        /// Where.
        line: usize,
        /// Which.
        word: String,
    },
    /// A condition, a loop or the like.
    #[error(
        "line {line}: {word:?} is not supported: a template here fills in names and does nothing else"
    )]
    Unsupported {
        /// Where.
        line: usize,
        /// Which.
        word: String,
    },
    /// Something that is no name, text or pipe.
    #[error("line {line}: {what}")]
    Syntax {
        /// Where.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A variable that has no value.
    #[error("line {line}: the variable {name:?} is not set")]
    Unset {
        /// Where.
        line: usize,
        /// Which.
        name: String,
    },
    /// A value that would mean something else where it goes.
    #[error(
        "line {line}: the value of {what} has characters that would change the meaning of the text around it; put {{{{ }}}} within quotes"
    )]
    Unsafe {
        /// Where.
        line: usize,
        /// Of what.
        what: String,
    },
    /// `.` or `..` in the path of an address.
    #[error("the path has . or .. in it, which may lead elsewhere than the address says")]
    Climbs,
    /// Too long.
    #[error("it is longer than {0} bytes")]
    TooLong(usize),
}
