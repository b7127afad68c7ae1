//! The tables and their keys.

use std::ops::Bound;

use redb::{Table, TableDefinition, WriteTransaction};

use crate::record::session::SessionKey;

use super::failure::Failure;

type Bytes = &'static [u8];
type Text = &'static str;
type TextBound = Bound<(u64, Text)>;

/// `scope\0id` → `SessionRow`.
pub(crate) const SESSIONS: TableDefinition<'_, Text, Bytes> = TableDefinition::new("sessions");
/// (scope, newest first, id): lists read a page and nothing else.
pub(crate) const SESSIONS_BY_TIME: TableDefinition<'_, (Text, u64, Text), ()> =
    TableDefinition::new("sessions_by_time");
/// uid → `scope\0id`: whether a log may be written to.
pub(crate) const SESSION_KEYS: TableDefinition<'_, u64, Text> = TableDefinition::new("session_keys");
/// (uid, first seq) → several entries (see `rows`).
pub(crate) const LOG: TableDefinition<'_, (u64, u64), Bytes> = TableDefinition::new("log");
/// (uid, turn) → `TurnRow`.
pub(crate) const TURNS: TableDefinition<'_, (u64, Text), Bytes> = TableDefinition::new("turns");
/// (uid, image) → image.
pub(crate) const IMAGES: TableDefinition<'_, (u64, Text), Bytes> = TableDefinition::new("images");
/// Name → value.
pub(crate) const META: TableDefinition<'_, Text, Bytes> = TableDefinition::new("meta");

/// Their rooms are not built yet, but their place is taken in every store of this format.
const RESERVED: [TableDefinition<'_, Text, Bytes>; 4] = [
    TableDefinition::new("projects"),
    TableDefinition::new("schedules"),
    TableDefinition::new("usage"),
    TableDefinition::new("journal"),
];

/// Prefix of the names in `META` that only the store writes.
pub(crate) const OWN_NAMES: &str = "store.";
/// The format, `u32` little endian.
pub(crate) const FORMAT_NAME: &str = "store.format";
/// The number of the last commit, `u64` little endian.
pub(crate) const COMMITS_NAME: &str = "store.commits";

/// Everything that a commit may touch, opened once.
pub(crate) struct Tables<'txn> {
    pub(crate) sessions: Table<'txn, Text, Bytes>,
    pub(crate) by_time: Table<'txn, (Text, u64, Text), ()>,
    pub(crate) keys: Table<'txn, u64, Text>,
    pub(crate) log: Table<'txn, (u64, u64), Bytes>,
    pub(crate) turns: Table<'txn, (u64, Text), Bytes>,
    pub(crate) images: Table<'txn, (u64, Text), Bytes>,
    pub(crate) meta: Table<'txn, Text, Bytes>,
}

impl<'txn> Tables<'txn> {
    pub(crate) fn open(transaction: &'txn WriteTransaction) -> Result<Self, Failure> {
        Ok(Self {
            sessions: transaction.open_table(SESSIONS)?,
            by_time: transaction.open_table(SESSIONS_BY_TIME)?,
            keys: transaction.open_table(SESSION_KEYS)?,
            log: transaction.open_table(LOG)?,
            turns: transaction.open_table(TURNS)?,
            images: transaction.open_table(IMAGES)?,
            meta: transaction.open_table(META)?,
        })
    }
}

/// Makes all tables and says which format they have.
pub(crate) fn create_all(transaction: &WriteTransaction, format: u32) -> Result<(), Failure> {
    let mut tables = Tables::open(transaction)?;
    tables.meta.insert(FORMAT_NAME, format.to_le_bytes().as_slice())?;
    tables.meta.insert(COMMITS_NAME, 0u64.to_le_bytes().as_slice())?;
    for table in RESERVED {
        transaction.open_table(table)?;
    }
    Ok(())
}

/// Key of a session's row; neither part contains a zero.
pub(crate) fn row_key(key: &SessionKey) -> String {
    format!("{}\0{}", key.scope, key.id)
}

/// Turns a time into a number that sorts the newest first.
pub(crate) fn newest_first(at: i64) -> u64 {
    !(at.cast_unsigned() ^ (1 << 63))
}

/// All rows of one session in a table that is keyed by uid and text.
pub(crate) fn texts_of(session: u64) -> (TextBound, TextBound) {
    let end = session.checked_add(1).map_or(Bound::Unbounded, |next| Bound::Excluded((next, "")));
    (Bound::Included((session, "")), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_times_sort_before_older_ones() {
        let times = [i64::MAX, 5, 1, 0, -1, i64::MIN];
        let keys: Vec<u64> = times.iter().map(|at| newest_first(*at)).collect();
        assert!(keys.is_sorted());
        assert_eq!((keys[0], keys[5]), (0, u64::MAX));
    }
}
