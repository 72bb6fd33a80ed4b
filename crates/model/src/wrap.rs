//! The control lines of a wrap, the file in which `steno run` keeps the output of a command: `docs/format/wrap.md`.

use crate::json::{Fields, JsonString, ObjectWriter, RawJson};
use crate::{RunId, Timestamp};

/// The beginning of every wrap.
pub const WRAP_MAGIC: &[u8] = br#"{"steno":"wrap","#;
/// The version of the format that is written.
const VERSION: u64 = 1;
/// The most bytes of a control line. A writer shortens the command to stay below it.
pub const CONTROL_BYTES_MAX: usize = 1024 * 1024;
/// The most bytes of arguments that the header keeps.
const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// A stream of a wrapped command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WrapLane {
    /// Its standard output; also its standard error where both are one terminal.
    Out,
    /// Its standard error.
    Err,
    /// Its standard input.
    In,
}

impl WrapLane {
    /// All lanes.
    pub const ALL: [Self; 3] = [Self::Out, Self::Err, Self::In];

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::Err => "err",
            Self::In => "in",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == name)
    }
}

/// The first line of a wrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrapHeader {
    /// The run of the command.
    pub run: RunId,
    /// The name that the user gave.
    pub name: Option<JsonString>,
    /// The program and its arguments.
    pub command: Vec<JsonString>,
    /// The directory in which it was started.
    pub cwd: Option<JsonString>,
    /// The lanes that were terminals.
    pub terminals: Vec<WrapLane>,
    /// When it was started.
    pub started: Timestamp,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Bytes that were forwarded and are not in the wrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostBytes {
    /// Where they were.
    pub lane: WrapLane,
    /// How many.
    pub bytes: u64,
    /// Why: `not_written`, `behind` or `paused`.
    pub why: JsonString,
    /// The system's error for the first write that failed.
    pub error: Option<JsonString>,
}

/// A line of a wrap after the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrapControl {
    /// This many bytes of a lane follow, and a newline.
    Frame {
        /// The lane.
        lane: WrapLane,
        /// How many bytes.
        len: u64,
    },
    /// Bytes of a lane are missing here.
    Lost(LostBytes),
    /// The lane has ended.
    Closed(WrapLane),
    /// The command has ended, and programs that it left running have the lane open. What they print is not in the wrap.
    LeftOpen(WrapLane),
    /// The command has ended. This is the last line.
    Ended(ProcessEnd),
}

impl WrapHeader {
    /// Returns the line, with its newline. Arguments beyond a limit are left out.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut size = 0;
        let kept = self.command.iter().take_while(|argument| {
            size += argument.as_raw().len();
            size <= COMMAND_BYTES_MAX
        });
        let kept: Vec<RawJson> = kept.map(JsonString::to_json).collect();
        let left_out = self.command.len() - kept.len();
        line(|object| {
            object.word("steno", "wrap");
            object.number("version", VERSION);
            object.run_id("run_id", &self.run);
            object.optional("name", self.name.as_ref(), ObjectWriter::string);
            object.json("command", &RawJson::array(kept));
            if left_out > 0 {
                object.number("arguments_left_out", left_out as u64);
            }
            object.optional("cwd", self.cwd.as_ref(), ObjectWriter::string);
            let terminals = self.terminals.iter().map(|lane| JsonString::from(lane.as_str()).to_json());
            object.json("pty", &RawJson::array(terminals));
            object.word("started", &self.started);
        })
    }

    /// Reads the line, without its newline; `None` if it is not one that this version can read.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = Fields::parse(text).ok()?;
        let is_wrap = fields.take_string("steno").ok()??.is("wrap");
        let version: u64 = fields.take("version").ok()??.get().parse().ok()?;
        if !is_wrap || version != VERSION {
            return None;
        }
        let run = RunId::parse(&fields.take_string("run_id").ok()??.to_text()).ok()?;
        let name = fields.take_string("name").ok()?;
        let cwd = fields.take_string("cwd").ok()?;
        let started = Timestamp::parse(&fields.take_string("started").ok()??.to_text()).ok()?;
        let strings = |raw: &str| serde_json::from_str::<Vec<String>>(raw).ok();
        let command = strings(fields.take("command").ok()??.get())?;
        let terminals = strings(fields.take("pty").ok()??.get())?;
        let command = command.iter().map(|argument| argument.as_str().into()).collect();
        let terminals = terminals.iter().filter_map(|name| WrapLane::named(name)).collect();
        Some(Self { run, name, command, cwd, terminals, started })
    }
}

impl WrapControl {
    /// Returns the line, with its newline.
    #[must_use]
    pub fn to_bytes(&self, time: &Timestamp) -> Vec<u8> {
        line(|object| {
            match self {
                Self::Frame { lane, .. } => object.word("lane", lane.as_str()),
                Self::Lost(lost) => object.nested("lost", |out| {
                    let mut object = ObjectWriter::begin(out);
                    object.word("lane", lost.lane.as_str());
                    object.number("bytes", lost.bytes);
                    object.string("why", &lost.why);
                    object.optional("error", lost.error.as_ref(), ObjectWriter::string);
                    object.end();
                }),
                Self::Closed(lane) => object.word("closed", lane.as_str()),
                Self::LeftOpen(lane) => object.word("left_open", lane.as_str()),
                Self::Ended(end) => object.json("ended", &end.to_json()),
            }
            object.optional("t", seconds(time).as_ref(), ObjectWriter::json);
            if let Self::Frame { len, .. } = self {
                object.number("len", *len);
            }
        })
    }

