//! Arguments of the commands that archive agents' files and give them back.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Files or directories, wherever they lie; what is inside is recognised by content [default: the agents' homes]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Print what was archived as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct WatchArgs {
    /// Files or directories, wherever they lie [default: the agents' homes]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub tailing: TailingArgs,
    /// Print what was archived as one JSON object, and one more at the end
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// A run's UUID or the beginning of it
    pub run: String,
    /// Write below this directory, and not where the files were
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Give back this generation of the session's own file, and not the last one
    #[arg(long, value_name = "NUMBER")]
    pub generation: Option<u32>,
    /// Show what there is, and write nothing
    #[arg(long)]
    pub list: bool,
    /// Print one JSON object a file
    #[arg(long)]
    pub json: bool,
}

/// How files are followed.
#[derive(Args, Clone, Copy, Debug)]
pub struct TailingArgs {
    /// Look at files every `poll_interval` seconds, and do not rely on the system to tell of changes
    #[arg(long)]
    pub poll: bool,
}
