//! The order in which positions are tried: drawn, so that a budget reaches others each time, and neighbours, which are
//! alike, are far from each other.

use super::{Effort, Job};

/// All jobs: those that are always made first, the others in an order that is drawn. Where the budget bounds the former too, they
/// are drawn after what is made in any case, so that no scenario is always the last.
pub(super) fn drawn(jobs: Vec<Job>, effort: &Effort) -> Vec<Job> {
    let (mut always, others): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|j| j.is_always);
    if effort.is_bounded {
        let (kept, rest): (Vec<Job>, Vec<Job>) = always.into_iter().partition(|j| j.is_kept);
        always = kept;
        always.extend(scattered(rest, effort.draw));
    }
    always.extend(scattered(others, effort.draw));
    always
}

/// The same in an order that is drawn.
pub(super) fn scattered<T>(all: Vec<T>, draw: u64) -> Vec<T> {
    let mut all: Vec<(u64, T)> = (0_u64..)
        .zip(all)
        .map(|(n, one)| (mixed(draw.wrapping_add(mixed(n))), one))
        .collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, one)| one).collect()
}

/// Another number for each, without any order: the finalizer of `SplitMix64`.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::scattered;

    #[test]
    fn every_one_is_there_once_and_another_draw_begins_elsewhere() {
        let all: Vec<u32> = (0..1_000).collect();
        let one = scattered(all.clone(), 1);
        let other = scattered(all.clone(), 2);
        assert_eq!(one, scattered(all.clone(), 1));
        assert_ne!(one.get(..10), other.get(..10));
        let mut sorted = one;
        sorted.sort_unstable();
        assert_eq!(sorted, all);
    }
}
