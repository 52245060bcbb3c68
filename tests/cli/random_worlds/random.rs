//! Numbers that look random, and are the same in each run for the same seed.

/// A source of numbers.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// Neighbouring seeds have nothing in common.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `count`, by splitmix64.
    pub(super) fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed >> 33).expect("is small") % count
    }

    /// Whether one time out of `count` has come.
    pub(super) fn is_one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(super) fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
