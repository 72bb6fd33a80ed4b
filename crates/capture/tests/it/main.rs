//! Tests of finding and following files, and of listening to wires.

mod discovering;
mod finding_homes;
mod followed;
mod git;
mod given_paths;
mod hostile;
mod placing;
mod proxying;
mod real_homes;
mod retention;
mod tailing;
mod tailing_random;
mod trees;
mod watching;
