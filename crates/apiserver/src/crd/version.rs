//! The order of API versions: `v2` before `v1` before `v1beta2` before `v1beta1` before `v1alpha1`, and all other
//! names after those, by the alphabet.

use std::cmp::Ordering;

/// The rank of a version that follows the convention: stability, major, minor.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (major, tail) = rest.split_at(digits);
    let major = number(major)?;
    if tail.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match (tail.strip_prefix("alpha"), tail.strip_prefix("beta")) {
        (Some(minor), _) => (0, minor),
        (_, Some(minor)) => (1, minor),
        _ => return None,
    };
    Some((stability, major, number(minor)?))
}

/// A number without leading zeros.
fn number(text: &str) -> Option<u64> {
    let plain = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Compares two versions; the greater one is preferred.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn stable_versions_come_first() {
        let mut versions = [
            "foo1", "v1alpha1", "v2", "v1beta2", "v10", "v1", "bar", "v1beta1",
        ];
        versions.sort_by(|a, b| compare(b, a));
        assert_eq!(
            versions,
            [
                "v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo1"
            ]
        );
    }
}
