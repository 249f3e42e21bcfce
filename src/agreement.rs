//! How far two raters agree who put the same things into the same ordered categories, as bands of difficulty (MedRoundsQA,
//! appendix F.3).
//!
//! Cohen's kappa is agreement beyond chance: `(p_o − p_e) / (1 − p_e)` with the observed agreement p_o and that of two
//! raters who choose at random, each with the frequencies that they have (Cohen 1960, "A coefficient of agreement for
//! nominal scales"). In the weighted one, two categories i and j of k agree in part (Cohen 1968, "Weighted kappa"). The
//! weights used here say by how much they do not: `|i − j| / (k − 1)`, or its square. Written with disagreement, kappa is
//! `1 − (1 − p_o) / (1 − p_e)`; k cancels, and everything up to the last division is a whole number.

use serde::Serialize;

/// How much of an agreement two different categories are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// None at all: categories have no order.
    None,
    /// `1 − |i − j| / (k − 1)`
    Linear,
    /// `1 − (i − j)² / (k − 1)²`
    Quadratic,
}

impl Weights {
    /// Disagreement of two categories, in units that are the same for all pairs of them.
    fn distance(self, first: u64, second: u64) -> u128 {
        let apart = u128::from(first.abs_diff(second));
        match self {
            Self::None => apart.min(1),
            Self::Linear => apart,
            Self::Quadratic => apart * apart,
        }
    }
}

/// How often the first rater chose one category and the second another, for each pair of categories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Confusion {
    /// k rows of k counts: a row is a category of the first rater, a column one of the second.
    counts: Vec<Vec<u64>>,
}

impl Confusion {
    /// A table of k categories in which nothing is counted yet.
    pub fn new(n_categories: usize) -> Self {
        Self { counts: vec![vec![0; n_categories]; n_categories] }
    }

    /// Counts pairs of a first and a second rater. `categories` are all there are, in their order. A pair with another
    /// value is not counted, like one that a rater left open.
    pub fn of<T: PartialEq>(categories: &[T], pairs: impl IntoIterator<Item = (T, T)>) -> Self {
        let mut table = Self::new(categories.len());
        let place = |value: &T| categories.iter().position(|category| category == value);
        for (first, second) in pairs {
            if let (Some(first), Some(second)) = (place(&first), place(&second)) {
                table.add(first, second);
            }
        }
        table
    }

    /// Counts one pair of category numbers, from 0. False if one of them is no category; then nothing is counted.
    pub fn add(&mut self, first: usize, second: usize) -> bool {
        let count = self.counts.get_mut(first).and_then(|row| row.get_mut(second));
        count.map(|count| *count += 1).is_some()
    }

    /// Rows of the first rater, columns of the second.
    pub fn counts(&self) -> &[Vec<u64>] {
        &self.counts
    }

    /// Pairs counted.
    pub fn n(&self) -> u64 {
        self.cells().map(|(_, _, n)| n).sum()
    }

    /// Pairs in the same category.
    pub fn n_equal(&self) -> u64 {
        self.n_within(0)
    }

    /// Share of pairs in the same category, 0 to 1. `None` if nothing is counted.
    pub fn exact(&self) -> Option<f64> {
        self.share(self.n_within(0))
    }

    /// Share of pairs whose categories are the same or next to each other, 0 to 1. `None` if nothing is counted.
    pub fn adjacent(&self) -> Option<f64> {
        self.share(self.n_within(1))
    }

    /// Cohen's kappa, at most 1; 0 is chance. `None` if nothing is counted, or chance would agree always: both raters
    /// used one and the same category only.
    pub fn kappa(&self, weights: Weights) -> Option<f64> {
        let row_totals: Vec<u64> = self.counts.iter().map(|row| row.iter().sum()).collect();
        let mut column_totals = vec![0; self.counts.len()];
        for row in &self.counts {
            for (total, n) in column_totals.iter_mut().zip(row) {
                *total += n;
            }
        }
        let observed: u128 =
            self.cells().map(|(first, second, n)| u128::from(n) * weights.distance(first, second)).sum();
        let rows = || (0..).zip(&row_totals);
        let expected: u128 = rows()
            .flat_map(|(first, of_first)| {
                (0..).zip(&column_totals).map(move |(second, n)| (first, of_first, second, n))
            })
            .map(|(first, of_first, second, of_second)| {
                u128::from(*of_first) * u128::from(*of_second) * weights.distance(first, second)
            })
            .sum();
        // The expected disagreement is that of n² pairs, the observed one that of n.
        (expected > 0).then(|| 1.0 - (u128::from(self.n()) * observed) as f64 / expected as f64)
    }

