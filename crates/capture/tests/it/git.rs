//! The state of repositories. Needs git, and is skipped without it.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use steno_capture::git::{PatchDirection, apply, committed, look, look_at_working_tree};
use steno_testkit::{needs, tool};

fn git(dir: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"];
    let status = Command::new("git").arg("-C").arg(dir).args(identity).args(args).output().expect("git runs");
    assert!(status.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&status.stderr));
}

/// The patch, applied to the remote commit, gives the working tree.
#[test]
fn patch_against_the_remote_commit_gives_the_working_tree() {
    needs!(tool("git"), "git is not installed");
    let dir = tempfile::tempdir().unwrap();
    let (others, own) = (dir.path().join("others"), dir.path().join("own"));
    std::fs::create_dir(&others).unwrap();
    git(&others, &["init", "--quiet"]);
    std::fs::write(others.join("kept.txt"), "one\ntwo\n").unwrap();
    std::fs::write(others.join("gone.bin"), [0, 1, 2, 255]).unwrap();
    git(&others, &["add", "."]);
    git(&others, &["commit", "--quiet", "-m", "first"]);
    git(dir.path(), &["clone", "--quiet", "others", "own"]);
    git(&own, &["config", "remote.origin.url", "https://me:secret@example.com/team/own.git"]);
    for setting in ["diff.noprefix", "diff.relative", "diff.mnemonicPrefix"] {
        git(&own, &["config", setting, "true"]);
    }
    let first = look(&own).unwrap();
    assert_eq!(first.url.as_deref(), Some("https://example.com/team/own.git"));
    assert_eq!((first.branch.as_deref(), first.diff.as_ref().unwrap().patch.len()), (Some("main"), 0));
    // One commit that the remote does not have, a change, a deletion, and untracked files.
    std::fs::write(own.join("kept.txt"), "one\n2\n").unwrap();
    git(&own, &["commit", "--quiet", "-am", "second"]);
    std::fs::write(own.join("kept.txt"), "one\n2\nthree\n").unwrap();
    std::fs::remove_file(own.join("gone.bin")).unwrap();
    std::fs::create_dir(own.join("new dir")).unwrap();
    std::fs::write(own.join("new dir/é\".txt"), "new\n").unwrap();
    std::fs::write(own.join("new.bin"), [0, 159, 146, 150]).unwrap();
    let noise = (0..100_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0]);
    std::fs::write(own.join("new dir/\u{e9}.bin"), noise.collect::<Vec<u8>>()).unwrap();
    std::fs::write(own.join("a b.txt"), "no end of line").unwrap();
    std::fs::write(own.join("tab\t\\.txt"), "1\r\n2\n\n").unwrap();
    std::fs::write(own.join("empty"), "").unwrap();
    std::fs::write(own.join("program"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(own.join("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("kept.txt", own.join("link")).unwrap();
    let state = look(&own.join("new dir")).unwrap();
    assert_eq!(state.root, own.canonicalize().unwrap());
    assert_ne!(state.commit, first.commit);
    let diff = state.diff.unwrap();
    assert_eq!(diff.base, first.commit);
    std::fs::write(dir.path().join("patch"), &diff.patch).unwrap();
    git(&others, &["apply", "../patch"]);
    assert_eq!(look_at_working_tree(&own), Some(diff));
    let new = ["a b.txt", "tab\t\\.txt", "empty", "program", "link"];
    let binary = ["new.bin", "new dir/é.bin"];
    for name in ["kept.txt", "new dir/é\".txt"].into_iter().chain(binary).chain(new) {
        assert_eq!(
            std::fs::read(others.join(name)).unwrap(),
            std::fs::read(own.join(name)).unwrap(),
            "{name}"
        );
    }
    assert!(!others.join("gone.bin").exists());
    let mode = |name: &str| others.join(name).symlink_metadata().unwrap().permissions().mode() & 0o170_100;
    assert_eq!([mode("program"), mode("empty"), mode("link")], [0o100_100, 0o100_000, 0o120_100]);
}

/// What the settings of a repository name is not run for a new file, and its bytes are those of the disk.
#[test]
fn new_binary_file_is_recorded_as_it_is() {
    needs!(tool("git"), "git is not installed");
    for format in ["sha1", "sha256"] {
        let dir = tempfile::tempdir().unwrap();
        let (own, copy, ran) = (dir.path().join("own"), dir.path().join("copy"), dir.path().join("ran"));
        std::fs::create_dir(&own).unwrap();
        git(&own, &["init", "--quiet", "--object-format", format]);
        std::fs::write(own.join(".gitattributes"), "*.bin filter=shout\n").unwrap();
        git(&own, &["add", "."]);
        git(&own, &["commit", "--quiet", "-m", "first"]);
        git(dir.path(), &["clone", "--quiet", "own", "copy"]);
        git(&own, &["config", "filter.shout.clean", &format!("touch '{}'; tr a-z A-Z", ran.display())]);
        std::fs::write(own.join("new.bin"), b"\0quiet").unwrap();
        let diff = look_at_working_tree(&own).unwrap();
        assert!(!ran.exists(), "{format}");
        std::fs::write(dir.path().join("patch"), &diff.patch).unwrap();
        git(&copy, &["apply", "../patch"]);
        assert_eq!(std::fs::read(copy.join("new.bin")).unwrap(), b"\0quiet", "{format}");
    }
}

/// After a merge of the remote branch, the merged commit is the base, and not the one that both began at.
#[test]
fn base_is_the_newest_ancestor_on_a_remote_branch() {
    needs!(tool("git"), "git is not installed");
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "--quiet"]);
    let commit = |name: &str, time: &str| {
        let date = format!("2026-01-01T00:00:{time}Z");
        let mut command = Command::new("git");
        command.arg("-C").arg(dir.path()).args(["-c", "user.name=A", "-c", "user.email=a@example.com"]);
        command.args(["commit", "--quiet", "--allow-empty", "-m", name]);
        command.env("GIT_COMMITTER_DATE", &date).env("GIT_AUTHOR_DATE", &date);
        assert!(command.status().unwrap().success());
        object(dir.path(), "HEAD")
    };
    let base = || look(dir.path()).unwrap().diff.unwrap().base;
    let first = commit("first", "01");
    assert_eq!(base(), first, "without a remote branch");
    git(dir.path(), &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let own = commit("own", "02");
    assert_eq!(base(), first);
    git(dir.path(), &["checkout", "--quiet", "--detach", &first]);
    let theirs = commit("theirs", "03");
    git(dir.path(), &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    assert_eq!(base(), theirs, "on the remote branch");
    git(dir.path(), &["checkout", "--quiet", &own]);
    assert_eq!(base(), first);
    git(dir.path(), &["merge", "--quiet", "--no-edit", &theirs]);
    assert_eq!(base(), theirs);
}

#[test]
fn directories_without_a_repository_have_no_state() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(look(dir.path()), None);
    assert_eq!(look(&dir.path().join("nothing")), None);
}

/// A repository with one file, and its commit.
fn with_one_file(dir: &Path) -> String {
    git(dir, &["init", "--quiet"]);
    std::fs::write(dir.join("a.txt"), "one\n").expect("a file can be written");
    git(dir, &["add", "."]);
    git(dir, &["commit", "--quiet", "-m", "first"]);
    look(dir).expect("there is a repository").commit
}

fn object(dir: &Path, name: &str) -> String {
    let done = Command::new("git").arg("-C").arg(dir).args(["rev-parse", name]).output().expect("git runs");
    String::from_utf8(done.stdout).expect("a name of an object is text").trim().to_owned()
}

/// The settings of a repository can name a program that fetches what is absent.
#[test]
fn reading_a_commit_fetches_nothing() {
    needs!(tool("git"), "git is not installed");
    let dir = tempfile::tempdir().unwrap();
    let commit = with_one_file(dir.path());
    let (blob, ran) = (object(dir.path(), "HEAD:a.txt"), dir.path().join("ran"));
    let program = format!("touch '{}'; false", ran.display());
    for (name, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "file:///nowhere"),
        ("remote.origin.uploadpack", &program),
    ] {
        git(dir.path(), &["config", name, value]);
    }
    std::fs::remove_file(dir.path().join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    assert!(committed(dir.path(), &commit).is_err());
    assert!(!ran.exists());
    // Without our settings git runs it.
    Command::new("git").arg("-C").arg(dir.path()).args(["cat-file", "-p", &blob]).output().expect("git runs");
    assert!(ran.exists());
}

#[test]
fn replacement_of_a_commit_is_ignored() {
    needs!(tool("git"), "git is not installed");
    let dir = tempfile::tempdir().unwrap();
    let commit = with_one_file(dir.path());
    let want = committed(dir.path(), &commit).unwrap();
    std::fs::write(dir.path().join("a.txt"), "two\n").unwrap();
    git(dir.path(), &["commit", "--quiet", "-am", "second"]);
    git(dir.path(), &["replace", &commit, "HEAD"]);
    assert_eq!(committed(dir.path(), &commit).unwrap(), want);
}

/// In a repository, git silently ignores the parts of a patch outside the directory.
#[test]
fn patches_apply_below_another_repository() {
    needs!(tool("git"), "git is not installed");
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "--quiet"]);
    let below = dir.path().join("a:b/c");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(below.join("a.txt"), "one\n").unwrap();
    std::fs::write(below.join(".gitattributes"), "* text eol=crlf\n").unwrap();
    let patch = |from: &str| format!("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-{from}\n+two\n").into_bytes();
    assert!(apply(&below, &patch("three"), PatchDirection::Forward).is_err());
    apply(&below, &patch("one"), PatchDirection::Forward).unwrap();
    assert_eq!(std::fs::read_to_string(below.join("a.txt")).unwrap(), "two\n");
}
