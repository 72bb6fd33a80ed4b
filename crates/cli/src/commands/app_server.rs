//! `steno app-server -- COMMAND…`: forwards every byte between a client and `codex app-server`, and records.

use steno_capture::discovery;
use steno_model::Provider;
use steno_recorder::connection::{ConnectionRecorder, ConnectionRules};

use crate::args::AppServerArgs;
use crate::connections;
use crate::failure::{Failure, Outcome};
use crate::recording::{self, EntriesLog, StoreHere};
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
    let StoreHere { journal, exclusions, dir } = StoreHere::open(settings)?;
    let homes = discovery::homes(&recording::environment()).found;
    let homes = homes.into_iter().filter(|home| home.provider == Provider::Codex).map(|home| home.root);
    let rules = ConnectionRules::new(journal.store(), exclusions, dir, homes.collect());
    let recorder = ConnectionRecorder::begin(&journal, rules).map_err(connections::failure)?;
    Ok(PreparedRecorder::new(settings, journal, recorder, entries))
}
