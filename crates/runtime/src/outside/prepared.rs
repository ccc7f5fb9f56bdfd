//! A call with all that it needs to be made: the values of Secrets are put in here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use slipway_kernel::Sensitive;
use slipway_kernel::address::Url;
use slipway_kernel::question::{Call, Credential, Failure, Header, SecretRef, Target, Trust};
use zeroize::Zeroize;

use super::redaction::Redaction;
use super::{Asked, Secrets, Terms};
use crate::gather::IDEMPOTENCY_KEY;

/// What stands for the host in metrics where the address is secret.
const SECRET_HOST: &str = "secret";

/// A call that can be made.
pub(super) struct Prepared {
    /// Whom.
    pub(super) url: Url,
    /// What is said to anybody.
    pub(super) headers: HeaderMap,
    /// What is said only to whom the call is for.
    pub(super) private: HeaderMap,
    /// The authorities whose word is taken, in PEM; none means the system's.
    pub(super) trust: Option<String>,
    /// What must not be seen.
    pub(super) redaction: Redaction,
    /// What metrics call the target.
    pub(super) label: String,
}

impl Prepared {
    /// Who has to answer, as turns and back-off know it.
    pub(super) fn target(&self) -> String {
        format!("{}:{}", self.url.host.bare(), self.url.port)
    }
}

/// Reads the Secrets of a call and puts them in.
pub(super) async fn prepare(
    asked: &Asked,
    terms: &Terms,
    secrets: &dyn Secrets,
) -> Result<Prepared, Failure> {
    let Asked { key, id, call } = asked;
    for reference in call.references() {
        let checked = terms.other_namespaces.check(&key.namespace, reference);
        checked.map_err(|why| Failure::NotAllowed(why.to_string()))?;
    }
    let mut redaction = Redaction::default();
    let (url, label) = address(call, secrets, &mut redaction).await?;
    let trust = match &call.trust {
        Trust::System => None,
        Trust::Pem(pem) => Some(pem.clone()),
        Trust::Secret(reference) => Some(read(reference, secrets).await?.expose().clone()),
    };
    let mut prepared = Prepared {
        url,
        headers: HeaderMap::new(),
        private: HeaderMap::new(),
        trust,
        redaction,
        label,
    };
    common(call, id, terms.agent, &mut prepared)?;
    for credential in &call.credentials {
        add(credential, secrets, &mut prepared).await?;
    }
    let checked = terms.rules.check_host(&prepared.url.host);
    checked.map_err(|why| Failure::NotAllowed(prepared.redaction.of_text(why.to_string())))?;
    Ok(prepared)
}

/// Whom to call, and what metrics say of that.
async fn address(
    call: &Call,
    secrets: &dyn Secrets,
    redaction: &mut Redaction,
) -> Result<(Url, String), Failure> {
    let reference = match &call.target {
        Target::Url(url) => return Ok((url.clone(), url.host.bare())),
        Target::Secret(reference) => reference,
    };
    let text = read(reference, secrets).await?;
    let text = text.expose().trim();
    let url = Url::parse(text).map_err(|why| {
        Failure::NotAllowed(format!("the address in {reference} cannot be used: {why}"))
    })?;
    for part in [text, &url.to_string(), &url.target(), &url.host.bare()] {
        redaction.add(part);
    }
    Ok((url, SECRET_HOST.to_owned()))
}

fn common(call: &Call, id: &str, agent: &'static str, to: &mut Prepared) -> Result<(), Failure> {
    for header in &call.headers {
        let (name, value) = pair(header.name(), header.value())?;
        // Whatever people have typed in is meant for whom they named, but for what the body is.
        let map = if header.name() == "content-type" {
            &mut to.headers
        } else {
            &mut to.private
        };
        map.append(name, value);
    }
    to.headers
        .insert(USER_AGENT, HeaderValue::from_static(agent));
    to.headers
        .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let (_, id) = pair("idempotency-key", id)?;
    to.headers.insert(IDEMPOTENCY_KEY, id);
    Ok(())
}

async fn add(
    credential: &Credential,
    secrets: &dyn Secrets,
    to: &mut Prepared,
) -> Result<(), Failure> {
    let (name, mut value) = match credential {
        Credential::Bearer(reference) => {
            let token = secret(reference, secrets, to).await?;
            (AUTHORIZATION, format!("Bearer {}", token.expose()))
        }
        Credential::Basic { user, password } => {
            let (user, password) = (
                secret(user, secrets, to).await?,
                secret(password, secrets, to).await?,
            );
            let both = Sensitive::new(format!("{}:{}", user.expose(), password.expose()));
            to.redaction.add(both.expose());
            (
                AUTHORIZATION,
                format!("Basic {}", STANDARD.encode(both.expose())),
            )
        }
        Credential::Header { name, value } => {
            let checked = Header::check_name(name);
            let name = checked.map_err(|why| Failure::NotAllowed(why.to_string()))?;
            let value = secret(value, secrets, to).await?;
            (pair(&name, "")?.0, value.expose().clone())
        }
        Credential::Parameter { name, value } => {
            let value = secret(value, secrets, to).await?;
            to.url = to.url.clone().with_parameter(name, value.expose());
            return Ok(());
        }
    };
    let header = HeaderValue::from_str(&value);
    value.zeroize();
    // What is wrong with it is not told: it would be the value.
    let mut header = header.map_err(|_| {
        Failure::NotAllowed("a Secret has a value that no header can have".to_owned())
    })?;
    header.set_sensitive(true);
    to.private.insert(name, header);
    Ok(())
}

/// A value that must not be seen from now on.
async fn secret(
    reference: &SecretRef,
    secrets: &dyn Secrets,
    to: &mut Prepared,
) -> Result<Sensitive<String>, Failure> {
    let text = read(reference, secrets).await?;
    // Files and editors leave a line break.
    let text = Sensitive::new(text.expose().trim_end_matches(['\r', '\n']).to_owned());
    to.redaction.add(text.expose());
    Ok(text)
}

async fn read(reference: &SecretRef, secrets: &dyn Secrets) -> Result<Sensitive<String>, Failure> {
    let no = |why: &str| Failure::NotAllowed(format!("{reference} cannot be used: {why}"));
    let bytes = secrets.read(reference).await.map_err(|why| no(&why))?;
    let text = std::str::from_utf8(bytes.expose()).map_err(|_| no("it is no text"))?;
    Ok(Sensitive::new(text.to_owned()))
}

fn pair(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let wrong = || Failure::NotAllowed(format!("the header {name} cannot be sent"));
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
    Ok((name, value))
}
