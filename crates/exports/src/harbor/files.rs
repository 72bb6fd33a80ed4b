//! The files of a task. The same plan gives the same bytes.

use std::rc::Rc;

use steno_views::shell_word;

use super::command::Rank;
use super::patch::Patch;
use super::plan::{Check, Plan, Solution};
use super::session::Diff;
use super::window::Refusal;
use super::{IMAGE, provenance};

/// The part of a script that installs the session's own tests and restores the previous files.
const HELD: &str = r#"# Tests that the session wrote are put in place as it left them, and the previous files are restored afterwards.
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
put() {
  mkdir -p "$(dirname "$1")" "$work/$(dirname "$1")"
  if [ -e "$1" ] || [ -L "$1" ]; then mv "$1" "$work/$1"; fi
  cp "$here/files/$1" "$1"
}
take_back() {
  rm -rf "$1"
  if [ -e "$work/$1" ] || [ -L "$work/$1" ]; then mv "$work/$1" "$1"; fi
}
"#;

/// Applies the changes of a call byte for byte, whatever the repository sets for line endings.
const APPLY: &str = "GIT_DIR=/dev/null git apply --whitespace=nowarn";

/// A file of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFile {
    /// Its path in the task.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// True if it is executable.
    pub is_executable: bool,
}

/// Inputs of a task's files that are not in the plan.
pub struct TaskInputs<'a> {
    /// Returns the bytes of an artifact.
    pub artifact: &'a dyn Fn(&Diff) -> Option<Vec<u8>>,
    /// The repository at the commit, as a tar file, if available.
    pub snapshot: Option<Vec<u8>>,
    /// The previous turns as a trajectory, or the reason why there is none.
    pub before: Result<String, String>,
    /// The SHA-256 of each segment of the spine.
    pub segments: Vec<String>,
}

impl Plan<'_> {
    /// Writes the files, in the order of their paths.
    ///
    /// # Errors
    ///
    /// An artifact is missing, or `task.toml` cannot express a value.
    pub fn files(&self, given: &TaskInputs<'_>) -> Result<Vec<TaskFile>, Refusal> {
        let mut files = Files(Vec::new());
        files.text("instruction.md", self.instruction());
        let begun = match &self.start.diff {
            Some(diff) => fetch(given, diff)?,
            None => Vec::new(),
        };
        self.environment(given, &begun, &mut files);
        self.tests(given, &mut files)?;
        self.solution(given, begun, &mut files)?;
        if let Ok(trajectory) = &given.before {
            files.text("trajectory.json", format!("{trajectory}\n"));
        }
        files.text("task.toml", provenance::task_toml(self, given)?);
        let mut files = files.0;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }

    fn instruction(&self) -> String {
        let words = self.turns.iter().flat_map(|turn| &turn.words);
        let words: Vec<&str> = words.map(|words| words.trim_end_matches('\n')).collect();
        words.join("\n\n") + "\n"
    }

    fn environment(&self, given: &TaskInputs<'_>, begun: &[u8], files: &mut Files) {
        let mut dockerfile = match &self.wish.image {
            Some(image) => format!("FROM {image}\n"),
            None => format!(
                "# The record does not say what the session ran in: `--image` names another.\nFROM {IMAGE}\n"
            ),
        };
        dockerfile.push_str(
            "RUN command -v git >/dev/null || (apt-get update && apt-get install -y --no-install-recommends ca-certificates git)\n",
        );
        dockerfile.push_str(&format!("WORKDIR {}\n", self.place.dir()));
        let commit = &self.start.commit;
        if let Some(snapshot) = &given.snapshot {
            files.bytes("environment/repo.tar", snapshot.clone());
            dockerfile.push_str("ADD repo.tar ./\n");
            dockerfile.push_str("RUN git init -q && git add -A --force && ");
            let who = "git -c user.name=steno -c user.email=steno@localhost -c commit.gpgsign=false";
            dockerfile.push_str(&format!("{who} commit -q --allow-empty -m {commit}\n"));
        } else if let Some(url) = &self.start.url {
            dockerfile.push_str(&format!(
                "RUN git clone -q -- {} . && git checkout -q --detach {commit}\n",
                shell_word(url)
            ));
        }
        if !begun.is_empty() {
            files.bytes("environment/start.patch", begun.to_vec());
            dockerfile.push_str(
                "COPY start.patch .steno-start.patch\n\
                 RUN git apply --whitespace=nowarn .steno-start.patch && rm .steno-start.patch\n",
            );
        }
        for (name, patch) in numbered("before", &self.start.patches) {
            files.text(&format!("environment/before/{name}"), patch.text.clone());
        }
        if !self.start.patches.is_empty() {
            // One step for all, since the number of layers of an image is limited.
            dockerfile.push_str(&format!(
                "COPY before .steno-before\n\
                 RUN for patch in .steno-before/*; do {APPLY} \"$patch\" || exit 1; done && rm -r .steno-before\n"
            ));
        }
        files.text("environment/Dockerfile", dockerfile);
    }

    fn tests(&self, given: &TaskInputs<'_>, files: &mut Files) -> Result<(), Refusal> {
        let check = match &self.check {
            Check::Command(chosen) => {
                let run = format!("{} -c {}", chosen.shell, shell_word(&chosen.script));
                let run = match chosen.dir.as_str() {
                    "" => run,
                    dir => format!("cd {} && {run}", shell_word(&format!("./{dir}"))),
                };
                let kind = match chosen.rank {
                    Rank::TestRunner => "The tests",
                    Rank::Build => "The build",
                    Rank::Linter => "The linter",
                    Rank::Other => "The command",
                };
                let run = self.with_held(&run, files);
                format!("# {kind} that the session ran after its last change, and that ended with 0.\n{run}")
            }
            Check::Patches(patches) => {
                for (name, patch) in numbered("expected", patches) {
                    files.text(&format!("tests/{name}"), patch.text.clone());
                }
                undo_all(patches)
            }
            Check::Diff(diff) => {
                files.bytes("tests/expected.patch", fetch(given, diff)?);
                "# Whether the working tree differs from the commit as it did when the session was done.\n\
                 git apply --reverse --check --whitespace=nowarn \"$here/expected.patch\"\n"
                    .to_owned()
            }
        };
        let script = format!(
            "#!/bin/sh\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n{check}status=$?\n\
             if [ -d /logs/verifier ]; then\n  \
             if [ \"$status\" -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\nfi\nexit \"$status\"\n"
        );
        files.program("tests/test.sh", script);
        Ok(())
    }

    /// Adds commands that install the session's tests before a script and restore the previous files after it.
    fn with_held(&self, run: &str, files: &mut Files) -> String {
        let mut names = Vec::new();
        for (path, bytes) in self.test_files.known() {
            files.bytes(&format!("tests/files/{path}"), bytes.to_vec());
            names.push(shell_word(&format!("./{path}")));
        }
        if names.is_empty() {
            return format!("({run})\n");
        }
        let each =
            |what: &str| names.iter().map(|name| format!("{what} {name}\n")).collect::<Vec<_>>().concat();
        let (put, take_back) = (each("put"), each("take_back"));
        format!("{HELD}{put}({run})\nstatus=$?\n{take_back}(exit \"$status\")\n")
    }

    fn solution(&self, given: &TaskInputs<'_>, begun: Vec<u8>, files: &mut Files) -> Result<(), Refusal> {
        let Ok(solution) = &self.solution else { return Ok(()) };
        let mut script = "#!/bin/sh\n# What the session itself changed.\nset -e\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n".to_owned();
        let apply = |how: &str, name: &str| format!("git apply{how} --whitespace=nowarn \"$here/{name}\"\n");
        match solution {
            Solution::Patches(patches) => {
                for (name, patch) in numbered("change", patches) {
                    files.text(&format!("solution/{name}"), patch.text.clone());
                    script.push_str(&format!("{APPLY} \"$here/{name}\"\n"));
                }
            }
            Solution::Diff(diff) => {
                if !begun.is_empty() {
                    files.bytes("solution/start.patch", begun);
                    script.push_str(&apply(" --reverse", "start.patch"));
                }
                let end = fetch(given, diff)?;
                if !end.is_empty() {
                    files.bytes("solution/end.patch", end);
                    script.push_str(&apply("", "end.patch"));
                }
            }
        }
        files.program("solution/solve.sh", script);
        Ok(())
    }
}

