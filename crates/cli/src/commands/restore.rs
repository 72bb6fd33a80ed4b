//! `steno restore`: gives an agent's files of a session back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use steno_vault::{Manifest, RestoreError, Standing, Vault};
use steno_views::{Lines, visible};

use crate::archiving::sessions::find_sources;
use crate::args::RestoreArgs;
use crate::failure::{Exit, Failure, Outcome, with_causes};
use crate::output::{Output, count, size};
use crate::runs;
use crate::settings::Settings;

/// A file to give back.
struct Planned {
    manifest: Manifest,
    generation: u32,
    len: u64,
    /// How long each generation is.
    lens: Vec<u64>,
    path: PathBuf,
    standing: Standing,
}

pub fn run(args: &RestoreArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let store = runs::need_store(settings)?;
    let vault = Vault::open(Arc::clone(store.disk()));
    let manifests = find_sources(&args.run, &store, &vault, settings)?;
    let mut plan = Vec::new();
    for (number, manifest) in manifests.into_iter().enumerate() {
        let wanted = if number == 0 { args.generation } else { None };
        plan.push(plan_for(&vault, manifest, wanted, args.to.as_deref())?);
    }
    if args.list {
        list(&plan, args.json, output);
        return Ok(Exit::Done);
    }
    let in_the_way: Vec<&Planned> = plan.iter().filter(|file| file.standing == Standing::Different).collect();
    if let Some(first) = in_the_way.first() {
        let others = in_the_way.len() - 1;
        let more =
            if others > 0 { format!(", and {} more", count(others as u64, "file")) } else { String::new() };
        return Err(Failure::nothing(format!(
            "`{}` is there and differs{more}; nothing was written",
            first.path.display()
        ))
        .with_hint("`--to DIR` writes them elsewhere"));
    }
    // Nothing is begun that cannot be done: every byte is read once before the first file is made.
    for file in plan.iter().filter(|file| file.standing == Standing::Nothing) {
        vault.read(&file.manifest, file.generation, 0, |_, _| true)?;
    }
    for file in &plan {
        if file.standing == Standing::Nothing {
            vault.restore(&file.manifest, file.generation, &file.path).map_err(failure)?;
        }
        tell(file, args.json, output);
    }
    Ok(Exit::Done)
}

fn plan_for(
    vault: &Vault,
    manifest: Manifest,
    generation: Option<u32>,
    to: Option<&Path>,
) -> Result<Planned, Failure> {
    let last = manifest.generation_last().unwrap_or_default();
    let generation = generation.unwrap_or(last);
    if generation > last {
        return Err(Failure::nothing(format!("there is no generation {generation}; the last one is {last}"))
            .with_hint("`--list` shows them"));
    }
    let path = match to {
        None => manifest.info.path.0.clone(),
        Some(dir) => std::path::absolute(dir)?.join(below_home(&manifest)),
    };
    let standing = vault.standing_at(&manifest, generation, &path).map_err(failure)?;
    let lens = (0..=last).map(|number| vault.len(&manifest, number)).collect::<Result<Vec<_>, _>>()?;
    let len = lens.get(generation as usize).copied().unwrap_or_default();
    Ok(Planned { manifest, generation, len, lens, path, standing })
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

fn list(plan: &[Planned], as_json: bool, output: &mut Output) {
    for file in plan {
        let standing = match file.standing {
            Standing::Nothing => "missing",
            Standing::Same => "same",
            Standing::Different => "differs",
        };
        if as_json {
            let generations: Vec<_> = (0..)
                .zip(file.manifest.generations.iter().zip(&file.lens))
                .map(|(number, (generation, len)): (u32, _)| {
                    json!({"generation": number, "since": generation.since, "why": generation.why, "bytes": len})
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
                })
                .to_string(),
            );
            continue;
        }
        output.line(&format!("{standing:<8} {:>8}  {}", size(file.len), shown(&file.path)));
        if file.manifest.generations.len() > 1 {
            for (number, (generation, len)) in file.manifest.generations.iter().zip(&file.lens).enumerate() {
                let (since, why) = (&generation.since, &generation.why);
                output.line(&format!("         generation {number}: since {since}, {why}, {}", size(*len)));
            }
        }
    }
}

fn tell(file: &Planned, as_json: bool, output: &mut Output) {
    let is_new = file.standing == Standing::Nothing;
    if as_json {
        let object = json!({
            "path": file.path.to_string_lossy(),
            "bytes": file.len,
            "generation": file.generation,
            "outcome": if is_new { "restored" } else { "same" },
        });
        output.json_line(&object.to_string());
    } else {
        let word = if is_new { "restored" } else { "same" };
        output.line(&format!("{word:<8} {:>8}  {}", size(file.len), shown(&file.path)));
    }
}

/// Returns a path as it can be shown: names may hold anything.
fn shown(path: &Path) -> String {
    visible(&path.display().to_string(), Lines::Escape).into_owned()
}
