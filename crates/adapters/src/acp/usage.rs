//! Usage that comes with the end of a turn.

use steno_model::json::{Extra, ObjectWriter, RawJson};

use super::session::Session;
use super::wire::{ModelUsage, Quota, Reply, Usage};
use crate::emit::{Emit, push, string};
use crate::wire::{RawField as _, list};

impl Session {
    /// Writes the usage of a reply, if it has any: of the turn, or of the session so far.
    pub(super) fn use_tokens(&self, reply: &Reply<'_>, emit: &mut Emit<'_>) {
        let quota = reply.meta.and_then(|meta| meta.quota);
        let mut extra = Extra::default();
        if let Some((quota, tokens)) = quota.and_then(|quota| Some((quota, quota.tokens.json()?))) {
            push(&mut extra, "model", only_model(&quota));
            extra.push("usage", tokens);
            extra.push("usage_scope", string("turn"));
        } else if let Some(usage) = reply.usage {
            extra.push("usage", counts(&usage));
            extra.push("usage_scope", string("session"));
        } else {
            return;
        }
        emit.usage(&self.run, &self.run.turns.path(), extra);
    }
}

fn only_model(quota: &Quota<'_>) -> Option<RawJson> {
    let models = list::<ModelUsage<'_>>(quota.models?)?;
    match &models[..] {
        [Some(one)] => one.model.json(),
        _ => None,
    }
}

/// Returns counts by the names that other agents give them. If the total is input and output together, cached tokens are
/// part of the input; otherwise all are separate.
fn counts(usage: &Usage<'_>) -> RawJson {
    let (input, output) = (usage.input.number(), usage.output.number());
    let is_nested =
        usage.total.number() == input.zip(output).and_then(|(input, output)| input.checked_add(output));
    let names = if is_nested {
        ["cached_input_tokens", "cache_write_input_tokens"]
    } else {
        ["cache_read_input_tokens", "cache_creation_input_tokens"]
    };
    RawJson::object(|object| {
        for (name, count) in [
            ("input_tokens", usage.input),
            ("output_tokens", usage.output),
            (names[0], usage.cached_read),
            (names[1], usage.cached_write),
            ("reasoning_output_tokens", usage.thought),
        ] {
            object.optional(name, count.json().as_ref(), ObjectWriter::json);
        }
    })
}
