//! Servers in JSON with comments and trailing commas, found with their places in the text.
//!
//! The files of Claude Code (`.mcp.json`, `~/.claude.json`), Gemini CLI (`settings.json`), Copilot CLI
//! (`mcp-config.json`) and Cursor have `mcpServers`; VS Code's `mcp.json` has `servers`, its settings have them below `mcp`.

use std::ops::Range;

use super::config_edit::{ArgList, ConfigServer, NewArgs, StdioServer, TextToken, Transport};

/// The deepest nesting that is read.
const DEPTH_MAX: usize = 100;

/// The keys of servers' addresses.
const ADDRESSES: [&str; 4] = ["url", "httpUrl", "serverUrl", "uri"];

/// A value and its place.
struct Value {
    span: Range<usize>,
    content: Content,
}

enum Content {
    Object(Vec<(String, Value)>),
    Array(Vec<Value>),
    Text(String),
    Other,
}

/// Finds the servers of a configuration.
pub fn servers(text: &str) -> Result<Vec<ConfigServer>, String> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.skip_mark();
    let root = scanner.value(0)?;
    scanner.skip_space()?;
    if scanner.at < text.len() {
        return Err(scanner.expected("the end of the file"));
    }
    let mut list = Vec::new();
    collect(&root, &[], &mut list);
    Ok(list)
}

/// Collects the servers in an object and in the objects below it.
fn collect(value: &Value, path: &[&str], list: &mut Vec<ConfigServer>) {
    let Content::Object(members) = &value.content else { return };
    for (key, value) in members {
        let is_servers = key == "mcpServers" || (key == "servers" && matches!(path, [] | ["mcp"]));
        match &value.content {
            Content::Object(servers) if is_servers => {
                list.extend(servers.iter().map(|(name, server)| server_of(name, server)));
            }
            Content::Object(_) => collect(value, &[path, &[key.as_str()]].concat(), list),
            Content::Array(_) | Content::Text(_) | Content::Other => {}
        }
    }
}

fn server_of(name: &str, server: &Value) -> ConfigServer {
    let transport = match &server.content {
        Content::Object(members) => transport_of(members),
        Content::Array(_) | Content::Text(_) | Content::Other => Transport::Other,
    };
    ConfigServer { name: name.to_owned(), transport }
}

fn transport_of(members: &[(String, Value)]) -> Transport {
    // Of two members with one name, the last counts.
    let member = |name: &str| members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value);
    let text = |name: &str| member(name).and_then(token);
    let kind = text("type").or_else(|| text("transport")).map(|kind| kind.text);
    let is_remote = ADDRESSES.iter().any(|name| member(name).is_some())
        || kind.is_some_and(|kind| ["http", "sse", "ws", "streamable-http"].contains(&kind.as_str()));
    let Some(command) = text("command").filter(|_| !is_remote) else {
        return if is_remote { Transport::Remote } else { Transport::Other };
    };
    let args = match member("args").map(|args| (args, &args.content)) {
        None => None,
        Some((args, Content::Array(items))) => match items.iter().map(token).collect::<Option<Vec<_>>>() {
            Some(items) => Some(ArgList { span: args.span.clone(), items }),
            None => return Transport::Other,
        },
        Some(_) => return Transport::Other,
    };
    let new_args = NewArgs { at: command.span.end, before: ",\"args\":[".to_owned(), after: "]" };
    Transport::Stdio(StdioServer { command, args, new_args })
}

fn token(value: &Value) -> Option<TextToken> {
    let Content::Text(text) = &value.content else { return None };
    Some(TextToken { span: value.span.clone(), text: text.clone() })
}

/// Reads JSON with comments.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn expected(&self, what: &str) -> String {
        let line = self.text[..self.at].matches('\n').count() + 1;
        format!("line {line}: expected {what}")
    }

    /// Skips a byte order mark.
    fn skip_mark(&mut self) {
        if self.rest().starts_with('\u{feff}') {
            self.at += '\u{feff}'.len_utf8();
        }
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) -> Result<(), String> {
        loop {
            self.at += self.rest().len() - self.rest().trim_start().len();
            if self.rest().starts_with("//") {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if self.rest().starts_with("/*") {
                let end = self.rest().find("*/").ok_or_else(|| self.expected("the end of a comment"))?;
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn take(&mut self, sign: char) -> bool {
        let is_there = self.rest().starts_with(sign);
        self.at += if is_there { sign.len_utf8() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        self.skip_space()?;
        let start = self.at;
        if depth > DEPTH_MAX {
            return Err(self.expected("less nesting"));
        }
        let content = match self.rest().chars().next() {
            Some('{') => self.object(depth)?,
            Some('[') => self.array(depth)?,
            Some('"') => Content::Text(self.string()?),
            Some(_) => self.word()?,
            None => return Err(self.expected("a value")),
        };
        Ok(Value { span: start..self.at, content })
    }

    fn object(&mut self, depth: usize) -> Result<Content, String> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.skip_space()?;
            if self.take('}') {
                return Ok(Content::Object(members));
            }
            let key = self.string()?;
            self.skip_space()?;
            if !self.take(':') {
                return Err(self.expected("`:`"));
            }
            members.push((key, self.value(depth + 1)?));
            self.skip_space()?;
            if !self.take(',') && !self.rest().starts_with('}') {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Content, String> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip_space()?;
            if self.take(']') {
                return Ok(Content::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.skip_space()?;
            if !self.take(',') && !self.rest().starts_with(']') {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let rest = self.rest();
        let mut is_escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, sign)| {
            let is_end = *sign == '"' && !is_escaped;
            is_escaped = *sign == '\\' && !is_escaped;
            is_end
        });
        let token = end.filter(|_| rest.starts_with('"')).map(|(at, _)| &rest[..=at]);
        let text = token.and_then(|token| serde_json::from_str(token).ok());
        let text = text.ok_or_else(|| self.expected("a string"))?;
        self.at += token.map_or(0, str::len);
        Ok(text)
    }

    /// Reads a number, or `true`, `false` or `null`.
    fn word(&mut self) -> Result<Content, String> {
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || ['-', '+', '.'].contains(&sign);
        let len = self.rest().find(|sign| !is_part(sign)).unwrap_or(self.rest().len());
        if serde_json::from_str::<serde_json::Value>(&self.rest()[..len]).is_err() {
            return Err(self.expected("a value"));
        }
        self.at += len;
        Ok(Content::Other)
    }
}
