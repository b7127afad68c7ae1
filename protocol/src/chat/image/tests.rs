use base64::engine::general_purpose::STANDARD as PLAIN;
use serde_json::json;

use super::*;

fn images(value: Value) -> Result<Vec<Image>, WireError> {
    read(&Params::of(json!({ "images": value })))
}

fn text_of(value: Value) -> String {
    images(value).unwrap_err().message
}

fn png(data: &str) -> Value {
    json!({"name": "a.png", "mediaType": "image/png", "data": data})
}

fn one(value: Value) -> Image {
    images(json!([value])).unwrap().remove(0)
}

#[test]
fn each_broken_rule_has_the_text_of_the_contract() {
    assert_eq!(text_of(json!({})), "params.images must be an array");
    assert_eq!(text_of(json!(vec![1; 11])), "A turn supports at most 10 images");
    assert_eq!(text_of(json!([null])), "Each params.images item must be an object");
    assert_eq!(text_of(json!([{"name": " ", "data": "AA=="}])), "Each image requires name and base64 data");
    assert_eq!(text_of(json!([{"name": "a"}])), "Each image requires name and base64 data");
    let svg = json!([{"name": "a.svg", "mediaType": " image/SVG+xml", "data": "AA=="}]);
    assert_eq!(text_of(svg), "Unsupported image type for a.svg: image/svg+xml");
    assert_eq!(text_of(json!([{"name": "a", "data": "AA=="}])), "Unsupported image type for a: unknown");
    for broken in ["A", "AA=", "AA", "A*==", "data:image/png;base64,AA=="] {
        assert_eq!(text_of(json!([png(broken)])), "Image a.png contains invalid base64 data", "{broken}");
    }
}

#[test]
fn null_and_absent_are_no_images() {
    assert!(images(Value::Null).unwrap().is_empty());
    assert!(read(&Params::default()).unwrap().is_empty());
}

#[test]
fn ten_mib_are_allowed_and_one_byte_more_is_not() {
    let largest = PLAIN.encode(vec![7; MAX_IMAGE_BYTES]);
    assert_eq!(one(png(&largest)).bytes.len(), MAX_IMAGE_BYTES);
    let larger = PLAIN.encode(vec![7; MAX_IMAGE_BYTES + 1]);
    assert_eq!(text_of(json!([png(&larger)])), "Image a.png exceeds the 10 MB limit");
    let huge_and_no_base64 = "*".repeat(MAX_IMAGE_TEXT + 1);
    assert_eq!(text_of(json!([png(&huge_and_no_base64)])), "Image a.png exceeds the 10 MB limit");
}

#[test]
fn forty_mib_in_all_are_allowed_and_one_byte_more_is_not() {
    let mut items = vec![png(&PLAIN.encode(vec![7; MAX_IMAGE_BYTES])); 4];
    assert_eq!(images(json!(items)).unwrap().len(), 4);
    items.push(png("AA=="));
    assert_eq!(text_of(json!(items)), "Images exceed the 40 MB total limit");
}

#[test]
fn white_space_within_base64_and_spare_bits_are_ignored() {
    assert_eq!(one(png(" AAEC\r\n AwQ= ")).bytes, [0, 1, 2, 3, 4]);
    assert_eq!(one(png("AB==")).bytes, [0]);
}

#[test]
fn a_name_is_one_bounded_segment_without_control_characters() {
    for (given, stored) in [
        ("C:\\x\\pic.png", "pic.png"),
        ("../../etc/pic.png", "pic.png"),
        ("a\u{7}b\n.png", "ab.png"),
        ("dir/", "image"),
        ("\u{1}", "image"),
    ] {
        assert_eq!(stored_name(given), stored);
    }
    assert_eq!(stored_name(&"é".repeat(200)).chars().count(), 180);
}

#[test]
fn an_id_is_cut_and_a_blank_one_is_left_to_the_daemon() {
    let with_id = |id: Value| {
        let mut item = png("AA==");
        item["id"] = id;
        one(item).id
    };
    assert_eq!(with_id(json!("é".repeat(200))).chars().count(), 128);
    assert_eq!(with_id(json!("  ")), "");
    assert_eq!(one(png("AA==")).id, "");
}

#[test]
fn debug_output_holds_no_bytes() {
    assert_eq!(format!("{:?}", one(png("AAEC"))), r#"Image("", "a.png", image/png, 3 bytes)"#);
}
