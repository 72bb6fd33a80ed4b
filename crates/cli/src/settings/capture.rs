//! Settings of capture: how files are followed, and which are excluded.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::Value;
use steno_capture::tail::{Backend, TailOptions};
use steno_recorder::sources::Exclusions;

use super::file::{CaptureKeys, LIST_SEPARATOR};
use super::{Origin, Setting, bad_value};
use crate::failure::Failure;

/// The longest interval that is accepted.
const INTERVAL_MAX: Duration = Duration::from_hours(24);

/// Looks a setting up: the variable if it is set, or else the key of the file.
pub type LayeredLookup<'a> =
    dyn Fn(&'static str, Option<String>) -> Result<Option<(String, Origin)>, Failure> + 'a;

/// How changes of files are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TailingChoice {
    /// By notifications of the system, if it has them
    System,
    /// By checking the files at intervals
    Polling,
}

/// Settings of capture.
#[derive(Debug)]
pub struct CaptureSettings {
    pub tailing: Setting<TailingChoice>,
    pub poll_interval: Setting<Duration>,
    pub subagent_discovery_interval: Setting<Duration>,
    pub max_read_bytes: Setting<usize>,
    /// The file that entries are added to, if they are collected at all.
    pub entries: Setting<Option<PathBuf>>,
    /// Whether entries carry the lines that they were made from.
    pub emit_raw: Setting<bool>,
    pub exclude_projects: Setting<Vec<String>>,
    pub exclude_paths: Setting<Vec<String>>,
}

impl CaptureSettings {
    pub fn load(keys: CaptureKeys, layered: &LayeredLookup<'_>) -> Result<Self, Failure> {
        let defaults = TailOptions::default();
        Ok(Self {
            tailing: super::choose(
                "--poll",
                None,
                "tailing",
                layered("STENO_TAILING", keys.tailing)?,
                Setting { value: TailingChoice::System, origin: Origin::Default },
            )?,
            poll_interval: interval(
                "poll_interval",
                layered("STENO_POLL_INTERVAL", keys.poll_interval)?,
                defaults.poll_interval,
            )?,
            subagent_discovery_interval: interval(
                "subagent_discovery_interval",
                layered("STENO_SUBAGENT_DISCOVERY_INTERVAL", keys.subagent_discovery_interval)?,
                defaults.subagent_discovery_interval,
            )?,
            max_read_bytes: bytes(
                layered("STENO_MAX_READ_BYTES", keys.max_read_bytes)?,
                defaults.max_read_bytes,
            )?,
            entries: file(layered("STENO_ENTRIES", keys.entries)?),
            emit_raw: yes_or_no(layered("STENO_EMIT_RAW", keys.emit_raw)?)?,
            exclude_projects: list(layered("STENO_EXCLUDE_PROJECTS", keys.exclude_projects)?),
            exclude_paths: list(layered("STENO_EXCLUDE_PATHS", keys.exclude_paths)?),
        })
    }

    /// Expands a leading `~/` to the home directory.
    pub fn with_home(mut self, expand: &dyn Fn(&Path) -> PathBuf) -> Self {
        for pattern in self.exclude_projects.value.iter_mut().chain(&mut self.exclude_paths.value) {
            *pattern = expand(Path::new(&*pattern)).to_string_lossy().into_owned();
        }
        self.entries.value = self.entries.value.map(|path| expand(&path));
        self
    }

    /// Returns how files are followed.
    pub fn tail_options(&self) -> TailOptions {
        TailOptions {
            poll_interval: self.poll_interval.value,
            subagent_discovery_interval: self.subagent_discovery_interval.value,
            max_read_bytes: self.max_read_bytes.value,
            backend: match self.tailing.value {
                TailingChoice::System => Backend::System,
                TailingChoice::Polling => Backend::Polling,
            },
            ..TailOptions::default()
        }
    }

    /// Returns what is excluded.
    pub fn exclusions(&self) -> Exclusions {
        Exclusions::new(&self.exclude_projects.value, &self.exclude_paths.value)
    }

