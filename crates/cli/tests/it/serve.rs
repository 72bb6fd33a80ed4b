//! `steno serve` and the server of `steno up`: only requests with the token are answered.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::kit::{RunningSteno, Steno, id, wait_until};

/// Sends a request to a server, with the token from its file.
pub fn ask(file: &Path, path: &str) -> String {
    request(file, &format!("GET {path}"), "")
}

/// Sends JSON to a server.
pub fn send(file: &Path, path: &str, body: &str) -> String {
    request(file, &format!("POST {path}"), body)
}

fn request(file: &Path, what: &str, body: &str) -> String {
    let reached: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let host = reached["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let token = reached["token"].as_str().unwrap();
    let mut stream = TcpStream::connect(&host).unwrap();
    write!(
        stream,
        "{what} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The files in which servers say how they are reached.
fn files(steno: &Steno) -> Vec<PathBuf> {
    let entries = fs::read_dir(steno.store().join("locks")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_ready = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // While it is put in place it has another name.
        name.starts_with("serve-") && !name.contains(".tmp-")
    };
    paths.filter(is_ready).collect()
}

#[test]
fn server_file_exists_only_while_serving() {
    let steno = Steno::new();
    let mut live = steno.start(&["serve", "--port", "0", "--json"]);
    let told: Value = serde_json::from_str(&live.line()).unwrap();
    let file = PathBuf::from(told["token_file"].as_str().unwrap());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(ask(&file, "/v1/health").starts_with("HTTP/1.1 200"));
    assert!(ask(&file, "/v1/nothing").starts_with("HTTP/1.1 404"));
    // The same port is taken.
    let port = told["url"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    let said = steno.run(&["serve", "--port", &port]);
    assert!(said.code == 3 && said.err.contains("--port 0"), "{said:?}");
    assert!(file.exists());
    live.signal("TERM");
    let said = live.ended();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!file.exists());
}

#[test]
fn up_serves_what_it_archives() {
    let steno = Steno::new();
    let store = steno.store().to_str().unwrap().to_owned();
    let live = steno.start(&["--store", &store, "up", "--demo", "--port", "0"]);
    wait_until("there is a server", || !files(&steno).is_empty());
    let file = files(&steno).remove(0);
    wait_until("all is archived", || ask(&file, "/v1/runs").matches("\"run_id\"").count() >= 3);
    assert!(ask(&file, "/v1/usage?by=provider").contains("\"provider\":\"claude\""));
    live.signal("INT");
    let said = live.ended();
    assert!(said.code == 0 && said.err.contains("serving http://127.0.0.1:"), "{said:?}");
    assert_eq!(files(&steno), Vec::<PathBuf>::new());
    let live = steno.start(&["--store", &store, "up", "--demo", "--no-serve"]);
    let follows = || steno.run(&["doctor", "--json"]).out.contains("\"followed\":true");
    wait_until("it follows", follows);
    assert_eq!(files(&steno), Vec::<PathBuf>::new());
    live.signal("INT");
    assert_eq!(live.ended().code, 0);
}

/// Returns the addresses that a process listens at, as the kernel has them.
fn listens_at(pid: u32) -> Vec<String> {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open: Vec<String> = fds
        .filter_map(|fd| Some(fs::read_link(fd.ok()?.path()).ok()?.to_string_lossy().into_owned()))
        .collect();
    let tables =
        ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default());
    let sockets = tables.iter().flat_map(|table| table.lines().skip(1));
    let fields = sockets.map(|line| line.split_whitespace().collect::<Vec<_>>());
    // `0A` is a socket that listens; the tenth field is its inode.
    let ours = fields.filter(|socket| socket[3] == "0A" && open.contains(&format!("socket:[{}]", socket[9])));
    ours.map(|socket| socket[1].to_owned()).collect()
}

#[test]
fn servers_listen_locally_and_up_falls_back_to_a_free_port() {
    const PORT: u16 = 7836;
    let steno = Steno::new();
    // If that fails the port is taken by others, which is as well.
    let _taken = TcpListener::bind(("127.0.0.1", PORT)).ok();
    let serve = steno.command(&["serve", "--port", "0", "--json"]);
    let up = steno.command(&["--store", steno.store().to_str().unwrap(), "up", "--demo"]);
    for command in [serve, up] {
        let live = RunningSteno::start(command);
        wait_until("there is a server", || !files(&steno).is_empty());
        let reached: Value =
            serde_json::from_str(&fs::read_to_string(files(&steno).remove(0)).unwrap()).unwrap();
        let port: u16 = reached["url"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
        assert_ne!(port, PORT);
        assert_eq!(listens_at(live.pid()), [format!("0100007F:{port:04X}")]);
        live.signal("INT");
        assert_eq!(live.ended().code, 0);
    }
}

#[test]
fn link_gives_a_browser_access() {
    let steno = Steno::new();
    let mut live = steno.start(&["serve", "--port", "0", "--json", "--link"]);
    let told: Value = serde_json::from_str(&live.line()).unwrap();
    let link = told["link"].as_str().unwrap();
    let (host, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
}

/// With few files that may be open it takes fewer connections, and answers.
#[test]
fn server_works_with_few_open_files() {
    let steno = Steno::new();
    let script = "ulimit -n 48 && exec \"$0\" \"$@\"";
    let mut live = RunningSteno::start(steno.shell(script, &["serve", "--port", "0", "--json"]));
    let told: Value = serde_json::from_str(&live.line()).unwrap();
    let file = PathBuf::from(told["token_file"].as_str().unwrap());
    let host = told["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let crowd: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&host).unwrap()).collect();
    assert!(ask(&file, "/v1/health").starts_with("HTTP/1.1 200"));
    drop(crowd);
    live.signal("TERM");
    let said = live.ended();
    assert!(said.code == 0 && !said.err.contains("cannot be taken"), "{said:?}");
}

/// Many clients send bodies that many small things are made of, again and again.
#[test]
fn many_long_bodies_need_no_more_memory() {
    const CLIENTS: u8 = 8;
    const ROUNDS: usize = 3;
    const BODY_BYTES: usize = 4 * 1024 * 1024;
    const MEMORY_KIB_MAX: u64 = 128 * 1024;
    let steno = Steno::new();
    let mut live = steno.start(&["serve", "--port", "0", "--json"]);
    let told: Value = serde_json::from_str(&live.line()).unwrap();
    let file = PathBuf::from(told["token_file"].as_str().unwrap());
    let block = r#"{"type":"text","text":"","fidelity":"router"}"#;
    let blocks = vec![block; BODY_BYTES / (block.len() + 1) - 10].join(",");
    let body = format!(r#"{{"type":"message.user","payload":{{"role":"user","blocks":[{blocks}]}}}}"#);
    let post = |client: u8| {
        for _ in 0..ROUNDS {
            let answer = send(&file, &format!("/v1/runs/{}/events", id(client)), &body);
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"seq\""), "{answer}");
        }
    };
    std::thread::scope(|scope| (0..CLIENTS).for_each(|client| drop(scope.spawn(move || post(client)))));
    let status = fs::read_to_string(format!("/proc/{}/status", live.pid())).unwrap();
    let most =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")).unwrap();
    assert!(most.trim().parse::<u64>().unwrap() <= MEMORY_KIB_MAX, "{most} KiB");
    live.signal("TERM");
    assert_eq!(live.ended().code, 0);
}

#[test]
fn usage_over_http_matches_the_command() {
    let steno = Steno::new();
    let store = steno.store().to_str().unwrap().to_owned();
    assert_eq!(steno.run(&["--store", &store, "up", "--demo", "--once", "--no-serve"]).code, 0);
    let mut live = steno.start(&["serve", "--port", "0", "--json"]);
    let told: Value = serde_json::from_str(&live.line()).unwrap();
    let file = PathBuf::from(told["token_file"].as_str().unwrap());
    for by in ["day,model", "provider", "session"] {
        let answer = ask(&file, &format!("/v1/usage?by={by}"));
        let body: Value = serde_json::from_str(answer.rsplit("\r\n\r\n").next().unwrap()).unwrap();
        let said = steno.run(&["usage", "--by", by, "--json"]);
        let rows: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(said.code == 0 && !rows.is_empty(), "{said:?}");
        assert_eq!(body["rows"], Value::Array(rows), "{by}");
    }
    live.signal("TERM");
    assert_eq!(live.ended().code, 0);
}
