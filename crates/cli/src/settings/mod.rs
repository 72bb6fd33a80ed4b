//! Settings: flags over `STENO_*` variables over the config file over defaults, each with its origin.

mod capture;
mod file;
mod paths;
mod prices;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::Value;
use steno_views::shell_word;

use crate::args::{ColorChoice, Global, LevelChoice};
use crate::failure::Failure;

pub use capture::CaptureSettings;
pub use file::KNOWN_KEYS;
pub use prices::PriceSettings;

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    File(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(out, "flag {flag}"),
            Self::Variable(name) => write!(out, "variable {name}"),
            Self::File(path) => write!(out, "file {}", path.display()),
            Self::Default => out.write_str("default"),
        }
    }
}

/// All settings.
#[derive(Debug)]
pub struct Settings {
    pub store: Setting<PathBuf>,
    pub level: Setting<LevelChoice>,
    pub color: Setting<ColorChoice>,
    pub seal_idle: Setting<Duration>,
    pub capture: CaptureSettings,
    pub prices: PriceSettings,
    /// The config file: where it is looked for, whether a flag or a variable names it, and whether it is there.
    pub file: Option<PathBuf>,
    pub file_named: bool,
    pub file_found: bool,
    /// Every variable that was asked for and is set. With these, the same flags give the same settings elsewhere.
    pub variables: BTreeMap<String, OsString>,
    /// Whether the store is that of the sample sessions.
    pub is_demo: bool,
}

/// The environment, handed in so that tests can make one up.
pub type Environment<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

impl Settings {
    /// Merges flags, variables, file and defaults.
    pub fn load(
        flags: &Global,
        level: Option<LevelChoice>,
        environment: &Environment<'_>,
    ) -> Result<Self, Failure> {
        let asked = RefCell::new(BTreeMap::new());
        // All lookups go through this closure, so that `variables` is complete.
        let environment: &Environment<'_> = &|name| {
            let value = environment(name).filter(|value| !value.is_empty());
            value.inspect(|value| drop(asked.borrow_mut().insert(name.to_owned(), value.clone())))
        };
        let place = paths::config_file(flags.config.as_deref(), environment);
        let file_named = place.as_ref().is_some_and(|(_, named)| *named);
        let file = match &place {
            Some((path, given)) => file::read(path, *given)?,
            None => None,
        };
        let file_found = file.is_some();
        let file = file.unwrap_or_default();
        let path = place.map(|(path, _)| path);
        let from_file = |value: Option<String>| {
            let origin = Origin::File(path.clone().unwrap_or_default());
            value.map(|value| (value, origin))
        };
        let layered = |variable: &'static str, file: Option<String>| match environment(variable) {
            Some(value) => text(variable, value).map(|value| Some((value, Origin::Variable(variable)))),
            None => Ok(from_file(file)),
        };
        let color = layered("STENO_COLOR", file.color)?;
        let default_color = if environment("NO_COLOR").is_some() {
            Setting { value: ColorChoice::Never, origin: Origin::Variable("NO_COLOR") }
        } else {
            Setting { value: ColorChoice::Auto, origin: Origin::Default }
        };
        let default_level = Setting { value: LevelChoice::Synced, origin: Origin::Default };
        Ok(Self {
            store: paths::store(flags.store.as_deref(), from_file(file.store), environment)?,
            level: choose("--level", level, "level", layered("STENO_LEVEL", file.level)?, default_level)?,
            color: choose("--color", flags.color, "color", color, default_color)?,
            seal_idle: seal_idle(layered("STENO_SEAL_IDLE", file.seal_idle)?)?,
            capture: CaptureSettings::load(file.capture, &layered)?
                .with_home(&|path| expand_home(path, environment)),
            prices: PriceSettings::load(Setting {
                origin: if file.prices.is_empty() {
                    Origin::Default
                } else {
                    Origin::File(path.clone().unwrap_or_default())
                },
                value: file.prices,
            })?,
            file: path.clone(),
            file_named,
            file_found,
            variables: asked.take(),
            is_demo: false,
        })
    }

    /// Returns the settings with the separate store of the samples, unless a flag names a store.
    pub fn for_samples(mut self) -> Self {
        self.is_demo = true;
        if self.store.origin != Origin::Flag("--store") {
            let mut name = self.store.value.file_name().unwrap_or_default().to_owned();
            name.push("-demo");
            self.store.value.set_file_name(name);
        }
        self
    }

    /// Returns the flags with which another command uses the same store, quoted for a shell, each after a space. Paths are
    /// absolute, since the command may be copied to another directory.
    pub fn store_flags(&self) -> String {
        let path = |path: &Path| {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            shell_word(&absolute.to_string_lossy())
        };
        let flag = match &self.store.origin {
            Origin::Flag(flag) => format!(" {flag} {}", path(&self.store.value)),
            Origin::File(file) if self.file_named => format!(" --config {}", path(file)),
            Origin::Variable(_) | Origin::File(_) | Origin::Default => String::new(),
        };
        flag + if self.is_demo { " --demo" } else { "" }
    }

    /// Returns key, value and origin of every setting, as `steno config` shows them.
    pub fn rows(&self) -> Vec<(&'static str, Value, String)> {
        let word = |value: Option<clap::builder::PossibleValue>| {
            Value::from(value.map_or(String::new(), |value| value.get_name().to_owned()))
        };
        let mut rows = vec![
            ("store", self.store.value.display().to_string().into(), self.store.origin.to_string()),
            ("level", word(self.level.value.to_possible_value()), self.level.origin.to_string()),
            ("color", word(self.color.value.to_possible_value()), self.color.origin.to_string()),
            ("seal_idle", self.seal_idle.value.as_secs().into(), self.seal_idle.origin.to_string()),
        ];
        rows.extend(self.capture.rows());
        let prices = &self.prices.models;
        rows.push(("prices", prices.value.clone().into(), prices.origin.to_string()));
        rows
    }
}

