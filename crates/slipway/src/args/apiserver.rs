//! Options of `slipway apiserver`.

use std::path::PathBuf;

use slipway_apiserver::dial::place_of;

/// Options of `slipway apiserver`.
#[derive(Debug, clap::Args)]
pub(crate) struct Apiserver {
    /// The port on loopback; 0 for any free one
    #[arg(long, default_value_t = 6443)]
    pub(crate) port: u16,
    /// Where to write a kubeconfig. The file must not exist yet; it appears when the server answers and is removed
    /// when it ends. Without this option it is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig_out: Option<PathBuf>,
    /// Names of the clusters in this server; each has a context of its name in the kubeconfig
    #[arg(long, value_delimiter = ',', default_value = "slipway")]
    pub(crate) clusters: Vec<String>,
    /// Leave garbage collection and the end of namespaces to somebody else's controller manager
    #[arg(long)]
    pub(crate) no_controllers: bool,
    /// Run the simulator's controllers and three nodes in every cluster: Deployments get pods, and pods start
    #[arg(long)]
    pub(crate) actors: bool,
    /// Where the webhooks of a Service really listen, because pods of this server run nothing: a Service whose operator
    /// is a program on this machine. Can be repeated
    #[arg(long = "service", value_name = "NS/NAME=HOST:PORT", value_parser = service)]
    pub(crate) services: Vec<Service>,
    /// Install the definitions of our kinds at the start
    #[arg(long)]
    pub(crate) crds: bool,
}

/// A Service, and where it is to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service {
    /// The Service, as its host name begins: `NAME.NS`.
    pub(crate) host: String,
    /// Where it listens: `HOST:PORT`.
    pub(crate) place: String,
}

fn service(text: &str) -> Result<Service, String> {
    let wrong =
        || "write NS/NAME=HOST:PORT, as in mimir/rollout-operator=127.0.0.1:8443".to_owned();
    let (key, place) = text.split_once('=').ok_or_else(wrong)?;
    let (namespace, name) = key.split_once('/').ok_or_else(wrong)?;
    // Labels of DNS: with a dot in it, nobody would find it.
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if !is_name(namespace) || !is_name(name) || place_of(place).is_none() {
        return Err(wrong());
    }
    Ok(Service {
        host: format!("{name}.{namespace}"),
        place: place.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Service, service};

    #[test]
    fn a_service_is_where_it_is_said_to_be() {
        for place in ["127.0.0.1:8443", "localhost:1", "[::1]:8443"] {
            let expected = Service {
                host: "rollout-operator.mimir".to_owned(),
                place: place.to_owned(),
            };
            let text = format!("mimir/rollout-operator={place}");
            assert_eq!(service(&text), Ok(expected));
        }
        for text in [
            "",
            "mimir/rollout-operator",
            "rollout-operator=127.0.0.1:8443",
            "mimir/=127.0.0.1:8443",
            "mimir/a.b=127.0.0.1:8443",
            "mimir/rollout-operator=8443",
            "mimir/rollout-operator=127.0.0.1:0",
            "mimir/rollout-operator=[::1:8443",
        ] {
            assert!(service(text).is_err(), "{text}");
        }
    }
}
