//! Stable short names for templates, in the alphabet that Kubernetes uses for them.

use serde::Serialize;

/// Without vowels and look-alikes, so that no words come out.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A number between 0 and 2⁶⁴ that only depends on these bytes (FNV-1a, then mixed).
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

/// The name of a template. `collisions` makes another one when the first was taken.
pub(crate) fn name<T: Serialize>(template: &T, collisions: Option<i32>) -> String {
    let mut bytes = serde_json::to_vec(template).unwrap_or_default();
    if let Some(collisions) = collisions {
        bytes.extend(collisions.to_le_bytes());
    }
    let digits = (number(&bytes) & 0xffff_ffff).to_string();
    let letter = |digit: u8| {
        let at = usize::from(digit) % ALPHABET.len();
        ALPHABET.get(at).copied().map(char::from)
    };
    digits.bytes().filter_map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_templates_have_equal_names_and_others_do_not() {
        assert_eq!(name(&"a", None), name(&"a", None));
        assert_ne!(name(&"a", None), name(&"b", None));
        assert_ne!(name(&"a", None), name(&"a", Some(1)));
        assert!(name(&"a", None).bytes().all(|b| ALPHABET.contains(&b)));
    }
}
