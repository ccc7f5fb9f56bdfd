//! Which server an answer is from. Recordings are of real ones: the embedded server says the same version, and whoever records
//! asks here first, lest it be held against itself.

use serde_json::Value;

/// Why nothing is recorded of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "recording: this server says that it is {version} and not that a Go compiler made it, as kube-apiserver does ({compiler:?}, {go:?}): \
     record of a real one (cargo xtask controlplane up)"
)]
pub struct NotReal {
    version: String,
    compiler: String,
    go: String,
}

/// What a real kube-apiserver is, by its `/version`: `kube-apiserver v1.36.3, go1.26.1, linux/amd64`.
pub fn of_real(version: &Value) -> Result<String, NotReal> {
    let text = |name: &str| {
        let said = version.get(name).and_then(Value::as_str);
        said.unwrap_or_default().to_owned()
    };
    let (named, compiler, go) = (text("gitVersion"), text("compiler"), text("goVersion"));
    if named.is_empty() || compiler != "gc" || !go.starts_with("go1.") {
        return Err(NotReal {
            version: named,
            compiler,
            go,
        });
    }
    Ok(format!(
        "kube-apiserver {named}, {go}, {}",
        text("platform")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::of_real;
    use crate::cluster::version;

    #[test]
    fn the_embedded_server_is_not_recorded_of() {
        let refused = of_real(&version()).unwrap_err();
        assert!(refused.to_string().contains("record of a real one"));
        assert!(of_real(&json!({})).is_err());
    }

    #[test]
    fn a_real_server_is_named_with_its_compiler() {
        let said = json!({"gitVersion": "v1.36.3", "compiler": "gc", "goVersion": "go1.26.1", "platform": "linux/amd64"});
        let origin = of_real(&said).unwrap();
        assert_eq!(origin, "kube-apiserver v1.36.3, go1.26.1, linux/amd64");
    }
}
