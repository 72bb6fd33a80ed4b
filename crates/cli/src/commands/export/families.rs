//! Reads the sessions to export one after the other, each with its subagents. Only one is in memory at a time.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use steno_exports::atif::{Family, Records, Run};
use steno_library::{Families, Library, SourceTarget, Target, TargetKind, read_range};
use steno_model::{Evidence, RunId};
use steno_recorder::evidence::EvidenceReader;
use steno_session::Content;

use crate::failure::Failure;
use crate::runs;
use crate::settings::Settings;

/// The sessions to export, in order.
pub struct SessionQueue<'a> {
    families: Families<'a>,
    records: EvidenceRecords,
}

/// Related runs, and which of them to export.
pub struct SessionFamily {
    pub family: Family,
    pub roots: Vec<RunId>,
    /// Why a part could not be read.
    pub trouble: Option<Failure>,
}

impl<'a> SessionQueue<'a> {
    /// Finds the sessions that arguments name.
    pub fn find(texts: &[String], library: &'a Library, settings: &Settings) -> Result<Self, Failure> {
        let mut all = None::<Families<'a>>;
        for text in texts {
            for named in named(text, library, settings)? {
                let families = library.open(&named, Content::Whole)?;
                match &mut all {
                    Some(all) => all.append(families),
                    None => all = Some(families),
                }
            }
        }
        let families = all.ok_or_else(|| Failure::usage("give a session, or `--all`"))?;
        Ok(Self { families, records: EvidenceRecords::of(library)? })
    }

    /// Finds every session of the store that is not below another; the others are in their families.
    pub fn all(library: &'a Library) -> Result<Self, Failure> {
        Ok(Self { families: library.open_all(Content::Whole)?, records: EvidenceRecords::of(library)? })
    }

    /// Returns how many families are left to be read.
    pub fn len(&self) -> usize {
        self.families.len()
    }

    /// Reads the next family.
    pub fn next(&mut self) -> Option<Result<SessionFamily, Failure>> {
        let family = match self.families.next()? {
            Ok(family) => family,
            Err(error) => return Some(Err(error.into())),
        };
        let sessions = family.sessions.into_iter();
        let runs = sessions.map(|(id, session)| (id, Run::of(session, &mut self.records))).collect();
        let trouble = family.tally.check().err().map(Failure::from);
        Some(Ok(SessionFamily { family: Family::new(runs), roots: family.roots, trouble }))
    }
}

/// Resolves one argument: a session or a path, or else the agent's own name for a session.
fn named(text: &str, library: &Library, settings: &Settings) -> Result<Vec<Target>, Failure> {
    let failure = match runs::resolve(text, TargetKind::Session, library, settings) {
        Ok(named) => return Ok(vec![named]),
        Err(failure) => failure,
    };
    let Ok(SourceTarget::Files(sources)) = library.resolve_sources(text) else { return Err(failure) };
    let runs = sources.iter().filter_map(|manifest| manifest.adapted.as_ref()?.runs.first());
    let runs: BTreeSet<RunId> = runs.filter_map(|run| RunId::parse(run).ok()).collect();
    let children = library.relations()?.children();
    let below: BTreeSet<RunId> = runs.iter().filter_map(|run| children.get(run)).flatten().copied().collect();
    if runs.is_empty() {
        return Err(failure);
    }
    Ok(runs.difference(&below).map(|run| Target::Session(*run)).collect())
}

/// The records that events were derived from: in the vault, or in agents' files.
struct EvidenceRecords(Option<EvidenceReader>);

impl EvidenceRecords {
    fn of(library: &Library) -> Result<Self, Failure> {
        let vault = library.store().is_ok().then(|| library.vault()).transpose()?;
        Ok(Self(vault.map(|vault| EvidenceReader::new(Arc::clone(vault)))))
    }
}

impl Records for EvidenceRecords {
    fn record(&mut self, evidence: &Evidence) -> Option<Vec<u8>> {
        // A file that was read directly is its own source.
        let path = PathBuf::from(evidence.source.to_text().as_ref());
        if path.is_absolute() {
            return read_range(&path, evidence.position.offset, evidence.length);
        }
        self.0.as_mut()?.record(evidence)
    }
}
