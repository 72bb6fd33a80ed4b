//! What the checks, repairs and bundles of spines promise, each promise shown.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod kit;

mod archives;
mod contents;
mod damage;
mod repair;
mod rules;
