//! `steno restore`: writes the files of a session back.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use steno_library::{Library, LossKind, SourceTarget, Target, TargetKind};
use steno_model::{RunId, with_causes};
use steno_session::Content;
use steno_vault::{Manifest, RestoreError, RestoreTarget, Sighting, Vault};
use steno_views::digest::SessionDigest;
use steno_views::{Lines, count, visible};

use crate::args::RestoreArgs;
use crate::failure::{Exit, Failure, Outcome, cannot};
use crate::output::{Output, notice, notice_command, size};
use crate::resume::resume_command;
use crate::runs;
use crate::settings::Settings;

/// How many replaced files are kept beside one.
const ASIDE_MAX: u32 = 1000;

/// A file to restore.
struct RestoreItem {
    manifest: Manifest,
    generation: u32,
    len: u64,
    /// How long each generation is.
    lens: Vec<u64>,
    path: PathBuf,
    standing: RestoreTarget,
}

pub fn run(args: &RestoreArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let library = runs::need_library(settings)?;
    let manifests = files_of(&args.run, &library)?;
    let mut manifests = manifests;
    if args.to.is_none() && !args.list {
        // The recordings of `steno` were in the store, where nothing is to be written.
        let store = settings.store.value.canonicalize()?;
        manifests.retain(|file| !file.info.path.0.starts_with(&store));
    }
    if manifests.is_empty() {
        return Err(Failure::nothing("this session has no file of an agent, only a recording in the store")
            .with_hint("`--to DIR` writes the recording to a directory"));
    }
    let vault = library.vault()?;
    let paths = paths_for(&manifests, args.to.as_deref())?;
    let mut plan = Vec::new();
    for (number, (manifest, path)) in manifests.into_iter().zip(paths).enumerate() {
        let wanted = if number == 0 { args.generation } else { None };
        plan.push(plan_for(vault, manifest, wanted, path)?);
    }
    if args.list {
        list(&plan, args.json, output);
        return Ok(Exit::Done);
    }
    let in_the_way: Vec<&RestoreItem> =
        plan.iter().filter(|file| file.standing == RestoreTarget::Different).collect();
    if let (Some(first), false) = (in_the_way.first(), args.replace) {
        let others = in_the_way.len() - 1;
        let more =
            if others > 0 { format!(", and {} more", count(others as u64, "file")) } else { String::new() };
        return Err(Failure::nothing(format!(
            "`{}` exists and differs from the stored file{more}; nothing was written",
            first.path.display()
        ))
        .with_hint("`--replace` keeps it aside and writes the stored file, `--to DIR` writes elsewhere"));
    }
    // Every byte is read once before the first file is written, so that nothing is restored in part.
    for file in plan.iter().filter(|file| file.standing != RestoreTarget::Same) {
        vault.read(&file.manifest, file.generation, 0, |_, _| true)?;
    }
    let is_in_place = args.to.is_none();
    let resume = if is_in_place { resume_words(&args.run, &library) } else { None };
    let is_last = is_in_place && args.generation.is_none();
    let earlier = || if is_last { earlier_version(&args.run, &library, settings) } else { None };
    // What is left of a file is no restored session.
    let is_left =
        plan.first().is_some_and(|file| file.standing == RestoreTarget::Same) && earlier().is_some();
    for file in plan.iter().skip(usize::from(is_left && !args.json)) {
        let aside = match file.standing {
            RestoreTarget::Different => Some(keep_aside(&file.path)?),
            RestoreTarget::Absent | RestoreTarget::Same => None,
        };
        if file.standing != RestoreTarget::Same {
            vault.restore(&file.manifest, file.generation, &file.path).map_err(failure)?;
        }
        print_outcome(file, aside.as_deref(), resume.as_deref(), args.json, output);
    }
    output.flush();
    match (earlier(), resume) {
        (Some(earlier), _) if is_left => return Err(earlier),
        (Some(earlier), _) => notice(&earlier.hint.unwrap_or(earlier.message)),
        (None, Some(resume)) if !args.json => notice_command(&format!("resume it with: {resume}")),
        (None, _) => {}
    }
    Ok(Exit::Done)
}

/// Returns the failure to restore a session whose last version lacks something that an earlier one has.
fn earlier_version(text: &str, library: &Library, settings: &Settings) -> Option<Failure> {
    let root = root_of(text, library)?;
    let loss = library.file_loss(root).filter(|loss| loss.generation.is_some())?;
    let command = loss.restore_command(&root.to_string(), &settings.store_flags());
    let kind = if loss.kind == LossKind::Shortened { "shorter" } else { "rewritten" };
    let failure = Failure::nothing(format!("not restored: a {kind} file is at `{}`", loss.path.display()));
    Some(failure.with_hint(format!("`{command}` restores the earlier version")))
}

