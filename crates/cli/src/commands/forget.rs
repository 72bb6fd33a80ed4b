//! `steno forget`: deletes sessions from the archive for good, after showing what goes.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use steno_adapters::codex::session_run;
use steno_journal::{Journal, Reader, Store, run_ends};
use steno_model::{BlockContent, EventType, Payload, RunId, ThreadId, Word};
use steno_recorder::archive::{follower, is_in_project, last_written};
use steno_recorder::forgetting::{
    Belongings, Doomed, PiecesOf, SaidOf, SharedConnection, SharedFile, SpinesOf, belongings, connection_of,
    finish, forget, of_project, said_of, shared_files, spines_of,
};
use steno_vault::{Forgotten, Manifest, NameHash, Reason, Role, SourceId, Vault};
use steno_views::{Lines, count, session_run_id, visible};

use super::spine::{find_thread, thread_of};
use crate::archiving::follow::tell;
use crate::archiving::sessions::{self, all_manifests, find_sources};
use crate::archiving::{journal_options, warn};
use crate::args::ForgetArgs;
use crate::connections::{not_forgotten, settle_all};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, size};
use crate::runs;
use crate::settings::Settings;

/// What is to go.
struct Plan {
    manifests: Vec<Manifest>,
    runs: Vec<RunId>,
    spines: SpinesOf,
    /// Connections that lose what was said on threads that go.
    connections: Vec<SharedConnection>,
    /// What is not recorded again.
    names: Vec<NameHash>,
    /// Files of several sessions that lose pieces, and which.
    shared: Vec<SharedFile>,
    pieces: PiecesOf,
    why: Reason,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.manifests.is_empty()
            && self.runs.is_empty()
            && self.spines.going.is_empty()
            && self.shared.is_empty()
    }

    /// Says what stays, and what takes it.
    fn warn_of_the_rest(&self) {
        for thread in &self.spines.staying {
            warn(&format!(
                "the spine of `{thread}` has records of what goes, and of other connections: it stays"
            ));
        }
    }

    fn words(&self) -> String {
        let files = count(self.manifests.len() as u64, "file");
        let runs = count(self.runs.len() as u64, "run");
        let mut words = vec![files, runs];
        let pieces = self.shared.iter().map(|file| file.pieces).sum();
        words.extend((!self.spines.going.is_empty()).then(|| count(self.spines.going.len() as u64, "spine")));
        words.extend((pieces > 0).then(|| format!("{} of shared files", count(pieces, "line"))));
        let last = words.pop().unwrap_or_default();
        format!("{} and {last}", words.join(", "))
    }
}

pub fn run(args: &ForgetArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let store = runs::need_store(settings)?;
    let vault = Vault::open(Arc::clone(store.disk()));
    let finished = if args.dry_run { Vec::new() } else { tidy(&store, &vault, settings)? };
    let plan = match plan(args, settings, &store, &vault) {
        // What is asked for may be what was cut short.
        Err(_) if !finished.is_empty() => return Ok(Exit::Done),
        plan => plan?,
    };
    if plan.is_empty() {
        plan.warn_of_the_rest();
        return Err(Failure::nothing("there is nothing in the archive that this names"));
    }
    show(&plan, &store, &vault, args, output)?;
    if args.dry_run {
        return Ok(Exit::Done);
    }
    output.flush();
    if !args.yes {
        confirm(&plan)?;
    }
    carry_out(&plan, &store, &vault)
}

/// Completes what was begun with forgetting, and has connections archived that wait for it: what they hold would come back.
fn tidy(store: &Store, vault: &Vault, settings: &Settings) -> Result<Vec<ThreadId>, Failure> {
    let finished = finish(store, vault, Timestamp::now()).map_err(not_forgotten)?;
    for thread in &finished {
        tell(&format!("the spine of {thread} was forgotten before, and is gone now"));
    }
    if !store.is_paused(Timestamp::now()) {
        settle_all(&Journal::new(store.clone(), journal_options(settings)), settings);
    }
    Ok(finished)
}

