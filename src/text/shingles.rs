//! Word shingles of a text, and the exact Jaccard similarity of two shingle sets.
//!
//! A shingle is a run of `k` consecutive words (Broder 1997, "On the resemblance and containment of documents").
//! Words, not characters: texts built from one template share most of their character runs, but a word run changes
//! as soon as one of its words does.
//!
//! # The hash
//!
//! A shingle is stored as 64 bits. The function is fixed here, depends on no library, platform or seed, and must
//! never change: the pairs found, and so the records removed from a release, are a function of it. It is built from
//! bijective steps (xor, odd multiplication, rotation, xor-shift) and ends in the finaliser of SplitMix64 (Steele, Lea,
//! Flood 2014, variant 13 of Stafford). The tests pin values.
//!
//! Two different shingles have the same hash with odds of about 2⁻⁶⁴. In a comparison of two texts of n shingles
//! each that is n² / 2⁶⁴: 6 · 10⁻¹⁶ for two texts of 100. Among 10⁸ different shingles (a million question stems) the odds
//! of a single collision anywhere are 3 · 10⁻⁴, and one collision moves the intersection of the texts concerned by
//! one. The function has no secret key: it does not resist somebody who searches for texts that collide.

use std::num::NonZeroUsize;

use thiserror::Error;

/// Words in a shingle when a pipeline does not say otherwise.
pub const DEFAULT_SHINGLE_WORDS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);

/// The fractional digits of the golden ratio: the increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// An odd multiplier with good spectral properties (L'Ecuyer 1999; also used by PCG).
const SPREAD: u64 = 0x5851_f42d_4c95_7f2d;

/// The different shingles of one text, as 64-bit hashes in ascending order.
///
/// Empty only for a text without words; the empty set is similar to nothing, not even to itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShingleSet(Vec<u64>);

impl ShingleSet {
    /// The shingles of `shingle_words` words of `text`, which must be normalised already: words are what white space
    /// separates, compared byte for byte. A text with fewer words is one shingle of all of them.
    pub fn from_text(text: &str, shingle_words: NonZeroUsize) -> Self {
        let words: Vec<u64> = text.split_whitespace().map(hash_word).collect();
        if words.is_empty() {
            return Self::default();
        }
        Self::from_hashes(words.windows(shingle_words.get().min(words.len())).map(hash_shingle).collect())
    }

    /// Takes hashes made elsewhere; they are sorted and repeats removed. They must be spread evenly over all 64 bits,
    /// or the join, though exact, becomes slow.
    pub fn from_hashes(mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.shrink_to_fit();
        Self(hashes)
    }

    /// Ascending, without repeats.
    pub fn hashes(&self) -> &[u64] {
        &self.0
    }

    /// Number of different shingles.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A similarity from which on two texts count as near-duplicates, in millionths: a rational number, so that 0.85
/// means exactly 85/100, and 17 common shingles of 20 reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threshold {
    millionths: u32,
}

/// A threshold that is not above 0 and at most 1, or has more than six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("a similarity threshold is above 0, at most 1 and has at most six decimals, not {0}")]
pub struct ThresholdError(f64);

impl Threshold {
    const ONE: u32 = 1_000_000;

    /// The decimal number that `value` was written as, without the error of its binary form.
    pub fn from_decimal(value: f64) -> Result<Self, ThresholdError> {
        let scaled = value * f64::from(Self::ONE);
        let rounded = scaled.round();
        // A double holds 15 decimal digits; a seventh decimal moves `scaled` by 0.1.
        if !(rounded >= 1.0 && rounded <= f64::from(Self::ONE) && (scaled - rounded).abs() < 1e-3) {
            return Err(ThresholdError(value));
        }
        Ok(Self { millionths: rounded as u32 })
    }

    /// From thousandths: 850 is 0.85.
    pub fn from_permille(permille: u32) -> Result<Self, ThresholdError> {
        Self::from_decimal(f64::from(permille) / 1000.0)
    }

    pub fn as_f64(self) -> f64 {
        f64::from(self.millionths) / f64::from(Self::ONE)
    }

    fn numerator(self) -> u64 {
        u64::from(self.millionths)
    }

