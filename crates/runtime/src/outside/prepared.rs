//! A call with all that it needs to be made: the values of Secrets are put in here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use slipway_kernel::Sensitive;
use slipway_kernel::address::{Rules, Scheme, Url};
use slipway_kernel::question::{Call, Credential, Failure, Header, SecretRef, Target, Trust};
use zeroize::Zeroize;

use super::redaction::Redaction;
use super::signature::Signer;
use super::{Asked, Secrets, Terms, Use};
use crate::gather::IDEMPOTENCY_KEY;

/// What stands for the host in metrics where the address is secret: no host has such a name.
const SECRET_HOST: &str = "<secret>";
/// The longest value that is taken out of answers again.
const LONGEST: usize = 8 * 1024;
/// Shorter values are found in any text, and keep nothing secret.
const SHORTEST: usize = 4;

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
    /// Who signs what is said, if that is signed.
    pub(super) signer: Option<Signer>,
    /// What must not be seen.
    pub(super) redaction: Redaction,
}

/// What metrics call the target.
pub(super) fn label(call: &Call) -> String {
    match &call.target {
        Target::Url(url) => url.host.bare(),
        Target::Secret(_) | Target::SecretWith(..) => SECRET_HOST.to_owned(),
    }
}

/// Refuses what can be seen to be wrong before anything is read or anybody is waited for.
pub(super) fn check(asked: &Asked, terms: &Terms, rules: &Rules) -> Result<(), Failure> {
    let Asked { key, call, .. } = asked;
    for reference in call.references() {
        let checked = terms.other_namespaces.check(&key.namespace, reference);
        checked.map_err(|why| Failure::NotAllowed(why.to_string()))?;
    }
    let Target::Url(url) = &call.target else {
        return Ok(());
    };
    check_url(url, call, terms, rules).map_err(Failure::NotAllowed)
}

/// Whether an address may be called, and with what the call has.
fn check_url(url: &Url, call: &Call, terms: &Terms, rules: &Rules) -> Result<(), String> {
    let is_secret = !call.credentials.is_empty() || call.target.secret().is_some();
    if is_secret && url.scheme == Scheme::Http && !terms.credentials_over_http {
        let why = "credentials are not sent over http://, where anybody on the way can read them, unless the administrator \
                   allows it";
        return Err(why.to_owned());
    }
    rules.check_host(&url.host).map_err(|why| why.to_string())
}

/// Reads the Secrets of a call and puts them in.
pub(super) async fn prepare(
    asked: &Asked,
    terms: &Terms,
    rules: &Rules,
    secrets: &dyn Secrets,
) -> Result<Prepared, Failure> {
    let Asked { id, call, .. } = asked;
    let mut redaction = Redaction::default();
    let url = address(call, secrets, &mut redaction).await?;
    let checked = check_url(&url, call, terms, rules);
    checked.map_err(|why| Failure::NotAllowed(redaction.of_text(why)))?;
    let trust = match &call.trust {
        Trust::System => None,
        Trust::Pem(pem) => Some(pem.clone()),
        Trust::Secret(reference) => {
            let pem = read(reference, secrets, Use::Authority).await?;
            Some(pem.expose().clone())
        }
    };
    let mut prepared = Prepared {
        url,
        headers: HeaderMap::new(),
        private: HeaderMap::new(),
        trust,
        signer: None,
        redaction,
    };
    common(call, id, terms.agent, &mut prepared)?;
    for credential in &call.credentials {
        add(credential, secrets, &mut prepared).await?;
    }
    if let Some(reference) = &call.signed_with {
        let key = secret(reference, secrets, &mut prepared).await?;
        let signer = Signer::new(&key, id);
        let signer = signer
            .map_err(|why| Failure::NotAllowed(format!("{reference} cannot be used: {why}")))?;
        prepared.signer = Some(signer);
    }
    Ok(prepared)
}

/// Whom to call.
async fn address(
    call: &Call,
    secrets: &dyn Secrets,
    redaction: &mut Redaction,
) -> Result<Url, Failure> {
    let (reference, end) = match &call.target {
        Target::Url(url) => return Ok(url.clone()),
        Target::Secret(reference) => (reference, ""),
        Target::SecretWith(reference, end) => (reference, *end),
    };
    let text = read(reference, secrets, Use::Address).await?;
    let text = text.expose().trim();
    let url = Url::parse(&ending(text, end)).map_err(|why| {
        Failure::NotAllowed(format!("the address in {reference} cannot be used: {why}"))
    })?;
    for part in [text, &url.to_string(), &url.target(), &url.host.bare()] {
        redaction.add(part);
    }
    Ok(url)
}

/// An address whose path ends so.
fn ending(text: &str, end: &str) -> String {
    let stem = text.trim_end_matches('/');
    if end.is_empty() || stem.ends_with(end) {
        text.to_owned()
    } else {
        format!("{stem}{end}")
    }
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
            // Names are often short, and then no secret.
            let user = value(user, secrets).await?;
            to.redaction.add(user.expose());
            let password = secret(password, secrets, to).await?;
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
    let text = value(reference, secrets).await?;
    if text.expose().len() < SHORTEST {
        return Err(Failure::NotAllowed(format!(
            "{reference} cannot be used: it has less than {SHORTEST} bytes, which could not be kept out of what is told"
        )));
    }
    to.redaction.add(text.expose());
    Ok(text)
}

/// A value as it is sent.
async fn value(reference: &SecretRef, secrets: &dyn Secrets) -> Result<Sensitive<String>, Failure> {
    let text = read(reference, secrets, Use::Credential).await?;
    // Files and editors leave a line break.
    let text = Sensitive::new(text.expose().trim_end_matches(['\r', '\n']).to_owned());
    Ok(text)
}

async fn read(
    reference: &SecretRef,
    secrets: &dyn Secrets,
    used: Use,
) -> Result<Sensitive<String>, Failure> {
    let no = |why: &str| Failure::NotAllowed(format!("{reference} cannot be used: {why}"));
    let bytes = secrets.read(reference, used).await;
    let bytes = bytes.map_err(|why| no(&why))?;
    if used != Use::Authority && bytes.expose().len() > LONGEST {
        return Err(no(&format!("it has more than {LONGEST} bytes")));
    }
    let text = std::str::from_utf8(bytes.expose()).map_err(|_| no("it is no text"))?;
    Ok(Sensitive::new(text.to_owned()))
}

fn pair(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let wrong = || Failure::NotAllowed(format!("the header {name} cannot be sent"));
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::ending;

    #[test]
    fn an_address_ends_as_it_has_to_once() {
        for text in ["https://a/b", "https://a/b/", "https://a/b/slack"] {
            assert_eq!(ending(text, "/slack"), "https://a/b/slack", "{text}");
        }
        assert_eq!(ending("https://a/b/", ""), "https://a/b/");
    }
}
