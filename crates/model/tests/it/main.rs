//! What the model promises to strangers: what it takes, what it refuses, and that bytes come out as they went in.

#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod any_json;
mod cases;
mod kit;

mod dispatch;
mod entries;
mod golden;
mod properties;
mod raw;
mod schema;
mod spec_examples;
mod strict;
mod words;
mod writing;
