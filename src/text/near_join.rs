//! All pairs of texts whose shingle sets have at least a given Jaccard similarity: exact, recall 1, no false pair.
//!
//! There are no bands and no chance of a miss, so there is no S-curve to check: what proposes a pair is a
//! consequence of the threshold, not a signature. The filters, in the order in which they apply:
//!
//! 1. *Equal sets* are found by a digest, compared, and stand for one set from then on.
//! 2. *Prefix* (Chaudhuri, Ganti, Kaushik 2006; AllPairs: Bayardo, Ma, Srikant 2007). Order every set by one total
//!    order, rarest shingle first. Two sets that need i common shingles have one among the first n − i + 1 of each.
//!    Only those are indexed (8 % of a set at 0.85) or looked up (16 %); a shingle of one set only is neither.
//! 3. *Length and position* (PPJoin: Xiao, Wang, Lin, Yu 2008). Sets are taken by increasing size; a list is entered at
//!    the least size that can match, and each entry says up to which size of partner its place in the set is early
//!    enough.
//! 4. *Parity sketch*, after the bitmap filter of Sandes, Teodoro, Melo (2020). 512 bits, each the parity of how many
//!    shingles fall on it. Bits that differ between two sketches never outnumber the shingles that are in one of the
//!    sets only, so too many of them rule the pair out.
//! 5. *Merge* of the two sorted sets, abandoned when the threshold is out of reach, otherwise the exact intersection.
//!
//! The total order is (count, hash), where counts are kept per slot of a fixed-size table instead of per shingle: any
//! total order gives the same pairs, and this one needs neither a map nor its memory.
//!
//! # Cost
//!
//! Memory beside the input, in bytes: 112 a set; 8 for each prefix shingle that two sets share, looked up, and 12
//! indexed; 1 for each of at most 2²⁷ slots; one bit a set and thread; 16 a pair found, twice while they are
//! gathered. No candidate list is kept.
//!
//! Time is linear in the input plus the entries visited: for each indexed shingle shared by d sets, up to d² / 2. Real
//! texts visit few. The worst case is texts from one template whose every variable part has few values, so that even
//! the rarest shingles of a text are in a large share of all texts; then the time is quadratic in the number of
//! texts (the memory is not), and so may be the number of pairs. [`Limits`] bounds both, and whether a limit is exceeded
//! depends on the input only.

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
    let join = Join { groups: &groups, profiles: &profiles, sketches: &sketches, index: &index, threshold };
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

    /// Position of the first group of more than `size` shingles.
    fn end_of_size(&self, size: u32) -> usize {
        self.sizes.partition_point(|other| *other <= size)
    }
}

