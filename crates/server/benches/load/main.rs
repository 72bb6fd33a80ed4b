//! How `steno serve` bears many who record and many who listen, some of whom do not read; and what a kill at the peak takes.
//!
//! Everything goes to loopback and ends by itself. Prints a table and writes `target/bench/load.json`; `docs/benchmarks.md`
//! explains the rows.

mod client;
mod listeners;
mod recorders;
mod server;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use steno_testkit::bench_programs::{self, Outcome};
use steno_testkit::bench_report::{Row, float, rounded};
use steno_testkit::bench_suite::Suite;
use tokio::sync::watch;

use listeners::{Listener, ListenerReport};
use recorders::{RunResult, plan};
use server::Server;

/// How long the load lasts, and how much of that a kill waits.
const LOAD_DURATION: Duration = Duration::from_secs(20);
const KILLED_AFTER: Duration = Duration::from_secs(8);
/// How many listen, and how many of them do not read.
const LISTENERS: usize = 300;
const STALLED: usize = 30;
/// What has to be borne.
const EVENTS_PER_S: f64 = 20_000.0;
const DELIVERIES_PER_S: f64 = 30_000.0;
const MEMORY_MB_MAX: f64 = 256.0;

fn main() -> Outcome<ExitCode> {
    let Some(suite) = Suite::begin("load", env!("CARGO_PKG_NAME"))? else { return Ok(ExitCode::SUCCESS) };
    bench_programs::build_steno()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if suite.includes("load") {
        runtime.block_on(bear(&suite))?;
    }
    if suite.includes("killed") {
        runtime.block_on(be_killed(&suite))?;
    }
    suite.finish()
}

/// Bears the load to its end: nothing that was acknowledged is lost, and whoever reads gets all of it.
async fn bear(suite: &Suite) -> Outcome<()> {
    let mut server = Server::start(suite.dir())?;
    let runs = plan();
    recorders::begin(&server, &runs).await?;
    let (stop, stopped) = watch::channel(false);
    let listeners = listeners::start(&server, &runs, stopped.clone()).await?;
    let peak = server.watch_memory();
    let recorders: Vec<_> = runs
        .iter()
        .map(|run| tokio::spawn(recorders::record(server.reached(), *run, LOAD_DURATION)))
        .collect();
    let recorded = recorders::join(recorders).await?;
    // Who reads gets the rest in a moment.
    tokio::time::sleep(Duration::from_secs(2)).await;
    stop.send(true).ok();
    let heard = listeners::join(listeners).await?;
    let memory_mb = float(peak.get()) / 1e3;
    server.end()?;
    let lost = server.lost(&recorded)?;
    report(suite, &recorded, &heard, memory_mb);
    suite.take(Row::new("load, acknowledged events lost", float(lost), "events").at_most(0.0));
    Ok(())
}

fn report(suite: &Suite, recorded: &[RunResult], heard: &[ListenerReport], memory_mb: f64) {
    let events: u64 = recorded.iter().map(|run| run.acknowledged).sum();
    let seconds = LOAD_DURATION.as_secs_f64();
    let mut latencies: Vec<Duration> =
        recorded.iter().flat_map(|run| run.latencies.iter().copied()).collect();
    latencies.sort();
    let at = |share: usize| {
        latencies.get(latencies.len() * share / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    let row = Row::new("load, events recorded a second", float(events) / seconds, "1/s")
        .at_least(EVENTS_PER_S * 0.98);
    suite.take(
        row.with("ack_p50_ms", rounded(at(50)))
            .with("ack_p99_ms", rounded(at(99)))
            .with("runs", recorded.len()),
    );
    let (read, stalled): (Vec<&ListenerReport>, Vec<&ListenerReport>) =
        heard.iter().partition(|heard| heard.kind == Listener::Reads);
    let delivered: u64 = read.iter().map(|heard| heard.events).sum();
    suite.take(
        Row::new("load, events delivered a second", float(delivered) / seconds, "1/s")
            .at_least(DELIVERIES_PER_S),
    );
    let behind = |heard: &&&ListenerReport| {
        recorded.iter().find(|run| run.run == heard.run).is_some_and(|run| heard.last < run.acknowledged + 1)
    };
    let incomplete = read.iter().filter(|heard| heard.gaps > 0 || behind(heard)).count();
    let row =
        Row::new("load, listeners that read and missed something", float(incomplete as u64), "listeners")
            .at_most(0.0);
    suite.take(
        row.with("listeners", read.len())
            .with("told_to_catch_up", read.iter().filter(|heard| heard.lagged).count()),
    );
    let dropped = stalled.iter().filter(|heard| heard.ended || heard.lagged).count();
    suite.take(
        Row::new("load, listeners that did not read and were dropped", float(dropped as u64), "listeners")
            .with("of", stalled.len()),
    );
    suite.take(Row::new("load, peak memory of the server", memory_mb, "MB").at_most(MEMORY_MB_MAX));
}

/// Is killed at the peak: what was acknowledged is there.
async fn be_killed(suite: &Suite) -> Outcome<()> {
    let mut server = Server::start(suite.dir())?;
    let runs = plan();
    recorders::begin(&server, &runs).await?;
    let (stop, stopped) = watch::channel(false);
    let listeners = listeners::start(&server, &runs, stopped).await?;
    let recorders: Vec<_> = runs
        .iter()
        .map(|run| tokio::spawn(recorders::record(server.reached(), *run, LOAD_DURATION)))
        .collect();
    tokio::time::sleep(KILLED_AFTER).await;
    server.kill()?;
    stop.send(true).ok();
    let recorded = recorders::join(recorders).await?;
    listeners::join(listeners).await.ok();
    let acknowledged: u64 = recorded.iter().map(|run| run.acknowledged).sum();
    let lost = server.lost(&recorded)?;
    let row = Row::new("killed, acknowledged events lost", float(lost), "events").at_most(0.0);
    suite.take(row.with("acknowledged", acknowledged).with("runs", recorded.len()));
    Ok(())
}

/// How a server is reached, for everybody who asks.
type ServerAddress = Arc<server::ServerAddress>;
