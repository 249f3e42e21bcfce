//! Percentile intervals by resampling cases (Efron and Tibshirani 1993, chapter 13).
//!
//! A case is drawn whole, with all its slots and for all extractors at once: slots of one case are not independent,
//! and the same draws make the differences between extractors paired ones.

use std::num::NonZeroU32;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// The coverage of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// How often and from which seed cases are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// The number of resamples.
    pub n_resamples: NonZeroU32,
    /// Equal seeds draw equal cases, on every machine and with every version of the library.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        // Evaluated by the compiler, so it cannot fail at run time.
        const N_RESAMPLES: NonZeroU32 = NonZeroU32::new(2_000).unwrap();
        Self { n_resamples: N_RESAMPLES, seed: 0 }
    }
}

/// A statistic that is a ratio of two sums over cases, such as a micro-average: for each case its share of the
/// numerator and of the denominator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column(pub Vec<(f64, f64)>);

impl Column {
    /// The ratio over all cases; none if the denominator is 0.
    pub fn estimate(&self) -> Option<f64> {
        self.over(0..self.0.len())
    }

    fn over(&self, cases: impl Iterator<Item = usize>) -> Option<f64> {
        let mut sums = (0.0, 0.0);
        // A column that is shorter than the others says nothing about the cases it lacks.
        for (numerator, denominator) in cases.filter_map(|case| self.0.get(case)) {
            sums.0 += numerator;
            sums.1 += denominator;
        }
        (sums.1 > 0.0).then(|| sums.0 / sums.1)
    }
}

/// The two ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Every column over every resample.
#[derive(Clone, Debug)]
pub struct Resamples {
    /// By column, then by resample; none where the cases drawn leave the statistic undefined.
    values: Vec<Vec<Option<f64>>>,
}

impl Resamples {
    /// Draws as many cases as there are, with replacement, `n_resamples` times.
    pub fn draw(columns: &[Column], n_cases: usize, settings: Bootstrap) -> Self {
        // The seed is laid into the key as it stands: how a library spreads a short seed may change between versions.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&settings.seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        let mut values = vec![Vec::new(); columns.len()];
        let mut cases = vec![0; n_cases];
        for _ in 0..settings.n_resamples.get() {
            cases.fill_with(|| index_below(&mut generator, n_cases));
            for (column, drawn) in columns.iter().zip(&mut values) {
                drawn.push(column.over(cases.iter().copied()));
            }
        }
        Self { values }
    }

    /// The interval of a column, by its place; none if no resample defines it.
    pub fn interval(&self, column: usize) -> Option<Interval> {
        percentiles(self.values.get(column)?.iter().flatten().copied().collect())
    }

    /// The interval of the first column less the second, resample by resample.
    pub fn difference(&self, first: usize, second: usize) -> Option<Interval> {
        let pairs = self.values.get(first)?.iter().zip(self.values.get(second)?);
        percentiles(pairs.filter_map(|(first, second)| Some((*first)? - (*second)?)).collect())
    }
}

/// A number below `bound`, each equally likely (Lemire 2019, algorithm 5). Written out because the generator promises
/// its stream for ever, while the ways in which libraries cut numbers out of it have changed.
fn index_below(generator: &mut impl Rng, bound: usize) -> usize {
    let bound = bound as u64;
    let n_unfair = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(bound);
        if product as u64 >= n_unfair {
            // Below `bound`, which was a usize.
            return (product >> 64) as usize;
        }
    }
}

