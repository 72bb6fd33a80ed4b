//! Shared by benchmarks: rows with thresholds, a table, a JSON file, medians, clocks, facts about the machine.
//!
//! Each benchmark decides what it measures.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fmt, fs, io, thread};

use serde_json::{Map, Value, json};

use crate::places;

/// The variable that names the directory to measure in.
const BENCH_DIR: &str = "STENO_BENCH_DIR";

/// The name in a row for the cores that other processes kept busy.
pub const OTHERS_CORES: &str = "others_cores";

/// One measured number with its threshold and details.
#[derive(Clone, Debug)]
pub struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    threshold: Option<Threshold>,
    detail: Map<String, Value>,
}

/// The minimum or maximum of a value.
#[derive(Clone, Copy, Debug)]
enum Threshold {
    AtLeast(f64),
    AtMost(f64),
}

impl Threshold {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }

    fn number(self) -> f64 {
        match self {
            Self::AtLeast(number) | Self::AtMost(number) => number,
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(out, "≥ {least}"),
            Self::AtMost(most) => write!(out, "≤ {most}"),
        }
    }
}

impl Row {
    /// Makes a row without a threshold.
    #[must_use]
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, threshold: None, detail: Map::new() }
    }

    /// Makes a row that says why something could not be measured.
    #[must_use]
    pub fn not_measured(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(name, f64::NAN, "").with("not_measured", why.into())
    }

    /// Sets the minimum.
    #[must_use]
    pub fn at_least(self, threshold: f64) -> Self {
        Self { threshold: Some(Threshold::AtLeast(threshold)), ..self }
    }

    /// Sets the maximum.
    #[must_use]
    pub fn at_most(self, threshold: f64) -> Self {
        Self { threshold: Some(Threshold::AtMost(threshold)), ..self }
    }

    /// Adds a detail about the value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(name.to_owned(), value.into());
        self
    }

    /// Tells whether the value meets its threshold; `None` when it has none.
    #[must_use]
    pub fn passes(&self) -> Option<bool> {
        self.threshold.map(|threshold| threshold.is_met_by(self.value))
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "value": rounded(self.value),
            "unit": self.unit,
            "threshold": self.threshold.map(Threshold::number),
            "pass": self.passes(),
            "detail": self.detail,
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threshold = self.threshold.map_or(String::new(), |threshold| threshold.to_string());
        let verdict = match self.passes() {
            Some(true) => "pass",
            Some(false) => "MISS",
            None => "",
        };
        if self.value.is_nan() {
            let why = self.detail.get("not_measured").and_then(Value::as_str).unwrap_or_default();
            return write!(out, "{:<52} NOT MEASURED: {why}", self.name);
        }
        let value = rounded(self.value);
        write!(out, "{:<52} {value:>12} {:<10} {threshold:<7} {verdict:<4}", self.name, self.unit)?;
        // Lists go only to the file: the table shows single numbers.
        let shown = self.detail.iter().filter(|(_, value)| !value.is_array());
        for (name, value) in shown {
            write!(out, "  {name}={value}")?;
        }
        Ok(())
    }
}

/// All rows of one benchmark, with the machine that they were measured on.
pub struct Report {
    name: &'static str,
    machine: Value,
    rows: Vec<Row>,
    noise: Noise,
    others_cores: Option<f64>,
}

impl Report {
    /// Begins a report on what is measured in `dir`.
    #[must_use]
    pub fn new(name: &'static str, dir: &Path) -> Self {
        Self { name, machine: machine(dir), rows: Vec::new(), noise: Noise::watch(), others_cores: None }
    }

    /// Returns what is known about the machine.
    #[must_use]
    pub fn machine(&self) -> &Value {
        &self.machine
    }

    /// Adds a row and returns it. Unless it has it already, it gets the number of cores that other processes kept busy
    /// since the previous row.
    pub fn push(&mut self, row: Row) -> &Row {
        const WINDOW_MIN: Duration = Duration::from_millis(200);
        // Rows that come together were measured together.
        if self.noise.since.elapsed() >= WINDOW_MIN {
            self.others_cores = self.noise.cores();
            self.noise = Noise::watch();
        }
        let row = match self.others_cores {
            Some(cores) if !row.detail.contains_key(OTHERS_CORES) => row.with(OTHERS_CORES, rounded(cores)),
            Some(_) | None => row,
        };
        self.rows.push(row);
        &self.rows[self.rows.len() - 1]
    }

