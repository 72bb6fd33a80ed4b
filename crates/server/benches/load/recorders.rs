//! Those who record: each sends what is due at its time, whether or not the last was answered in time.

use std::time::{Duration, Instant};

use steno_testkit::bench_programs::Outcome;
use tokio::task::JoinHandle;

use crate::ServerAddress;
use crate::client::Connection;
use crate::server::Server;

/// How many runs there are. Half are listened to, and slower.
const RUNS: u32 = 64;
const BATCH_EVERY: Duration = Duration::from_millis(100);
const BATCH_LISTENED: u64 = 12;
const BATCH_OTHER: u64 = 51;

/// A run that is recorded.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) number: u32,
    pub(crate) is_listened_to: bool,
}

/// What became of a run.
pub(crate) struct RunResult {
    pub(crate) run: u32,
    /// How many events were acknowledged, its first one left out.
    pub(crate) acknowledged: u64,
    pub(crate) latencies: Vec<Duration>,
}

impl Run {
    pub(crate) fn id(self) -> String {
        id(self.number)
    }
}

pub(crate) fn id(number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

/// Returns all runs.
pub(crate) fn plan() -> Vec<Run> {
    (0..RUNS).map(|number| Run { number, is_listened_to: number % 2 == 0 }).collect()
}

/// Begins all runs, so that they can be listened to.
pub(crate) async fn begin(server: &Server, runs: &[Run]) -> Outcome<()> {
    let mut connection = Connection::open(&server.reached()).await?;
    for run in runs {
        let (status, length) = connection.send(&head(*run), &events(1, *run)).await?;
        connection.body(length).await?;
        if status != 200 {
            return Err(format!("run {} cannot begin: {status}", run.number).into());
        }
    }
    Ok(())
}

fn head(run: Run) -> String {
    format!("POST /v1/runs/{}/events?level=synced HTTP/1.1\r\nContent-Type: application/x-ndjson", run.id())
}

/// Events as lines: of about 300 bytes, and of 1,300 in busy runs, where those who do not read are.
fn events(count: u64, run: Run) -> String {
    let text = "x".repeat(if run.is_listened_to { 190 } else { 1_190 });
    let event = format!(
        "{{\"type\":\"message.user\",\"payload\":{{\"role\":\"user\",\"blocks\":[{{\"type\":\"text\",\"fidelity\":\"router\",\"text\":\"{text}\"}}]}}}}\n"
    );
    event.repeat(usize::try_from(count).unwrap_or(0))
}

/// Records until the time is over, or the server is gone.
pub(crate) async fn record(reached: ServerAddress, run: Run, lasts: Duration) -> RunResult {
    let mut recorded = RunResult { run: run.number, acknowledged: 0, latencies: Vec::new() };
    let batch = if run.is_listened_to { BATCH_LISTENED } else { BATCH_OTHER };
    let (body, head) = (events(batch, run), head(run));
    let Ok(mut connection) = Connection::open(&reached).await else { return recorded };
    // Not all at the same moment.
    let begun = Instant::now() + BATCH_EVERY / RUNS * run.number;
    for number in 0.. {
        let due = begun + BATCH_EVERY * number;
        if due.duration_since(begun) >= lasts {
            break;
        }
        tokio::time::sleep_until(due.into()).await;
        let Ok((200, length)) = connection.send(&head, &body).await else { break };
        let Ok(answer) = connection.body(length).await else { break };
        // What waited for the answer before counts from when it was due.
        recorded.latencies.push(due.elapsed());
        let acks = answer.windows(6).filter(|window| window == b"\"seq\":").count() as u64;
        recorded.acknowledged += acks;
        if acks != batch {
            break;
        }
    }
    recorded
}

pub(crate) async fn join(recorders: Vec<JoinHandle<RunResult>>) -> Outcome<Vec<RunResult>> {
    let mut recorded = Vec::new();
    for recorder in recorders {
        recorded.push(recorder.await?);
    }
    Ok(recorded)
}
