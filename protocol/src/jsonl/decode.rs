//! One line of bytes to a request (contract 1.2, 1.3, 1.5; rulings 21, 22).

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::{ErrorCode, WireError};
use crate::ids::RequestId;
use crate::method::Method;
use crate::params::Params;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A request whose envelope is sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What every answer to it carries.
    pub id: RequestId,
    /// Name of the method, known or not.
    pub method: String,
    /// Its parameters.
    pub params: Params,
}

/// A line that is no request: what to answer, and under which id.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The id to echo, 0 if it cannot be known.
    pub id: RequestId,
    /// What is wrong.
    pub error: WireError,
}

/// Reads one line, given without its LF; `first` says whether a byte order mark may precede it.
/// A blank line is `None`.
///
/// # Errors
/// What to answer instead of running anything; the connection stays open.
pub fn decode(line: &[u8], first: bool) -> Result<Option<Request>, Refused> {
    let line = if first { line.strip_prefix(BOM).unwrap_or(line) } else { line };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let findings = Findings::default();
    let members = parse(&text, &findings).map_err(|_| Refused { id: 0, error: not_json() })?;
    let id = findings.id.take();
    if let Some(name) = findings.duplicate.take() {
        return Err(Refused { id: id.unwrap_or(0), error: duplicate_key(&name) });
    }
    request(members).map(Some)
}

fn request(mut members: Map<String, Value>) -> Result<Request, Refused> {
    let wrong_types = || Refused { id: 0, error: wrong_envelope() };
    let id = match members.remove("id") {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().ok_or_else(wrong_types)?,
    };
    let method = match members.remove("method") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(name)) => name,
        Some(_) => return Err(wrong_types()),
    };
    let params = match members.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) if Method::from_name(&method).is_some_and(Method::needs_object) => {
            return Err(Refused { id, error: params_not_an_object() });
        }
        Some(_) => Map::new(),
    };
    Ok(Request { id, method, params: Params(params) })
}

fn parse(text: &str, findings: &Findings) -> serde_json::Result<Map<String, Value>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(Envelope(findings))?;
    deserializer.end()?;
    Ok(members)
}

/// What must be known about a line even if it is refused.
#[derive(Default)]
struct Findings {
    /// First integer under `id` in the outer object.
    id: RefCell<Option<RequestId>>,
    /// First key that was there before in its object.
    duplicate: RefCell<Option<String>>,
}

impl Findings {
    /// Called before the value is read, so that the first duplicate of the document is the one named.
    fn note_key(&self, members: &Map<String, Value>, key: &str) {
        if members.contains_key(key) {
            self.duplicate.borrow_mut().get_or_insert_with(|| key.to_owned());
        }
    }
}

/// Reads the outer object.
struct Envelope<'f>(&'f Findings);

impl<'de> Visitor<'de> for Envelope<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.0.note_key(&members, &key);
            let value = access.next_value_seed(Strict(self.0))?;
            if let (Some(id), "id") = (value.as_i64(), key.as_str()) {
                self.0.id.borrow_mut().get_or_insert(id);
            }
            members.insert(key, value);
        }
        Ok(members)
    }
}

/// Builds a value as `serde_json` does, and notes duplicate keys, which `serde_json` lets pass.
#[derive(Clone, Copy)]
struct Strict<'f>(&'f Findings);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.0.note_key(&members, &key);
            let value = access.next_value_seed(self)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

fn not_json() -> WireError {
    WireError::new(ErrorCode::InvalidJson, "Invalid JSON request")
}

fn wrong_envelope() -> WireError {
    WireError::new(ErrorCode::InvalidRequest, "Request id and method have invalid types")
}

fn duplicate_key(name: &str) -> WireError {
    WireError::new(ErrorCode::InvalidRequest, format!("Invalid request: duplicate key {name}"))
}

fn params_not_an_object() -> WireError {
    WireError::new(ErrorCode::InvalidRequest, "Invalid request: params must be an object")
}

#[cfg(test)]
mod tests;