fn plan(args: &ForgetArgs, settings: &Settings, store: &Store, vault: &Vault) -> Result<Plan, Failure> {
    let all = all_manifests(vault)?;
    let Named { seeds, run, threads: named_threads, why, mut pieces } =
        named(args, settings, (store, vault), &all)?;
    let Belongings { mut manifests, mut names } = belongings(vault, &all, &seeds).map_err(not_forgotten)?;
    let mut spines = spines_going(&manifests, (run, &named_threads), store, vault)?;
    let mut threads: BTreeSet<ThreadId> = spines.going.iter().cloned().chain(named_threads.clone()).collect();
    threads.extend(manifests.iter().filter_map(thread_of));
    let SaidOf { going: connections, shared: mut on_shared } =
        said_of(store, &all, &threads).map_err(not_forgotten)?;
    let is_new = |manifest: &Manifest| manifests.iter().all(|known| known.id != manifest.id);
    let connections: Vec<Manifest> = connections.into_iter().filter(is_new).collect();
    if !connections.is_empty() {
        manifests.extend(connections);
        spines = spines_going(&manifests, (run, &named_threads), store, vault)?;
    }
    manifests.sort_by(|one, other| one.info.path.0.cmp(&other.info.path.0));
    let going: BTreeSet<SourceId> = manifests.iter().map(|manifest| manifest.id).collect();
    let mut runs: Vec<RunId> = run.into_iter().collect();
    for (run, source) in sessions::sources_of_runs(store)? {
        let Some(source) = source else { continue };
        if (going.contains(&source) || vault.is_forgotten(source)?) && !runs.contains(&run) {
            runs.push(run);
        }
    }
    on_shared.retain(|connection| !going.contains(&connection.manifest.id));
    for run in on_shared.iter().flat_map(|connection| &connection.runs) {
        if !runs.contains(run) {
            runs.push(*run);
        }
    }
    names.extend(threads.iter().map(|thread| NameHash::of_session(thread.as_str())));
    names.extend(run.map(|run| NameHash::of_session(&run.to_string())));
    pieces.names = names.iter().copied().collect();
    find_typed(store, &runs, &mut pieces)?;
    let shared = shared_files(vault, &all, &pieces).map_err(not_forgotten)?;
    let shared: Vec<SharedFile> =
        shared.into_iter().filter(|file| !going.contains(&file.manifest.id)).collect();
    names.extend(shared.iter().flat_map(|file| &file.names));
    Ok(Plan { manifests, runs, spines, connections: on_shared, names, shared, pieces, why })
}

/// Finds lines of old histories, which do not say in which session something was typed: by the words and the directory, or
/// by the directory and the time.
fn find_typed(store: &Store, runs: &[RunId], pieces: &mut PiecesOf) -> Result<(), Failure> {
    const SLACK_MS: f64 = 5_000.0;
    for run in runs.iter().filter(|run| store.has(**run).unwrap_or(false)) {
        let mut reader = Reader::open(store, *run)?.until_now()?;
        let (mut dir, mut span) = (None, None::<(f64, f64)>);
        // What a damaged transcript says behind the damage is not known.
        while let Ok(Some(recorded)) = reader.read_next() {
            let event = recorded.event;
            dir = dir.or_else(|| dir_of(event.payload.as_str()));
            if let Some(time) = event.timestamp.instant() {
                let time = millis(time);
                let (from, to) = span.unwrap_or((time, time));
                span = Some((from.min(time), to.max(time)));
            }
            let (Word::Known(EventType::MessageUser), Payload::Message(message)) =
                (event.event_type, Payload::read(&event.payload))
            else {
                continue;
            };
            for block in message.blocks {
                if let BlockContent::Text(Some(text)) = block.content {
                    let dir = dir.clone().unwrap_or_default();
                    pieces.prompts.insert((dir, text.to_text().trim().to_owned()));
                }
            }
        }
        if let Some((dir, (from, to))) = dir.zip(span) {
            pieces.spans.push((dir, from - SLACK_MS, to + SLACK_MS));
        }
    }
    Ok(())
}

