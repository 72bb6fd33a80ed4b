//! Checks of the workspace as a whole: `architecture` compares the crates with the table in `ARCHITECTURE.md`,
//! `documents` compares lists in other documents with what they list, `links` follows links in documents, `commits`
//! checks the subjects of commits, `root_entries` the names in the root of the repository, `type_names` the names of
//! types, `value_names` those of values, and `tidy` those rules of `STYLE.md` that need no compiler. `source` tells
//! code, text and comments apart. Every check is shown to fire on a sample that breaks it.

mod architecture;
mod commits;
mod documents;
mod links;
mod root_entries;
mod source;
mod tidy;
mod type_names;
mod value_names;
