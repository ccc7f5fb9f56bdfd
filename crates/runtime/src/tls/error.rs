//! Why there is no certificate.

use std::path::PathBuf;

use jiff::Timestamp;

/// What is wrong with a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing that is a certificate.
    #[error("there is no PEM certificate in it")]
    NoCertificate,
    /// Nothing that is a key.
    #[error("there is no PEM private key (PKCS#1, PKCS#8 or SEC 1) in it")]
    NoKey,
    /// A certificate that is none.
    #[error("a certificate in it cannot be understood")]
    Malformed,
    /// The key is of another certificate, or of a kind that TLS does not know.
    #[error("the key does not fit the certificate: {0}")]
    Key(String),
    /// It has ended.
    #[error("it ended at {0}")]
    Ended(Timestamp),
    /// It is not for this name, or not signed by its CA, or otherwise not to be trusted.
    #[error("no client would trust it for the name {name}: {why}")]
    Untrusted {
        /// The name.
        name: String,
        /// The verifier's word.
        why: String,
    },
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API did not let us see or write the Secret.
    #[error(
        "cannot {verb} the Secret {namespace}/{name} for the webhook certificate: {message} ({reason}); the operator needs `create` on secrets and `get` and `update` on this one"
    )]
    Secret {
        /// What was tried.
        verb: &'static str,
        /// Where.
        namespace: String,
        /// Which one.
        name: String,
        /// The API's word.
        reason: String,
        /// The API's sentence.
        message: String,
    },
    /// The Secret is somebody else's.
    #[error(
        "the Secret {namespace}/{name} has other keys but no `{key}`: delete it, and a new one is made, or name another one with -server-tls.self-signed-cert.secret-name"
    )]
    Foreign {
        /// Where.
        namespace: String,
        /// Which one.
        name: String,
        /// What is missing.
        key: &'static str,
    },
    /// Other replicas wrote the Secret whenever we were about to.
    #[error("the Secret {namespace}/{name} changes all the time: see who writes it")]
    Restless {
        /// Where.
        namespace: String,
        /// Which one.
        name: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {source}; check -server-tls.cert-file and -server-tls.key-file")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What is in the files cannot be used.
    #[error("cannot use the certificate in {certificate} with the key in {key}: {problem}")]
    Pair {
        /// One file.
        certificate: PathBuf,
        /// The other one.
        key: PathBuf,
        /// Why not.
        problem: Problem,
    },
    /// The file with the CA of callers cannot be read.
    #[error("cannot read the CA of callers from {path}: {source}; check --webhooks-client-ca")]
    CallersFile {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The CA of callers cannot be used.
    #[error("cannot use the CA of callers in {path}: {problem}; check --webhooks-client-ca")]
    Callers {
        /// Which file.
        path: PathBuf,
        /// Why not.
        problem: Problem,
    },
    /// No certificate could be made.
    #[error(
        "cannot make a certificate for {names:?}: {source}; check -server-tls.self-signed-cert.dns-name"
    )]
    Issue {
        /// For what.
        names: Vec<String>,
        /// Why not.
        source: rcgen::Error,
    },
    /// There is nobody to ask.
    #[error("a self-signed certificate is kept in a Secret: that needs a cluster")]
    NoCluster,
}
