//! `steno proxy --upstream URL`: forwards model calls over HTTP, and records them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steno_capture::http_proxy::{HttpMessages, HttpProxy, HttpTap, Upstream, http_tap, serve};
use steno_journal::Journal;
use steno_model::with_causes;
use steno_recorder::connection::{HttpRecorder, HttpRules, RecordedConnection, UnrecordedMessages};
use tokio::sync::watch;

use crate::args::ProxyArgs;
use crate::background_server::listen;
use crate::connections;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::recording::{self, EntriesLog, StopSignal, StoreHere, warn};
use crate::settings::Settings;

/// The default port.
const PORT: u16 = 7837;
/// The number of worker threads for connections.
const WORKERS: usize = 2;
/// How often to check for a signal.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How often finished exchanges are archived.
const ARCHIVE_INTERVAL: Duration = Duration::from_secs(3);
/// How long to wait for connections after the proxy has ended.
const LAST_WORK: Duration = Duration::from_secs(1);

pub fn run(args: &ProxyArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let upstream = Upstream::parse(&args.upstream).map_err(|error| Failure::usage(error.to_string()))?;
    let stop = StopSignal::listen()?;
    let (tap, messages) = http_tap();
    let proxy = RunningProxy::start(args, upstream.clone(), tap)?;
    let entries = EntriesLog::open(&args.entries, settings).unwrap_or_else(|failure| {
        warn(&format!("no entries are logged: {}", failure.message));
        None
    });
    // Requests are forwarded even if nothing can be recorded.
    let recording = prepare(settings, entries, &upstream).and_then(|prepared| prepared.record(messages));
    if let Err(failure) = &recording {
        warn(&format!("NOTHING IS RECORDED: {}; requests are forwarded anyway", failure.message));
    }
    announce(args, &upstream, &proxy, output);
    let mut archived = Instant::now();
    while !stop.is_set() {
        std::thread::sleep(LOOK_INTERVAL);
        if let Ok(recording) = &recording
            && archived.elapsed() >= ARCHIVE_INTERVAL
        {
            recording.archive(settings);
            archived = Instant::now();
        }
    }
    drop(proxy);
    match recording {
        Ok(recording) => recording.settle(settings),
        Err(_) => warn("NOTHING WAS RECORDED of these requests"),
    }
    Ok(Exit::Done)
}

/// Prints the address, and how programs are told to use it.
fn announce(args: &ProxyArgs, upstream: &Upstream, proxy: &RunningProxy, output: &mut Output) {
    let url = format!("http://127.0.0.1:{}", proxy.port);
    if args.json {
        let announcement =
            serde_json::json!({"url": url, "upstream": upstream.origin(), "pid": std::process::id()});
        output.json_line(&announcement.to_string());
        output.flush();
        return;
    }
    crate::output::notice(&format!("forwarding {url} to {}; press Ctrl-C to stop", upstream.origin()));
    for line in [
        format!("Claude Code:  ANTHROPIC_BASE_URL={url}"),
        format!("OpenAI SDKs:  OPENAI_BASE_URL={url}/v1"),
        format!("Codex:        base_url = \"{url}/v1\" below [model_providers.NAME] in config.toml"),
        format!("Gemini CLI:   GOOGLE_GEMINI_BASE_URL={url}"),
    ] {
        crate::output::notice(&line);
    }
}

/// The proxy in worker threads. It ends when this is dropped.
struct RunningProxy {
    port: u16,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl RunningProxy {
    fn start(args: &ProxyArgs, upstream: Upstream, tap: HttpTap) -> Result<Self, Failure> {
        let (listener, port) = listen(args.port.unwrap_or(PORT))?;
        recording::raise_file_limit();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
        let proxy = {
            let _runtime = runtime.enter();
            HttpProxy::new(upstream, args.ca.as_deref(), tap)
        };
        let proxy = proxy.map_err(|error| Failure::could_not(with_causes(&error)))?;
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new().name("steno-proxy".to_owned()).spawn(move || {
            runtime.block_on(async {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => serve(listener, Arc::new(proxy), stopped).await,
                    Err(error) => tracing::error!("cannot forward: {error}"),
                }
            });
            // Requests that are still running are abandoned.
            runtime.shutdown_timeout(LAST_WORK);
        })?;
        Ok(Self { port, stop, thread: Some(thread) })
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        self.stop.send(true).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// A recorder that has no messages yet.
struct PreparedRecorder {
    journal: Journal,
    recorder: HttpRecorder,
    entries: Option<EntriesLog>,
}

fn prepare(
    settings: &Settings,
    entries: Option<EntriesLog>,
    upstream: &Upstream,
) -> Result<PreparedRecorder, Failure> {
    let StoreHere { journal, exclusions, .. } = StoreHere::open(settings)?;
    let rules = HttpRules::new(journal.store(), exclusions);
    let recorder = HttpRecorder::begin(&journal, rules, &upstream.origin()).map_err(connections::failure)?;
    let recorder = match &entries {
        Some(log) => recorder.with_entries(&log.collector),
        None => recorder,
    };
    Ok(PreparedRecorder { journal, recorder, entries })
}

impl PreparedRecorder {
    /// Records in a worker thread; the proxy never waits for it.
    fn record(self, messages: HttpMessages) -> Result<RecordingThread, Failure> {
        let Self { journal, mut recorder, entries } = self;
        let (spooled, ended) = (recorder.spooled(), Arc::<AtomicU64>::default());
        let counted = Arc::clone(&ended);
        let record = move || {
            for message in messages {
                recorder.record(&message);
                counted.fetch_add(u64::from(message.is_last), Ordering::Relaxed);
            }
            let (unrecorded, finished) = recorder.finish();
            (unrecorded, finished.map_err(connections::failure))
        };
        let record = move || match entries {
            Some(log) => log.collecting(record),
            None => record(),
        };
        let thread = std::thread::Builder::new().name("steno-record".to_owned()).spawn(record)?;
        Ok(RecordingThread { journal, spooled, thread, ended, archived: AtomicU64::new(0) })
    }
}

/// A recording in a worker thread.
struct RecordingThread {
    journal: Journal,
    spooled: RecordedConnection,
    thread: JoinHandle<(UnrecordedMessages, Result<(), Failure>)>,
    /// How many exchanges have ended, and how many of them are archived.
    ended: Arc<AtomicU64>,
    archived: AtomicU64,
}

impl RecordingThread {
    /// Archives what was recorded so far, if there is something new.
    fn archive(&self, settings: &Settings) {
        let ended = self.ended.load(Ordering::Relaxed);
        let is_paused = self.journal.store().is_paused(jiff::Timestamp::now());
        if is_paused || self.archived.swap(ended, Ordering::Relaxed) == ended {
            return;
        }
        let archived = connections::import_connection(&self.journal, settings, self.spooled, true);
        archived.unwrap_or_else(|failure| tracing::debug!("not archived yet: {}", failure.message));
    }

    /// Waits for the recording, reports gaps, and archives it together with connections that others left.
    fn settle(self, settings: &Settings) {
        let Ok((unrecorded, finished)) = self.thread.join() else { return warn("recording failed") };
        connections::warn_of_gaps(&unrecorded);
        if let Err(failure) = finished {
            warn(&failure.message);
        }
        // What is left is archived after the pause.
        if self.journal.store().is_paused(jiff::Timestamp::now()) {
            return;
        }
        let archived = connections::import_exchanges(&self.journal, settings, self.spooled);
        archived.unwrap_or_else(|failure| warn(&failure.message));
        connections::import_leftover_connections(&self.journal, settings);
    }
}
