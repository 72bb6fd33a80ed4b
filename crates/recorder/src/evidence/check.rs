//! Checks the evidence of events and spine records: that the bytes they were made from are there.
//!
//! Evidence is collected while transcripts and spines are read; then each source is read once, from its beginning. If
//! much has been collected, this happens earlier to bound memory, and a source may be read again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use steno_model::json::JsonString;
use steno_model::{Envelope, Evidence, Position, RunId, Seq, SpineRecord, SpineSource, ThreadId};
use steno_vault::{Error, Manifest, SourceId, Vault};

use super::find::{Claim, ClaimVerdict, judge};
use super::record_time::RecordTime;
use crate::sources::plain_name;
use crate::spines::SourceName;

/// How many claims are collected before they are checked.
const CLAIMS_MAX: usize = 256 * 1024;
/// How many wrong claims are listed.
const WRONG_MAX: usize = 100;

/// The owner of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvidenceHolder {
    /// Events of a run.
    Run(RunId),
    /// Records of a thread's spine.
    Spine(ThreadId),
}

/// Evidence that does not lead to its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongEvidence {
    /// Its owner.
    pub holder: EvidenceHolder,
    /// The number of the event or spine record; the first if several have the same evidence.
    pub seq: u64,
    /// The source, as named by the vault or the evidence.
    pub source: String,
    /// The path of the file, if the vault has it.
    pub path: Option<std::path::PathBuf>,
    /// The generation.
    pub generation: u32,
    /// The offset of the record in the unpacked bytes.
    pub offset: u64,
    /// The length of the record.
    pub length: u64,
    /// What is wrong.
    pub why: &'static str,
}

/// The counts of checked evidence. Each event and each spine record counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvidenceReport {
    /// All events and spine records.
    pub all: u64,
    /// Those whose evidence leads to their record.
    pub found: u64,
    /// Those without evidence.
    pub without: u64,
    /// Those from a forgotten source.
    pub forgotten: u64,
    /// Those from bytes that the vault does not have.
    pub elsewhere: u64,
    /// Those from bytes that cannot be read because the vault is damaged.
    pub unreadable: u64,
    /// Those whose evidence does not lead to their record.
    pub wrong: u64,
    /// The first wrong ones.
    pub findings: Vec<WrongEvidence>,
}

/// The origin of an event or spine record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Source(SourceId),
    /// A session file of Codex, by its name.
    Rollout(String),
    /// The file of a connection, by its name.
    Connection(String),
}

/// Follows evidence.
pub struct EvidenceCheck {
    vault: Arc<Vault>,
    holders: Vec<EvidenceHolder>,
    /// The last position in each source that the current owner has named.
    last: Vec<(JsonString, Position)>,
    claims: BTreeMap<Origin, Vec<Claim>>,
    claims_len: usize,
    /// The sources by file name, read on first use.
    by_name: Option<HashMap<String, Vec<SourceId>>>,
    report: EvidenceReport,
}

impl EvidenceCheck {
    /// Begins with nothing.
    #[must_use]
    pub fn new(vault: Arc<Vault>) -> Self {
        Self {
            vault,
            holders: Vec::new(),
            last: Vec::new(),
            claims: BTreeMap::new(),
            claims_len: 0,
            by_name: None,
            report: EvidenceReport::default(),
        }
    }

    /// Takes an event. Events of one run must come together and in order.
    pub fn event(&mut self, envelope: &Envelope<'_>) {
        self.report.all += 1;
        let evidence = envelope.extra("evidence").and_then(|raw| Evidence::parse(raw.get()));
        let Some(evidence) = evidence else {
            self.report.without += 1;
            return;
        };
        let is_inferred = envelope.extra("ts_inferred").is_some_and(|raw| raw.get() == "true");
        let time = envelope.timestamp().get().trim_matches('"');
        let time = if is_inferred { RecordTime::Unknown } else { RecordTime::Own(time.into()) };
        let origin = SourceId::parse(&evidence.source.to_text()).map(Origin::Source);
        self.take((EvidenceHolder::Run(envelope.run_id), envelope.seq), origin, evidence, time);
    }

