//! How soon `steno watch` tells of what an agent writes, among many files, and what it costs while nothing happens.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use steno_disk::RealDisk;
use steno_journal::{Follower, Store};
use steno_model::{RunId, Seq};
use steno_testkit::bench_programs::{self, Outcome};
use steno_testkit::bench_report::{Row, float, rounded};

/// How many files lie in one project.
const FILES_PER_PROJECT: usize = 20;
/// How many of the files an agent writes to.
const BUSY: usize = 10;
const WRITES: usize = 400;
/// The number of the first prompt that is written while somebody watches.
const FIRST_WRITE: usize = 1_000_000;
const BETWEEN_WRITES: Duration = Duration::from_millis(10);
const IDLE: Duration = Duration::from_secs(15);
/// How long anything is waited for that has to come.
const PATIENCE: Duration = Duration::from_mins(3);

/// Measures with so many files.
pub(crate) fn measure(files: usize, dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let place = tempfile::tempdir_in(dir)?;
    let home = Home::make(&place.path().join("home"), files)?;
    let store = place.path().join("store");
    let watch = Watching::start(&home.root, &store)?;
    let idle = watch.idle_share()?;
    take(Row::new(format!("following, CPU while {files} files are idle"), idle * 100.0, "% of a core"));
    let mut latencies = Latencies::measure(&home, &store)?;
    for (name, times) in
        [("first write to a quiet file", &mut latencies.first), ("write", &mut latencies.later)]
    {
        times.sort();
        let at =
            |share: f64| times.get(rank(times.len(), share)).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let row = Row::new(format!("following, {name} to subscriber, p99, {files} files"), at(0.99), "ms");
        take(row.with("p50_ms", rounded(at(0.5))).with("writes", times.len()));
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small count")]
fn rank(len: usize, share: f64) -> usize {
    ((float(len as u64) * share) as usize).min(len.saturating_sub(1))
}

/// A home of Claude Code with many sessions.
struct Home {
    root: PathBuf,
    sessions: Vec<(RunId, PathBuf)>,
}

impl Home {
    fn make(root: &Path, files: usize) -> Outcome<Self> {
        let mut sessions = Vec::new();
        for number in 0..files {
            let run = RunId::parse(&format!("550e8400-e29b-41d4-a716-{number:012x}"))?;
            let project = root.join(format!(".claude/projects/-srv-p{}", number / FILES_PER_PROJECT));
            fs::create_dir_all(&project)?;
            let path = project.join(format!("{run}.jsonl"));
            fs::write(&path, (0..8).map(|line| record(run, number * 8 + line)).collect::<String>())?;
            sessions.push((run, path));
        }
        Ok(Self { root: root.to_owned(), sessions })
    }
}

fn record(run: RunId, number: usize) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"8d1f0c53-52a4-4b0e-a6a1-{number:012x}\",\"sessionId\":\"{run}\",\"version\":\"2.1.150\",\"timestamp\":\"2026-06-08T08:14:42.123Z\",\"message\":{{\"role\":\"user\",\"content\":\"prompt {number}\"}}}}\n"
    )
}

/// A `steno watch` that has archived all there is.
struct Watching {
    child: Child,
}

impl Watching {
    fn start(home: &Path, store: &Path) -> Outcome<Self> {
        let mut command = Command::new(bench_programs::steno());
        command.arg("--store").arg(store).arg("watch").env_clear().env("HOME", home);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let talk = BufReader::new(child.stderr.take().ok_or("no stderr")?);
        let mut lines = talk.lines();
        let is_ready = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("following"));
        // Whoever talks to a closed pipe fails.
        std::thread::spawn(move || lines.for_each(drop));
        if is_ready { Ok(Self { child }) } else { Err("`steno watch` ended".into()) }
    }

    /// Returns which share of a core it takes while nothing happens.
    fn idle_share(&self) -> Outcome<f64> {
        // Files that were just written are looked at more closely at first.
        std::thread::sleep(Duration::from_secs(8));
        let before = self.cpu()?;
        std::thread::sleep(IDLE);
        Ok(self.cpu()?.saturating_sub(before).as_secs_f64() / IDLE.as_secs_f64())
    }

    fn cpu(&self) -> Outcome<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit_once(')').ok_or("no stat")?.1.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        // The kernel counts in hundredths of a second for everybody.
        Ok(Duration::from_millis(ticks * 10))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Both fail when it has ended, which is as well.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// How long it took from a write until a subscriber in another process had the event.
#[derive(Default)]
struct Latencies {
    first: Vec<Duration>,
    later: Vec<Duration>,
}

impl Latencies {
    fn measure(home: &Home, store: &Path) -> Outcome<Self> {
        let disk = RealDisk::open(store)?.ok_or("no store")?;
        let store = Store::open(Arc::new(disk))?;
        let step = home.sessions.len() / BUSY;
        let busy: Vec<&(RunId, PathBuf)> = home.sessions.iter().step_by(step).take(BUSY).collect();
        let (sender, heard) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for (run, _) in &busy {
                let (store, sender, run) = (store.clone(), sender.clone(), *run);
                scope.spawn(move || listen(&store, run, WRITES / BUSY, &sender));
            }
            let written = write_all(&busy)?;
            let mut latencies = Self::default();
            for _ in 0..WRITES {
                let (text, at): (String, Instant) = heard.recv_timeout(PATIENCE)?;
                let (begun, is_first) = written.get(&text).ok_or("an event that nobody wrote")?;
                let times = if *is_first { &mut latencies.first } else { &mut latencies.later };
                times.push(at.saturating_duration_since(*begun));
            }
            Ok(latencies)
        })
    }
}

/// Writes to the busy files in turn; returns when each prompt was written, and whether it was its file's first.
fn write_all(busy: &[&(RunId, PathBuf)]) -> Outcome<HashMap<String, (Instant, bool)>> {
    let mut written = HashMap::new();
    std::thread::sleep(Duration::from_millis(300));
    for number in 0..WRITES {
        let (run, path) = busy[number % busy.len()];
        let name = FIRST_WRITE + number;
        let line = record(*run, name);
        let mut file = OpenOptions::new().append(true).open(path)?;
        written.insert(format!("prompt {name}"), (Instant::now(), number < busy.len()));
        file.write_all(line.as_bytes())?;
        std::thread::sleep(BETWEEN_WRITES);
    }
    Ok(written)
}

/// Hears of a run's new prompts, as many as were announced.
fn listen(store: &Store, run: RunId, count: usize, sender: &std::sync::mpsc::Sender<(String, Instant)>) {
    let Ok(mut follower) = Follower::open(store, run, Seq::FIRST) else { return };
    let (mut heard, begun) = (0, Instant::now());
    while heard < count && begun.elapsed() < PATIENCE {
        while let Ok(Some(recorded)) = follower.read_next() {
            let at = Instant::now();
            let payload = recorded.event.payload.as_str();
            let digits = payload.split_once("prompt ").map_or("", |(_, text)| text);
            let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
            // Those that were there from the beginning have smaller numbers.
            if digits.parse::<usize>().is_ok_and(|number| number >= FIRST_WRITE) {
                heard += 1;
                sender.send((format!("prompt {digits}"), at)).ok();
            }
        }
        if follower.wait(Duration::from_millis(100)).is_err() {
            return;
        }
    }
}
