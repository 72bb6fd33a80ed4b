//! The arguments of the commands that run a server behind its client.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::EntriesFileArgs;

#[derive(Args, Debug)]
pub struct AppServerArgs {
    #[command(flatten)]
    pub entries: EntriesFileArgs,
    /// The server and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "steno mcp [OPTIONS] -- <SERVER>...\n       steno mcp [OPTIONS] --wrap-config <FILE> [--undo]"
)]
pub struct McpArgs {
    /// The name of the server in the agent's configuration; tools are named after it
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub name: Option<String>,
    #[command(flatten)]
    pub entries: EntriesFileArgs,
    /// Change a configuration file so that its stdio servers are started by `steno mcp`. Only commands and arguments
    /// are changed
    #[arg(long, value_name = "FILE")]
    pub wrap_config: Option<PathBuf>,
    /// Undo the changes of `--wrap-config`
    #[arg(long, requires = "wrap_config")]
    pub undo: bool,
    /// Show what would be changed, and change nothing
    #[arg(long, requires = "wrap_config")]
    pub dry_run: bool,
    /// Notes for `--undo` that the configuration had no arguments
    #[arg(long, hide = true)]
    pub without_args: bool,
    /// The server and its arguments
    #[arg(
        last = true,
        required_unless_present = "wrap_config",
        conflicts_with = "wrap_config",
        value_name = "SERVER"
    )]
    pub command: Vec<OsString>,
}