    /// Returns key, value and origin of every setting here.
    pub fn rows(&self) -> [(&'static str, Value, String); 8] {
        let tailing = match self.tailing.value {
            TailingChoice::System => "system",
            TailingChoice::Polling => "polling",
        };
        [
            ("tailing", tailing.into(), self.tailing.origin.to_string()),
            ("poll_interval", seconds(&self.poll_interval), self.poll_interval.origin.to_string()),
            (
                "subagent_discovery_interval",
                seconds(&self.subagent_discovery_interval),
                self.subagent_discovery_interval.origin.to_string(),
            ),
            ("max_read_bytes", self.max_read_bytes.value.into(), self.max_read_bytes.origin.to_string()),
            (
                "entries",
                self.entries.value.as_ref().map_or(Value::Null, |path| path.display().to_string().into()),
                self.entries.origin.to_string(),
            ),
            ("emit_raw", self.emit_raw.value.into(), self.emit_raw.origin.to_string()),
            (
                "exclude_projects",
                self.exclude_projects.value.clone().into(),
                self.exclude_projects.origin.to_string(),
            ),
            ("exclude_paths", self.exclude_paths.value.clone().into(), self.exclude_paths.origin.to_string()),
        ]
    }
}

fn seconds(setting: &Setting<Duration>) -> Value {
    setting.value.as_secs_f64().into()
}

fn interval(
    key: &'static str,
    layer: Option<(String, Origin)>,
    default: Duration,
) -> Result<Setting<Duration>, Failure> {
    let Some((text, origin)) = layer else { return Ok(Setting { value: default, origin: Origin::Default }) };
    let value =
        text.parse().ok().filter(|seconds| *seconds > 0.0).and_then(|seconds| {
            Duration::try_from_secs_f64(seconds).ok().filter(|value| *value <= INTERVAL_MAX)
        });
    match value {
        Some(value) => Ok(Setting { value, origin }),
        None => Err(bad_value(key, &text, &origin).with_hint("use seconds, like 0.25")),
    }
}

fn bytes(layer: Option<(String, Origin)>, default: usize) -> Result<Setting<usize>, Failure> {
    const BYTES_MAX: usize = 64 * 1024 * 1024;
    let Some((text, origin)) = layer else { return Ok(Setting { value: default, origin: Origin::Default }) };
    match text.parse() {
        Ok(value @ 1..=BYTES_MAX) => Ok(Setting { value, origin }),
        Ok(_) | Err(_) => Err(bad_value("max_read_bytes", &text, &origin)
            .with_hint(format!("use a whole number of bytes from 1 to {BYTES_MAX}"))),
    }
}

fn yes_or_no(layer: Option<(String, Origin)>) -> Result<Setting<bool>, Failure> {
    let Some((text, origin)) = layer else { return Ok(Setting { value: true, origin: Origin::Default }) };
    match text.parse() {
        Ok(value) => Ok(Setting { value, origin }),
        Err(_) => Err(bad_value("emit_raw", &text, &origin).with_hint("use true or false")),
    }
}

/// Parses the path of a file; an empty text is `None`.
fn file(layer: Option<(String, Origin)>) -> Setting<Option<PathBuf>> {
    match layer {
        None => Setting { value: None, origin: Origin::Default },
        Some((text, origin)) => Setting { value: (!text.is_empty()).then(|| text.into()), origin },
    }
}

/// Parses a list: in a variable, items are separated by commas.
fn list(layer: Option<(String, Origin)>) -> Setting<Vec<String>> {
    let Some((text, origin)) = layer else { return Setting { value: Vec::new(), origin: Origin::Default } };
    let separator = if matches!(origin, Origin::File(_)) { LIST_SEPARATOR } else { "," };
    let items = text.split(separator).map(str::trim).filter(|item| !item.is_empty());
    Setting { value: items.map(str::to_owned).collect(), origin }
}
