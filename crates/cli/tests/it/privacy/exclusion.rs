//! `exclude_projects`, through every command that records.

use std::fs;

use super::world::{World, append, write};
use super::{PUBLIC, SECRET, assert_absent, assert_present, assert_whole, copy_dir, done, is_present};
use crate::app_server::AppServerClient;
use crate::kit::{Steno, wait_until};

fn worlds(steno: &Steno, pattern: &str) -> (World, World) {
    let (secret, public) = (World::new(steno, SECRET, 0x5e), World::new(steno, PUBLIC, 0xab));
    secret.write();
    public.write();
    write(
        &steno.dir.path().join(".config/steno/config.toml"),
        &format!("exclude_projects = [\"{pattern}\"]\n"),
    );
    (secret, public)
}

#[test]
fn excluded_project_is_not_stored_under_any_name() {
    let dir = format!("/src/{SECRET}-project");
    for pattern in
        [dir.clone(), format!("{dir}/"), format!("/src/{}*", &SECRET[..5]), "/src/zq7s*/".to_owned()]
    {
        let steno = Steno::new();
        let (_, public) = worlds(&steno, &pattern);
        let said = steno.run(&["import"]);
        done(&said);
        assert!(said.out.contains("lines of shared files left out"), "{}", said.out);
        assert_absent(&steno, SECRET, &pattern);
        assert_whole(&steno, PUBLIC);
        done(&steno.run(&["verify"]));
        // A shared file that is stored in part is marked as such.
        let history = public.home.join(".claude/history.jsonl").display().to_string();
        let said = steno.run(&["restore", &history, "--to", "given-back"]);
        done(&said);
        assert!(said.out.contains("without lines of excluded or forgotten sessions"), "{}", said.out);
        let given = fs::read_to_string(steno.dir.path().join("given-back/history.jsonl")).unwrap();
        assert!(given.contains("zq7public typed") && !given.contains(SECRET), "{given}");
    }
}

#[test]
fn exclusion_covers_subdirectories_but_not_longer_names() {
    let steno = Steno::new();
    let mut below = World::new(&steno, SECRET, 0x5e);
    below.dir = format!("/src/up/{SECRET}");
    below.write();
    let mut longer = World::new(&steno, PUBLIC, 0xab);
    longer.dir = format!("/src/up-{PUBLIC}-project");
    longer.write();
    let excluded = [("STENO_EXCLUDE_PROJECTS", "/src/up")];
    let mut command = steno.command(&["import"]);
    command.envs(excluded);
    done(&crate::kit::run(command, b""));
    assert_absent(&steno, SECRET, "below");
    assert_whole(&steno, PUBLIC);
}

#[test]
fn excluded_project_stays_out_of_every_command() {
    let steno = Steno::new();
    let (secret, _) = worlds(&steno, &format!("/src/{SECRET}-project"));
    // A copy of all homes, a single file elsewhere, and the session's file as a spine.
    for agent in [".claude", ".codex", ".gemini", ".copilot"] {
        copy_dir(&steno.dir.path().join(agent), &steno.dir.path().join("backup").join(agent));
    }
    done(&steno.run(&["import", "backup"]));
    for (from, to) in [(secret.claude_file(), "loose/one.jsonl"), (secret.codex_file(), "loose/two.jsonl")] {
        let to = steno.dir.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
    fs::copy(steno.dir.path().join(".claude/history.jsonl"), steno.dir.path().join("loose/history.jsonl"))
        .unwrap();
    done(&steno.run(&["import", "loose"]));
    let file = secret.codex_file().display().to_string();
    let said = steno.run(&["spine", "record", &file]);
    assert_eq!(said.code, 1, "{said:?}");
    done(&steno.run(&["up", "--once", "--no-serve"]));
    done(&steno.run(&["spine", "record", "--all"]));
    assert_absent(&steno, SECRET, "by any way");
    assert_whole(&steno, PUBLIC);
}

#[test]
fn excluded_project_stays_out_while_following() {
    let steno = Steno::new();
    let (secret, public) = worlds(&steno, &format!("/src/{SECRET}-project"));
    let mut live = steno.start(&["watch"]);
    live.line();
    let later = public.beside(0xac, "zq7public-later");
    secret.beside(0x5f, SECRET).write();
    later.write();
    let history = steno.dir.path().join(".claude/history.jsonl");
    append(&history, &format!("{{\"display\":\"{SECRET} more\",\"project\":\"{}\"}}\n", secret.dir));
    for place in [" prompt", " todo", " typed"] {
        wait_until(place, || is_present(&steno, &format!("zq7public-later{place}")));
    }
    live.signal("INT");
    done(&live.ended());
    assert_absent(&steno, SECRET, "followed");
}

/// A server that starts threads in a given directory, and answers turns with their text.
const SERVER: &str = r#"
while IFS= read -r line; do
  case "$line" in
    *thread/start*cwd*) printf '{"id":2,"result":{"thread":{"id":"%s"},"cwd":"%s"}}\n' "$THREAD" "$DIR" ;;
    *thread/list*) printf '{"id":5,"result":{"data":[{"id":"%s","cwd":"%s","preview":"zq7secret preview"}]}}\n' "$THREAD" "$DIR" ;;
    *turn/start*) printf '{"id":3,"result":{"turn":{"id":"u1"}}}\n{"method":"item/completed","params":{"threadId":"%s","item":{"type":"agentMessage","text":"zq7secret answer"}}}\n' "$THREAD" ;;
    *) printf '{"id":1,"result":{"ok":"zq7public initialized"}}\n' ;;
  esac
