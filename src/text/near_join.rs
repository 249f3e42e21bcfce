//! All pairs of texts whose shingle sets have at least a given Jaccard similarity: exact, recall 1, no false pair.
//!
//! There are no bands and no chance of a miss, so there is no S-curve to check: what proposes a pair is a
//! consequence of the threshold, not a signature. The filters, in the order in which they apply:
//!
//! 1. *Equal sets* are found by a digest, compared, and stand for one set from then on.
//! 2. *Prefix* (Chaudhuri, Ganti, Kaushik 2006; AllPairs: Bayardo, Ma, Srikant 2007). Order every set by one total
//!    order, rarest shingle first. Two sets that need i common shingles have one among the first n − i + 1 of each.
//!    Only those are indexed (8 % of a set at 0.85) or looked up (at most 16 %); a shingle of one set only is neither.
//! 3. *Chains of classes*, for texts of one template, where even the rarest shingles are in many texts. Frequent
//!    shingles that are in the same sets are one class, and a class that is too frequent is looked up together with
//!    the next common one, and so on: `Chains` says why nothing is missed. This is ours.
//! 4. *Length and position* (PPJoin: Xiao, Wang, Lin, Yu 2008). Sets are taken by increasing size; a list is entered at
//!    the least size that can match, and each entry says up to which size of partner its place in the set is early
//!    enough.
//! 5. *Parity sketch*, after the bitmap filter of Sandes, Teodoro, Melo (2020). 512 bits, each the parity of how many
//!    shingles fall on it; the same folded to 64 bits first, for the cache. Bits that differ between two sketches
//!    never outnumber the shingles that are in one of the sets only, so too many of them rule the pair out.
//! 6. *Merge* of the two sorted sets, abandoned when the threshold is out of reach, otherwise the exact intersection.
//!
//! The total order is (count, hash), where counts are kept per slot of a fixed-size table instead of per shingle: any
//! total order gives the same pairs, and this one needs neither a map nor its memory.
//!
//! # Cost
//!
//! Memory beside the input, in bytes: about 120 a set; 8 for each lookup and 12 to 16 for each that is indexed; 1 for
//! each of at most 2²⁷ slots; one bit a set and thread; 16 a pair found, twice while they are gathered. Lookups are at
//! most a sixth of all shingles, or the prefixes where those are more. No candidate list is kept.
//!
//! Time is linear in the input plus the entries visited: up to half of the square of the length of each list. Lists
//! longer than some hundred entries arise only where chains cannot be used because they would be too many:
//! hundreds of frequent shingles in one text, no two of them in the same texts, and a threshold that lets many be
//! missing (0.5 rather than 0.85), or a size that differs much from text to text. Then the time is quadratic in the
//! number of texts; the memory is not. The number of pairs can be quadratic for any algorithm. [`Limits`] bounds
//! both, and whether a limit is exceeded depends on the input only.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

use crate::text::shingles::{ShingleSet, Threshold, intersection_of_at_least, jaccard};

/// Two sets at or above the threshold. `a < b` are positions in the input; sizes are in shingles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    pub a: u32,
    pub b: u32,
    pub intersection: u32,
    pub union: u32,
}

/// Where to stop instead of using more time or memory than the caller has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Pairs found. 32 bytes each at the peak.
    pub pairs: u64,
    /// Entries of the index visited, known before the first is: 10⁹ take some seconds.
    pub visits: u64,
}

