//! Checks claims on one generation, in one pass over its bytes.

use std::ops::ControlFlow;

use steno_adapters::{RecordAt, SourceLine, SourceLines};
use steno_vault::{Manifest, Vault};

use super::record_time::RecordTime;
use super::unpacked::{EvidenceError, read_unpacked};

/// A claim that a source has a record at a position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    pub(super) generation: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) time: RecordTime,
    /// The index of its owner.
    pub(super) holder: u32,
    /// The first event or spine record with this claim, and how many have it.
    pub(super) seq: u64,
    pub(super) count: u64,
    /// Whether an earlier claim names a later position.
    pub(super) is_out_of_order: bool,
    /// Whether only the offset can be relied on, not the length.
    pub(super) is_length_open: bool,
}

/// The result of checking a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimVerdict {
    /// The record is there.
    Good,
    /// It is not there, and why.
    Wrong(&'static str),
    /// The generation has no bytes there.
    Beyond,
    /// The vault is damaged there; its own check reports this.
    Unreadable,
    /// The source was forgotten meanwhile.
    Forgotten,
}

/// Checks claims on one generation, sorted by offset.
///
/// # Errors
/// An I/O error.
pub(super) fn judge(
    vault: &Vault,
    manifest: &Manifest,
    generation: u32,
    claims: &[Claim],
) -> Result<Vec<ClaimVerdict>, steno_vault::Error> {
    let mut judging = ClaimCheck { claims, verdicts: Vec::with_capacity(claims.len()), end: 0 };
    let mut lines = SourceLines::default();
    let read = read_unpacked(vault, manifest, generation, &mut |offset, bytes| {
        lines.feed(offset, bytes, |line| judging.line(&line));
        judging.end = offset + bytes.len() as u64;
        if judging.is_done() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let rest = match read {
        Ok(_) => {
            lines.finish(|line| judging.line(&line));
            None
        }
        Err(EvidenceError::Packing(_)) => {
            Some(ClaimVerdict::Wrong("the data before it cannot be decompressed"))
        }
        Err(EvidenceError::Vault(steno_vault::Error::Forgotten { .. })) => Some(ClaimVerdict::Forgotten),
        Err(EvidenceError::Vault(error)) if error.is_damage() => Some(ClaimVerdict::Unreadable),
        Err(EvidenceError::Vault(error)) => return Err(error),
    };
    Ok(judging.finish(rest))
}

struct ClaimCheck<'a> {
    claims: &'a [Claim],
    verdicts: Vec<ClaimVerdict>,
    /// How many bytes there are.
    end: u64,
}

impl<'a> ClaimCheck<'a> {
    fn is_done(&self) -> bool {
        self.verdicts.len() == self.claims.len()
    }

    fn next(&self) -> Option<&'a Claim> {
        self.claims.get(self.verdicts.len())
    }

    fn line(&mut self, line: &SourceLine<'_>) {
        while let Some(claim) = self.next().filter(|claim| claim.offset <= line.end()) {
            self.verdicts.push(match line.record(claim.offset, claim.length) {
                // Events at the end of a source were made from no record.
                _ if claim.length == 0 => ClaimVerdict::Good,
                RecordAt::Record(record) if !claim.time.fits(record) => {
                    ClaimVerdict::Wrong("the record there has another time")
                }
                RecordAt::Record(_) | RecordAt::TooLong => ClaimVerdict::Good,
                RecordAt::Nothing if claim.is_length_open && claim.offset == line.offset => {
                    ClaimVerdict::Good
                }
                RecordAt::Nothing if claim.offset + claim.length > line.end() => {
                    ClaimVerdict::Wrong("the record there ends earlier")
                }
                RecordAt::Nothing => ClaimVerdict::Wrong("no record begins and ends there"),
            });
        }
    }

    fn finish(mut self, rest: Option<ClaimVerdict>) -> Vec<ClaimVerdict> {
        while let Some(claim) = self.next() {
            let is_end = (claim.offset, claim.length) == (self.end, 0);
            let verdict = rest.unwrap_or(if is_end { ClaimVerdict::Good } else { ClaimVerdict::Beyond });
            self.verdicts.push(verdict);
        }
        self.verdicts
    }
}
