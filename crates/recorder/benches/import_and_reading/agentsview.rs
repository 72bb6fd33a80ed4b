//! agentsview, the program that an import is compared with.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use steno_testkit::bench_programs::{self, Cost, MeasuredProgram, Outcome};
use steno_testkit::tool;

const VERSION: &str = "agentsview==0.46.1";

/// What `agentsview sync` cost on the corpus of 200 MB, on another machine: for machines that cannot fetch it.
pub(crate) fn cost_elsewhere() -> Cost {
    Cost { cpu_s: 9.3, wall_s: 8.1, first_s: 8.1, peak_mb: 184.0, output: String::new() }
}

/// Measures `agentsview sync` of a history with an empty home, then the same again.
pub(crate) fn costs(program: &Path, corpus: &Path, dir: &Path) -> Outcome<(Cost, Cost)> {
    let home = tempfile::tempdir_in(dir)?;
    let projects = corpus.join(".claude/projects");
    let variables = [
        ("AGENTSVIEW_NO_DAEMON", "1".as_ref()),
        ("DO_NOT_TRACK", "1".as_ref()),
        ("CLAUDE_PROJECTS_DIR", projects.as_os_str()),
    ];
    let measured = MeasuredProgram {
        program,
        args: &["sync".as_ref()],
        home: home.path(),
        variables: &variables,
        output: &dir.join("import-theirs.txt"),
    };
    Ok((bench_programs::cost(&measured)?, bench_programs::cost(&measured)?))
}

/// Returns its program, fetched below `dir` if need be.
///
/// Its wheel is for any Python 3 and holds a program that needs none: it is unpacked, and not installed.
///
/// # Errors
/// If it cannot be fetched: there is nothing to compare with then.
pub(crate) fn program(dir: &Path) -> Outcome<PathBuf> {
    let place = dir.join(VERSION.replace("==", "-"));
    let program = place.join("agentsview/bin/agentsview");
    if program.is_file() {
        return Ok(program);
    }
    let python = tool("python3").ok_or("python3 is not installed")?;
    let python = python.to_string_lossy();
    let place_name = place.as_os_str();
    let download =
        ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.12"];
    let download =
        download.map(OsStr::new).into_iter().chain(["--dest".as_ref(), place_name, VERSION.as_ref()]);
    let unpack = "import glob, os, sys, zipfile\n\
        zipfile.ZipFile(glob.glob(sys.argv[1] + '/*.whl')[0]).extractall(sys.argv[1])\n\
        os.chmod(sys.argv[1] + '/agentsview/bin/agentsview', 0o755)";
    bench_programs::run(&python, download)
        .and_then(|_| bench_programs::run(&python, ["-c".as_ref(), unpack.as_ref(), place_name]))
        .map_err(|error| format!("{VERSION} cannot be fetched: {error}"))?;
    Ok(program)
}