    /// Reads a line, without its newline; `None` if it is not one of a wrap.
    #[must_use]
    pub fn parse(text: &str) -> Option<(Self, Timestamp)> {
        let mut fields = Fields::parse(text).ok()?;
        let time = Timestamp::from_unix_seconds(fields.take("t").ok()??.get().parse().ok()?)?;
        if let Some(lane) = fields.take_string("lane").ok()? {
            let lane = WrapLane::named(&lane.to_text())?;
            return Some((Self::Frame { lane, len: fields.take("len").ok()??.get().parse().ok()? }, time));
        }
        if let Some(lane) = fields.take_string("closed").ok()? {
            return Some((Self::Closed(WrapLane::named(&lane.to_text())?), time));
        }
        if let Some(lane) = fields.take_string("left_open").ok()? {
            return Some((Self::LeftOpen(WrapLane::named(&lane.to_text())?), time));
        }
        if let Some(lost) = fields.take("lost").ok()? {
            let mut lost = Fields::parse(lost.get()).ok()?;
            let lane = WrapLane::named(&lost.take_string("lane").ok()??.to_text())?;
            let bytes = lost.take("bytes").ok()??.get().parse().ok()?;
            let (why, error) = (lost.take_string("why").ok()??, lost.take_string("error").ok()?);
            return Some((Self::Lost(LostBytes { lane, bytes, why, error }), time));
        }
        let end = ProcessEnd::parse(fields.take("ended").ok()??.get())?;
        Some((Self::Ended(end), time))
    }
}

impl ProcessEnd {
    fn to_json(self) -> RawJson {
        RawJson::object(|object| match self {
            Self::Code(code) => object.json("exit_code", &RawJson::from(i64::from(code))),
            Self::Signal(signal) => object.json("signal", &RawJson::from(i64::from(signal))),
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = Fields::parse(text).ok()?;
        let mut number = |name: &'static str| fields.take(name).ok()??.get().parse().ok();
        number("exit_code").map(Self::Code).or_else(|| number("signal").map(Self::Signal))
    }
}

fn line(write: impl FnOnce(&mut ObjectWriter<'_>)) -> Vec<u8> {
    let mut bytes = RawJson::object(write).as_str().as_bytes().to_vec();
    bytes.push(b'\n');
    bytes
}

/// Returns a time as seconds since 1970, with milliseconds.
fn seconds(time: &Timestamp) -> Option<RawJson> {
    let unix_ms = time.instant().map_or(0, jiff::Timestamp::as_millisecond);
    RawJson::parse(&format!("{}.{:03}", unix_ms.div_euclid(1000), unix_ms.rem_euclid(1000))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time() -> Timestamp {
        Timestamp::parse("2026-11-15T07:23:20.316Z").unwrap()
    }

    #[track_caller]
    fn check(control: &WrapControl, want: &str) {
        let bytes = control.to_bytes(&time());
        assert_eq!(std::str::from_utf8(&bytes).unwrap(), format!("{want}\n"));
        assert_eq!(WrapControl::parse(want), Some((control.clone(), time())));
    }

    #[test]
    fn control_lines_are_read_as_they_were_written() {
        let frame = WrapControl::Frame { lane: WrapLane::Err, len: 7 };
        check(&frame, r#"{"lane":"err","t":1794727400.316,"len":7}"#);
        check(&WrapControl::Closed(WrapLane::In), r#"{"closed":"in","t":1794727400.316}"#);
        check(&WrapControl::LeftOpen(WrapLane::Out), r#"{"left_open":"out","t":1794727400.316}"#);
        let lost = LostBytes {
            lane: WrapLane::Out,
            bytes: 9,
            why: "not_written".into(),
            error: Some("No space left".into()),
        };
        let text = r#"{"lost":{"lane":"out","bytes":9,"why":"not_written","error":"No space left"},"t":1794727400.316}"#;
        check(&WrapControl::Lost(lost), text);
        let code = WrapControl::Ended(ProcessEnd::Code(3));
        check(&code, r#"{"ended":{"exit_code":3},"t":1794727400.316}"#);
        let signal = WrapControl::Ended(ProcessEnd::Signal(15));
        check(&signal, r#"{"ended":{"signal":15},"t":1794727400.316}"#);
        for text in ["{}", "[]", r#"{"lane":"up","t":1,"len":1}"#, r#"{"lane":"out","t":1,"len":-1}"#] {
            assert_eq!(WrapControl::parse(text), None, "{text}");
        }
    }

    #[test]
    fn header_is_read_as_it_was_written() {
        let header = WrapHeader {
            run: RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
            name: Some("build".into()),
            command: vec!["make".into(), "a \"b\"".into()],
            cwd: Some("/work".into()),
            terminals: vec![WrapLane::Out, WrapLane::In],
            started: time(),
        };
        let bytes = header.to_bytes();
        assert!(bytes.starts_with(WRAP_MAGIC));
        let text = std::str::from_utf8(bytes.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(WrapHeader::parse(text), Some(header));
        assert_eq!(WrapHeader::parse(&text.replace("\"version\":1", "\"version\":2")), None);
    }

    #[test]
    fn arguments_beyond_the_limit_are_counted() {
        let header = |count| WrapHeader {
            run: RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
            name: None,
            command: vec!["x".repeat(1022).as_str().into(); count],
            cwd: None,
            terminals: Vec::new(),
            started: time(),
        };
        let text = |count| String::from_utf8(header(count).to_bytes()).unwrap();
        assert!(!text(64).contains("arguments_left_out"));
        assert!(text(65).contains(r#""arguments_left_out":1,"#) && text(65).len() < CONTROL_BYTES_MAX);
    }
}
