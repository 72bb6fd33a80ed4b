//! Those who listen: most read what comes, some do not read at all.

use std::time::Duration;

use steno_testkit::bench_programs::Outcome;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::Connection;
use crate::recorders::Run;
use crate::server::Server;
use crate::{LISTENERS, STALLED};

/// How long one that did not read waits for more when it does.
const LAST_READ_MAX: Duration = Duration::from_secs(1);

/// What a listener does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    Reads,
    Stalls,
}

/// What a listener has heard.
pub(crate) struct ListenerReport {
    pub(crate) kind: Listener,
    pub(crate) run: u32,
    pub(crate) events: u64,
    /// The last number.
    pub(crate) last: u64,
    /// How often a number did not follow the one before.
    pub(crate) gaps: u64,
    /// Whether it was told to catch up.
    pub(crate) lagged: bool,
    /// Whether its stream ended before the load did.
    pub(crate) ended: bool,
}

pub(crate) async fn start(
    server: &Server,
    runs: &[Run],
    stop: watch::Receiver<bool>,
) -> Outcome<Vec<JoinHandle<ListenerReport>>> {
    // Those who do not read are at the busier runs, where that shows.
    let (listened, busy): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| run.is_listened_to);
    let mut listeners = Vec::new();
    for number in 0..LISTENERS {
        let kind = if number < STALLED { Listener::Stalls } else { Listener::Reads };
        let among = if kind == Listener::Stalls { &busy } else { &listened };
        let run = *among[number % among.len()];
        let mut connection = match kind {
            Listener::Reads => Connection::open(&server.reached()).await?,
            Listener::Stalls => Connection::narrow(&server.reached()).await?,
        };
        let head =
            format!("GET /v1/runs/{}/events?since_seq=1 HTTP/1.1\r\nAccept: text/event-stream", run.id());
        let (status, _) = connection.send(&head, "").await?;
        if status != 200 {
            return Err(format!("listener {number} was refused: {status}").into());
        }
        listeners.push(tokio::spawn(listen(connection, run.number, kind, stop.clone())));
    }
    Ok(listeners)
}

async fn listen(
    mut connection: Connection,
    run: u32,
    kind: Listener,
    mut stop: watch::Receiver<bool>,
) -> ListenerReport {
    let mut heard = ListenerReport { kind, run, events: 0, last: 1, gaps: 0, lagged: false, ended: false };
    if kind == Listener::Stalls {
        stop.wait_for(|stop| *stop).await.ok();
    }
    let mut line = Vec::new();
    loop {
        let read = tokio::select! {
            read = connection.line(&mut line) => read,
            _ = stop.wait_for(|stop| *stop), if kind == Listener::Reads => return heard,
            // One that was not dropped has read all there was.
            () = tokio::time::sleep(LAST_READ_MAX), if kind == Listener::Stalls => return heard,
        };
        let Ok(Some(_)) = read else {
            heard.ended = true;
            return heard;
        };
        if line.starts_with(b"event: lagged") {
            heard.lagged = true;
        }
        if let Some(seq) = seq(&line) {
            heard.events += 1;
            heard.gaps += u64::from(seq != heard.last + 1);
            heard.last = seq;
        }
    }
}

/// Returns the number of the event that a line names.
fn seq(line: &[u8]) -> Option<u64> {
    let id = line.strip_prefix(b"id: ")?;
    std::str::from_utf8(id).ok()?.split('.').next()?.parse().ok()
}

pub(crate) async fn join(listeners: Vec<JoinHandle<ListenerReport>>) -> Outcome<Vec<ListenerReport>> {
    let mut heard = Vec::new();
    for listener in listeners {
        heard.push(listener.await?);
    }
    Ok(heard)
}
