//! Whether Flagger itself runs: two programs that act on one Canary would fight.
//!
//! One whose Lease is in our own namespace shares it with us, and waits for it. Any other is seen by its Deployment.

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::fields::{integer, list, text};
use slipway_kernel::instant::instant;
use slipway_kernel::store::Seen;

use super::projections::{Whole, whole};

/// Where its Lease is, unless it is told otherwise.
const USUAL_LEASE: &str = "kube-system";

/// As whom it writes.
const MANAGER: &str = "flagger";

/// When Flagger wrote an object last.
pub(super) fn written(object: &Value) -> Option<Timestamp> {
    let all = list(object, "/metadata/managedFields");
    let theirs = all.filter(|one| text(one, "/manager") == Some(MANAGER));
    theirs.filter_map(|one| instant(text(one, "/time")?)).max()
}

/// The index of Deployments that are Flagger.
pub(super) const ORIGINAL: &str = "original";
/// What they are found by.
pub(super) const RUNS: &str = "runs";

/// What [`ORIGINAL`] finds a Deployment by.
pub(super) fn index_original(seen: &Seen) -> Vec<String> {
    let is_it = whole(seen).is_some_and(Whole::is_original);
    is_it.then(|| RUNS.to_owned()).into_iter().collect()
}

/// Whether an object is a Deployment of Flagger.
pub(super) fn is_it(object: &Value) -> bool {
    container(object).is_some()
}

/// The container of Flagger in a Deployment.
fn container(deployment: &Value) -> Option<&Value> {
    let mut containers = list(deployment, "/spec/template/spec/containers");
    containers.find(|one| text(one, "/image").is_some_and(is_image))
}

/// Whether an image is Flagger's, wherever it is kept.
fn is_image(image: &str) -> bool {
    let path = image.split('@').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    last.split(':').next() == Some("flagger")
}

/// Whether this Flagger acts on Canaries of a namespace without waiting for us, who are in the namespace `ours`.
pub(super) fn acts(deployment: &Value, within: &str, ours: Option<&str>) -> bool {
    let Some(container) = container(deployment) else {
        return false;
    };
    let is_running = integer(deployment, "/spec/replicas").unwrap_or(1) > 0
        || integer(deployment, "/status/replicas").unwrap_or_default() > 0;
    let only = argument(container, "namespace").filter(|name| !name.is_empty());
    let is_about = only.is_none_or(|only| only == within);
    let elects = argument(container, "enable-leader-election");
    let lease = argument(container, "leader-election-namespace").filter(|name| !name.is_empty());
    let waits =
        elects.is_some_and(|value| value != "false") && ours == Some(lease.unwrap_or(USUAL_LEASE));
    is_running && is_about && !waits
}

/// The value of a flag as Go's programs take it; empty where it has none.
fn argument<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    let parts = ["/command", "/args"];
    let all = parts.into_iter().flat_map(|path| list(container, path));
    let mut flags = all.filter_map(Value::as_str);
    flags.find_map(|flag| {
        let flag = flag.strip_prefix('-')?;
        let flag = flag.strip_prefix('-').unwrap_or(flag);
        match flag.split_once('=') {
            Some((known, value)) => (known == name).then_some(value),
            None => (flag == name).then_some(""),
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::{Value, json};

    use super::{acts, is_image, written};

    #[test]
    fn its_last_write_is_known_by_its_manager() {
        let by = |manager: &str, time: &str| json!({"manager": manager, "time": time});
        let object = json!({"metadata": {"managedFields": [
            by("flagger", "2026-01-01T00:00:05Z"),
            by("flagger", "2026-01-01T00:00:09Z"),
            by("slipway", "2026-01-01T00:01:00Z"),
        ]}});
        assert_eq!(written(&object), "2026-01-01T00:00:09Z".parse().ok());
        assert_eq!(written(&json!({})), None);
    }

    fn flagger(args: &Value, replicas: i64) -> Value {
        json!({
            "metadata": {"name": "flagger", "namespace": "flagger-system"},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [
                {"name": "flagger", "image": "ghcr.io/fluxcd/flagger:1.43.0", "args": args}]}}},
        })
    }

    #[test]
    fn its_image_is_known_wherever_it_is_kept() {
        for image in [
            "flagger",
            "ghcr.io/fluxcd/flagger:1.43.0",
            "r:5000/x/flagger@sha256:ab",
        ] {
            assert!(is_image(image), "{image}");
        }
        for image in ["ghcr.io/fluxcd/flagger-loadtester:0.36", "web", ""] {
            assert!(!is_image(image), "{image}");
        }
    }

    #[test]
    fn one_that_waits_for_our_lease_is_let_run() {
        let own = Some("flagger-system");
        let usual = flagger(&json!([]), 1);
        assert!(acts(&usual, "shop", own) && acts(&usual, "shop", None));
        assert!(!acts(&flagger(&json!([]), 0), "shop", own));
        let elects = flagger(&json!(["-enable-leader-election=true"]), 2);
        assert!(!acts(&elects, "shop", Some("kube-system")));
        assert!(acts(&elects, "shop", own), "its Lease is elsewhere");
        let here = [
            "-enable-leader-election=true",
            "-leader-election-namespace=flagger-system",
        ];
        let here = flagger(&json!(here), 2);
        assert!(!acts(&here, "shop", own) && acts(&here, "shop", Some("kube-system")));
        let narrow = flagger(&json!(["--namespace=infra"]), 1);
        assert!(!acts(&narrow, "shop", own) && acts(&narrow, "infra", own));
        assert!(!acts(&json!({}), "shop", own));
    }
}
