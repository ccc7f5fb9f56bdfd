//! Options about calls to the world outside of the API.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use slipway_kernel::address::{AllowedHosts, Patterns, Rules};
use slipway_kernel::question::{OtherNamespaces, SharedSecrets};

/// Who may be called, and with whose Secrets.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Outside {
    /// Hosts that metrics and webhooks may be asked of: names, `*.names`, addresses and ranges (default: any with a public
    /// or private address)
    #[arg(long = "call-only", value_delimiter = ',', value_name = "HOST,…")]
    pub(crate) only: Vec<String>,
    /// Hosts that may be called although their addresses are special, such as loopback and link-local ones
    #[arg(long = "call-special", value_delimiter = ',', value_name = "HOST,…")]
    pub(crate) special: Vec<String>,
    /// Hosts that are never called
    #[arg(long = "call-never", value_delimiter = ',', value_name = "HOST,…")]
    pub(crate) never: Vec<String>,
    /// Secrets that calls for objects of any namespace may use: NS/NAME, or NS/* for all of a namespace (default: each those
    /// of its own namespace only)
    #[arg(
        long = "call-secrets-of",
        value_delimiter = ',',
        value_name = "NS/NAME,…"
    )]
    pub(crate) secrets_of: Vec<String>,
    /// Send credentials also where the address begins with http://, for everybody on the way to read (default: refused)
    #[arg(long = "call-credentials-over-http")]
    pub(crate) credentials_over_http: bool,
}

impl Outside {
    /// Who may be called.
    pub(crate) fn rules(&self) -> Result<Rules> {
        let only = if self.only.is_empty() {
            AllowedHosts::any()
        } else {
            AllowedHosts::only(patterns("--call-only", &self.only)?)
        };
        Ok(Rules {
            only,
            special: patterns("--call-special", &self.special)?,
            denied: patterns("--call-never", &self.never)?,
            for_others: false,
        })
    }

    /// Whose Secrets may be used.
    pub(crate) fn secrets(&self) -> Result<OtherNamespaces> {
        if self.secrets_of.is_empty() {
            return Ok(OtherNamespaces::Refused);
        }
        let all = self
            .secrets_of
            .iter()
            .map(|text| SharedSecrets::parse(text));
        let all = all.collect::<Result<BTreeSet<_>, _>>();
        let all = all.context("reading --call-secrets-of")?;
        Ok(OtherNamespaces::Listed(all))
    }
}

fn patterns(option: &'static str, texts: &[String]) -> Result<Patterns> {
    let texts = texts.iter().map(String::as_str);
    Patterns::parse(texts).with_context(|| format!("reading {option}"))
}

#[cfg(test)]
mod tests {
    use slipway_kernel::address::Host;

    use super::*;

    #[test]
    fn who_may_be_called_is_as_the_options_say_and_a_typo_is_told() {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let options = Outside {
            only: texts(&["*.example.com", "127.0.0.1"]),
            special: texts(&["127.0.0.1"]),
            never: texts(&["bad.example.com"]),
            secrets_of: texts(&["shared/prometheus"]),
            credentials_over_http: false,
        };
        let rules = options.rules().unwrap();
        let is_allowed = |host: &str, address: &str| {
            let host = Host::parse(host).unwrap();
            let address = address.parse().unwrap();
            rules.check_host(&host).is_ok() && rules.check_address(&host, address).is_ok()
        };
        assert!(is_allowed("good.example.com", "10.0.0.1"));
        assert!(is_allowed("127.0.0.1", "127.0.0.1"));
        assert!(!is_allowed("bad.example.com", "10.0.0.1"));
        assert!(!is_allowed("example.org", "10.0.0.1"));
        let one = SharedSecrets::parse("shared/prometheus").unwrap();
        let listed = OtherNamespaces::Listed([one].into());
        assert_eq!(options.secrets().unwrap(), listed);
        let usual = Outside::default();
        assert_eq!(usual.rules().unwrap(), Rules::default());
        assert_eq!(usual.secrets().unwrap(), OtherNamespaces::Refused);
        assert!(!usual.credentials_over_http);
        let whole = Outside {
            secrets_of: texts(&["shared"]),
            ..Outside::default()
        };
        let why = whole.secrets().unwrap_err().to_string();
        assert_eq!(why, "reading --call-secrets-of");
        let typo = Outside {
            never: texts(&["not a host"]),
            ..Outside::default()
        };
        let why = typo.rules().unwrap_err().to_string();
        assert_eq!(why, "reading --call-never");
    }
}
