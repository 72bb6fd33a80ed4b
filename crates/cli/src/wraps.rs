//! Archives wrapped commands whose recorder did not finish: their bytes go to the vault, their events to runs.

use std::sync::Arc;

use steno_journal::Journal;
use steno_model::with_causes;
use steno_recorder::forget;
use steno_recorder::wraps::{RecordedWrap, WrapError, wraps};
use steno_vault::Vault;

use crate::connections::import_file;
use crate::failure::Failure;
use crate::recording::warn;
use crate::settings::Settings;

/// Archives the commands whose recording was interrupted. Failures are warnings, and tried again the next time.
pub fn import_leftover_wraps(journal: &Journal, settings: &Settings) {
    let left = wraps(journal.store()).unwrap_or_else(|error| {
        warn(&with_causes(&error));
        Vec::new()
    });
    for wrap in left {
        if let Err(failure) = import_leftover(journal, settings, wrap) {
            warn(&failure.message);
        }
    }
}

fn import_leftover(journal: &Journal, settings: &Settings, wrap: RecordedWrap) -> Result<(), Failure> {
    // The command still runs. Its recorder archives it, or a later `steno`.
    let Some(_guard) = wrap.lock(journal.store()).map_err(failure)? else { return Ok(()) };
    let path = settings.store.value.canonicalize()?.join(wrap.path().as_str());
    let vault = Vault::open(Arc::clone(journal.store().disk()));
    let is_forgotten =
        forget::is_file_forgotten(&vault, &path).map_err(crate::connections::forget_failure)?;
    if is_forgotten || import_file(journal, path)? {
        wrap.remove(journal.store()).map_err(failure)?;
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "used with `map_err`")]
fn failure(error: WrapError) -> Failure {
    Failure::could_not(with_causes(&error))
}
