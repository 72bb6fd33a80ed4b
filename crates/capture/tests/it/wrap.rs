//! The file of a wrapped command on a disk that becomes full, and the forwarder that fills it.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::pipe::pipe;
use serde_json::Value;
use steno_capture::packing::Unpacker;
use steno_capture::wrap::{
    ForwardEnd, Forwarder, RecordingPermit, SpoolHost, SpoolQueue, SpoolReport, SpoolWriter, Stop,
};
use steno_disk::{DiskFile, Identity};
use steno_model::wrap::{ProcessEnd, WrapHeader, WrapLane};
use steno_model::{RunId, Timestamp};

/// How much is reserved for the end of the file.
const RESERVE: usize = 1000;

/// A file on a disk that has little room.
#[derive(Default)]
struct SmallFile {
    bytes: Mutex<Vec<u8>>,
    room: AtomicUsize,
    /// How often there was no room at all.
    refusals: AtomicUsize,
    /// How many bytes came from a pipe.
    moved: AtomicUsize,
}

impl DiskFile for SmallFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.load(Ordering::SeqCst).min(bytes.len());
        if room == 0 {
            self.refusals.fetch_add(1, Ordering::SeqCst);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room.fetch_sub(room, Ordering::SeqCst);
        self.bytes.lock().unwrap().extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    fn append_from_pipe(&self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
        let room = self.room.load(Ordering::SeqCst).min(len);
        let mut bytes = vec![0; room];
        let read = if room == 0 { 0 } else { rustix::io::read(pipe, &mut bytes)? };
        self.moved.fetch_add(read, Ordering::SeqCst);
        if room == 0 { self.append(&[0]) } else { self.append(&bytes[..read]) }
    }

    fn overwrite(&self, _bytes: &[u8], _offset: u64) -> io::Result<usize> {
        unreachable!("a wrap is append only")
    }

    fn read_at(&self, _into: &mut [u8], _offset: u64) -> io::Result<usize> {
        unreachable!("nobody reads it")
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, _len: u64) -> io::Result<()> {
        unreachable!("a wrap is append only")
    }

    fn identity(&self) -> io::Result<Identity> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

struct Host(Arc<SmallFile>);

impl SpoolHost for Host {
    fn enter(&self) -> Option<RecordingPermit> {
        Some(Box::new(()))
    }

    fn free_reserve(&mut self) {
        self.0.room.fetch_add(RESERVE, Ordering::SeqCst);
    }
}

fn header() -> WrapHeader {
    WrapHeader {
        run: RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
        name: None,
        command: vec!["x".into()],
        cwd: None,
        terminals: Vec::new(),
        started: now(),
    }
}

fn now() -> Timestamp {
    Timestamp::parse("2026-11-15T07:23:20.316Z").unwrap()
}

fn begin(file: &Arc<SmallFile>) -> SpoolWriter {
    let disk: Arc<dyn DiskFile> = Arc::clone(file) as _;
    SpoolWriter::begin(disk, Box::new(Host(Arc::clone(file))), &header()).unwrap()
}

/// Reads a file, which may end anywhere: what each lane has, how much is lost, and whether it has its end.
fn parse(packed: &[u8]) -> ([Vec<u8>; 3], u64, bool) {
    let mut bytes = Vec::new();
    Unpacker::default().unpack(packed, &mut |piece| bytes.extend_from_slice(piece)).unwrap();
    let mut bytes = &bytes[..];
    let (mut lanes, mut lost, mut is_ended) = (<[Vec<u8>; 3]>::default(), 0, false);
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let control: Value = serde_json::from_slice(&bytes[..end]).unwrap();
        bytes = &bytes[end + 1..];
        if let Some(len) = control["len"].as_u64() {
            let (content, rest) = bytes.split_at(usize::try_from(len).unwrap().min(bytes.len()));
            let lane = WrapLane::ALL.into_iter().find(|lane| control["lane"] == lane.as_str()).unwrap();
            lanes[lane as usize].extend_from_slice(content);
            bytes = rest.strip_prefix(b"\n").unwrap_or_default();
        }
        lost += control["lost"]["bytes"].as_u64().unwrap_or(0);
        is_ended |= control["ended"].is_object();
    }
    (lanes, lost, is_ended)
}

