//! A row of the log: several entries, each `[length: u32 LE][record]`. Rows just under a page of 16 KiB
//! take 1.1 times the space of their content, a row an entry 1.9 times.

use std::ops::ControlFlow;

use crate::codec::CodecError;
use crate::record::Record;
use crate::record::log::Entry;

/// A row is extended up to this size; with its key and the page's own bytes it fits into 16 KiB.
pub(crate) const ROW_BYTES: usize = 15 * 1024 + 512;

const LENGTH_BYTES: usize = 4;

/// Adds an entry to a row.
pub(crate) fn push(row: &mut Vec<u8>, record: &[u8]) -> Result<(), CodecError> {
    let length = u32::try_from(record.len()).map_err(|_| CodecError::TooLarge { bytes: record.len() })?;
    row.extend_from_slice(&length.to_le_bytes());
    row.extend_from_slice(record);
    Ok(())
}

/// Whether a row of `bytes` still takes a record; an empty one takes any.
pub(crate) fn has_room(bytes: usize, record: &[u8]) -> bool {
    bytes == 0 || bytes + LENGTH_BYTES + record.len() <= ROW_BYTES
}

/// The records of a row, in order.
pub(crate) fn records(row: &[u8]) -> Records<'_> {
    Records { rest: row }
}

pub(crate) struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<&'a [u8], CodecError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let cut = split(self.rest);
        self.rest = cut.map_or(&[], |(_, rest)| rest);
        Some(
            cut.map(|(record, _)| record)
                .ok_or_else(|| CodecError::Malformed { reason: "the row ends within an entry".to_owned() }),
        )
    }
}

fn split(row: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = row.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// Hands the entries from `from` on to `each`, until it breaks.
pub(crate) fn visit(
    row: &[u8],
    from: u64,
    each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, CodecError> {
    for record in records(row) {
        let entry = Entry::from_bytes(record?)?;
        if entry.seq >= from && each(entry).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Sequence number of the last entry; a row has at least one.
pub(crate) fn last_seq(row: &[u8]) -> Result<u64, CodecError> {
    let mut last = Err(CodecError::Empty);
    for record in records(row) {
        last = Ok(record?);
    }
    Ok(Entry::from_bytes(last?)?.seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_order() {
        let mut row = Vec::new();
        for record in [b"a".as_slice(), b"", b"ccc"] {
            push(&mut row, record).unwrap();
        }
        let back: Vec<&[u8]> = records(&row).map(Result::unwrap).collect();
        assert_eq!(back, [b"a".as_slice(), b"", b"ccc"]);
    }

    #[test]
    fn torn_row_is_an_error_and_ends() {
        let mut row = Vec::new();
        push(&mut row, b"first").unwrap();
        push(&mut row, b"second").unwrap();
        for end in [row.len() - 1, 9 + 2] {
            let back: Vec<bool> = records(&row[..end]).map(|record| record.is_ok()).collect();
            assert_eq!(back, [true, false], "cut at {end}");
        }
    }

    #[test]
    fn a_row_is_filled_to_its_limit_and_not_over() {
        assert!(has_room(0, &[0; 1 << 20]));
        assert!(has_room(ROW_BYTES - 104, &[0; 100]));
        assert!(!has_room(ROW_BYTES - 103, &[0; 100]));
    }
}