    /// Lists the rows that do not meet their threshold.
    pub fn missed(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.passes() == Some(false))
    }

    /// Writes `bench/NAME.json` below the target directory; returns its path.
    ///
    /// # Errors
    /// An I/O error.
    pub fn write(&self) -> io::Result<PathBuf> {
        let dir = target_dir().join("bench");
        fs::create_dir_all(&dir)?;
        let path = dir.join(format!("{}.json", self.name));
        let mut text = serde_json::to_string_pretty(&self.to_json())?;
        text.push('\n');
        fs::write(&path, text)?;
        Ok(path)
    }

    fn to_json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(Row::to_json).collect();
        json!({"bench": self.name, "machine": self.machine, "rows": rows})
    }
}

/// Measures how busy other processes and the kernel keep the machine.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    since: Instant,
    others: Option<Duration>,
}

impl Noise {
    /// Begins to measure.
    #[must_use]
    pub fn watch() -> Self {
        Self { since: Instant::now(), others: others_cpu() }
    }

    /// Returns how many cores others have used since; `None` if the system does not report it.
    ///
    /// Linux counts in hundredths of a second, so watching for less than a tenth gives a rough figure.
    #[must_use]
    pub fn cores(&self) -> Option<f64> {
        let used = others_cpu()?.saturating_sub(self.others?);
        Some(used.div_duration_f64(self.since.elapsed()))
    }
}

/// How long something took.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Wall-clock time.
    pub wall: Duration,
    /// CPU time of this thread; `None` if the system does not report it.
    pub cpu: Option<Duration>,
}

impl Spent {
    /// Measures what `work` takes.
    pub fn on<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let (cpu, wall) = (thread_cpu(), Instant::now());
        let result = work();
        let wall = wall.elapsed();
        let cpu = thread_cpu().zip(cpu).map(|(after, before)| after.saturating_sub(before));
        (result, Self { wall, cpu })
    }

    /// Returns the CPU time if known, else the wall-clock time, which is never shorter.
    #[must_use]
    pub fn one_core(&self) -> Duration {
        self.cpu.unwrap_or(self.wall)
    }
}

/// Returns the middle value, or the mean of the two in the middle; 0 when there is none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (_, None) => 0.0,
        (0, Some(upper)) => f64::midpoint(sorted[middle - 1], *upper),
        (_, Some(value)) => *value,
    }
}

/// Returns the rate per second.
#[must_use]
pub fn per_second(count: u64, time: Duration) -> f64 {
    float(count) / time.as_secs_f64()
}

/// Returns the nanoseconds per item.
#[must_use]
pub fn ns_each(count: u64, time: Duration) -> f64 {
    time.as_secs_f64() * 1e9 / float(count)
}

/// Returns a count as a number to calculate with.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark stay far below 2^52")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// Returns a value with no more digits than a measurement has.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    let digits = if value.abs() >= 100.0 { 1.0 } else { 1000.0 };
    (value * digits).round() / digits
}

/// Returns a directory to measure in, made if need be: the one that `STENO_BENCH_DIR` names, else one below the
/// target directory, which is on a real disk where the system's temporary directory often is not.
///
/// # Errors
/// An I/O error.
pub fn bench_dir() -> io::Result<PathBuf> {
    let named = env::var_os(BENCH_DIR).filter(|name| !name.is_empty()).map(PathBuf::from);
    let dir = named.unwrap_or_else(|| target_dir().join("bench"));
    fs::create_dir_all(&dir)?;
    dir.canonicalize()
}

/// Returns the directory that cargo builds into.
#[must_use]
pub fn target_dir() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").filter(|name| !name.is_empty());
    places::workspace_root().join(named.map_or_else(|| PathBuf::from("target"), PathBuf::from))
}

/// Returns for how long this thread has been on a processor.
fn thread_cpu() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Returns for how long processors were busy with anything but this process and its children, since the system started.
fn others_cpu() -> Option<Duration> {
    let all = fs::read_to_string("/proc/stat").ok()?;
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    Some(busy_cpu(&all)?.saturating_sub(process_cpu(&own)?))
}

/// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, and guests, who are
/// part of user.
fn busy_cpu(stat: &str) -> Option<Duration> {
    let fields = stat.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks = fields.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    let busy = ticks.iter().enumerate().filter(|(at, _)| !matches!(at, 3 | 4)).map(|(_, ticks)| ticks);
    Some(from_ticks(busy.sum()))
}

/// Reads user and system time of a process and of its children that have ended; the name in front of them may contain
/// anything.
fn process_cpu(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let ticks = after_name.split(' ').skip(11).take(4).map(str::parse::<u64>);
    Some(from_ticks(ticks.sum::<Result<u64, _>>().ok()?))
}