#[test]
fn every_byte_is_there_or_counted_wherever_the_disk_is_full() {
    let mut refusals = 0;
    for room in 0..900 {
        let file = Arc::new(SmallFile::default());
        file.room.store(RESERVE, Ordering::SeqCst);
        let mut writer = begin(&file);
        file.room.store(room, Ordering::SeqCst);
        let mut sent = 0;
        for number in 0..12_u8 {
            let lane = WrapLane::ALL[usize::from(number) % 3];
            let bytes = vec![number; usize::from(number) * 5];
            sent += bytes.len() as u64;
            writer.frame(lane, &now(), &bytes);
            if number == 9 && room % 2 == 0 {
                // There is some room again.
                file.room.fetch_add(150, Ordering::SeqCst);
            }
        }
        let report = writer.end(ProcessEnd::Code(0), &now());
        let (lanes, lost, is_ended) = parse(&file.bytes.lock().unwrap());
        let there = lanes.iter().map(Vec::len).sum::<usize>() as u64;
        assert_eq!((there + lost, is_ended), (sent, true), "room {room}");
        let refused = file.refusals.load(Ordering::SeqCst);
        refusals += refused;
        let SpoolReport { written, lost: told, error, is_untold } = report;
        assert_eq!((written, told, is_untold), (there, lost, false), "room {room}");
        assert!(lost == 0 || error.is_some_and(|error| !error.is_empty()), "room {room}");
    }
    assert!(refusals > 500, "the disk was full");
}

/// A host that has reserved nothing.
struct NoReserve;

impl SpoolHost for NoReserve {
    fn enter(&self) -> Option<RecordingPermit> {
        Some(Box::new(()))
    }

    fn free_reserve(&mut self) {}
}

#[test]
fn torn_note_takes_nothing_from_the_frame_before_it() {
    // Compressed, stored in parts, and stored at once.
    for len in [100_000, 20_000, 3000] {
        let bytes = noise(len);
        let write = |room: usize| {
            let file = Arc::new(SmallFile::default());
            file.room.store(RESERVE, Ordering::SeqCst);
            let disk: Arc<dyn DiskFile> = Arc::clone(&file) as _;
            let mut writer = SpoolWriter::begin(disk, Box::new(NoReserve), &header()).unwrap();
            let header_bytes = file.bytes.lock().unwrap().len();
            file.room.store(room, Ordering::SeqCst);
            writer.frame(WrapLane::Out, &now(), &bytes);
            let frame_bytes = file.bytes.lock().unwrap().len() - header_bytes;
            (writer.end(ProcessEnd::Code(0), &now()), frame_bytes)
        };
        let (_, frame_bytes) = write(usize::MAX / 2);
        for more in 0..40 {
            let (report, written) = write(frame_bytes + more);
            assert_eq!(written, frame_bytes);
            assert_eq!(
                (report.written, report.lost, report.is_untold),
                (len as u64, 0, true),
                "{len}, {more}"
            );
        }
    }
}

#[test]
fn record_without_room_for_its_end_says_so() {
    for room in 0..200 {
        let file = Arc::new(SmallFile::default());
        file.room.store(RESERVE, Ordering::SeqCst);
        let disk: Arc<dyn DiskFile> = Arc::clone(&file) as _;
        let mut writer = SpoolWriter::begin(disk, Box::new(NoReserve), &header()).unwrap();
        file.room.store(room, Ordering::SeqCst);
        writer.frame(WrapLane::Out, &now(), &[1; 100]);
        writer.frame(WrapLane::Out, &now(), &[2; 100]);
        let report = writer.end(ProcessEnd::Code(0), &now());
        assert!(report.is_untold, "room {room}");
        assert_eq!(report.written + report.lost, 200);
        let (lanes, ..) = parse(&file.bytes.lock().unwrap());
        assert_eq!(report.written, lanes[0].len() as u64, "room {room}");
    }
}

