//! A first import, and one with nothing new, beside agentsview on the same files and in the same minutes.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use steno_testkit::bench_programs::{self, Cost, Measured, Outcome};
use steno_testkit::bench_report::{Row, float, median, rounded, target_dir};
use steno_testkit::{places, tool};

use crate::skipped;

const ROUNDS: usize = 3;
const FIRST_CPU_S_MAX: f64 = 3.5;
const FIRST_PEAK_MB_MAX: f64 = 64.0;
const AGAIN_CPU_S_MAX: f64 = 0.05;
const VAULT_SHARE_MAX: f64 = 0.25;
const AGENTSVIEW: &str = "agentsview==0.46.1";

/// Measures both, alternating: each time a fresh store, then the same again.
pub(crate) fn measure(corpus: &Path, dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let race = Race { corpus, dir, agentsview: agentsview(dir) };
    let (mut ours, mut theirs) = (Pairs::default(), Pairs::default());
    for round in 0..ROUNDS {
        ours.push(race.ours(&race.store(round))?);
        if let Some(program) = &race.agentsview {
            theirs.push(race.theirs(program)?);
        }
    }
    let source = float(size_below(&corpus.join(".claude/projects")));
    let store = race.store(0);
    let (vault, transcripts) =
        (float(size_below(&store.join("vault"))), float(size_below(&store.join("transcripts"))));
    take(cpu_row("import, CPU", &ours.first).at_most(FIRST_CPU_S_MAX));
    take(Row::new("import, peak memory", peak_mb(&ours.first), "MB").at_most(FIRST_PEAK_MB_MAX));
    take(cpu_row("import again, CPU", &ours.again).at_most(AGAIN_CPU_S_MAX));
    take(
        Row::new("import, vault / source", vault / source, "ratio")
            .at_most(VAULT_SHARE_MAX)
            .with("bytes", vault),
    );
    take(Row::new("import, transcripts / source", transcripts / source, "ratio").with("bytes", transcripts));
    if !theirs.first.is_empty() {
        take(cpu_row("import, CPU of agentsview", &theirs.first));
        take(Row::new("import, peak memory of agentsview", peak_mb(&theirs.first), "MB"));
        take(cpu_row("import again, CPU of agentsview", &theirs.again));
        take(ratio_row("import, CPU / agentsview's", &ours.first, &theirs.first));
        take(ratio_row("import again, CPU / agentsview's", &ours.again, &theirs.again));
    }
    for round in 0..ROUNDS {
        fs::remove_dir_all(race.store(round))?;
    }
    Ok(())
}

/// What first and second runs cost.
#[derive(Default)]
struct Pairs {
    first: Vec<Cost>,
    again: Vec<Cost>,
}

impl Pairs {
    fn push(&mut self, (first, again): (Cost, Cost)) {
        self.first.push(first);
        self.again.push(again);
    }
}

struct Race<'a> {
    corpus: &'a Path,
    dir: &'a Path,
    agentsview: Option<PathBuf>,
}

impl Race<'_> {
    /// Names a round's store. It stays until all rounds are done: making files where others were deleted a moment ago is
    /// slower, and nobody imports so.
    fn store(&self, round: usize) -> PathBuf {
        self.dir.join(format!("import-store-{round}"))
    }

    fn ours(&self, store: &Path) -> Outcome<(Cost, Cost)> {
        if store.exists() {
            fs::remove_dir_all(store)?;
        }
        let args = ["--store".as_ref(), store.as_os_str(), "import".as_ref(), "--json".as_ref()];
        let measured = Measured {
            program: &target_dir().join("release/steno"),
            args: &args,
            home: self.corpus,
            variables: &[],
            output: &self.dir.join("import-ours.json"),
        };
        Ok((bench_programs::cost(&measured)?, bench_programs::cost(&measured)?))
    }

    fn theirs(&self, program: &Path) -> Outcome<(Cost, Cost)> {
        let home = tempfile::tempdir_in(self.dir)?;
        let projects = self.corpus.join(".claude/projects");
        let variables = [
            ("AGENTSVIEW_NO_DAEMON", "1".as_ref()),
            ("DO_NOT_TRACK", "1".as_ref()),
            ("CLAUDE_PROJECTS_DIR", projects.as_os_str()),
        ];
        let measured = Measured {
            program,
            args: &["sync".as_ref()],
            home: home.path(),
            variables: &variables,
            output: &self.dir.join("import-theirs.txt"),
        };
        Ok((bench_programs::cost(&measured)?, bench_programs::cost(&measured)?))
    }
}

/// Returns agentsview's program, fetched below `dir` if need be; without it there is nothing to compare with.
///
/// Its wheel is for any Python 3 and holds a program that needs none: it is unpacked, and not installed.
fn agentsview(dir: &Path) -> Option<PathBuf> {
    let place = dir.join(AGENTSVIEW.replace("==", "-"));
    let program = place.join("agentsview/bin/agentsview");
    if program.is_file() {
        return Some(program);
    }
    let python = tool("python3")?;
    let python = python.to_string_lossy();
    let place_name = place.as_os_str();
    let download =
        ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.12"];
    let download =
        download.map(OsStr::new).into_iter().chain(["--dest".as_ref(), place_name, AGENTSVIEW.as_ref()]);
    let unpack = "import glob, os, sys, zipfile\n\
        zipfile.ZipFile(glob.glob(sys.argv[1] + '/*.whl')[0]).extractall(sys.argv[1])\n\
        os.chmod(sys.argv[1] + '/agentsview/bin/agentsview', 0o755)";
    let fetched = bench_programs::run(&python, download)
        .and_then(|_| bench_programs::run(&python, ["-c".as_ref(), unpack.as_ref(), place_name]));
    if let Err(error) = fetched {
        skipped("import / agentsview", &format!("{AGENTSVIEW} cannot be fetched: {error}"));
        return None;
    }
    Some(program)
}

fn size_below(dir: &Path) -> u64 {
    let size = |name: &String| fs::metadata(dir.join(name)).map_or(0, |about| about.len());
    places::files_below(dir).iter().map(size).sum()
}

fn cpu_row(name: &str, costs: &[Cost]) -> Row {
    let trials: Vec<f64> = costs.iter().map(|cost| rounded(cost.cpu_s)).collect();
    let walls: Vec<f64> = costs.iter().map(|cost| cost.wall_s).collect();
    Row::new(name, median(&trials), "s").with("wall_s", rounded(median(&walls))).with("trials", trials)
}

fn ratio_row(name: &str, ours: &[Cost], theirs: &[Cost]) -> Row {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours.cpu_s / theirs.cpu_s).collect();
    let trials: Vec<f64> = ratios.iter().copied().map(rounded).collect();
    Row::new(name, median(&ratios), "ratio").with("trials", trials)
}

fn peak_mb(costs: &[Cost]) -> f64 {
    costs.iter().map(|cost| cost.peak_mb).fold(0.0, f64::max)
}
