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
