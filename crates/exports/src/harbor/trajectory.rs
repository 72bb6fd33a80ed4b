//! The turns before a window, as a trajectory with which an agent's session begins.

use steno_session::{Content, SessionBuilder};

use super::session::Session;
use super::turn::Turn;
use crate::atif::{Family, NoFiles, NoMedia, NoRecords, Run, Severity, validate};

impl Session {
    /// Returns the turns before a turn as a trajectory.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub fn before(&self, turn: &Turn) -> Result<String, String> {
        if let Some(base) = &self.base {
            return Err(format!("the session continues thread {base}, which is not part of the spine"));
        }
        if turn.number == 1 {
            return Err("it begins with the first turn".to_owned());
        }
        let earlier = &self.turns[..turn.number as usize - 1];
        let is_earlier = |seq: &u64| *seq < turn.seqs.0;
        if earlier.iter().any(|turn| turn.is_taken_back) || self.reverts.iter().any(is_earlier) {
            return Err("turns before it were taken back".to_owned());
        }
        let run = self.run.ok_or("there are no events")?;
        let mut builder = SessionBuilder::new(run, Content::Whole);
        for (_, event) in self.events.iter().filter(|(seq, _)| *seq < turn.seqs.0) {
            builder.push(event);
        }
        let family = Family::new([(run, Run::of(builder.finish(), &mut NoRecords))].into());
        let trajectory = family.trajectory(run, &mut NoMedia).ok_or("nothing was said or done before")?;
        let findings = validate(&trajectory.json, &mut NoFiles);
        match findings.iter().find(|finding| finding.severity == Severity::Error) {
            Some(finding) => Err(format!("it would not be a valid trajectory: {finding}")),
            None => Ok(self.without_credentials(trajectory.json)),
        }
    }

    /// Removes user name and password from the repository's address, since a task is passed on.
    fn without_credentials(&self, text: String) -> String {
        let repository = &self.repository;
        match (&repository.url, repository.public_url()) {
            (Some(url), Some(public)) if *url != public => text.replace(url.as_str(), &public),
            _ => text,
        }
    }
}
