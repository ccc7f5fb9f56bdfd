//! Why a kubeconfig is not used.

use slipway_kernel::address::NotAUrl;

use super::LARGEST;
use crate::tls::Problem;

/// Why a kubeconfig is not used. Fields are named by their place (`users[0].user.exec`); nothing that stands in one is in
/// any of these, but for the host of a server that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// It is too large.
    #[error("the kubeconfig has more than {LARGEST} bytes: put only one cluster and user into it")]
    TooLarge,
    /// It is not YAML or JSON, or more of it than is needed here.
    #[error("the kubeconfig cannot be read: line {line}: {what}")]
    Syntax {
        /// Where.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A field that would have us do more than talk to a server.
    #[error("the kubeconfig's {field} (line {line}) is not taken from a Secret: {why}")]
    Refused {
        /// Which field.
        field: String,
        /// Where.
        line: usize,
        /// What it would do, and what to do instead.
        why: &'static str,
    },
    /// A field that nobody knows.
    #[error(
        "the kubeconfig has a field in {place} (line {line}) that is not known: {}; take it out",
        .name.as_deref().unwrap_or("its name is not shown")
    )]
    Unknown {
        /// Where in the file.
        place: String,
        /// Where.
        line: usize,
        /// What it is called, if it looks like a name of a field at all.
        name: Option<String>,
    },
    /// Something is not there.
    #[error("the kubeconfig's {0} is missing or empty")]
    Missing(String),
    /// Something is there that is not expected.
    #[error("the kubeconfig's {field} is not {expected}")]
    Wrong {
        /// Which field.
        field: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Two entries of one name.
    #[error("the kubeconfig's {0} is the name of another entry as well: give each its own")]
    Duplicate(String),
    /// A name that no entry has.
    #[error("the kubeconfig's {0} names an entry that is not there")]
    Dangling(String),
    /// It is not clear which entries are meant.
    #[error(
        "the kubeconfig does not say which cluster and user are meant: set current-context, or leave only one of each"
    )]
    NoCurrentContext,
    /// The address of the server.
    #[error("the kubeconfig's {field} cannot be used: {why}")]
    Server {
        /// Which field.
        field: String,
        /// Why not.
        why: NotAUrl,
    },
    /// In the open.
    #[error("the kubeconfig's {0} is not https://: credentials are sent over TLS only")]
    NotHttps(String),
    /// With a query.
    #[error("the kubeconfig's {0} has a query (?), which no API server has")]
    ServerQuery(String),
    /// A path that is read in different ways.
    #[error("the kubeconfig's {0} has a path with dots or escapes: write it out")]
    ServerPath(String),
    /// Somewhere else.
    #[error(
        "the kubeconfig's {field} is at {host}, which is not on the administrator's list of hosts for members"
    )]
    NotAllowed {
        /// Which field.
        field: String,
        /// Who is not allowed.
        host: String,
    },
    /// No base64.
    #[error("the kubeconfig's {0} is not base64")]
    Base64(String),
    /// No certificate, or no key that fits.
    #[error("the kubeconfig's {field} cannot be used: {problem}")]
    Certificate {
        /// Which field.
        field: String,
        /// Why not.
        problem: Problem,
    },
    /// A token that cannot be sent.
    #[error(
        "the kubeconfig's {0} cannot be sent as a token: it is too long, or has spaces, line breaks or other characters that no token has"
    )]
    Token(String),
    /// We would be nobody.
    #[error(
        "the kubeconfig's {0} has neither a token nor client-certificate-data and client-key-data"
    )]
    NoCredentials(String),
    /// We would be two.
    #[error("the kubeconfig's {0} has a token and a client certificate: keep one")]
    TwoCredentials(String),
}
