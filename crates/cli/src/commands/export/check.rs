//! `steno export check`: checks ATIF trajectories and their media files.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use steno_disk::{read_host_file, read_up_to};
use steno_exports::atif::{DocumentFiles, FileLookup, Finding, Severity, validate};
use steno_views::{Lines, count, visible};

use crate::args::CheckArgs;
use crate::failure::{Exit, Failure, Outcome, cannot};
use crate::output::Output;

/// The maximum length of a document.
const INPUT_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

pub fn run(args: &CheckArgs, output: &mut Output) -> Outcome {
    let (mut invalid, mut unread) = (0, 0);
    let mut files = Vec::new();
    for path in &args.files {
        if path.is_dir() { files.extend(files_in(path)?) } else { files.push(path.clone()) }
    }
    for path in &files {
        match read(path) {
            Ok(bytes) => invalid += u64::from(!check(path, &bytes, args.json, output)),
            Err(failure) if files.len() == 1 => return Err(failure),
            Err(failure) => {
                unread += 1;
                tracing::warn!("{}", visible(&failure.message, Lines::Escape));
            }
        }
    }
    let all = count(files.len() as u64, "file");
    match (unread, invalid) {
        (0, 0) => Ok(Exit::Done),
        (0, invalid) => Err(Failure::nothing(format!("{invalid} of {all} not valid"))),
        (unread, _) => Err(Failure::could_not(format!("{unread} of {all} could not be read"))),
    }
}

/// Returns the `.json` and `.jsonl` files of a directory, sorted by name. Subdirectories have media.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: io::Error| cannot("list", dir, &error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "json" || ending == "jsonl") && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        let message = format!("`{}` has no `.json` or `.jsonl` files", dir.display());
        return Err(Failure::nothing(message));
    }
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        return read_up_to(io::stdin(), INPUT_BYTES_MAX)
            .map_err(|error| Failure::could_not(format!("cannot read stdin: {error}")));
    }
    read_host_file(path, INPUT_BYTES_MAX).map_err(|error| cannot("read", path, &error))
}

/// Checks one file, prints the findings, and returns whether it is valid.
fn check(path: &Path, bytes: &[u8], as_json: bool, output: &mut Output) -> bool {
    let is_lines = path.extension().is_some_and(|ending| ending == "jsonl");
    let documents: Vec<(Option<usize>, &[u8])> = if is_lines {
        let lines = bytes.split(|byte| *byte == b'\n').enumerate();
        lines
            .filter(|(_, line)| !line.trim_ascii().is_empty())
            .map(|(index, line)| (Some(index + 1), line))
            .collect()
    } else {
        vec![(None, bytes)]
    };
    let name = visible(&path.display().to_string(), Lines::Escape).into_owned();
    let (mut errors, mut warnings) = (0, 0);
    let mut dir = DocumentDir(path.parent().map(Path::to_owned).unwrap_or_default());
    for (line, document) in &documents {
        for finding in findings(document, &mut dir) {
            match finding.severity {
                Severity::Error => errors += 1,
                Severity::Warning => warnings += 1,
            }
            if as_json {
                let object = json!({
                    "file": path.to_string_lossy(),
                    "line": line,
                    "rule": finding.rule,
                    "severity": finding.severity.as_str(),
                    "place": finding.place,
                    "words": finding.words,
                });
                output.json_line(&object.to_string());
            } else {
                let line = line.map(|line| format!(":{line}")).unwrap_or_default();
                output.line(&format!("{name}{line}: {}", visible(&finding.to_string(), Lines::Escape)));
            }
        }
    }
    let is_valid = errors == 0 && !documents.is_empty();
    if as_json {
        let object = json!({
            "file": path.to_string_lossy(),
            "valid": is_valid,
            "trajectories": documents.len(),
            "errors": errors,
            "warnings": warnings,
        });
        output.json_line(&object.to_string());
    } else if documents.is_empty() {
        output.line(&format!("{name}: no trajectory"));
    } else if is_valid {
        let number = documents.len() as u64;
        let valid = if number == 1 { "valid".to_owned() } else { format!("{number} valid trajectories") };
        output.line(&format!("{name}: {valid}"));
    } else {
        output.line(&format!("{name}: not valid, {}", count(errors, "error")));
    }
    is_valid
}

fn findings(document: &[u8], dir: &mut DocumentDir) -> Vec<Finding> {
    match std::str::from_utf8(document) {
        Ok(text) => validate(text, dir),
        Err(error) => vec![Finding {
            rule: "json.utf8",
            severity: Severity::Error,
            place: String::new(),
            words: format!("not UTF-8 at byte {}", error.valid_up_to()),
        }],
    }
}

/// The directory that contains a document.
struct DocumentDir(PathBuf);

impl DocumentFiles for DocumentDir {
    fn file(&mut self, path: &str) -> FileLookup {
        read_host_file(&self.0.join(path), INPUT_BYTES_MAX)
            .map_or(FileLookup::Nothing, |bytes| FileLookup::file(&bytes))
    }
}
