//! Arguments of a call as models really write them: read if they can be, and always valid JSON when
//! they go back to a model (contract 5.3, ruling 16).

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Key under which arguments that cannot be read go back to the model.
const UNREADABLE: &str = "unreadable_arguments";

/// The arguments of a completed call. Valid ones are taken as they are, empty ones and `null` mean none,
/// damaged ones are repaired where only one reading is possible.
///
/// # Errors
/// The text for the model, which asks for valid JSON.
pub fn parse(text: &str) -> Result<Map<String, Value>, String> {
    read(text).map(|(arguments, _)| arguments).map_err(|problem| {
        format!("The arguments of this call could not be read: {problem}. Send the call again with one complete, valid JSON object.")
    })
}

/// The same arguments as text that any provider takes as a JSON object; valid text is unchanged, and what
/// cannot be repaired is quoted. A server that parses its own history would refuse anything else for ever.
#[must_use]
pub fn as_valid_json(text: &str) -> Cow<'_, str> {
    if is_object(text) {
        return Cow::Borrowed(text);
    }
    match read(text) {
        Ok((_, json)) => json,
        Err(_) => {
            Value::Object(Map::from_iter([(UNREADABLE.to_owned(), Value::from(text))])).to_string().into()
        }
    }
}

/// Whether a text is a whole JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

type Reading<'a> = (Map<String, Value>, Cow<'a, str>);

fn read(text: &str) -> Result<Reading<'_>, String> {
    if text.trim().is_empty() {
        return Ok((Map::new(), Cow::Borrowed("{}")));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok((arguments, Cow::Borrowed(text))),
        Ok(Value::Null) => Ok((Map::new(), Cow::Borrowed("{}"))),
        Ok(Value::String(inner)) => unquoted(&inner),
        Ok(Value::Array(_)) => Err("they are an array, not an object".to_owned()),
        Ok(Value::Bool(_) | Value::Number(_)) => Err("they are a single value, not an object".to_owned()),
        Err(error) => repaired(text).ok_or_else(|| error.to_string()),
    }
}

/// Some models quote the whole object once more.
fn unquoted<'a>(inner: &str) -> Result<Reading<'a>, String> {
    if inner.trim().is_empty() {
        return Ok((Map::new(), Cow::Borrowed("{}")));
    }
    match serde_json::from_str(inner) {
        Ok(arguments) => Ok((arguments, Cow::Owned(inner.to_owned()))),
        Err(_) => Err("they are a string, not an object".to_owned()),
    }
}

fn repaired<'a>(text: &str) -> Option<Reading<'a>> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let text = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).unwrap_or(text).trim_start();
    if !text.starts_with('{') {
        return None;
    }
    let object = balanced(text);
    serde_json::from_str(&object).ok().map(|arguments| (arguments, Cow::Owned(object)))
}

/// The object that `text` starts with: cut off where it ends, or closed where the text ends inside of it.
/// Bare control characters in strings, which JSON forbids and models write, are escaped.
fn balanced(text: &str) -> String {
    let mut object = String::with_capacity(text.len() + 8);
    let mut closers = Vec::new();
    let (mut quoted, mut escaped) = (false, false);
    for character in text.chars() {
        if quoted && !escaped && character < ' ' {
            object.push_str(&format!("\\u{:04x}", u32::from(character)));
            continue;
        }
        object.push(character);
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' => closers.push('}'),
            '[' => closers.push(']'),
            '}' | ']' => drop(closers.pop()),
            _ => {}
        }
        if closers.is_empty() {
            return object;
        }
    }
    if escaped {
        object.pop();
    }
    if quoted {
        object.push('"');
    }
    object.extend(closers.iter().rev());
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Value {
        Value::Object(parse(text).unwrap())
    }

    #[test]
    fn valid_arguments_are_untouched() {
        let text = "{ \"b\": 1, \"a\": \"} junk {\" }";
        assert_eq!(parsed(text), json!({"a": "} junk {", "b": 1}));
        assert_eq!(as_valid_json(text), text);
    }

    #[test]
    fn nothing_and_null_are_no_arguments() {
        for text in ["", "  \n", "null", "\"\"", "{}"] {
            assert_eq!(parsed(text), json!({}), "{text:?}");
            assert_eq!(as_valid_json(text), "{}", "{text:?}");
        }
    }

    #[test]
    fn junk_behind_a_balanced_object_is_cut_off() {
        for text in [r#"{"a":{"b":[1]}} done."#, r#"{"a":{"b":[1]}}}"#, "```json\n{\"a\":{\"b\":[1]}}\n```"] {
            assert_eq!(parsed(text), json!({"a": {"b": [1]}}), "{text}");
            assert_eq!(as_valid_json(text), r#"{"a":{"b":[1]}}"#);
        }
    }

    #[test]
    fn a_truncated_object_is_closed() {
        assert_eq!(parsed(r#"{"a":1"#), json!({"a": 1}));
        assert_eq!(parsed(r#"{"a":{"b":[1,2"#), json!({"a": {"b": [1, 2]}}));
        assert_eq!(parsed(r#"{"a":"half a te"#), json!({"a": "half a te"}));
        assert_eq!(parsed(r#"{"a":"ends in a backslash\"#), json!({"a": "ends in a backslash"}));
        assert_eq!(parsed(r#"{"a":"a quoted \" brace }"#), json!({"a": "a quoted \" brace }"}));
    }

    #[test]
    fn bare_line_breaks_in_strings_are_escaped() {
        assert_eq!(parsed("{\"a\":\"one\n\ttwo\"}"), json!({"a": "one\n\ttwo"}));
    }

    #[test]
    fn an_object_that_was_quoted_once_more_is_unquoted() {
        let text = r#""{\"path\":\"a.txt\"}""#;
        assert_eq!(parsed(text), json!({"path": "a.txt"}));
        assert_eq!(as_valid_json(text), r#"{"path":"a.txt"}"#);
    }

    #[test]
    fn hopeless_arguments_are_refused_and_go_back_quoted() {
        for text in
            ["path: a.txt", "[1]", "7", "true", "\"text\"", r#"{"a":"#, r#"{"a" 1}"#, "{]", "[{\"a\":1}"]
        {
            let refusal = parse(text).unwrap_err();
            assert!(refusal.contains("valid JSON object"), "{text}: {refusal}");
            let sent: Value = serde_json::from_str(&as_valid_json(text)).unwrap();
            assert_eq!(sent, json!({ "unreadable_arguments": text }));
        }
    }

    #[test]
    fn every_prefix_of_a_call_goes_back_as_a_json_object() {
        let text =
            r#"{"path":"ünï/🦀.txt","nested":{"list":["a\"b",null,-1.5e3,true]},"tail":"\u00e9\\"} and junk"#;
        for (at, _) in text.char_indices() {
            let prefix = text.get(..at).unwrap();
            let sent: Value = serde_json::from_str(&as_valid_json(prefix)).unwrap();
            assert!(sent.is_object(), "{prefix}");
        }
    }
}
