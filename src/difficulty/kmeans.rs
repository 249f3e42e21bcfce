//! k-means in one dimension, solved exactly: of all divisions of numbers into k groups, the one with the least sum of
//! squared distances from the mean of the group (Wang and Song 2011, "Ckmeans.1d.dp: optimal k-means clustering in one
//! dimension by dynamic programming"). Unlike Lloyd's iteration it has no start to choose and cannot end in a local
//! optimum.
//!
//! In an optimal division every group is a stretch of the sorted numbers. So the best division of the first j numbers
//! into m groups is the best of the first i into m − 1, and one group of the rest, for the best *split* i. The best split
//! never falls when j rises, so that splits are searched by divide and conquer in O(n log n) for each m (Grønlund,
//! Larsen, Mathiasen, Nielsen, Schneider and Song 2017, "Fast exact k-means, k-medians and Bregman divergence clustering
//! in 1D").
//!
//! Equal numbers are one number with a multiplicity and so never part. The cost of a stretch is a difference of prefix
//! sums, in which nearly equal numbers cancel: the numbers are shifted by their median, and sums are kept in
//! double-double arithmetic, about 106 bits. Costs are compared by their leading double, in which equally good divisions
//! are equal although their sums were rounded differently; of these the smallest split is taken: the last group is the
//! longest possible, then the one before it, and so on.

use std::ops::{Add, Div, Mul, Sub};

/// Divides numbers into k groups, and gives the least number of each group but the first: k − 1 numbers out of `values`,
/// ascending. [`group`] tells where a number belongs. The order of the values does not matter.
///
/// `None` if there are fewer than k different values, or k is 0. Values are finite; they and their differences are 0 or
/// between 1e-130 and 1e130 in size, so that squares neither overflow nor vanish. Costs are known to about 1e-30 of the
/// sum of all squares: which of two divisions that differ by less is taken is not said.
pub fn boundaries(values: &[f64], k: usize) -> Option<Vec<f64>> {
    debug_assert!(values.iter().all(|value| value.is_finite()), "every value must be finite");
    if k == 0 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied()?;
    let groups: Vec<&[f64]> = sorted.chunk_by(|one, other| one == other).collect();
    // A layer has the best divisions of the first j numbers into m groups. Each group needs a number, so j is at least m
    // and leaves k − m: layers go by t = j − m, from 0 to n − k, and their splits are i − (m − 1), from 0 to t.
    let spare = groups.len().checked_sub(k)?;
    let prefixes = prefixes(&groups, median);
    let mut layers = vec![first_layer(&prefixes, spare)];
    for m in 2..=k {
        let step = Step { starts: prefixes.get(m - 1..)?, ends: prefixes.get(m..)?, before: layers.last()? };
        let mut layer = vec![Best::default(); spare + 1];
        if m < k {
            step.fill(&mut layer, 0, 0, spare);
        } else {
            // Of the last layer nothing but the division of all numbers is asked for.
            *layer.last_mut()? = step.best(spare, 0, spare);
        }
        layers.push(layer);
    }
    let mut found = Vec::new();
    let mut t = spare;
    for (n_groups_before, layer) in layers.iter().enumerate().skip(1).rev() {
        t = layer.get(t)?.split;
        found.push(groups.get(t + n_groups_before)?.first().copied()?);
    }
    found.reverse();
    Some(found)
}

/// The group that a value belongs to, from 0: how many boundaries it reaches. For values that [`boundaries`] has not
/// seen, it is the group of the next smaller value that it has.
pub fn group(value: f64, boundaries: &[f64]) -> usize {
    boundaries.partition_point(|boundary| *boundary <= value)
}

/// Sums over the first so many different numbers, each shifted and as often as it occurs.
#[derive(Clone, Copy, Default)]
struct Prefix {
    n: f64,
    sum: DoubleDouble,
    squares: DoubleDouble,
}

/// One more than there are groups of equal numbers.
fn prefixes(groups: &[&[f64]], shift: f64) -> Vec<Prefix> {
    let mut prefix = Prefix::default();
    let mut prefixes = vec![prefix];
    for group in groups {
        let n = group.len() as f64;
        let value = DoubleDouble::difference(group.first().copied().unwrap_or(shift), shift);
        let sum = value * DoubleDouble::from(n);
        prefix = Prefix { n: prefix.n + n, sum: prefix.sum + sum, squares: prefix.squares + sum * value };
        prefixes.push(prefix);
    }
    prefixes
}

