//! The config file: TOML, every key optional.

use std::io;
use std::path::Path;

use serde::Deserialize;
use steno_views::{Lines, visible};

use super::prices::PriceTables;
use crate::failure::Failure;

/// The keys that the file may have.
pub const KNOWN_KEYS: [&str; 13] = [
    "store",
    "level",
    "color",
    "seal_idle",
    "tailing",
    "poll_interval",
    "subagent_discovery_interval",
    "max_read_bytes",
    "entries",
    "emit_raw",
    "exclude_projects",
    "exclude_paths",
    "prices",
];

/// Separates the items of a list from the file: paths cannot contain it, but they can contain commas.
pub const LIST_SEPARATOR: &str = "\0";

/// The content of the file; values are checked where they are used.
#[derive(Debug, Default)]
pub struct ConfigFile {
    pub store: Option<String>,
    pub level: Option<String>,
    pub color: Option<String>,
    pub seal_idle: Option<String>,
    pub capture: CaptureKeys,
    pub prices: PriceTables,
}

/// The keys of the file about capture, as text.
#[derive(Debug, Default)]
pub struct CaptureKeys {
    pub tailing: Option<String>,
    pub poll_interval: Option<String>,
    pub subagent_discovery_interval: Option<String>,
    pub max_read_bytes: Option<String>,
    pub entries: Option<String>,
    pub emit_raw: Option<String>,
    pub exclude_projects: Option<String>,
    pub exclude_paths: Option<String>,
}

#[derive(Deserialize)]
struct ConfigToml {
    store: Option<String>,
    level: Option<String>,
    color: Option<String>,
    seal_idle: Option<u64>,
    tailing: Option<String>,
    poll_interval: Option<Number>,
    subagent_discovery_interval: Option<Number>,
    max_read_bytes: Option<u64>,
    entries: Option<String>,
    emit_raw: Option<bool>,
    exclude_projects: Option<Vec<String>>,
    exclude_paths: Option<Vec<String>>,
    #[serde(default)]
    prices: PriceTables,
    #[serde(flatten)]
    rest: std::collections::BTreeMap<String, toml::Value>,
}

/// A number, whole or not.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Number {
    Whole(u64),
    Fraction(f64),
}

impl std::fmt::Display for Number {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(out),
            Self::Fraction(number) => number.fmt(out),
        }
    }
}

/// Reads the file; `None` if it does not exist and was not named.
pub fn read(path: &Path, given: bool) -> Result<Option<ConfigFile>, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !given => return Ok(None),
        Err(error) => {
            let message = format!("cannot read the config file `{}`: {error}", path.display());
            let asked_for = error.kind() == io::ErrorKind::NotFound;
            return Err(if asked_for { Failure::usage(message) } else { Failure::could_not(message) });
        }
    };
    let wire: ConfigToml = toml::from_str(&text).map_err(|error| {
        let hint = format!("known keys: {}", KNOWN_KEYS.join(", "));
        let place = error.span().map_or(0, |span| span.start);
        let line = text.get(..place).unwrap_or_default().lines().count().max(1);
        Failure::usage(format!("`{}` line {line}: {}", path.display(), error.message())).with_hint(hint)
    })?;
    for key in wire.rest.keys() {
        let warning = format!("`{}` has the unknown key `{key}`", path.display());
        tracing::warn!("{}; known keys: {}", visible(&warning, Lines::Escape), KNOWN_KEYS.join(", "));
    }
    let seal_idle = wire.seal_idle.map(|seconds| seconds.to_string());
    Ok(Some(ConfigFile {
        store: wire.store.filter(|store| !store.is_empty()),
        level: wire.level,
        color: wire.color,
        seal_idle,
        capture: CaptureKeys {
            tailing: wire.tailing,
            poll_interval: wire.poll_interval.map(|number| number.to_string()),
            subagent_discovery_interval: wire.subagent_discovery_interval.map(|number| number.to_string()),
            max_read_bytes: wire.max_read_bytes.map(|number| number.to_string()),
            entries: wire.entries,
            emit_raw: wire.emit_raw.map(|choice| choice.to_string()),
            exclude_projects: wire.exclude_projects.map(|list| list.join(LIST_SEPARATOR)),
            exclude_paths: wire.exclude_paths.map(|list| list.join(LIST_SEPARATOR)),
        },
        prices: wire.prices,
    }))
}