    /// Category of the first rater, of the second, count.
    fn cells(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        (0..).zip(&self.counts).flat_map(|(first, row)| (0..).zip(row).map(move |(second, n)| (first, second, *n)))
    }

    fn n_within(&self, most_apart: u64) -> u64 {
        let near = self.cells().filter(|(first, second, _)| first.abs_diff(*second) <= most_apart);
        near.map(|(_, _, n)| n).sum()
    }

    fn share(&self, count: u64) -> Option<f64> {
        let n = self.n();
        (n > 0).then(|| count as f64 / n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difficulty::Band;
    use proptest::prelude::*;

    const ALL_WEIGHTS: [Weights; 3] = [Weights::None, Weights::Linear, Weights::Quadratic];

    fn table(counts: &[&[u64]]) -> Confusion {
        let mut table = Confusion::new(counts.len());
        for (first, row) in counts.iter().enumerate() {
            for (second, n) in row.iter().enumerate() {
                (0..*n).for_each(|_| assert!(table.add(first, second)));
            }
        }
        table
    }

    fn transposed(table: &Confusion) -> Confusion {
        let column = |place: usize| table.counts.iter().map(|row| row[place]).collect();
        Confusion { counts: (0..table.counts.len()).map(column).collect() }
    }

    /// As Cohen writes it, with shares and weights of agreement.
    fn kappa_by_weights(table: &Confusion, weights: Weights) -> Option<f64> {
        let k = table.counts.len();
        let n = table.n() as f64;
        let share = |first: usize, second: usize| table.counts[first][second] as f64 / n;
        let weight = |first: usize, second: usize| {
            let apart = first.abs_diff(second) as f64 / (k as f64 - 1.0);
            match weights {
                Weights::None => f64::from(u8::from(first == second)),
                Weights::Linear => 1.0 - apart,
                Weights::Quadratic => 1.0 - apart * apart,
            }
        };
        let (mut observed, mut expected) = (0.0, 0.0);
        for first in 0..k {
            for second in 0..k {
                let row: f64 = (0..k).map(|other| share(first, other)).sum();
                let column: f64 = (0..k).map(|other| share(other, second)).sum();
                observed += weight(first, second) * share(first, second);
                expected += weight(first, second) * row * column;
            }
        }
        (1.0 - expected > 1e-12).then(|| (observed - expected) / (1.0 - expected))
    }

    /// Table 8 has the physicians' labels as rows and the automatic ones as columns, by its heading. Its rows sum to 30
    /// each and its columns to 29, 30 and 31, although the text says that 30 cases of each *automatic* band were drawn:
    /// heading or text has the axes the wrong way round. No figure depends on it, all being the same for both.
    ///
    /// Disagreement in units of one band: observed 10 of 90 by 1, none by 2. Expected linearly, with 1/3 for each row:
    /// (29 · 3/3 + 30 · 2/3 + 31 · 3/3) / 90 = 80/90, so kappa = 1 − 10/80 = 7/8. Quadratic:
    /// (29 · 5/3 + 30 · 2/3 + 31 · 5/3) / 90 = 120/90, so kappa = 1 − 10/120 = 11/12. Unweighted: 60/90, and 5/6. The
    /// published 88.9 %, 0.88 and 0.92 are these, rounded.
    #[test]
    fn table_8_of_the_paper() {
        let found = table(&[&[27, 3, 0], &[2, 25, 3], &[0, 2, 28]]);
        assert_eq!((found.n(), found.n_equal()), (90, 80));
        for table in [&found, &transposed(&found)] {
            assert_eq!(table.exact(), Some(80.0 / 90.0));
            assert_eq!(table.adjacent(), Some(1.0));
            assert_eq!(table.kappa(Weights::Linear), Some(7.0 / 8.0));
            assert!((table.kappa(Weights::Quadratic).unwrap() - 11.0 / 12.0).abs() < 1e-15);
            assert!((table.kappa(Weights::None).unwrap() - 5.0 / 6.0).abs() < 1e-15);
        }
        assert_eq!(format!("{:.1}", found.exact().unwrap() * 100.0), "88.9");
        let weighted = [Weights::Linear, Weights::Quadratic].map(|weights| found.kappa(weights).unwrap());
        assert_eq!(weighted.map(|kappa| format!("{kappa:.2}")), ["0.88", "0.92"]);
    }

    #[test]
    fn pairs_are_counted_by_the_order_of_the_categories() {
        use Band::{Easy, Hard, Medium};
        let found = Confusion::of(&Band::ALL, [(Easy, Hard), (Medium, Medium), (Easy, Hard), (Hard, Medium)]);
        assert_eq!(found.counts(), [[0, 0, 2], [0, 1, 0], [0, 1, 0]]);
        assert_eq!((found.exact(), found.adjacent()), (Some(0.25), Some(0.5)));
        // Disagreement: observed 0 + 2·2 + 1·1 = 5 of 4 pairs; expected Σ r·c·d = 2·2·1 + 2·2·2 + 1·2·1 + 1·2·1 = 16 of 16.
        assert_eq!(found.kappa(Weights::Linear), Some(1.0 - 5.0 / 4.0));
        // A value that is no category is not counted.
        let found = Confusion::of(&["a", "b"], [("a", "a"), ("a", "c"), ("c", "b")]);
        assert_eq!(found, table(&[&[1, 0], &[0, 0]]));
        assert!(!Confusion::new(2).add(0, 2) && !Confusion::new(2).add(2, 0));
    }

    #[test]
    fn a_textbook_table_of_two_categories() {
        // 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o = 0.7, p_e = 0.5. With two categories all weights are one.
        let found = table(&[&[20, 5], &[10, 15]]);
        for weights in ALL_WEIGHTS {
            assert!((found.kappa(weights).unwrap() - 0.4).abs() < 1e-15);
        }
    }

    #[test]
    fn without_anything_to_disagree_on_there_is_no_kappa() {
        for found in [Confusion::new(0), Confusion::new(3)] {
            assert_eq!((found.n(), found.exact(), found.adjacent()), (0, None, None));
            assert_eq!(ALL_WEIGHTS.map(|weights| found.kappa(weights)), [None; 3]);
        }
        for one_word in [table(&[&[5]]), table(&[&[0, 0], &[0, 5]])] {
            assert_eq!((one_word.n(), one_word.exact()), (5, Some(1.0)));
            assert_eq!(ALL_WEIGHTS.map(|weights| one_word.kappa(weights)), [None; 3]);
        }
        // Each rater has one word, but not the same: chance would never agree, and neither do they.
        assert_eq!(table(&[&[0, 5], &[0, 0]]).kappa(Weights::None), Some(0.0));
    }

    proptest! {
        #[test]
        fn kappa_is_cohens_and_does_not_care_who_is_first(
            counts in (2..=4_usize).prop_flat_map(|k| prop::collection::vec(prop::collection::vec(0..30_u64, k), k))
        ) {
            let found = Confusion { counts };
            for weights in ALL_WEIGHTS {
                let kappa = found.kappa(weights);
                match (kappa, kappa_by_weights(&found, weights)) {
                    (Some(ours), Some(cohens)) => prop_assert!((ours - cohens).abs() < 1e-9, "{} {}", ours, cohens),
                    (ours, cohens) => prop_assert_eq!(ours, cohens),
                }
                prop_assert_eq!(kappa, transposed(&found).kappa(weights));
                prop_assert!(kappa.is_none_or(|kappa| kappa <= 1.0));
                prop_assert!(kappa != Some(1.0) || found.exact() == Some(1.0));
            }
        }
    }
}
