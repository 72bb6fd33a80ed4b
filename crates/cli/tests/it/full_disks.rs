//! `steno app-server` on a file system that is really full for a while: it goes on recording as soon as it can.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use steno_testkit::{is_root, needs, skip, tool};

use crate::app_servers::{Connected, spine};
use crate::kit::{Steno, wait_until};

/// A small file system of its own, gone when the test ends.
struct Mounted(PathBuf);

impl Mounted {
    fn at(point: PathBuf) -> Option<Self> {
        fs::create_dir_all(&point).unwrap();
        let mut mount = Command::new("mount");
        let done = mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&point).output().ok()?;
        done.status.success().then_some(Self(point))
    }

    /// Takes up all of its room.
    fn fill(&self) {
        let mut ballast = fs::File::create(self.0.join("demo")).unwrap();
        let full = std::io::copy(&mut std::io::repeat(0), &mut ballast).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    fn empty(&self) {
        fs::remove_file(self.0.join("demo")).unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().ok();
    }
}

/// A server that knows one thread and says everything again.
const ECHO: &str = r#"
IFS= read -r line; printf '%s\n' '{"id":2,"result":{"thread":{"id":"th1"}}}'
exec cat
"#;

#[test]
fn a_disk_that_was_full_leaves_a_gap_of_which_every_message_is_counted() {
    needs!(tool("mount"), "mount is not installed");
    if !is_root() {
        skip!("mounting needs root");
    }
    let steno = Steno::new();
    let mounted = needs!(Mounted::at(steno.store()), "root may not mount a tmpfs here");
    let mut connected = Connected::begin(&steno, &["sh", "-c", ECHO]);
    connected.say(r#"{"method":"thread/start","id":2,"params":{}}"#);
    connected.hear();
    let spool = || {
        let entries = fs::read_dir(steno.store().join("connections")).unwrap();
        entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect::<String>()
    };
    let mut said = 2;
    // Whether the recorder has met the full disk shows only afterwards.
    while !spool().contains(r#""dir":"recorder""#) {
        mounted.fill();
        for number in 0..100 {
            connected
                .say(&format!(r#"{{"method":"item/updated","params":{{"threadId":"th1","n":{number}}}}}"#));
            connected.hear();
        }
        mounted.empty();
        let last = format!(r#"{{"method":"warning","params":{{"threadId":"th1","after":{said}}}}}"#);
        connected.say(&last);
        connected.hear();
        wait_until("it goes on", || spool().lines().filter(|line| line.contains(&last)).count() == 2);
        said += 202;
    }
    let (_, code, talk) = connected.end();
    assert_eq!(code, 0, "{talk}");
    assert!(talk.contains("not recorded: ") && talk.contains("No space left on device"), "{talk}");
    let records = spine(&steno, "th1");
    let number = |value: &Value| value.as_u64();
    let mut tickets: Vec<u64> =
        records.iter().filter_map(|record| number(&record["payload"]["rpc"]["ticket"])).collect();
    let there = tickets.len();
    for record in &records {
        let said = &record["payload"]["msg"];
        if said["type"] == "missing" {
            let (first, last) = (number(&said["first_ticket"]), number(&said["last_ticket"]));
            tickets.extend(first.unwrap()..=last.unwrap());
        }
    }
    tickets.sort_unstable();
    assert_eq!(tickets, (1..=said).collect::<Vec<_>>(), "each message is there or said to be missing");
    assert!((there as u64) < said, "{there} of {said}");
    let valid = steno.run(&["spine", "validate", "th1"]);
    assert!(valid.code == 0 && valid.out.starts_with("valid"), "{valid:?}");
}