/// Sum of squared distances from the mean, of the numbers between two prefixes.
fn cost(start: &Prefix, end: &Prefix) -> DoubleDouble {
    let sum = end.sum - start.sum;
    (end.squares - start.squares) - sum * sum / (end.n - start.n)
}

/// The best division of the first numbers, and the first number of its last group.
#[derive(Clone, Copy, Default)]
struct Best {
    cost: DoubleDouble,
    split: usize,
}

fn first_layer(prefixes: &[Prefix], spare: usize) -> Vec<Best> {
    let nothing = Prefix::default();
    let all = prefixes.iter().skip(1).take(spare + 1);
    all.map(|end| Best { cost: cost(&nothing, end), split: 0 }).collect()
}

/// From the divisions into m − 1 groups to those into m.
struct Step<'a> {
    /// By split.
    starts: &'a [Prefix],
    ends: &'a [Prefix],
    before: &'a [Best],
}

impl Step<'_> {
    /// Fills the layer from place `first_t` on; the splits looked for lie between the two given.
    fn fill(&self, layer: &mut [Best], first_t: usize, least_split: usize, greatest_split: usize) {
        let middle = layer.len() / 2;
        let (left, rest) = layer.split_at_mut(middle);
        let Some((here, right)) = rest.split_first_mut() else { return };
        let t = first_t + middle;
        *here = self.best(t, least_split, greatest_split);
        self.fill(left, first_t, least_split, here.split);
        self.fill(right, t + 1, here.split, greatest_split);
    }

    /// The smallest of the best splits.
    fn best(&self, t: usize, least_split: usize, greatest_split: usize) -> Best {
        let splits = least_split..=greatest_split.min(t);
        let starts = self.starts.get(splits.clone()).unwrap_or_default();
        let before = self.before.get(splits.clone()).unwrap_or_default();
        let end = self.ends.get(t).copied().unwrap_or_default();
        let costs = splits
            .zip(starts.iter().zip(before))
            .map(|(split, (start, before))| Best { cost: before.cost + cost(start, &end), split });
        costs.reduce(|best, next| if next.cost.high < best.cost.high { next } else { best }).unwrap_or_default()
    }
}

/// An unevaluated sum of two doubles, the first of which is the double nearest to the sum (Dekker 1971, "A floating-point
/// technique for extending the available precision").
#[derive(Clone, Copy, Default)]
struct DoubleDouble {
    high: f64,
    low: f64,
}

impl DoubleDouble {
    /// a + b, exactly (Knuth).
    fn sum(a: f64, b: f64) -> Self {
        let high = a + b;
        let of_b = high - a;
        Self { high, low: (a - (high - of_b)) + (b - of_b) }
    }

    /// a − b, exactly.
    fn difference(a: f64, b: f64) -> Self {
        Self::sum(a, -b)
    }

    /// a · b, exactly (Dekker, with Veltkamp's halves; a fused multiply-add would be slow where the processor has none).
    fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
        Self { high, low: ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low }
    }

    /// a + b, exactly, if a is 0 or not smaller in size than b.
    fn ordered_sum(a: f64, b: f64) -> Self {
        let high = a + b;
        Self { high, low: b - (high - a) }
    }
}

/// Two parts of at most 26 bits, whose products are exact.
fn halves(value: f64) -> (f64, f64) {
    const SPLITTER: f64 = 134_217_729.0; // 2^27 + 1
    let scaled = SPLITTER * value;
    let high = scaled - (scaled - value);
    (high, value - high)
}

impl From<f64> for DoubleDouble {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Add for DoubleDouble {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (high, low) = (Self::sum(self.high, other.high), Self::sum(self.low, other.low));
        let first = Self::ordered_sum(high.high, high.low + low.high);
        Self::ordered_sum(first.high, first.low + low.low)
    }
}

impl Sub for DoubleDouble {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + Self { high: -other.high, low: -other.low }
    }
}

impl Mul for DoubleDouble {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let product = Self::product(self.high, other.high);
        Self::ordered_sum(product.high, product.low + (self.high * other.low + self.low * other.high))
    }
}

impl Div<f64> for DoubleDouble {
    type Output = Self;

