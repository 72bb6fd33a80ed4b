//! Reads sessions of the store, of a transcript file, or of agents' own files: family by family, each session merged from
//! all its runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use steno_disk::{StorePath, open_host_file};
use steno_journal::{Error as JournalError, Reader, Store};
use steno_model::{ExchangeEvent, RunId};
use steno_session::usage::count_families_once;
use steno_session::{Content, FamilyLinks, Session, SessionBuilder, parents_of};

use crate::event_scan::scan_events;
use crate::files::FileGroup;
use crate::{Error, FileError, Files, Library, Tally, Target, warn_about_broken_seals};

/// Top-level sessions, with all sessions below them.
pub struct Family {
    /// The top-level sessions.
    pub roots: Vec<RunId>,
    /// All of them, each merged from its runs.
    pub sessions: BTreeMap<RunId, Session>,
    /// The results of reading the agents' files.
    pub tally: Tally,
}

/// An iterator over families that keeps only one in memory.
pub struct Families<'a> {
    library: &'a Library,
    content: Content,
    is_abandoned: fn() -> bool,
    jobs: VecDeque<Job>,
    /// The parent of every session, when the whole store is read, so that each session is in one family.
    parents: Option<BTreeMap<RunId, RunId>>,
    is_of_files: bool,
}

/// The input of one family.
enum Job {
    Session(RunId),
    Transcript(PathBuf),
    Files(Box<FileGroup>),
}

impl Library {
    /// Opens a target of [`Library::resolve`]: a session of the store, a transcript file, an agent's file, or all agents' files
    /// below a directory. A session's file includes its subagents, which are in a directory next to it.
    ///
    /// # Errors
    /// If there is nothing at a path that can be read.
    pub fn open(&self, named: &Target, content: Content) -> Result<Families<'_>, Error> {
        let (jobs, is_of_files) = match named {
            Target::Session(session) | Target::Run(session) => (vec![Job::Session(*session)], false),
            Target::Path(path) if !path.is_dir() && Files::unless_transcript(path)?.is_none() => {
                (vec![Job::Transcript(path.clone())], false)
            }
            Target::Path(path) => (grouped(path), true),
        };
        Ok(Families { is_of_files, ..self.families(jobs.into(), content) })
    }

    /// Opens every top-level session of the store. Each session is in one family.
    ///
    /// # Errors
    /// An error of the system.
    pub fn open_all(&self, content: Content) -> Result<Families<'_>, Error> {
        let links = self.family_links()?;
        let parents = parents_of(&links);
        let jobs = links.keys().filter(|id| !parents.contains_key(id)).copied().map(Job::Session).collect();
        Ok(Families { parents: Some(parents), ..self.families(jobs, content) })
    }

    fn families(&self, jobs: VecDeque<Job>, content: Content) -> Families<'_> {
        Families { library: self, content, is_abandoned: || false, jobs, parents: None, is_of_files: false }
    }

    /// Finds the sessions that each session names as its parent and children.
    fn family_links(&self) -> Result<BTreeMap<RunId, FamilyLinks>, Error> {
        // Heads first: relations are then made from them.
        let (store, heads, relations) = (self.store()?, self.heads()?, self.relations()?);
        let mut links = BTreeMap::<RunId, FamilyLinks>::new();
        for head in heads {
            let own = links.entry(relations.owner(head.run)).or_default();
            own.children.extend(links_of(store, head.run)?.into_iter().map(|child| relations.owner(child)));
            own.parent = own.parent.or(head.parent.map(|parent| relations.owner(parent)));
        }
        Ok(links)
    }

    /// Reads a session, and warns of its runs that are shorter than their seals.
    fn session_with_warnings(&self, id: RunId, content: Content) -> Result<Session, Error> {
        let store = self.store().map_err(|_| JournalError::NoSuchRun { run: id })?;
        let session = self.session(id, content)?;
        for run in self.runs_of(id)? {
            warn_about_broken_seals(store, run);
        }
        Ok(session)
    }
}

impl Families<'_> {
    /// Appends other families.
    pub fn append(&mut self, mut other: Self) {
        self.jobs.append(&mut other.jobs);
        self.is_of_files |= other.is_of_files;
    }

    /// Stops reading agents' files as soon as `is_abandoned` is true.
    #[must_use]
    pub fn until(self, is_abandoned: fn() -> bool) -> Self {
        Self { is_abandoned, ..self }
    }

    /// Returns how many families are not read yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Tells whether no family is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Tells whether they are read from agents' files, so that a missing run was not read.
    #[must_use]
    pub fn is_of_files(&self) -> bool {
        self.is_of_files
    }

    fn read(&self, job: Job) -> Result<Family, Error> {
        match job {
            Job::Session(id) => self.below(self.library.session_with_warnings(id, self.content)?),
            Job::Transcript(path) => self.below(read_transcript(&path, self.content)?),
            Job::Files(group) => {
                let (mut sessions, tally) = group.read(self.content, self.is_abandoned)?;
                let roots = join(&mut sessions);
                Ok(Family { roots, sessions, tally })
            }
        }
    }

    /// Reads every session below one: those that it links, and those that name it as parent.
    fn below(&self, root: Session) -> Result<Family, Error> {
        let roots = vec![root.id];
        let (mut sessions, mut seen) = (BTreeMap::new(), BTreeSet::from([root.id]));
        let mut waiting = VecDeque::from([root]);
        while let Some(session) = waiting.pop_front() {
            let is_its = |child: &RunId| {
                self.parents.as_ref().is_none_or(|parents| parents.get(child) == Some(&session.id))
            };
            for child in self.library.children_of(&session)?.into_iter().filter(is_its) {
                // A named session that is not in the store is shown as missing.
                if seen.insert(child) && self.library.is_known(child)? {
                    waiting.push_back(self.library.session_with_warnings(child, self.content)?);
                }
            }
            sessions.insert(session.id, session);
        }
        join(&mut sessions);
        Ok(Family { roots, sessions, tally: Tally::default() })
    }
}

