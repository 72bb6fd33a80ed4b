//! Commit subjects are short and name the area that the commit changes. A test below breaks the rule.

use std::process::Command;

use steno_testkit::{places, skip};

/// The last commit before the rule.
const BEFORE: &str = "7eb3a26";
const SUBJECT_CHARS_MAX: usize = 72;

#[test]
fn subjects_are_short_and_name_an_area() {
    let range = format!("{BEFORE}..HEAD");
    let args = ["log", "--no-merges", "--format=%h %s", &range];
    let git = Command::new("git").args(args).current_dir(places::workspace_root()).output();
    let log = match git {
        Ok(git) if git.status.success() => String::from_utf8_lossy(&git.stdout).into_owned(),
        Ok(git) => skip!("the history of Git is not here: {}", String::from_utf8_lossy(&git.stderr).trim()),
        Err(error) => skip!("git does not run: {error}"),
    };
    let complaints: Vec<_> = log.lines().filter_map(complaint).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Returns what is wrong with a line of the log, which has an abbreviated hash and a subject.
fn complaint(line: &str) -> Option<String> {
    let (_, subject) = line.split_once(' ').unwrap_or((line, ""));
    let chars = subject.chars().count();
    if chars > SUBJECT_CHARS_MAX {
        return Some(format!("{line}: has {chars} characters, {SUBJECT_CHARS_MAX} at most"));
    }
    let is_area = |area: &str| {
        let is_part = |letter: char| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_,./ ".contains(letter)
        };
        !area.is_empty() && area.chars().all(is_part)
    };
    match subject.split_once(": ") {
        Some((area, rest)) if is_area(area) && !rest.trim().is_empty() => None,
        _ => Some(format!("{line}: is not of the form `area: what changes`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(subject: &str, want: Option<&str>) {
        let found = complaint(&format!("0123abc {subject}"));
        assert!(found.is_some() == want.is_some(), "{subject}: {found:?}");
        assert!(want.is_none_or(|want| found.is_some_and(|found| found.contains(want))), "{subject}");
    }

    #[test]
    fn long_subjects_and_those_without_an_area_are_found() {
        check("views: refuse tasks whose check passes before the change", None);
        check("app-server: say so", None);
        check(&format!("cli: {}", "x".repeat(67)), None);
        check(&format!("cli: {}", "x".repeat(68)), Some("73 characters"));
        check(&format!("cli: {}", "ü".repeat(67)), None);
        for subject in
            ["", "fix it", "Views: say so", "views:say so", "views: ", ": say so", "(views): say so"]
        {
            check(subject, Some("of the form"));
        }
    }
}