/// Bytes of 64 values, which can be compressed to three quarters.
fn noise(len: usize) -> Vec<u8> {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word.to_le_bytes()[0] % 64
    };
    (0..len).map(next).collect()
}

/// Writes a long frame, perhaps from a pipe.
fn write_long(writer: &mut SpoolWriter, bytes: &[u8], is_piped: bool) {
    if !is_piped {
        return writer.frame(WrapLane::Out, &now(), bytes);
    }
    let (from, into) = pipe().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| io::Write::write_all(&mut std::fs::File::from(into), bytes).unwrap());
        writer.piped_frame(WrapLane::Out, &now(), from.as_fd(), bytes.len());
    });
}

#[test]
fn long_frames_are_there_or_counted_wherever_the_disk_is_full() {
    // The first long frame is compressed. The second is stored, in three blocks.
    let (packed, stored) = (noise(100_000), noise(300_000));
    let sent = (packed.len() + stored.len()) as u64;
    let rooms = (0..420_000).step_by(1499).chain(0..40).chain(75_000..75_800).chain([usize::MAX / 2]);
    let (mut torn, mut moved, mut complete) = (0, 0, 0);
    for room in rooms {
        for is_piped in [false, true] {
            let file = Arc::new(SmallFile::default());
            file.room.store(RESERVE, Ordering::SeqCst);
            let mut writer = begin(&file);
            file.room.store(room, Ordering::SeqCst);
            write_long(&mut writer, &packed, is_piped);
            write_long(&mut writer, &stored, is_piped);
            let report = writer.end(ProcessEnd::Code(0), &now());
            let (lanes, lost, is_ended) = parse(&file.bytes.lock().unwrap());
            let there = lanes[0].len() as u64;
            assert_eq!(
                (report.written, report.written + report.lost),
                (there, sent),
                "room {room}, {is_piped}"
            );
            assert_eq!(report.is_untold, !is_ended, "room {room}, {is_piped}");
            assert!(report.is_untold || lost == report.lost, "room {room}, {is_piped}");
            assert!([&packed[..], &stored].concat().starts_with(&lanes[0]) || lanes[0] == stored);
            torn += u32::from(report.is_untold);
            complete += u32::from(there == sent);
            moved += file.moved.load(Ordering::SeqCst);
        }
    }
    assert!(torn > 100 && complete > 0 && moved > 1_000_000, "{torn} {complete} {moved}");
}

fn writing(queue: &SpoolQueue, file: &Arc<SmallFile>) -> std::thread::JoinHandle<SpoolReport> {
    let (queue, writer) = (queue.clone(), begin(file));
    std::thread::spawn(move || queue.write(writer))
}

fn forward(from: OwnedFd, to: &OwnedFd, queue: &SpoolQueue) -> ForwardEnd {
    let (_stop, stop) = Stop::new().unwrap();
    Forwarder { from, to: to.as_fd(), lane: Some(WrapLane::Out), stop }.run(queue)
}

