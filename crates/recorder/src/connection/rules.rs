//! Which messages of a connection are not recorded: all while recording is paused, and those of threads that were
//! forgotten or belong to an excluded project.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use memchr::memchr_iter;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use steno_adapters::codex::spine::WhyMissing;
use steno_journal::{Error as JournalError, RecordingGuard, Store};
use steno_model::{Lane, Provider};
use steno_vault::{NameHash, Vault};
use uuid::Uuid;

use crate::sources::{Exclusions, ProjectLookup, Verdict, strings_at};

/// Requests that continue or fork a thread. The answer shows the thread's project at the latest.
const GOES_ON: [&str; 4] = ["thread/resume", "thread/fork", "thread/read", "thread/turns/list"];

/// Decides which messages of a connection are recorded.
pub struct ConnectionRules {
    store: Store,
    vault: Arc<Vault>,
    exclusions: Exclusions,
    /// The directory that the server was started in: used for threads that name none.
    started_in: Option<String>,
    /// The sessions that the whole connection belongs to.
    sessions: Vec<String>,
    /// Codex homes, where threads have their files.
    homes: Vec<PathBuf>,
    membership: ProjectLookup,
    /// Threads that are left out, and threads that are known to be recorded.
    left_out: HashSet<String>,
    threads_included: HashSet<String>,
    /// Requests that were left out and have no answer yet, by direction.
    asked: HashSet<(Lane, String)>,
}

/// The fields of a message that name threads.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageFields<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    params: ThreadFields,
    result: ThreadFields,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ThreadFields {
    thread_id: Option<Value>,
    conversation_id: Option<Value>,
    review_thread_id: Option<Value>,
    thread: Option<Value>,
}

impl ConnectionRules {
    /// Takes the exclusions, the directory that the server is started in, and the Codex homes.
    #[must_use]
    pub fn new(
        store: &Store,
        exclusions: Exclusions,
        started_in: Option<String>,
        homes: Vec<PathBuf>,
    ) -> Self {
        Self {
            store: store.clone(),
            vault: Vault::open(Arc::clone(store.disk())),
            exclusions,
            started_in,
            sessions: Vec::new(),
            homes,
            membership: ProjectLookup::default(),
            left_out: HashSet::new(),
            threads_included: HashSet::new(),
            asked: HashSet::new(),
        }
    }

    /// Names the sessions that the whole connection belongs to. If one of them is forgotten, no message is recorded.
    #[must_use]
    pub fn of_sessions(self, sessions: impl IntoIterator<Item = String>) -> Self {
        Self { sessions: sessions.into_iter().collect(), ..self }
    }

