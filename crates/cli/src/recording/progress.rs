//! A progress bar for a pass over files, and what went wrong in it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use steno_recorder::sources::{ImportOutcome, ImportProgress, SourceError, SourceFile};

use super::{error_text, warn};

/// Shows on a terminal how far a pass is.
pub struct ImportBar {
    shown: ProgressBar,
    /// How many bytes of the files that are being read were counted as progress.
    counted: HashMap<PathBuf, u64>,
    is_stopped: Box<dyn Fn() -> bool>,
    pub failed: u64,
}

impl ImportBar {
    pub fn new(files: &[SourceFile], is_stopped: impl Fn() -> bool + 'static) -> Self {
        let total = files.iter().map(SourceFile::size_bytes).sum();
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { shown: bar, counted: HashMap::new(), is_stopped: Box::new(is_stopped), failed: 0 }
    }
}

impl ImportProgress for ImportBar {
    fn bytes(&mut self, path: &Path, count: u64) {
        if self.shown.is_hidden() {
            return;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.shown.set_message(steno_views::visible(&name, steno_views::Lines::Escape).into_owned());
        self.shown.inc(count);
        *self.counted.entry(path.to_owned()).or_default() += count;
    }

    fn done(&mut self, file: &SourceFile, _outcome: ImportOutcome) {
        let counted = self.counted.remove(file.path()).unwrap_or(0);
        self.shown.inc(file.size_bytes().saturating_sub(counted));
    }

    fn failed(&mut self, _file: &SourceFile, error: &SourceError) {
        self.failed += 1;
        self.shown.suspend(|| warn(&error_text(error)));
    }

    fn is_enough(&self) -> bool {
        (self.is_stopped)()
    }
}

impl Drop for ImportBar {
    fn drop(&mut self) {
        self.shown.finish_and_clear();
    }
}