fn fetch(given: &TaskInputs<'_>, diff: &Diff) -> Result<Vec<u8>, Refusal> {
    (given.artifact)(diff)
        .ok_or_else(|| Refusal::new(format!("the artifact `{}` is not in the bundle", diff.path)))
}

fn numbered<'a>(kind: &str, patches: &'a [Rc<Patch>]) -> impl Iterator<Item = (String, &'a Rc<Patch>)> {
    patches.iter().enumerate().map(move |(at, patch)| (format!("{kind}-{:06}.patch", at + 1), patch))
}

/// Returns a check that reverts the changes in a copy of the files, which is possible only if they are there.
fn undo_all(patches: &[Rc<Patch>]) -> String {
    let mut files: Vec<&String> = patches.iter().flat_map(|patch| &patch.files).collect();
    files.sort_unstable();
    files.dedup();
    let mut script = "# Whether the changes of the session are there: in a copy they can be taken back.\n\
        work=$(mktemp -d) && trap 'rm -rf \"$work\"' EXIT\n\
        keep() {\n  if [ -e \"$1\" ] || [ -L \"$1\" ]; then mkdir -p \"$work/$(dirname \"$1\")\" && cp -pP \"$1\" \"$work/$1\"; fi\n}\n"
        .to_owned();
    for file in files {
        script.push_str(&format!("keep {}\n", shell_word(&format!("./{file}"))));
    }
    script.push_str("(cd \"$work\"");
    for (name, _) in numbered("expected", patches).collect::<Vec<_>>().into_iter().rev() {
        script.push_str(&format!(" &&\n  {APPLY} --reverse \"$here/{name}\""));
    }
    script.push_str(")\n");
    script
}

struct Files(Vec<TaskFile>);

impl Files {
    fn bytes(&mut self, path: &str, bytes: Vec<u8>) {
        self.0.push(TaskFile { path: path.to_owned(), bytes, is_executable: false });
    }

    fn text(&mut self, path: &str, text: String) {
        self.bytes(path, text.into_bytes());
    }

    fn program(&mut self, path: &str, text: String) {
        self.0.push(TaskFile { path: path.to_owned(), bytes: text.into_bytes(), is_executable: true });
    }
}
