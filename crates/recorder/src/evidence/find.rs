//! Checks claims on one generation, in one pass over its bytes.

use std::ops::ControlFlow;

use steno_adapters::{RecordAt, RecordFraming, SourceLine, SourceLines};
use steno_library::{GenerationError, read_unpacked};
use steno_vault::{Manifest, Vault};

use super::record_time::RecordTime;

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
/// Most sources have their records in lines. If a claim is wrong then, the source may be a document.
///
/// # Errors
/// An I/O error.
pub(super) fn judge(
    vault: &Vault,
    manifest: &Manifest,
    generation: u32,
    claims: &[Claim],
) -> Result<Vec<ClaimVerdict>, steno_vault::Error> {
    let generation = Generation { vault, manifest, number: generation };
    let [lines, documents @ ..] = RecordFraming::ALL;
    let mut verdicts = generation.judge(lines, claims)?;
    for framing in documents {
        if !verdicts.iter().any(|verdict| matches!(verdict, ClaimVerdict::Wrong(_))) {
            break;
        }
        for (verdict, other) in verdicts.iter_mut().zip(generation.judge(framing, claims)?) {
            if other == ClaimVerdict::Good {
                *verdict = other;
            }
        }
    }
    Ok(verdicts)
}

/// A generation of a source in the vault.
struct Generation<'a> {
    vault: &'a Vault,
    manifest: &'a Manifest,
    number: u32,
}

impl Generation<'_> {
    /// Checks claims on the assumption that records are framed like this.
    fn judge(
        &self,
        framing: RecordFraming,
        claims: &[Claim],
    ) -> Result<Vec<ClaimVerdict>, steno_vault::Error> {
        let mut judging = ClaimCheck::new(claims);
        let mut lines = SourceLines::framed(framing);
        let read = read_unpacked(self.vault, self.manifest, self.number, &mut |offset, bytes| {
            lines.feed(offset, bytes, |line| judging.line(&line));
            judging.end = offset + bytes.len() as u64;
            if judging.is_done() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let rest = match read {
            Ok(_) => {
                lines.finish(|line| judging.line(&line));
                None
            }
            Err(GenerationError::Packing(_)) => {
                Some(ClaimVerdict::Wrong("the data before it cannot be decompressed"))
            }
            Err(GenerationError::Vault(steno_vault::Error::Forgotten { .. })) => {
                Some(ClaimVerdict::Forgotten)
            }
            Err(GenerationError::Vault(error)) if error.is_damage() => Some(ClaimVerdict::Unreadable),
            Err(GenerationError::Vault(error)) => return Err(error),
        };
        Ok(judging.finish(rest))
    }
}

struct ClaimCheck<'a> {
    claims: &'a [Claim],
    verdicts: Vec<Option<ClaimVerdict>>,
    /// All claims before this one are judged.
    next: usize,
    /// How many bytes there are.
    end: u64,
}

impl<'a> ClaimCheck<'a> {
    fn new(claims: &'a [Claim]) -> Self {
        Self { claims, verdicts: vec![None; claims.len()], next: 0, end: 0 }
    }

    fn is_done(&self) -> bool {
        self.next == self.claims.len()
    }

    /// Judges the claims on a line. Lines come in the order in which they begin; parts of two may alternate.
    fn line(&mut self, line: &SourceLine<'_>) {
        let claims = self.claims.iter().zip(&mut self.verdicts).skip(self.next);
        for (claim, verdict) in claims.take_while(|(claim, _)| claim.offset <= line.end()) {
            // No later line begins before this one.
            let is_its = claim.offset < line.offset || line.covers(claim.offset);
            if verdict.is_none() && is_its {
                *verdict = Some(judge_claim(claim, line));
            }
        }
        let judged = self.verdicts[self.next..].iter().take_while(|verdict| verdict.is_some());
        self.next += judged.count();
    }

    fn finish(self, rest: Option<ClaimVerdict>) -> Vec<ClaimVerdict> {
        let left = |claim: &Claim| {
            let is_end = (claim.offset, claim.length) == (self.end, 0);
            rest.unwrap_or(if is_end { ClaimVerdict::Good } else { ClaimVerdict::Beyond })
        };
        let verdicts = self.claims.iter().zip(&self.verdicts);
        verdicts.map(|(claim, verdict)| verdict.unwrap_or_else(|| left(claim))).collect()
    }
}

fn judge_claim(claim: &Claim, line: &SourceLine<'_>) -> ClaimVerdict {
    match line.record(claim.offset, claim.length) {
        // Events at the end of a source were made from no record.
        _ if claim.length == 0 => ClaimVerdict::Good,
        RecordAt::Record(record) if !claim.time.fits(record) => {
            ClaimVerdict::Wrong("the record there has another time")
        }
        RecordAt::Record(_) | RecordAt::TooLong => ClaimVerdict::Good,
        RecordAt::Nothing if claim.is_length_open && claim.offset == line.offset => ClaimVerdict::Good,
        RecordAt::Nothing if claim.offset + claim.length > line.end() => {
            ClaimVerdict::Wrong("the record there ends earlier")
        }
        RecordAt::Nothing => ClaimVerdict::Wrong("no record begins and ends there"),
    }
}
