//! Markdown as nodes: each kind of block, text that is never lost, and hostile input.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(text: &str, want: &serde_json::Value) {
    let mut found = serde_json::to_value(markdown(text)).unwrap();
    drop_false(&mut found);
    assert_eq!(&found, want, "{text}");
}

/// Removes the switches that are off, so that cases are short.
fn drop_false(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.retain(|name, value| name == "is_done" || *value != json!(false));
            fields.values_mut().for_each(drop_false);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(drop_false),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}

#[test]
fn paragraphs_have_flat_inlines() {
    check(
        "A **b *c*** `d` ~~e~~\nnext  \nline.",
        &json!([{"block": "paragraph", "inlines": [
            {"text": "A "}, {"text": "b ", "strong": true}, {"text": "c", "strong": true, "emphasis": true},
            {"text": " "}, {"text": "d", "code": true}, {"text": " "}, {"text": "e", "struck": true},
            {"text": " next\nline."},
        ]}]),
    );
}

#[test]
fn headings_code_quotes_and_rules_are_blocks() {
    check(
        "## Two\n\n```rust\nlet a;\n\n```\n\n> said\n\n---\n",
        &json!([
            {"block": "heading", "level": 2, "inlines": [{"text": "Two"}]},
            {"block": "code", "language": "rust", "text": "let a;\n"},
            {"block": "quote", "blocks": [{"block": "paragraph", "inlines": [{"text": "said"}]}]},
            {"block": "rule"},
        ]),
    );
}

#[test]
fn lists_have_numbers_and_tasks() {
    let item = |is_done: serde_json::Value, text: &str| json!({"is_done": is_done, "blocks": [{"block": "paragraph", "inlines": [{"text": text}]}]});
    check(
        "3. a\n4. b\n\n* [x] c\n* [ ] d\n",
        &json!([
            {"block": "list", "start": 3, "items": [item(json!(null), "a"), item(json!(null), "b")]},
            {"block": "list", "start": null, "items": [item(json!(true), "c"), item(json!(false), "d")]},
        ]),
    );
}

#[test]
fn tables_have_cells() {
    check(
        "| a | b |\n|:--|--:|\n| `x\\|y` | 2 |\n",
        &json!([{"block": "table", "alignments": ["left", "right"],
            "head": [[{"text": "a"}], [{"text": "b"}]],
            "rows": [[[{"text": "x|y", "code": true}], [{"text": "2"}]]],
        }]),
    );
    // Markdown would drop the third cell.
    check(
        "|a|b|\n|-|-|\n|c|d|e|\n",
        &json!([{"block": "code", "language": null, "text": "|a|b|\n|-|-|\n|c|d|e|"}]),
    );
}

#[test]
fn links_have_their_address() {
    check(
        "[words](http://x \"t\") ![](p.png)\n\n[note]: /hidden\n",
        &json!([
            {"block": "paragraph", "inlines": [
                {"text": "words", "link": "http://x"}, {"text": " (t) "}, {"text": "p.png", "link": "p.png"}]},
            {"block": "paragraph", "inlines": [{"text": "[note]: /hidden"}]},
        ]),
    );
}

#[test]
fn html_is_text() {
    check("<div>x</div>\n", &json!([{"block": "code", "language": null, "text": "<div>x</div>"}]));
    check("a <b>c</b>", &json!([{"block": "paragraph", "inlines": [{"text": "a <b>c</b>"}]}]));
}

/// Returns all text of nodes.
fn words(blocks: &[MarkdownBlock], out: &mut String) {
    let push = |inlines: &[Inline], out: &mut String| {
        for inline in inlines {
            out.push_str(&inline.text);
            out.push_str(inline.link.as_deref().unwrap_or_default());
        }
        out.push('\n');
    };
    for block in blocks {
        match block {
            MarkdownBlock::Paragraph { inlines } | MarkdownBlock::Heading { inlines, .. } => {
                push(inlines, out);
            }
            MarkdownBlock::Code { language, text } => {
                out.push_str(language.as_deref().unwrap_or_default());
                out.push_str(text);
            }
            MarkdownBlock::Quote { blocks } => words(blocks, out),
            MarkdownBlock::List { items, .. } => items.iter().for_each(|item| words(&item.blocks, out)),
            MarkdownBlock::Table { head, rows, .. } => {
                head.iter().chain(rows.iter().flatten()).for_each(|cell| push(cell, out));
            }
            MarkdownBlock::Rule => {}
        }
    }
}

