//! How long an agent keeps its sessions, and where that is set. Codex, Copilot and `OpenCode` are not known to delete any.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use steno_model::Provider;

use super::homes::{Environment, Home};
use super::problem::{Problem, ProblemKind};
use super::settings::{Comments, read};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// The default of Claude and Gemini. Gemini of 2025 kept everything, but no file shows the release.
const DEFAULT_DAYS: u32 = 30;

/// How long an agent keeps its sessions.
///
/// Settings of single projects are not read, although an agent uses those of the project that it is started in.
#[derive(Debug)]
pub struct Retention {
    /// How long a session is kept after its last write; `None` when none is deleted because of its age.
    pub kept_for: Option<Duration>,
    /// How many sessions are kept of each project, if there is a limit.
    pub count_max: Option<u64>,
    /// Where that is set.
    pub set_by: RetentionOrigin,
    /// Settings that could not be read or have a bad value.
    pub problems: Vec<Problem>,
}

/// Where the retention is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetentionOrigin {
    /// A settings file.
    File(PathBuf),
    /// The agent's default.
    Default,
    /// Nowhere: the agent is not known to delete sessions.
    Nothing,
}

impl Retention {
    /// Returns the time from which the agent may delete a session's file, at its next start. If the time has passed,
    /// the file may be deleted at any moment. `None` when files are not deleted by age, or the time is out of range.
    #[must_use]
    pub fn due(&self, modified: Timestamp) -> Option<Timestamp> {
        modified.checked_add(self.kept_for?).ok()
    }

    /// Returns for how many whole days sessions are kept.
    #[must_use]
    pub fn days(&self) -> Option<u64> {
        self.kept_for.map(|kept| kept.as_secs() / DAY.as_secs())
    }
}

/// Finds out how long the agent of a home keeps its sessions.
#[must_use]
pub fn retention(home: &Home, environment: &Environment) -> Retention {
    match home.provider {
        Provider::Claude => claude(home, environment),
        Provider::Gemini => gemini(home, environment),
        Provider::Codex | Provider::Copilot | Provider::OpenCode => Retention {
            kept_for: None,
            count_max: None,
            set_by: RetentionOrigin::Nothing,
            problems: Vec::new(),
        },
    }
}

/// Settings files that override each other, the strongest first.
struct SettingsLayers {
    read: Vec<(PathBuf, Value)>,
    problems: Vec<Problem>,
}

impl SettingsLayers {
    fn read(paths: Vec<PathBuf>, comments: Comments) -> Self {
        let mut layers = Self { read: Vec::new(), problems: Vec::new() };
        for path in paths {
            match read(&path, comments) {
                Ok(settings) => layers.read.extend(settings.map(|settings| (path, settings))),
                Err(problem) => layers.problems.push(problem),
            }
        }
        layers
    }

    /// Returns the strongest value of a setting, and its file.
    fn find(&self, pointer: &str) -> Option<(&Path, &Value)> {
        let found =
            self.read.iter().filter_map(|(path, settings)| Some((&**path, settings.pointer(pointer)?)));
        found.into_iter().find(|(_, value)| !value.is_null())
    }
}

fn bad_setting(path: &Path, key: &'static str, value: &Value, effect: &'static str) -> Problem {
    Problem::new(path, ProblemKind::BadSetting { key, value: value.to_string(), effect })
}

fn claude(home: &Home, environment: &Environment) -> Retention {
    let key = "cleanupPeriodDays";
    let mut layers = SettingsLayers::read(claude_settings(home, environment), Comments::Refused);
    let found = layers.find("/cleanupPeriodDays").map(|(path, value)| (path.to_owned(), value.clone()));
    let Some((path, value)) = found else {
        let kept_for = Some(DAY * DEFAULT_DAYS);
        return Retention {
            kept_for,
            count_max: None,
            set_by: RetentionOrigin::Default,
            problems: layers.problems,
        };
    };
    let kept = value.as_f64().and_then(|days| Duration::try_from_secs_f64(days * DAY.as_secs_f64()).ok());
    if kept == Some(Duration::ZERO) {
        let effect = "releases before 2.1.89 delete everything at the next start; later releases refuse it";
        layers.problems.push(bad_setting(&path, key, &value, effect));
    }
    let (kept_for, set_by) = if let Some(kept) = kept {
        (kept, RetentionOrigin::File(path))
    } else {
        layers.problems.push(bad_setting(&path, key, &value, "not a number of days"));
        (DAY * DEFAULT_DAYS, RetentionOrigin::Default)
    };
    Retention { kept_for: Some(kept_for), count_max: None, set_by, problems: layers.problems }
}

