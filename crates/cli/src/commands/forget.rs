//! `steno forget`: deletes sessions from the archive for good, after showing what goes.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use steno_journal::Store;
use steno_model::RunId;
use steno_recorder::archive::{is_project, last_written};
use steno_vault::{Manifest, Role, SourceId, Swept, Vault};
use steno_views::{Lines, count, visible};

use crate::archiving::follow::tell;
use crate::archiving::sessions::{self, all_manifests, find_sources};
use crate::args::ForgetArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, size};
use crate::runs;
use crate::settings::Settings;

/// What is to go.
struct Plan {
    manifests: Vec<Manifest>,
    runs: Vec<RunId>,
    why: String,
}

pub fn run(args: &ForgetArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let store = runs::need_store(settings)?;
    let vault = Vault::open(Arc::clone(store.disk()));
    let plan = plan(args, settings, &store, &vault)?;
    if plan.manifests.is_empty() && plan.runs.is_empty() {
        return Err(Failure::nothing("there is nothing in the archive that this names"));
    }
    show(&plan, &vault, args.json, output)?;
    if args.dry_run {
        return Ok(Exit::Done);
    }
    output.flush();
    if !args.yes {
        confirm(&plan)?;
    }
    carry_out(&plan, &store, &vault)
}

fn plan(args: &ForgetArgs, settings: &Settings, store: &Store, vault: &Vault) -> Result<Plan, Failure> {
    let made = sessions::sources_of_runs(store)?;
    let mut only = None;
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
                    Ok(_) | Err(_) => return Err(failure),
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
    Ok(Plan { manifests, runs, why })
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

fn show(plan: &Plan, vault: &Vault, as_json: bool, output: &mut Output) -> Result<(), Failure> {
    for manifest in &plan.manifests {
        let bytes = len_of(vault, manifest)?;
        let path = manifest.info.path.0.display().to_string();
        if as_json {
            let generations = manifest.generations.len();
            let source = manifest.id.to_string();
            output.json_line(
                &json!({"kind": "source", "source": source, "path": path, "bytes": bytes, "generations": generations})
                    .to_string(),
            );
        } else {
            output.line(&format!("{:>8}  {}", size(bytes), visible(&path, Lines::Escape)));
        }
    }
    let mut total = 0;
    for manifest in &plan.manifests {
        total += len_of(vault, manifest)?;
    }
    for run in &plan.runs {
        if as_json {
            output.json_line(&json!({"kind": "run", "run_id": run.to_string()}).to_string());
        } else {
            output.line(&format!("{:>8}  run {run}", ""));
        }
    }
    if !as_json {
        let files = count(plan.manifests.len() as u64, "file");
        output.line(&format!(
            "{:>8}  in all: {files}, {}",
            size(total),
            count(plan.runs.len() as u64, "run")
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
    let files = count(plan.manifests.len() as u64, "file");
    let runs = count(plan.runs.len() as u64, "run");
    let mut stderr = io::stderr();
    write!(stderr, "forget {files} and {runs} for good? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::nothing("nothing was forgotten"))
}

fn forget_sources(vault: &Vault, ids: &[SourceId], why: &str, time: &str) -> Result<Option<Swept>, Failure> {
    let forgotten = vault.forget(ids, why, time).map_err(|error| {
        let failure = Failure::from(error);
        let hint = "`steno pause` makes whoever records let go; `steno resume` afterwards";
        if failure.exit == Exit::Held { failure.with_hint(hint) } else { failure }
    })?;
    Ok(forgotten.swept)
}

fn carry_out(plan: &Plan, store: &Store, vault: &Vault) -> Outcome {
    let now = Timestamp::now();
    let ids: Vec<SourceId> = plan.manifests.iter().map(|manifest| manifest.id).collect();
    let time = steno_model::Timestamp::from_instant(now).to_string();
    let swept = if ids.is_empty() { None } else { forget_sources(vault, &ids, &plan.why, &time)? };
    for run in &plan.runs {
        store.remove_run(*run, now)?;
    }
    tell(&format!(
        "forgot {} and {}",
        count(plan.manifests.len() as u64, "file"),
        count(plan.runs.len() as u64, "run")
    ));
    if !ids.is_empty() && swept.is_none_or(|swept| swept.packs_busy > 0) {
        tell(
            "some of their bytes lie in a pack that is being written; they go with the next `steno forget`, or when recording starts again",
        );
    }
    let there: Vec<_> = plan.manifests.iter().filter(|manifest| manifest.info.path.0.exists()).collect();
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
