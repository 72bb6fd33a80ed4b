//! `steno service`: what is installed runs, and what does not run is not installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use steno_testkit::skip;

use crate::kit::{Said, Steno, run};

/// A `systemctl` that writes down what it is asked for, and fails where a word says so.
const SYSTEMCTL: &str = "#!/bin/sh
echo \"$*\" >>asked
case \"$*\" in *$FAILING*) echo 'Failed to connect to bus: No medium found' >&2; exit 1;; esac
";

fn unit(steno: &Steno) -> PathBuf {
    steno.dir.path().join(".config/systemd/user/steno.service")
}

/// Runs `steno service` where every command of `systemctl` that has a word in it fails.
fn service(steno: &Steno, what: &str, failing: &str) -> Said {
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
fn a_service_that_cannot_be_started_is_not_left_installed() {
    if cfg!(target_os = "macos") {
        skip!("launchd is not systemd");
    }
    for failing in ["daemon-reload", "enable", "is-active"] {
        let steno = Steno::new();
        let said = service(&steno, "install", failing);
        assert_eq!(said.code, 3, "{failing}: {said:?}");
        for part in [failing, "is not installed", "was deleted again", "hint: ", "steno service print"] {
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
fn a_service_that_was_installed_before_stays_as_it_was() {
    if cfg!(target_os = "macos") {
        skip!("launchd is not systemd");
    }
    let steno = Steno::new();
    let said = service(&steno, "install", "nothing");
    assert!(said.code == 0 && said.err.contains("runs now, and at every login"), "{said:?}");
    assert_eq!(fs::read_to_string(unit(&steno)).unwrap(), service(&steno, "print", "nothing").out);
    fs::write(unit(&steno), "from before").unwrap();
    let said = service(&steno, "install", "enable");
    assert!(said.code == 3 && said.err.contains("is as it was before"), "{said:?}");
    assert_eq!(fs::read_to_string(unit(&steno)).unwrap(), "from before");
    let asked = fs::read_to_string(steno.dir.path().join("asked")).unwrap();
    assert!(!asked.contains("disable"), "{asked}");
    assert_eq!(service(&steno, "uninstall", "nothing").code, 0);
    assert!(!unit(&steno).exists());
}
