//! Sessions that are stored as files without events, because no adapter reads them. They are named by their agent's ids.

use std::collections::{BTreeMap, BTreeSet};

use steno_capture::discovery::has_short_ids;
use steno_model::{RunId, Timestamp};
use steno_vault::{Manifest, SourceId};

use crate::ids::parse_id;
use crate::sources::session_id;
use crate::{Candidate, Error, IdIndex, Library, ShortestPart, TargetKind};

/// A session that is stored as files without events.
#[derive(Clone, Debug)]
struct FileSession<'a> {
    /// Its name by the agent, perhaps with the project: `shop/0a1b2c3d`.
    name: &'a str,
    /// The same without the project.
    id: &'a str,
    /// A file of it.
    manifest: &'a Manifest,
}

impl FileSession<'_> {
    /// Returns its entry in a list of matches; `part` is a part of its id.
    fn candidate(&self, part: ShortestPart) -> Candidate {
        let since = self.manifest.generations.first().map(|generation| &generation.since);
        let time = since.and_then(|since| since.modified.as_ref().or(since.time.as_ref()));
        let project = self.name.strip_suffix(self.id).map(|project| project.trim_end_matches('/'));
        let project = project.filter(|project| !project.is_empty());
        let part = match part {
            ShortestPart::Beginning(_) if project.is_some() => ShortestPart::End(self.id.len()),
            ShortestPart::Beginning(_) | ShortestPart::End(_) => part,
        };
        Candidate {
            id: self.name.to_owned(),
            part,
            started: time.and_then(|time| Timestamp::parse(time).ok()),
            project: project.map(str::to_owned),
            title: None,
        }
    }
}

impl Library {
    /// Returns the sessions that are stored as files without events, each once.
    fn file_sessions(&self) -> Result<Vec<FileSession<'_>>, Error> {
        let of_runs: BTreeSet<SourceId> = self.heads()?.iter().filter_map(|head| head.source).collect();
        let (mut sessions, mut with_runs) = (BTreeMap::new(), BTreeSet::new());
        for manifest in self.manifests()? {
            let (Some(name), Some(id)) = (manifest.info.session.as_deref(), session_id(&manifest.info))
            else {
                continue;
            };
            let has_runs = manifest.adapted.as_ref().is_some_and(|adapted| !adapted.runs.is_empty());
            if has_runs || of_runs.contains(&manifest.id) || self.names_run(id)? {
                with_runs.insert(id);
            }
            sessions.entry(name).or_insert(FileSession { name, id, manifest });
        }
        // Files outside of the project have only the session's id.
        let in_projects: BTreeSet<&str> =
            sessions.values().filter(|one| one.name != one.id).map(|one| one.id).collect();
        sessions.retain(|name, one| {
            !with_runs.contains(one.id) && (*name != one.id || !in_projects.contains(one.id))
        });
        Ok(sessions.into_values().collect())
    }

    fn names_run(&self, id: &str) -> Result<bool, Error> {
        let Ok(run) = RunId::parse(id) else { return Ok(false) };
        Ok(!self.relations()?.runs_of(run).is_empty())
    }

    /// Finds the sessions without events that match a text.
    pub(crate) fn file_sessions_named(&self, text: &str) -> Result<Vec<Candidate>, Error> {
        let sessions = self.file_sessions()?;
        let index =
            IdIndex::new(sessions.iter().enumerate().map(|(number, one)| (one.id.to_owned(), number)));
        let mut matches = index.exact(text);
        if matches.is_empty() {
            matches = index.parts(text);
        }
        if matches.is_empty() && parse_id(text).is_ok() {
            let is_short =
                |number: usize| sessions[number].manifest.info.known_provider().is_some_and(has_short_ids);
            let begins = |(id, number): &(String, usize)| is_short(*number) && text.starts_with(id.as_str());
            matches = index.all().filter(|one| begins(one)).collect();
        }
        let candidate =
            |(id, number): &(String, usize)| sessions[*number].candidate(index.shortest(id, number));
        Ok(matches.into_iter().map(candidate).collect())
    }

    /// Returns an error if a text names one or more sessions without events.
    pub(crate) fn without_events(&self, text: &str) -> Result<Option<Error>, Error> {
        let mut candidates = self.file_sessions_named(text)?;
        Ok(match candidates.len() {
            0 => None,
            1 => candidates.pop().map(|one| Error::WithoutEvents { session: one.id }),
            _ => Some(Error::Ambiguous { text: text.to_owned(), want: TargetKind::Session, candidates }),
        })
    }

    /// Fails if a part of an id also names a session without events.
    pub(crate) fn check_alone(&self, text: &str, session: RunId) -> Result<(), Error> {
        if parse_id(text).is_ok() {
            return Ok(());
        }
        let also = self.file_sessions_named(text)?;
        if also.is_empty() {
            return Ok(());
        }
        let part = self.index()?.shortest(&session.to_string(), &session);
        let known =
            self.ambiguous(text, TargetKind::Session, vec![(session.to_string(), session)], vec![part]);
        let Error::Ambiguous { mut candidates, .. } = known else { return Err(known) };
        candidates.extend(also);
        Err(Error::Ambiguous { text: text.to_owned(), want: TargetKind::Session, candidates })
    }
}
