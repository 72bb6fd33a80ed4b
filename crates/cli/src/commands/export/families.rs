//! The sessions that arguments name, one after the other, each with its subagents: of the store, of a transcript, of
//! agents' own files. Never more than one of them is in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_disk::Reading;
use steno_journal::{Error as JournalError, RunFile, Store};
use steno_library::{AgentFile, Archived, Files, Library, Named, Want, read_events, read_piece};
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{Evidence, ExchangeEvent, RunId};
use steno_recorder::evidence::EvidenceReader;
use steno_session::{Content, SessionBuilder};
use steno_views::atif::{Family, Kin, NoRecords, Records, Run, parents_of};

use crate::failure::Failure;
use crate::runs;
use crate::settings::Settings;

/// How much of a transcript is read at once to find whom it links.
const LINKS_BUFFER_BYTES: usize = 256 * 1024;

/// What is to be exported, in order.
pub struct Wanted {
    jobs: VecDeque<Job>,
    library: Library,
    /// The bytes that the events of the store were made from.
    records: Option<VaultRecords>,
    /// Below whom every session stands, when all of them are wanted.
    parents: Option<BTreeMap<RunId, RunId>>,
}

/// What one family is read from.
enum Job {
    Session(RunId),
    Transcript(PathBuf),
    Files(Box<Files>),
}

/// Runs that belong together, and which of them are wanted.
pub struct Session {
    pub family: Family,
    pub roots: Vec<RunId>,
    /// Why not all of it could be read.
    pub trouble: Option<Failure>,
}

impl Wanted {
    /// Finds what arguments name.
    pub fn find(texts: &[String], settings: &Settings) -> Result<Self, Failure> {
        let library = runs::open_library(settings)?;
        let mut jobs = VecDeque::new();
        for text in texts {
            jobs.extend(named(text, &library, settings)?);
        }
        Self::of_jobs(jobs, library)
    }

    /// Finds every session of the store that stands below no other; each session is in one of them.
    pub fn all(settings: &Settings) -> Result<Self, Failure> {
        let library = runs::need_library(settings)?;
        let kin = kin(&library)?;
        let parents = parents_of(&kin);
        let jobs = kin.keys().filter(|id| !parents.contains_key(id)).copied().map(Job::Session).collect();
        Ok(Self { parents: Some(parents), ..Self::of_jobs(jobs, library)? })
    }

    fn of_jobs(jobs: VecDeque<Job>, library: Library) -> Result<Self, Failure> {
        let records = match library.store() {
            Ok(_) => Some(VaultRecords(EvidenceReader::new(Arc::clone(library.vault()?)))),
            Err(_) => None,
        };
        Ok(Self { jobs, library, records, parents: None })
    }

    /// Returns how many families are left to be read.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Reads the next family.
    pub fn next(&mut self) -> Option<Result<Session, Failure>> {
        let job = self.jobs.pop_front()?;
        Some(match job {
            Job::Session(id) => self.of_session(id),
            Job::Transcript(path) => self.of_transcript(&path),
            Job::Files(files) => of_files(*files),
        })
    }

    fn of_session(&mut self, id: RunId) -> Result<Session, Failure> {
        let session = self.read(id)?;
        self.below(session)
    }

    fn of_transcript(&mut self, path: &Path) -> Result<Session, Failure> {
        let mut reader = runs::open_transcript(path)?;
        let mut building = None::<SessionBuilder>;
        while let Some(recorded) = reader.read_next()? {
            let new = || SessionBuilder::new(recorded.event.run_id, Content::Whole);
            building.get_or_insert_with(new).push(&recorded.event);
        }
        let session = building.ok_or_else(|| empty(path))?.finish();
        self.below(session)
    }

