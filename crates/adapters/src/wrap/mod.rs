//! Wraps: the output of a command that `steno run` started, in frames. Recognised agents go to their own mapper, other
//! output becomes one step of kind `command`.
//!
//! `frames` reads the file, `lines` joins the bytes of its lanes to lines, `output` keeps the beginning and the end of
//! plain output. `docs/format/wrap.md` describes the file. What an adapter does with it is in `adapter/wrap.rs`.

mod document;
mod frames;
mod line_place;
mod lines;
mod output;

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::wrap::{WrapHeader, WrapLane};

use crate::adapter::{Adapter, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, string};
use crate::run::Run;
use crate::wire::NoObject;

pub(crate) use self::document::WrapDocument;
pub(crate) use self::line_place::LinePlace;
pub(crate) use self::lines::{KeptItem, WrapContent, WrapItem, WrapLines, WrapSink};
pub(crate) use self::output::{CommandOutput, lane_fields, output_fields};

/// The name of a command's runs where other runs have that of their provider.
pub(crate) const PROVIDER: &str = "command";

/// What runs of plain commands begin with.
pub(crate) static COMMAND: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: "command",
    adapter: "command/1",
    channel: "wrap",
    carries: &["output", "exit_code"],
    detail_name: "command",
};

/// Reads the file of a command that `steno run` started.
#[must_use]
pub(crate) fn wrap(source: Source) -> Adapter {
    Adapter::new(source, Box::new(PlainCommand)).of_wrap()
}

/// The mapper of a command whose output is no agent's. The adapter writes its events itself.
struct PlainCommand;

impl Mapper for PlainCommand {
    fn about(&self) -> &'static AdapterInfo {
        &COMMAND
    }

    fn record(&mut self, _record: Record<'_>, _emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        Err(NoObject)
    }

    fn unreadable(&mut self, _why: &str, _emit: &mut Emit<'_>) {}

    fn run(&self) -> Option<&Run> {
        None
    }

    fn finish(&mut self, _emit: &mut Emit<'_>) {}
}

/// Returns what the first event of a wrapped run says about its command.
pub(crate) fn command_fields(header: &WrapHeader) -> RawJson {
    let command = RawJson::array(header.command.iter().map(JsonString::to_json));
    let lane = |lane: &WrapLane| string(lane.as_str());
    RawJson::object(|object| {
        object.optional("name", header.name.as_ref(), ObjectWriter::string);
        object.json("command", &command);
        object.optional("cwd", header.cwd.as_ref(), ObjectWriter::string);
        object.json("pty", &RawJson::array(header.terminals.iter().map(lane)));
        object.word("started", &header.started);
    })
}
