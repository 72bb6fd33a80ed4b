//! The workspace looked after as a whole: `architecture` compares the crates with the table in
//! `ARCHITECTURE.md`, `documents` lists in other documents with what they list, `tidy` checks those rules of `STYLE.md` that need no compiler. `source` tells code, text
//! and comments apart for it. Every check is shown to fire on a sample that breaks it.

mod architecture;
mod documents;
mod source;
mod tidy;
