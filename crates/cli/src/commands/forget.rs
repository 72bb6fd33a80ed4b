//! `steno forget`: deletes sessions from the archive for good, after showing what goes.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use steno_journal::{Journal, Store};
use steno_model::{RunId, ThreadId};
use steno_recorder::archive::{is_project, last_written};
use steno_recorder::forgetting::{Doomed, SpinesOf, connection_of, finish, forget, spines_of};
use steno_vault::{Manifest, Role, SourceId, Vault};
use steno_views::{Lines, count, visible};

use super::spine::find_thread;
use crate::archiving::follow::tell;
use crate::archiving::sessions::{self, all_manifests, find_sources};
use crate::archiving::{journal_options, pausing, warn};
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
    why: String,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.manifests.is_empty() && self.runs.is_empty() && self.spines.going.is_empty()
    }

    fn words(&self) -> String {
        let files = count(self.manifests.len() as u64, "file");
        let runs = count(self.runs.len() as u64, "run");
        match self.spines.going.len() as u64 {
            0 => format!("{files} and {runs}"),
            spines => format!("{files}, {runs} and {}", count(spines, "spine")),
        }
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
    if !pausing::is_paused(&**store.disk()) {
        settle_all(&Journal::new(store.clone(), journal_options(settings)), settings);
    }
    Ok(finished)
}

fn plan(args: &ForgetArgs, settings: &Settings, store: &Store, vault: &Vault) -> Result<Plan, Failure> {
    let made = sessions::sources_of_runs(store)?;
    let mut only = None;
    let mut alone = None;
    let (manifests, why) = match (&args.run, &args.project, args.older_than) {
        (Some(text), _, _) => {
            let manifests = match find_sources(text, store, vault, settings) {
                Ok(manifests) => manifests,
                // A run that was recorded and not made from files, or one whose files were forgotten before.
                Err(failure) => match runs::find_run(text, settings) {
                    Ok(run) if store.has(run)? => {
                        only = Some(run);
                        Vec::new()
                    }
                    // A spine that was made from a file which the archive has not.
                    Ok(_) | Err(_) => match find_thread(text, store) {
                        Ok(thread) => {
                            alone = Some(thread);
                            Vec::new()
                        }
                        Err(_) => return Err(failure),
                    },
                },
            };
            (manifests, text.clone())
        }
        (None, Some(project), _) => {
            let of_project = |manifest: &Manifest| is_project(project, &manifest.info);
            (all_manifests(vault)?.into_iter().filter(of_project).collect(), format!("project {project}"))
        }
        (None, None, Some(age)) => {
            let before = Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN);
            (older_than(all_manifests(vault)?, before), format!("older than {}", before.strftime("%Y-%m-%d")))
        }
        (None, None, None) => return Err(Failure::usage("say what to forget")),
    };
    let mut manifests = manifests;
    manifests.sort_by(|one, other| one.info.path.0.cmp(&other.info.path.0));
    let going: BTreeSet<SourceId> = manifests.iter().map(|manifest| manifest.id).collect();
    let mut runs: Vec<RunId> = only.into_iter().collect();
    for (run, source) in made {
        let Some(source) = source else { continue };
        if (going.contains(&source) || vault.is_forgotten(source)?) && !runs.contains(&run) {
            runs.push(run);
        }
    }
    let mut spines = spines_of(store, vault, &manifests).map_err(not_forgotten)?;
    // A run of Codex is called what its thread is.
    let is_its = |thread: &ThreadId| only.is_some_and(|run| run.to_string() == thread.as_str());
    spines.going.extend(store.spines()?.into_iter().filter(is_its).chain(alone));
    spines.going.sort();
    spines.going.dedup();
    Ok(Plan { manifests, runs, spines, why })
}

/// Returns the files of sessions none of which was written to since.
fn older_than(manifests: Vec<Manifest>, before: Timestamp) -> Vec<Manifest> {
    let key = |manifest: &Manifest| {
        let session = manifest.info.session.clone().unwrap_or_else(|| manifest.id.to_string());
        (manifest.info.provider.clone(), session)
    };
    let is_young = |manifest: &&Manifest| last_written(manifest).is_none_or(|written| written >= before);
    let young: BTreeSet<_> = manifests.iter().filter(is_young).map(key).collect();
    // What belongs to no session is nobody's to judge by age.
    let is_old = |manifest: &Manifest| manifest.info.role != Role::Shared && !young.contains(&key(manifest));
    manifests.into_iter().filter(is_old).collect()
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
    if !args.json {
        output.line(&format!("{:>8}  in all: {}", size(total), plan.words()));
    }
    for thread in &plan.spines.staying {
        warn(&format!(
            "the spine of `{thread}` has records of what goes, and of other connections: it stays"
        ));
    }
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

fn carry_out(plan: &Plan, store: &Store, vault: &Vault) -> Outcome {
    let sources: Vec<SourceId> = plan.manifests.iter().map(|manifest| manifest.id).collect();
    let connections = plan.manifests.iter().filter_map(connection_of);
    let doomed = Doomed {
        connections: connections.collect(),
        runs: plan.runs.clone(),
        threads: plan.spines.going.clone(),
        sources,
    };
    let forgotten = forget(store, vault, &doomed, &plan.why, Timestamp::now()).map_err(not_forgotten)?;
    tell(&format!("forgot {}", plan.words()));
    if !doomed.sources.is_empty() && forgotten.swept.is_none_or(|swept| swept.packs_busy > 0) {
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
            "the agent still has {} ({}{}); they are not archived again unless `steno import --again PATH` names them",
            count(there.len() as u64, "of these file"),
            visible(&path, Lines::Escape),
            if there.len() > 1 { " and others" } else { "" },
        ));
    }
    Ok(Exit::Done)
}