done
"#;

#[test]
fn excluded_project_stays_out_of_connections() {
    let steno = Steno::new();
    let (secret, _) = worlds(&steno, &format!("/src/{SECRET}-project"));
    let script = SERVER.replace("$THREAD", &secret.codex).replace("$DIR", &secret.dir);
    let mut connected = AppServerClient::begin(&steno, &["sh", "-c", &script]);
    let mut heard = String::new();
    for (said, answers) in [
        (r#"{"method":"initialize","id":1,"params":{}}"#.to_owned(), 1),
        (r#"{"method":"thread/list","id":5,"params":{}}"#.to_owned(), 1),
        (format!(r#"{{"method":"thread/start","id":2,"params":{{"cwd":"{}"}}}}"#, secret.dir), 1),
        (
            format!(
                r#"{{"method":"turn/start","id":3,"params":{{"threadId":"{}","input":[{{"type":"text","text":"{SECRET} said"}}]}}}}"#,
                secret.codex
            ),
            2,
        ),
    ] {
        connected.say(&said);
        (0..answers).for_each(|_| heard.push_str(&connected.hear()));
    }
    let (_, code, _) = connected.end();
    assert_eq!(code, 0);
    assert!(heard.contains("zq7secret answer"), "what is not recorded is handed on: {heard}");
    assert_absent(&steno, SECRET, "over a connection");
    assert_absent(&steno, &secret.codex, "the thread");
    assert_present(&steno, "zq7public initialized");
    assert_present(&steno, "left_out");
}

#[test]
fn doctor_names_a_pattern_that_matches_nothing() {
    let steno = Steno::new();
    worlds(&steno, &format!("/src/{SECRET}-project\", \"/src/misspelt"));
    let said = steno.run(&["doctor", "--json"]);
    let about = |text: &str| said.out.lines().filter(|line| line.contains(text)).count();
    assert_eq!((about("/src/misspelt"), about(&format!("/src/{SECRET}-project"))), (1, 0), "{}", said.out);
}

/// Files with secrets in the homes of agents, and in a session's directory, where all other names are archived.
#[test]
fn credentials_settings_and_shell_snapshots_are_not_archived_unless_they_are_named() {
    let steno = Steno::new();
    let public = World::new(&steno, PUBLIC, 0xab);
    public.write();
    let home = steno.dir.path();
    let beside = public.claude_file().with_extension("");
    let files = [
        home.join(".claude/.credentials.json"),
        home.join(".claude/settings.json"),
        home.join(".claude/shell-snapshots/snapshot-bash-1.sh"),
        home.join(".codex/auth.json"),
        home.join(".codex/config.toml"),
        home.join(".gemini/oauth_creds.json"),
        home.join(".gemini/.env"),
        home.join(".copilot/config.json"),
        beside.join("tool-results/.env"),
        beside.join("auth.json"),
    ];
    for file in &files {
        write(file, &format!("{{\"token\":\"{SECRET}\"}}\n"));
    }
    copy_dir(&home.join(".claude"), &home.join("backup/.claude"));
    for args in [&["import"][..], &["import", "backup"], &["up", "--once", "--no-serve"]] {
        done(&steno.run(args));
        assert_absent(&steno, SECRET, &format!("{args:?}"));
    }
    assert_whole(&steno, PUBLIC);
    done(&steno.run(&["import", files[3].to_str().unwrap()]));
    assert_present(&steno, SECRET);
}