    /// Tells whether the whole connection belongs to a session that was forgotten.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        self.names_left_out_thread(&[], &self.sessions)
    }

    /// Leaves out the given threads.
    #[must_use]
    pub(crate) fn of_threads(store: &Store, threads: HashSet<String>) -> Self {
        Self { left_out: threads, ..Self::new(store, Exclusions::default(), None, Vec::new()) }
    }

    /// Begins to record a message, or returns why it is not recorded.
    pub(super) fn judge(&mut self, lane: Lane, message: &[u8]) -> Result<RecordingGuard, WhyMissing> {
        // Also during a pause: the threads of the messages have to be known afterwards.
        let leaves_out = self.leaves_out(lane, message);
        let recording = self.store.begin_recording(Timestamp::now()).map_err(|error| {
            let is_paused = matches!(error, JournalError::Paused);
            if is_paused { WhyMissing::Paused } else { WhyMissing::NotWritten }
        })?;
        if leaves_out { Err(WhyMissing::LeftOut) } else { Ok(recording) }
    }

    pub(super) fn leaves_out(&mut self, lane: Lane, message: &[u8]) -> bool {
        let has_projects = !self.exclusions.projects.is_empty();
        let has_threads = !self.left_out.is_empty() || self.vault.leaves_out_anything().unwrap_or(true);
        if !has_projects && !has_threads {
            return false;
        }
        if self.is_forgotten() {
            return true;
        }
        // A line that is not a protocol message names no thread, and may contain anything.
        let Ok(fields) = serde_json::from_slice::<MessageFields<'_>>(message) else {
            return has_projects || self.names_left_out_thread(message, &[]);
        };
        let id = fields.id.map(|id| id.get().to_owned());
        let other = match lane {
            Lane::ToAgent => Lane::FromAgent,
            Lane::FromAgent => Lane::ToAgent,
        };
        let is_answer = fields.method.is_none();
        let was_asked = is_answer && id.as_ref().is_some_and(|id| self.asked.remove(&(other, id.clone())));
        let threads: Vec<String> =
            [&fields.params, &fields.result].into_iter().flat_map(ThreadFields::threads).collect();
        let verdict = self.judge_message(message, &fields, &threads, was_asked);
        match verdict {
            Verdict::Included => self.threads_included.extend(threads),
            Verdict::Excluded => self.left_out.extend(threads),
            // The answer will show it.
            Verdict::Unknown => {}
        }
        let is_left_out = verdict != Verdict::Included;
        if let (true, false, Some(id)) = (is_left_out, is_answer, id) {
            self.asked.insert((lane, id));
        }
        is_left_out
    }

    /// Decides whether a message is left out.
    fn judge_message(
        &self,
        message: &[u8],
        fields: &MessageFields<'_>,
        threads: &[String],
        was_asked: bool,
    ) -> Verdict {
        let has_projects = !self.exclusions.projects.is_empty();
        let dirs = strings_at(message, "cwd");
        let is_excluded = |dir: &String| self.exclusions.judge_dir(Some(dir)) == Verdict::Excluded;
        // Paths in any field count.
        let names_excluded = has_projects && dirs.iter().chain(&paths_in(message)).any(is_excluded);
        if names_excluded || self.names_left_out_thread(message, threads) {
            return Verdict::Excluded;
        }
        match fields.method.as_deref() {
            Some("thread/start") if dirs.is_empty() && has_projects => {
                self.exclusions.judge_dir(self.started_in.as_deref())
            }
            Some(method) if GOES_ON.contains(&method) && has_projects => {
                let is_known = !threads.is_empty() && threads.iter().all(|thread| self.is_included(thread));
                if is_known { Verdict::Included } else { Verdict::Unknown }
            }
            // An answer to a request that was left out is recorded only if it names its directory.
            None if was_asked && dirs.is_empty() => Verdict::Excluded,
            // A thread that was not started or resumed here may belong to any project.
            Some(_)
                if has_projects
                    && dirs.is_empty()
                    && !threads.iter().all(|thread| self.is_included(thread)) =>
            {
                Verdict::Unknown
            }
            Some(_) | None => Verdict::Included,
        }
    }

    /// Tells whether a message names a thread that is left out, in any field.
    fn names_left_out_thread(&self, message: &[u8], threads: &[String]) -> bool {
        let is_left_out = |id: &str| {
            self.left_out.contains(id) || self.vault.leaves_out(NameHash::of_session(id)).unwrap_or(true)
        };
        threads.iter().any(|id| is_left_out(id)) || uuids_in(message).any(|id| is_left_out(&id.to_string()))
    }

    /// Tells whether a thread is known to belong to a project that is not excluded.
    fn is_included(&self, thread: &str) -> bool {
        self.threads_included.contains(thread)
            || self.homes.iter().any(|home| {
                let project = self.membership.of_session(Provider::Codex, home, thread);
                self.exclusions.judge_project(&project) == Verdict::Included
            })
    }
}

impl ThreadFields {
    fn threads(&self) -> impl Iterator<Item = String> {
        let of_thread = self.thread.as_ref().map(|thread| thread.get("id").unwrap_or(thread));
        let named = [self.thread_id.as_ref(), self.conversation_id.as_ref(), self.review_thread_id.as_ref()];
        named.into_iter().chain([of_thread]).flatten().filter_map(|id| id.as_str().map(str::to_owned))
    }
}

/// Finds all strings in a message that are absolute paths.
fn paths_in(message: &[u8]) -> Vec<String> {
    let begins = ["\"/", "\"file:///"];
    let places = begins.iter().flat_map(|begin| memchr::memmem::find_iter(message, begin.as_bytes()));
    let strings = places.filter_map(|at| {
        serde_json::Deserializer::from_slice(&message[at..]).into_iter::<String>().next()?.ok()
    });
    strings.collect()
}

/// Finds all UUIDs in a text.
pub(super) fn uuids_in(text: &[u8]) -> impl Iterator<Item = Uuid> {
    const LEN: usize = uuid::fmt::Hyphenated::LENGTH;
    const FIRST_HYPHEN: usize = 8;
    memchr_iter(b'-', text).filter_map(|hyphen| {
        let start = hyphen.checked_sub(FIRST_HYPHEN)?;
        Uuid::try_parse_ascii(text.get(start..start + LEN)?).ok()
    })
}

#[cfg(test)]
mod tests {
    use steno_disk::RealDisk;

    use super::*;

    const SECRET: &str = "0199c2a4-6f1e-7b20-9c3d-5e6f70819203";
    const PUBLIC: &str = "0199c2a4-6f1e-7b20-9c3d-5e6f70819204";

