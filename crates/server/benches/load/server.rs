//! `steno serve` as a process of its own, and what it leaves behind.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steno_testkit::bench_programs::{self, Outcome};

use crate::recorders::{RunResult, id};

const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// How a server is reached.
pub(crate) struct ServerAddress {
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// A server over a store of its own.
pub(crate) struct Server {
    child: Child,
    store: tempfile::TempDir,
    reached: Arc<ServerAddress>,
}

/// The most memory that was seen, in kilobytes.
pub(crate) struct Peak(Arc<AtomicU64>);

impl Peak {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Server {
    pub(crate) fn start(dir: &Path) -> Outcome<Self> {
        let store = tempfile::tempdir_in(dir)?;
        let steno = bench_programs::steno();
        let mut command = Command::new(steno);
        command.arg("--store").arg(store.path()).args(["serve", "--port", "0", "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let told: serde_json::Value = serde_json::from_str(&line)?;
        let file = fs::read_to_string(told["token_file"].as_str().ok_or("no token file")?)?;
        let file: serde_json::Value = serde_json::from_str(&file)?;
        let port =
            told["url"].as_str().and_then(|url| url.rsplit(':').next()?.parse().ok()).ok_or("no port")?;
        let token = file["token"].as_str().ok_or("no token")?.to_owned();
        Ok(Self { child, store, reached: Arc::new(ServerAddress { port, token }) })
    }

    pub(crate) fn reached(&self) -> Arc<ServerAddress> {
        Arc::clone(&self.reached)
    }

    /// Watches how much memory the server takes, until it is gone.
    pub(crate) fn watch_memory(&self) -> Peak {
        let peak = Arc::new(AtomicU64::new(0));
        let (seen, path) = (Arc::clone(&peak), format!("/proc/{}/status", self.child.id()));
        std::thread::spawn(move || {
            while let Ok(status) = fs::read_to_string(&path) {
                let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
                let Some(kilobytes) = line.and_then(|line| line.split_whitespace().next()?.parse().ok())
                else {
                    break;
                };
                seen.fetch_max(kilobytes, Ordering::Relaxed);
                std::thread::sleep(LOOK_INTERVAL);
            }
        });
        Peak(peak)
    }

    /// Asks the server to end, and waits for it.
    pub(crate) fn end(&mut self) -> Outcome<()> {
        let id = i32::try_from(self.child.id())?;
        let pid = rustix::process::Pid::from_raw(id).ok_or("no process")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        if self.child.wait()?.success() { Ok(()) } else { Err("the server did not end well".into()) }
    }

    pub(crate) fn kill(&mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Returns how many acknowledged events are not in the transcripts, which are read as plain files.
    pub(crate) fn lost(&self, recorded: &[RunResult]) -> Outcome<u64> {
        let mut lost = 0;
        for run in recorded {
            let path = self.store.path().join(format!("transcripts/{}.jsonl", id(run.run)));
            let text = fs::read(path)?;
            let mut lines = 0;
            for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
                lines += 1;
                if !line.starts_with(format!("{{\"seq\":{lines},").as_bytes()) {
                    return Err(format!("run {}: line {lines} has another number", run.run).into());
                }
            }
            // The first event began the run.
            lost += (run.acknowledged + 1).saturating_sub(lines);
        }
        Ok(lost)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
