//! One HTTP call, before it is made.

use std::time::Duration;

use super::header::Header;
use super::reply::Wanted;
use super::secret::SecretRef;
use crate::address::Url;

/// What is done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Reads.
    Get,
    /// Tells.
    Post,
    /// Puts in place.
    Put,
}

impl Method {
    /// As HTTP has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// Whom to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// At this address.
    Url(Url),
    /// At the address in a Secret: those of chat services are secret.
    Secret(SecretRef),
    /// The same, where the path ends so: what is not there is added.
    SecretWith(SecretRef, &'static str),
}

impl Target {
    /// Where its address is, if that is secret.
    pub fn secret(&self) -> Option<&SecretRef> {
        match self {
            Self::Url(_) => None,
            Self::Secret(reference) | Self::SecretWith(reference, _) => Some(reference),
        }
    }
}

/// Whose word is taken for who the other side is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trust {
    /// That of the authorities that the system trusts.
    #[default]
    System,
    /// That of these authorities alone, in PEM.
    Pem(String),
    /// That of the authorities alone that are in a Secret, in PEM.
    Secret(SecretRef),
}

/// Who we are, by reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// `Authorization: Bearer …`.
    Bearer(SecretRef),
    /// `Authorization: Basic …`.
    Basic {
        /// The name.
        user: SecretRef,
        /// The password.
        password: SecretRef,
    },
    /// A header of another name.
    Header {
        /// The name.
        name: String,
        /// What is in it.
        value: SecretRef,
    },
    /// A parameter of the query.
    Parameter {
        /// The name.
        name: String,
        /// What is in it.
        value: SecretRef,
    },
}

impl Credential {
    /// All Secrets that it needs.
    pub fn references(&self) -> Vec<&SecretRef> {
        match self {
            Self::Bearer(value) | Self::Header { value, .. } | Self::Parameter { value, .. } => {
                vec![value]
            }
            Self::Basic { user, password } => vec![user, password],
        }
    }
}

/// One HTTP call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// What is done.
    pub method: Method,
    /// Whom.
    pub target: Target,
    /// What is said besides, in the order in which it is sent.
    pub headers: Vec<Header>,
    /// What is sent along; empty if nothing is.
    pub body: String,
    /// Who we are.
    pub credentials: Vec<Credential>,
    /// By which key what is said is signed, if it is. The key is not sent, so that this may go where credentials do not.
    pub signed_with: Option<SecretRef>,
    /// Whose word is taken.
    pub trust: Trust,
    /// How often to go where the answer points instead; each such address is checked like the first.
    pub redirects: u8,
    /// How long all of it may take.
    pub timeout: Duration,
    /// How many bytes the body of an answer may have.
    pub largest: usize,
    /// What is read out of the answer.
    pub wanted: Wanted,
}

impl Call {
    /// How long it may take unless it says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// How much is read unless it says otherwise.
    pub const LARGEST: usize = 64 * 1024;

    /// A call of somebody that reads and wants to know the status; all else as it usually is.
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::Get,
            target: Target::Url(url),
            headers: Vec::new(),
            body: String::new(),
            credentials: Vec::new(),
            signed_with: None,
            trust: Trust::System,
            redirects: 0,
            timeout: Self::TIMEOUT,
            largest: Self::LARGEST,
            wanted: Wanted::Status,
        }
    }

    /// A call that sends JSON.
    pub fn post(url: Url, body: String) -> Self {
        Self {
            method: Method::Post,
            headers: vec![Header::json()],
            body,
            ..Self::get(url)
        }
    }

    /// All Secrets that are needed to make it.
    pub fn references(&self) -> Vec<&SecretRef> {
        let mut all: Vec<&SecretRef> = Vec::new();
        all.extend(self.target.secret());
        if let Trust::Secret(reference) = &self.trust {
            all.push(reference);
        }
        all.extend(self.credentials.iter().flat_map(Credential::references));
        all.extend(&self.signed_with);
        all
    }
}
