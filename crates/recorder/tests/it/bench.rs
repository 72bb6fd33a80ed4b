//! Homes of agents in a temporary directory, stores in memory, and recording from the homes into the stores.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use steno_capture::discovery::{Home, Origin};
use steno_capture::tail::{TailOptions, Waker};
use steno_disk::StorePath;
use steno_journal::{Journal, Options, Store, check_run_with};
use steno_model::Provider;
use steno_recorder::evidence::{EvidenceCheck, EvidenceReport};
use steno_recorder::sources::{
    Exclusions, FollowObserver, ImportOutcome, ImportProgress, RecordingCounts, SourceError, SourceFile,
    SourceFollower, SourceLocations, SourceRecorder, SourceRecorderOptions,
};
use steno_testkit::sim_disk::SimDisk;
use steno_vault::{Manifest, Vault};
use tempfile::TempDir;

/// Far longer than any test takes; only a test that waits in vain reaches it.
const PATIENCE: Duration = Duration::from_mins(1);

/// An action while files are followed.
pub type Step<'a> = Box<dyn FnMut() + 'a>;

/// A directory with homes.
pub struct Bench {
    dir: TempDir,
    pub exclusions: Exclusions,
    pub given: Vec<PathBuf>,
}

impl Bench {
    pub fn new() -> Self {
        let bench =
            Self { dir: tempfile::tempdir().unwrap(), exclusions: Exclusions::default(), given: Vec::new() };
        for home in [bench.claude("projects/p"), bench.codex("sessions")] {
            fs::create_dir_all(home).unwrap();
        }
        bench
    }

    pub fn path(&self, below: &str) -> PathBuf {
        // Discovery resolves links in the paths of homes, and sources are named by these paths.
        self.dir.path().canonicalize().unwrap().join(below)
    }

    pub fn claude(&self, below: &str) -> PathBuf {
        self.path("claude").join(below)
    }

    pub fn codex(&self, below: &str) -> PathBuf {
        self.path("codex").join(below)
    }

    pub fn places(&self) -> SourceLocations {
        let home = |provider, root| Home { provider, root, origin: Origin::Default };
        let homes =
            vec![home(Provider::Claude, self.path("claude")), home(Provider::Codex, self.path("codex"))];
        SourceLocations {
            homes,
            given: self.given.clone(),
            exclusions: self.exclusions.clone(),
            ..SourceLocations::default()
        }
    }

    /// Imports all files once.
    pub fn import(&self, store: &SimDisk) -> RecordingCounts {
        let mut archive = archive(store);
        let health = self.import_with(&mut archive);
        archive.settle().unwrap();
        assert_eq!(follow_evidence(store).wrong, 0);
        health
    }

    pub fn import_with(&self, archive: &mut SourceRecorder) -> RecordingCounts {
        archive.import(&self.places().list().files, &mut Quiet)
    }

    /// Imports all files and ignores failures.
    pub fn import_what_works(&self, archive: &mut SourceRecorder) {
        archive.import(&self.places().list().files, &mut Lenient);
    }

    /// Follows files. The first step runs when all files are recorded, each later one after more was recorded; it ends
    /// after the last step.
    pub fn follow<'a>(&self, store: &SimDisk, steps: impl IntoIterator<Item = Step<'a>>) -> RecordingCounts {
        self.follow_with(&mut archive(store), steps)
    }

    pub fn follow_with<'a>(
        &self,
        archive: &mut SourceRecorder,
        steps: impl IntoIterator<Item = Step<'a>>,
    ) -> RecordingCounts {
        let following = SourceFollower::new(archive, self.places(), TailOptions::default());
        let mut script = Script {
            steps: steps.into_iter().collect(),
            is_ready: false,
            is_over: false,
            waker: following.waker(),
            until: Instant::now() + PATIENCE,
        };
        let health = following.run(&mut script).unwrap();
        assert!(script.is_over, "{} steps were never taken", script.steps.len());
        health
    }
}

/// Creates an empty store.
pub fn store() -> SimDisk {
    SimDisk::new(1)
}

/// Reads the evidence of all events in a store.
pub fn follow_evidence(store: &SimDisk) -> EvidenceReport {
    let disk = Arc::new(store.clone());
    let mut check = EvidenceCheck::new(Vault::open(disk.clone()));
    let store = Store::open(disk).unwrap();
    for run in store.runs().unwrap() {
        // A test may have damaged the run.
        check_run_with(&store, run, Vec::new(), &mut |envelope| check.event(envelope)).ok();
    }
    check.finish().unwrap()
}