#[test]
fn pieces_of_any_size_are_handed_on_and_kept() {
    let file = Arc::new(SmallFile::default());
    file.room.store(usize::MAX, Ordering::SeqCst);
    let queue = SpoolQueue::default();
    let writing = writing(&queue, &file);
    let (from, into) = pipe().unwrap();
    let (out, to) = pipe().unwrap();
    let sizes = [1, 100, 4096, 70_000, 1_000_000, 3, 300_000, 65_536, 2_000_000, 5];
    let bytes: Vec<u8> = (0..251).cycle().take(sizes.iter().sum()).collect();
    let sent = bytes.clone();
    let sending = std::thread::spawn(move || {
        let mut rest = sent.as_slice();
        for size in sizes {
            let (piece, after) = rest.split_at(size);
            io::Write::write_all(&mut std::fs::File::from(into.try_clone().unwrap()), piece).unwrap();
            rest = after;
        }
    });
    let receiving = std::thread::spawn(move || {
        let mut got = Vec::new();
        io::Read::read_to_end(&mut std::fs::File::from(out), &mut got).unwrap();
        got
    });
    assert!(matches!(forward(from, &to, &queue), ForwardEnd::Closed));
    drop(to);
    sending.join().unwrap();
    assert!(receiving.join().unwrap() == bytes, "what was handed on");
    queue.end(ProcessEnd::Code(0));
    let report = writing.join().unwrap();
    assert_eq!((report.written, report.lost), (bytes.len() as u64, 0));
    assert!(parse(&file.bytes.lock().unwrap()).0[0] == bytes, "what was kept");
}

#[test]
fn reader_that_leaves_ends_the_stream() {
    let file = Arc::new(SmallFile::default());
    file.room.store(usize::MAX, Ordering::SeqCst);
    let queue = SpoolQueue::default();
    let writing = writing(&queue, &file);
    let (from, into) = pipe().unwrap();
    let (out, to) = pipe().unwrap();
    drop(out);
    rustix::io::write(&into, b"lost to nobody").unwrap();
    assert!(matches!(forward(from, &to, &queue), ForwardEnd::Unread));
    assert!(rustix::io::write(&into, b"more").is_err(), "the command sees it");
    queue.end(ProcessEnd::Signal(13));
    assert_eq!(writing.join().unwrap().written, 14);
}

#[test]
fn stream_goes_on_without_a_file() {
    let queue = SpoolQueue::default();
    queue.discard();
    let (from, into) = pipe().unwrap();
    let (out, to) = pipe().unwrap();
    let bytes = vec![7; 5_000_000];
    let sent = bytes.clone();
    let sending = std::thread::spawn(move || {
        io::Write::write_all(&mut std::fs::File::from(into), &sent).unwrap();
    });
    let receiving = std::thread::spawn(move || {
        let mut got = Vec::new();
        io::Read::read_to_end(&mut std::fs::File::from(out), &mut got).unwrap();
        got
    });
    assert!(matches!(forward(from, &to, &queue), ForwardEnd::Closed));
    drop(to);
    sending.join().unwrap();
    assert!(receiving.join().unwrap() == bytes);
}

#[test]
fn stopped_forwarder_hands_on_what_was_there_and_gives_the_rest_back() {
    let file = Arc::new(SmallFile::default());
    file.room.store(usize::MAX, Ordering::SeqCst);
    let queue = SpoolQueue::default();
    let writing = writing(&queue, &file);
    let (from, into) = pipe().unwrap();
    let (out, to) = pipe().unwrap();
    rustix::io::write(&into, b"before").unwrap();
    let (stop, signal) = Stop::new().unwrap();
    stop.stop();
    let end = Forwarder { from, to: to.as_fd(), lane: Some(WrapLane::Out), stop: signal }.run(&queue);
    let ForwardEnd::Stopped(from) = end else { panic!("{end:?}") };
    rustix::io::write(&into, b"after").unwrap();
    queue.end(ProcessEnd::Code(0));
    assert_eq!(writing.join().unwrap().written, 6);
    assert!(file.bytes.lock().unwrap().windows(17).any(|part| part == br#"{"left_open":"out"#));
    drop((to, into));
    let read = |fd: OwnedFd| {
        let mut got = Vec::new();
        io::Read::read_to_end(&mut std::fs::File::from(fd), &mut got).unwrap();
        got
    };
    assert_eq!((read(out), read(from)), (b"before".to_vec(), b"after".to_vec()));
}