    fn div(self, divisor: f64) -> Self {
        let quotient = self.high / divisor;
        let rest = self - Self::product(quotient, divisor);
        Self::ordered_sum(quotient, rest.high / divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    /// In two passes, from the numbers themselves.
    fn direct_cost(groups: &[Vec<f64>]) -> f64 {
        let of = |group: &Vec<f64>| {
            let mean = group.iter().sum::<f64>() / group.len().max(1) as f64;
            group.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        };
        groups.iter().map(of).sum()
    }

    fn groups(values: &[f64], boundaries: &[f64]) -> Vec<Vec<f64>> {
        let mut groups = vec![Vec::new(); boundaries.len() + 1];
        for value in values {
            groups[group(*value, boundaries)].push(*value);
        }
        groups
    }

    /// The least cost of all partitions into at most k groups, whether or not the groups are stretches.
    fn least_cost(values: &[f64], k: usize, groups: &mut Vec<Vec<f64>>) -> f64 {
        let Some((first, rest)) = values.split_first() else { return direct_cost(groups) };
        let mut least = f64::INFINITY;
        for place in 0..k.min(groups.len() + 1) {
            if place == groups.len() {
                groups.push(Vec::new());
            }
            groups[place].push(*first);
            least = least.min(least_cost(rest, k, groups));
            groups[place].pop();
            if groups[place].is_empty() {
                groups.pop();
            }
        }
        least
    }

    /// All ways to choose `n` split places below `end`, each ascending.
    fn choices(n: usize, end: usize) -> Vec<Vec<usize>> {
        let Some(fewer) = n.checked_sub(1) else { return vec![Vec::new()] };
        let longer = |last| choices(fewer, last).into_iter().map(move |splits| [splits, vec![last]].concat());
        (1..end).flat_map(longer).collect()
    }

    /// The cost of a stretch times 2520, of which every number up to 10 is a divisor: exact.
    fn integer_cost(stretch: &[i64]) -> i64 {
        let n = i64::try_from(stretch.len()).unwrap();
        let (sum, squares) = (stretch.iter().sum::<i64>(), stretch.iter().map(|value| value * value).sum::<i64>());
        2520 / n * (n * squares - sum * sum)
    }

    fn n_different(values: &[f64]) -> usize {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        sorted.len()
    }

    /// Spread values, few values that repeat, and narrow heaps far from each other and from 0.
    fn hard_values() -> impl Strategy<Value = Vec<f64>> {
        let heaps =
            (prop::sample::select(vec![-3.0, 0.0, 1.0, 1000.0]), 0..40_u32, prop::sample::select(vec![10, 20, 30]))
                .prop_map(|(centre, steps, exponent)| centre + f64::from(steps) * 0.5_f64.powi(exponent));
        let value = prop_oneof![-1.0..1.0, (0..6_u32).prop_map(|sixth| f64::from(sixth) / 6.0), heaps];
        prop::collection::vec(value, 1..=9)
    }

    proptest! {
        #[test]
        fn no_partition_is_better(values in hard_values(), k in 1..=4_usize) {
            match boundaries(&values, k) {
                None => prop_assert!(n_different(&values) < k),
                Some(found) => {
                    let groups = groups(&values, &found);
                    prop_assert_eq!(groups.len(), k);
                    prop_assert!(groups.iter().all(|group| !group.is_empty()));
                    let (ours, least) = (direct_cost(&groups), least_cost(&values, k, &mut Vec::new()));
                    prop_assert!(ours <= least * (1.0 + 1e-12), "{} > {}: {:?}", ours, least, groups);
                }
            }
        }

        /// On whole numbers many divisions are equally good; an exact search says which of them has the smallest splits.
        #[test]
        fn of_equally_good_divisions_the_smallest_split_is_taken(
            values in prop::collection::vec(-4..=4_i64, 1..=9),
            k in 1..=4_usize,
            scale in prop::sample::select(vec![1.0, 3.0, 0.125])
        ) {
            let doubles: Vec<f64> = values.iter().map(|value| *value as f64 * scale).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let starts: Vec<usize> =
                (0..=sorted.len()).filter(|i| *i == 0 || *i == sorted.len() || sorted[*i] != sorted[i - 1]).collect();
            let best = choices(k - 1, starts.len() - 1)
                .into_iter()
                .map(|splits| {
                    let ends = [vec![0], splits.clone(), vec![starts.len() - 1]].concat();
                    let stretch = |ends: &[usize]| &sorted[starts[ends[0]]..starts[ends[1]]];
                    let cost: i64 = ends.windows(2).map(|ends| integer_cost(stretch(ends))).sum();
                    (cost, splits.into_iter().rev().collect::<Vec<_>>())
                })
                .min();
            let expected = best.map(|(_, splits)| {
                splits.iter().rev().map(|split| sorted[starts[*split]] as f64 * scale).collect::<Vec<_>>()
            });
            prop_assert_eq!(boundaries(&doubles, k), expected);
        }

        /// The k-th double after a million is to it what k is to 0, but plain sums of squares see no difference.
        #[test]
        fn nearly_equal_values_far_from_0_are_told_apart(
            steps in prop::collection::vec(0..1000_u32, 1..200), k in 1..=4_usize
        ) {
            let far = |step: f64| 1e6 + step * 0.5_f64.powi(33);
            let near: Vec<f64> = steps.into_iter().map(f64::from).collect();
            let expected = boundaries(&near, k).map(|found| found.into_iter().map(far).collect::<Vec<_>>());
            prop_assert_eq!(boundaries(&near.into_iter().map(far).collect::<Vec<_>>(), k), expected);
        }

        #[test]
        fn the_order_of_values_does_not_matter(
            (values, shuffled) in hard_values().prop_flat_map(|values| (Just(values.clone()), Just(values).prop_shuffle())),
            k in 1..=4_usize
        ) {
            prop_assert_eq!(boundaries(&values, k), boundaries(&shuffled, k));
        }
    }

    #[test]
    fn hand_cases() {
        // Three plain heaps.
        assert_eq!(boundaries(&[9.0, 1.0, 5.0, 2.0, 8.0, 5.5], 3), Some(vec![5.0, 8.0]));
        // Multiplicity decides: {0, 1} | {3} costs 1/2, {0} | {1, 3} costs 2; with a hundred zeros and ones,
        // {0…} | {1…, 3} costs 400/101 and {0…, 1…} | {3} costs 50.
        assert_eq!(boundaries(&[0.0, 1.0, 3.0], 2), Some(vec![3.0]));
        let many: Vec<f64> = [0.0, 1.0].into_iter().flat_map(|value| [value; 100]).chain([3.0]).collect();
        assert_eq!(boundaries(&many, 2), Some(vec![1.0]));
        // {0} | {1, 2} and {0, 1} | {2} both cost 1/2.
        assert_eq!(boundaries(&[2.0, 1.0, 0.0], 2), Some(vec![1.0]));
        // As many groups as numbers, one group, and too few numbers.
        assert_eq!(boundaries(&[3.0, 1.0, 2.0, 2.0], 3), Some(vec![2.0, 3.0]));
        assert_eq!(boundaries(&[3.0, 1.0], 1), Some(vec![]));
        assert_eq!(boundaries(&[3.0, 1.0, 3.0], 3), None);
        assert_eq!(boundaries(&[0.0, -0.0], 2), None);
        assert_eq!(boundaries(&[], 1), None);
        assert_eq!(boundaries(&[1.0], 0), None);
    }

    #[test]
    fn values_between_belong_to_the_next_smaller_one() {
        let found = boundaries(&[0.0, 0.1, 0.5, 0.6, 0.9, 1.0], 3).unwrap();
        assert_eq!(found, [0.5, 0.9]);
        assert_eq!([-1.0, 0.0, 0.49, 0.5, 0.89, 0.9, 2.0].map(|value| group(value, &found)), [0, 0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn a_hundred_thousand_values_are_quick() {
        // Weyl's sequence, bent so that groups differ in size: irregular, and the same everywhere.
        let values: Vec<f64> = (0..100_000).map(|i| (f64::from(i) * 0.618_033_988_749_894_9).fract().powi(3)).collect();
        let start = Instant::now();
        let found = boundaries(&values, 3).unwrap();
        let elapsed = start.elapsed();
        // A quadratic search takes minutes; a build without optimisation takes about a second.
        assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
        // Each value is nearest to the mean of its own group, as in every optimum.
        let groups = groups(&values, &found);
        let means: Vec<f64> = groups.iter().map(|group| group.iter().sum::<f64>() / group.len() as f64).collect();
        for (place, boundary) in found.iter().enumerate() {
            let below = groups[place].iter().copied().fold(f64::MIN, f64::max);
            let middle = (means[place] + means[place + 1]) / 2.0;
            assert!(below <= middle && middle <= *boundary, "{below} {middle} {boundary}");
        }
    }
}
