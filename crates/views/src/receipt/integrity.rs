//! Proofs that the lines of a receipt are lines of a run, and their check without the run.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use steno_model::receipt::{Integrity, LineProof};
use steno_model::{Envelope, RunId};

use super::merkle::{Hash, MerkleTree, is_included, leaf_hash};

/// Collects all lines of a run, in order.
#[derive(Default)]
pub struct Prover {
    leaves: Vec<Hash>,
    hashes: Vec<Hash>,
}

impl Prover {
    /// Takes the next line, without its end.
    pub fn push(&mut self, line: &[u8]) {
        self.leaves.push(leaf_hash(line));
        self.hashes.push(Sha256::digest(line).into());
    }

    /// Keeps only the first lines.
    pub fn cut(&mut self, lines: usize) {
        self.leaves.truncate(lines);
        self.hashes.truncate(lines);
    }

    /// Proves lines by the numbers of their events.
    #[must_use]
    pub fn prove(self, run: RunId, seqs: &[u64]) -> Integrity {
        let tree_size = self.leaves.len() as u64;
        let tree = MerkleTree::new(self.leaves);
        let proof = |seq: &u64| {
            let leaf = usize::try_from(seq.checked_sub(1)?).ok()?;
            let audit_path = tree.audit_path(leaf).iter().map(|hash| HEXLOWER.encode(hash)).collect();
            Some(LineProof { seq: *seq, sha256: HEXLOWER.encode(self.hashes.get(leaf)?), audit_path })
        };
        let lines = seqs.iter().filter_map(proof).collect();
        Integrity { run_id: run.to_string(), tree_size, root: HEXLOWER.encode(&tree.root()), lines }
    }
}

/// Why given lines do not match a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntegrityError {
    /// A line is not an event of the run.
    NotOfRun {
        /// The number of the line, from 1.
        line: usize,
    },
    /// A line that the receipt is made of is missing.
    MissingLine {
        /// The run and its number there: `RUN:SEQ`.
        event: String,
    },
    /// A line is not one that the receipt is made of.
    UnexpectedLine {
        /// The run and its number there: `RUN:SEQ`.
        event: String,
    },
    /// A line has another hash than the receipt says.
    WrongHash {
        /// The run and its number there: `RUN:SEQ`.
        event: String,
    },
    /// A line is not where the receipt says in the tree.
    NotInTree {
        /// The run and its number there: `RUN:SEQ`.
        event: String,
    },
}

impl std::fmt::Display for IntegrityError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotOfRun { line } => write!(out, "line {line} is not an event of the receipt's run"),
            Self::MissingLine { event } => write!(out, "the line of event {event} is missing"),
            Self::UnexpectedLine { event } => {
                write!(out, "event {event} is not one of the receipt's events, or appears twice")
            }
            Self::WrongHash { event } => {
                write!(out, "the line of event {event} differs from the one that the receipt names")
            }
            Self::NotInTree { event } => {
                write!(out, "the line of event {event} is not in the tree with the receipt's root")
            }
        }
    }
}

impl std::error::Error for IntegrityError {}

/// Checks that the lines are exactly those of the receipt, and that all are in the trees of their runs.
///
/// # Errors
/// The first mismatch.
pub fn check_lines(trees: &[Integrity], lines: &[&[u8]]) -> Result<(), IntegrityError> {
    let mut shown: HashMap<(&str, u64), &[u8]> = HashMap::new();
    for (number, line) in (1..).zip(lines) {
        let not_of_run = IntegrityError::NotOfRun { line: number };
        let Ok(envelope) = Envelope::parse(line) else { return Err(not_of_run) };
        let run = envelope.run_id.to_string();
        let tree = trees.iter().find(|tree| tree.run_id == run).ok_or(not_of_run)?;
        let seq = envelope.seq.get();
        if shown.insert((&tree.run_id, seq), line).is_some() {
            return Err(IntegrityError::UnexpectedLine { event: format!("{run}:{seq}") });
        }
    }
    for tree in trees {
        let root = unhex(&tree.root);
        for LineProof { seq, sha256, audit_path } in &tree.lines {
            let event = || format!("{}:{seq}", tree.run_id);
            let line = shown.remove(&(tree.run_id.as_str(), *seq));
            let line = line.ok_or_else(|| IntegrityError::MissingLine { event: event() })?;
            if HEXLOWER.encode(&Sha256::digest(line)) != *sha256 {
                return Err(IntegrityError::WrongHash { event: event() });
            }
            let path: Option<Vec<Hash>> = audit_path.iter().map(|hash| unhex(hash)).collect();
            let is_in = root.zip(path).is_some_and(|(root, path)| {
                is_included(leaf_hash(line), seq.saturating_sub(1), tree.tree_size, &path, &root)
            });
            if !is_in {
                return Err(IntegrityError::NotInTree { event: event() });
            }
        }
    }
    match shown.into_keys().min_by_key(|(_, seq)| *seq) {
        None => Ok(()),
        Some((run, seq)) => Err(IntegrityError::UnexpectedLine { event: format!("{run}:{seq}") }),
    }
}

// Only lower case, as it was written: the same proof has the same bytes.
fn unhex(text: &str) -> Option<Hash> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}
