//! Where agents' bytes come from: finding their files, and following them as they grow.

pub mod discovery;
pub mod tail;