fn digest(hashes: &[u64]) -> u64 {
    hashes.iter().fold(0, |state: u64, hash| (state.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The first shingles of a set in the global order, without those that no other set has.
#[derive(Clone, Default)]
struct Profile {
    looked_up: Box<[PrefixShingle]>,
}

#[derive(Clone, Copy)]
struct PrefixShingle {
    /// The top half of the hash. Shingles that share it share a list: they add candidates and lose none.
    key: u32,
    /// Place in the set by the global order, from 0.
    place: u32,
}

const SKETCH_WORDS: usize = 8;
/// Bit i is the parity of the number of shingles whose hash ends in i.
type Sketch = [u64; SKETCH_WORDS];

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
    let mut profiles = vec![Profile::default(); groups.len()];
    let mut sketches = vec![[0; SKETCH_WORDS]; groups.len()];
    let blocks = profiles.chunks_mut(BLOCK).zip(sketches.chunks_mut(BLOCK)).zip(groups.sets.chunks(BLOCK));
    share_out(threads, blocks, |((profiles, sketches), sets)| {
        let mut ranked = Vec::new();
        let mut looked_up = Vec::new();
        for ((profile, sketch), set) in profiles.iter_mut().zip(sketches).zip(sets) {
            let size = set.len() as u32;
            let prefix = size - threshold.least_partner(size) + 1;
            // Shingles of this set only come first in the order and are not needed. Where they fill the prefix, as in
            // most texts, nothing can match; otherwise the rest of the prefix is looked for among the others.
            let mut alone = 0;
            ranked.clear();
            for hash in *set {
                match counts.get(*hash) {
                    0 | 1 => alone += 1,
                    count => ranked.push((count, *hash)),
                }
                if alone == prefix {
                    break;
                }
            }
            if alone == prefix {
                continue;
            }
            *sketch = sketch_of(set);
            let wanted = (prefix - alone) as usize;
            if (1..ranked.len()).contains(&wanted) {
                ranked.select_nth_unstable(wanted - 1);
            }
            ranked.truncate(wanted);
            ranked.sort_unstable();
            looked_up.clear();
            let shared = (alone..).zip(&ranked);
            looked_up.extend(shared.map(|(place, (_, hash))| PrefixShingle { key: (hash >> 32) as u32, place }));
            profile.looked_up = looked_up.as_slice().into();
        }
    });
    (profiles, sketches)
}

/// In how many sets a shingle is, or more where shingles share a slot. One byte a slot, so that the table of a small
/// corpus fits the cache; the few shingles that overflow it are counted again, by other bits, in a table of their own.
struct Counts {
    slots: Vec<u8>,
    shift: u32,
    frequent: Vec<u32>,
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
            let mut frequent = vec![0_u32; (total / 64).next_power_of_two()];
            for hash in sets.iter().copied().flatten().filter(|hash| counts.slot(**hash) == u8::MAX) {
                let slot = Self::frequent_slot(*hash, frequent.len());
                if let Some(count) = frequent.get_mut(slot) {
                    *count = count.saturating_add(1);
                }
            }
            counts.frequent = frequent;
        }
        counts
    }

    fn get(&self, hash: u64) -> u32 {
        match self.slot(hash) {
            u8::MAX => {
                let count = self.frequent.get(Self::frequent_slot(hash, self.frequent.len())).copied();
                count.unwrap_or(0).max(u8::MAX.into())
            }
            count => count.into(),
        }
    }

    fn slot(&self, hash: u64) -> u8 {
        self.slots.get((hash >> self.shift) as usize).copied().unwrap_or(0)
    }

    /// By the lowest bits; `n_slots` is a power of two.
    fn frequent_slot(hash: u64, n_slots: usize) -> usize {
        hash as usize & n_slots.saturating_sub(1)
    }
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
        // A set is indexed for partners of its size or more: those need more common shingles, so fewer places suffice.
        let indexed = || {
            (0_u32..).zip(profiles).zip(&groups.sizes).flat_map(|((group, profile), size)| {
                let places = size - threshold.least_intersection(*size, *size);
                let indexed = profile.looked_up.iter().take_while(move |shingle| shingle.place <= places);
                indexed.map(move |shingle| (group, *size, *shingle))
            })
        };
        let n_entries = u32::try_from(indexed().count()).map_err(|_| JoinError::TooLarge)?;
        let bits = (n_entries.max(1).ilog2() + 1).min(28);
        let shift = 32 - bits;
        let mut starts = vec![0_u32; (1 << bits) + 1];
        for (_, _, shingle) in indexed() {
            if let Some(count) = starts.get_mut((shingle.key >> shift) as usize) {
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
        for (group, (profile, size)) in profiles.iter().zip(&groups.sizes).enumerate().rev() {
            let places = size - threshold.least_intersection(*size, *size);
            for shingle in profile.looked_up.iter().take_while(|shingle| shingle.place <= places) {
                let Some(start) = index.starts.get_mut((shingle.key >> shift) as usize) else { continue };
                *start -= 1;
                if let Some(entry) = index.entries.get_mut(*start as usize) {
                    let greatest_partner = threshold.greatest_partner(*size, size - shingle.place);
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
    index: &'a Index,
    threshold: Threshold,
}

impl Join<'_> {
    /// The parts of lists in which the smaller or equal partners of a group are, for each shingle it looks up.
    fn lists(&self, group: usize) -> impl Iterator<Item = &[Entry]> {
        let size = self.groups.sizes.get(group).copied().unwrap_or(0);
        let least = self.threshold.least_partner(size);
        let first = self.groups.sizes.partition_point(|other| *other < least) as u32;
        let looked_up = self.profiles.get(group).map(|profile| &*profile.looked_up).unwrap_or_default();
        looked_up.iter().map(move |shingle| {
            let greatest = self.threshold.greatest_partner(size, size - shingle.place);
            let end = if greatest >= size { group } else { self.groups.end_of_size(greatest) } as u32;
            let list = self.index.list(shingle.key);
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
        for list in self.lists(group) {
            for entry in list {
                if entry.greatest_partner < size || !seen.insert(entry.group) {
                    continue;
                }
                let other = entry.group as usize;
                let (Some(other_set), Some(other_sketch)) = (self.groups.sets.get(other), self.sketches.get(other))
                else {
                    continue;
                };
                let other_size = other_set.len() as u32;
                let least = self.threshold.least_intersection(size, other_size);
                if least > other_size || least_difference(sketch, other_sketch) > size + other_size - 2 * least {
                    continue;
                }
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
