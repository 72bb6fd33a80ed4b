//! How much memory a process takes that reads one file, however long the file is.

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;

use steno_adapters::{Source, claude};
use steno_model::Frame;
use steno_testkit::bench_programs as programs;
use steno_testkit::bench_report::Row;

use crate::Outcome;
use crate::normalise::Counted;

/// What this program is called with to be the process that reads one file: once, or ready for it to be rewritten.
pub(crate) const READ_ONCE: &str = "--read-one-file-once";
pub(crate) const READ_ON: &str = "--read-one-file-on";

const FRAME_BYTES: usize = 64 * 1024;
const FILE_BYTES: usize = 200_000_000;
const SHORT_LINES_MB_MAX: f64 = 32.0;

/// Measures a file of short lines, one of long lines, and what a process takes that reads next to nothing.
pub(crate) fn measure(dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let place = tempfile::tempdir_in(dir)?;
    let peak = |name: &str, how: &str, text_bytes: usize, file_bytes: usize| -> Outcome<Row> {
        let path = place.path().join("session.jsonl");
        let lines = write_session(&path, text_bytes, file_bytes)?;
        let program = std::env::current_exe()?;
        let printed = programs::run(&program.to_string_lossy(), [how.as_ref(), path.as_os_str()])?;
        let longest = fs::metadata(&path)?.len() / lines;
        Ok(Row::new(name, printed.trim().parse()?, "MB").with("lines", lines).with("line_bytes", longest))
    };
    take(peak("memory, a single line", READ_ONCE, 100, 1)?);
    take(peak("memory, 200 MB of short lines", READ_ONCE, 100, FILE_BYTES)?.at_most(SHORT_LINES_MB_MAX));
    take(peak("memory, 200 MB of lines of 8 MB", READ_ONCE, 8_000_000, FILE_BYTES)?);
    take(peak("memory, 200 MB of short lines that may be rewritten", READ_ON, 100, FILE_BYTES)?);
    Ok(())
}

/// Reads a session file to its end, in frames; returns the most memory that this process ever had, in MB.
pub(crate) fn read_one_file(path: &Path, how: &str) -> Outcome<f64> {
    let mut file = File::open(path)?;
    let adapter = claude::disk(Source::named("s1"));
    let mut adapter = if how == READ_ONCE { adapter.read_once() } else { adapter };
    let mut sink = Counted::default();
    let mut frame = vec![0; FRAME_BYTES];
    let mut offset = 0;
    loop {
        let read = file.read(&mut frame)?;
        if read == 0 {
            break;
        }
        adapter.feed(Frame::of_file(offset, &frame[..read]), &mut sink);
        offset += read as u64;
    }
    adapter.finish(&mut sink);
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = peak.ok_or("the system does not tell")?.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0 / 1e6)
}

/// Writes prompts and answers in turn, as Claude Code does, until the file is long enough; returns how many lines.
fn write_session(path: &Path, text_bytes: usize, file_bytes: usize) -> Outcome<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let text = "a word ".repeat(text_bytes.div_ceil(7));
    let (mut lines, mut written) = (0, 0);
    while written < file_bytes {
        let (role, message) = if lines % 2 == 0 {
            ("user", format!(r#"{{"role":"user","content":"{text}"}}"#))
        } else {
            let usage = r#"{"input_tokens":1,"output_tokens":2}"#;
            let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
            let head = format!(r#""id":"msg_{lines}","type":"message","role":"assistant","model":"claude""#);
            (
                "assistant",
                format!(r#"{{{head},"content":{content},"stop_reason":"end_turn","usage":{usage}}}"#),
            )
        };
        let ids = format!(
            r#""uuid":"00000000-0000-4000-8000-{lines:012x}","parentUuid":null,"requestId":"req_{lines}""#
        );
        let fixed = r#""sessionId":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2026-06-08T08:14:42.123Z","cwd":"/tmp","version":"2.1.325""#;
        let line = format!("{{\"type\":\"{role}\",{ids},{fixed},\"message\":{message}}}\n");
        file.write_all(line.as_bytes())?;
        written += line.len();
        lines += 1;
    }
    file.flush()?;
    Ok(lines)
}
