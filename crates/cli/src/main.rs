//! `steno`: arguments, settings, output, exit codes. The work is done in the crates below.

mod args;
mod background_server;
mod commands;
mod connections;
mod demo;
mod failure;
mod id_lines;
mod index_progress;
mod output;
mod pager;
mod recording;
mod resume;
mod runs;
mod screen_style;
mod server_proxy;
mod settings;
mod time_words;
mod wraps;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};

use args::{Cli, Command};
use failure::{Exit, Failure, Outcome};
use output::Output;
use settings::Settings;

fn main() -> ExitCode {
    if let Some(exit) = commands::run::internal() {
        return exit;
    }
    let parsed =
        args::grouped(Cli::command()).try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return explain(error),
    };
    start_tracing(cli.global.verbose);
    // Past a file size limit a write should fail with EFBIG, not end the process.
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default()) {
        tracing::warn!("cannot ignore SIGXFSZ: {error}");
    }
    let outcome = run(&cli);
    let exit = outcome.unwrap_or_else(|failure| report(&failure));
    ExitCode::from(exit.code())
}

/// Prints help, or what is wrong with the arguments, which may contain any characters.
fn explain(mut error: clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::UnknownArgument {
        // clap suggests to pass it as a path or a run, which is rarely what was meant.
        error.remove(ContextKind::Suggested);
    }
    if error.use_stderr() {
        let mut text = error.to_string();
        if error.kind() == ErrorKind::InvalidSubcommand {
            text =
                text.replace("For more information, try '--help'.", "hint: `steno help` lists the commands");
        }
        write!(io::stderr(), "{}", steno_views::visible(&text, steno_views::Lines::Keep)).ok();
        return ExitCode::from(Exit::Usage.code());
    }
    // A closed stdout is not a failure.
    error.print().ok();
    ExitCode::SUCCESS
}

fn run(cli: &Cli) -> Outcome {
    let level = if let Some(Command::Record(args)) = &cli.command { args.level } else { None };
    let settings = match (Settings::load(&cli.global, level, &|name| std::env::var_os(name)), &cli.command) {
        (Ok(settings), _) => settings,
        // An agent's tools must not depend on our settings.
        (Err(failure), Some(Command::Mcp(args))) => {
            return commands::mcp::run_without_settings(args, failure);
        }
        (Err(failure), _) => return Err(failure),
    };
    let settings = if cli.global.demo { settings.for_samples() } else { settings };
    let mut output = Output::new(settings.color.value);
    let outcome = match &cli.command {
        Some(command) => dispatch(command, &settings, &mut output),
        None => commands::overview::run(&settings, &mut output),
    };
    match (outcome, output.finish()) {
        // The reader of stdout has left, which is not a failure.
        (Ok(_), Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        (Ok(_), Err(error)) => Err(Failure::could_not(format!("cannot write to stdout: {error}"))),
        (outcome, _) => outcome,
    }
}

fn dispatch(command: &Command, settings: &Settings, output: &mut Output) -> Outcome {
    match command {
        Command::Up(args) => commands::up::run(args, settings, output),
        Command::Watch(args) => commands::watch::run(args, settings, output),
        Command::Service(args) => commands::service::run(args, settings, output),
        Command::Pause(args) => commands::pause::pause(args, settings),
        Command::Resume => commands::pause::resume(settings),
        Command::Doctor(args) => Ok(commands::doctor::run(args, settings, output)),
        Command::Du(args) => commands::du::run(args, settings, output),
        Command::Forget(args) => commands::forget::run(args, settings, output),
        Command::Restore(args) => commands::restore::run(args, settings, output),
        Command::Import(args) => commands::import::run(args, settings, output),
        Command::Rederive(args) => commands::rederive::run(args, settings, output),
        Command::Record(args) => commands::record::run(args, settings),
        Command::Events(args) => commands::events::run(args, settings, output),
        Command::Tree(args) => commands::tree::run(args, settings, output),
        Command::Show(args) => commands::show::run(args, settings, output),
        Command::Follow(args) => commands::follow::run(args, settings, output),
        Command::Ls(args) => commands::ls::run(args, settings, output),
        Command::Changes(args) => commands::changes::run(args, settings, output),
        Command::Failures(args) => commands::failures::run(args, settings, output),
        Command::Search(args) => commands::search::run(args, settings, output),
        Command::Index(args) => commands::index::run(args, settings, output),
        Command::Verify(args) => commands::verify::run(args, settings, output),
        Command::Seal(args) => commands::seal::run(args, settings, output),
        Command::Entries(args) => commands::entries::run(args, settings),
        Command::Usage(args) => commands::usage::run(args, settings, output),
        Command::Receipt(args) => commands::receipt::run(args, settings, output),
        Command::Run(args) => commands::run::run(args, settings),
        Command::AppServer(args) => commands::app_server::run(args, settings),
        Command::Mcp(args) => commands::mcp::run(args, settings, output),
        Command::Proxy(args) => commands::proxy::run(args, settings, output),
        Command::Spine(args) => commands::spine::run(args, settings, output),
        Command::Export(args) => commands::export::run(args, settings, output),
        Command::Serve(args) => commands::serve::run(args, settings, output),
        Command::Config(args) => Ok(commands::config::run(args, settings, output)),
        Command::Completions(args) => Ok(commands::completions::run(args, output)),
    }
}

/// Prints an error, or that nothing was found, and its hint to stderr.
fn report(failure: &Failure) -> Exit {
    let mut stderr = anstream::stderr().lock();
    let bold = anstyle::AnsiColor::Red.on_default().bold();
    let width = output::stderr_width();
    // Both may contain text that others chose: runs, turns, files.
    let shown = |text, first| {
        output::wrapped_message(&steno_views::visible(text, steno_views::Lines::Keep), first, width)
    };
    let mut first = 0;
    // Nothing can be done when stderr is gone too.
    if failure.exit != Exit::NothingFound {
        write!(stderr, "{bold}error:{bold:#} ").ok();
        first = "error: ".len();
    }
    writeln!(stderr, "{}", shown(&failure.message, first)).ok();
    for line in &failure.list {
        writeln!(stderr, "  {line}").ok();
    }
    if let Some(hint) = &failure.hint {
        writeln!(stderr, "hint: {}", shown(hint, "hint: ".len())).ok();
    }
    failure.exit
}

fn start_tracing(verbose: bool) {
    let level = if verbose { tracing::Level::DEBUG } else { tracing::Level::WARN };
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(level)
        .with_target(false)
        .without_time()
        .with_ansi(false)
        .init();
}
