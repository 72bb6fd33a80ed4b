//! The Merkle tree of RFC 6962 over the lines of a transcript: its root, inclusion proofs, and their check.

use sha2::{Digest as _, Sha256};

/// A SHA-256.
pub type Hash = [u8; 32];

/// Returns the hash of a leaf.
#[must_use]
pub fn leaf_hash(line: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(line).finalize().into()
}

fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// A tree, level by level: the leaves first, the root last. A node without a sibling moves up unchanged.
pub struct MerkleTree {
    levels: Vec<Vec<Hash>>,
}

impl MerkleTree {
    /// Builds the tree over leaves.
    #[must_use]
    pub fn new(leaves: Vec<Hash>) -> Self {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let pair = |pair: &[Hash]| match pair {
                [left, right] => node_hash(left, right),
                single => single[0],
            };
            let above = below.chunks(2).map(pair).collect();
            levels.push(above);
        }
        Self { levels }
    }

    /// Returns the root; that of no leaves is the hash of nothing.
    #[must_use]
    pub fn root(&self) -> Hash {
        let top = self.levels.last().and_then(|level| level.first());
        top.copied().unwrap_or_else(|| Sha256::digest([]).into())
    }

    /// Returns the hashes that lead from a leaf to the root.
    #[must_use]
    pub fn audit_path(&self, leaf: usize) -> Vec<Hash> {
        let mut at = leaf;
        let mut path = Vec::new();
        for level in &self.levels {
            path.extend(level.get(at ^ 1).filter(|_| level.len() > 1));
            at /= 2;
        }
        path
    }
}

/// Tells whether a path leads from a leaf to a root, in a tree of that size.
#[must_use]
pub fn is_included(leaf_hash: Hash, leaf: u64, tree_size: u64, path: &[Hash], root: &Hash) -> bool {
    if leaf >= tree_size {
        return false;
    }
    let (mut at, mut last, mut hash) = (leaf, tree_size - 1, leaf_hash);
    let mut path = path.iter();
    while last > 0 {
        if at % 2 == 1 {
            let Some(left) = path.next() else { return false };
            hash = node_hash(left, &hash);
        } else if at < last {
            let Some(right) = path.next() else { return false };
            hash = node_hash(&hash, right);
        }
        (at, last) = (at / 2, last / 2);
    }
    path.next().is_none() && hash == *root
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    /// The tree as the RFC defines it: split at the largest power of two below the size.
    fn defined(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => Sha256::digest([]).into(),
            [leaf] => *leaf,
            _ => {
                let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                node_hash(&defined(left), &defined(right))
            }
        }
    }

    fn leaves(count: u32) -> Vec<Hash> {
        (0..count).map(|number| leaf_hash(&number.to_le_bytes())).collect()
    }

    #[test]
    fn roots_and_paths_match_the_rfc() {
        for count in 0..40_u32 {
            let leaves = leaves(count);
            let tree = MerkleTree::new(leaves.clone());
            assert_eq!(tree.root(), defined(&leaves), "{count}");
            for (at, leaf) in leaves.iter().enumerate() {
                let path = tree.audit_path(at);
                let is_in = |leaf: &Hash, at: usize, size: u32, path: &[Hash]| {
                    is_included(*leaf, at as u64, size.into(), path, &tree.root())
                };
                assert!(is_in(leaf, at, count, &path), "{at} of {count}");
                assert!(!is_in(&leaf_hash(b"another"), at, count, &path), "{at} of {count}");
                assert!(!is_in(leaf, at, count, &[&path[..], &[*leaf]].concat()), "{at} of {count}");
                assert!(path.is_empty() || !is_in(leaf, at, count, &path[1..]), "{at} of {count}");
                for other in (0..leaves.len()).filter(|other| *other != at) {
                    assert!(!is_in(leaf, other, count, &path), "{at} as {other} of {count}");
                }
                assert!(!is_in(leaf, count as usize, count, &path));
            }
        }
    }

    #[test]
    fn roots_match_reference_vectors() {
        // Of RFC 6962's reference vectors: no leaf, and one empty leaf.
        assert_eq!(
            HEXLOWER.encode(&MerkleTree::new(Vec::new()).root()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(
            HEXLOWER.encode(&MerkleTree::new(vec![leaf_hash(b"")]).root()),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
        );
    }
}