impl Limits {
    pub const NONE: Self = Self { pairs: u64::MAX, visits: u64::MAX };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum JoinError {
    #[error("more than {limit} pairs of near-duplicates")]
    TooManyPairs { limit: u64 },
    #[error("finding near-duplicates would visit {visits} index entries, more than {limit}")]
    TooManyVisits { visits: u64, limit: u64 },
    #[error("near-duplicates are found among at most {} sets of at most {} shingles", u32::MAX, MAX_SET)]
    TooLarge,
}

/// So that a union fits 32 bits.
const MAX_SET: u32 = u32::MAX / 2;

/// All pairs with a Jaccard similarity of at least `threshold`, by (a, b). Empty sets match nothing. The result is the same
/// for every number of threads.
pub fn near_pairs(sets: &[ShingleSet], threshold: Threshold, threads: usize) -> Result<Vec<Pair>, JoinError> {
    near_pairs_within(sets, threshold, threads, Limits::NONE)
}

/// [`near_pairs`] that fails instead of exceeding a limit.
pub fn near_pairs_within(
    sets: &[ShingleSet],
    threshold: Threshold,
    threads: usize,
    limits: Limits,
) -> Result<Vec<Pair>, JoinError> {
    let threads = threads.clamp(1, MAX_THREADS);
    let groups = Groups::of_equal_sets(sets, threads)?;
    let (profiles, sketches) = describe(&groups, threshold, threads);
    let index = Index::build(&profiles, &groups, threshold)?;
    let folds: Vec<u64> = sketches.iter().map(fold).collect();
    let join =
        Join { groups: &groups, profiles: &profiles, sketches: &sketches, folds: &folds, index: &index, threshold };
    if limits.visits < u64::MAX {
        let visits = join.count_visits(threads);
        if visits > limits.visits {
            return Err(JoinError::TooManyVisits { visits, limit: limits.visits });
        }
    }
    join.run(threads, limits.pairs)
}

/// Compares every pair: the definition that [`near_pairs`] is tested against.
pub fn brute_force_pairs(sets: &[ShingleSet], threshold: Threshold) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (a, set_a) in (0..).zip(sets) {
        for (b, set_b) in (0..).zip(sets).skip(a as usize + 1) {
            let (intersection, union) = jaccard(set_a, set_b);
            let (intersection, union) = (intersection as u32, union as u32);
            if threshold.is_met(intersection, union) {
                pairs.push(Pair { a, b, intersection, union });
            }
        }
    }
    pairs
}

/// More would only cost memory.
const MAX_THREADS: usize = 256;

/// Sets handed to a thread at a time.
const BLOCK: usize = 512;

/// The different non-empty sets by increasing size, each with the positions it has in the input.
struct Groups<'a> {
    sets: Vec<&'a [u64]>,
    sizes: Vec<u32>,
    /// `members[starts[g]..starts[g + 1]]` are the positions of set g, ascending.
    members: Vec<u32>,
    starts: Vec<u32>,
}

impl<'a> Groups<'a> {
    fn of_equal_sets(sets: &'a [ShingleSet], threads: usize) -> Result<Self, JoinError> {
        u32::try_from(sets.len()).map_err(|_| JoinError::TooLarge)?;
        let mut keys = vec![(0_u32, 0_u64, 0_u32); sets.len()];
        share_out(threads, keys.chunks_mut(BLOCK).zip(sets.chunks(BLOCK)).enumerate(), |(block, (keys, sets))| {
            for ((position, key), set) in (block * BLOCK..).zip(keys).zip(sets) {
                *key = (u32::try_from(set.len()).unwrap_or(u32::MAX), digest(set.hashes()), position as u32);
            }
        });
        keys.retain(|(size, ..)| *size > 0);
        keys.sort_unstable();
        if keys.last().is_some_and(|(size, ..)| *size > MAX_SET) {
            return Err(JoinError::TooLarge);
        }
        let mut groups = Self { sets: Vec::new(), sizes: Vec::new(), members: Vec::new(), starts: Vec::new() };
        let mut last = None;
        for (size, digest, position) in keys {
            let Some(set) = sets.get(position as usize).map(ShingleSet::hashes) else { continue };
            // Different sets of one digest may leave an equal set in two groups; the join then pairs them like others.
            if last != Some((size, digest)) || groups.sets.last() != Some(&set) {
                groups.starts.push(groups.members.len() as u32);
                groups.sets.push(set);
                groups.sizes.push(size);
            }
            last = Some((size, digest));
            groups.members.push(position);
        }
        groups.starts.push(groups.members.len() as u32);
        Ok(groups)
    }

    fn len(&self) -> usize {
        self.sets.len()
    }

    fn members(&self, group: usize) -> &[u32] {
        let (Some(start), Some(end)) = (self.starts.get(group), self.starts.get(group + 1)) else { return &[] };
        self.members.get(*start as usize..*end as usize).unwrap_or_default()
    }

    /// How many shingles of a set of `size` its least partner may lack. The partner has a size that occurs: where all
    /// sizes are near each other, as in texts of one template, fewer may be missing.
    fn spare(&self, size: u32, threshold: Threshold) -> u32 {
        let least = threshold.least_partner(size);
        let least = self.sizes.get(self.sizes.partition_point(|other| *other < least)).copied().unwrap_or(size);
        size - threshold.least_intersection(size, least.min(size)).min(size)
    }

    /// Position of the first group of more than `size` shingles.
    fn end_of_size(&self, size: u32) -> usize {
        self.sizes.partition_point(|other| *other <= size)
    }
}

