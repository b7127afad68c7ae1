//! Images of a prompt: read, checked against the limits of the contract, encoded.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use seekclaw_protocol::limits::{MAX_IMAGE_BYTES, MAX_IMAGES, MAX_IMAGES_TOTAL_BYTES};
use serde_json::{Value, json};

use crate::status::Failure;

/// The images at `paths` as the `images` parameter.
pub(super) fn load(paths: &[PathBuf]) -> Result<Vec<Value>, Failure> {
    if paths.len() > MAX_IMAGES {
        return Err(Failure::usage(format!("cannot send {} images: a turn takes {MAX_IMAGES}", paths.len())));
    }
    let mut total = 0;
    let mut images = Vec::with_capacity(paths.len());
    for path in paths {
        let bytes = read(path)?;
        total += bytes.len();
        if total > MAX_IMAGES_TOTAL_BYTES {
            return Err(Failure::usage(format!(
                "cannot send the images: together they exceed {}",
                mib(MAX_IMAGES_TOTAL_BYTES)
            )));
        }
        let media_type = media_type(&bytes).ok_or_else(|| {
            refuse(path, "it is no PNG, JPEG, WebP or GIF").next("convert it to one of these first")
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        images.push(json!({"name": name, "mediaType": media_type, "data": STANDARD.encode(&bytes)}));
    }
    Ok(images)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let opened =
        File::open(path).and_then(|file| file.take(MAX_IMAGE_BYTES as u64 + 1).read_to_end(&mut bytes));
    opened.map_err(|error| refuse(path, &error.to_string()))?;
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(refuse(path, &format!("it exceeds {}", mib(MAX_IMAGE_BYTES))));
    }
    Ok(bytes)
}

fn refuse(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("cannot send image {}: {why}", path.display()))
}

fn mib(bytes: usize) -> String {
    format!("{} MiB", bytes / (1024 * 1024))
}

/// What the first bytes say; the name of a file may lie.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    match bytes {
        _ if webp => Some("image/webp"),
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_decide_what_an_image_is() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(media_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"%PDF-1.7"), None);
        assert_eq!(media_type(b""), None);
    }

    #[test]
    fn images_are_sent_with_name_type_and_data() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("shot.bin");
        std::fs::write(&path, b"GIF89a").unwrap();
        let images = load(&[path]).unwrap();
        assert_eq!(images, [json!({"name": "shot.bin", "mediaType": "image/gif", "data": "R0lGODlh"})]);
    }

    #[test]
    fn what_the_daemon_would_refuse_is_refused_before() {
        let temp = tempfile::tempdir().unwrap();
        let big = temp.path().join("big.gif");
        File::create(&big).unwrap().set_len(MAX_IMAGE_BYTES as u64 + 1).unwrap();
        assert!(load(&[big]).unwrap_err().to_string().contains("exceeds 10 MiB"));
        assert!(load(&[temp.path().join("absent.png")]).is_err());
        let many = vec![temp.path().join("x"); MAX_IMAGES + 1];
        assert!(load(&many).unwrap_err().to_string().contains("a turn takes 10"));
    }
}
