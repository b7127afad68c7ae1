use super::*;

fn decode(parts: &[&[u8]]) -> Vec<String> {
    let (mut decoder, mut payloads) = (Decoder::default(), Vec::new());
    for part in parts {
        decoder.feed(part, &mut payloads).unwrap();
    }
    decoder.finish(&mut payloads).unwrap();
    payloads
}

fn at_every_split(stream: &[u8], expected: &[&str]) {
    assert_eq!(decode(&[stream]), expected, "whole");
    for at in 0..=stream.len() {
        let (head, tail) = stream.split_at(at);
        assert_eq!(decode(&[head, tail]), expected, "split at {at}");
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(decode(&bytes), expected, "byte by byte");
}

#[test]
fn every_kind_of_line_end_splits_events_in_any_chunking() {
    for ending in ["\n", "\r\n", "\r"] {
        let stream = "data: {\"a\":1}||data:zwei äöü 🦀||event: x|data: 3|id: 9||".replace('|', ending);
        at_every_split(stream.as_bytes(), &["{\"a\":1}", "zwei äöü 🦀", "3"]);
    }
}

#[test]
fn comments_and_empty_data_are_no_events() {
    at_every_split(b": ping\n\n:\n\ndata:\n\ndata\n\ndata:  \n\ndata: x\n\n: bye\n", &["x"]);
}

#[test]
fn several_data_lines_are_one_event() {
    at_every_split(b"data: a\ndata:\ndata: b\n\n", &["a\n\nb"]);
}

#[test]
fn the_last_event_may_lack_its_blank_line_and_its_line_end() {
    at_every_split(b"data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
    at_every_split(b"data: a\r\rdata: [DONE]\r", &["a", "[DONE]"]);
}

#[test]
fn a_byte_order_mark_is_skipped_and_other_fields_are_ignored() {
    at_every_split(b"\xef\xbb\xbfdata: a\n\ndatax: b\n\nretry: 3\n\nnonsense\n\n", &["a"]);
}

#[test]
fn a_stray_byte_spoils_one_character_only() {
    assert_eq!(decode(&[b"data: a\xffb\n\n"]), ["a\u{fffd}b"]);
}

#[test]
fn a_line_beyond_the_cap_is_an_error_and_not_memory() {
    let (mut decoder, mut payloads) = (Decoder::default(), Vec::new());
    let chunk = vec![b'x'; 1024 * 1024];
    let fed = (0..20).find_map(|_| decoder.feed(&chunk, &mut payloads).err());
    assert_eq!(fed, Some(SseError::TooLong));
    assert!(decoder.line.len() <= MAX_EVENT_BYTES);
}

#[test]
fn an_event_of_many_lines_is_capped_too() {
    let (mut decoder, mut payloads) = (Decoder::default(), Vec::new());
    let mut line = b"data: ".to_vec();
    line.resize(1024 * 1024, b'x');
    line.push(b'\n');
    let fed = (0..20).find_map(|_| decoder.feed(&line, &mut payloads).err());
    assert_eq!(fed, Some(SseError::TooLong));
}
