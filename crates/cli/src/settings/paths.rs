//! The default paths of the store and the config file.

use std::path::{Path, PathBuf};

use super::{Environment, Origin, Setting, expand_home};
use crate::failure::Failure;

/// Returns the path of the config file, and whether a flag or variable names it; `None` without a home.
pub fn config_file(flag: Option<&Path>, environment: &Environment<'_>) -> Option<(PathBuf, bool)> {
    if let Some(path) = flag {
        return Some((path.to_owned(), true));
    }
    if let Some(path) = variable("STENO_CONFIG", environment) {
        return Some((expand_home(&path, environment), true));
    }
    let dir = platform_dir("XDG_CONFIG_HOME", ".config", environment)?;
    Some((dir.join("steno/config.toml"), false))
}

/// Returns the store's directory.
pub fn store(
    flag: Option<&Path>,
    from_file: Option<(String, Origin)>,
    environment: &Environment<'_>,
) -> Result<Setting<PathBuf>, Failure> {
    let setting = |value: PathBuf, origin| Setting { value: expand_home(&value, environment), origin };
    if let Some(path) = flag {
        return Ok(Setting { value: path.to_owned(), origin: Origin::Flag("--store") });
    }
    if let Some(path) = variable("STENO_HOME", environment) {
        return Ok(setting(path, Origin::Variable("STENO_HOME")));
    }
    if let Some((path, origin)) = from_file {
        return Ok(setting(path.into(), origin));
    }
    match platform_dir("XDG_DATA_HOME", data_dir(), environment) {
        Some(dir) => Ok(setting(dir.join("steno"), Origin::Default)),
        None => Err(Failure::usage("there is no home directory for the store")
            .with_hint("set a directory with `--store DIR` or STENO_HOME")),
    }
}

fn data_dir() -> &'static str {
    if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" }
}

fn platform_dir(xdg: &str, below_home: &str, environment: &Environment<'_>) -> Option<PathBuf> {
    // The XDG rule: a relative path counts as unset.
    variable(xdg, environment)
        .filter(|dir| dir.is_absolute())
        .or_else(|| variable("HOME", environment).map(|home| home.join(below_home)))
}

fn variable(name: &str, environment: &Environment<'_>) -> Option<PathBuf> {
    environment(name).map(PathBuf::from)
}
