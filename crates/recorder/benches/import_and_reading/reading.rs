//! What commands cost that read a store, and what they cost with another version of the program, on the same corpus and in
//! the same minutes.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use steno_testkit::bench_programs::{self, Cost, MeasuredProgram, Outcome, cpu_row, median_of};
use steno_testkit::bench_report::Row;
use steno_testkit::places;

use crate::costs::peak_mb;

const ROUNDS: usize = 5;
const RATIO_MAX: f64 = 1.1;

/// The commands, by the names of their rows. `{session}` stands for the longest session, `{out}` for a fresh directory.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("ls", &["ls", "--json"]),
    ("show", &["show", "{session}"]),
    ("usage", &["usage", "--json"]),
    ("receipt", &["receipt", "export", "--thread", "{session}", "--turn", "turn-0001"]),
    ("export atif --all", &["export", "atif", "--all", "-o", "{out}"]),
];

/// Measures each command, alternating with that of the other program if there is one.
pub(crate) fn measure(corpus: &Path, dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let place = tempfile::tempdir_in(dir)?;
    let session = longest_session(corpus)?;
    let side = |program: PathBuf, name: &str| -> Outcome<Side> {
        let side = Side { program, store: place.path().join(name), corpus, session: &session };
        // Each reads what it has written itself: a store of the one may be too new for the other.
        side.cost(&["import", "--json"])?;
        Ok(side)
    };
    let after = side(bench_programs::steno(), "after")?;
    let before = bench_programs::steno_before(dir)?.map(|program| side(program, "before")).transpose()?;
    for (name, args) in COMMANDS {
        // The first command brings the index up to date, which has rows of its own.
        after.cost(args)?;
        // An older program may not have the command.
        let is_there = before.as_ref().map(|before| before.cost(args));
        let before = before.as_ref().filter(|_| is_there.as_ref().is_some_and(Result::is_ok));
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(after.cost(args)?);
            if let Some(before) = before {
                theirs.push(before.cost(args)?);
            }
        }
        take(cpu_row(format!("reading, {name}, CPU"), &ours));
        take(Row::new(format!("reading, {name}, peak memory"), peak_mb(&ours), "MB"));
        if let Some(Err(error)) = is_there {
            take(Row::not_measured(format!("reading, {name}, CPU / before's"), error.to_string()));
        } else if before.is_some() {
            take(cpu_row(format!("reading, {name}, CPU before"), &theirs));
            take(Row::new(format!("reading, {name}, peak memory before"), peak_mb(&theirs), "MB"));
            let ratio = median_of(&ours, |cost| cost.cpu_s) / median_of(&theirs, |cost| cost.cpu_s);
            take(Row::new(format!("reading, {name}, CPU / before's"), ratio, "ratio").at_most(RATIO_MAX));
        }
    }
    Ok(())
}

/// A program with the store that it has made of the corpus.
struct Side<'a> {
    program: PathBuf,
    store: PathBuf,
    corpus: &'a Path,
    session: &'a str,
}

impl Side<'_> {
    fn cost(&self, args: &[&str]) -> Outcome<Cost> {
        let out = self.store.with_extension("out");
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        let args = args.iter().map(|arg| match *arg {
            "{session}" => OsString::from(self.session),
            "{out}" => out.clone().into_os_string(),
            arg => OsString::from(arg),
        });
        let args: Vec<OsString> =
            ["--store".into(), self.store.clone().into_os_string()].into_iter().chain(args).collect();
        bench_programs::cost(&MeasuredProgram {
            program: &self.program,
            args: &args.iter().map(OsString::as_os_str).collect::<Vec<&OsStr>>(),
            home: self.corpus,
            variables: &[],
            output: &self.store.with_extension("txt"),
        })
    }
}

/// Returns the id of the session with the longest file.
fn longest_session(corpus: &Path) -> Outcome<String> {
    let projects = corpus.join(".claude/projects");
    let files = places::files_below(&projects).into_iter().map(|name| projects.join(name));
    // Files of subagents lie deeper.
    let sessions = files.filter(|path| path.parent().and_then(Path::parent) == Some(&projects));
    let longest = sessions.max_by_key(|path| fs::metadata(path).map_or(0, |about| about.len()));
    let id = longest.as_deref().and_then(Path::file_stem).ok_or("the corpus has no session")?;
    Ok(id.to_string_lossy().into_owned())
}
