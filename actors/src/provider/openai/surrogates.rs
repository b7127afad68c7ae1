//! Servers that cut texts by UTF-16 units send half characters as escapes, which no JSON parser for
//! UTF-8 takes. One spoilt character is better than a lost answer.

/// The text with every half character replaced by U+FFFD, or nothing if it holds none.
pub(super) fn mended(json: &str) -> Option<String> {
    let (mut mended, mut rest, mut changed) = (String::with_capacity(json.len()), json, false);
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        mended.push_str(plain);
        let (kept, length) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (escape.get(..12), 12),
            (Some(0xD800..=0xDFFF), _) => (None, 6),
            (Some(_), _) => (escape.get(..6), 6),
            (None, _) => (escape.get(..2), 2),
        };
        changed |= kept.is_none();
        mended.push_str(kept.unwrap_or("\\ufffd"));
        rest = escape.get(length..).unwrap_or_default();
    }
    mended.push_str(rest);
    changed.then_some(mended)
}

/// The UTF-16 unit that a text begins with as an escape.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_characters_are_replaced_and_whole_ones_kept() {
        for (sent, expected) in [
            (r#""a\ud83d""#, Some("a\u{fffd}")),
            (r#""\ude00b""#, Some("\u{fffd}b")),
            (r#""\ud83d\ud83d\ude00\n""#, Some("\u{fffd}😀\n")),
            (r#""\\ud83d ü \u00fc""#, None),
            (r#""\ud83d\ude00""#, None),
        ] {
            let text = mended(sent).map(|json| serde_json::from_str::<String>(&json).unwrap());
            assert_eq!(text.as_deref(), expected, "{sent}");
        }
        assert_eq!(mended("\"cut \\"), Some("\"cut \\ufffd".to_owned()), "a damaged frame stays damaged");
    }
}
