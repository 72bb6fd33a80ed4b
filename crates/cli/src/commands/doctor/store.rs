//! The store in `steno doctor`: whether it can be written, who owns it, and who else has access.

use std::io;
use std::path::Path;
use std::sync::Arc;

use steno_disk::{Disk as _, RealDisk, StorePath, Survey, check_can_make};
use steno_journal::Store;
use steno_library::{Library, ListFilter};
use steno_model::with_causes;
use steno_recorder::sources::{FollowerProcess, follower, plan_rederive, program_written_at};
use steno_vault::Vault;
use steno_views::{count, shell_word, thousands};

use crate::runs;
use crate::settings::Settings;

/// A finding for the user, and the command that fixes it.
pub struct DoctorFinding {
    pub what: String,
    pub mend: Option<String>,
    pub severity: Severity,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is broken, but something could be improved.
    Advice,
    /// Something does not work.
    Problem,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::Problem => "problem",
        }
    }
}

impl DoctorFinding {
    pub fn problem(what: String, mend: Option<String>) -> Self {
        Self { what, mend, severity: Severity::Problem }
    }

    pub fn advice(what: String, mend: &str) -> Self {
        Self { what, mend: Some(mend.to_owned()), severity: Severity::Advice }
    }
}

/// The state of the store.
pub struct StoreState {
    pub vault: Arc<Vault>,
    pub is_followed: bool,
    pub is_paused: bool,
    /// How many runs can be derived again.
    pub runs_awaiting: u64,
    /// How many sessions the agents deleted, shortened or rewrote; `None` without an index.
    pub sessions_gone: Option<u64>,
}

/// Examines the store; `None` if it does not exist or cannot be used.
pub fn store_state(settings: &Settings, findings: &mut Vec<DoctorFinding>) -> Option<StoreState> {
    let state = match runs::open_store(settings) {
        Ok(Some(store)) => {
            let follower = follower(&**store.disk());
            findings.extend(follower.and_then(|follower| older_follower(follower, program_written_at())));
            let is_paused = store.is_paused(jiff::Timestamp::now());
            if is_paused {
                let what = "recording is paused".to_owned();
                findings.push(DoctorFinding::advice(what, "steno resume"));
            }
            let vault = Vault::open(Arc::clone(store.disk()));
            let runs_awaiting = awaiting_runs(&store, &vault, findings);
            let sessions_gone = sessions_gone(store);
            Some(StoreState {
                vault,
                is_followed: follower.is_some(),
                is_paused,
                runs_awaiting,
                sessions_gone,
            })
        }
        Ok(None) => {
            if let Err((dir, error)) = check_can_make(&settings.store.value) {
                let what =
                    format!("the store cannot be created: `{}` is not writable: {error}", dir.display());
                findings.push(DoctorFinding::problem(what, None));
            }
            None
        }
        Err(failure) => {
            findings.push(DoctorFinding::problem(failure.message, failure.hint));
            None
        }
    };
    // A store that cannot be opened was reported above.
    if let Ok(Some(survey)) = survey(settings) {
        judge(&survey, &settings.store.value, findings);
    }
    state
}

/// Counts the sessions of which the agents' disks lack something. An index is not made for that.
fn sessions_gone(store: Store) -> Option<u64> {
    let library = Library::new(Some(store));
    let filter = ListFilter { is_gone: true, ..ListFilter::default() };
    let listed = library.has_index().then(|| library.list(&filter, jiff::Timestamp::now()))?;
    listed.ok().map(|listed| listed.len() as u64)
}

/// Tells when the process that follows agents was started from an older program than this one.
fn older_follower(follower: FollowerProcess, own: Option<u64>) -> Option<DoctorFinding> {
    let is_older = own? > follower.program_written_at?;
    is_older.then(|| {
        let process = follower.pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
        let what = format!(
            "the running `steno up`{process} is older than this program: stop it and start it again; \
             if it is a service, this does both:"
        );
        DoctorFinding::advice(what, "steno service install")
    })
}

/// Counts the runs that an older adapter derived.
fn awaiting_runs(store: &Store, vault: &Vault, findings: &mut Vec<DoctorFinding>) -> u64 {
    let runs = match plan_rederive(store, vault) {
        Ok(plan) => plan.runs(),
        Err(error) => {
            // Permissions are checked below, and `steno verify` finds damage.
            tracing::debug!("{}", with_causes(&error));
            return 0;
        }
    };
    if runs > 0 {
        let runs = count(runs, "run");
        let what = format!("{runs} can be derived again: this `steno` understands more of the agents' files");
        findings.push(DoctorFinding::advice(what, "steno rederive"));
    }
    runs
}

/// Checks owners and permissions; `None` if the directory is not a store.
pub fn survey(settings: &Settings) -> io::Result<Option<Survey>> {
    let Some(disk) = RealDisk::open(&settings.store.value)? else { return Ok(None) };
    let is_store =
        disk.identity(&StorePath::format())?.is_some() || disk.list(&StorePath::root())?.is_empty();
    if is_store { disk.survey().map(Some) } else { Ok(None) }
}

fn judge(survey: &Survey, store: &Path, findings: &mut Vec<DoctorFinding>) {
    let Survey { owner, is_ours, open_dirs, open_files, foreign, closed } = survey;
    let quoted = shell_word(&store.display().to_string());
    let at = |path: &Path| store.join(path).display().to_string();
    if !is_ours {
        let what = format!("the store belongs to another user (uid {owner}); only that user can write to it");
        findings.push(DoctorFinding::problem(what, None));
    }
    if open_dirs + open_files > 0 {
        let what = format!(
            "the store is open to other users: {} and {} have permissions for group or others",
            words(*open_dirs, "directory", "directories"),
            words(*open_files, "file", "files"),
        );
        findings.push(DoctorFinding::problem(what, Some(format!("chmod -R go= {quoted}"))));
    }
    if let [first, ..] = &foreign[..] {
        let number = words(foreign.len() as u64, "file or directory", "files and directories");
        let path = at(&first.path);
        let what = format!(
            "{number} in the store owned by another user, the first is `{path}` (uid {})",
            first.owner
        );
        findings.push(DoctorFinding::problem(what, Some(format!("sudo chown -R {owner} {quoted}"))));
    }
    if let [(path, error), ..] = &closed[..] {
        let number = count(closed.len() as u64, "place");
        let what = format!("the store is not writable in {number}, the first is `{}`: {error}", at(path));
        let is_mode = *is_ours && error.kind() == io::ErrorKind::PermissionDenied;
        findings.push(DoctorFinding::problem(what, is_mode.then(|| format!("chmod -R u+rwX {quoted}"))));
    }
}

fn words(number: u64, one: &str, more: &str) -> String {
    format!("{} {}", thousands(number), if number == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_older_follower_is_a_finding() {
        let follower = |program_written_at| FollowerProcess { pid: Some(7), program_written_at };
        let finding = older_follower(follower(Some(1_000)), Some(1_001)).unwrap();
        assert!(finding.what.contains("(process 7) is older"), "{}", finding.what);
        assert_eq!(finding.severity, Severity::Advice);
        for (of_follower, own) in
            [(Some(1_001), Some(1_001)), (Some(1_002), Some(1_001)), (None, Some(1)), (Some(1), None)]
        {
            assert!(older_follower(follower(of_follower), own).is_none(), "{of_follower:?} {own:?}");
        }
    }
}