impl Iterator for Families<'_> {
    type Item = Result<Family, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let job = self.jobs.pop_front()?;
        Some(self.read(job))
    }
}

/// Finds the files at a path, and groups them by family.
fn grouped(path: &PathBuf) -> Vec<Job> {
    let files = Files::find_with_subagents(std::slice::from_ref(path));
    FileGroup::split(files).into_iter().map(|group| Job::Files(Box::new(group))).collect()
}

/// Reads a transcript file.
fn read_transcript(path: &Path, content: Content) -> Result<Session, Error> {
    let file = open_host_file(path).map_err(|error| FileError::of("open", path, error))?;
    let mut reader = Reader::of_file(file, StorePath::outside(path), None).until_now()?;
    let mut builder = None::<SessionBuilder>;
    let mut push = |event: &ExchangeEvent| {
        builder.get_or_insert_with(|| SessionBuilder::new(event.run_id, content)).push(event);
    };
    while reader.read_with(|_, event| push(&event))?.is_some() {}
    Ok(builder.ok_or_else(|| FileError::Empty { path: path.to_owned() })?.finish())
}

/// Counts sums that include subagents only once; returns the top-level sessions.
fn join(sessions: &mut BTreeMap<RunId, Session>) -> Vec<RunId> {
    let links = |session: &Session| FamilyLinks {
        parent: session.runs.first().and_then(|main| main.summary.parent_run_id),
        children: session.children.iter().map(|child| child.run_id).collect(),
    };
    let parents = parents_of(&sessions.iter().map(|(id, session)| (*id, links(session))).collect());
    count_families_once(sessions, &parents);
    sessions.keys().filter(|id| !parents.contains_key(id)).copied().collect()
}

/// Returns the runs that a run links. Parses only lines with a link, because this reads every run of the store.
fn links_of(store: &Store, run: RunId) -> Result<Vec<RunId>, Error> {
    let finder = memchr::memmem::Finder::new(r#""child_run_id""#);
    let mut links = Vec::new();
    scan_events(store, run, |line| finder.find(line).is_some(), |event| links.extend(event.child_run_id))?;
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of Claude's: of a session, and of a subagent of it where there is one.
    fn line(session: u8, agent: Option<&str>, number: u8) -> String {
        let agent =
            agent.map(|agent| format!(r#""isSidechain":true,"agentId":"{agent}","#)).unwrap_or_default();
        format!(
            r#"{{"type":"user","uuid":"u{session}{number}",{agent}"sessionId":"550e8400-e29b-41d4-a716-44665544000{session}","timestamp":"2026-06-08T08:14:4{number}.123Z","message":{{"role":"user","content":"Say {number}."}}}}"#
        ) + "\n"
    }

    #[test]
    fn open_groups_files_of_a_directory_by_family() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, lines: &[String]| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, lines.concat()).unwrap();
        };
        let id = |session: u8| format!("550e8400-e29b-41d4-a716-44665544000{session}");
        put(&format!("a/{}.jsonl", id(1)), &[line(1, None, 1), line(1, None, 2), line(1, None, 3)]);
        put(&format!("backup/{}.jsonl", id(1)), &[line(1, None, 1)]);
        put(&format!("same/{}.jsonl", id(1)), &[line(1, None, 1)]);
        put(&format!("a/{}/subagents/agent-a1.jsonl", id(1)), &[line(1, Some("a1"), 4)]);
        put(&format!("a/{}.jsonl", id(2)), &[line(2, None, 1)]);
        let library = Library::new(None);
        let families = library.open(&Target::Path(dir.path().to_owned()), Content::Whole).unwrap();
        assert!(families.is_of_files());
        let read: Vec<Vec<(String, usize, usize)>> = families
            .map(|family| {
                let Family { roots, sessions, tally } = family.unwrap();
                tally.check().unwrap();
                assert_eq!(roots.len(), 1);
                let count = |(id, session): (&RunId, &Session)| {
                    (id.to_string(), session.runs.len(), session.turns.len())
                };
                sessions
                    .iter()
                    .filter(|(id, _)| roots.contains(id))
                    .chain(sessions.iter().filter(|(id, _)| !roots.contains(id)))
                    .map(count)
                    .collect()
            })
            .collect();
        let child = read[0][1].0.clone();
        assert_eq!(read, [vec![(id(1), 2, 3), (child, 1, 1)], vec![(id(2), 1, 1)]]);
    }

    #[test]
    fn open_rejects_a_file_of_no_agent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.jsonl");
        std::fs::write(&path, "[]\n").unwrap();
        let library = Library::new(None);
        assert!(matches!(library.open(&Target::Path(path), Content::Whole), Err(Error::File(_))));
        let mut families = library.open(&Target::Path(dir.path().to_owned()), Content::Whole).unwrap();
        let family = families.next().unwrap().unwrap();
        assert_eq!((family.sessions.len(), family.tally.known, families.len()), (0, 0, 0));
    }
}
