//! Tests of checks, repairs and bundles of spines.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod kit;

mod contents;
mod damage;
mod repair;
mod rules;
mod tar_files;