/// Returns the connection files of a session that has no file of its agent.
fn recorded_files(text: &str, library: &Library) -> Result<Vec<Manifest>, Failure> {
    let Target::Session(session) = library.resolve(text, TargetKind::Session)? else { return Ok(Vec::new()) };
    let connections = library.connections()?;
    let mut files: Vec<Manifest> = Vec::new();
    for run in library.runs_of(session)? {
        let of_run = library.sources_of(run)?;
        files.extend(of_run.into_iter().filter(|file| connections.contains(&file.id)));
    }
    files.sort_by_key(|file| file.id);
    files.dedup_by_key(|file| file.id);
    Ok(files)
}

/// Finds the files of what an argument names.
fn files_of(text: &str, library: &Library) -> Result<Vec<Manifest>, Failure> {
    let what = match library.resolve_sources(text)? {
        SourceTarget::Files(manifests) => return Ok(manifests),
        SourceTarget::Run(run) => format!("run {run}"),
        SourceTarget::Thread(thread) => format!("thread {thread}"),
    };
    let recorded = recorded_files(text, library)?;
    if !recorded.is_empty() {
        return Ok(recorded);
    }
    Err(Failure::nothing(format!("{what} was not derived from an agent's file"))
        .with_hint("only sessions that `steno up`, `import` or `watch` has archived have files to restore"))
}

/// Returns the destination of each file; no two are the same.
fn paths_for(manifests: &[Manifest], to: Option<&Path>) -> Result<Vec<PathBuf>, Failure> {
    let mut paths: Vec<PathBuf> = manifests.iter().map(|manifest| manifest.info.path.0.clone()).collect();
    if let Some(dir) = to {
        let dir = std::path::absolute(dir)?;
        let mut shared: HashMap<PathBuf, u32> = HashMap::new();
        let below: Vec<PathBuf> = manifests.iter().map(below_home).collect();
        for path in &below {
            *shared.entry(path.clone()).or_default() += 1;
        }
        for (path, below) in paths.iter_mut().zip(below) {
            // Files with the same name from several places keep their whole path.
            let whole = || path.strip_prefix("/").unwrap_or(path).to_owned();
            *path = dir.join(if shared[&below] > 1 { whole() } else { below });
        }
    }
    match clash(&paths) {
        None => Ok(paths),
        Some((one, other)) => {
            let was = |index: usize| manifests[index].info.path.0.display().to_string();
            Err(Failure::nothing(format!(
                "`{}` and `{}` cannot both be restored, to `{}` and `{}`; nothing was written",
                was(one),
                was(other),
                paths[one].display(),
                paths[other].display()
            ))
            .with_hint("give the path of one of them instead of RUN"))
        }
    }
}

/// Finds two paths that are equal, or one below the other.
fn clash(paths: &[PathBuf]) -> Option<(usize, usize)> {
    let mut at: HashMap<&Path, usize> = HashMap::new();
    for (index, path) in paths.iter().enumerate() {
        at.entry(path).or_insert(index);
    }
    (0..paths.len()).find_map(|index| {
        let above = paths[index].ancestors().find_map(|path| at.get(path).copied().filter(|at| *at != index));
        above.map(|above| (above, index))
    })
}

fn plan_for(
    vault: &Vault,
    manifest: Manifest,
    generation: Option<u32>,
    path: PathBuf,
) -> Result<RestoreItem, Failure> {
    let last = manifest.generation_last().unwrap_or_default();
    let generation = generation.unwrap_or(last);
    if generation > last {
        return Err(Failure::nothing(format!("there is no generation {generation}; the last one is {last}"))
            .with_hint("`--list` shows them"));
    }
    let standing = vault.restore_target(&manifest, generation, &path).map_err(failure)?;
    let lens = (0..=last).map(|number| vault.len(&manifest, number)).collect::<Result<Vec<_>, _>>()?;
    let len = lens.get(generation as usize).copied().unwrap_or_default();
    Ok(RestoreItem { manifest, generation, len, lens, path, standing })
}

/// Returns a file's path below its agent's home, or its name.
fn below_home(manifest: &Manifest) -> PathBuf {
    let path = &manifest.info.path.0;
    let home = manifest.info.home.as_ref();
    let below = home.and_then(|home| path.strip_prefix(&home.0).ok()).map(Path::to_owned);
    below.unwrap_or_else(|| PathBuf::from(path.file_name().unwrap_or_default()))
}

fn failure(error: RestoreError) -> Failure {
    match error {
        RestoreError::Vault(error) => error.into(),
        error @ RestoreError::InTheWay { .. } => Failure::nothing(with_causes(&error)),
        error @ RestoreError::System { .. } => Failure::could_not(with_causes(&error)),
    }
}