    fn rules(started_in: &str) -> (tempfile::TempDir, ConnectionRules) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(Arc::new(RealDisk::create(dir.path()).unwrap())).unwrap();
        let exclusions = Exclusions { projects: vec!["/src/secret".to_owned()], paths: Vec::new() };
        let rules = ConnectionRules::new(&store, exclusions, Some(started_in.to_owned()), Vec::new());
        (dir, rules)
    }

    #[test]
    fn only_messages_of_an_excluded_project_are_left_out() {
        let (_dir, mut rules) = rules("/src/public");
        let (to, from) = (Lane::ToAgent, Lane::FromAgent);
        let started = |id, thread, dir| {
            format!(r#"{{"id":{id},"result":{{"thread":{{"id":"{thread}"}},"cwd":"{dir}"}}}}"#)
        };
        for (lane, text, want) in [
            (to, r#"{"method":"initialize","id":0,"params":{}}"#.to_owned(), false),
            (from, r#"{"id":0,"result":{"userAgent":"x"}}"#.to_owned(), false),
            (to, r#"{"method":"thread/start","id":1,"params":{"cwd":"/src/secret/a"}}"#.to_owned(), true),
            (from, started(1, SECRET, "/src/secret/a"), true),
            (to, r#"{"method":"thread/start","id":2,"params":{}}"#.to_owned(), false),
            (from, started(2, PUBLIC, "/src/public"), false),
            (to, format!(r#"{{"method":"turn/start","id":3,"params":{{"threadId":"{SECRET}"}}}}"#), true),
            (from, r#"{"id":3,"result":{"turn":{"id":"t"}}}"#.to_owned(), true),
            (from, r#"{"id":3,"result":{"turn":{"id":"t"}}}"#.to_owned(), false),
            (to, format!(r#"{{"method":"turn/start","id":4,"params":{{"threadId":"{PUBLIC}"}}}}"#), false),
            (from, format!(r#"{{"method":"item/delta","params":{{"threadId":"{SECRET}"}}}}"#), true),
            (
                from,
                r#"{"id":9,"result":{"data":[{"id":"x","cwd":"/src/secret","preview":"p"}]}}"#.to_owned(),
                true,
            ),
            // The project shows only in the answer.
            (
                to,
                format!(r#"{{"method":"thread/resume","id":5,"params":{{"threadId":"{}"}}}}"#, Uuid::nil()),
                true,
            ),
            (from, started(5, &Uuid::nil().to_string(), "/src/public"), false),
            (
                to,
                format!(r#"{{"method":"turn/start","id":7,"params":{{"threadId":"{}"}}}}"#, Uuid::nil()),
                false,
            ),
            (
                to,
                format!(r#"{{"method":"thread/resume","id":8,"params":{{"threadId":"{}"}}}}"#, Uuid::max()),
                true,
            ),
            (from, started(8, &Uuid::max().to_string(), "/src/secret"), true),
            (from, format!(r#"{{"method":"turn/started","params":{{"threadId":"{}"}}}}"#, Uuid::max()), true),
            (to, format!(r#"{{"method":"thread/resume","id":6,"params":{{"threadId":"{PUBLIC}"}}}}"#), false),
            (from, "no JSON".to_owned(), true),
        ] {
            assert_eq!(
                rules.judge(lane, text.as_bytes()).err(),
                want.then_some(WhyMissing::LeftOut),
                "{text}"
            );
        }
    }

    #[test]
    fn forgotten_thread_and_its_forks_are_left_out() {
        let (_dir, mut rules) = rules("/src/public");
        rules.exclusions = Exclusions::default();
        assert!(rules.judge(Lane::FromAgent, SECRET.as_bytes()).is_ok());
        let vault = Vault::open(Arc::clone(rules.store.disk()));
        vault.leave_out(&[NameHash::of_session(SECRET)], steno_vault::Reason::Session, "t").unwrap();
        let fork =
            format!(r#"{{"id":1,"result":{{"thread":{{"id":"{PUBLIC}","forkedFromId":"{SECRET}"}}}}}}"#);
        let goes_on = format!(r#"{{"method":"turn/started","params":{{"threadId":"{PUBLIC}"}}}}"#);
        for text in [fork, goes_on] {
            assert_eq!(
                rules.judge(Lane::FromAgent, text.as_bytes()).err(),
                Some(WhyMissing::LeftOut),
                "{text}"
            );
        }
        assert!(rules.judge(Lane::FromAgent, br#"{"method":"x"}"#).is_ok());
    }
}
