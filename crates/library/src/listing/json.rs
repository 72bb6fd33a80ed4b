//! A listed session as JSON: what `steno ls --json` prints and `/v1/sessions` returns. `docs/lists.md` describes it.

use steno_model::Timestamp;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_session::usage::{Dollars, TokenUsage};
use steno_views::cost::{Cost, Prices};

use super::{ListedSession, Loss};
use crate::usage::unpriced_models;

impl ListedSession {
    /// Returns it as a JSON object. `store_flags` are the flags that name the store in a command, each after a space.
    #[must_use]
    pub fn to_json(&self, prices: &Prices, store_flags: &str) -> RawJson {
        let digest = self.row.as_ref().map(|row| &row.digest);
        let time = |time: Option<&Timestamp>| time.map(ToString::to_string);
        RawJson::object(|object| {
            text(object, "run_id", Some(&self.id.to_string()));
            // A top-level session has neither; runs have the same fields.
            text(object, "parent_run_id", None);
            text(object, "session_run_id", None);
            text(object, "state", Some(self.state.name()));
            object.json("live", &RawJson::from(self.is_live));
            text(object, "provider", digest.and_then(|digest| digest.provider.as_deref()));
            text(object, "version", digest.and_then(|digest| digest.version.as_deref()));
            text(object, "name", digest.and_then(|digest| digest.name.as_deref()));
            text(object, "kind", digest.and_then(|digest| digest.kind.as_deref()));
            let models = digest.map(|digest| digest.models.as_slice()).unwrap_or_default();
            object
                .json("models", &list(models.iter().map(|model| JsonString::from(model.as_str()).to_json())));
            text(object, "title", digest.and_then(|digest| digest.title.as_deref()));
            object.json("own_title", &RawJson::from(digest.is_some_and(|digest| digest.is_own_title)));
            text(object, "project", self.row.as_ref().and_then(|row| row.project.as_deref()));
            text(object, "directory", digest.and_then(|digest| digest.directory.as_deref()));
            text(object, "branch", digest.and_then(|digest| digest.branch.as_deref()));
            text(object, "started_at", time(digest.and_then(|digest| digest.started_at.as_ref())).as_deref());
            text(object, "last_at", time(digest.and_then(|digest| digest.last_at.as_ref())).as_deref());
            counts(object, self);
            usage(object, digest.and_then(|digest| digest.usage));
            cost(object, digest.and_then(|digest| digest.cost(prices)).as_ref());
            let loss = self.loss.as_ref().map(|loss| gone(self, loss, store_flags));
            object.json("gone", &loss.unwrap_or_else(RawJson::null));
            object.json(
                "damage",
                &list(self.damage.iter().map(|(run, why)| {
                    RawJson::object(|object| {
                        text(object, "run_id", Some(&run.to_string()));
                        text(object, "why", Some(why));
                    })
                })),
            );
        })
    }
}

fn counts(object: &mut ObjectWriter<'_>, session: &ListedSession) {
    let row = session.row.as_ref();
    let digest = row.map(|row| &row.digest);
    let mut number = |name: &'static str, number: Option<u64>| object.number(name, number.unwrap_or(0));
    number("prompts", digest.map(|digest| digest.prompts));
    number("responses", digest.map(|digest| digest.responses));
    number("calls", digest.map(|digest| digest.calls));
    number("failures", digest.map(|digest| digest.failures));
    number("denials", digest.map(|digest| digest.denials));
    number("children", row.map(|row| row.children));
    number("runs", digest.map(|digest| digest.runs));
    number("events", row.map(|row| row.events));
    number("bytes", row.map(|row| row.bytes));
    number("runs_below", row.map(|row| row.below.runs));
    number("events_below", row.map(|row| row.below.events));
    number("bytes_below", row.map(|row| row.below.bytes));
}

fn usage(object: &mut ObjectWriter<'_>, usage: Option<TokenUsage>) {
    let tokens = usage.map_or_else(RawJson::null, |usage| {
        RawJson::object(|object| {
            object.number("input", usage.tokens.input);
            object.number("output", usage.tokens.output);
            object.number("cache_read", usage.tokens.cache_read);
            object.number("cache_write", usage.tokens.cache_write);
            object.number("reasoning", usage.tokens.reasoning);
            object.json("exact", &RawJson::from(!usage.is_lower_bound));
        })
    });
    object.json("tokens", &tokens);
}

fn cost(object: &mut ObjectWriter<'_>, cost: Option<&Cost>) {
    let number = |dollars: Dollars| RawJson::parse(&dollars.decimal()).unwrap_or_else(|_| RawJson::null());
    object.json("cost_usd", &cost.and_then(Cost::known).map_or_else(RawJson::null, number));
    object.json("cost_exact", &RawJson::from(cost.is_some_and(|cost| !cost.is_lower_bound)));
    object.json("unpriced_models", &unpriced_models(cost.unwrap_or(&Cost::default())));
}

fn gone(session: &ListedSession, loss: &Loss, store_flags: &str) -> RawJson {
    RawJson::object(|object| {
        text(object, "what", Some(loss.kind.name()));
        text(object, "at", loss.at.as_deref());
        text(object, "path", Some(&loss.path.to_string_lossy()));
        let restore = loss.restore_command(&session.id.to_string(), store_flags);
        text(object, "restore", Some(&restore));
    })
}

fn text(object: &mut ObjectWriter<'_>, name: &'static str, text: Option<&str>) {
    let json = text.map_or_else(RawJson::null, |text| JsonString::from(text).to_json());
    object.json(name, &json);
}

fn list(items: impl Iterator<Item = RawJson>) -> RawJson {
    let items: Vec<String> = items.map(|item| item.as_str().to_owned()).collect();
    RawJson::parse(&format!("[{}]", items.join(","))).unwrap_or_else(|_| RawJson::null())
}
