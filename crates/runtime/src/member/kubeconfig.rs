//! A kubeconfig out of a Secret, read strictly.
//!
//! `kube::config::Kubeconfig` is for files of whoever runs the program: it runs `exec` plugins and opens files. This one
//! takes a server, its CA, and a token or a client certificate. All else that kubectl knows is refused by name, in entries
//! that are not used as well, and what nobody knows is refused too. `extensions` and `preferences` are passed over.

mod error;
mod fields;
mod tree;

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::sign::CertifiedKey;
use slipway_kernel::Sensitive;
use slipway_kernel::address::{AllowedHosts, Scheme, Url};

use super::client::{self, ClientError};
use crate::channel::Channel;
use crate::link::Link;
use crate::tls::{Pair, certificates};
use fields::{Entry, Section};

pub use error::KubeconfigError;

/// The largest kubeconfig: room for bundles of CAs, and nothing for bombs.
pub const LARGEST: usize = 256 * 1024;
/// The longest token: those of service accounts have about 1 KiB.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Where a member's API server is, and who we are there.
pub struct Kubeconfig {
    server: Url,
    /// Whom to trust; none means the system's roots.
    authority: Option<Arc<RootCertStore>>,
    credentials: Credentials,
    namespace: String,
}

/// Who we are.
pub(super) enum Credentials {
    Token(Sensitive<String>),
    Certificate(Arc<CertifiedKey>),
}

impl Kubeconfig {
    /// Reads YAML or JSON.
    pub fn parse(bytes: &[u8], allowed: &AllowedHosts) -> Result<Self, KubeconfigError> {
        if bytes.len() > LARGEST {
            return Err(KubeconfigError::TooLarge);
        }
        let root = tree::read(bytes)?;
        let file = Section::root(&root)?;
        file.check(fields::FILE)?;
        file.expect("apiVersion", "v1")?;
        file.expect("kind", "Config")?;
        let clusters = file.entries("clusters", "cluster", fields::CLUSTER)?;
        let contexts = file.entries("contexts", "context", fields::CONTEXT)?;
        let users = file.entries("users", "user", fields::USER)?;
        let chosen = choose(&file, &clusters, &contexts, &users)?;
        let namespace = chosen
            .context
            .map_or(Ok(None), |context| namespace(&context.body))?;
        Ok(Self {
            server: server(&chosen.cluster.body, allowed)?,
            authority: authority(&chosen.cluster.body)?,
            credentials: credentials(&chosen.user.body)?,
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
        })
    }

    /// Where the API server is.
    pub fn server(&self) -> &Url {
        &self.server
    }

    /// The namespace of requests that name none.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The way to it. It connects when it is first used, and over HTTP/2 only: all requests and watches share one
    /// connection.
    pub fn channel(&self, link: &Link) -> Result<Channel, ClientError> {
        client::build(self, link)
    }

    /// A client that goes this way.
    pub fn client(&self, link: &Link) -> Result<kube::Client, ClientError> {
        Ok(self.channel(link)?.client(&self.namespace))
    }

    pub(super) fn authority(&self) -> Option<&Arc<RootCertStore>> {
        self.authority.as_ref()
    }

    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

/// Without anything secret.
impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credentials = match &self.credentials {
            Credentials::Token(_) => "a token",
            Credentials::Certificate(_) => "a certificate",
        };
        f.debug_struct("Kubeconfig")
            .field("server", &self.server.to_string())
            .field("credentials", &credentials)
            .finish_non_exhaustive()
    }
}

/// The entries that count.
struct Chosen<'a> {
    cluster: &'a Entry<'a>,
    context: Option<&'a Entry<'a>>,
    user: &'a Entry<'a>,
}

/// The entries that `current-context` names, or the only ones.
fn choose<'a>(
    file: &Section<'_>,
    clusters: &'a [Entry<'a>],
    contexts: &'a [Entry<'a>],
    users: &'a [Entry<'a>],
) -> Result<Chosen<'a>, KubeconfigError> {
    let current = file.text("current-context")?;
    let context = match (current, contexts) {
        (Some(current), _) => Some(find(contexts, current, || "current-context".to_owned())?),
        (None, [only]) => Some(only),
        (None, []) => None,
        (None, _) => return Err(KubeconfigError::NoCurrentContext),
    };
    let Some(context) = context else {
        let ([cluster], [user]) = (clusters, users) else {
            return Err(KubeconfigError::NoCurrentContext);
        };
        return Ok(Chosen {
            cluster,
            context,
            user,
        });
    };
    let named = |field: &'static str, among: &'a [Entry<'a>]| {
        let name = context.body.text(field)?;
        let path = || context.body.path(field);
        let name = name.ok_or_else(|| KubeconfigError::Missing(path()))?;
        find(among, name, path)
    };
    Ok(Chosen {
        cluster: named("cluster", clusters)?,
        context: Some(context),
        user: named("user", users)?,
    })
}

