//! A vault on a disk that can be looked into, and sources to put into it.

use std::path::PathBuf;
use std::sync::Arc;

use steno_disk::{Disk, StorePath};
use steno_testkit::dice::Dice;
use steno_testkit::sim_disk::SimDisk;
use steno_vault::{HostPath, SourceId, SourceInfo, SourceWriter, Vault};

pub const NOW: &str = "2026-06-08T08:14:42.123Z";

pub fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.make_dir(&StorePath::locks()).unwrap();
    disk
}

pub fn vault(disk: &SimDisk) -> Arc<Vault> {
    Vault::create(Arc::new(disk.clone())).unwrap()
}

pub fn info(name: &str) -> SourceInfo {
    SourceInfo {
        provider: Some("claude".into()),
        role: "transcript".into(),
        home: Some(HostPath(PathBuf::from("/agents/claude"))),
        path: HostPath(PathBuf::from("/agents/claude/projects/p").join(name)),
        session: Some("p/s".into()),
        project: Some("p".into()),
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
    let mut bytes = Vec::new();
    let keep = |offset, piece: &[u8]| {
        assert_eq!(offset, bytes.len() as u64);
        bytes.extend_from_slice(piece);
        true
    };
    vault.read(&manifest, generation, 0, keep).unwrap();
    bytes
}

/// Lines as an agent writes them: much alike, each with an id of its own.
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