fn depth(blocks: &[MarkdownBlock]) -> usize {
    let inner = |block: &MarkdownBlock| match block {
        MarkdownBlock::Quote { blocks } => depth(blocks),
        MarkdownBlock::List { items, .. } => items.iter().map(|item| depth(&item.blocks)).max().unwrap_or(0),
        MarkdownBlock::Paragraph { .. }
        | MarkdownBlock::Heading { .. }
        | MarkdownBlock::Code { .. }
        | MarkdownBlock::Table { .. }
        | MarkdownBlock::Rule => 0,
    };
    1 + blocks.iter().map(inner).max().unwrap_or(0)
}

#[test]
fn deep_nesting_is_limited_and_keeps_the_text() {
    for text in [
        format!("{}deep", "> ".repeat(50_000)),
        (0..400).map(|level| "  ".repeat(level) + "- item").collect::<Vec<_>>().join("\n") + " deep",
        format!("{}deep{}", "*a ".repeat(20_000), "*".repeat(20_000)),
        format!("{}deep", "[".repeat(50_000)),
    ] {
        let blocks = markdown(&text);
        assert!(depth(&blocks) <= DEPTH_MAX + 1);
        let mut found = String::new();
        words(&blocks, &mut found);
        assert!(found.contains("deep"), "{}", &text[..20]);
    }
}

#[test]
fn long_texts_keep_their_end() {
    let text = format!("{}\nlast words", "word ".repeat(TEXT_BYTES_MAX / 4));
    let mut found = String::new();
    words(&markdown(&text), &mut found);
    assert!(found.trim_end().ends_with("last words"));
}

fn line() -> impl Strategy<Value = String> {
    let word = "[a-z]{2,6}";
    prop_oneof![
        word.prop_map(|word| word),
        (0..4_usize, word).prop_map(|(level, word)| format!("{} {word}", "#".repeat(level))),
        (0..6_usize, word).prop_map(|(level, word)| format!("{}- {word}", " ".repeat(level))),
        (1..40_u8, word).prop_map(|(number, word)| format!("{number}. {word}")),
        (0..4_usize, word).prop_map(|(level, word)| format!("{}{word}", "> ".repeat(level))),
        (word, word).prop_map(|(first, second)| format!("**{first}* _{second}_ `{second}")),
        (word, word, word).prop_map(|(first, second, third)| format!("|{first}|{second}|{third}|")),
        Just("|-|:-:|".to_owned()),
        Just("|---|---|---|".to_owned()),
        (word, word).prop_map(|(first, second)| format!("[{first}]({second}) [{second}]")),
        (word, word).prop_map(|(first, second)| format!("[{first}]: {second}")),
        word.prop_map(|word| format!("```{word}")),
        Just("~~~".to_owned()),
        word.prop_map(|word| format!("<{word}> <!-- {word} -->")),
        Just(String::new()),
        "\\PC{0,20}".prop_map(|text| text),
    ]
}

proptest! {
    #[test]
    fn no_word_is_lost(lines in prop::collection::vec(line(), 0..24)) {
        let text = lines.join("\n");
        let mut found = String::new();
        words(&markdown(&text), &mut found);
        // Names of entities become letters.
        prop_assume!(!text.contains('&'));
        for word in text.split(|c: char| !c.is_ascii_lowercase()).filter(|word| word.len() > 1) {
            prop_assert!(found.contains(word), "{word} is lost from {text:?}: {found:?}");
        }
    }

    #[test]
    fn no_text_panics(text in "[\\x00-\\x7f日\u{1b}*_`#>|\\[\\]()\n -]{0,200}") {
        prop_assert!(depth(&markdown(&text)) <= DEPTH_MAX + 1);
    }
}