    fn read(&self, id: RunId) -> Result<steno_session::Session, Failure> {
        let store = self.library.store().map_err(|_| JournalError::NoSuchRun { run: id })?;
        for run in self.library.runs_of(id)? {
            runs::warn_of_broken_seals(store, run);
        }
        Ok(self.library.session(id, Content::Whole)?)
    }

    /// Reads every session of the store below one: those that it links, and those that name it themselves.
    fn below(&mut self, root: steno_session::Session) -> Result<Session, Failure> {
        let id = root.id;
        let mut family = BTreeMap::new();
        let mut seen = BTreeSet::from([id]);
        let mut waiting = VecDeque::from([root]);
        while let Some(session) = waiting.pop_front() {
            let is_its = |child: &RunId| {
                self.parents.as_ref().is_none_or(|parents| parents.get(child) == Some(&session.id))
            };
            let below: Vec<RunId> = self.library.children_of(&session)?.into_iter().filter(is_its).collect();
            let own = session.id;
            family.insert(own, self.made(session));
            for child in below.into_iter().filter(|child| seen.insert(*child)) {
                if self.library.is_known(child)? {
                    waiting.push_back(self.read(child)?);
                }
            }
        }
        Ok(Session { family: Family::new(family), roots: vec![id], trouble: None })
    }

    fn made(&mut self, session: steno_session::Session) -> Run {
        match &mut self.records {
            Some(records) => Run::of(session, records),
            None => Run::of(session, &mut NoRecords),
        }
    }
}

fn empty(path: &Path) -> Failure {
    Failure::nothing(format!("`{}` has no events", path.display()))
}

/// Finds what one argument names: a session or a file, else a session as its agent calls it.
fn named(text: &str, library: &Library, settings: &Settings) -> Result<Vec<Job>, Failure> {
    match runs::resolve(text, Want::Session, library, settings) {
        // Several connections may show one session.
        Ok(Named::Session(session) | Named::Run(session)) => Ok(vec![Job::Session(session)]),
        Ok(Named::Path(path)) if path.is_dir() => Ok(grouped(Files::find(&[path]))),
        Ok(Named::Path(path)) => {
            if Files::unless_transcript(&path)?.is_none() {
                return Ok(vec![Job::Transcript(path)]);
            }
            // Claude Code keeps the subagents of a session in a directory beside its file.
            let beside = path.with_extension("");
            let paths = if beside.is_dir() { vec![path, beside] } else { vec![path] };
            Ok(grouped(Files::find(&paths)))
        }
        Err(failure) => {
            let Ok(Archived::Files(sources)) = library.archived(text) else { return Err(failure) };
            let runs = sources.iter().filter_map(|manifest| manifest.adapted.as_ref()?.runs.first());
            let runs: BTreeSet<RunId> = runs.filter_map(|run| RunId::parse(run).ok()).collect();
            let children = library.relations()?.children();
            let below: BTreeSet<RunId> =
                runs.iter().filter_map(|run| children.get(run)).flatten().copied().collect();
            if runs.is_empty() {
                return Err(failure);
            }
            Ok(runs.difference(&below).map(|run| Job::Session(*run)).collect())
        }
    }
}

/// Puts the files of one session together: by the runs that they begin with, and the parents that these name.
fn grouped(files: Files) -> Vec<Job> {
    let first: HashMap<PathBuf, (RunId, Option<RunId>)> =
        files.paths().iter().filter_map(|path| Some((path.clone(), AgentFile::first_run(path)?))).collect();
    let parents: HashMap<RunId, RunId> =
        first.values().filter_map(|(run, parent)| Some((*run, (*parent)?))).collect();
    let root_of = |path: &Path| {
        const PARENTS_MAX: usize = 64;
        let (mut root, _) = *first.get(path)?;
        for _ in 0..PARENTS_MAX {
            match parents.get(&root) {
                Some(parent) => root = *parent,
                None => break,
            }
        }
        Some(root)
    };
    files.groups(root_of).into_iter().map(|files| Job::Files(Box::new(files))).collect()
}