/// Opens the recorder of a store.
pub fn archive(store: &SimDisk) -> SourceRecorder {
    let journal = Journal::new(Store::create(Arc::new(store.clone())).unwrap(), Options::default());
    SourceRecorder::open(journal, SourceRecorderOptions::default()).unwrap()
}

/// Copies into another store what a kill at this moment would leave.
pub fn copy(store: &SimDisk, to: &SimDisk) {
    for (path, bytes) in store.snapshot() {
        to.tamper(&StorePath::new(path), &bytes);
    }
}

pub fn copy_of(store: &SimDisk) -> SimDisk {
    let to = SimDisk::new(1);
    copy(store, &to);
    to
}

/// Returns all transcripts of a store, by run.
pub fn transcripts(store: &SimDisk) -> BTreeMap<String, String> {
    let run_of = |path: &str| {
        let run = path.strip_prefix("transcripts/")?.strip_suffix(".jsonl")?;
        (!run.contains('.')).then(|| run.to_owned())
    };
    let all = store.snapshot().into_iter();
    all.filter_map(|(path, bytes)| Some((run_of(&path)?, String::from_utf8(bytes).unwrap()))).collect()
}

/// Returns the only transcript of a store.
pub fn transcript(store: &SimDisk) -> String {
    let all = transcripts(store);
    assert_eq!(all.len(), 1, "{:?}", all.keys());
    all.into_values().next().unwrap()
}

pub fn transcript_path(run: &str) -> StorePath {
    StorePath::transcripts().below(format_args!("{run}.jsonl"))
}

/// Returns all sources of a store: their paths and the bytes of their generations.
pub fn sources(store: &SimDisk) -> Vec<(PathBuf, Vec<String>)> {
    let vault = Vault::open(Arc::new(store.clone()));
    let mut found = Vec::new();
    for id in vault.sources().unwrap() {
        let manifest = vault.manifest(id).unwrap().unwrap();
        let numbers = 0..u32::try_from(manifest.generations.len()).unwrap();
        let generations = numbers.map(|number| generation(&vault, &manifest, number)).collect();
        found.push((manifest.info.path.0, generations));
    }
    found.sort();
    found
}

fn generation(vault: &Vault, manifest: &Manifest, number: u32) -> String {
    let mut bytes = Vec::new();
    let keep = |_: u64, piece: &[u8]| {
        bytes.extend_from_slice(piece);
        true
    };
    vault.read(manifest, number, 0, keep).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Ignores progress; failures fail the test.
struct Quiet;

impl ImportProgress for Quiet {
    fn bytes(&mut self, _path: &Path, _count: u64) {}

    fn done(&mut self, _file: &SourceFile, _outcome: ImportOutcome) {}

    fn failed(&mut self, file: &SourceFile, error: &SourceError) {
        panic!("{}: {error}", file.path().display());
    }
}

/// Ignores failures.
struct Lenient;

impl ImportProgress for Lenient {
    fn bytes(&mut self, _path: &Path, _count: u64) {}

    fn done(&mut self, _file: &SourceFile, _outcome: ImportOutcome) {}

    fn failed(&mut self, _file: &SourceFile, _error: &SourceError) {}
}

struct Script<'a> {
    steps: VecDeque<Step<'a>>,
    is_ready: bool,
    is_over: bool,
    waker: Waker,
    until: Instant,
}

impl Script<'_> {
    fn go_on(&mut self) {
        if let Some(mut step) = self.steps.pop_front() {
            step();
        }
        if self.steps.is_empty() {
            self.is_over = true;
            self.waker.wake();
        }
    }
}

impl FollowObserver for Script<'_> {
    fn is_stopped(&self) -> bool {
        self.is_over || Instant::now() > self.until
    }

    fn ready(&mut self) {
        self.is_ready = true;
        self.go_on();
    }

    fn recorded(&mut self, _path: &Path, _events: u64) {
        if self.is_ready && !self.is_over {
            self.go_on();
        }
    }

    fn failed(&mut self, path: &Path, error: &SourceError) {
        panic!("{}: {error}", path.display());
    }
}

/// Appends text to a file.
pub fn append(path: &Path, text: &str) {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
