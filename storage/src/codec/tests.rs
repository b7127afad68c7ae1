use super::*;

#[test]
fn round_trip_keeps_the_value() {
    let value = (7u64, "größe".to_owned(), vec![1u32, u32::MAX]);
    let bytes = encode(3, &value).unwrap();
    assert_eq!(bytes[0], 3);
    assert_eq!(decode::<(u64, String, Vec<u32>)>(3, &bytes).unwrap(), value);
}

#[test]
fn other_version_is_refused() {
    let bytes = encode(1, &5u8).unwrap();
    assert_eq!(decode::<u8>(2, &bytes), Err(CodecError::UnknownVersion { found: 1 }));
    assert_eq!(decode::<u8>(2, &[]), Err(CodecError::Empty));
}

#[test]
fn trailing_bytes_are_refused() {
    let mut bytes = encode(1, &"x".to_owned()).unwrap();
    bytes.extend([0, 0]);
    assert_eq!(decode::<String>(1, &bytes), Err(CodecError::TrailingBytes { bytes: 2 }));
}

#[test]
fn cut_record_is_refused() {
    let bytes = encode(1, &"some text".to_owned()).unwrap();
    for end in 1..bytes.len() {
        assert!(decode::<String>(1, &bytes[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn absurd_length_prefix_is_an_error_not_an_allocation() {
    let mut bytes = vec![1, 253];
    bytes.extend((1u64 << 40).to_le_bytes());
    assert!(matches!(decode::<String>(1, &bytes), Err(CodecError::Malformed { .. })));
}

#[test]
fn record_over_the_limit_is_not_written() {
    let text = "x".repeat(MAX_RECORD_BYTES);
    assert!(matches!(encode(1, &text), Err(CodecError::TooLarge { .. })));
}

#[test]
fn small_numbers_that_count_as_wide_ones_can_be_read_back() {
    let numbers = vec![1u64; MAX_RECORD_BYTES / 8 + 1000];
    let bytes = encode(1, &numbers).unwrap();
    assert_eq!(decode::<Vec<u64>>(1, &bytes).unwrap().len(), numbers.len());
}
