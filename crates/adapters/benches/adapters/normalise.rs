//! How many megabytes of a provider's files one core turns into drafts in a second.

use std::path::Path;

use steno_adapters::{HEAD_BYTES_MAX, Sink, Source, open, sniff};
use steno_model::{Draft, Frame, RunId, Seq, Timestamp};
use steno_testkit::bench_report::{Row, Spent, float, median, rounded};

use crate::Outcome;
use crate::samples::{self, Sample};

const ROUNDS: usize = 5;
const FRAME_BYTES: usize = 64 * 1024;
const SAMPLE_BYTES: usize = 200_000_000;
const STREAM_BYTES: usize = 50_000_000;
const CONNECTION_BYTES: usize = 50_000_000;
const MB_PER_S_MIN: f64 = 300.0;
const COPILOT_MB_PER_S_MIN: f64 = 250.0;
const HTTP_BYTES: usize = 100_000_000;
const HTTP_MB_PER_S_MIN: f64 = 250.0;

/// The least rate for Gemini, whose sessions are few and small.
const GEMINI_MB_PER_S_MIN: f64 = 250.0;

/// Measures each provider, and what it takes to write the drafts as lines, too.
pub(crate) fn measure(shared: &Path, corpus: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let claude = samples::of_claude(corpus)?;
    take(measure_on::<Counted>("normalise Claude", &claude, 1)?.at_least(MB_PER_S_MIN));
    take(measure_on::<Encoded>("normalise Claude, and write lines", &claude, 1)?);
    let codex = samples::of_codex(shared)?;
    let times = SAMPLE_BYTES.div_ceil(size_bytes(&codex).max(1));
    take(measure_on::<Counted>("normalise Codex", &codex, times)?);
    take(measure_on::<Encoded>("normalise Codex, and write lines", &codex, times)?);
    let copilot = samples::of_copilot(shared)?;
    let times = SAMPLE_BYTES.div_ceil(size_bytes(&copilot).max(1));
    take(measure_on::<Counted>("normalise Copilot", &copilot, times)?.at_least(COPILOT_MB_PER_S_MIN));
    let http = [samples::of_http()];
    let times = HTTP_BYTES.div_ceil(size_bytes(&http).max(1));
    take(measure_on::<Counted>("normalise HTTP", &http, times)?.at_least(HTTP_MB_PER_S_MIN));
    let gemini = samples::of_gemini(shared)?;
    let times = SAMPLE_BYTES.div_ceil(size_bytes(&gemini).max(1));
    take(measure_on::<Counted>("normalise Gemini", &gemini, times)?.at_least(GEMINI_MB_PER_S_MIN));
    take(measure_on::<Encoded>("normalise Gemini, and write lines", &gemini, times)?);
    for (name, place) in
        [("normalise Copilot's stream", "captures/copilot"), ("normalise Gemini's stream", "captures/gemini")]
    {
        let streams = samples::of_streams(shared, place)?;
        let times = STREAM_BYTES.div_ceil(size_bytes(&streams).max(1));
        take(measure_on::<Counted>(name, &streams, times)?);
    }
    let acp = ["captures/gemini/0.61.0/acp", "captures/copilot/1.0.102/acp"];
    for (name, samples) in [
        ("normalise ACP", samples::of_connections(shared, &acp, "duplex.jsonl")?),
        ("normalise MCP", samples::of_connections(shared, &["versions/mcp"], ".ndjson")?),
    ] {
        let times = CONNECTION_BYTES.div_ceil(size_bytes(&samples).max(1));
        take(measure_on::<Counted>(name, &samples, times)?);
    }
    Ok(())
}

/// Counts drafts and drops them.
#[derive(Default)]
pub(crate) struct Counted {
    drafts: u64,
}

impl Sink for Counted {
    fn draft(&mut self, _run: RunId, draft: Draft) {
        std::hint::black_box(draft);
        self.drafts += 1;
    }
}

/// Makes each draft the line that a journal would write.
#[derive(Default)]
struct Encoded {
    line: Vec<u8>,
    drafts: u64,
}

impl Sink for Encoded {
    fn draft(&mut self, run: RunId, draft: Draft) {
        let unknown = || Timestamp::from_record("".into());
        self.line.clear();
        draft.encode(run, unknown).write_line(Seq::FIRST, &mut self.line);
        std::hint::black_box(&self.line);
        self.drafts += 1;
    }
}

/// A sink that knows how much it took.
trait Tally: Sink + Default {
    fn drafts(&self) -> u64;
}

impl Tally for Counted {
    fn drafts(&self) -> u64 {
        self.drafts
    }
}

impl Tally for Encoded {
    fn drafts(&self) -> u64 {
        self.drafts
    }
}

fn measure_on<T: Tally>(name: &str, samples: &[Sample], times: usize) -> Outcome<Row> {
    let bytes = float((size_bytes(samples) * times) as u64);
    let mut rates = Vec::new();
    let mut drafts = 0;
    for _ in 0..ROUNDS {
        let mut sink = T::default();
        let feed_all = || (0..times).flat_map(|_| samples).try_for_each(|sample| feed(sample, &mut sink));
        let (fed, spent) = Spent::on(feed_all);
        fed?;
        rates.push(bytes / 1e6 / spent.one_core().as_secs_f64());
        drafts = sink.drafts();
    }
    Ok(Row::new(name, median(&rates), "MB/s")
        .with("bytes", bytes)
        .with("sources", samples.len() * times)
        .with("drafts", drafts)
        .with("trials", rates.into_iter().map(rounded).collect::<Vec<f64>>()))
}

/// Feeds a source as an import would: recognised by its first bytes, then in frames.
fn feed(sample: &Sample, sink: &mut dyn Sink) -> Outcome<()> {
    let source = Source { file_name: Some(sample.file_name.clone()), ..Source::named("s1") };
    let head = &sample.bytes[..sample.bytes.len().min(HEAD_BYTES_MAX)];
    let adapter = sniff(head).and_then(|sniffed| open(&sniffed, source));
    let mut adapter = adapter.ok_or_else(|| format!("`{}` is nobody's file", sample.file_name))?;
    for (number, frame) in sample.bytes.chunks(FRAME_BYTES).enumerate() {
        adapter.feed(Frame::of_file((number * FRAME_BYTES) as u64, frame), sink);
    }
    adapter.finish(sink);
    Ok(())
}

fn size_bytes(samples: &[Sample]) -> usize {
    samples.iter().map(|sample| sample.bytes.len()).sum()
}