/// Returns a value as text.
pub fn text(name: &str, value: OsString) -> Result<String, Failure> {
    value.into_string().map_err(|_| Failure::usage(format!("`{name}` is not UTF-8")))
}

/// Takes the flag, else the layer below it, else the default.
fn choose<T: ValueEnum>(
    flag: &'static str,
    given: Option<T>,
    key: &'static str,
    layer: Option<(String, Origin)>,
    default: Setting<T>,
) -> Result<Setting<T>, Failure> {
    if let Some(value) = given {
        return Ok(Setting { value, origin: Origin::Flag(flag) });
    }
    let Some((text, origin)) = layer else { return Ok(default) };
    if let Ok(value) = T::from_str(&text, true) {
        return Ok(Setting { value, origin });
    }
    let words: Vec<_> = T::value_variants().iter().filter_map(ValueEnum::to_possible_value).collect();
    let words: Vec<_> = words.iter().map(clap::builder::PossibleValue::get_name).collect();
    Err(bad_value(key, &text, &origin).with_hint(format!("use one of: {}", words.join(", "))))
}

fn seal_idle(layer: Option<(String, Origin)>) -> Result<Setting<Duration>, Failure> {
    const DEFAULT: Duration = Duration::from_secs(30);
    let Some((text, origin)) = layer else { return Ok(Setting { value: DEFAULT, origin: Origin::Default }) };
    match text.parse() {
        Ok(seconds) => Ok(Setting { value: Duration::from_secs(seconds), origin }),
        Err(_) => Err(bad_value("seal_idle", &text, &origin).with_hint("use a whole number of seconds")),
    }
}

fn bad_value(key: &str, text: &str, origin: &Origin) -> Failure {
    Failure::usage(format!("`{text}` is not a valid value for `{key}` ({origin})"))
}

