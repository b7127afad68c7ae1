//! Writes in their stored form: everything that can be refused without looking into the store.

use crate::codec::CodecError;
use crate::record::Record;
use crate::record::log::Entry;
use crate::record::session::SessionKey;

use super::batch::{InvalidWrite, Write};
use super::tables::{self, OWN_NAMES};

/// A write, encoded.
pub(crate) enum Prepared {
    PutSession { uid: u64, key: SessionKey, row_key: String, updated_at: i64, record: Vec<u8> },
    DeleteSession { row_key: String },
    Append { session: u64, entries: Vec<(u64, Vec<u8>)> },
    PutTurn { session: u64, turn: String, record: Vec<u8> },
    RemoveTurn { session: u64, turn: String },
    PutImage { session: u64, id: String, bytes: Vec<u8> },
    PutMeta { key: String, value: Vec<u8> },
}

impl Prepared {
    /// About how much it adds to a commit.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::PutSession { record, .. } | Self::PutTurn { record, .. } => record.len(),
            Self::Append { entries, .. } => entries.iter().map(|(_, record)| record.len()).sum(),
            Self::PutImage { bytes, .. } => bytes.len(),
            Self::PutMeta { value, .. } => value.len(),
            Self::DeleteSession { .. } | Self::RemoveTurn { .. } => 0,
        }
    }
}

pub(crate) fn all(writes: Vec<Write>) -> Result<Vec<Prepared>, InvalidWrite> {
    writes.into_iter().map(one).collect()
}

fn one(write: Write) -> Result<Prepared, InvalidWrite> {
    Ok(match write {
        Write::PutSession(row) => Prepared::PutSession {
            uid: row.uid,
            row_key: checked_row_key(&row.key)?,
            updated_at: row.updated_at,
            record: encoded("session", &row)?,
            key: row.key,
        },
        Write::DeleteSession(key) => Prepared::DeleteSession { row_key: checked_row_key(&key)? },
        Write::Append { session, entries } => {
            let encode = |entry: &Entry| Ok((entry.seq, encoded("log entry", entry)?));
            Prepared::Append { session, entries: entries.iter().map(encode).collect::<Result<_, _>>()? }
        }
        Write::PutTurn(row) => {
            Prepared::PutTurn { session: row.session, record: encoded("turn", &row)?, turn: row.turn }
        }
        Write::RemoveTurn { session, turn } => Prepared::RemoveTurn { session, turn },
        Write::PutImage { session, id, bytes } => Prepared::PutImage { session, id, bytes },
        Write::PutMeta { key, .. } if key.starts_with(OWN_NAMES) => {
            return Err(InvalidWrite::ReservedName { key });
        }
        Write::PutMeta { key, value } => Prepared::PutMeta { key, value },
    })
}

fn encoded(what: &'static str, record: &impl Record) -> Result<Vec<u8>, InvalidWrite> {
    record.to_bytes().map_err(|source: CodecError| InvalidWrite::Record { what, source })
}

/// The two parts share one key and are told apart by a zero between them.
fn checked_row_key(key: &SessionKey) -> Result<String, InvalidWrite> {
    for (what, part) in [("scope", &key.scope), ("session id", &key.id)] {
        if part.is_empty() || part.contains('\0') {
            return Err(InvalidWrite::Key { what });
        }
    }
    Ok(tables::row_key(key))
}
