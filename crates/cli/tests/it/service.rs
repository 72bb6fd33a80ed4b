//! `steno service`: the service has the settings of its user, and is removed if it does not run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::UNIX_EPOCH;

use steno_testkit::skip;

use crate::kit::{CommandOutput, RunningSteno, Steno, program, run, wait_until};

/// A `systemctl` that logs its arguments, and fails for a given word.
const SYSTEMCTL: &str = "#!/bin/sh
echo \"$*\" >>asked
case \"$*\" in *$FAILING*) echo 'Failed to connect to bus: No medium found' >&2; exit 1;; esac
";

fn unit(steno: &Steno) -> PathBuf {
    steno.dir.path().join(".config/systemd/user/steno.service")
}

/// Runs `steno service`; commands of `systemctl` that contain a given word fail.
fn service(steno: &Steno, what: &str, failing: &str) -> CommandOutput {
    let dir = steno.dir.path().join("bin");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("systemctl"), SYSTEMCTL).unwrap();
    fs::set_permissions(dir.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command: Command = steno.command(&["service", what]);
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("FAILING", failing);
    run(command, b"")
}

#[test]
fn service_that_cannot_start_is_removed() {
    if cfg!(target_os = "macos") {
        skip!("launchd is not systemd");
    }
    for failing in ["daemon-reload", "enable", "restart", "is-active"] {
        let steno = Steno::new();
        let said = service(&steno, "install", failing);
        assert_eq!(said.code, 3, "{failing}: {said:?}");
        for part in [failing, "was not installed", "was removed again", "hint: ", "steno service print"] {
            assert!(said.err.contains(part), "{failing}, {part}: {}", said.err);
        }
        assert!(!said.err.contains("runs now"), "{failing}: {}", said.err);
        assert_eq!(said.err.matches("Failed to connect").count(), 1, "{}", said.err);
        assert!(!steno.dir.path().join(".config").exists(), "{failing}");
        let asked = fs::read_to_string(steno.dir.path().join("asked")).unwrap();
        assert!(asked.contains("disable --now steno.service"), "{failing}: {asked}");
    }
}

#[test]
fn failed_install_keeps_the_old_service() {
    if cfg!(target_os = "macos") {
        skip!("launchd is not systemd");
    }
    let steno = Steno::new();
    let said = service(&steno, "install", "nothing");
    assert!(said.code == 0 && said.err.contains("runs now, and at every login"), "{said:?}");
    assert_eq!(fs::read_to_string(unit(&steno)).unwrap(), service(&steno, "print", "nothing").out);
    // An upgrade replaces the program; the old one must not run on.
    let asked = fs::read_to_string(steno.dir.path().join("asked")).unwrap();
    assert!(asked.contains("restart steno.service"), "{asked}");
    fs::write(unit(&steno), "from before").unwrap();
    let said = service(&steno, "install", "enable");
    assert!(said.code == 3 && said.err.contains("is unchanged"), "{said:?}");
    assert_eq!(fs::read_to_string(unit(&steno)).unwrap(), "from before");
    let asked = fs::read_to_string(steno.dir.path().join("asked")).unwrap();
    assert!(!asked.contains("disable"), "{asked}");
    assert_eq!(service(&steno, "uninstall", "nothing").code, 0);
    assert!(!unit(&steno).exists());
}

/// The words of a unit's line, as systemd reads them.
fn unit_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            '\\' => word.push(letters.next().map(|next| if next == 'n' { '\n' } else { next }).unwrap()),
            // Both are doubled to escape them.
            '%' | '$' => {
                letters.next_if_eq(&letter);
                word.push(letter);
            }
            other => word.push(other),
        }
    }
    words.push(word);
    words
}

/// The command and the variables of a unit.
struct Unit {
    command: Vec<String>,
    variables: BTreeMap<String, String>,
}

fn parse_unit(text: &str) -> Unit {
    let values = |key: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix(key)).map(str::to_owned).collect()
    };
    let command = unit_words(&values("ExecStart=")[0]);
    let variables = values("Environment=").into_iter().map(|value| {
        let [pair] = &unit_words(&value)[..] else { panic!("{value}") };
        pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap()
    });
    Unit { command, variables: variables.collect() }
}

/// Key and value of each setting, as `steno config` shows them.
#[track_caller]
fn values(command: Command) -> Vec<(String, String)> {
    let said = run(command, b"");
    assert_eq!(said.code, 0, "{said:?}");
    said.json().iter().map(|line| (line["key"].to_string(), line["value"].to_string())).collect()
}

