//! `steno forget`: deletes sessions from the store permanently, after showing what will be deleted.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use steno_journal::{Journal, Store};
use steno_library::Library;
use steno_model::{RunId, ThreadId};
use steno_recorder::forget::{
    ForgetPlan, ForgetSelection, ForgetTargets, SharedFile, connection_of, finish, forget,
};
use steno_recorder::sources::follower;
use steno_vault::{ForgetReport, Manifest, Reason, Vault};
use steno_views::{Lines, count, cut, visible};

use crate::args::ForgetArgs;
use crate::connections::{forget_failure, import_leftover_connections};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, notice, size, stderr_width, wrapped_message};
use crate::recording::{journal_options, warn};
use crate::runs;
use crate::settings::Settings;
use crate::wraps::import_leftover_wraps;

/// The maximum number of sessions that are read for their titles if there is no index.
const TITLES_READ_MAX: usize = 8;
const TITLE_COLUMNS: usize = 72;

/// Warns of spines that are kept.
fn warn_of_kept_spines(plan: &ForgetPlan) {
    for thread in &plan.spines.staying {
        warn(&format!("the spine of `{thread}` also has records of other connections, and is kept"));
    }
}

/// Warns of files of the user that stay in part: of these, nothing more is archived.
fn warn_of_closed_recordings(plan: &ForgetPlan) {
    let files = plan.connections.iter().map(|shared| &shared.manifest);
    for file in files.filter(|file| connection_of(file).is_none()) {
        let path = file.info.path.0.display().to_string();
        let path = visible(&path, Lines::Escape);
        warn(&format!(
            "`{path}` also has other sessions, which are kept; what is added to this file later is not archived"
        ));
    }
}

fn words(plan: &ForgetPlan) -> String {
    let files = count(plan.manifests.len() as u64, "file");
    let runs = count(plan.runs.len() as u64, "run");
    let mut words = vec![files, runs];
    let pieces = plan.shared.iter().map(|file| file.pieces).sum();
    words.extend((!plan.spines.going.is_empty()).then(|| count(plan.spines.going.len() as u64, "spine")));
    words.extend((pieces > 0).then(|| format!("{} of shared files", count(pieces, "line"))));
    let last = words.pop().unwrap_or_default();
    format!("{} and {last}", words.join(", "))
}

pub fn run(args: &ForgetArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let store = runs::need_store(settings)?;
    let vault = Vault::open(Arc::clone(store.disk()));
    let finished = if args.dry_run { Vec::new() } else { tidy(&store, &vault, settings)? };
    let library = Library::new(Some(store.clone()));
    let plan = match plan(args, &library) {
        // The interrupted deletion may have been the requested one.
        Err(_) if !finished.is_empty() => return Ok(Exit::Done),
        plan => plan?,
    };
    if plan.is_empty() {
        warn_of_kept_spines(&plan);
        return Err(Failure::empty("no matching session in the store"));
    }
    let titles = show(&plan, &library, &vault, args, output)?;
    drop(library);
    if args.dry_run {
        return Ok(Exit::Done);
    }
    output.flush();
    if !args.yes {
        confirm(&plan, &titles)?;
    }
    carry_out(&plan, &store, &vault)
}

/// Completes interrupted deletions, and archives connections and commands that wait for it: otherwise their content
/// would come back.
fn tidy(store: &Store, vault: &Vault, settings: &Settings) -> Result<Vec<ThreadId>, Failure> {
    let finished = finish(store, vault, Timestamp::now()).map_err(forget_failure)?;
    for thread in &finished {
        notice(&format!("deleted the rest of the forgotten spine of {thread}"));
    }
    if !store.is_paused(Timestamp::now()) {
        // Archiving upgrades the store to the current format.
        let journal = Journal::new(runs::make_store(settings)?, journal_options(settings));
        import_leftover_connections(&journal, settings);
        import_leftover_wraps(&journal, settings);
    }
    Ok(finished)
}

/// Plans what to delete.
fn plan(args: &ForgetArgs, library: &Library) -> Result<ForgetPlan, Failure> {
    let wanted = match (&args.run, &args.project, args.older_than) {
        (Some(text), _, _) => ForgetSelection::session(library, text)?,
        (None, Some(project), _) => {
            ForgetSelection::project(library, &absolute(project)).map_err(forget_failure)?
        }
        (None, None, Some(age)) => {
            let before = Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN);
            ForgetSelection::older_than(library, before).map_err(forget_failure)?
        }
        (None, None, None) => return Err(Failure::usage("give a session, `--project` or `--older-than`")),
    };
    ForgetPlan::make(library, wanted).map_err(forget_failure)
}

/// Makes a relative directory absolute. Any other text may be an agent's name for a project.
fn absolute(pattern: &str) -> String {
    let is_path =
        pattern.starts_with(['.', '~']) || pattern.contains('/') && !pattern.starts_with(['/', '*', '-']);
    match std::path::absolute(pattern) {
        Ok(path) if is_path && !pattern.contains('*') => path.to_string_lossy().into_owned(),
        Ok(_) | Err(_) => pattern.to_owned(),
    }
}