fn digest(hashes: &[u64]) -> u64 {
    hashes.iter().fold(0, |state: u64, hash| (state.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// What a set is looked up by: every set that can match it has one of these keys as well.
#[derive(Clone, Default)]
struct Profile {
    lookups: Box<[Lookup]>,
}

#[derive(Clone, Copy)]
struct Lookup {
    /// Of the first common shingle or classes. Others that share the key add candidates and lose none.
    key: u32,
    /// How many shingles of this set the partner lacks if those are the first.
    missed: u32,
}

const SKETCH_WORDS: usize = 8;
/// Bit i is the parity of the number of shingles whose hash ends in i.
type Sketch = [u64; SKETCH_WORDS];

/// The sketch of 64 bits.
fn fold(sketch: &Sketch) -> u64 {
    sketch.iter().fold(0, |fold, word| fold ^ word)
}

/// Two sets differ in at least this many shingles.
fn least_difference(a: &Sketch, b: &Sketch) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

fn sketch_of(hashes: &[u64]) -> Sketch {
    let mut sketch = [0; SKETCH_WORDS];
    for hash in hashes {
        let bit = *hash as usize % (SKETCH_WORDS * 64);
        if let Some(word) = sketch.get_mut(bit / 64) {
            *word ^= 1 << (bit % 64);
        }
    }
    sketch
}

fn describe(groups: &Groups, threshold: Threshold, threads: usize) -> (Vec<Profile>, Vec<Sketch>) {
    let counts = Counts::of(&groups.sets, threads);
    let mut profiles = Vec::new();
    let mut sketches = vec![[0; SKETCH_WORDS]; groups.len()];
    // As many lookups as the prefixes of all sets have shingles at 0.85. Without chains there are no more at any threshold.
    let budget = groups.sets.iter().map(|set| set.len() as u64).sum::<u64>() / 6;
    for longest in [16, 8, 4, 2, 1] {
        let budget = if longest == 1 { u64::MAX } else { budget };
        let used = AtomicU64::new(0);
        profiles = vec![Profile::default(); groups.len()];
        let blocks = profiles.chunks_mut(BLOCK).zip(sketches.chunks_mut(BLOCK)).zip(groups.sets.chunks(BLOCK));
        share_out(threads, blocks, |((profiles, sketches), sets)| {
            let mut chains = Chains { n_sets: groups.len() as f64, longest, budget, used: &used, found: Vec::new() };
            let mut ranked = Vec::new();
            for ((profile, sketch), set) in profiles.iter_mut().zip(sketches).zip(sets) {
                if used.load(Ordering::Relaxed) > budget {
                    break;
                }
                chains.found.clear();
                chains.of_set(set, groups.spare(set.len() as u32, threshold), &counts, &mut ranked);
                if !chains.found.is_empty() {
                    profile.lookups = chains.found.as_slice().into();
                    *sketch = sketch_of(set);
                }
            }
        });
        if used.into_inner() <= budget {
            break;
        }
    }
    (profiles, sketches)
}

/// A shingle, or all frequent shingles that are in the same sets: a *class*. Texts of one template have few classes.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Class {
    /// Sets that have it.
    count: u32,
    id: u64,
    /// Shingles of the set at hand that belong to it.
    weight: u32,
}

/// A class of at least this many sets is not looked up by itself.
const FREQUENT: u32 = u8::MAX as u32;

/// Expected sets at which a chain of several classes is long enough.
const SHORT: f64 = 32.0;

/// Finds what to look a set up by.
///
/// Let a set have its classes in the global order, and let c be the first that a partner has too. All shingles of
/// classes before c are missing from the partner, so few classes can be c: that is the prefix filter. Where c is
/// frequent its list would be long, and the same is said of the next common class, and so on until the chain is
/// expected to be in few sets: partners agree on the whole chain. A class that two sets share need not mean a common
/// shingle, only the reverse, so it does not matter whether classes are told apart perfectly.
struct Chains<'a> {
    n_sets: f64,
    /// Classes in a chain at most.
    longest: u32,
    /// Lookups of all sets together; once exceeded, what is found is of no use.
    budget: u64,
    used: &'a AtomicU64,
    found: Vec<Lookup>,
}

/// The end of a set, as the class that follows all others.
const END: u64 = 0;

impl Chains<'_> {
    /// `spare` is how many shingles of the set a partner may lack.
    fn of_set(&mut self, set: &[u64], spare: u32, counts: &Counts, ranked: &mut Vec<(u32, u64)>) {
        // Shingles of this set only come first in the order. Where they fill the prefix, as in most texts, nothing can
        // match.
        let mut alone = 0;
        ranked.clear();
        for hash in set {
            match counts.get(*hash) {
                (0 | 1, _) => alone += 1,
                shared => ranked.push(shared),
            }
            if alone > spare {
                return;
            }
        }
        let prefix = (spare - alone) as usize;
        if prefix + 1 < ranked.len() {
            let (_, last, _) = ranked.select_nth_unstable(prefix);
            if last.0 < FREQUENT {
                ranked.truncate(prefix + 1);
            }
        }
        ranked.sort_unstable();
        let same = |a: &(u32, u64), b: &(u32, u64)| a == b;
        let classes = ranked.chunk_by(same).filter_map(|class| {
            class.first().map(|(count, id)| Class { count: *count, id: *id, weight: class.len() as u32 })
        });
        let classes: Vec<Class> = classes.collect();
        self.extend(&classes, alone, spare, 0, None);
        self.used.fetch_add(self.found.len() as u64, Ordering::Relaxed);
    }

    /// All ways to go on with a chain that `missed` shingles so far, out of the classes after its last.
    fn extend(&mut self, classes: &[Class], mut missed: u32, spare: u32, length: u32, chain: Option<(u64, f64)>) {
        for (i, class) in classes.iter().enumerate() {
            let count = f64::from(class.count);
            let (key, expected, enough) = match chain {
                None => (class.id, count, f64::from(FREQUENT)),
                Some((key, expected)) => (link(key, class.id), expected * count / self.n_sets, SHORT),
            };
            if expected < enough || length + 1 == self.longest {
                self.found.push(Lookup { key: (key >> 32) as u32, missed });
            } else {
                let rest = classes.get(i + 1..).unwrap_or_default();
                self.extend(rest, missed, spare, length + 1, Some((key, expected)));
            }
            missed += class.weight;
            if missed > spare || self.found.len() as u64 > self.budget {
                return;
            }
        }
        if let Some((key, _)) = chain {
            self.found.push(Lookup { key: (link(key, END) >> 32) as u32, missed });
        }
    }
}