/// Returns the directory that the beginning of a run names.
fn dir_of(payload: &str) -> Option<String> {
    let payload: serde_json::Value = serde_json::from_str(payload).ok()?;
    payload.get("cwd").and_then(|dir| dir.as_str()).map(str::to_owned)
}

#[expect(clippy::cast_precision_loss, reason = "a millisecond more or less does not matter")]
fn millis(time: Timestamp) -> f64 {
    time.as_millisecond() as f64
}

/// What arguments name.
struct Named {
    /// Files of the sessions that are named.
    seeds: Vec<Manifest>,
    /// A run that was not made from a file, or whose file was forgotten before.
    run: Option<RunId>,
    /// Threads of whose sessions the archive has no file.
    threads: Vec<ThreadId>,
    why: Reason,
    /// Pieces of shared files that are named by themselves.
    pieces: PiecesOf,
}

fn named(
    args: &ForgetArgs,
    settings: &Settings,
    (store, vault): (&Store, &Vault),
    all: &[Manifest],
) -> Result<Named, Failure> {
    let (mut run, mut threads, mut pieces) = (None, Vec::new(), PiecesOf::default());
    let (seeds, why) = match (&args.run, &args.project, args.older_than) {
        (Some(text), _, _) => {
            let manifests = match find_sources(text, store, vault, settings) {
                Ok(manifests) => manifests,
                Err(failure) => {
                    match runs::find_run(text, settings) {
                        Ok(found) if store.has(found)? => run = Some(found),
                        Ok(_) | Err(_) => threads.push(thread_named(text, store)?.ok_or(failure)?),
                    }
                    Vec::new()
                }
            };
            (manifests, Reason::Session)
        }
        (None, Some(project), _) => {
            let project = &absolute(project);
            pieces.project = Some(project.clone());
            threads = threads_in(project, store)?;
            (of_project(vault, all, project).map_err(not_forgotten)?, Reason::Project)
        }
        (None, None, Some(age)) => {
            let before = Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN);
            pieces.before_ms = Some(millis(before));
            (older_than(all, before), Reason::Age)
        }
        (None, None, None) => return Err(Failure::usage("say what to forget")),
    };
    Ok(Named { seeds, run, threads, why, pieces })
}

/// Returns a directory that somebody named from where they are as it is named from anywhere. Anything else may be what an
/// agent calls a project.
fn absolute(pattern: &str) -> String {
    let is_path =
        pattern.starts_with(['.', '~']) || pattern.contains('/') && !pattern.starts_with(['/', '*', '-']);
    match std::path::absolute(pattern) {
        Ok(path) if is_path && !pattern.contains('*') => path.to_string_lossy().into_owned(),
        Ok(_) | Err(_) => pattern.to_owned(),
    }
}

/// Finds the threads that were on connections, and in a project.
fn threads_in(project: &str, store: &Store) -> Result<Vec<ThreadId>, Failure> {
    let mut threads = Vec::new();
    for run in store.runs()? {
        let Ok(ends) = run_ends(store, run) else { continue };
        let Some((first, _)) = ends.events else { continue };
        let dir = dir_of(first.payload.as_str());
        if dir.is_some_and(|dir| is_in_project(project, &dir))
            && let Some(session) = session_run_id(&first)
        {
            threads.extend(ThreadId::parse(&session.to_string()));
        }
    }
    Ok(threads)
}

