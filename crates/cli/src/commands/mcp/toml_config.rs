//! Servers in TOML, found with their places in the text: Codex's `config.toml` has them in `mcp_servers`.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::config_edit::{ArgList, ConfigServer, NewArgs, StdioServer, TextToken, Transport};

/// Finds the servers of a configuration.
pub fn servers(text: &str) -> Result<Vec<ConfigServer>, String> {
    let root = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
    let Some(DeValue::Table(servers)) = member(root.get_ref(), "mcp_servers").map(Spanned::get_ref) else {
        return Ok(Vec::new());
    };
    let servers = servers.iter().map(|(name, server)| ConfigServer {
        name: name.get_ref().to_string(),
        transport: if let DeValue::Table(server) = server.get_ref() {
            transport_of(text, server)
        } else {
            Transport::Other
        },
    });
    let mut servers: Vec<ConfigServer> = servers.collect();
    servers.sort_by_key(|server| match &server.transport {
        Transport::Stdio(server) => server.command.span.start,
        Transport::Remote | Transport::Other => usize::MAX,
    });
    Ok(servers)
}

fn member<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Option<&'a Spanned<DeValue<'i>>> {
    table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
}

fn transport_of(text: &str, server: &DeTable<'_>) -> Transport {
    let is_remote = member(server, "url").is_some();
    let command = member(server, "command").and_then(token).filter(|_| !is_remote);
    let Some(command) = command else {
        return if is_remote { Transport::Remote } else { Transport::Other };
    };
    let args = match member(server, "args").map(|args| (args.span(), args.get_ref())) {
        None => None,
        Some((span, DeValue::Array(items))) => match tokens(items) {
            Some(items) => Some(ArgList { span, items }),
            None => return Transport::Other,
        },
        Some(_) => return Transport::Other,
    };
    let key = server.keys().find(|key| key.get_ref() == "command").map(Spanned::span);
    let Some(new_args) = key.map(|key| new_args(text, &key, &command)) else { return Transport::Other };
    Transport::Stdio(StdioServer { command, args, new_args })
}

/// Returns where arguments are added: on a line of their own before the command, or after it in a table on one line.
fn new_args(text: &str, key: &Range<usize>, command: &TextToken) -> NewArgs {
    let line = text[..key.start].rfind('\n').map_or(0, |at| at + 1);
    let before_key = &text[line..key.start];
    if before_key.contains(['{', ',']) {
        return NewArgs { at: command.span.end, before: ", args = [".to_owned(), after: "]" };
    }
    NewArgs { at: line, before: format!("{before_key}args = ["), after: "]\n" }
}

fn tokens(items: &DeArray<'_>) -> Option<Vec<TextToken>> {
    items.iter().map(token).collect()
}

fn token(value: &Spanned<DeValue<'_>>) -> Option<TextToken> {
    let DeValue::String(text) = value.get_ref() else { return None };
    Some(TextToken { span: value.span(), text: text.to_string() })
}
