//! Finds a text in another one, wherever it is and however it overlaps with itself, in one pass.

use slipway_kernel::Sensitive;

/// What is looked for.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    bytes: Sensitive<Vec<u8>>,
    /// For each beginning: how much of its end is a beginning too (Knuth, Morris, Pratt).
    borders: Vec<usize>,
}

impl Pattern {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let mut borders = vec![0; bytes.len()];
        let mut matched = 0;
        for at in 1..bytes.len() {
            matched = step(&bytes, &borders, matched, bytes.get(at).copied());
            if let Some(border) = borders.get_mut(at) {
                *border = matched;
            }
        }
        Self {
            bytes: Sensitive::new(bytes),
            borders,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.expose().len()
    }

    /// The same with small letters.
    pub(super) fn to_lowercase(&self) -> Self {
        Self::new(self.bytes.expose().to_ascii_lowercase())
    }

    /// Calls back for each place where it is: from where to where.
    pub(super) fn each_in(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        let (bytes, mut matched) = (self.bytes.expose(), 0);
        if bytes.is_empty() {
            return;
        }
        for (at, byte) in text.iter().enumerate() {
            matched = step(bytes, &self.borders, matched, Some(*byte));
            if matched == bytes.len() {
                found(at + 1 - matched, at + 1);
                matched = self.borders.last().copied().unwrap_or(0);
            }
        }
    }
}

/// How much matches with one more byte.
fn step(bytes: &[u8], borders: &[usize], mut matched: usize, next: Option<u8>) -> usize {
    loop {
        if bytes.get(matched).copied() == next {
            return matched + 1;
        }
        let Some(shorter) = matched.checked_sub(1) else {
            return 0;
        };
        matched = borders.get(shorter).copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(pattern: &[u8], text: &[u8]) -> Vec<usize> {
        let mut all = Vec::new();
        Pattern::new(pattern.to_vec()).each_in(text, |from, _| all.push(from));
        all
    }

    #[test]
    fn every_place_is_found_also_where_two_overlap() {
        assert_eq!(places(b"aXa", b"aXaXa aXa"), [0, 2, 6]);
        assert_eq!(places(b"aaaa", b"aaaaaa"), [0, 1, 2]);
        assert_eq!(places(b"ab", b""), [0_usize; 0]);
        assert_eq!(places(b"", b"ab"), [0_usize; 0]);
    }

    /// Whoever chooses the text, or the value and the text: one pass. The naive way takes minutes for this.
    #[test]
    fn a_text_made_to_be_slow_is_not() {
        let mut pattern = vec![b'a'; 8 * 1024];
        pattern.push(b'b');
        let text = vec![b'a'; 16 * 1024 * 1024];
        let began = tokio::time::Instant::now();
        assert!(places(&pattern, &text).is_empty());
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_finds_what_looking_everywhere_finds(
            pattern in proptest::collection::vec(0_u8..3, 1..6),
            text in proptest::collection::vec(0_u8..3, 0..200),
        ) {
            let naive: Vec<usize> = text
                .windows(pattern.len())
                .enumerate()
                .filter(|(_, window)| *window == pattern)
                .map(|(at, _)| at)
                .collect();
            prop_assert_eq!(places(&pattern, &text), naive);
        }
    }
}
