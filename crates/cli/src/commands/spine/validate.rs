//! `steno spine validate`: checks spines and bundles. With `--repair` it seals what a crash left open.

use std::rc::Rc;

use anstyle::{AnsiColor, Style};
use serde_json::json;
use steno_library::{SpineTarget, open_directory};
use steno_spine::{Finding, Repair, Report, Severity, repair_directory, repair_spine};
use steno_views::{Lines, count, visible};

use super::target;
use crate::args::SpineValidateArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, size};
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &SpineValidateArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let (mut checked, mut invalid) = (0, 0);
    for target in targets(args, settings)? {
        let name = target.name();
        let (report, repairs) =
            if args.repair { repair(&target, settings)? } else { (target.validate()?, Vec::new()) };
        checked += 1;
        invalid += u64::from(!report.is_valid());
        tell(&name, &report, &repairs, args.json, output);
    }
    if checked == 0 {
        return Err(super::no_spines());
    }
    if invalid > 0 {
        let message = match checked {
            1 => "the spine is not valid".to_owned(),
            _ => format!("{invalid} of {} are not valid", count(checked, "spine")),
        };
        let failure = Failure::nothing(message);
        let hint = "nothing was changed: only what a crash left open can be repaired";
        return Err(if args.repair { failure.with_hint(hint) } else { failure });
    }
    Ok(Exit::Done)
}

fn targets(args: &SpineValidateArgs, settings: &Settings) -> Result<Vec<SpineTarget>, Failure> {
    let Some(text) = &args.what else {
        let library = Rc::new(runs::need_library(settings)?);
        let threads = library.spines()?.into_iter();
        return Ok(threads.map(|thread| SpineTarget::Thread(Rc::clone(&library), thread)).collect());
    };
    Ok(vec![target::find(text, settings)?])
}

fn repair(target: &SpineTarget, settings: &Settings) -> Result<(Report, Vec<Repair>), Failure> {
    let now = jiff::Timestamp::now();
    let (report, repairs) = match target {
        SpineTarget::Thread(_, thread) => repair_spine(&runs::make_store(settings)?, thread, now)?,
        SpineTarget::Directory(path) => repair_directory(&open_directory(path)?, now)?,
        SpineTarget::Tar(path) => {
            let message =
                format!("`{}` is a bundle in a file, and only directories can be repaired", path.display());
            return Err(Failure::usage(message).with_hint("unpack it, and use the directory"));
        }
    };
    // The repair has changed the findings.
    let now = if repairs.is_empty() { report } else { target.validate()? };
    Ok((now, repairs))
}

fn tell(name: &str, report: &Report, repairs: &[Repair], as_json: bool, output: &mut Output) {
    for repair in repairs {
        if as_json {
            output.json_line(&repair_json(name, repair));
        } else {
            output.line(&visible(&repair_words(repair), Lines::Escape));
        }
    }
    for finding in &report.findings {
        if as_json {
            output.json_line(&finding_json(name, finding));
        } else {
            output.line(&finding_line(finding));
        }
    }
    if as_json { output.json_line(&verdict_json(name, report)) } else { output.line(&verdict(name, report)) }
}

fn finding_line(finding: &Finding) -> String {
    let style = match finding.severity {
        Severity::Error => AnsiColor::Red.on_default().bold(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Info => Style::new(),
    };
    let severity = finding.severity.as_str();
    let padding = " ".repeat("warning".len() - severity.len());
    let place = match finding.place.offset {
        Some(offset) => format!("{} (byte {offset})", finding.place),
        None => finding.place.to_string(),
    };
    let words = format!("{}  {place}: {}", finding.rule.as_str(), finding.words);
    format!("{style}{severity}{style:#}{padding}  {}", visible(&words, Lines::Escape))
}

fn finding_json(name: &str, finding: &Finding) -> String {
    json!({
        "name": name,
        "rule": finding.rule.as_str(),
        "severity": finding.severity.as_str(),
        "file": finding.place.file,
        "line": finding.place.line,
        "offset": finding.place.offset,
        "words": finding.words,
    })
    .to_string()
}

fn repair_words(repair: &Repair) -> String {
    match repair {
        Repair::Sealed { file, records } => format!("sealed   {file}: {}", count(*records, "record")),
        Repair::SetAside { file, bytes, kept } => {
            format!("kept     {file}: a torn end of {} is now in `{kept}`", count(*bytes, "byte"))
        }
    }
}

fn repair_json(name: &str, repair: &Repair) -> String {
    match repair {
        Repair::Sealed { file, records } => {
            json!({"name": name, "repaired": "sealed", "file": file, "records": records})
        }
        Repair::SetAside { file, bytes, kept } => {
            json!({"name": name, "repaired": "set_aside", "file": file, "bytes": bytes, "kept": kept})
        }
    }
    .to_string()
}

fn verdict(name: &str, report: &Report) -> String {
    let name = visible(name, Lines::Escape);
    let mut words = format!(
        "{}, {}, {}",
        count(report.segments, "segment"),
        count(report.records, "record"),
        size(report.bytes)
    );
    for (number, noun) in [(report.errors, "error"), (report.warnings, "warning")] {
        if number > 0 {
            words.push_str(&format!(", {}", count(number, noun)));
        }
    }
    if report.is_valid() {
        let good = AnsiColor::Green.on_default();
        let sealed = if report.sealed == report.segments { ", sealed" } else { "" };
        return format!("{good}valid{good:#}    {name}  {words}{sealed}");
    }
    let bad = AnsiColor::Red.on_default().bold();
    format!("{bad}INVALID{bad:#}  {name}  {words}")
}

fn verdict_json(name: &str, report: &Report) -> String {
    json!({
        "name": name,
        "valid": report.is_valid(),
        "thread_id": report.thread,
        "segments": report.segments,
        "sealed": report.sealed,
        "records": report.records,
        "bytes": report.bytes,
        "errors": report.errors,
        "warnings": report.warnings,
        "infos": report.infos,
    })
    .to_string()
}
