//! From text to a typed configuration: JSON with comments and trailing commas, nothing looser, and an
//! error that says where. Values never enter an error text: they may be keys.

use std::fmt;
use std::path::PathBuf;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A configuration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidConfig {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The key that has a wrong value, such as `providers[0].baseUrl`; `None` if the text is no JSON.
    pub key: Option<String>,
    /// What is wrong, without any value of the file.
    pub reason: String,
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, key, reason } = self;
        write!(f, "Invalid config: {}: line {line}, column {column}", file.display())?;
        key.as_ref().map_or(Ok(()), |key| write!(f, ": {key}: {reason}"))
    }
}

impl std::error::Error for InvalidConfig {}

/// What is wrong and where, before it is known in which file.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) key: Option<String>,
    pub(super) reason: String,
}

impl Fault {
    fn at(text: &str, offset: usize, key: Option<String>, reason: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            key,
            reason: reason.into(),
        }
    }

    pub(super) fn in_file(self, file: PathBuf) -> InvalidConfig {
        let Self { line, column, key, reason } = self;
        InvalidConfig { file, line, column, key, reason }
    }
}

/// Comments and trailing commas are the whole of the leniency (contract 6.9).
pub(super) fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The text of a file, if it is text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let valid = String::from_utf8_lossy(valid);
        Fault::at(&valid, valid.len(), None, "not UTF-8")
    })
}

/// The document, untyped. Its root is an object and no key comes twice.
pub(super) fn document(text: &str) -> Result<Value, Fault> {
    let tree = tree(text)?;
    unique_keys(text, &tree)?;
    if tree.as_object().is_none() {
        return Err(Fault::at(text, tree.range().start, None, "not an object"));
    }
    Ok(tree.into())
}

fn tree(text: &str) -> Result<ast::Value<'_>, Fault> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options()).map_err(|error| Fault {
        line: error.line_display(),
        column: error.column_display(),
        key: None,
        reason: error.kind().to_string(),
    })?;
    parsed.value.ok_or_else(|| Fault::at(text, text.len(), None, "no value"))
}

/// Which of two equal keys counts differs between programs, so neither does.
fn unique_keys(text: &str, tree: &ast::Value<'_>) -> Result<(), Fault> {
    match tree {
        ast::Value::Object(object) => {
            let mut seen = std::collections::HashSet::new();
            object.properties.iter().try_for_each(|property| {
                if !seen.insert(property.name.as_str()) {
                    return Err(Fault::at(text, property.range().start, None, "duplicate key"));
                }
                unique_keys(text, &property.value)
            })
        }
        ast::Value::Array(array) => array.elements.iter().try_for_each(|item| unique_keys(text, item)),
        ast::Value::StringLit(_)
        | ast::Value::NumberLit(_)
        | ast::Value::BooleanLit(_)
        | ast::Value::NullKeyword(_) => Ok(()),
    }
}

/// The typed form of a document that came from `text`.
pub(super) fn typed<T: DeserializeOwned>(text: &str, document: &Value) -> Result<T, Fault> {
    let document = without_nulls(document.clone());
    serde_json::from_value(document.clone()).map_err(|error| {
        let mut steps = Vec::new();
        let (value, reason) =
            culprit::<T>(&document, &mut steps).unwrap_or_else(|| (&document, error.to_string()));
        let reason = describe(&reason, value);
        let offset = tree(text).map_or(0, |tree| offset_of(&tree, &steps));
        Fault::at(text, offset, Some(name(&steps)), reason)
    })
}

/// A null stands for a missing value (contract 6.9).
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, member)| !member.is_null())
                .map(|(key, member)| (key, without_nulls(member)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

enum Step {
    Key(String),
    Item(usize),
}

/// The innermost value that alone, at its place, is refused: serde does not say where it was.
fn culprit<'a, T: DeserializeOwned>(value: &'a Value, steps: &mut Vec<Step>) -> Option<(&'a Value, String)> {
    let refusal = serde_json::from_value::<T>(only(steps, value)).err()?.to_string();
    let children: Vec<(Step, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, v)| (Step::Key(key.clone()), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, v)| (Step::Item(at), v)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (step, child) in children {
        steps.push(step);
        if let Some(found) = culprit::<T>(child, steps) {
            return Some(found);
        }
        steps.pop();
    }
    Some((value, refusal))
}

/// A document with nothing in it but `value` at its place.
fn only(steps: &[Step], value: &Value) -> Value {
    steps.iter().rev().fold(value.clone(), |inner, step| match step {
        Step::Key(key) => Value::Object(Map::from_iter([(key.clone(), inner)])),
        Step::Item(_) => Value::Array(vec![inner]),
    })
}

fn name(steps: &[Step]) -> String {
    let mut name = String::new();
    for step in steps {
        match step {
            Step::Key(key) if name.is_empty() => name.push_str(key),
            Step::Key(key) => name.extend([".", key]),
            Step::Item(at) => name.push_str(&format!("[{at}]")),
        }
    }
    name
}

fn offset_of(tree: &ast::Value<'_>, steps: &[Step]) -> usize {
    let Some((step, rest)) = steps.split_first() else { return tree.range().start };
    let child = match (tree, step) {
        (ast::Value::Object(object), Step::Key(key)) => object.get(key).map(|property| &property.value),
        (ast::Value::Array(array), Step::Item(at)) => array.elements.get(*at),
        _ => None,
    };
    child.map_or(tree.range().start, |child| offset_of(child, rest))
}

/// serde quotes the value that it refuses; what it expected is all that may be repeated.
fn describe(refusal: &str, value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    match (refusal.rsplit_once("expected "), value) {
        (Some((_, expected)), _) => format!("expected {}, found {kind}", in_json(expected)),
        (None, Value::Number(_)) => refusal.to_owned(),
        (None, _) => format!("{kind} that is not accepted"),
    }
}

/// What serde expects, in the words of the file's format.
fn in_json(expected: &str) -> &str {
    match expected {
        "f64" => "a number",
        "a map" => "an object",
        "a sequence" => "an array",
        name if name.starts_with("struct ") => "an object",
        other => other,
    }
}
