//! Shared by the tests of this workspace. Nothing here is part of the `steno` binary: other crates name this one under
//! `[dev-dependencies]` and nowhere else, which its own `architecture` test checks.
//!
//! # What is here
//! - [`skip!`] and [`needs!`] leave a test that lacks something (root, `jq`, the sample sessions). The test
//!   runner hides what a passing test prints, so a skip also goes to the file that `STENO_SKIPS` names; CI
//!   compares that file with a list of the skips it accepts. [`tool`], [`shared_dir`] and [`is_root`] look for
//!   what tests tend to lack.
//! - [`golden::check`] compares a text with a checked-in file. It rewrites the file only with `STENO_BLESS=1`, and
//!   never on CI.
//! - [`places`] finds the workspace, lists its sources and reads them, so that tests of crates which must not
//!   touch files need not do it themselves.
//! - The integration test `it` looks after the workspace as a whole: `architecture` compares the crates'
//!   dependencies with the table in `ARCHITECTURE.md`, `documents` other lists in documents with what they list,
//!   `tidy` checks the rules of `STYLE.md` that a machine can check.
//!
//! # Example
//! ```
//! use steno_testkit::{needs, tool};
//!
//! fn a_shell_runs() {
//!     let shell = needs!(tool("sh"), "there is no shell");
//!     assert!(shell.is_file());
//! }
//! # a_shell_runs();
//! ```
//!
//! # Promises
//! - A skip is never silent: if the line cannot be written to `STENO_SKIPS`, the test fails.
//! - A comparison never changes the golden file, unless asked to.
//! - Everything panics with a sentence that names the file. This is code for tests: it has no error type.

pub mod bench_programs;
pub mod bench_report;
pub mod bench_suite;
pub mod dice;
pub mod golden;
pub mod places;
pub mod sample;
pub mod sample_spine;
pub mod sim_disk;
pub mod skip;

pub use skip::{is_root, shared_dir, tool};