fn find<'a>(
    among: &'a [Entry<'a>],
    name: &Sensitive<String>,
    path: impl Fn() -> String,
) -> Result<&'a Entry<'a>, KubeconfigError> {
    let found = among.iter().find(|entry| entry.name == name.expose());
    found.ok_or_else(|| KubeconfigError::Dangling(path()))
}

fn server(cluster: &Section<'_>, allowed: &AllowedHosts) -> Result<Url, KubeconfigError> {
    let field = || cluster.path("server");
    let text = cluster.text("server")?;
    let text = text.ok_or_else(|| KubeconfigError::Missing(field()))?;
    let url = Url::parse(text.expose()).map_err(|why| KubeconfigError::Server {
        field: field(),
        why,
    })?;
    if url.scheme != Scheme::Https {
        return Err(KubeconfigError::NotHttps(field()));
    }
    if url.query().is_some() {
        return Err(KubeconfigError::ServerQuery(field()));
    }
    // Some clients would go up from there, others not.
    if url
        .path()
        .split('/')
        .any(|part| part == "." || part == "..")
        || url.path().contains('%')
    {
        return Err(KubeconfigError::ServerPath(field()));
    }
    if !allowed.allows(&url.host) {
        return Err(KubeconfigError::NotAllowed {
            field: field(),
            host: url.host.bare(),
        });
    }
    Ok(url)
}

fn authority(cluster: &Section<'_>) -> Result<Option<Arc<RootCertStore>>, KubeconfigError> {
    const FIELD: &str = "certificate-authority-data";
    let Some(pem) = decoded(cluster, FIELD)? else {
        return Ok(None);
    };
    let bad = |problem| KubeconfigError::Certificate {
        field: cluster.path(FIELD),
        problem,
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem.expose()).map_err(bad)? {
        let added = roots.add(certificate);
        added.map_err(|_| bad(crate::tls::Problem::Malformed))?;
    }
    Ok(Some(Arc::new(roots)))
}

fn credentials(user: &Section<'_>) -> Result<Credentials, KubeconfigError> {
    const CERTIFICATE: &str = "client-certificate-data";
    const KEY: &str = "client-key-data";
    let missing = |field| Err(KubeconfigError::Missing(user.path(field)));
    let certificate = decoded(user, CERTIFICATE)?;
    let key = decoded(user, KEY)?;
    match (user.text("token")?, certificate, key) {
        (Some(token), None, None) => {
            if token.expose().len() > LONGEST_TOKEN
                || !token.expose().bytes().all(|b| b.is_ascii_graphic())
            {
                return Err(KubeconfigError::Token(user.path("token")));
            }
            Ok(Credentials::Token(token.clone()))
        }
        (None, Some(certificate), Some(key)) => {
            let pair = Pair::read(certificate.expose(), key.expose());
            let pair = pair.map_err(|problem| KubeconfigError::Certificate {
                field: user.path(CERTIFICATE),
                problem,
            })?;
            Ok(Credentials::Certificate(pair.key().clone()))
        }
        (None, Some(_), None) => missing(KEY),
        (None, None, Some(_)) => missing(CERTIFICATE),
        (None, None, None) => Err(KubeconfigError::NoCredentials(user.place().to_owned())),
        (Some(_), _, _) => Err(KubeconfigError::TwoCredentials(user.place().to_owned())),
    }
}

fn namespace(context: &Section<'_>) -> Result<Option<String>, KubeconfigError> {
    let Some(name) = context.text("namespace")? else {
        return Ok(None);
    };
    let name = name.expose();
    let is_known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.len() > 63 || !name.bytes().all(is_known) {
        return Err(KubeconfigError::Wrong {
            field: context.path("namespace"),
            expected: "the name of a namespace",
        });
    }
    Ok(Some(name.clone()))
}

/// What is base64 in a field.
fn decoded(
    section: &Section<'_>,
    field: &'static str,
) -> Result<Option<Sensitive<Vec<u8>>>, KubeconfigError> {
    let Some(text) = section.text(field)? else {
        return Ok(None);
    };
    // Long lines are often folded.
    let compact: Vec<u8> = text
        .expose()
        .bytes()
        .filter(|b| !b.is_ascii_whitespace())
        .collect();
    let compact = Sensitive::new(compact);
    match STANDARD.decode(compact.expose()) {
        Ok(bytes) => Ok(Some(Sensitive::new(bytes))),
        Err(_) => Err(KubeconfigError::Base64(section.path(field))),
    }
}

#[cfg(test)]
mod tests;
