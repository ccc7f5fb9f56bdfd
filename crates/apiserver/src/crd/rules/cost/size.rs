//! How many elements or characters a value may have, and what it costs to go through them.

/// The cost of going through one character of a text.
pub(super) const PER_CHARACTER: f64 = 0.1;
/// The cost that one character of a regular expression adds to each unit of the text it is tried on.
pub(super) const PER_PATTERN_CHARACTER: f64 = 0.25;

/// Smallest and largest size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self::up_to(u64::MAX);

    pub(super) const fn exactly(size: u64) -> Self {
        Self {
            min: size,
            max: size,
        }
    }

    pub(super) const fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            min: product(self.min, other.min),
            max: product(self.max, other.max),
        }
    }

    /// The cost of going through all of it.
    pub(super) fn traversed(self) -> u64 {
        self.at(PER_CHARACTER)
    }

    /// The cost at so much for each element.
    pub(super) fn at(self, each: f64) -> u64 {
        scaled(self.max, each)
    }
}

/// A product that stops at the largest number.
pub(super) fn product(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

/// A multiple, rounded up.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the real server counts in floating point too; the way back saturates"
)]
pub(super) fn scaled(count: u64, each: f64) -> u64 {
    (count as f64 * each).ceil() as u64
}
