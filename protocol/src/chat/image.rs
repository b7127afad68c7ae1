//! Images of a prompt or of guidance (contract 2.3.1).

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use crate::error::{ErrorCode, WireError};
use crate::limits::{MAX_IMAGE_BYTES, MAX_IMAGES, MAX_IMAGES_TOTAL_BYTES};
use crate::params::Params;

/// Longest id that is kept, in characters.
const MAX_ID_CHARS: usize = 128;

/// Longest name that is stored, in characters.
const MAX_NAME_CHARS: usize = 180;

/// Base64 of the largest image: four characters for each three bytes begun.
const MAX_IMAGE_TEXT: usize = MAX_IMAGE_BYTES.div_ceil(3) * 4;

/// Bits beyond the last whole byte are ignored, as upstream does.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// An image that a client sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// Id that the client gave; empty means that the daemon makes one of 32 hex digits.
    pub id: String,
    /// Name to store: one path segment.
    pub name: String,
    /// MIME type.
    pub media_type: &'static str,
    /// The decoded bytes.
    pub bytes: Vec<u8>,
}

// The bytes would fill a log.
impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({:?}, {:?}, {}, {} bytes)", self.id, self.name, self.media_type, self.bytes.len())
    }
}

/// Reads `params.images`; absent and `null` are no images.
pub(super) fn read(params: &Params) -> Result<Vec<Image>, WireError> {
    let Some(value) = params.get("images") else { return Ok(Vec::new()) };
    let items = value.as_array().ok_or_else(|| invalid("params.images must be an array"))?;
    if items.len() > MAX_IMAGES {
        return Err(invalid(format!("A turn supports at most {MAX_IMAGES} images")));
    }
    let mut images = Vec::with_capacity(items.len());
    let mut total = 0;
    for item in items {
        let object = item.as_object().ok_or_else(|| invalid("Each params.images item must be an object"))?;
        let image = read_one(object)?;
        total += image.bytes.len();
        if total > MAX_IMAGES_TOTAL_BYTES {
            return Err(invalid("Images exceed the 40 MB total limit"));
        }
        images.push(image);
    }
    Ok(images)
}

fn read_one(object: &Map<String, Value>) -> Result<Image, WireError> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (given_name, data) = (text("name"), text("data"));
    if given_name.trim().is_empty() || data.trim().is_empty() {
        return Err(invalid("Each image requires name and base64 data"));
    }
    let name = stored_name(given_name);
    let media_type = media_type(text("mediaType"), &name)?;
    let bytes = decode(data, &name)?;
    let id = if text("id").trim().is_empty() { "" } else { text("id") };
    Ok(Image { id: id.chars().take(MAX_ID_CHARS).collect(), name, media_type, bytes })
}

/// Last segment of a path with either slash, without control characters, of bounded length.
fn stored_name(given: &str) -> String {
    let segment = given.trim().rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = segment.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect();
    let plain = plain.trim();
    if plain.is_empty() { "image".to_owned() } else { plain.to_owned() }
}

fn media_type(given: &str, name: &str) -> Result<&'static str, WireError> {
    let given = given.trim().to_lowercase();
    let known = ["image/png", "image/jpeg", "image/webp", "image/gif"];
    known.into_iter().find(|known| *known == given).ok_or_else(|| {
        let shown = if given.is_empty() { "unknown" } else { &given };
        invalid(format!("Unsupported image type for {name}: {shown}"))
    })
}

fn decode(data: &str, name: &str) -> Result<Vec<u8>, WireError> {
    let text = without_white_space(data);
    // Before decoding, so that a huge text costs nothing.
    if text.len() > MAX_IMAGE_TEXT {
        return Err(too_large(name));
    }
    let decoded = BASE64.decode(text.as_bytes());
    let bytes = decoded.map_err(|_| invalid(format!("Image {name} contains invalid base64 data")))?;
    if bytes.len() > MAX_IMAGE_BYTES { Err(too_large(name)) } else { Ok(bytes) }
}

fn without_white_space(text: &str) -> Cow<'_, str> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    if text.contains(is_space) {
        return Cow::Owned(text.chars().filter(|c| !is_space(*c)).collect());
    }
    Cow::Borrowed(text)
}

fn too_large(name: &str) -> WireError {
    invalid(format!("Image {name} exceeds the 10 MB limit"))
}

fn invalid(text: impl Into<String>) -> WireError {
    WireError::new(ErrorCode::InvalidParams, text)
}

#[cfg(test)]
mod tests;
