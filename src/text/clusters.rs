//! Which records of a set of near-duplicates stay, and which record stands for each that goes.
//!
//! Only confirmed pairs connect records; a connected component of them is a *cluster*. A cluster is not a licence to
//! remove: in a chain A ~ B ~ C the ends may have nothing to do with each other. So a record is removed only for a kept
//! record that it is itself paired with, and a pair that the caller does not allow (another number, side, negation or
//! gold label) removes nothing and is reported.
//!
//! The result depends on the records' keys and pairs, not on the order in which either arrives.

use thiserror::Error;

use crate::text::near_join::Pair;

/// When a record may be removed for a kept record it is paired with. Records are decided by ascending key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Always. No two kept records are paired, but the two ends of a chain are both removed when its middle has the
    /// least key.
    Direct,
    /// Only if it is also paired with every record already removed for that kept record. So of two records that
    /// are not near-duplicates of each other, never are both replaced by one third record, in any order. The price:
    /// two kept records may be paired; [`Resolution::kept_pairs`] lists them.
    Mutual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Kept,
    /// `survivor` is the position of a kept record that this one is paired with: the one of least key that the rule permits.
    Removed {
        survivor: u32,
    },
}

/// Pairs are (a, b) with a < b, ascending, without repeats; positions in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// One for each record.
    pub fates: Vec<Fate>,
    /// For each record the member of its cluster with the least key; itself when it has no allowed pair.
    pub clusters: Vec<u32>,
    /// Confirmed pairs that were not allowed.
    pub conflicts: Vec<(u32, u32)>,
    /// Allowed pairs of two kept records; none under [`Rule::Direct`].
    pub kept_pairs: Vec<(u32, u32)>,
    pub n_removed: usize,
    /// Records in the largest cluster; 1 when nothing is paired, 0 without records.
    pub largest_cluster: usize,
}