/// Shows what is deleted. Returns the titles of the sessions.
fn show(
    plan: &ForgetPlan,
    library: &Library,
    vault: &Vault,
    args: &ForgetArgs,
    output: &mut Output,
) -> Result<Vec<String>, Failure> {
    let (mut total, mut titles) = (0, Vec::new());
    if !args.json {
        output.line(if args.dry_run { "would be deleted:" } else { "will be deleted:" });
    }
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
    if plan.runs.len() > TITLES_READ_MAX {
        // Bringing the index up to date is faster. If that fails, the sessions themselves are read.
        drop(library.indexed());
    }
    let owner = |run: RunId| library.relations().map_or(run, |relations| relations.owner(run));
    for run in &plan.runs {
        let title = library.title(owner(*run));
        let words =
            title.as_ref().map(|title| format!("  {}", cut(title, TITLE_COLUMNS))).unwrap_or_default();
        let object = json!({"kind": "run", "run_id": run.to_string(), "title": title});
        line(None, &format!("run {run}{words}"), object);
        titles.extend(title.filter(|title| !titles.contains(title)));
    }
    for thread in &plan.spines.going {
        let bytes = library.store()?.spine_bytes(thread)?;
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
        output.line(&format!("{:>8}  total: {}", size(total), words(plan)));
    }
    warn_of_kept_spines(plan);
    warn_of_closed_recordings(plan);
    Ok(titles)
}

/// Returns titles as words of a question.
fn title_words(titles: &[String]) -> String {
    let quoted = |title: &String| format!("\"{}\"", visible(&cut(title, TITLE_COLUMNS), Lines::Escape));
    match titles {
        [] => String::new(),
        [one] => quoted(one),
        [one, two] => format!("{} and {}", quoted(one), quoted(two)),
        [one, others @ ..] => format!("{} and {}", quoted(one), count(others.len() as u64, "other session")),
    }
}

fn len_of(vault: &Vault, manifest: &Manifest) -> Result<u64, Failure> {
    let mut bytes = 0;
    for number in 0..manifest.generations.len() {
        bytes += vault.len(manifest, u32::try_from(number).unwrap_or(u32::MAX))?;
    }
    Ok(bytes)
}

/// Asks for confirmation at the terminal.
fn confirm(plan: &ForgetPlan, titles: &[String]) -> Result<(), Failure> {
    let hint = "`--yes` skips the question, `--dry-run` only shows what would be deleted";
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("cannot ask for confirmation: stdin is not a terminal").with_hint(hint));
    }
    let mut stderr = io::stderr();
    let (titles, words) = (title_words(titles), words(plan));
    let what = if titles.is_empty() { words } else { format!("{titles} ({words})") };
    let question = wrapped_message(&format!("delete {what} permanently? [y/N]"), 0, stderr_width());
    write!(stderr, "{question} ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::empty("nothing was forgotten"))
}

/// Deletes everything. During a pause, recording processes are about to release their files: wait for them.
fn forget_when_free(
    doomed: &ForgetTargets,
    why: Reason,
    store: &Store,
    vault: &Arc<Vault>,
) -> Result<ForgetReport, Failure> {
    const WAIT: Duration = Duration::from_millis(100);
    const WAITS_MAX: u32 = 100;
    for _ in 0..WAITS_MAX {
        match forget(store, vault, doomed, why, Timestamp::now()) {
            Err(error) if error.is_held() && store.is_paused(Timestamp::now()) => std::thread::sleep(WAIT),
            done => return done.map_err(forget_failure),
        }
    }
    forget(store, vault, doomed, why, Timestamp::now()).map_err(forget_failure)
}

/// Waits for the recording process to close its pack, and deletes the rest; returns whether everything is deleted.
fn sweep_when_others_let_go(store: &Store, vault: &Vault) -> Result<bool, Failure> {
    const WAIT: Duration = Duration::from_millis(200);
    const WAITS_MAX: u32 = 75;
    if follower(&**store.disk()).is_some() {
        notice("waiting for the recording `steno` to release the last bytes");
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

fn carry_out(plan: &ForgetPlan, store: &Store, vault: &Arc<Vault>) -> Outcome {
    let doomed = plan.doomed();
    // First, because a kill between the two must not leave words in it; and again afterwards, because a search may have
    // made it in between.
    Library::new(Some(store.clone())).drop_index()?;
    let forgotten = forget_when_free(&doomed, plan.why, store, vault)?;
    Library::new(Some(store.clone())).purge_index()?;
    notice(&format!("forgot {}", words(plan)));
    let has_bytes = !doomed.sources.is_empty() || doomed.pieces_go();
    let is_left = has_bytes && forgotten.swept.is_none_or(|swept| swept.packs_busy > 0);
    if is_left && !sweep_when_others_let_go(store, vault)? {
        notice(
            "some of their bytes are in a pack that is being written; the next `steno forget` or `steno up` deletes them",
        );
    }
    // The file of a connection belonged to the store.
    let is_agents = |manifest: &&Manifest| manifest.info.path.0.exists() && connection_of(manifest).is_none();
    let there: Vec<_> = plan.manifests.iter().filter(is_agents).collect();
    if let Some(first) = there.first() {
        let path = first.info.path.0.display().to_string();
        notice(&format!(
            "the agent still has {} ({}{}); to archive {} again, run `steno import --again PATH`",
            if there.len() > 1 {
                format!("{} of these files", there.len())
            } else {
                "one of these files".to_owned()
            },
            visible(&path, Lines::Escape),
            if there.len() > 1 { " and others" } else { "" },
            if there.len() > 1 { "them" } else { "it" },
        ));
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_names_the_sessions() {
        let check = |titles: &[&str], want: &str| {
            let titles: Vec<String> = titles.iter().map(ToString::to_string).collect();
            assert_eq!(title_words(&titles), want);
        };
        check(&[], "");
        check(&["Fix the login bug"], "\"Fix the login bug\"");
        check(&["a", "b"], "\"a\" and \"b\"");
        check(&["a\u{1b}", "b", "c"], "\"a\\u{1b}\" and 2 other sessions");
    }
}