fn link(key: u64, id: u64) -> u64 {
    let mixed = (key.rotate_left(29) ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// In how many sets a shingle is, or more where shingles share a slot. One byte a slot, so that the table of a small
/// corpus fits the cache; the few shingles that overflow it are counted again, by other bits, in a table of their own.
struct Counts {
    slots: Vec<u8>,
    shift: u32,
    /// The count, and the sum of a number drawn for each set: equal for shingles of the same sets.
    frequent: Vec<(u32, u64)>,
}

impl Counts {
    const MAX_BITS: u32 = 27;

    fn of(sets: &[&[u64]], threads: usize) -> Self {
        let total: usize = sets.iter().map(|set| set.len()).sum();
        let bits = (total.max(1).ilog2() + 1).clamp(10, Self::MAX_BITS);
        let shift = 64 - bits;
        let mut slots = vec![0_u8; 1 << bits];
        // Sets are sorted and slots follow the top bits, so a part of the table belongs to one run of each set.
        let part = slots.len().div_ceil(threads);
        share_out(threads, slots.chunks_mut(part).enumerate(), |(i, slots)| {
            let first = i * part;
            for set in sets {
                let start = if i == 0 { 0 } else { set.partition_point(|hash| ((hash >> shift) as usize) < first) };
                for hash in set.iter().skip(start) {
                    let Some(count) = slots.get_mut((hash >> shift) as usize - first) else { break };
                    *count = count.saturating_add(1);
                }
            }
        });
        let mut counts = Self { slots, shift, frequent: Vec::new() };
        if counts.slots.contains(&u8::MAX) {
            counts.frequent = counts.count_frequent(sets, (total / 64).next_power_of_two().max(1024), threads);
        }
        counts
    }

    fn count_frequent(&self, sets: &[&[u64]], n_slots: usize, threads: usize) -> Vec<(u32, u64)> {
        let all = Mutex::new(vec![(0_u32, 0_u64); n_slots]);
        let part = sets.len().div_ceil(threads).max(1);
        share_out(threads, sets.chunks(part).enumerate(), |(i, sets)| {
            let mut slots = vec![(0_u32, 0_u64); n_slots];
            for (set, hashes) in (i * part..).zip(sets) {
                let drawn = link(1, set as u64);
                for hash in hashes.iter().filter(|hash| self.slot(**hash) == u8::MAX) {
                    if let Some((count, sum)) = slots.get_mut(frequent_slot(*hash, n_slots)) {
                        *count = count.saturating_add(1);
                        *sum = sum.wrapping_add(drawn);
                    }
                }
            }
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            for ((all_count, all_sum), (count, sum)) in all.iter_mut().zip(slots) {
                *all_count = all_count.saturating_add(count);
                *all_sum = all_sum.wrapping_add(sum);
            }
        });
        all.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The count, and what tells the shingle or its class from others of that count.
    fn get(&self, hash: u64) -> (u32, u64) {
        match self.slot(hash) {
            u8::MAX => {
                let (count, sum) =
                    self.frequent.get(frequent_slot(hash, self.frequent.len())).copied().unwrap_or_default();
                if count < FREQUENT { (count, hash) } else { (count, sum) }
            }
            count => (count.into(), hash),
        }
    }

    fn slot(&self, hash: u64) -> u8 {
        self.slots.get((hash >> self.shift) as usize).copied().unwrap_or(0)
    }
}

/// By the lowest bits; `n_slots` is a power of two.
fn frequent_slot(hash: u64, n_slots: usize) -> usize {
    hash as usize & n_slots.saturating_sub(1)
}

#[derive(Clone, Copy, Default)]
struct Entry {
    group: u32,
    /// The greatest partner for which this shingle may be the first common one.
    greatest_partner: u32,
}

/// Lists of groups by the key of a shingle, each by increasing group.
struct Index {
    entries: Vec<Entry>,
    /// `entries[starts[b]..starts[b + 1]]` belong to the keys with the top bits b.
    starts: Vec<u32>,
    shift: u32,
}

impl Index {
    fn build(profiles: &[Profile], groups: &Groups, threshold: Threshold) -> Result<Self, JoinError> {
        // A set is indexed for partners of its size or more: those need more common shingles, so fewer may be missing.
        let lists = |group: usize| {
            let lookups = profiles.get(group).map(|profile| &*profile.lookups).unwrap_or_default();
            let size = groups.sizes.get(group).copied().unwrap_or(0);
            let spare = size - threshold.least_intersection(size, size);
            lookups.iter().filter(move |lookup| lookup.missed <= spare).map(move |lookup| (size, *lookup))
        };
        let n_entries: usize = (0..groups.len()).map(|group| lists(group).count()).sum();
        let n_entries = u32::try_from(n_entries).map_err(|_| JoinError::TooLarge)?;
        let bits = (n_entries.max(1).ilog2() + 1).min(28);
        let shift = 32 - bits;
        let mut starts = vec![0_u32; (1 << bits) + 1];
        for (_, lookup) in (0..groups.len()).flat_map(lists) {
            if let Some(count) = starts.get_mut((lookup.key >> shift) as usize) {
                *count += 1;
            }
        }
        // Each start is moved to the end of its list, then back by one for each entry, from the last group to the first.
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut index = Self { entries: vec![Entry::default(); n_entries as usize], starts, shift };
        for group in (0..groups.len()).rev() {
            for (size, lookup) in lists(group) {
                let Some(start) = index.starts.get_mut((lookup.key >> shift) as usize) else { continue };
                *start -= 1;
                if let Some(entry) = index.entries.get_mut(*start as usize) {
                    let greatest_partner = threshold.greatest_partner(size, size - lookup.missed);
                    *entry = Entry { group: group as u32, greatest_partner };
                }
            }
        }
        Ok(index)
    }

    fn list(&self, key: u32) -> &[Entry] {
        let bucket = (key >> self.shift) as usize;
        let (Some(start), Some(end)) = (self.starts.get(bucket), self.starts.get(bucket + 1)) else { return &[] };
        self.entries.get(*start as usize..*end as usize).unwrap_or_default()
    }
}

struct Join<'a> {
    groups: &'a Groups<'a>,
    profiles: &'a [Profile],
    sketches: &'a [Sketch],
    folds: &'a [u64],
    index: &'a Index,
    threshold: Threshold,
}

impl Join<'_> {
    /// The parts of lists in which the smaller or equal partners of a group are, for each shingle it looks up.
    fn lists(&self, group: usize) -> impl Iterator<Item = &[Entry]> {
        let size = self.groups.sizes.get(group).copied().unwrap_or(0);
        let least = self.threshold.least_partner(size);
        let first = self.groups.sizes.partition_point(|other| *other < least) as u32;
        let lookups = self.profiles.get(group).map(|profile| &*profile.lookups).unwrap_or_default();
        lookups.iter().map(move |lookup| {
            let greatest = self.threshold.greatest_partner(size, size - lookup.missed);
            let end = if greatest >= size { group } else { self.groups.end_of_size(greatest) } as u32;
            let list = self.index.list(lookup.key);
            let start = list.partition_point(|entry| entry.group < first);
            let end = list.partition_point(|entry| entry.group < end);
            list.get(start..end).unwrap_or_default()
        })
    }

    fn count_visits(&self, threads: usize) -> u64 {
        let total = AtomicU64::new(0);
        share_out(threads, blocks(self.groups.len()), |block| {
            let visits: usize = block.flat_map(|group| self.lists(group)).map(<[Entry]>::len).sum();
            total.fetch_add(visits as u64, Ordering::Relaxed);
        });
        total.into_inner()
    }

    fn run(&self, threads: usize, max_pairs: u64) -> Result<Vec<Pair>, JoinError> {
        let found = Mutex::new(Vec::new());
        let n_found = AtomicU64::new(0);
        let too_many = AtomicBool::new(false);
        let next = AtomicUsize::new(0);
        share_out(threads, 0..threads, |_| {
            let mut seen = Seen::new(self.groups.len());
            let mut pairs = Vec::new();
            loop {
                let start = next.fetch_add(BLOCK, Ordering::Relaxed);
                if start >= self.groups.len() || too_many.load(Ordering::Relaxed) {
                    break;
                }
                for group in start..(start + BLOCK).min(self.groups.len()) {
                    // Counted before they are stored: a group of equal sets may hold any number.
                    let mut store = |n: u64, new: &mut dyn Iterator<Item = Pair>| {
                        if n_found.fetch_add(n, Ordering::Relaxed).saturating_add(n) > max_pairs {
                            too_many.store(true, Ordering::Relaxed);
                        } else {
                            pairs.extend(new);
                        }
                    };
                    self.pairs_of(group, &mut seen, &mut store);
                    if too_many.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
            found.lock().unwrap_or_else(PoisonError::into_inner).append(&mut pairs);
        });
        if too_many.into_inner() {
            return Err(JoinError::TooManyPairs { limit: max_pairs });
        }
        let mut pairs = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// The pairs within a group and with the groups before it.
    fn pairs_of(&self, group: usize, seen: &mut Seen, store: &mut impl FnMut(u64, &mut dyn Iterator<Item = Pair>)) {
        let (Some(set), Some(sketch)) = (self.groups.sets.get(group), self.sketches.get(group)) else { return };
        let size = set.len() as u32;
        let members = self.groups.members(group);
        if members.len() > 1 {
            let n = members.len() as u64;
            let mut within = (1..).zip(members).flat_map(|(rest, a)| {
                let later = members.iter().skip(rest);
                later.map(|b| Pair { a: *a, b: *b, intersection: size, union: size })
            });
            store(n * (n - 1) / 2, &mut within);
        }
        let fold = fold(sketch);
        let (mut last_size, mut most_different) = (0, 0);
        for list in self.lists(group) {
            for entry in list {
                if entry.greatest_partner < size || !seen.insert(entry.group) {
                    continue;
                }
                let other = entry.group as usize;
                let (Some(other_size), Some(other_fold)) =
                    (self.groups.sizes.get(other).copied(), self.folds.get(other))
                else {
                    continue;
                };
                if other_size != last_size {
                    last_size = other_size;
                    let least = self.threshold.least_intersection(size, other_size).min(other_size);
                    most_different = size + other_size - 2 * least;
                }
                if (fold ^ other_fold).count_ones() > most_different {
                    continue;
                }
                let Some(other_sketch) = self.sketches.get(other) else { continue };
                if least_difference(sketch, other_sketch) > most_different {
                    continue;
                }
                let least = self.threshold.least_intersection(size, other_size);
                let Some(other_set) = self.groups.sets.get(other) else { continue };
                let Some(intersection) = intersection_of_at_least(set, other_set, least as usize) else { continue };
                let intersection = intersection as u32;
                let union = size + other_size - intersection;
                let others = self.groups.members(other);
                let mut across = members
                    .iter()
                    .flat_map(|x| others.iter().map(|y| Pair { a: *x.min(y), b: *x.max(y), intersection, union }));
                store(members.len() as u64 * others.len() as u64, &mut across);
            }
        }
        seen.clear();
    }
}

/// The groups that one group was compared with: a bit each, cleared by what was set.
struct Seen {
    bits: Vec<u64>,
    set: Vec<u32>,
}

impl Seen {
    fn new(n_groups: usize) -> Self {
        Self { bits: vec![0; n_groups.div_ceil(64)], set: Vec::new() }
    }

    /// False when it was there.
    fn insert(&mut self, group: u32) -> bool {
        let word = group / 64;
        let bit = 1 << (group % 64);
        let Some(bits) = self.bits.get_mut(word as usize) else { return false };
        let is_new = *bits & bit == 0;
        if *bits == 0 {
            self.set.push(word);
        }
        *bits |= bit;
        is_new
    }

    fn clear(&mut self) {
        for word in self.set.drain(..) {
            if let Some(bits) = self.bits.get_mut(word as usize) {
                *bits = 0;
            }
        }
    }
}

fn blocks(n: usize) -> impl Iterator<Item = Range<usize>> + Send {
    (0..n).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(n))
}

/// Runs `work` on every part, each taken by the next free thread.
fn share_out<T>(threads: usize, parts: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let parts = Mutex::new(parts);
    let run = || {
        loop {
            let part = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(part) = part else { break };
            work(part);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::shingles::DEFAULT_SHINGLE_WORDS;

    fn threshold(value: f64) -> Threshold {
        Threshold::from_decimal(value).unwrap()
    }

    /// A hash as spread as those of real shingles.
    fn spread(number: u64) -> u64 {
        link(number.wrapping_mul(0xd134_2543_de82_ef95), 7)
    }

    fn set_of(numbers: impl IntoIterator<Item = u64>) -> ShingleSet {
        ShingleSet::from_hashes(numbers.into_iter().map(spread).collect())
    }

    fn positions(pairs: &[Pair]) -> Vec<(u32, u32)> {
        pairs.iter().map(|pair| (pair.a, pair.b)).collect()
    }

    /// Equal to the definition, with one thread and with several.
    fn check(sets: &[ShingleSet], threshold: Threshold) -> Vec<Pair> {
        let expected = brute_force_pairs(sets, threshold);
        for threads in [0, 1, 3] {
            assert_eq!(near_pairs(sets, threshold, threads).unwrap(), expected, "{threads} threads");
        }
        expected
    }

    /// Texts of `n_slots` variable parts in fixed words, of `n_values` values each, some more frequent than others
    /// and of one or two words.
    fn templated(n_texts: u64, n_slots: u64, n_values: u64) -> Vec<ShingleSet> {
        let text = |i: u64| {
            let slot = |at: u64| {
                let drawn = spread(i * 64 + at);
                let value = (drawn >> 32) % (drawn % n_values + 1);
                let more = if value % 3 == 2 { "more" } else { "" };
                format!("w{at} x{at} y{at} value{value} {more} z{at} v{at} u{at}")
            };
            (0..n_slots).map(slot).collect::<Vec<_>>().join(" ")
        };
        (0..n_texts).map(|i| ShingleSet::from_text(&text(i), DEFAULT_SHINGLE_WORDS)).collect()
    }

    #[test]
    fn dup_01_every_pair_is_decided_by_its_exact_similarity() {
        // Numbers stand for shingles. Similarities: a, c 59/102 = 0.578; b, c 61/100; a, b 90/100.
        let a = set_of(0..95);
        let b = set_of((5..95).chain(100..105));
        let c = set_of((34..93).chain(100..102).chain(200..205));
        let sets = [a, b, c];
        let of = |x: usize, y: usize| jaccard(&sets[x], &sets[y]);
        assert_eq!([of(0, 1), of(1, 2), of(0, 2)], [(90, 100), (61, 100), (59, 102)]);
        assert_eq!(positions(&check(&sets, threshold(0.6))), [(0, 1), (1, 2)]);
        assert_eq!(positions(&check(&sets, threshold(0.578))), [(0, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn dup_02_there_are_no_bands_to_set_wrongly_and_one_means_equal() {
        let sets = [set_of(0..20), set_of(0..21), set_of(0..20), set_of([]), set_of([]), set_of([5]), set_of([5])];
        assert_eq!(positions(&check(&sets, threshold(1.0))), [(0, 2), (5, 6)]);
        // The chance of a hit at the threshold is 1, however near to it the pair: 17/20 at 0.85, 16/19 below.
        let at_threshold = [set_of(0..20), set_of(0..17), set_of(1..17)];
        assert_eq!(positions(&check(&at_threshold, threshold(0.85))), [(0, 1), (1, 2)]);
    }

    #[test]
    fn dup_04_texts_of_one_template_are_not_near_duplicates() {
        let findings =
            ["fever", "cough", "rash", "headache", "nausea", "fatigue", "dizziness", "chest pain", "chills", "cramps"];
        let sets: Vec<ShingleSet> = (0..1_000)
            .map(|i| {
                let (age, x, y) = (18 + i / 100 % 10, findings[i / 10 % 10], findings[i % 10]);
                let text = format!("a {age} year old person reports {x} and {y}-{}", i % 7);
                ShingleSet::from_text(&text, DEFAULT_SHINGLE_WORDS)
            })
            .collect();
        assert_eq!(check(&sets, threshold(0.85)), []);
    }

    #[test]
    fn long_templates_are_decided_exactly_by_chains_of_classes() {
        // Frequent shingles (more than 255 texts): chains of two and more classes. One slot in 9 may differ.
        for (n_slots, n_values, value) in
            [(9, 2, 0.8), (12, 2, 0.85), (9, 3, 0.7), (12, 4, 0.5), (5, 2, 1.0), (1, 1, 0.5)]
        {
            let sets = templated(1_500, n_slots, n_values);
            let pairs = check(&sets, threshold(value));
            assert!(!pairs.is_empty(), "{n_slots} slots");
        }
    }

    #[test]
    fn sets_with_nothing_but_a_frequent_class_in_common_are_found() {
        let sets: Vec<_> = (0..300).map(|i| set_of((0..40).chain([1_000 + i]))).collect();
        assert_eq!(check(&sets, threshold(0.95)).len(), 300 * 299 / 2); // 40/42
    }

    #[test]
    fn frequent_shingles_in_all_combinations_are_exact() {
        for (n_numbers, share, value) in [(14, 11, 0.6), (14, 8, 0.75), (18, 12, 0.8), (24, 14, 0.85), (40, 14, 0.9)] {
            let has = |i: u64, number: u64| spread(i * 64 + number) % 16 < share;
            let sets: Vec<_> = (0..900).map(|i| set_of((0..n_numbers).filter(|number| has(i, *number)))).collect();
            assert!(!check(&sets, threshold(value)).is_empty(), "{n_numbers}");
        }
    }

    #[test]
    fn empty_input_and_empty_sets_match_nothing() {
        assert_eq!(check(&[], threshold(0.5)), []);
        assert_eq!(check(&[set_of([]), set_of([])], threshold(0.01)), []);
    }

    #[test]
    fn limits_stop_the_same_way_for_every_number_of_threads() {
        let sets: Vec<ShingleSet> = (0..1_200).map(|i| set_of(0..40 + i % 3)).collect();
        let n_pairs = near_pairs(&sets, threshold(0.85), 1).unwrap().len() as u64;
        assert_eq!(n_pairs, 1_200 * 1_199 / 2);
        for threads in [1, 4] {
            let with =
                |limits| near_pairs_within(&sets, threshold(0.85), threads, limits).map(|pairs| pairs.len() as u64);
            assert_eq!(with(Limits { pairs: n_pairs, ..Limits::NONE }), Ok(n_pairs));
            let limit = n_pairs - 1;
            assert_eq!(with(Limits { pairs: limit, ..Limits::NONE }), Err(JoinError::TooManyPairs { limit }));
        }
        let sets = templated(600, 8, 2);
        let with =
            |visits, threads| near_pairs_within(&sets, threshold(0.8), threads, Limits { visits, ..Limits::NONE });
        let Err(JoinError::TooManyVisits { visits, limit: 1 }) = with(1, 1) else { panic!("no visits") };
        assert_eq!(with(1, 3), Err(JoinError::TooManyVisits { visits, limit: 1 }));
        assert!(with(visits, 2).is_ok());
    }

    /// Sets made by a few edits of a few bases, from a small universe: similarities of all kinds, many at the edge.
    fn edited_sets() -> impl Strategy<Value = Vec<ShingleSet>> {
        let base = prop::collection::vec(0..90_u64, 0..40);
        let edits = prop::collection::vec((0..40_usize, 0..120_u64), 0..7);
        (prop::collection::vec(base, 1..5), prop::collection::vec((0..5_usize, edits), 0..70)).prop_map(
            |(bases, copies)| {
                let copy = |(base, edits): (usize, Vec<(usize, u64)>)| {
                    let mut numbers = bases[base % bases.len()].clone();
                    for (at, number) in edits {
                        match numbers.get_mut(at) {
                            Some(old) if number < 110 => *old = number,
                            Some(_) => drop(numbers.remove(at)),
                            None => numbers.push(number),
                        }
                    }
                    set_of(numbers)
                };
                copies.into_iter().map(copy).collect()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn all_pairs_and_no_other_are_found(sets in edited_sets(), permille in 500..=1000_u32) {
            check(&sets, Threshold::from_permille(permille).unwrap());
        }

        #[test]
        fn badly_spread_hashes_are_only_slow(
            sets in prop::collection::vec(prop::collection::vec(0..30_u64, 0..20), 0..40),
            permille in 1..=1000_u32,
        ) {
            let sets: Vec<_> = sets.into_iter().map(ShingleSet::from_hashes).collect();
            check(&sets, Threshold::from_permille(permille).unwrap());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

        #[test]
        fn templates_of_any_shape_are_exact(
            n_slots in 1..12_u64, n_values in 1..5_u64, extra in edited_sets(), permille in 500..=1000_u32,
        ) {
            let mut sets = templated(700, n_slots, n_values);
            sets.extend(extra);
            check(&sets, Threshold::from_permille(permille).unwrap());
        }
    }
}