/// Finds a thread that has a spine, or that was on a connection.
fn thread_named(text: &str, store: &Store) -> Result<Option<ThreadId>, Failure> {
    if let Ok(thread) = find_thread(text, store) {
        return Ok(Some(thread));
    }
    let shown = sessions::shown(text, store)?;
    let Some(first) = shown.first().filter(|first| shown.iter().all(|other| other.session == first.session))
    else {
        return Ok(None);
    };
    // A thread that is no UUID has to be given whole.
    let is_named = session_run(text) == first.session;
    let name = if is_named { text.to_owned() } else { first.session.to_string() };
    Ok(ThreadId::parse(&name).ok())
}

fn spines_going(
    manifests: &[Manifest],
    (run, threads): (Option<RunId>, &[ThreadId]),
    store: &Store,
    vault: &Vault,
) -> Result<SpinesOf, Failure> {
    let mut spines = spines_of(store, vault, manifests).map_err(not_forgotten)?;
    // A run of Codex is called what its thread is.
    let is_its =
        |of: &ThreadId| run.is_some_and(|run| run.to_string() == of.as_str()) || threads.contains(of);
    spines.going.extend(store.spines()?.into_iter().filter(is_its));
    spines.going.sort();
    spines.going.dedup();
    spines.staying.retain(|of| !spines.going.contains(of));
    Ok(spines)
}

/// Returns the files of sessions none of which was written to since.
fn older_than(manifests: &[Manifest], before: Timestamp) -> Vec<Manifest> {
    let key = |manifest: &Manifest| {
        let session = manifest.info.session.as_deref();
        NameHash::of_session(session.unwrap_or(&manifest.id.to_string()))
    };
    let is_young = |manifest: &&Manifest| last_written(manifest).is_none_or(|written| written >= before);
    let young: BTreeSet<_> = manifests.iter().filter(is_young).map(key).collect();
    // What belongs to no session is nobody's to judge by age.
    let is_old = |manifest: &&Manifest| {
        let is_of_a_session = manifest.info.role != Role::Shared || manifest.info.session.is_some();
        is_of_a_session && !young.contains(&key(manifest))
    };
    manifests.iter().filter(is_old).cloned().collect()
}

fn show(
    plan: &Plan,
    store: &Store,
    vault: &Vault,
    args: &ForgetArgs,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut total = 0;
    let mut line = |bytes: Option<u64>, words: &str, object: serde_json::Value| {
        total += bytes.unwrap_or(0);
        if args.json {
            output.json_line(&object.to_string());
        } else {
            let bytes = bytes.map(size).unwrap_or_default();
            output.line(&format!("{bytes:>8}  {}", visible(words, Lines::Escape)));
        }
    };
    for manifest in &plan.manifests {
        let bytes = len_of(vault, manifest)?;
        let path = manifest.info.path.0.display().to_string();
        let (source, generations) = (manifest.id.to_string(), manifest.generations.len());
        let object = json!({"kind": "source", "source": source, "path": path, "bytes": bytes, "generations": generations});
        line(Some(bytes), &path, object);
    }
    for run in &plan.runs {
        line(None, &format!("run {run}"), json!({"kind": "run", "run_id": run.to_string()}));
    }
    for thread in &plan.spines.going {
        let bytes = store.spine_bytes(thread)?;
        let object = json!({"kind": "spine", "thread_id": thread.as_str(), "bytes": bytes});
        line(Some(bytes), &format!("spine {thread}"), object);
    }
    for SharedFile { manifest, pieces, .. } in &plan.shared {
        let path = manifest.info.path.0.display().to_string();
        let words = format!("{} of {path}", count(*pieces, "line"));
        let object =
            json!({"kind": "shared", "source": manifest.id.to_string(), "path": path, "pieces": pieces});
        line(None, &words, object);
    }
    if !args.json {
        output.line(&format!("{:>8}  in all: {}", size(total), plan.words()));
    }
    plan.warn_of_the_rest();
    Ok(())
}

