//! Checked writes become rows.

use redb::ReadableTable;

use crate::record::Record;
use crate::record::session::SessionRow;

use super::check::{Tail, Tails};
use super::failure::Failure;
use super::prepare::Prepared;
use super::rows;
use super::tables::{Tables, newest_first, texts_of};

impl Tables<'_> {
    /// The row of a session as it was stored.
    pub(crate) fn stored_row(&self, row_key: &str) -> Result<Option<SessionRow>, Failure> {
        let Some(record) = self.sessions.get(row_key)? else { return Ok(None) };
        let row = SessionRow::from_bytes(record.value());
        row.map(Some).map_err(|error| Failure::Damaged { message: format!("session row: {error}") })
    }

    /// Applies one write; `gone` learns which sessions were deleted.
    pub(crate) fn apply(
        &mut self,
        write: &Prepared,
        tails: &mut Tails,
        gone: &mut Vec<u64>,
    ) -> Result<(), Failure> {
        match write {
            Prepared::PutSession { uid, key, row_key, updated_at, record } => {
                self.unlist(row_key)?;
                self.by_time.insert((key.scope.as_str(), newest_first(*updated_at), key.id.as_str()), ())?;
                self.keys.insert(*uid, row_key.as_str())?;
                self.sessions.insert(row_key.as_str(), record.as_slice())?;
            }
            Prepared::DeleteSession { row_key } => {
                if let Some(uid) = self.unlist(row_key)? {
                    self.sessions.remove(row_key.as_str())?;
                    self.delete_content(uid)?;
                    tails.forget(uid);
                    gone.push(uid);
                }
            }
            Prepared::Append { session, entries } => self.append(*session, entries, tails)?,
            Prepared::PutTurn { session, turn, record } => {
                self.turns.insert((*session, turn.as_str()), record.as_slice())?;
            }
            Prepared::RemoveTurn { session, turn } => {
                self.turns.remove((*session, turn.as_str()))?;
            }
            Prepared::PutImage { session, id, bytes } => {
                self.images.insert((*session, id.as_str()), bytes.as_slice())?;
            }
            Prepared::PutMeta { key, value } => {
                self.meta.insert(key.as_str(), value.as_slice())?;
            }
        }
        Ok(())
    }

    /// Takes a session out of the index by time, where its old row says it is.
    fn unlist(&mut self, row_key: &str) -> Result<Option<u64>, Failure> {
        let Some(row) = self.stored_row(row_key)? else { return Ok(None) };
        self.by_time.remove((row.key.scope.as_str(), newest_first(row.updated_at), row.key.id.as_str()))?;
        Ok(Some(row.uid))
    }

    fn delete_content(&mut self, uid: u64) -> Result<(), Failure> {
        self.keys.remove(uid)?;
        self.log.retain_in((uid, 0)..=(uid, u64::MAX), |_, _| false)?;
        self.turns.retain_in(texts_of(uid), |_, _| false)?;
        self.images.retain_in(texts_of(uid), |_, _| false)?;
        Ok(())
    }

    /// Extends the last row while it has room, then begins new ones.
    fn append(&mut self, session: u64, entries: &[(u64, Vec<u8>)], tails: &mut Tails) -> Result<(), Failure> {
        let Some((first, record)) = entries.first() else { return Ok(()) };
        let (mut first_seq, mut row) = match tails.get(self, session)? {
            Some(tail) if rows::has_room(tail.bytes, record) => {
                (tail.first_seq, self.log_row(session, tail.first_seq)?)
            }
            _ => (*first, Vec::new()),
        };
        let mut last_seq = *first;
        for (seq, record) in entries {
            if !rows::has_room(row.len(), record) {
                self.log.insert((session, first_seq), row.as_slice())?;
                row.clear();
                first_seq = *seq;
            }
            rows::push(&mut row, record).map_err(|error| Failure::Defect { message: error.to_string() })?;
            last_seq = *seq;
        }
        self.log.insert((session, first_seq), row.as_slice())?;
        tails.set(session, Tail { first_seq, last_seq, bytes: row.len() });
        Ok(())
    }

    fn log_row(&self, session: u64, first_seq: u64) -> Result<Vec<u8>, Failure> {
        let row = self.log.get((session, first_seq))?.map(|row| row.value().to_vec());
        row.ok_or_else(|| Failure::Damaged { message: "the last row of a log is gone".to_owned() })
    }
}
