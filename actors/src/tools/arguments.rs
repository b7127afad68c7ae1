//! Reads the arguments of a call. A wrong one is the model's mistake: its report says what was expected.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::ToolReport;

/// Arguments of a call, by name.
pub(crate) type Arguments = Map<String, Value>;

/// An argument is missing or of the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArgumentError {
    /// It is required and absent.
    #[error("argument `{0}` is missing")]
    Missing(&'static str),
    /// It is of another type.
    #[error("argument `{name}` must be {expected}")]
    WrongType {
        /// The argument.
        name: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
}

impl ArgumentError {
    /// The failed result of the call (contract 5.3).
    pub(crate) fn report(self, tool: &str) -> ToolReport {
        ToolReport::failed(format!("{tool} crashed: {self}"))
    }
}

/// The text of `name`, `None` if it is absent or null.
pub(crate) fn text<'a>(
    arguments: &'a Arguments,
    name: &'static str,
) -> Result<Option<&'a str>, ArgumentError> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ArgumentError::WrongType { name, expected: "a string" }),
    }
}

/// The text of `name`, which has to be there.
pub(crate) fn required_text<'a>(
    arguments: &'a Arguments,
    name: &'static str,
) -> Result<&'a str, ArgumentError> {
    text(arguments, name)?.ok_or(ArgumentError::Missing(name))
}

/// The whole number `name`, moved into `range`; `None` if it is absent or null.
pub(crate) fn integer(
    arguments: &Arguments,
    name: &'static str,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, ArgumentError> {
    let wrong = ArgumentError::WrongType { name, expected: "a whole number" };
    let number = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value.as_f64().filter(|n| n.fract() == 0.0).ok_or(wrong)?,
    };
    // Saturates: what is far out of the range ends at its edge.
    let whole = number as u64;
    Ok(Some(whole.clamp(*range.start(), *range.end())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Arguments {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn numbers_are_moved_into_their_range() {
        let arguments = arguments(json!({"low": -3, "high": 1e300, "float": 4.0, "none": null}));
        assert_eq!(integer(&arguments, "low", 1..=6), Ok(Some(1)));
        assert_eq!(integer(&arguments, "high", 1..=6), Ok(Some(6)));
        assert_eq!(integer(&arguments, "float", 1..=6), Ok(Some(4)));
        assert_eq!(integer(&arguments, "none", 1..=6), Ok(None));
    }

    #[test]
    fn wrong_types_name_the_argument() {
        let arguments = arguments(json!({"path": 3, "depth": 1.5, "limit": "7"}));
        let report = text(&arguments, "path").unwrap_err().report("glob");
        assert_eq!(report.text, "glob crashed: argument `path` must be a string");
        assert!(integer(&arguments, "depth", 1..=6).is_err());
        assert!(integer(&arguments, "limit", 1..=6).is_err());
        assert_eq!(required_text(&arguments, "pattern"), Err(ArgumentError::Missing("pattern")));
    }
}
