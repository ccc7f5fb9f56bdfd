//! Options of `slipway manifests` and `slipway crds`.

/// Options of `slipway crds`.
#[derive(Debug, clap::Args)]
pub(crate) struct Crds {
    // Whom this is about if nobody is named, the registry knows.
    /// Whose kinds
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) controllers: Vec<String>,
}

/// Options of `slipway manifests`.
#[derive(Debug, clap::Args)]
pub(crate) struct Manifests {
    /// Which controllers the operator runs
    #[arg(long, value_delimiter = ',', default_value = "restarts")]
    pub(crate) controllers: Vec<String>,
    /// The namespaces that it looks after; without them all, and webhooks are asked in those that are labelled for it
    #[arg(long, short = 'n', value_delimiter = ',', value_parser = namespace, value_name = "NS,…")]
    pub(crate) namespace: Vec<String>,
    /// Serve webhooks, and register them
    #[arg(long)]
    pub(crate) webhooks: bool,
    /// The namespace it is installed in
    #[arg(long, default_value = "rollout", value_parser = namespace, value_name = "NS")]
    pub(crate) operator_namespace: String,
    /// The image it runs from
    #[arg(long, default_value = concat!("slipway:", env!("CARGO_PKG_VERSION")), value_parser = image)]
    pub(crate) image: String,
    /// How many replicas, of which one acts and all serve webhooks; without it two with webhooks, else one
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), value_name = "N")]
    pub(crate) replicas: Option<u16>,
    /// Leave the definitions of our kinds out
    #[arg(long)]
    pub(crate) no_crds: bool,
    /// Leave the operator's Namespace out: to remove one controller where another one lives beside it
    #[arg(long)]
    pub(crate) no_namespace: bool,
    /// More flags for the operator, as `slipway run` has them
    #[arg(last = true, value_name = "FLAG")]
    pub(crate) flags: Vec<String>,
}

/// A text that can be the name of a namespace.
fn namespace(text: &str) -> Result<String, String> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = !text.is_empty() && text.len() <= 63 && text.chars().all(is_inner);
    if fits && !text.starts_with('-') && !text.ends_with('-') {
        return Ok(text.to_owned());
    }
    Err("a namespace has 1 to 63 letters a to z, digits and, between these, hyphens".to_owned())
}

/// A text that can name an image.
fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("an image has a name, without spaces".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_dns_label() {
        let long = "a".repeat(63);
        for good in ["a", "mimir", "team-1", "1st", &long] {
            assert!(namespace(good).is_ok(), "{good}");
        }
        let longer = "a".repeat(64);
        for bad in ["", "-a", "a-", "Mimir", "a.b", "a b", "a/b", "ä", &longer] {
            assert!(namespace(bad).is_err(), "{bad}");
        }
    }
}
