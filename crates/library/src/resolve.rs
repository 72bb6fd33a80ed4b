//! Resolves the names that users type: ids, paths, `last` and parts of ids.
//!
//! In this order: a whole id; a path; `last` and `last~N`; a unique beginning or end of an id.

use std::cmp::Reverse;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use steno_adapters::codex::session_run;
use steno_model::{RunId, Seq, ThreadId, Timestamp};
use steno_vault::Manifest;

use crate::ids::{is_part_of_uuid, parse_id};
use crate::indexed::Projects;
use crate::sources::connection_of;
use crate::{Error, IdIndex, Library, SessionOverview, ShortestPart};

/// The maximum number of sessions whose titles are read without the index.
const TITLES_READ_MAX: usize = 8;

/// The kind of thing that a text has to name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A session, by its id or the id of one of its runs.
    Session,
    /// A run; a session id means the run of its own file.
    Run,
    /// A thread with a spine or a session file in the store.
    Thread,
}

impl fmt::Display for TargetKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Session => "session",
            Self::Run => "run",
            Self::Thread => "thread",
        })
    }
}

/// What a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A session.
    Session(RunId),
    /// A run. A whole id is accepted even if the store does not have the run.
    Run(RunId),
    /// A file or directory.
    Path(PathBuf),
}

/// One of several matches of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: String,
    /// The shortest unique part of it.
    pub part: ShortestPart,
    /// When it began.
    pub started: Option<Timestamp>,
    /// The root of the repository that the agent worked in, else its directory.
    pub project: Option<String>,
    /// The title that lists show.
    pub title: Option<String>,
}

/// Splits `RUN:SEQ` into the run and the number of an event. An existing path is not split.
#[must_use]
pub fn split_event(text: &str) -> (&str, Option<Seq>) {
    let Some((run, number)) = text.rsplit_once(':') else { return (text, None) };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse().ok().and_then(Seq::new) {
        Some(seq) if is_number && !run.is_empty() && Path::new(text).symlink_metadata().is_err() => {
            (run, Some(seq))
        }
        Some(_) | None => (text, None),
    }
}

impl Library {
    /// Finds the session or the run that a text names, or the path.
    ///
    /// # Errors
    /// If it names nothing, or more than one thing.
    pub fn resolve(&self, text: &str, want: TargetKind) -> Result<Target, Error> {
        if let Ok(id) = parse_id(text) {
            return self.resolve_id(text, id, want);
        }
        if self.spines()?.iter().any(|thread| thread.as_str() == text) {
            return self.of_session(text, session_run(text), want);
        }
        if let Some(path) = path_named(text)? {
            return Ok(Target::Path(path));
        }
        if let Some(session) = self.resolve_last(text)? {
            return self.of_session(text, session, want);
        }
        self.resolve_part(text, want)
    }

    /// Finds a run of the store that a text names; paths are not accepted.
    ///
    /// # Errors
    /// If it names nothing, or more than one thing.
    pub fn resolve_stored(&self, text: &str, want: TargetKind) -> Result<RunId, Error> {
        match self.resolve(text, want) {
            Ok(Target::Run(id) | Target::Session(id)) => Ok(id),
            Ok(Target::Path(_)) | Err(Error::NoFile { .. } | Error::NotRegular { .. }) => {
                Err(Error::InvalidName { text: text.to_owned(), want })
            }
            Err(error) => Err(error),
        }
    }

    /// Finds the thread that a text names among the given ones.
    ///
    /// # Errors
    /// If it names none of them, or more than one.
    pub fn resolve_thread(&self, text: &str, among: &[ThreadId]) -> Result<ThreadId, Error> {
        let want = TargetKind::Thread;
        let index = IdIndex::new(among.iter().map(|thread| (thread.to_string(), thread.clone())));
        if let [(_, thread)] = index.exact(text)[..] {
            return Ok(thread.clone());
        }
        let of_session = |session: RunId| among.iter().find(|thread| session_run(thread.as_str()) == session);
        if let Some(session) = self.resolve_last(text)? {
            let thread = of_session(session).cloned();
            return thread.ok_or_else(|| Error::NotFound { text: text.to_owned(), want });
        }
        match index.parts(text)[..] {
            [(_, thread)] => return Ok(thread.clone()),
            [] => {}
            ref several => {
                let sessions = several.iter().map(|(id, thread)| (id.clone(), session_run(thread.as_str())));
                let part = |id: &str, thread: &ThreadId| index.shortest(id, thread);
                let parts = several.iter().map(|(id, thread)| part(id, thread)).collect();
                return Err(self.ambiguous(text, want, sessions.collect(), parts));
            }
        }
        // A run of the thread's session also names the thread.
        let session = self.resolve(text, TargetKind::Session).ok().and_then(|named| match named {
            Target::Session(session) => of_session(session),
            Target::Run(_) | Target::Path(_) => None,
        });
        session.cloned().ok_or_else(|| Error::NotFound { text: text.to_owned(), want })
    }

