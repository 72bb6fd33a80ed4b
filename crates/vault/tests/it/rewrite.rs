//! Removing bytes from a source: all of its generations change, or none, and the removed bytes are deleted.

use std::sync::Arc;

use steno_testkit::sim_disk::{Death, Fault, SimDisk};
use steno_vault::{Error, ForgetRequest, Reason, Remainder, Vault};

use crate::kit::{NOW, disk, read, session, small_vault, write};
use crate::packs::all_chunks;

const SECRET: &str = "the-secret-of-this-line";
const WHY: Reason = Reason::Session;

/// The two generations of the shared file, with some lines to remove.
fn generations() -> [Vec<u8>; 2] {
    let lines = |seed: u64, len: usize| {
        let text = String::from_utf8(session(seed, len, "others")).unwrap();
        let with_secret = text.lines().enumerate().map(|(number, line)| {
            let secret = if number % 7 == 3 { format!("{SECRET} {number}\n") } else { String::new() };
            format!("{line}\n{secret}")
        });
        with_secret.collect::<Vec<_>>().concat().into_bytes()
    };
    [lines(1, 20_000), lines(2, 30_000)]
}

fn without_secret(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.split_inclusive('\n').filter(|line| !line.contains(SECRET)).collect::<Vec<_>>().concat().into_bytes()
}

fn filled(disk: &SimDisk) {
    let vault = small_vault(disk).unwrap();
    let mut writer = write(&vault, "shared");
    let [first, second] = generations();
    writer.append(&first).unwrap();
    writer.begin_generation("rewritten", NOW).unwrap();
    writer.append(&second).unwrap();
    // The end of it is in the tail.
    writer.save_state(None, None, NOW, Remainder::InTail).unwrap();
    drop(writer);
    let mut other = write(&vault, "other");
    other.append(&session(5, 30_000, "other")).unwrap();
    other.save_state(None, None, NOW, Remainder::InChunks).unwrap();
    drop(other);
    vault.close_pack().unwrap();
}

/// Removes the lines as `forget` does.
fn rewrite(vault: &Arc<Vault>) -> Result<(), Error> {
    vault.sweep_later(NOW)?;
    let mut writer = vault.write(crate::kit::id("shared"), &crate::kit::info("shared"), NOW)?;
    writer.rewrite(|_, bytes| without_secret(&bytes))?;
    drop(writer);
    vault.forget_all(ForgetRequest::default(), WHY, NOW).map(|_| ())
}

/// Fails unless both generations are as they were, or both without the lines; tells which.
#[track_caller]
fn check_whole(vault: &Vault, context: &str) -> bool {
    let [first, second] = generations();
    let found = [read(vault, "shared", 0), read(vault, "shared", 1)];
    let is_changed = found[0] != first;
    let want = if is_changed { [without_secret(&first), without_secret(&second)] } else { [first, second] };
    assert!(found == want, "{context}: neither as it was nor without the lines");
    assert!(read(vault, "other", 0) == session(5, 30_000, "other"), "{context}");
    is_changed
}

#[track_caller]
fn check_gone(disk: &SimDisk, context: &str) {
    let has_secret = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    for (path, bytes) in disk.snapshot() {
        assert!(!has_secret(&bytes), "{context}: `{path}` has the secret");
    }
    assert!(!all_chunks(disk).values().any(|chunk| has_secret(chunk)), "{context}: a chunk has the secret");
}

#[test]
fn rewrite_removes_lines_and_keeps_the_rest() {
    let disk = disk(1);
    filled(&disk);
    let vault = small_vault(&disk).unwrap();
    assert!(!check_whole(&vault, "before"));
    rewrite(&vault).unwrap();
    assert!(check_whole(&vault, "after"));
    check_gone(&disk, "after");
    assert!(vault.verify(|_| ()).unwrap().findings.is_empty());
    // It continues at its new end.
    let mut writer = write(&vault, "shared");
    writer.append(b"more\n").unwrap();
    writer.commit(Remainder::InTail).unwrap();
    let want = [without_secret(&generations()[1]), b"more\n".to_vec()].concat();
    assert!(read(&vault, "shared", 1) == want);
}

#[test]
fn killed_rewrite_changes_all_or_nothing() {
    let calls = {
        let disk = disk(1);
        filled(&disk);
        let vault = small_vault(&disk).unwrap();
        let before = disk.calls();
        rewrite(&vault).unwrap();
        disk.calls() - before
    };
    let (mut fired, mut changed) = (0, 0);
    for call in 1..=calls {
        for death in [Death::Kill, Death::PowerCut] {
            let disk = disk(call);
            filled(&disk);
            let vault = small_vault(&disk).unwrap();
            let before = disk.fired();
            disk.plan(Fault::DieAt { call });
            let done = rewrite(&vault);
            fired += disk.fired() - before;
            let disk = disk.die(death);
            drop((vault, done));
            // The next open completes the sweep.
            let vault = small_vault(&disk).unwrap();
            let context = format!("call {call}, {death:?}");
            if check_whole(&vault, &context) {
                changed += 1;
                check_gone(&disk, &context);
            } else {
                rewrite(&vault).unwrap();
                check_whole(&vault, &context);
                check_gone(&disk, &context);
            }
        }
    }
    assert_eq!(fired, calls * 2);
    assert!(calls > 20 && changed > 5 && changed < 2 * calls, "{calls} {changed}");
}
