//! Shows on a terminal how far the index is brought up to date, if it takes a while.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use steno_library::Library;

/// Nothing is shown before this time: most updates are done by then.
const SHOWN_AFTER: Duration = Duration::from_millis(300);

/// Returns the library, with a progress bar on stderr whenever it reads many sessions for the index.
pub fn shown(library: Library) -> Library {
    let began = Instant::now();
    let shown: Mutex<Option<ProgressBar>> = Mutex::new(None);
    library.with_index_progress(move |done, total| {
        let Ok(mut shown) = shown.lock() else { return };
        if done == total {
            if let Some(bar) = shown.take() {
                bar.finish_and_clear();
            }
        } else if began.elapsed() >= SHOWN_AFTER {
            let bar = shown.get_or_insert_with(|| bar(total));
            bar.set_position(done as u64);
        }
    })
}

fn bar(total: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
    let style =
        ProgressStyle::with_template("{bar:30} reading {human_pos} of {human_len} sessions for the index");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