    /// Resolves a whole id: of a run, of a session without its own run, of a connection.
    fn resolve_id(&self, text: &str, id: RunId, want: TargetKind) -> Result<Target, Error> {
        if self.has(id)? {
            if want != TargetKind::Session {
                return Ok(Target::Run(id));
            }
            // Only this run is read, unless it names a session.
            let may_show_another =
                self.head(id)?.is_some_and(|head| head.session.is_some() || head.lacks_session());
            return Ok(Target::Session(if may_show_another { self.relations()?.owner(id) } else { id }));
        }
        if want == TargetKind::Run && self.was_recorded(id)? {
            // Its transcript is gone; reading the run reports that.
            return Ok(Target::Run(id));
        }
        if !self.relations()?.runs_of(id).is_empty() {
            return self.of_session(text, id, want);
        }
        match self.on_connection(id)?[..] {
            [] => match self.without_events(text)? {
                Some(error) => Err(error),
                None if want == TargetKind::Session => Ok(Target::Session(id)),
                None => Ok(Target::Run(id)),
            },
            [run] => Ok(if want == TargetKind::Session {
                Target::Session(self.relations()?.owner(run))
            } else {
                Target::Run(run)
            }),
            ref several => Err(self.several_runs(text, want, several)?),
        }
    }

    /// Tells whether a run was made from a source in the store.
    fn was_recorded(&self, id: RunId) -> Result<bool, Error> {
        let id = id.to_string();
        let made =
            |manifest: &Manifest| manifest.adapted.as_ref().is_some_and(|adapted| adapted.runs.contains(&id));
        Ok(self.manifests()?.iter().any(made))
    }

    /// Returns the runs of a connection.
    fn on_connection(&self, id: RunId) -> Result<Vec<RunId>, Error> {
        let is_its = |manifest: &&Manifest| connection_of(manifest) == Some(id.uuid());
        let Some(manifest) = self.manifests()?.iter().find(is_its) else { return Ok(Vec::new()) };
        let heads =
            self.heads()?.iter().filter(|head| head.source == Some(manifest.id) && head.parent.is_none());
        Ok(heads.map(|head| head.run).collect())
    }

    /// Finds the session that `last` or `last~N` names; `None` for any other text.
    fn resolve_last(&self, text: &str) -> Result<Option<RunId>, Error> {
        let Some(rest) = text.strip_prefix("last") else { return Ok(None) };
        let back = match rest.strip_prefix('~') {
            None if rest.is_empty() => 0,
            Some(number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                number.parse().unwrap_or(usize::MAX)
            }
            None | Some(_) => return Ok(None),
        };
        self.store()?;
        let sessions = self.latest_sessions()?;
        match sessions.get(back) {
            Some(session) => Ok(Some(*session)),
            None => Err(Error::LastOutOfRange { text: text.to_owned(), sessions: sessions.len() }),
        }
    }

    /// Returns the top-level sessions as `ls` lists them: the one with the latest event first, those without a readable
    /// event last.
    fn latest_sessions(&self) -> Result<Vec<RunId>, Error> {
        let Some(index) = self.ready_index()? else {
            let last_ms = |known: &SessionOverview| known.last_instant().map(jiff::Timestamp::as_millisecond);
            let mut sessions = self.sessions()?;
            sessions.sort_by_cached_key(|known| (Reverse(last_ms(known)), known.session.id));
            return Ok(sessions.iter().map(|known| known.session.id).collect());
        };
        let mut sessions = index.latest_sessions()?;
        let has_row = index.session_ids()?;
        let others = self.relations()?.sessions().into_iter().map(|session| session.id);
        let mut others: Vec<RunId> = others.filter(|id| !has_row.contains(id)).collect();
        others.sort_unstable();
        sessions.append(&mut others);
        Ok(sessions)
    }

    /// Resolves the beginning or end of an id.
    fn resolve_part(&self, text: &str, want: TargetKind) -> Result<Target, Error> {
        let not_found = || Error::NotFound { text: text.to_owned(), want };
        let is_part = is_part_of_uuid(text);
        if !is_part && ThreadId::parse(text).is_err() {
            return Err(Error::InvalidName { text: text.to_owned(), want });
        }
        if is_part {
            self.store()?;
            // The index knows the runs, so that their files need not be read.
            self.ready_index()?;
        }
        let matches = self.index()?.parts(text);
        let Some((_, session)) = matches.first() else {
            // A thread with a name, recorded from a connection.
            let session = session_run(text);
            if !self.relations()?.runs_of(session).is_empty() {
                return self.of_session(text, session, want);
            }
            if let Some(error) = self.without_events(text)? {
                return Err(error);
            }
            return Err(if is_part {
                not_found()
            } else {
                Error::InvalidName { text: text.to_owned(), want }
            });
        };
        if matches.iter().any(|(_, other)| other != session) {
            let ids = matches.iter().map(|(id, session)| (id.clone(), *session)).collect::<Vec<_>>();
            return Err(self.several_sessions(text, want, ids)?);
        }
        let runs: Vec<RunId> = matches.iter().filter_map(|(id, _)| RunId::parse(id).ok()).collect();
        match (want, &runs[..]) {
            (TargetKind::Run, [run]) if self.has(*run)? => Ok(Target::Run(*run)),
            (TargetKind::Run | TargetKind::Session | TargetKind::Thread, _) => {
                self.of_session(text, *session, want)
            }
        }
    }

