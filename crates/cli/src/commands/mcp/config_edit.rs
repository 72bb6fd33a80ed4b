//! Edits of a configuration's text: the command and the arguments of servers, and nothing else.

use std::ops::Range;
use std::path::Path;

/// The arguments that begin a wrapped server.
const COMMAND: &str = "mcp";
const NAME: &str = "--name=";
const STORE: &str = "--store=";
const WITHOUT_ARGS: &str = "--without-args";
const SERVER: &str = "--";

/// A string of the configuration: where it is, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextToken {
    pub span: Range<usize>,
    pub text: String,
}

/// The arguments of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgList {
    /// With its brackets.
    pub span: Range<usize>,
    pub items: Vec<TextToken>,
}

/// Where a list of arguments is added if there is none, and the text around its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewArgs {
    pub at: usize,
    pub before: String,
    pub after: &'static str,
}

/// A server that is started with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdioServer {
    pub command: TextToken,
    pub args: Option<ArgList>,
    pub new_args: NewArgs,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    Stdio(StdioServer),
    /// It has an address, for example over HTTP.
    Remote,
    /// In a form that we do not know.
    Other,
}

/// A server of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigServer {
    pub name: String,
    pub transport: Transport,
}

/// A replacement of a part of the text.
type Edit = (Range<usize>, String);

/// What wraps a server.
pub struct Wrapper<'a> {
    /// The absolute path of `steno`.
    pub program: &'a str,
    /// The store, if it is not the default one.
    pub store: Option<&'a str>,
}

impl StdioServer {
    /// Tells whether it is started by `steno mcp`.
    pub fn is_wrapped(&self) -> bool {
        self.original().is_some()
    }

    /// Returns the server's own command and arguments, wrapped or not.
    pub fn own_command(&self) -> Vec<&str> {
        let items = self.args.iter().flat_map(|args| &args.items).map(|item| item.text.as_str());
        match self.original() {
            Some(original) => items.skip(original).collect(),
            None => std::iter::once(self.command.text.as_str()).chain(items).collect(),
        }
    }

    /// Returns the index of the server's own command in the arguments, if it is wrapped.
    fn original(&self) -> Option<usize> {
        let program = Path::new(&self.command.text).file_name()?;
        let items = &self.args.as_ref()?.items;
        if program != "steno" || items.first()?.text != COMMAND {
            return None;
        }
        let separator = items.iter().position(|item| item.text == SERVER)?;
        (separator + 1 < items.len()).then_some(separator + 1)
    }

    /// Returns the edits that wrap it.
    pub fn wrap(&self, text: &str, name: &str, wrapper: &Wrapper<'_>) -> Vec<Edit> {
        let mut words = vec![COMMAND.to_owned(), format!("{NAME}{name}")];
        words.extend(wrapper.store.map(|store| format!("{STORE}{store}")));
        words.extend(self.args.is_none().then(|| WITHOUT_ARGS.to_owned()));
        words.push(SERVER.to_owned());
        let mut items: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        // The text of the command moves unchanged, so that `--undo` restores the same bytes.
        items.push(text[self.command.span.clone()].to_owned());
        let items = items.join(", ");
        let added = if let Some(args) = &self.args {
            let comma = if args.items.is_empty() { "" } else { "," };
            (args.span.start + 1..args.span.start + 1, format!("{items}{comma}"))
        } else {
            let NewArgs { at, before, after } = &self.new_args;
            (*at..*at, format!("{before}{items}{after}"))
        };
        vec![(self.command.span.clone(), quoted(wrapper.program)), added]
    }

    /// Returns the edits that undo this; `None` if it is not wrapped.
    pub fn unwrap(&self, text: &str) -> Option<Vec<Edit>> {
        let original = self.original()?;
        let args = self.args.as_ref()?;
        let command = text[args.items[original].span.clone()].to_owned();
        let options = &args.items[..original];
        let had_none =
            options.iter().any(|item| item.text == WITHOUT_ARGS) && args.items.len() == original + 1;
        let removed = self.added_member(text, args).filter(|_| had_none).unwrap_or_else(|| {
            let end = args.items[original].span.end;
            let comma = text[end..].starts_with(',') && args.items.len() > original + 1;
            args.span.start + 1..end + usize::from(comma)
        });
        Some(vec![(self.command.span.clone(), command), (removed, String::new())])
    }

    /// Returns the range of a list that was added, with its key, if it is still written that way.
    fn added_member(&self, text: &str, args: &ArgList) -> Option<Range<usize>> {
        let NewArgs { before, after, .. } = &self.new_args;
        let begin = (args.span.start + 1).checked_sub(before.len())?;
        let end = args.span.end - 1 + after.len();
        (text.get(begin..=args.span.start)? == before && text.get(args.span.end - 1..end)? == *after)
            .then_some(begin..end)
    }
}

/// Applies edits, which do not overlap.
pub fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, new) in edits {
        out.push_str(&text[done..range.start]);
        out.push_str(&new);
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}

/// Returns a string as JSON writes it, which is a string of TOML too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
