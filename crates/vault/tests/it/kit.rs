//! A vault on a disk that can be looked into, and sources to put into it.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::value::RawValue;
use steno_disk::{Disk, StorePath};
use steno_model::{Provider, Word};
use steno_testkit::dice::Dice;
use steno_testkit::sim_disk::SimDisk;
use steno_vault::{Error, HostPath, Limits, Manifest, Role, SourceId, SourceInfo, SourceWriter, Vault};

pub const NOW: &str = "2026-06-08T08:14:42.123Z";

pub fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.make_dir(&StorePath::locks()).unwrap();
    disk
}

pub fn vault(disk: &SimDisk) -> Arc<Vault> {
    Vault::create(Arc::new(disk.clone())).unwrap()
}

/// Limits with which little content makes many chunks and several packs.
pub const SMALL: Limits = Limits { chunk_bytes_max: 4096, pack_bytes_max: 24 * 1024 };

pub fn small_vault(disk: &SimDisk) -> Result<Arc<Vault>, Error> {
    Vault::create_with(Arc::new(disk.clone()), SMALL)
}

/// The paths of all files whose path begins so.
pub fn files(disk: &SimDisk, prefix: &str) -> Vec<String> {
    let names = disk.snapshot().into_iter().map(|(path, _)| path);
    names.filter(|path| path.starts_with(prefix)).collect()
}

pub fn cursor(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub fn info(name: &str) -> SourceInfo {
    SourceInfo {
        provider: Some(Word::Known(Provider::Claude)),
        role: Role::Transcript,
        home: Some(HostPath(PathBuf::from("/agents/claude"))),
        path: HostPath(PathBuf::from("/agents/claude/projects/p").join(name)),
        session: Some("p/s".into()),
        project: Some("p".into()),
        is_filtered: false,
    }
}

pub fn id(name: &str) -> SourceId {
    SourceId::derive(&info(name).path.0, 0)
}

pub fn write(vault: &Arc<Vault>, name: &str) -> SourceWriter {
    vault.write(id(name), &info(name), NOW).unwrap()
}

/// All bytes of a generation.
pub fn read(vault: &Vault, name: &str, generation: u32) -> Vec<u8> {
    let manifest = vault.manifest(id(name)).unwrap().unwrap();
    read_all(vault, &manifest, generation).unwrap()
}

/// All bytes of a generation, if they can be read.
pub fn read_all(vault: &Vault, manifest: &Manifest, generation: u32) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let keep = |offset, piece: &[u8]| {
        assert_eq!(offset, bytes.len() as u64);
        bytes.extend_from_slice(piece);
        true
    };
    vault.read(manifest, generation, 0, keep)?;
    Ok(bytes)
}

/// Lines as an agent writes them: similar, each with its own id.
pub fn session(seed: u64, bytes: usize, session: &str) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let mut text = String::new();
    while text.len() < bytes {
        let (id, parent) = (dice.roll(), dice.roll());
        let words: Vec<String> =
            (0..40 + dice.below(80)).map(|_| format!("w{}", dice.below(5_000))).collect();
        text.push_str(&format!(
            "{{\"uuid\":\"{id:032x}\",\"parentUuid\":\"{parent:032x}\",\"sessionId\":\"{session}\",\"message\":\"{}\"}}\n",
            words.join(" ")
        ));
    }
    text.truncate(bytes);
    text.into_bytes()
}

/// Content that shares most of its lines with other content.
pub fn cousin(content: &[u8], seed: u64) -> Vec<u8> {
    let others = session(seed, content.len() / 4, "first-session");
    let mut others = others.split_inclusive(|byte| *byte == b'\n');
    let mut out = Vec::with_capacity(content.len());
    for (number, line) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let other = if number % 8 == 3 { others.next() } else { None };
        out.extend_from_slice(other.unwrap_or(line));
    }
    out
}
