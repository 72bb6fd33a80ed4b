//! Names of models as agents and providers write them.

/// Returns the names under which a model may have a price, from the name as it was written to the most general one.
///
/// Providers that pass requests on put their names before the model's, and clouds put versions behind it. A dated name also
/// means the model without the date. Nothing else is guessed: another size or speed of a model has another price.
pub(super) fn names_of(model: &str) -> Vec<String> {
    let mut names = vec![model.to_owned()];
    let mut add = |name: &str| {
        if !name.is_empty() && names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
    };
    let lower = model.trim().to_ascii_lowercase();
    add(&lower);
    // `openrouter/anthropic/claude-…`, `models/gemini-…`
    let mut name = lower.rsplit('/').next().unwrap_or_default();
    add(name);
    // Bedrock: `us.anthropic.claude-…-v1:0`
    if let Some((_, model)) = name.split_once("anthropic.") {
        name = without_bedrock_version(model);
        add(name);
    }
    // The window of a million tokens has no other price, except for long requests, which the price list has.
    name = name.strip_suffix("[1m]").unwrap_or(name);
    add(name);
    // Vertex: `claude-…@20251101`. Copilot and OpenRouter: `claude-opus-4.5`
    let mut name = name.replace('@', "-");
    if name.starts_with("claude-") {
        name = name.replace('.', "-");
    }
    add(&name);
    let name = name.strip_suffix("-latest").unwrap_or(&name);
    add(name);
    add(without_date(name));
    names
}

/// Cuts off `-v1:0`.
fn without_bedrock_version(name: &str) -> &str {
    let Some((model, version)) = name.rsplit_once("-v") else { return name };
    let is_version = version.split(':').all(|part| !part.is_empty() && is_digits(part));
    if is_version { model } else { name }
}

/// Cuts off `-20251101` or `-2025-11-01`.
fn without_date(name: &str) -> &str {
    if let Some((model, date)) = name.rsplit_once('-')
        && date.len() == 8
        && date.starts_with("20")
        && is_digits(date)
    {
        return model;
    }
    let parts: Vec<&str> = name.rsplitn(4, '-').collect();
    match parts.as_slice() {
        [day, month, year, model]
            if [day.len(), month.len(), year.len()] == [2, 2, 4]
                && year.starts_with("20")
                && [day, month, year].into_iter().all(|part| is_digits(part)) =>
        {
            model
        }
        _ => name,
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(model: &str, want: &[&str]) {
        assert_eq!(names_of(model), want, "{model}");
    }

    #[test]
    fn prefixes_versions_and_dates_are_cut_off() {
        check("gpt-5.4", &["gpt-5.4"]);
        check("GPT-5.4", &["GPT-5.4", "gpt-5.4"]);
        check("claude-opus-4-5-20251101", &["claude-opus-4-5-20251101", "claude-opus-4-5"]);
        check("gpt-5.4-2026-03-05", &["gpt-5.4-2026-03-05", "gpt-5.4"]);
        check("claude-opus-4-8[1m]", &["claude-opus-4-8[1m]", "claude-opus-4-8"]);
        check("models/gemini-2.5-pro", &["models/gemini-2.5-pro", "gemini-2.5-pro"]);
        check(
            "openrouter/anthropic/claude-opus-4.5",
            &["openrouter/anthropic/claude-opus-4.5", "claude-opus-4.5", "claude-opus-4-5"],
        );
        check(
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            &["us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5-20251101", "claude-opus-4-5"],
        );
        check(
            "claude-opus-4-5@20251101",
            &["claude-opus-4-5@20251101", "claude-opus-4-5-20251101", "claude-opus-4-5"],
        );
        check("claude-sonnet-4-5-latest", &["claude-sonnet-4-5-latest", "claude-sonnet-4-5"]);
    }

    #[test]
    fn other_variants_keep_their_names() {
        for name in ["gpt-5.4-mini", "gpt-5-codex-high", "grok-4:free", "claude-opus-4-8-fast", "-", ""] {
            check(name, &[name]);
        }
    }
}