    /// Takes a spine record. Records of one spine must come together and in order.
    pub fn spine_record(&mut self, record: &SpineRecord) {
        self.report.all += 1;
        let Some(evidence) = record.extra.get("evidence").and_then(Evidence::read) else {
            self.report.without += 1;
            return;
        };
        let name = evidence.source.to_text();
        let (kind, id) = SourceName::parse(&name).unwrap_or_default();
        let (origin, time) = match SpineSource::named(kind) {
            Some(SpineSource::Rollout) => {
                let time = RecordTime::OwnIfAny(record.timestamp.to_string().into());
                (Some(Origin::Rollout(id.to_owned())), time)
            }
            Some(SpineSource::AppServer) => {
                (Some(Origin::Connection(format!("{id}.jsonl"))), RecordTime::Unknown)
            }
            Some(SpineSource::RolloutTrace) | None => (None, RecordTime::Unknown),
        };
        drop(name);
        self.take((EvidenceHolder::Spine(record.thread_id.clone()), record.seq), origin, evidence, time);
    }

    fn take(
        &mut self,
        (holder, seq): (EvidenceHolder, Seq),
        origin: Option<Origin>,
        evidence: Evidence,
        time: RecordTime,
    ) {
        let Some(origin) = origin else {
            self.report.elsewhere += 1;
            return;
        };
        if self.holders.last() != Some(&holder) {
            self.holders.push(holder);
            self.last.clear();
        }
        let Evidence { source, position, length, unpacked: _ } = evidence;
        let is_out_of_order = match self.last.iter_mut().find(|(known, _)| *known == source) {
            Some((_, last)) if *last < position => {
                *last = position;
                false
            }
            Some(_) => true,
            None => {
                self.last.push((source, position));
                false
            }
        };
        let holder = u32::try_from(self.holders.len() - 1).unwrap_or(u32::MAX);
        let Position { generation, offset, part: _ } = position;
        let seq = seq.get();
        // Spines of connections have the length of another line for records that had to wait for their thread.
        let is_length_open = matches!(origin, Origin::Connection(_));
        let claim = Claim {
            generation,
            offset,
            length,
            time,
            holder,
            seq,
            count: 1,
            is_out_of_order,
            is_length_open,
        };
        let claims = self.claims.entry(origin).or_default();
        match claims.last_mut() {
            Some(last) if *last == (Claim { seq: last.seq, count: last.count, ..claim.clone() }) => {
                last.count += 1;
            }
            Some(_) | None => {
                claims.push(claim);
                self.claims_len += 1;
            }
        }
    }

    /// Checks the collected claims if there are many.
    ///
    /// # Errors
    /// I/O errors. Damage of the vault is counted instead.
    pub fn look_up_some(&mut self) -> Result<(), Error> {
        if self.claims_len < CLAIMS_MAX { Ok(()) } else { self.look_up() }
    }

    /// Checks the collected claims and returns the report.
    ///
    /// # Errors
    /// I/O errors. Damage of the vault is counted instead.
    pub fn finish(mut self) -> Result<EvidenceReport, Error> {
        self.look_up()?;
        Ok(self.report)
    }

    fn look_up(&mut self) -> Result<(), Error> {
        self.claims_len = 0;
        for (origin, mut claims) in std::mem::take(&mut self.claims) {
            claims.sort_unstable();
            match origin {
                Origin::Source(source) => self.look_up_source(source, &claims)?,
                Origin::Rollout(name) | Origin::Connection(name) => self.look_up_named(&name, claims)?,
            }
        }
        Ok(())
    }

