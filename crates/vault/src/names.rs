//! Names of the vault's files in a store. All of them are built and parsed here.

use steno_disk::StorePath;

use crate::ids::{PackId, SourceId};

/// A file of the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VaultFile {
    /// Chunks, one after the other.
    Pack(PackId),
    /// The index of a closed pack. Derived from the pack, and rebuilt when it is missing.
    PackIndex(PackId),
    /// What a source is, and which chunks each of its generations has.
    Manifest(SourceId),
    /// The end of a growing source that is not cut into chunks yet.
    Tail(SourceId),
    /// The tombstones.
    Tombstones,
    /// The manifests without their chunks. Derived from them, and read again where it differs.
    Outlines,
    /// The lock of the writer of a pack.
    PackLock(PackId),
    /// The lock of the owner of a source.
    SourceLock(SourceId),
    /// The lock for changing the tombstones.
    TombstonesLock,
    /// The lock that writers share and a sweep takes exclusively.
    SweepLock,
}

impl VaultFile {
    /// Builds the path.
    #[must_use]
    pub fn path(self) -> StorePath {
        match self {
            Self::Pack(pack) => packs().below(format_args!("{pack}.pack")),
            Self::PackIndex(pack) => packs().below(format_args!("{pack}.index")),
            Self::Manifest(source) => sources().below(format_args!("{source}.jsonl")),
            Self::Tail(source) => tails().below(format_args!("{source}.tail")),
            Self::Tombstones => root().below("forgotten.jsonl"),
            Self::Outlines => root().below("outlines.jsonl"),
            Self::PackLock(pack) => StorePath::locks().below(format_args!("pack-{pack}.lock")),
            Self::SourceLock(source) => StorePath::locks().below(format_args!("source-{source}.lock")),
            Self::TombstonesLock => StorePath::locks().below("vault-forgotten.lock"),
            Self::SweepLock => StorePath::locks().below("vault.lock"),
        }
    }

    /// Parses a path; `None` when it is not a file of the vault.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let (dir, name) = path.rsplit_once('/')?;
        let (stem, kind) = name.split_once('.')?;
        let pack = || PackId::parse(stem);
        let file = match (dir, kind) {
            ("vault/packs", "pack") => Self::Pack(pack()?),
            ("vault/packs", "index") => Self::PackIndex(pack()?),
            ("vault/sources", _) => Self::Manifest(Self::in_sources(name)?),
            ("vault/tails", "tail") => Self::Tail(SourceId::parse(stem)?),
            ("vault", "jsonl") if stem == "outlines" => Self::Outlines,
            ("vault", "jsonl") => Self::Tombstones,
            ("locks", "lock") => match stem.split_once('-') {
                Some(("pack", id)) => Self::PackLock(PackId::parse(id)?),
                Some(("source", id)) => Self::SourceLock(SourceId::parse(id)?),
                Some(_) => Self::TombstonesLock,
                None => Self::SweepLock,
            },
            _ => return None,
        };
        (file.path().as_str() == path).then_some(file)
    }

    /// Parses a name in the directory of manifests; returns the source of the manifest.
    pub(crate) fn in_sources(name: &str) -> Option<SourceId> {
        SourceId::parse(name.strip_suffix(".jsonl")?)
    }

    /// Parses the path of a file or of a temporary file of it.
    pub(crate) fn of(path: &StorePath) -> Option<Self> {
        Self::parse(path.temporary_of().as_ref().unwrap_or(path).as_str())
    }
}

/// The vault's directory.
#[must_use]
pub(crate) fn root() -> StorePath {
    StorePath::root().below("vault")
}

pub(crate) fn packs() -> StorePath {
    root().below("packs")
}

pub(crate) fn sources() -> StorePath {
    root().below("sources")
}

pub(crate) fn tails() -> StorePath {
    root().below("tails")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn file_names_round_trip() {
        let (pack, source) = (PackId::random(), SourceId::derive(Path::new("x"), 0));
        let files = [
            VaultFile::Pack(pack),
            VaultFile::PackIndex(pack),
            VaultFile::Manifest(source),
            VaultFile::Tail(source),
            VaultFile::Tombstones,
            VaultFile::Outlines,
            VaultFile::PackLock(pack),
            VaultFile::SourceLock(source),
            VaultFile::TombstonesLock,
            VaultFile::SweepLock,
        ];
        for file in files {
            let path = file.path();
            assert_eq!(VaultFile::parse(path.as_str()), Some(file), "{path}");
            assert_eq!(VaultFile::parse(&path.as_str().to_uppercase()), None);
            assert_eq!(VaultFile::parse(path.temporary().as_str()), None);
            assert_eq!([&path, &path.temporary()].map(VaultFile::of), [Some(file); 2]);
            assert_eq!((path.temporary().temporary_of(), path.temporary_of()), (Some(path), None));
        }
        assert_eq!(VaultFile::parse("vault/packs/x.pack"), None);
    }
}