/// Linux shows hundredths of a second on every architecture that we know.
fn from_ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 10)
}

fn machine(dir: &Path) -> Value {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find(|line| line.starts_with("model name"));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    json!({
        "cores": thread::available_parallelism().map_or(0, usize::from),
        "processor": model.and_then(|line| line.split_once(": ")).map(|(_, name)| name),
        "system": fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned()),
        "filesystem": filesystem(&mounts, dir),
        "load_before": load.split(' ').next().and_then(|text| text.parse::<f64>().ok()),
    })
}

/// Finds the type of the file system of `dir`, an absolute path without links.
fn filesystem(mountinfo: &str, dir: &Path) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = Path::new(before.split(' ').nth(4)?);
        dir.starts_with(point).then(|| (point.components().count(), after.split(' ').next()))
    });
    // Of two mounts at one path the later one counts, and `max_by_key` takes the last of equals.
    mounts.max_by_key(|(depth, _)| *depth)?.1.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_in_the_middle() {
        let check = |values: &[f64], want: f64| assert!((median(values) - want).abs() < 1e-9, "{values:?}");
        check(&[], 0.0);
        check(&[3.0], 3.0);
        check(&[9.0, 1.0, 2.0], 2.0);
        check(&[4.0, 1.0, 2.0, 3.0], 2.5);
    }

    #[test]
    fn rows_say_whether_they_meet_their_threshold() {
        let row = |value| Row::new("a", value, "ratio").at_least(0.6).with("trials", 5);
        assert_eq!(Row::new("a", 0.1, "ratio").passes(), None);
        assert_eq!((row(0.6).passes(), row(0.5999).passes()), (Some(true), Some(false)));
        let want = json!({"name": "a", "value": 0.7, "unit": "ratio", "threshold": 0.6, "pass": true,
            "detail": {"trials": 5}});
        assert_eq!(row(0.7).to_json(), want);
        assert!(row(0.1).to_string().contains("MISS"));
        let below = |value| Row::new("b", value, "MB").at_most(32.0);
        assert_eq!((below(32.0).passes(), below(32.1).passes()), (Some(true), Some(false)));
        assert!(below(40.0).to_string().contains("≤ 32"));
    }

    #[test]
    fn row_says_why_it_was_not_measured() {
        let row = Row::not_measured("a", "npm is not installed");
        assert_eq!((row.passes(), &row.to_json()["value"]), (None, &Value::Null));
        assert_eq!(row.to_string(), format!("{:<52} NOT MEASURED: npm is not installed", "a"));
    }

    #[test]
    fn missed_rows_are_found_in_a_report() {
        let mut report = Report::new("sample", Path::new("/"));
        report.push(Row::new("good", 2.0, "MB/s").at_least(1.0));
        report.push(Row::new("bad", 0.5, "MB/s").at_least(1.0));
        report.push(Row::new("free", 0.1, "MB/s"));
        let missed: Vec<&str> = report.missed().map(|row| row.name.as_str()).collect();
        assert_eq!(missed, ["bad"]);
        assert_eq!(report.to_json()["rows"].as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn busy_and_process_cpu_times_are_parsed() {
        let all = "cpu  100 20 30 4000 500 6 7 8 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
        assert_eq!(busy_cpu(all), Some(Duration::from_millis(1710)));
        let own = "77 (a ) b) R 1 1 1 0 -1 4194304 9 0 0 0 12 34 5 6 20 0 1 0";
        assert_eq!(process_cpu(own), Some(Duration::from_millis(570)));
        assert_eq!((busy_cpu(""), process_cpu("77 a")), (None, None));
    }

    #[test]
    fn filesystem_is_that_of_the_nearest_mount() {
        let mounts = "22 27 0:21 / / rw,relatime shared:1 - ext4 /dev/a rw\n\
                      23 27 0:22 / /tmp rw - tmpfs tmpfs rw\n\
                      24 27 0:23 / /tmp/deep rw - overlay none rw\n\
                      25 27 0:24 / /tmp/deep rw - xfs /dev/b rw\n";
        let check = |dir, want: &str| {
            assert_eq!(filesystem(mounts, Path::new(dir)).as_deref(), Some(want), "{dir}");
        };
        check("/var/lib", "ext4");
        check("/tmp", "tmpfs");
        check("/tmpfile", "ext4");
        check("/tmp/deep/er", "xfs");
        assert_eq!(filesystem("", Path::new("/")), None);
    }
}