    fn look_up_source(&mut self, source: SourceId, claims: &[Claim]) -> Result<(), Error> {
        let all = || claims.iter().map(|claim| claim.count).sum::<u64>();
        let manifest = match self.vault.manifest(source) {
            Ok(Some(manifest)) => manifest,
            Ok(None) if self.vault.is_forgotten(source).unwrap_or(false) => {
                self.report.forgotten += all();
                return Ok(());
            }
            Ok(None) => {
                self.report.elsewhere += all();
                return Ok(());
            }
            Err(Error::Damaged { .. } | Error::TooNew { .. }) => {
                self.report.unreadable += all();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for claims in claims.chunk_by(|one, other| one.generation == other.generation) {
            let generation = claims[0].generation;
            let verdicts = if manifest.generations.len() <= generation as usize {
                vec![ClaimVerdict::Wrong("the source has no such generation"); claims.len()]
            } else {
                judge(&self.vault, &manifest, generation, claims)?
            };
            for (claim, verdict) in claims.iter().zip(verdicts) {
                let is_beyond = verdict == ClaimVerdict::Beyond;
                let verdict = if is_beyond {
                    ClaimVerdict::Wrong("the generation ends before this position")
                } else {
                    verdict
                };
                self.conclude(claim, verdict, &manifest.id.to_string(), Some(&manifest));
            }
        }
        Ok(())
    }

    /// Checks claims on a file that is known by name. They do not name a generation, so any may match.
    fn look_up_named(&mut self, name: &str, mut claims: Vec<Claim>) -> Result<(), Error> {
        let mut had_bytes = vec![false; claims.len()];
        let mut first = None;
        for source in self.sources_named(name)? {
            let Ok(Some(manifest)) = self.vault.manifest(source) else { continue };
            for generation in (0..=manifest.generation_last().unwrap_or_default()).rev() {
                let verdicts = judge(&self.vault, &manifest, generation, &claims)?;
                let (mut left, mut left_had) = (Vec::new(), Vec::new());
                for ((claim, verdict), had) in claims.into_iter().zip(verdicts).zip(had_bytes) {
                    if verdict == ClaimVerdict::Good {
                        self.conclude(&claim, verdict, name, Some(&manifest));
                    } else {
                        left_had.push(had || matches!(verdict, ClaimVerdict::Wrong(_)));
                        left.push(claim);
                    }
                }
                (claims, had_bytes) = (left, left_had);
            }
            first.get_or_insert(manifest);
        }
        for (claim, had_bytes) in claims.iter().zip(had_bytes) {
            // The file may not be in the vault yet.
            if had_bytes {
                let wrong = ClaimVerdict::Wrong("no generation of the file has this record at this position");
                self.conclude(claim, wrong, name, first.as_ref());
            } else {
                self.report.elsewhere += claim.count;
            }
        }
        Ok(())
    }

    fn sources_named(&mut self, name: &str) -> Result<Vec<SourceId>, Error> {
        if self.by_name.is_none() {
            let mut by_name = HashMap::<String, Vec<SourceId>>::new();
            for source in self.vault.sources()? {
                // Damage is reported by the check of the vault.
                let Ok(Some(manifest)) = self.vault.manifest(source) else { continue };
                let name = plain_name(&manifest.info.path.0).file_name().unwrap_or_default();
                by_name.entry(name.to_string_lossy().into_owned()).or_default().push(source);
            }
            self.by_name = Some(by_name);
        }
        Ok(self.by_name.as_ref().and_then(|by_name| by_name.get(name)).cloned().unwrap_or_default())
    }

    fn conclude(&mut self, claim: &Claim, verdict: ClaimVerdict, source: &str, manifest: Option<&Manifest>) {
        let report = &mut self.report;
        let why = match verdict {
            ClaimVerdict::Good if claim.is_out_of_order => "an earlier one points to a later position",
            ClaimVerdict::Good => return report.found += claim.count,
            ClaimVerdict::Unreadable => return report.unreadable += claim.count,
            ClaimVerdict::Forgotten => return report.forgotten += claim.count,
            ClaimVerdict::Beyond => return report.elsewhere += claim.count,
            ClaimVerdict::Wrong(why) => why,
        };
        report.wrong += claim.count;
        if report.findings.len() < WRONG_MAX {
            report.findings.push(WrongEvidence {
                holder: self.holders[claim.holder as usize].clone(),
                seq: claim.seq,
                source: source.to_owned(),
                path: manifest.map(|manifest| manifest.info.path.0.clone()),
                generation: claim.generation,
                offset: claim.offset,
                length: claim.length,
                why,
            });
        }
    }
}