fn list(plan: &[RestoreItem], as_json: bool, output: &mut Output) {
    for file in plan {
        let (standing, words) = match file.standing {
            RestoreTarget::Absent => ("missing", "not on disk"),
            RestoreTarget::Same => ("same", "on disk"),
            RestoreTarget::Different => ("differs", "differs on disk"),
        };
        if as_json {
            let generations: Vec<_> = (0..)
                .zip(file.manifest.generations.iter().zip(&file.lens))
                .map(|(number, (generation, len)): (u32, _)| {
                    let since = &generation.since;
                    json!({
                        "generation": number,
                        "since": since.time,
                        "modified": since.modified,
                        "why": generation.why,
                        "bytes": len,
                    })
                })
                .collect();
            output.json_line(
                &json!({
                    "path": file.path.to_string_lossy(),
                    "source": file.manifest.id.to_string(),
                    "role": file.manifest.info.role,
                    "bytes": file.len,
                    "generations": generations,
                    "standing": standing,
                    "filtered": file.manifest.info.is_filtered,
                })
                .to_string(),
            );
            continue;
        }
        output.line(&format!("{words:<15}  {:>8}  {}{}", size(file.len), shown(&file.path), filtered(file)));
        if file.manifest.generations.len() > 1 {
            for (number, (generation, len)) in file.manifest.generations.iter().zip(&file.lens).enumerate() {
                let (since, why) = (since_words(&generation.since), &generation.why);
                output.line(&format!("                 generation {number}: {since}, {why}, {}", size(*len)));
            }
        }
    }
}

/// Describes when a generation was first seen. The modification time of the file is no proof, and is shown as such.
fn since_words(since: &Sighting) -> String {
    match (&since.time, &since.modified) {
        (Some(time), _) => format!("since {time}"),
        (None, Some(modified)) => format!("file modified {modified}"),
        (None, None) => "since an unknown time".to_owned(),
    }
}

fn print_outcome(
    file: &RestoreItem,
    aside: Option<&Path>,
    resume: Option<&str>,
    as_json: bool,
    output: &mut Output,
) {
    let (outcome, words) = match file.standing {
        RestoreTarget::Absent => ("restored", "restored"),
        RestoreTarget::Same => ("same", "already there"),
        RestoreTarget::Different => ("replaced", "replaced"),
    };
    if as_json {
        let object = json!({
            "path": file.path.to_string_lossy(),
            "bytes": file.len,
            "generation": file.generation,
            "outcome": outcome,
            "kept_aside": aside.map(|path| path.to_string_lossy()),
            "filtered": file.manifest.info.is_filtered,
            "resume": resume,
        });
        output.json_line(&object.to_string());
        return;
    }
    output.line(&format!("{words:<13}  {:>8}  {}{}", size(file.len), shown(&file.path), filtered(file)));
    if let Some(aside) = aside {
        output.line(&format!("{:<13}  {:>8}  {}", "kept aside", "", shown(aside)));
    }
}

/// Gives a file that is in the way another name, beside its own.
fn keep_aside(path: &Path) -> Result<PathBuf, Failure> {
    for number in 1..=ASIDE_MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".replaced-{number}"));
        let aside = PathBuf::from(name);
        // A name that is taken is never used: what stands there may be the only copy.
        if aside.symlink_metadata().is_err() {
            std::fs::rename(path, &aside).map_err(|error| cannot("rename", path, &error))?;
            return Ok(aside);
        }
    }
    Err(Failure::could_not(format!("too many files are kept aside beside `{}`", path.display())))
}

/// Returns the command that resumes a session in its agent, if it is known.
fn resume_words(text: &str, library: &Library) -> Option<String> {
    let digest = SessionDigest::of(&library.session(root_of(text, library)?, Content::ForReceipts).ok()?);
    resume_command(&digest)
}

/// Returns the top-level session of what was named.
fn root_of(text: &str, library: &Library) -> Option<RunId> {
    let Target::Session(session) = library.resolve(text, TargetKind::Session).ok()? else { return None };
    Some(library.relations().ok()?.root(session))
}

/// Returns a remark for a file that is stored without some lines.
fn filtered(file: &RestoreItem) -> &'static str {
    if file.manifest.info.is_filtered { ", without lines of excluded or forgotten sessions" } else { "" }
}

/// Returns a path as it can be shown: names may hold anything.
fn shown(path: &Path) -> String {
    visible(&path.display().to_string(), Lines::Escape).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_and_nested_paths_clash() {
        let check = |paths: &[&str], want| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            assert_eq!(clash(&paths), want, "{paths:?}");
        };
        check(&[], None);
        check(&["/a/b", "/a/bc", "/a/c/b"], None);
        check(&["/a/b", "/c", "/a/b"], Some((0, 2)));
        check(&["/a/b/c", "/a/b"], Some((1, 0)));
    }
}