/// Compares the settings that a user has with those of the service that the user installs.
#[track_caller]
fn check(flags: &[&str], variables: &[(&str, &str)], differs_from_default: &[&str]) {
    let steno = Steno::new();
    let dir = steno.dir.path();
    let config = "seal_idle = 7\nexclude_projects = [\"/src/a, b\", \"~/private\"]\nstore = \"~/by-file\"\n";
    for file in ["here.toml", "odd $1 \"name\" 100%/c.toml", "xdg/steno/config.toml"] {
        fs::create_dir_all(dir.join(file).parent().unwrap()).unwrap();
        fs::write(dir.join(file), config).unwrap();
    }
    let user = |args: &[&str]| {
        let mut command = steno.command(&[flags, args].concat());
        command.env_remove("STENO_HOME").envs(variables.iter().copied());
        // A path that begins with a slash begins in the test's own directory.
        for (name, value) in variables.iter().filter(|(_, value)| value.starts_with('/')) {
            command.env(name, format!("{}{value}", dir.display()));
        }
        command
    };
    let mut seen = values(user(&["config", "--json"]));
    let store = serde_json::from_str::<PathBuf>(&seen[0].1).unwrap();
    seen[0].1 = serde_json::to_string(&dir.join(store)).unwrap();
    let unit = parse_unit(&run(user(&["service", "print"]), b"").out);
    let (program, rest) = unit.command.split_first().unwrap();
    let (last, flags_of_unit) = rest.split_last().unwrap();
    assert_eq!(last, "up");
    let mut service = Command::new(program);
    service.args(flags_of_unit).args(["config", "--json"]).current_dir("/").env_clear().envs(&unit.variables);
    assert_eq!(values(service), seen, "{flags:?} {variables:?}: {:?} {:?}", unit.command, unit.variables);
    let mut bare = steno.command(&["config", "--json"]);
    let default = values({
        bare.env_remove("STENO_HOME");
        bare
    });
    let differing: Vec<_> =
        seen.iter().filter(|pair| !default.contains(pair)).map(|(key, _)| &**key).collect();
    assert_eq!(differing, differs_from_default, "{flags:?} {variables:?}");
}

#[test]
fn service_has_the_settings_of_its_user() {
    if cfg!(target_os = "macos") {
        skip!("launchd is not systemd");
    }
    let file = &["\"store\"", "\"seal_idle\"", "\"exclude_projects\""];
    check(&[], &[], &[]);
    check(&["--config", "here.toml"], &[], file);
    check(&["--config", "odd $1 \"name\" 100%/c.toml"], &[], file);
    check(&[], &[("STENO_CONFIG", "here.toml")], file);
    check(&[], &[("STENO_CONFIG", "~/here.toml")], file);
    check(&[], &[("XDG_CONFIG_HOME", "/xdg")], file);
    check(&["--store", "odd $1"], &[("XDG_DATA_HOME", "/data")], &["\"store\""]);
    check(&["--color", "never"], &[("STENO_HOME", "relative")], &["\"store\"", "\"color\""]);
    check(&[], &[("XDG_DATA_HOME", "/data"), ("NO_COLOR", "1")], &["\"store\"", "\"color\""]);
    let all = [
        ("STENO_HOME", "~/elsewhere"),
        ("STENO_LEVEL", "written"),
        ("STENO_COLOR", "always"),
        ("STENO_SEAL_IDLE", "9"),
        ("STENO_TAILING", "polling"),
        ("STENO_POLL_INTERVAL", "0.5"),
        ("STENO_SUBAGENT_DISCOVERY_INTERVAL", "2.5"),
        ("STENO_MAX_READ_BYTES", "4096"),
        ("STENO_ENTRIES", "~/entries.jsonl"),
        ("STENO_EMIT_RAW", "false"),
        ("STENO_EXCLUDE_PROJECTS", "/src/secret,~/client-*"),
        ("STENO_EXCLUDE_PATHS", "~/100% \"private\"/$HOME"),
    ];
    let keys = run(Steno::new().command(&["config", "--json"]), b"").json();
    let keys = keys.iter().map(|line| line["key"].to_string());
    // Prices are only in the file.
    let keys: Vec<_> = keys.filter(|key| key != "\"prices\"").collect();
    check(&[], &all, &keys.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn service_without_the_same_settings_is_refused() {
    use std::os::unix::ffi::OsStringExt as _;
    let steno = Steno::new();
    let mut command = steno.command(&["service", "print"]);
    command.env("CODEX_HOME", std::ffi::OsString::from_vec(b"/caf\xe9".to_vec()));
    let said = run(command, b"");
    assert!(said.code == 2 && said.err.contains("`CODEX_HOME` is not UTF-8"), "{said:?}");
}

#[test]
fn doctor_finds_an_up_that_is_older_than_the_program() {
    let steno = Steno::new();
    let old = steno.dir.path().join("old-steno");
    fs::copy(program(), &old).unwrap();
    fs::File::options().write(true).open(&old).unwrap().set_modified(UNIX_EPOCH).unwrap();
    let doctor = || steno.run(&["doctor"]).out;
    assert!(!doctor().contains("is older than"));
    for (program, is_old) in [(old.into_os_string(), true), (program(), false)] {
        let own = steno.command(&[]);
        let mut up = Command::new(program);
        up.arg("up").env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        up.current_dir(steno.dir.path());
        let up = RunningSteno::start(up);
        let lock = steno.store().join("locks/follow.lock");
        wait_until("it follows", || {
            fs::read_to_string(&lock).is_ok_and(|text| text.starts_with(&format!("{}\n", up.pid())))
        });
        let said = doctor();
        assert_eq!(
            said.contains(&format!("`steno up` (process {}) is older than", up.pid())),
            is_old,
            "{said}"
        );
        up.signal("INT");
        assert_eq!(up.ended().code, 0);
    }
}
