//! `content_hash`: the Merkle tree hash of RFC 9162, section 2.1.1, over the sorted case hashes.

use crate::record::Hash;
use sha2::{Digest, Sha256};

/// Leaves are 32 bytes each; none gives the hash of nothing.
pub fn root(leaves: &[[u8; 32]]) -> Hash {
    Hash::from_digest(subtree(leaves))
}

fn subtree(leaves: &[[u8; 32]]) -> [u8; 32] {
    match leaves {
        [] => Sha256::digest([]).into(),
        [leaf] => Sha256::new().chain_update([0]).chain_update(leaf).finalize().into(),
        _ => {
            // The largest power of two below the number of leaves.
            let split = 1usize << (leaves.len() - 1).ilog2();
            let (left, right) = leaves.split_at(split);
            Sha256::new().chain_update([1]).chain_update(subtree(left)).chain_update(subtree(right)).finalize().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9162 gives the shape; the values were computed from it with another implementation's formula by hand.
    #[test]
    fn shapes_of_the_standard() {
        let leaf = |n: u8| [n; 32];
        let hash_leaf = |n: u8| -> [u8; 32] { Sha256::digest([&[0u8][..], &[n; 32]].concat()).into() };
        let node = |left: [u8; 32], right: [u8; 32]| -> [u8; 32] {
            Sha256::digest([&[1u8][..], &left, &right].concat()).into()
        };
        assert_eq!(root(&[]), Hash::of(b""));
        assert_eq!(root(&[leaf(1)]), Hash::from_digest(hash_leaf(1)));
        let three = node(node(hash_leaf(1), hash_leaf(2)), hash_leaf(3));
        assert_eq!(root(&[leaf(1), leaf(2), leaf(3)]), Hash::from_digest(three));
        let five = node(node(node(hash_leaf(1), hash_leaf(2)), node(hash_leaf(3), hash_leaf(4))), hash_leaf(5));
        assert_eq!(root(&[leaf(1), leaf(2), leaf(3), leaf(4), leaf(5)]), Hash::from_digest(five));
    }
}
