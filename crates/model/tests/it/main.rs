//! Tests of the model: what it accepts, what it refuses, and that bytes round-trip.

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