    fn of_session(&self, text: &str, session: RunId, want: TargetKind) -> Result<Target, Error> {
        if want == TargetKind::Session {
            return Ok(Target::Session(session));
        }
        // As a run, a session id means the run of its own file.
        if self.has(session)? {
            return Ok(Target::Run(session));
        }
        match self.runs_of(session)?[..] {
            [run] => Ok(Target::Run(run)),
            ref several => Err(self.several_runs(text, want, several)?),
        }
    }

    /// Returns the error for a text that names several runs.
    fn several_runs(&self, text: &str, want: TargetKind, runs: &[RunId]) -> Result<Error, Error> {
        let index = IdIndex::new(self.relations()?.ids().map(|(id, _)| (id.to_string(), id)));
        let parts = runs.iter().map(|run| index.shortest(&run.to_string(), run)).collect();
        let ids = runs.iter().map(|run| (run.to_string(), *run)).collect();
        Ok(self.ambiguous(text, want, ids, parts))
    }

    /// Returns the error for a text that names several sessions, each listed once.
    fn several_sessions(
        &self,
        text: &str,
        want: TargetKind,
        matches: Vec<(String, RunId)>,
    ) -> Result<Error, Error> {
        let mut ids: Vec<(String, RunId)> = Vec::new();
        for (id, session) in matches {
            match ids.iter_mut().find(|(_, known)| *known == session) {
                Some(known) if id == session.to_string() => known.0 = id,
                Some(_) => {}
                None => ids.push((id, session)),
            }
        }
        let index = self.index()?;
        let parts = ids.iter().map(|(id, session)| index.shortest(id, session)).collect();
        Ok(self.ambiguous(text, want, ids, parts))
    }

    /// Lists candidates, the latest first.
    pub(crate) fn ambiguous(
        &self,
        text: &str,
        want: TargetKind,
        ids: Vec<(String, RunId)>,
        parts: Vec<ShortestPart>,
    ) -> Error {
        if ids.len() > TITLES_READ_MAX {
            // Bringing the index up to date is faster. If that fails, the sessions themselves are read.
            drop(self.indexed());
        }
        let heads = self.heads().unwrap_or_default();
        let head_of = |run: RunId| heads.iter().find(|head| head.run == run);
        let owner = |run: RunId| self.relations().map_or(run, |relations| relations.owner(run));
        let projects = Projects::default();
        let candidate = |((id, session), part): ((String, RunId), ShortestPart)| {
            let own = RunId::parse(&id).ok().filter(|run| head_of(*run).is_some());
            let run = own.or_else(|| self.runs_of(session).ok()?.first().copied());
            let head = run.and_then(head_of);
            Candidate {
                id,
                part,
                started: head.and_then(|head| head.started.clone()),
                project: head.and_then(|head| head.project.as_deref()).map(|dir| projects.root_of(dir)),
                title: self.title(owner(session)),
            }
        };
        let mut candidates: Vec<Candidate> = ids.into_iter().zip(parts).map(candidate).collect();
        candidates.sort_by_cached_key(|one| {
            (Reverse(one.started.as_ref().and_then(Timestamp::instant)), one.id.clone())
        });
        Error::Ambiguous { text: text.to_owned(), want, candidates }
    }
}

/// Returns the text as a path, if it exists or can only be a path.
fn path_named(text: &str) -> Result<Option<PathBuf>, Error> {
    let path = Path::new(text);
    if path.is_file() || path.is_dir() {
        return Ok(Some(path.to_owned()));
    }
    let Ok(about) = path.symlink_metadata() else {
        if !text.contains(['/', '.']) {
            return Ok(None);
        }
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let source = path.metadata().err().unwrap_or(missing);
        return Err(Error::NoFile { path: path.to_owned(), link: None, source });
    };
    Err(match path.metadata() {
        Err(source) if about.is_symlink() => {
            Error::NoFile { path: path.to_owned(), link: path.read_link().ok(), source }
        }
        Ok(_) | Err(_) => Error::NotRegular { path: path.to_owned() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_event_reads_the_number_after_a_colon() {
        let seq = Seq::new;
        for (text, want) in [
            ("550e8400:12", ("550e8400", seq(12))),
            ("last:1", ("last", seq(1))),
            ("dir/t.jsonl:3", ("dir/t.jsonl", seq(3))),
            ("550e8400", ("550e8400", None)),
            ("550e8400:", ("550e8400:", None)),
            ("550e8400:0", ("550e8400:0", None)),
            ("550e8400:+1", ("550e8400:+1", None)),
            (":1", (":1", None)),
        ] {
            assert_eq!(split_event(text), want, "{text}");
        }
    }

    #[test]
    fn split_event_keeps_colons_of_existing_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t:1");
        std::fs::write(&path, "").unwrap();
        let text = path.to_str().unwrap();
        assert_eq!(split_event(text), (text, None));
    }
}
