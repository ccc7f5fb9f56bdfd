//! Names of what is made: each can be computed from what it is for, and fits.

use slipway_api::fleet::names::{BOOTSTRAP_SUFFIX, KUBECONFIG_SUFFIX};
use slipway_api::fleet::sync::Source;
use slipway_bindings::canonical;
use slipway_bindings::revision::digest;

/// The longest name of an object.
pub const LONGEST_NAME: usize = 253;
/// The longest value of a label. Flux puts the names of its objects into labels.
pub const LONGEST_LABEL: usize = 63;

/// Parts with dashes between; where that is too long, its beginning and a hash of all of it.
pub fn fitted(parts: &[&str], longest: usize) -> String {
    const DIGITS: usize = 8;
    let whole = parts.join("-");
    if whole.len() <= longest {
        return whole;
    }
    let mut cut = longest.saturating_sub(DIGITS + 1);
    while !whole.is_char_boundary(cut) {
        cut -= 1;
    }
    let beginning = whole.get(..cut).unwrap_or_default();
    let beginning = beginning.trim_end_matches(['-', '.']);
    format!("{beginning}-{}", digest(&whole, DIGITS))
}

/// The module of a revision of a Rollout.
pub fn module(rollout: &str, revision: &str) -> String {
    fitted(&[rollout, revision], LONGEST_NAME)
}

/// The Kustomization of a sync: the same for as long as the sync is there.
pub fn kustomization(assemblage: &str, sync: &str) -> String {
    fitted(&[assemblage, sync], LONGEST_LABEL)
}

/// The source with exactly this: another one has another name.
pub fn source(source: &Source) -> String {
    let value = serde_json::to_value(source).unwrap_or_default();
    let hash = digest(&canonical::json(&value), 10);
    let name = base_name(&source.git.url);
    fitted(&[&name, &hash], LONGEST_LABEL)
}

/// The last part of a URL, as far as it can be a name.
fn base_name(url: &str) -> String {
    let last = url
        .trim_end_matches('/')
        .rsplit(['/', ':'])
        .next()
        .unwrap_or_default();
    let last = last.strip_suffix(".git").unwrap_or(last).to_lowercase();
    let name: String = last
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(40)
        .collect();
    let name = name.trim_matches('-');
    if name.is_empty() {
        "git".to_owned()
    } else {
        name.to_owned()
    }
}

/// The Secret with the secret values of a sync at one revision of them.
pub fn values(owner: &str, sync: &str, revision: &str) -> String {
    fitted(&[owner, sync, "values", revision], LONGEST_NAME)
}

/// The kubeconfig of a cluster of Cluster API.
pub fn kubeconfig(cluster: &str) -> String {
    format!("{cluster}{KUBECONFIG_SUFFIX}")
}

/// The Assemblage with what is applied to a cluster from the control plane.
pub fn bootstrap(cluster: &str) -> String {
    format!("{cluster}{BOOTSTRAP_SUFFIX}")
}

#[cfg(test)]
mod tests {
    use slipway_api::fleet::sync::{GitSource, GitVersion, Source};

    use super::{LONGEST_LABEL, fitted, kustomization, source};

    fn git(url: &str, tag: &str) -> Source {
        Source {
            git: GitSource {
                url: url.to_owned(),
                version: GitVersion {
                    tag: Some(tag.to_owned()),
                    revision: None,
                },
                ..GitSource::default()
            },
        }
    }

    #[test]
    fn names_fit_and_stay_apart() {
        assert_eq!(kustomization("berlin", "app"), "berlin-app");
        let long = "a".repeat(60);
        let one = kustomization(&long, "app-one");
        let other = kustomization(&long, "app-two");
        assert!(one.len() <= LONGEST_LABEL && other.len() <= LONGEST_LABEL);
        assert_ne!(one, other);
        assert_eq!(one, kustomization(&long, "app-one"));
        assert_eq!(fitted(&["a", "b"], 3), "a-b");
        assert!(fitted(&["é".repeat(40).as_str()], 63).len() <= 63);
    }

    #[test]
    fn another_version_is_another_source() {
        let one = source(&git("https://example.com/org/podinfo.git", "v1"));
        assert!(one.starts_with("podinfo-"), "{one}");
        assert_ne!(
            one,
            source(&git("https://example.com/org/podinfo.git", "v2"))
        );
        assert_ne!(
            one,
            source(&git("https://example.org/org/podinfo.git", "v1"))
        );
        assert_eq!(
            one,
            source(&git("https://example.com/org/podinfo.git", "v1"))
        );
        for odd in ["", "///", "git@example.com:Org/Repo_1.git", "ssh://h/é"] {
            let name = source(&git(odd, "v1"));
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(
                name.chars().all(is_plain) && !name.starts_with('-'),
                "{name}"
            );
        }
    }
}
