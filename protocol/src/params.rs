//! Reading `params`: typed getters that answer with the contract's texts (1.5, ruling 21).

use std::fmt;

use serde_json::{Map, Value};

use crate::error::{ErrorCode, WireError};

/// The `params` object of one request.
#[derive(Clone, Default, PartialEq)]
pub struct Params(pub Map<String, Value>);

// Values may hold keys and whole images: neither belongs in a log.
impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What a request does to one stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Leaves it as it is.
    #[default]
    Keep,
    /// Removes it.
    Clear,
    /// Replaces it.
    Set(T),
}

impl<T> Change<T> {
    /// The value after the change.
    #[must_use]
    pub fn apply(self, present: Option<T>) -> Option<T> {
        match self {
            Self::Keep => present,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// What a method takes, read from `params`; one impl per params type, in its domain's file.
pub trait FromParams: Sized {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// The first rule that is broken, in the order of the contract.
    fn from_params(params: &Params) -> Result<Self, WireError>;
}

/// For methods without parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoParams;

impl FromParams for NoParams {
    fn from_params(_: &Params) -> Result<Self, WireError> {
        Ok(Self)
    }
}

impl Params {
    /// The value under `name`; `null` counts as absent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Whether `name` is there at all, `null` included.
    #[must_use]
    pub fn is_present(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A string that may be absent.
    ///
    /// # Errors
    /// `Invalid request: params.<name> must be a string`.
    pub fn str(&self, name: &str) -> Result<Option<&str>, WireError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong_type(name, "a string")),
        }
    }

    /// A string that must be there and not blank; trimmed.
    ///
    /// # Errors
    /// `params.<name> is required`, or the type error of [`Params::str`].
    pub fn required_str(&self, name: &str) -> Result<&str, WireError> {
        self.str(name)?.map(str::trim).filter(|text| !text.is_empty()).ok_or_else(|| required(name))
    }

    /// A string that counts only if it is not blank; trimmed.
    ///
    /// # Errors
    /// The type error of [`Params::str`].
    pub fn filled_str(&self, name: &str) -> Result<Option<String>, WireError> {
        Ok(self.str(name)?.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned))
    }

    /// A string that is removed by a present blank or `null`; trimmed.
    ///
    /// # Errors
    /// The type error of [`Params::str`].
    pub fn change_str(&self, name: &str) -> Result<Change<String>, WireError> {
        if !self.is_present(name) {
            return Ok(Change::Keep);
        }
        Ok(self.filled_str(name)?.map_or(Change::Clear, Change::Set))
    }

    /// A list of strings that may be absent.
    ///
    /// # Errors
    /// `Invalid request: params.<name> must be an array of strings`.
    pub fn strings(&self, name: &str) -> Result<Option<Vec<String>>, WireError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let items = value.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        items.map(Some).ok_or_else(|| wrong_type(name, "an array of strings"))
    }

    /// A boolean that may be absent.
    ///
    /// # Errors
    /// `Invalid request: params.<name> must be a boolean`.
    pub fn bool(&self, name: &str) -> Result<Option<bool>, WireError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(wrong_type(name, "a boolean")),
        }
    }

    /// An integer that may be absent.
    ///
    /// # Errors
    /// `Invalid request: params.<name> must be an integer`.
    pub fn int(&self, name: &str) -> Result<Option<i64>, WireError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong_type(name, "an integer")),
        }
    }
}

/// `params.<name> is required`.
#[must_use]
pub fn required(name: &str) -> WireError {
    WireError::new(ErrorCode::InvalidParams, format!("params.{name} is required"))
}

/// `Invalid request: params.<name> must be <kind>`.
#[must_use]
pub fn wrong_type(name: &str, kind: &str) -> WireError {
    WireError::new(ErrorCode::InvalidRequest, format!("Invalid request: params.{name} must be {kind}"))
}

#[cfg(test)]
impl Params {
    /// The parameters of a test, written as JSON.
    pub(crate) fn of(value: Value) -> Self {
        Self(serde_json::from_value(value).unwrap())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_getter_names_the_parameter_and_the_kind_it_wants() {
        let wrong = Params::of(json!({"s": 1, "b": "true", "i": 1.5, "l": [1]}));
        assert_eq!(wrong.str("s").unwrap_err().message, "Invalid request: params.s must be a string");
        assert_eq!(wrong.bool("b").unwrap_err().message, "Invalid request: params.b must be a boolean");
        assert_eq!(wrong.int("i").unwrap_err().message, "Invalid request: params.i must be an integer");
        assert_eq!(
            wrong.strings("l").unwrap_err().message,
            "Invalid request: params.l must be an array of strings"
        );
        assert_eq!(wrong.str("s").unwrap_err().code, ErrorCode::InvalidRequest);
    }

    #[test]
    fn a_required_string_is_trimmed_and_blank_counts_as_missing() {
        let given = Params::of(json!({"a": "  x ", "b": " \t", "c": null}));
        assert_eq!(given.required_str("a").unwrap(), "x");
        for name in ["b", "c", "d"] {
            let error = given.required_str(name).unwrap_err();
            assert_eq!(error.message, format!("params.{name} is required"));
            assert_eq!(error.code, ErrorCode::InvalidParams);
        }
    }

    #[test]
    fn a_present_blank_or_null_clears_and_an_absent_value_keeps() {
        let given = Params::of(json!({"blank": " ", "null": null, "text": " t "}));
        assert_eq!(given.change_str("blank").unwrap(), Change::Clear);
        assert_eq!(given.change_str("null").unwrap(), Change::Clear);
        assert_eq!(given.change_str("absent").unwrap(), Change::Keep);
        assert_eq!(given.change_str("text").unwrap().apply(None), Some("t".to_owned()));
    }

    #[test]
    fn debug_output_shows_names_and_no_values() {
        let shown = format!("{:?}", Params::of(json!({"apiKey": "sk-secret"})));
        assert_eq!(shown, r#"{"apiKey"}"#);
    }
}
