//! Searches every byte of a store for a text, as docs/format/vault.md describes it: packs are unpacked frame by
//! frame, including frames without a reference.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use zstd::stream::read::Decoder;

const PACK_HEADER_LEN: usize = 16;
const FRAME_MAGIC: &[u8] = b"SCHK";
/// The length of the common part of all frame headers.
const HASH_END: usize = 72;
const HASH_LEN: usize = 32;

struct Frame {
    form: u8,
    base: Vec<u8>,
    stored: Vec<u8>,
}

/// Returns where a text occurs in a store: names of files, their bytes, and the chunks of packs.
pub fn places_of(store: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut frames = HashMap::new();
    for path in files_below(store) {
        let name = path.strip_prefix(store).unwrap().display().to_string();
        // Another process may be writing to the store.
        let Ok(bytes) = fs::read(&path) else { continue };
        if name.contains(text) || holds(&bytes, text) {
            found.push(name.clone());
        }
        if path.extension().is_some_and(|ending| ending == "pack") {
            read_pack(&bytes, &mut frames);
        }
    }
    for hash in frames.keys() {
        if holds(&chunk(hash, &frames), text) {
            found.push(format!("a chunk in a pack: {text}"));
        }
    }
    found.sort();
    found
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

fn number(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize
}

fn read_pack(pack: &[u8], frames: &mut HashMap<Vec<u8>, Frame>) {
    let mut at = PACK_HEADER_LEN;
    while at + HASH_END <= pack.len() {
        let frame = &pack[at..];
        if !frame.starts_with(FRAME_MAGIC) {
            at += 1;
            continue;
        }
        let form = frame[4];
        let base_len = if form >= 2 { HASH_LEN } else { 0 };
        let stored_at = HASH_END + base_len + 8;
        let stored_len = number(&frame[12..]);
        let Some(stored) = frame.get(stored_at..stored_at + stored_len) else { break };
        let base = frame[HASH_END..HASH_END + base_len].to_vec();
        let hash = frame[HASH_END - HASH_LEN..HASH_END].to_vec();
        frames.insert(hash, Frame { form, base, stored: stored.to_vec() });
        at += stored_at + stored_len;
    }
}

fn chunk(hash: &[u8], frames: &HashMap<Vec<u8>, Frame>) -> Vec<u8> {
    let Some(Frame { form, base, stored }) = frames.get(hash) else { return Vec::new() };
    let mut bytes = Vec::new();
    match form {
        0 => bytes.clone_from(stored),
        1 => drop(Decoder::new(stored.as_slice()).unwrap().read_to_end(&mut bytes).unwrap()),
        _ => {
            let base = chunk(base, frames);
            let mut decoder = Decoder::with_ref_prefix(stored.as_slice(), &base).unwrap();
            decoder.read_to_end(&mut bytes).unwrap();
        }
    }
    bytes
}