/// Reads the files of one session. A run that is in several of them is taken from the one with most of it.
fn of_files(files: Files) -> Result<Session, Failure> {
    let mut kept = BTreeMap::<RunId, (u64, SessionBuilder, PathBuf)>::new();
    let mut reading = BTreeMap::<RunId, (u64, SessionBuilder, PathBuf)>::new();
    let mut number = 0;
    let keep = |kept: &mut BTreeMap<RunId, (u64, SessionBuilder, PathBuf)>,
                reading: &mut BTreeMap<RunId, (u64, SessionBuilder, PathBuf)>| {
        for (run, new) in std::mem::take(reading) {
            if kept.get(&run).is_none_or(|(events, ..)| new.0 > *events) {
                kept.insert(run, new);
            }
        }
    };
    // Whoever reads what we print may leave; what goes into files has to be whole all the same.
    let tally = read_events(
        files,
        || false,
        |origin, event| {
            if origin.number != number {
                number = origin.number;
                keep(&mut kept, &mut reading);
            }
            let run = event.run_id;
            let new = || (0, SessionBuilder::new(run, Content::Whole), origin.path.clone());
            let (events, builder, _) = reading.entry(run).or_insert_with(new);
            *events += 1;
            builder.push(&event);
            ControlFlow::Continue(())
        },
    )?;
    keep(&mut kept, &mut reading);
    let made = |(run, (_, builder, path)): (RunId, (u64, SessionBuilder, PathBuf))| {
        (run, Run::of(builder.finish(), &mut FileRecords(&path)))
    };
    let runs: BTreeMap<RunId, Run> = kept.into_iter().map(made).collect();
    let family = Family::new(runs);
    let roots = family.roots();
    Ok(Session { family, roots, trouble: tally.check().err().map(Failure::from) })
}

/// The records of the agent's file that is being read.
struct FileRecords<'a>(&'a Path);

impl Records for FileRecords<'_> {
    fn record(&mut self, evidence: &Evidence) -> Option<Vec<u8>> {
        read_piece(self.0, evidence.position.offset, evidence.length)
    }
}

/// Finds out who says to belong to whom, session by session.
fn kin(library: &Library) -> Result<BTreeMap<RunId, Kin>, Failure> {
    let (store, relations) = (library.store()?, library.relations()?);
    let mut kin = BTreeMap::<RunId, Kin>::new();
    for head in library.heads()? {
        let own = kin.entry(relations.owner(head.run)).or_default();
        own.links.extend(links_of(store, head.run)?.into_iter().map(|child| relations.owner(child)));
        own.parent = own.parent.or(head.parent.map(|parent| relations.owner(parent)));
    }
    Ok(kin)
}

/// Returns the runs that a run says it began. Only lines that name one are read: this is done for every run of a store.
fn links_of(store: &Store, run: RunId) -> Result<Vec<RunId>, Failure> {
    let path = RunFile::Transcript(run).path();
    let Some(file) = store.disk().open_read(&path)? else { return Ok(Vec::new()) };
    let (mut links, mut line) = (Vec::new(), Vec::new());
    let mut reader = BufReader::with_capacity(LINKS_BUFFER_BYTES, Reading::from(file, 0));
    while reader.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)? > 0 {
        let is_candidate = std::str::from_utf8(&line).is_ok_and(|line| line.contains(r#""child_run_id""#));
        // What cannot be read is told by whoever reads all of it.
        let event = is_candidate.then(|| ExchangeEvent::parse(line.trim_ascii_end()).ok()).flatten();
        links.extend(event.and_then(|event| event.child_run_id));
        line.clear();
    }
    Ok(links)
}

/// The records in the vault.
struct VaultRecords(EvidenceReader);

impl Records for VaultRecords {
    fn record(&mut self, evidence: &Evidence) -> Option<Vec<u8>> {
        self.0.record(evidence)
    }
}