/// The ends of the central [`CONFIDENCE`] of the values, interpolated (Hyndman and Fan 1996, type 7).
fn percentiles(mut values: Vec<f64>) -> Option<Interval> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |share: f64| {
        let position = share * last as f64;
        let below = values[position.floor() as usize];
        let above = values[(position.ceil() as usize).min(last)];
        below + (above - below) * position.fract()
    };
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some(Interval { low: at(tail), high: at(1.0 - tail) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn draw(columns: &[Column], n_cases: usize, seed: u64) -> Resamples {
        Resamples::draw(columns, n_cases, Bootstrap { seed, ..Bootstrap::default() })
    }

    #[test]
    fn the_draws_never_change() {
        let mut generator = ChaCha8Rng::from_seed([0; 32]);
        let drawn: Vec<usize> = (0..20).map(|_| index_below(&mut generator, 100)).collect();
        expect!["[83, 63, 23, 11, 25, 9, 0, 26, 31, 67, 66, 42, 59, 39, 73, 66, 61, 99, 79, 53]"]
            .assert_eq(&format!("{drawn:?}"));
        let column = Column((0..40).map(|case| (f64::from(case % 7), 7.0)).collect());
        let interval = draw(&[column], 40, 1).interval(0);
        expect!["Some(Interval { low: 0.32142857142857145, high: 0.49642857142857144 })"]
            .assert_eq(&format!("{interval:?}"));
    }

    #[test]
    fn every_index_is_drawn_about_equally_often() {
        let mut generator = ChaCha8Rng::from_seed([7; 32]);
        let mut counts = [0_u32; 3];
        for _ in 0..30_000 {
            counts[index_below(&mut generator, 3)] += 1;
        }
        assert!(counts.iter().all(|n| (9_700..10_300).contains(n)), "{counts:?}");
    }

    #[test]
    fn percentiles_interpolate() {
        let hundred: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        expect!["Some(Interval { low: 2.500000000000002, high: 97.5 })"]
            .assert_eq(&format!("{:?}", percentiles(hundred)));
        expect!["Some(Interval { low: 0.5, high: 0.5 }) None"].assert_eq(&format!(
            "{:?} {:?}",
            percentiles(vec![0.5]),
            percentiles(Vec::new())
        ));
    }

    /// A column of cases that are right or wrong by a fixed pseudo-random rule.
    fn coin(seed: u64, n_cases: usize, share: f64) -> Column {
        let mut generator = ChaCha8Rng::from_seed([seed as u8; 32]);
        let mut one = || (f64::from(u8::from((index_below(&mut generator, 1_000) as f64) < share * 1_000.0)), 1.0);
        Column((0..n_cases).map(|_| one()).collect())
    }

    #[test]
    fn intervals_hold_the_estimate_and_usually_the_truth() {
        let mut n_true = 0;
        for seed in 0..100 {
            let column = coin(seed, 80, 0.6);
            let estimate = column.estimate().unwrap();
            let interval = draw(&[column], 80, seed).interval(0).unwrap();
            assert!(interval.low <= estimate && estimate <= interval.high, "{seed}: {interval:?} {estimate}");
            n_true += u32::from(interval.low <= 0.6 && 0.6 <= interval.high);
        }
        assert!((88..=100).contains(&n_true), "{n_true} of 100 intervals hold the truth");
    }

    #[test]
    fn differences_are_paired() {
        let first = coin(3, 60, 0.5);
        // Right in the same cases, but always a little less: no resample can turn the order round.
        let second = Column(first.0.iter().map(|(numerator, n)| (numerator - 0.01, *n)).collect());
        let difference = draw(&[first, second], 60, 5).difference(0, 1).unwrap();
        assert!((difference.low - 0.01).abs() < 1e-9 && (difference.high - 0.01).abs() < 1e-9, "{difference:?}");
    }

    #[test]
    fn nothing_to_divide_by_gives_no_interval() {
        let columns = [Column(vec![(0.0, 0.0); 3]), Column(Vec::new())];
        let resamples = draw(&columns, 3, 0);
        assert_eq!((columns[0].estimate(), resamples.interval(0), resamples.interval(1)), (None, None, None));
        assert_eq!((resamples.interval(9), resamples.difference(0, 1)), (None, None));
        assert_eq!(draw(&columns, 0, 0).interval(0), None);
    }
}