    fn denominator(self) -> u64 {
        u64::from(Self::ONE)
    }

    /// Is `intersection / union` at least the threshold? Exact; false when the union is empty.
    pub fn is_met(self, intersection: u32, union: u32) -> bool {
        union > 0 && u64::from(intersection) * self.denominator() >= self.numerator() * u64::from(union)
    }

    /// The least intersection of sets of `a` and `b` shingles that meets the threshold t: i / (a + b − i) ≥ t exactly
    /// when i ≥ (a + b) · t / (1 + t).
    pub(crate) fn least_intersection(self, a: u32, b: u32) -> u32 {
        let both = u64::from(a) + u64::from(b);
        narrow((self.numerator() * both).div_ceil(self.numerator() + self.denominator()))
    }

    /// The least size of a set that can meet the threshold with a set of `size` shingles.
    pub(crate) fn least_partner(self, size: u32) -> u32 {
        narrow((self.numerator() * u64::from(size)).div_ceil(self.denominator()))
    }

    /// The greatest size of a set that can meet the threshold with a set of `size` shingles of which at most `usable`
    /// are common.
    pub(crate) fn greatest_partner(self, size: u32, usable: u32) -> u32 {
        let both = u64::from(usable) * (self.numerator() + self.denominator()) / self.numerator();
        narrow(both.saturating_sub(u64::from(size)))
    }
}

/// Sizes beyond 32 bits do not occur: the join refuses them. Saturating keeps this total.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Sizes of the intersection and of the union, in shingles. (0, 0) for two empty sets.
pub fn jaccard(a: &ShingleSet, b: &ShingleSet) -> (usize, usize) {
    let intersection = intersection_of_at_least(a.hashes(), b.hashes(), 0).unwrap_or(0);
    (intersection, a.len() + b.len() - intersection)
}

/// The size of the intersection of two ascending lists, or nothing as soon as it cannot reach `least`.
pub(crate) fn intersection_of_at_least(a: &[u64], b: &[u64], least: usize) -> Option<usize> {
    // How many hashes of each side may still be without a partner.
    let mut spare_a = a.len().checked_sub(least)?;
    let mut spare_b = b.len().checked_sub(least)?;
    let (mut left, mut right) = (a.iter().copied(), b.iter().copied());
    let (mut next_a, mut next_b) = (left.next(), right.next());
    let mut intersection = 0;
    while let (Some(hash_a), Some(hash_b)) = (next_a, next_b) {
        if hash_a == hash_b {
            intersection += 1;
            (next_a, next_b) = (left.next(), right.next());
        } else if hash_a < hash_b {
            spare_a = spare_a.checked_sub(1)?;
            next_a = left.next();
        } else {
            spare_b = spare_b.checked_sub(1)?;
            next_b = right.next();
        }
    }
    (intersection >= least).then_some(intersection)
}

/// Eight bytes at a time, little-endian, the last piece padded with zeros; the length goes in first.
fn hash_word(word: &str) -> u64 {
    let mut state = (word.len() as u64).wrapping_mul(GOLDEN);
    for piece in word.as_bytes().chunks(8) {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        state = finalise(state ^ u64::from_le_bytes(bytes));
    }
    state
}

fn hash_shingle(words: &[u64]) -> u64 {
    let start = (words.len() as u64).wrapping_mul(GOLDEN);
    finalise(words.iter().fold(start, |state, word| (state.rotate_left(23) ^ word).wrapping_mul(SPREAD)))
}

