//! Checks a trajectory: first its JSON and the shape of the version that it declares, then its consistency.
//!
//! It is stricter than Harbor's own validator, which builds its models and looks for the media of the outermost steps.
//! Each rule has a name; `docs/atif.md` lists them.

mod objects;
mod rules;
mod shape;
#[cfg(test)]
mod tests;

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use steno_model::json::depth;

use self::objects::Objects;
use self::rules::Rules;
use super::text::lone_surrogate;

/// The maximum nesting of a document: Python reads up to a thousand levels.
const DEPTH_MAX: usize = 500;
/// The maximum number of findings of a document.
const FINDINGS_MAX: usize = 1_000;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The document is not a valid trajectory.
    Error,
    /// The document is valid, but a value is suspicious.
    Warning,
}

impl Severity {
    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A fault of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule, like `call.duplicate`.
    pub rule: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The place, like `steps[3].tool_calls[0]`; empty for the whole document.
    pub place: String,
    /// The description.
    pub words: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, severity, place, words } = self;
        let colon = if place.is_empty() { "" } else { ": " };
        write!(out, "{} {rule}: {place}{colon}{words}", severity.as_str())
    }
}

/// The files that a document refers to.
pub trait DocumentFiles {
    /// Looks up a path relative to the document.
    fn file(&mut self, path: &str) -> FileLookup;
}

/// The result of looking up a path that a document names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileLookup {
    /// Not looked up.
    Unknown,
    /// No file, or an unreadable one.
    Nothing,
    /// A file, with the SHA-256 of its bytes in lower case.
    File {
        /// The hash.
        sha256: String,
    },
}

impl FileLookup {
    /// Returns the result for a file with these bytes.
    #[must_use]
    pub fn file(bytes: &[u8]) -> Self {
        Self::File { sha256: HEXLOWER.encode(&Sha256::digest(bytes)) }
    }
}

/// Does not look up files, so references to them are not checked.
pub struct NoFiles;

impl DocumentFiles for NoFiles {
    fn file(&mut self, _path: &str) -> FileLookup {
        FileLookup::Unknown
    }
}

/// Checks a document, and returns its faults in the order of the document.
///
/// ```
/// use steno_exports::atif::{NoFiles, validate};
/// let document = r#"{"schema_version":"ATIF-v1.8","agent":{"name":"a","version":"1"},"steps":[]}"#;
/// let findings = validate(document, &mut NoFiles);
/// assert_eq!(findings[0].to_string(), "error steps.empty: steps: a trajectory has one step or more");
/// ```
#[must_use]
pub fn validate(document: &str, files: &mut dyn DocumentFiles) -> Vec<Finding> {
    let mut findings = Findings::default();
    let levels = depth(document);
    if levels > DEPTH_MAX {
        findings.error("json.depth", "", format!("nests {levels} levels deep, more than {DEPTH_MAX}"));
        return findings.0;
    }
    let root = match serde_json::from_str(document) {
        Ok(root) => root,
        Err(error) => {
            findings.error("json.syntax", "", error.to_string());
            return findings.0;
        }
    };
    if let Some(offset) = lone_surrogate(document) {
        findings.error(
            "json.surrogate",
            "",
            format!("an unpaired surrogate at byte {offset}, which many programs cannot write"),
        );
    }
    let mut objects = Objects { findings: &mut findings };
    if objects.trajectory(root, "") {
        Rules { findings: &mut findings, files }.document(root);
    }
    findings.0.truncate(FINDINGS_MAX);
    findings.0
}

/// The findings so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, rule: &'static str, place: &str, words: impl Into<String>) {
        self.add(Severity::Error, rule, place, words.into());
    }

    fn warning(&mut self, rule: &'static str, place: &str, words: impl Into<String>) {
        self.add(Severity::Warning, rule, place, words.into());
    }

    fn add(&mut self, severity: Severity, rule: &'static str, place: &str, words: String) {
        if self.0.len() <= FINDINGS_MAX {
            self.0.push(Finding { rule, severity, place: place.to_owned(), words });
        }
    }
}
