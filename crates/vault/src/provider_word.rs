//! A provider's name as JSON. The lines that have it are flattened, where a [`Word`] cannot read itself as raw JSON.

use serde::{Deserialize as _, Deserializer, Serializer};
use steno_model::{Provider, Word};

#[expect(clippy::ref_option, reason = "serde passes it like this")]
pub(crate) fn serialize<S: Serializer>(word: &Option<Word<Provider>>, to: S) -> Result<S::Ok, S::Error> {
    match word {
        Some(word) => to.collect_str(word),
        None => to.serialize_none(),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Word<Provider>>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(|text| Word::read(text.into())))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Line {
        #[serde(flatten)]
        info: Info,
    }

    #[derive(Serialize, Deserialize)]
    struct Info {
        #[serde(with = "super", skip_serializing_if = "Option::is_none", default)]
        provider: Option<Word<Provider>>,
    }

    #[track_caller]
    fn check(text: &str, want: Option<&Word<Provider>>) {
        let line: Line = serde_json::from_str(text).unwrap();
        assert_eq!(line.info.provider.as_ref(), want);
        assert_eq!(serde_json::to_string(&line).unwrap(), text);
    }

    #[test]
    fn name_survives_whether_it_is_known_or_not() {
        check(r#"{"provider":"codex"}"#, Some(&Word::Known(Provider::Codex)));
        check(r#"{"provider":"a \"new\" one é"}"#, Some(&Word::Unknown("a \"new\" one é".into())));
        check(r#"{"provider":""}"#, Some(&Word::Unknown("".into())));
        check("{}", None);
        assert!(serde_json::from_str::<Line>(r#"{"provider":7}"#).is_err());
    }
}
