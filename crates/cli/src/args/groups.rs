//! The commands in the order and under the headings of `steno --help`.

use clap::builder::styling::Styles;
use clap::{Arg, Command};

use super::GLOBAL_HEADING;

/// The commands of each heading. A test compares them with the commands that there are.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Daily", &["up", "ls", "search", "changes", "failures", "show", "tree", "follow", "usage", "doctor"]),
    (
        "Archive",
        &[
            "import", "watch", "restore", "forget", "du", "pause", "resume", "rederive", "index", "service",
            "config",
        ],
    ),
    ("Evidence", &["events", "verify", "seal", "receipt"]),
    ("Exports", &["export", "entries", "spine"]),
    ("Integration", &["run", "record", "serve", "app-server", "mcp", "proxy", "completions"]),
];

/// Returns the command line with its commands in groups.
pub fn grouped(command: Command) -> Command {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text.push_str(&format!("{header}{heading}:{header:#}\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {literal}{name:<NAME_CHARS$}{literal:#}  {about}\n"));
        }
        text.push('\n');
    }
    // The tag `{options}` would list the global options too.
    text.push_str(&format!("{header}Options:{header:#}\n"));
    for (name, help) in [("-h, --help", "Print help"), ("-V, --version", "Print version")] {
        text.push_str(&format!("  {literal}{name:<OPTION_CHARS$}{literal:#}  {help}\n"));
    }
    text.push_str(&format!("\n{header}{GLOBAL_HEADING}:{header:#}\n"));
    for option in command.get_arguments().filter(|option| option.get_help_heading() == Some(GLOBAL_HEADING)) {
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        let name = name_of(option);
        text.push_str(&format!("  {literal}{name:<OPTION_CHARS$}{literal:#}  {help}\n"));
    }
    command
        .help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{{after-help}}"))
}

/// Returns an option as it is typed, with the name of its value.
fn name_of(option: &Arg) -> String {
    let short = option.get_short().map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let value = option.get_value_names().filter(|_| option.get_action().takes_values());
    let value = value.and_then(|names| names.first()).map(|name| format!(" <{name}>")).unwrap_or_default();
    format!("{short}--{}{value}", option.get_long().unwrap_or_default())
}

/// How wide the columns of commands and of options are.
const NAME_CHARS: usize = "completions".len();
const OPTION_CHARS: usize = "    --config <FILE>".len();

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        let there: BTreeSet<&str> = command.get_subcommands().map(Command::get_name).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), there);
        assert_eq!(listed.len(), there.len(), "a command is in two groups");
    }

    #[test]
    fn help_list_fits_80_columns() {
        const WIDTH: usize = 80;
        for option in Cli::command().get_arguments() {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            let used = 2 + OPTION_CHARS + 2 + help.chars().count();
            assert!(used <= WIDTH, "`{}` takes {used} columns", option.get_id());
        }
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let used = 2 + NAME_CHARS + 2 + about.chars().count();
            assert!(used <= WIDTH, "`{}` takes {used} columns", command.get_name());
        }
    }
}