impl Resolution {
    /// Share of the records that is removed, 0 to 1. With [`Self::largest_cluster`], what a caller checks before it
    /// acts: templated text shows as one huge cluster or a large loss.
    pub fn share_removed(&self) -> f64 {
        self.n_removed as f64 / self.fates.len().max(1) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClusterError {
    #[error("the pair ({a}, {b}) does not name two of {n_records} records")]
    NoSuchPair { a: u32, b: u32, n_records: usize },
    #[error("at most {} records can be resolved", u32::MAX)]
    TooLarge,
}

/// Decides every record. `keys[i]` ranks record i, least first (for instance source priority, then record id); records of
/// equal keys go by position. `pairs` are confirmed, in any order; `is_allowed(a, b)`, a < b, is asked once for each.
pub fn resolve<K: Ord>(
    keys: &[K],
    pairs: &[Pair],
    rule: Rule,
    mut is_allowed: impl FnMut(u32, u32) -> bool,
) -> Result<Resolution, ClusterError> {
    let n_records = keys.len();
    let n = u32::try_from(n_records).map_err(|_| ClusterError::TooLarge)?;
    let mut edges: Vec<(u32, u32)> = pairs.iter().map(|pair| (pair.a.min(pair.b), pair.a.max(pair.b))).collect();
    edges.sort_unstable();
    edges.dedup();
    if let Some((a, b)) = edges.iter().copied().find(|(a, b)| a == b || *b >= n) {
        return Err(ClusterError::NoSuchPair { a, b, n_records });
    }
    let (allowed, conflicts): (Vec<_>, Vec<_>) = edges.into_iter().partition(|(a, b)| is_allowed(*a, *b));

    // From here on a record is its rank: its place by (key, position). `keys` is not looked at again.
    let mut by_rank: Vec<(&K, u32)> = keys.iter().zip(0..n).collect();
    by_rank.sort_unstable();
    let by_rank: Vec<u32> = by_rank.into_iter().map(|(_, position)| position).collect();
    let mut ranks = vec![0_u32; n_records];
    for (rank, position) in (0..n).zip(&by_rank) {
        set(&mut ranks, *position, rank);
    }
    let neighbours = Neighbours::new(n_records, allowed.iter().map(|(a, b)| (get(&ranks, *a), get(&ranks, *b))));

    let survivors = survivors(n, &neighbours, rule);
    let heads = heads(n, &neighbours);
    let mut sizes = vec![0_usize; n_records];
    for head in &heads {
        if let Some(size) = sizes.get_mut(*head as usize) {
            *size += 1;
        }
    }

    let mut fates = vec![Fate::Kept; n_records];
    let mut clusters = vec![0; n_records];
    for ((position, survivor), head) in by_rank.iter().zip(&survivors).zip(&heads) {
        if let Some(survivor) = survivor {
            set(&mut fates, *position, Fate::Removed { survivor: get(&by_rank, *survivor) });
        }
        set(&mut clusters, *position, get(&by_rank, *head));
    }
    let is_kept = |position: u32| fates.get(position as usize) == Some(&Fate::Kept);
    let kept_pairs = allowed.into_iter().filter(|(a, b)| is_kept(*a) && is_kept(*b)).collect();
    Ok(Resolution {
        clusters,
        conflicts,
        kept_pairs,
        n_removed: survivors.iter().flatten().count(),
        largest_cluster: sizes.into_iter().max().unwrap_or(0),
        fates,
    })
}

/// For each rank the kept rank that it is removed for, if any.
fn survivors(n: u32, neighbours: &Neighbours, rule: Rule) -> Vec<Option<u32>> {
    let mut survivors: Vec<Option<u32>> = Vec::with_capacity(n as usize);
    // Under `Mutual`: what was removed for a kept rank, and which ranks the current one is paired with.
    let mut removed_for: Vec<Vec<u32>> = vec![Vec::new(); if rule == Rule::Mutual { n as usize } else { 0 }];
    let mut paired_with = vec![u32::MAX; n as usize];
    for rank in 0..n {
        let paired = neighbours.of(rank);
        for other in paired {
            set(&mut paired_with, *other, rank);
        }
        let earlier = paired.iter().copied().take_while(|other| *other < rank);
        let mut kept = earlier.filter(|other| survivors.get(*other as usize) == Some(&None));
        let survivor = kept.find(|kept| {
            let removed = removed_for.get(*kept as usize).map(Vec::as_slice).unwrap_or_default();
            removed.len() < paired.len() && removed.iter().all(|other| get(&paired_with, *other) == rank)
        });
        if let Some(removed) = survivor.and_then(|survivor| removed_for.get_mut(survivor as usize)) {
            removed.push(rank);
        }
        survivors.push(survivor);
    }
    survivors
}

/// For each rank the least rank of its connected component.
fn heads(n: u32, neighbours: &Neighbours) -> Vec<u32> {
    let mut heads = vec![u32::MAX; n as usize];
    let mut to_visit = Vec::new();
    for head in 0..n {
        to_visit.push(head);
        while let Some(rank) = to_visit.pop() {
            if get(&heads, rank) == u32::MAX {
                set(&mut heads, rank, head);
                to_visit.extend(neighbours.of(rank).iter().filter(|other| get(&heads, **other) == u32::MAX));
            }
        }
    }
    heads
}

/// For each rank the ranks it is paired with, ascending.
struct Neighbours {
    ranks: Vec<u32>,
    starts: Vec<usize>,
}

impl Neighbours {
    fn new(n_records: usize, edges: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut both: Vec<(u32, u32)> = edges.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        both.sort_unstable();
        let mut starts = vec![0; n_records + 1];
        let mut filled = 0;
        for (i, start) in starts.iter_mut().enumerate() {
            while both.get(filled).is_some_and(|(rank, _)| (*rank as usize) < i) {
                filled += 1;
            }
            *start = filled;
        }
        Self { ranks: both.into_iter().map(|(_, other)| other).collect(), starts }
    }

    fn of(&self, rank: u32) -> &[u32] {
        let rank = rank as usize;
        let (Some(start), Some(end)) = (self.starts.get(rank), self.starts.get(rank + 1)) else { return &[] };
        self.ranks.get(*start..*end).unwrap_or_default()
    }
}

/// Ranks and positions are below the number of records, so the other case does not occur.
fn get(values: &[u32], at: u32) -> u32 {
    values.get(at as usize).copied().unwrap_or(u32::MAX)
}

fn set<T>(values: &mut [T], at: u32, value: T) {
    if let Some(slot) = values.get_mut(at as usize) {
        *slot = value;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(edges: &[(u32, u32)]) -> Vec<Pair> {
        edges.iter().map(|(a, b)| Pair { a: *a, b: *b, intersection: 9, union: 10 }).collect()
    }

    fn check(keys: &[u32], edges: &[(u32, u32)], rule: Rule, forbidden: &[(u32, u32)]) -> Resolution {
        resolve(keys, &pairs(edges), rule, |a, b| !forbidden.contains(&(a, b))).unwrap()
    }

    fn for_survivors(resolution: &Resolution) -> Vec<Option<u32>> {
        let survivor = |fate: &Fate| match fate {
            Fate::Kept => None,
            Fate::Removed { survivor } => Some(*survivor),
        };
        resolution.fates.iter().map(survivor).collect()
    }

    #[test]
    fn dup_03_a_chain_never_loses_both_ends() {
        let chain = [(0, 1), (1, 2)];
        for keys in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let resolution = check(&keys, &chain, Rule::Mutual, &[]);
            assert_eq!(resolution.n_removed, 1, "{keys:?}");
            assert_eq!(resolution.largest_cluster, 3);
        }
        assert_eq!(for_survivors(&check(&[0, 1, 2], &chain, Rule::Mutual, &[])), [None, Some(0), None]);
        // The middle comes first: one end stays, and the pair that stays is reported.
        let middle_first = check(&[1, 0, 2], &chain, Rule::Mutual, &[]);
        assert_eq!(for_survivors(&middle_first), [Some(1), None, None]);
        assert_eq!(middle_first.kept_pairs, [(1, 2)]);
        // What the other rule does then.
        assert_eq!(for_survivors(&check(&[1, 0, 2], &chain, Rule::Direct, &[])), [Some(1), None, Some(1)]);
        assert_eq!(for_survivors(&check(&[0, 1, 2], &chain, Rule::Direct, &[])), [None, Some(0), None]);
    }

    #[test]
    fn a_pair_that_is_not_allowed_removes_nothing_and_is_reported() {
        let resolution = check(&[0, 1, 2], &[(0, 1), (1, 2), (0, 2)], Rule::Direct, &[(0, 1)]);
        assert_eq!(for_survivors(&resolution), [None, None, Some(0)]);
        assert_eq!(resolution.conflicts, [(0, 1)]);
        let all = check(&[0, 1], &[(0, 1)], Rule::Mutual, &[(0, 1)]);
        assert_eq!((all.n_removed, all.largest_cluster, all.clusters), (0, 1, vec![0, 1]));
    }

    #[test]
    fn the_key_decides_who_survives_and_the_position_breaks_ties() {
        let edges = [(0, 1), (0, 2), (1, 2)];
        assert_eq!(for_survivors(&check(&[5, 5, 1], &edges, Rule::Mutual, &[])), [Some(2), Some(2), None]);
        assert_eq!(for_survivors(&check(&[5, 5, 9], &edges, Rule::Mutual, &[])), [None, Some(0), Some(0)]);
        assert_eq!(check(&[5, 5, 1], &edges, Rule::Mutual, &[]).clusters, [2, 2, 2]);
        assert_eq!(check(&[1; 4], &[(0, 1)], Rule::Direct, &[]).share_removed(), 0.25);
        assert_eq!(check(&[], &[], Rule::Direct, &[]).share_removed(), 0.0);
    }

    #[test]
    fn pairs_must_name_two_records() {
        for wrong in [(0, 2), (1, 1)] {
            assert!(matches!(
                resolve(&[0, 1], &pairs(&[wrong]), Rule::Direct, |_, _| true),
                Err(ClusterError::NoSuchPair { .. })
            ));
        }
    }

    const N: u32 = 14;

    proptest! {
        #[test]
        fn every_removal_has_its_reason_and_order_does_not_matter(
            (edges, order) in (prop::collection::vec((0..N, 0..N), 0..40), Just((0..N).collect::<Vec<_>>()).prop_shuffle()),
            forbidden in prop::collection::vec((0..N, 0..N), 0..20),
            rule in prop::sample::select(vec![Rule::Direct, Rule::Mutual]),
        ) {
            let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a < b).collect();
            let keys: Vec<u32> = (0..N).map(|i| i * 7 % N + i / 2).collect();
            let resolution = check(&keys, &edges, rule, &forbidden);
            let allowed = |a: u32, b: u32| {
                let edge = (a.min(b), a.max(b));
                edges.contains(&edge) && !forbidden.contains(&edge)
            };
            let survivors = for_survivors(&resolution);
            let rank = |i: u32| (keys[i as usize], i);
            for a in 0..N {
                if let Some(survivor) = survivors[a as usize] {
                    prop_assert!(allowed(a, survivor) && rank(survivor) < rank(a));
                    prop_assert_eq!(survivors[survivor as usize], None);
                }
                for b in a + 1..N {
                    let both_kept = survivors[a as usize].is_none() && survivors[b as usize].is_none();
                    prop_assert_eq!(resolution.kept_pairs.contains(&(a, b)), both_kept && allowed(a, b));
                    let same = survivors[a as usize].is_some() && survivors[a as usize] == survivors[b as usize];
                    prop_assert!(rule == Rule::Direct || !same || allowed(a, b));
                    let conflict = edges.contains(&(a, b)) && forbidden.contains(&(a, b));
                    prop_assert_eq!(resolution.conflicts.contains(&(a, b)), conflict);
                }
                let head = resolution.clusters[a as usize];
                prop_assert_eq!(survivors[head as usize], None);
                prop_assert!(rank(head) <= rank(a));
            }
            prop_assert!(rule == Rule::Mutual || resolution.kept_pairs.is_empty());

            // The same records, keys made unique, in another order.
            let unique: Vec<(u32, u32)> = (0..N).map(rank).collect();
            let place = |i: u32| order[i as usize];
            let mut shuffled = vec![(0, 0); N as usize];
            (0..N).for_each(|i| shuffled[place(i) as usize] = unique[i as usize]);
            let moved: Vec<_> = edges.iter().rev().map(|(a, b)| (place(*a), place(*b))).collect();
            let again = resolve(&shuffled, &pairs(&moved), rule, |a, b| {
                let back = |p: u32| (0..N).find(|i| place(*i) == p).unwrap();
                allowed(back(a), back(b))
            }).unwrap();
            let again = for_survivors(&again);
            for i in 0..N {
                prop_assert_eq!(again[place(i) as usize], survivors[i as usize].map(place));
            }
        }
    }
}
