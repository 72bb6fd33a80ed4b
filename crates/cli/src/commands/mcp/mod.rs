//! `steno mcp -- SERVER…`: forwards every byte between an agent and an MCP server, and records. `--wrap-config` changes
//! an agent's configuration so that it starts its servers this way.

mod config_edit;
mod json_config;
mod toml_config;
mod wrap;

use steno_model::RunId;
use steno_recorder::connection::{ConnectionRecorder, ConnectionRules, McpBeginning};

use crate::args::McpArgs;
use crate::connections;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::recording::{EntriesLog, StoreHere};
use crate::server_proxy::{self, PreparedRecorder, ProxiedServer};
use crate::settings::Settings;

/// Variables in which agents name their session to the servers that they start.
const SESSION_VARIABLES: [&str; 2] = ["CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID"];

/// The variable in which `steno run` names its run.
const RUN_VARIABLE: &str = "STENO_RUN";

pub fn run(args: &McpArgs, settings: &Settings, output: &mut Output) -> Outcome {
    if let Some(path) = &args.wrap_config {
        return wrap::run(path, args, settings, output);
    }
    if args.undo || args.dry_run {
        return Err(Failure::usage("`--undo` and `--dry-run` need `--wrap-config`"));
    }
    let entries = server_proxy::open_entries(&args.entries, settings);
    server_proxy::run(&server_of(args), prepare(args, settings, entries))
}

/// Runs the server although the settings cannot be read, and records nothing.
pub fn run_without_settings(args: &McpArgs, failure: Failure) -> Outcome {
    if args.wrap_config.is_some() {
        return Err(failure);
    }
    server_proxy::run(&server_of(args), Err(failure))
}

fn server_of(args: &McpArgs) -> ProxiedServer<'_> {
    // The agent waits for its server to end, so this must not take long.
    ProxiedServer { command: &args.command, usage: "steno mcp -- SERVER", archives_leftovers: false }
}

fn prepare<'a>(
    args: &McpArgs,
    settings: &'a Settings,
    entries: Option<EntriesLog>,
) -> Result<PreparedRecorder<'a>, Failure> {
    let StoreHere { journal, exclusions, dir } = StoreHere::open(settings)?;
    let beginning = beginning(args);
    let sessions = beginning.session.iter().chain(&beginning.run).cloned();
    let rules = ConnectionRules::new(journal.store(), exclusions, dir, Vec::new()).of_sessions(sessions);
    if rules.is_forgotten() {
        return Err(Failure::nothing("the session of this server was forgotten"));
    }
    let recorder = ConnectionRecorder::begin_mcp(&journal, rules, beginning).map_err(connections::failure)?;
    Ok(PreparedRecorder::new(settings, journal, recorder, entries))
}

fn beginning(args: &McpArgs) -> McpBeginning {
    let id = |name: &str| {
        let value = std::env::var(name).ok()?;
        RunId::parse(&value).ok().map(|id| id.to_string())
    };
    McpBeginning {
        server: args.name.clone(),
        session: SESSION_VARIABLES.into_iter().find_map(id),
        run: id(RUN_VARIABLE),
    }
}
