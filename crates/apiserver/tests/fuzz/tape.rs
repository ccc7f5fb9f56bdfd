//! Where a case's choices come from: bytes, read from the front. At their end every choice is the first one, so that a
//! shorter tape is a simpler case, whoever wrote it: proptest, libFuzzer or a file.

/// Choices still to be made.
pub(crate) struct Tape<'a>(&'a [u8]);

impl<'a> Tape<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// A number below `n`, or 0 if there is none.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let drawn = if n <= 256 {
            usize::from(self.byte())
        } else {
            usize::from(self.byte()) << 8 | usize::from(self.byte())
        };
        drawn.checked_rem(n).unwrap_or_default()
    }

    /// True once in `n` times, and never at the end of the tape.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn pick_ref<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Any number, more often one at an edge.
    pub(crate) fn number(&mut self) -> i64 {
        const EDGES: [i64; 14] = [
            0,
            1,
            -1,
            2,
            80,
            255,
            256,
            65_535,
            65_536,
            i32::MAX as i64,
            i32::MIN as i64,
            i64::MAX,
            i64::MIN,
            1 << 53,
        ];
        match self.below(4) {
            0 | 1 => self.pick(&EDGES),
            2 => i64::from(self.byte()),
            _ => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// So many bytes, as they are.
    pub(crate) fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1).min(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken.to_vec()
    }
}

/// A tape as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