/// The machine's settings override the user's, and a later drop-in overrides an earlier one.
fn claude_settings(home: &Home, environment: &Environment) -> Vec<PathBuf> {
    let managed = environment.system_root.join(if cfg!(target_os = "macos") {
        "Library/Application Support/ClaudeCode"
    } else {
        "etc/claude-code"
    });
    let drop_ins = std::fs::read_dir(managed.join("managed-settings.d")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = drop_ins.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension() == Some("json".as_ref()));
    paths.sort();
    paths.reverse();
    paths.extend([managed.join("managed-settings.json"), home.root.join("settings.json")]);
    paths
}

fn gemini(home: &Home, environment: &Environment) -> Retention {
    let mut layers = SettingsLayers::read(gemini_settings(home, environment), Comments::Allowed);
    let find = |name: &str| layers.find(&format!("/general/sessionRetention/{name}"));
    let enabled = find("enabled").filter(|(_, value)| value.is_boolean());
    let max_age = find("maxAge");
    let count_max = find("maxCount").and_then(|(_, value)| value.as_u64());
    let min_age = find("minRetention").and_then(|(_, value)| period(value)).unwrap_or(DAY);

    let set_by = |path: &Path| RetentionOrigin::File(path.to_owned());
    let (kept_for, set_by, problem) = match (enabled, max_age) {
        (Some((path, Value::Bool(false))), _) => (None, set_by(path), None),
        (_, None) => (Some(DAY * DEFAULT_DAYS), RetentionOrigin::Default, None),
        (_, Some((path, value))) => {
            let age = period(value).filter(|age| *age >= min_age);
            let effect = "not a valid period, or shorter than `minRetention`; nothing is deleted";
            let problem = || bad_setting(path, "general.sessionRetention.maxAge", value, effect);
            (age, set_by(path), age.is_none().then(problem))
        }
    };
    layers.problems.extend(problem);
    let count_max = count_max.filter(|_| kept_for.is_some());
    Retention { kept_for, count_max, set_by, problems: layers.problems }
}

/// The machine's settings override the user's, and these override the machine's defaults.
fn gemini_settings(home: &Home, environment: &Environment) -> Vec<PathBuf> {
    let system = environment.system_root.join(if cfg!(target_os = "macos") {
        "Library/Application Support/GeminiCli"
    } else {
        "etc/gemini-cli"
    });
    let named = |variable, default: &str| {
        environment.variable(variable).map_or_else(|| system.join(default), PathBuf::from)
    };
    vec![
        named("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "settings.json"),
        home.root.join("settings.json"),
        named("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "system-defaults.json"),
    ]
}

/// Parses a period in Gemini's format, such as `30d`: hours, days, weeks, or months of thirty days.
fn period(value: &Value) -> Option<Duration> {
    let text = value.as_str()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "h" => HOUR,
        "d" => DAY,
        "w" => DAY * 7,
        "m" => DAY * 30,
        _ => return None,
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: u32 = digits.parse().ok().filter(|&count| is_number && count > 0)?;
    unit.checked_mul(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_parsed_like_the_agent_does() {
        let cases = [
            ("24h", Some(DAY)),
            ("30d", Some(DAY * 30)),
            ("2w", Some(DAY * 14)),
            ("1m", Some(DAY * 30)),
            ("0d", None),
            ("+1d", None),
            ("d", None),
            ("", None),
            ("30", None),
            ("30 d", None),
            ("3ü", None),
            ("99999999999d", None),
        ];
        for (text, want) in cases {
            assert_eq!(period(&Value::from(text)), want, "{text}");
        }
        assert_eq!(period(&Value::from(30)), None);
    }
}