fn len_of(vault: &Vault, manifest: &Manifest) -> Result<u64, Failure> {
    let mut bytes = 0;
    for number in 0..manifest.generations.len() {
        bytes += vault.len(manifest, u32::try_from(number).unwrap_or(u32::MAX))?;
    }
    Ok(bytes)
}

/// Asks whoever sits at the terminal.
fn confirm(plan: &Plan) -> Result<(), Failure> {
    let hint = "`--yes` does not ask, `--dry-run` only shows";
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("nobody is here to be asked").with_hint(hint));
    }
    let mut stderr = io::stderr();
    write!(stderr, "forget {} for good? [y/N] ", plan.words())?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::nothing("nothing was forgotten"))
}

/// Has everything forgotten. During a pause, whoever records is about to let go of what it holds.
fn forget_when_free(
    doomed: &Doomed,
    why: Reason,
    store: &Store,
    vault: &Arc<Vault>,
) -> Result<Forgotten, Failure> {
    const WAIT: Duration = Duration::from_millis(100);
    const WAITS_MAX: u32 = 100;
    for _ in 0..WAITS_MAX {
        match forget(store, vault, doomed, why, Timestamp::now()) {
            Err(error) if error.is_held() && store.is_paused(Timestamp::now()) => std::thread::sleep(WAIT),
            done => return done.map_err(not_forgotten),
        }
    }
    forget(store, vault, doomed, why, Timestamp::now()).map_err(not_forgotten)
}

/// Waits for whoever records to close its pack, and deletes what is left in it; says whether all of it is gone.
fn sweep_when_others_let_go(store: &Store, vault: &Vault) -> Result<bool, Failure> {
    const WAIT: Duration = Duration::from_millis(200);
    const WAITS_MAX: u32 = 75;
    if follower(&**store.disk()).is_some() {
        tell("waiting for the `steno` that is recording to let go of the last bytes");
        for _ in 0..WAITS_MAX {
            std::thread::sleep(WAIT);
            vault.sweep_if_needed()?;
            if !vault.is_sweep_due()? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn carry_out(plan: &Plan, store: &Store, vault: &Arc<Vault>) -> Outcome {
    let sources: Vec<SourceId> = plan.manifests.iter().map(|manifest| manifest.id).collect();
    let connections = plan.manifests.iter().filter_map(connection_of);
    let doomed = Doomed {
        connections: connections.collect(),
        runs: plan.runs.clone(),
        threads: plan.spines.going.clone(),
        sources,
        names: plan.names.clone(),
        shared: plan.shared.clone(),
        shared_connections: plan.connections.clone(),
        pieces: plan.pieces.clone(),
    };
    let forgotten = forget_when_free(&doomed, plan.why, store, vault)?;
    tell(&format!("forgot {}", plan.words()));
    let has_bytes = !doomed.sources.is_empty() || doomed.pieces_go();
    let is_left = has_bytes && forgotten.swept.is_none_or(|swept| swept.packs_busy > 0);
    if is_left && !sweep_when_others_let_go(store, vault)? {
        tell(
            "some of their bytes lie in a pack that is being written; they go with the next `steno forget`, or when recording starts again",
        );
    }
    // The file of a connection was the store's own.
    let is_agents = |manifest: &&Manifest| manifest.info.path.0.exists() && connection_of(manifest).is_none();
    let there: Vec<_> = plan.manifests.iter().filter(is_agents).collect();
    if let Some(first) = there.first() {
        let path = first.info.path.0.display().to_string();
        tell(&format!(
            "the agent still has {} ({}{}); {} not archived again unless `steno import --again PATH` names {}",
            if there.len() > 1 {
                format!("{} of these files", there.len())
            } else {
                "one of these files".to_owned()
            },
            visible(&path, Lines::Escape),
            if there.len() > 1 { " and others" } else { "" },
            if there.len() > 1 { "they are" } else { "it is" },
            if there.len() > 1 { "them" } else { "it" },
        ));
    }
    Ok(Exit::Done)
}
