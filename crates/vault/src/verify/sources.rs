//! Checks sources: which chunks they name, and whether their own files are damaged.

use std::collections::BTreeSet;

use super::{AffectedSource, Finding};
use crate::error::Error;
use crate::ids::{ChunkHash, SourceId};
use crate::manifest::{Manifest, SourceInfo};
use crate::names::{self, VaultFile};
use crate::tail_file::{self, Tail};
use crate::vault::Vault;

/// Which sources name which chunks.
#[derive(Default)]
pub(super) struct SourceScan {
    pub(super) sources: Vec<(SourceId, Option<SourceInfo>)>,
    /// Chunk, its length and the number of a source that names it, sorted.
    chunks: Vec<(ChunkHash, u32, u32)>,
    pub(super) tail_bytes: u64,
    pub(super) unfinished: usize,
    pub(super) findings: Vec<Finding>,
}

impl SourceScan {
    pub(super) fn read(vault: &Vault) -> Result<Self, Error> {
        let mut named = Self::default();
        let mut with_tails = BTreeSet::new();
        let dir = names::tails();
        for name in vault.disk().list(&dir).map_err(Error::io("list", &dir))? {
            if let Some(VaultFile::Tail(source)) = VaultFile::parse(dir.below(name).as_str()) {
                with_tails.insert(source);
            }
        }
        for source in vault.sources()? {
            with_tails.remove(&source);
            named.read_source(vault, source);
        }
        // A tail without a manifest is left by an interrupted forget, or is all that remains of a source.
        for source in with_tails {
            if !vault.is_forgotten(source).unwrap_or(false) {
                let (path, why) = (VaultFile::Tail(source).path(), "its source has no manifest");
                named.find(Error::Damaged { path, offset: 0, why }, source, None);
            }
        }
        named.chunks.sort_unstable();
        named.chunks.dedup();
        Ok(named)
    }

    fn read_source(&mut self, vault: &Vault, source: SourceId) {
        let disk = &**vault.disk();
        // The tail first: bytes that left it by then are named by the manifest, which is read after it.
        let tail = tail_file::read(disk, source);
        let manifest = match vault.manifest(source) {
            Ok(Some(manifest)) => manifest,
            // It was forgotten meanwhile.
            Ok(None) => return,
            Err(error) => {
                let info = Manifest::read_info(disk, source);
                self.sources.push((source, info.clone()));
                self.find(error, source, info);
                return;
            }
        };
        let path = VaultFile::Manifest(source).path();
        let size = disk.identity(&path).ok().flatten().map_or(0, |identity| identity.size_bytes);
        self.unfinished += usize::from(size > manifest.good_len);
        match tail {
            Ok(tail) => self.check_tail(&tail, &manifest),
            Err(error) => self.find(error, source, Some(manifest.info.clone())),
        }
        let number = u32::try_from(self.sources.len()).expect("there are fewer sources than that");
        self.chunks.extend(manifest.chunks().map(|chunk| (chunk.hash, chunk.len, number)));
        self.sources.push((source, Some(manifest.info)));
    }

    fn check_tail(&mut self, tail: &Tail, manifest: &Manifest) {
        self.tail_bytes += tail.len;
        if let Err(error) = tail.check(manifest.id) {
            return self.find(error, manifest.id, Some(manifest.info.clone()));
        }
        let Some(last) = manifest.generation_last() else { return };
        let stored = manifest.generations.last().map_or(0, |generation| generation.len);
        let is_behind = tail.frames.iter().any(|frame| frame.generation > last)
            || tail.frames.iter().any(|frame| frame.generation == last && frame.offset > stored)
                && tail.bytes_from(last, stored).is_empty();
        if is_behind {
            let (path, why) = (VaultFile::Tail(manifest.id).path(), "its manifest lacks the bytes before it");
            let error = Error::Damaged { path, offset: 0, why };
            self.find(error, manifest.id, Some(manifest.info.clone()));
        }
        self.unfinished += usize::from(tail.is_unfinished());
    }

    fn find(&mut self, error: Error, source: SourceId, info: Option<SourceInfo>) {
        self.findings.push(Finding { error, affects: vec![AffectedSource { source, info }] });
    }

    /// Returns the numbers of the sources that name a chunk.
    pub(super) fn sources_of(&self, hash: &ChunkHash) -> impl Iterator<Item = u32> {
        let start = self.chunks.partition_point(|(known, _, _)| known < hash);
        let of_it = self.chunks[start..].iter().take_while(move |(known, _, _)| known == hash);
        of_it.map(|(_, _, source)| *source)
    }

    pub(super) fn is_named(&self, hash: &ChunkHash) -> bool {
        self.chunks.binary_search_by(|(known, _, _)| known.cmp(hash)).is_ok()
    }

    /// Returns every named chunk once, with its expected length.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (ChunkHash, u32)> {
        let is_first = |at: usize| at == 0 || self.chunks[at - 1].0 != self.chunks[at].0;
        let firsts = (0..self.chunks.len()).filter(move |at| is_first(*at));
        firsts.map(|at| (self.chunks[at].0, self.chunks[at].1))
    }

    /// Returns findings for manifests that name a chunk with a wrong length.
    pub(super) fn with_other_lengths(
        &self,
        len_of: impl Fn(&ChunkHash) -> Option<u32>,
    ) -> impl Iterator<Item = Finding> {
        let differs =
            move |(hash, len, _): &&(ChunkHash, u32, u32)| len_of(hash).is_some_and(|real| real != *len);
        let numbers: BTreeSet<u32> =
            self.chunks.iter().filter(differs).map(|(_, _, number)| *number).collect();
        numbers.into_iter().map(|number| {
            let path = VaultFile::Manifest(self.sources[number as usize].0).path();
            let error = Error::Damaged { path, offset: 0, why: "it names a chunk with a wrong length" };
            Finding { error, affects: self.affected(BTreeSet::from([number])) }
        })
    }

    /// Returns the sources with these numbers.
    pub(super) fn affected(&self, numbers: BTreeSet<u32>) -> Vec<AffectedSource> {
        let affected = |number: u32| {
            let (source, info) = &self.sources[number as usize];
            AffectedSource { source: *source, info: info.clone() }
        };
        numbers.into_iter().map(affected).collect()
    }
}
