//! Repositories as they stand. Needs git, and says so where there is none.

use std::path::Path;
use std::process::Command;

use steno_capture::git::look;
use steno_testkit::{needs, tool};

fn git(dir: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"];
    let status = Command::new("git").arg("-C").arg(dir).args(identity).args(args).output().expect("git runs");
    assert!(status.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&status.stderr));
}

/// What the working tree has is what the patch gives to whoever has only what others have.
#[test]
fn a_patch_against_the_nearest_commit_of_others_gives_the_working_tree() {
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
    let first = look(&own).unwrap();
    assert_eq!(first.url.as_deref(), Some("https://example.com/team/own.git"));
    assert_eq!((first.branch.as_deref(), first.diff.as_ref().unwrap().patch.len()), (Some("main"), 0));
    // One commit that others do not have, a change, a deletion, and files that git does not know.
    std::fs::write(own.join("kept.txt"), "one\n2\n").unwrap();
    git(&own, &["commit", "--quiet", "-am", "second"]);
    std::fs::write(own.join("kept.txt"), "one\n2\nthree\n").unwrap();
    std::fs::remove_file(own.join("gone.bin")).unwrap();
    std::fs::create_dir(own.join("new dir")).unwrap();
    std::fs::write(own.join("new dir/é\".txt"), "new\n").unwrap();
    std::fs::write(own.join("new.bin"), [0, 159, 146, 150]).unwrap();
    let state = look(&own.join("new dir")).unwrap();
    assert_eq!(state.root, own.canonicalize().unwrap());
    assert_ne!(state.commit, first.commit);
    let diff = state.diff.unwrap();
    assert_eq!(diff.base, first.commit);
    std::fs::write(dir.path().join("patch"), &diff.patch).unwrap();
    git(&others, &["apply", "../patch"]);
    for name in ["kept.txt", "new dir/é\".txt", "new.bin"] {
        assert_eq!(
            std::fs::read(others.join(name)).unwrap(),
            std::fs::read(own.join(name)).unwrap(),
            "{name}"
        );
    }
    assert!(!others.join("gone.bin").exists());
}

#[test]
fn where_there_is_no_repository_nothing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(look(dir.path()), None);
    assert_eq!(look(&dir.path().join("nothing")), None);
}