/// Expands a leading `~/` to the home directory, as a shell does.
fn expand_home(path: &Path, environment: &Environment<'_>) -> PathBuf {
    match (path.strip_prefix("~"), environment("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(vars: &'static [(&'static str, &'static str)], flags: &Global) -> Result<Settings, Failure> {
        let environment = move |name: &str| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        Settings::load(flags, None, &environment)
    }

    fn no_flags() -> Global {
        Global { store: None, config: None, demo: false, color: None, verbose: false }
    }

    const HOME: (&str, &str) = ("HOME", "/home/user");

    #[test]
    fn defaults_come_from_the_platform() {
        let settings = load(&[HOME], &no_flags()).unwrap();
        assert!(settings.store.value.starts_with("/home/user") && settings.store.value.ends_with("steno"));
        assert_eq!(settings.store.origin, Origin::Default);
        assert_eq!((settings.level.value, settings.color.value), (LevelChoice::Synced, ColorChoice::Auto));
        assert!(!settings.file_found);
    }

    #[test]
    fn flags_win_over_variables_and_variables_over_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, "store = \"~/from-file\"\nlevel = \"written\"\nseal_idle = 7\n").unwrap();
        let flags = Global { config: Some(file.clone()), ..no_flags() };
        let settings = load(&[HOME], &flags).unwrap();
        assert_eq!(
            settings.store,
            Setting { value: "/home/user/from-file".into(), origin: Origin::File(file.clone()) }
        );
        assert_eq!(settings.level, Setting { value: LevelChoice::Written, origin: Origin::File(file) });
        assert_eq!(settings.seal_idle.value, Duration::from_secs(7));
        let settings = load(&[HOME, ("STENO_HOME", "/env"), ("STENO_LEVEL", "synced")], &flags).unwrap();
        assert_eq!(settings.store, Setting { value: "/env".into(), origin: Origin::Variable("STENO_HOME") });
        assert_eq!(settings.level.origin, Origin::Variable("STENO_LEVEL"));
        let flags = Global { store: Some("/flag".into()), ..flags };
        let settings = load(&[HOME, ("STENO_HOME", "/env")], &flags).unwrap();
        assert_eq!(settings.store, Setting { value: "/flag".into(), origin: Origin::Flag("--store") });
    }

    #[test]
    fn store_flags_name_the_same_store() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a b.toml");
        std::fs::write(&file, "store = \"/from-file\"\n").unwrap();
        let store = || Global { store: Some("/no such".into()), ..no_flags() };
        let config = || Global { config: Some(file.clone()), ..no_flags() };
        let of_file = format!(" --config '{}'", file.display());
        let here = std::env::current_dir().unwrap().join("here");
        for (vars, flags, want) in [
            (&[HOME][..], no_flags(), ""),
            (&[HOME, ("STENO_HOME", "/env")], no_flags(), ""),
            (&[HOME], store(), " --store '/no such'"),
            (
                &[HOME],
                Global { store: Some("here".into()), ..no_flags() },
                &format!(" --store {}", shell_word(&here.to_string_lossy())),
            ),
            (&[HOME], config(), &of_file),
            (&[HOME, ("STENO_HOME", "/env")], config(), ""),
        ] {
            assert_eq!(load(vars, &flags).unwrap().store_flags(), want);
            let of_demo = load(vars, &flags).unwrap().for_samples().store_flags();
            assert_eq!(of_demo, format!("{want} --demo"));
        }
    }

    #[test]
    fn no_color_is_the_default_of_color() {
        let settings = load(&[HOME, ("NO_COLOR", "1")], &no_flags()).unwrap();
        assert_eq!(
            settings.color,
            Setting { value: ColorChoice::Never, origin: Origin::Variable("NO_COLOR") }
        );
        let settings = load(&[HOME, ("NO_COLOR", "1"), ("STENO_COLOR", "always")], &no_flags()).unwrap();
        assert_eq!(settings.color.value, ColorChoice::Always);
    }

    #[test]
    fn bad_value_names_its_origin_and_valid_values() {
        let failure = load(&[HOME, ("STENO_LEVEL", "durable")], &no_flags()).unwrap_err();
        assert_eq!(failure.message, "`durable` is not a valid value for `level` (variable STENO_LEVEL)");
        assert_eq!(failure.hint.as_deref(), Some("use one of: written, synced"));
        assert!(load(&[HOME, ("STENO_SEAL_IDLE", "soon")], &no_flags()).is_err());
    }

    #[test]
    fn named_config_file_must_exist_and_be_valid() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        let flags = Global { config: Some(file.clone()), ..no_flags() };
        assert!(load(&[HOME], &flags).unwrap_err().message.contains("config.toml"));
        for bad in ["store = 1", "level = ", "level = [\"synced\"]"] {
            std::fs::write(&file, bad).unwrap();
            assert!(load(&[HOME], &flags).is_err(), "{bad}");
        }
    }

    #[test]
    fn without_a_home_a_store_must_be_named() {
        assert!(load(&[], &no_flags()).is_err());
        let settings = load(&[("STENO_HOME", "/env")], &no_flags()).unwrap();
        assert_eq!(settings.store.value, PathBuf::from("/env"));
    }

    #[test]
    fn settings_document_names_every_variable() {
        let asked = RefCell::new(std::collections::BTreeSet::new());
        let environment = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            (name == "HOME").then(|| "/home/user".into())
        };
        let settings = Settings::load(&no_flags(), None, &environment).unwrap();
        assert_eq!(settings.variables.into_keys().collect::<Vec<_>>(), ["HOME"]);
        let document = steno_testkit::places::read("docs/settings.md");
        let table = document.lines().filter(|line| line.starts_with('|')).collect::<String>();
        let is_name =
            |word: &&str| word.contains('_') && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let mut named: std::collections::BTreeSet<_> = table
            .split(|c: char| !c.is_ascii_alphabetic() && c != '_')
            .filter(is_name)
            .map(str::to_owned)
            .collect();
        // The document writes the home directory as `~`.
        named.insert("HOME".to_owned());
        assert_eq!(asked.into_inner(), named);
        for key in KNOWN_KEYS {
            assert!(table.contains(&format!("| `{key}` |")), "{key}");
        }
    }
}