/// The finaliser of SplitMix64.
fn finalise(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(k: usize) -> NonZeroUsize {
        NonZeroUsize::new(k).unwrap()
    }

    #[test]
    fn a_shingle_is_a_run_of_words() {
        assert_eq!(ShingleSet::from_text("a b c d e f", words(5)).len(), 2);
        assert_eq!(ShingleSet::from_text("a b a b a b", words(2)).len(), 2, "repeats count once");
        assert_eq!(ShingleSet::from_text("  a   b\n", words(5)), ShingleSet::from_text("a b", words(2)));
        assert_eq!(ShingleSet::from_text("a b", words(5)).len(), 1, "a short text is one shingle");
        assert!(ShingleSet::from_text(" \n", words(5)).is_empty());
    }

    #[test]
    fn words_and_shingles_do_not_run_together() {
        let different = ["ab c", "a bc", "abc", "c ab", "a b c", "ab", "ab\u{0}", "abcdefgh", "abcdefgh\u{0}"];
        let hashes: std::collections::BTreeSet<_> =
            different.iter().map(|text| ShingleSet::from_text(text, words(5)).hashes().to_vec()).collect();
        assert_eq!(hashes.len(), different.len());
    }

    #[test]
    fn the_hash_never_changes() {
        let text = "a 45-year-old woman has had a sore throat for three days";
        assert_eq!(ShingleSet::from_text("", DEFAULT_SHINGLE_WORDS).hashes(), [0_u64; 0]);
        assert_eq!(ShingleSet::from_text(text, words(10)).hashes(), [0x30e3_be64_4c34_f10d, 0xa570_8e32_be14_ca11],);
    }

    #[test]
    fn every_bit_of_the_hash_is_even() {
        let text: String = (0..20_004).map(|i| format!("word{} ", i * 7)).collect();
        let set = ShingleSet::from_text(&text, DEFAULT_SHINGLE_WORDS);
        assert_eq!(set.len(), 20_000);
        for bit in 0..64 {
            let ones = set.hashes().iter().filter(|hash| *hash >> bit & 1 == 1).count();
            assert!((9_600..10_400).contains(&ones), "bit {bit}: {ones}"); // 5.6 standard deviations
        }
    }

    #[test]
    fn thresholds_are_exact() {
        let threshold = Threshold::from_decimal(0.85).unwrap();
        assert!(threshold.is_met(17, 20));
        assert!(threshold.is_met(850_000_000, 1_000_000_000));
        assert!(!threshold.is_met(849_999_999, 1_000_000_000));
        assert!(!threshold.is_met(0, 0));
        assert_eq!(threshold, Threshold::from_permille(850).unwrap());
        for permille in 1..=1000 {
            let threshold = Threshold::from_permille(permille).unwrap();
            assert!(threshold.is_met(permille, 1000) && !threshold.is_met(permille - 1, 1000));
            assert_eq!(threshold, Threshold::from_decimal(threshold.as_f64()).unwrap());
        }
        for wrong in [0.0, -0.5, 1.000_001, 0.123_456_7, f64::NAN, f64::INFINITY, 1e-9] {
            assert!(Threshold::from_decimal(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_bounds_of_the_join_are_tight() {
        for permille in [1, 333, 500, 667, 850, 999, 1000] {
            let threshold = Threshold::from_permille(permille).unwrap();
            for a in 1..60_u32 {
                for b in 1..=a {
                    let least = threshold.least_intersection(a, b);
                    assert!(least > b || threshold.is_met(least, a + b - least));
                    assert!(!threshold.is_met(least - 1, a + b - (least - 1)));
                    assert_eq!(b >= threshold.least_partner(a), threshold.is_met(b, a));
                    for usable in 0..=b {
                        let fits = usable >= least;
                        assert_eq!(fits, threshold.greatest_partner(b, usable) >= a, "{a} {b} {usable}");
                        assert_eq!(fits, threshold.greatest_partner(a, usable) >= b, "{a} {b} {usable}");
                    }
                }
            }
        }
    }

    #[test]
    fn jaccard_counts_hashes() {
        let (a, b) = (ShingleSet::from_hashes(vec![3, 1, 2, 2]), ShingleSet::from_hashes(vec![2, 3, 4]));
        assert_eq!(jaccard(&a, &b), (2, 4));
        assert_eq!(jaccard(&a, &ShingleSet::default()), (0, 3));
        assert_eq!(jaccard(&ShingleSet::default(), &ShingleSet::default()), (0, 0));
        assert_eq!(intersection_of_at_least(a.hashes(), b.hashes(), 2), Some(2));
        assert_eq!(intersection_of_at_least(a.hashes(), b.hashes(), 3), None);
        assert_eq!(intersection_of_at_least(a.hashes(), b.hashes(), 4), None);
    }
}
