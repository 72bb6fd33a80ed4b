//! The proxy is transparent for both sides, and the recorded lines are complete and in order.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;

use steno_capture::proxy::{ProxiedLine, Pump, PumpEnd, tap};
use steno_model::Lane;

/// The far end, the way back from it, and the lines that a pump between forwards.
fn wire() -> ((UnixStream, UnixStream), (UnixStream, UnixStream)) {
    (UnixStream::pair().expect("a pair"), UnixStream::pair().expect("a pair"))
}

#[test]
fn requests_come_before_their_fast_responses() {
    const ROUNDS: usize = 3000;
    let ((mut client, near), (far, server)) = wire();
    let (tap, conversation) = tap();
    let forward = Pump { from: near.try_clone().unwrap(), to: far.try_clone().unwrap(), lane: Lane::ToAgent };
    let back = Pump { from: far, to: near, lane: Lane::FromAgent };
    let pumps = [
        thread::spawn({
            let tap = tap.clone();
            move || {
                let to = forward.to.try_clone().unwrap();
                let end = forward.run(&tap);
                // As a pipe's end would be: a socket has two directions.
                to.shutdown(std::net::Shutdown::Write).ok();
                end
            }
        }),
        thread::spawn(move || back.run(&tap)),
    ];
    let echo = thread::spawn(move || {
        let mut answers = server.try_clone().unwrap();
        for line in BufReader::new(server).lines() {
            writeln!(answers, "answer to {}", line.unwrap()).unwrap();
        }
    });
    let mut answers = BufReader::new(client.try_clone().unwrap());
    for round in 0..ROUNDS {
        writeln!(client, "{round}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, format!("answer to {round}\n"));
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    echo.join().unwrap();
    for pump in pumps {
        assert!(matches!(pump.join().unwrap(), PumpEnd::Closed));
    }
    let heard: Vec<(Lane, String)> = conversation
        .map(|said| match said {
            ProxiedLine::Line { lane, line, .. } => (lane, String::from_utf8(line).unwrap()),
            ProxiedLine::Lost { .. } => panic!("nothing is lost"),
        })
        .collect();
    let said = (0..ROUNDS).flat_map(|round| {
        [(Lane::ToAgent, round.to_string()), (Lane::FromAgent, format!("answer to {round}"))]
    });
    assert!(heard.into_iter().eq(said), "each question stands before its answer");
}

/// All bytes pass unchanged, and a line of megabytes is one line.
#[test]
fn proxy_is_transparent_for_a_process() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let long = "x".repeat(3_000_000);
    let input = [b"one\n\0\xff\r\n".as_slice(), long.as_bytes(), b"\nno newline at the end"].concat();
    let (tap, conversation) = tap();
    let forward = Pump {
        from: std::io::Cursor::new(input.clone()),
        to: child.stdin.take().unwrap(),
        lane: Lane::ToAgent,
    };
    let sending = thread::spawn({
        let tap = tap.clone();
        move || forward.run(&tap)
    });
    let mut output = Vec::new();
    let back = Pump { from: child.stdout.take().unwrap(), to: &mut output, lane: Lane::FromAgent };
    assert!(matches!(back.run(&tap), PumpEnd::Closed));
    assert!(matches!(sending.join().unwrap(), PumpEnd::Closed));
    drop(tap);
    child.wait().unwrap();
    assert!(output == input, "{} bytes of {}", output.len(), input.len());
    let mut lanes = [Vec::new(), Vec::new()];
    for said in conversation {
        let ProxiedLine::Line { lane, line, .. } = said else { panic!("nothing is lost") };
        lanes[usize::from(lane == Lane::FromAgent)].push(line);
    }
    let want: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    assert!(lanes.iter().all(|lines| lines.iter().map(Vec::as_slice).eq(want.iter().copied())));
}

/// A side that stops reading ends the connection, as without the proxy.
#[test]
fn closed_reader_is_noticed() {
    let (client, near) = UnixStream::pair().unwrap();
    drop(client);
    let (tap, conversation) = tap();
    let pump = Pump { from: std::io::repeat(b'y'), to: near, lane: Lane::FromAgent };
    assert!(matches!(pump.run(&tap), PumpEnd::Unread));
    drop(tap);
    assert_eq!(conversation.count(), 1, "what could not be handed on was said too");
}

/// A writer that looks at what the recorder has been given when bytes arrive.
struct Watching {
    heard: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    lines: std::sync::mpsc::Receiver<ProxiedLine>,
}

impl std::io::Write for Watching {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        assert!(self.lines.try_recv().is_err(), "recorded before it was forwarded");
        self.heard.lock().expect("no test panics with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The server has a call before the recorder does, so recording cannot delay it.
#[test]
fn bytes_are_forwarded_before_they_are_recorded() {
    const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}\n";
    let (tap, conversation) = tap();
    let (send, lines) = std::sync::mpsc::channel();
    let recorder = thread::spawn(move || {
        conversation.for_each(|line| send.send(line).unwrap_or_default());
    });
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let to = Watching { heard: std::sync::Arc::clone(&heard), lines };
    let pump = Pump { from: std::io::Cursor::new(CALL), to, lane: Lane::ToAgent };
    assert!(matches!(pump.run(&tap), PumpEnd::Closed));
    drop(tap);
    recorder.join().unwrap();
    assert_eq!(*heard.lock().unwrap(), CALL);
}
