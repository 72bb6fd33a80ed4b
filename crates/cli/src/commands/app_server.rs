//! `steno app-server -- COMMAND…`: forwards every byte between a client and `codex app-server`, and records.

use steno_capture::discovery;
use steno_journal::Journal;
use steno_model::Provider;
use steno_recorder::connection::{ConnectionRecorder, ConnectionRules};
use steno_recorder::sources::Verdict;

use crate::args::AppServerArgs;
use crate::connections;
use crate::failure::{Failure, Outcome};
use crate::recording::{self, EntriesLog};
use crate::runs;
use crate::server_proxy::{self, PreparedRecorder, ProxiedServer};
use crate::settings::Settings;

pub fn run(args: &AppServerArgs, settings: &Settings) -> Outcome {
    let entries = server_proxy::open_entries(&args.entries, settings);
    let server = ProxiedServer {
        command: &args.command,
        usage: "steno app-server -- codex app-server",
        archives_leftovers: true,
    };
    server_proxy::run(&server, prepare(settings, entries))
}

fn prepare(settings: &Settings, entries: Option<EntriesLog>) -> Result<PreparedRecorder<'_>, Failure> {
    let journal = Journal::new(runs::make_store(settings)?, recording::journal_options(settings));
    recording::end_pause(&journal, settings)?;
    let exclusions = settings.capture.exclusions();
    let here = std::env::current_dir().ok().map(|dir| dir.to_string_lossy().into_owned());
    if exclusions.judge_dir(here.as_deref()) == Verdict::Excluded {
        return Err(Failure::nothing("`exclude_projects` excludes this directory"));
    }
    let homes = discovery::homes(&recording::environment()).found;
    let homes = homes.into_iter().filter(|home| home.provider == Provider::Codex).map(|home| home.root);
    let rules = ConnectionRules::new(journal.store(), exclusions, here, homes.collect());
    let recorder = ConnectionRecorder::begin(&journal, rules).map_err(connections::failure)?;
    Ok(PreparedRecorder::new(settings, journal, recorder, entries))
}
