use super::*;

fn there_and_back(bytes: &[u8]) -> (Encoding, String) {
    let (encoding, text) = Encoding::decode(bytes);
    assert_eq!(encoding.encode(&text), bytes);
    (encoding, text)
}

#[test]
fn every_encoding_survives_decoding_and_encoding() {
    assert_eq!(there_and_back("aé\r\n".as_bytes()), (Encoding::Utf8, "aé\r\n".to_owned()));
    assert_eq!(there_and_back(b"\xEF\xBB\xBFa\n"), (Encoding::Utf8Bom, "a\n".to_owned()));
    assert_eq!(there_and_back(b"\xFF\xFEa\0\x3D\xD8\x00\xDE"), (Encoding::Utf16Le, "a😀".to_owned()));
    assert_eq!(there_and_back(b"\xFE\xFF\0a\xD8\x3D\xDE\x00"), (Encoding::Utf16Be, "a😀".to_owned()));
    assert_eq!(there_and_back(b""), (Encoding::Utf8, String::new()));
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(there_and_back(&all).0, Encoding::Bytes);
    assert_eq!(there_and_back(b"\xFF\xFEa").0, Encoding::Bytes, "half a unit");
    assert_eq!(there_and_back(b"\xFF\xFE\x00\xD8").0, Encoding::Bytes, "half a pair");
    assert_eq!(there_and_back(b"\xEF\xBB\xBF\xFF").0, Encoding::Bytes);
}

#[test]
fn unknown_encodings_take_ascii_only() {
    assert!(Encoding::Bytes.check("ascii").is_ok());
    assert!(Encoding::Bytes.check("é").is_err());
    assert_eq!(Encoding::Bytes.for_whole("é"), Encoding::Utf8);
    assert_eq!(Encoding::Utf16Be.for_whole("é"), Encoding::Utf16Be);
}

#[test]
fn a_second_mark_is_not_written() {
    assert_eq!(Encoding::Utf8Bom.without_second_mark("\u{FEFF}a"), "a");
    assert_eq!(Encoding::Utf8.without_second_mark("\u{FEFF}a"), "\u{FEFF}a");
}

#[test]
fn hashes_are_sha256_in_hex() {
    assert_eq!(hash(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[test]
fn a_budget_cuts_between_characters_and_counts_bytes() {
    assert_eq!(budget("añ😀b", 2), ("añ".to_owned(), 5));
    assert_eq!(budget("añ", 2), ("añ".to_owned(), 0));
    assert_eq!(budget("ab", 0), (String::new(), 2));
    let mut bounded = Bounded::new(3);
    for part in ["ab", "é😀", "c"] {
        bounded.push(part);
    }
    assert_eq!(bounded.finish(), ("abé".to_owned(), 5));
}

fn edited(file: &str, old: &str, new: &str) -> String {
    let ends = Ends::of(file);
    let whole = normalised(file).into_owned();
    let at = whole.find(old).unwrap();
    let before = whole[..at].matches('\n').count();
    rewritten(&ends, before, old, new)
}

#[test]
fn replaced_lines_keep_the_ends_they_had() {
    assert_eq!(edited("a\r\nb\r\nc\r\n", "b\n", "x\n"), "x\r\n");
    assert_eq!(edited("a\r\nb\nc\r\nd\n", "b\nc\n", "B\nC\n"), "B\nC\r\n");
    assert_eq!(edited("a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nnew\nb\nc\nd\n"), "a\r\nnew\r\nb\nc\r\nd\n");
    assert_eq!(edited("a\nb\r\n", "a\n", "a\nx\ny\n"), "a\nx\ny\n");
    assert_eq!(edited("a\nb\r\nc\n", "b\n", "b\nx\ny\n"), "b\r\nx\r\ny\r\n");
}

#[test]
fn parts_of_lines_and_plain_files_are_written_as_they_are() {
    assert_eq!(edited("one\r\ntwo\r\n", "one", "three"), "three");
    assert_eq!(edited("one\r\ntwo\r\n", "ne\ntw", "X\nY\nZ"), "X\r\nY\r\nZ");
    assert_eq!(edited("a\nb\n", "a\n", "x\ny\n"), "x\ny\n");
    assert_eq!(edited("one\r\ntwo", "two", "a\nb"), "a\r\nb");
    assert_eq!(edited("a\rb\r\n", "a\rb", "c\rd"), "c\rd", "a lone return is a character");
}
