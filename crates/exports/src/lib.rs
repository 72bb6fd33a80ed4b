//! Exports: sessions in the formats of other programs.
//!
//! - [`atif`]: [`atif::Run`] and [`atif::Family`] make ATIF trajectories of sessions, [`atif::validate()`] checks one.
//! - [`harbor`]: [`harbor::Plan`] makes a Harbor task of a window of a session.
//!
//! ```
//! use steno_exports::atif::{Family, NoMedia, NoRecords, NoFiles, Run, validate};
//! use steno_model::{ExchangeEvent, RunId};
//! use steno_session::{Content, SessionBuilder};
//!
//! let event = br#"{"seq":1,"run_id":"550e8400-e29b-41d4-a716-446655440000","type":"message.user","path":"","iteration":0,"timestamp":"2026-06-08T08:14:42Z","payload":{"role":"user","blocks":[{"type":"text","text":"Fix the build."}]}}"#;
//! let run = RunId::parse("550e8400-e29b-41d4-a716-446655440000")?;
//! let mut builder = SessionBuilder::new(run, Content::Whole);
//! builder.push(&ExchangeEvent::parse(event)?);
//! let family = Family::new([(run, Run::of(builder.finish(), &mut NoRecords))].into());
//! let trajectory = family.trajectory(run, &mut NoMedia).expect("the session has a step");
//! assert!(trajectory.json.contains("Fix the build."));
//! assert_eq!(validate(&trajectory.json, &mut NoFiles), []);
//! # Ok::<(), steno_model::Error>(())
//! ```
//!
//! # Promises
//! - Pure: no file, network, clock, thread or environment. The same session gives the same bytes on any machine.
//! - A fact that the record lacks is left out with a reason, or leads to a refusal. It is never guessed.

pub mod atif;
pub mod harbor;
