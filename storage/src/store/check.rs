//! Whether a batch agrees with the store, before any of it is applied: a batch that does not fails
//! alone, and the others of its commit never notice.

use std::collections::{HashMap, HashSet};

use redb::ReadableTable;

use super::batch::InvalidWrite;
use super::failure::Failure;
use super::prepare::Prepared;
use super::rows;
use super::tables::Tables;

/// Tails that are remembered; one more and all are read again.
const MAX_TAILS: usize = 4096;

/// Why a batch is not applied.
pub(crate) enum Refusal {
    Invalid(InvalidWrite),
    Failed(Failure),
}

impl<T: Into<Failure>> From<T> for Refusal {
    fn from(failure: T) -> Self {
        Self::Failed(failure.into())
    }
}

/// Where the log of a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Key of the last row.
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    /// Length of the last row.
    pub(crate) bytes: usize,
}

/// The ends of the logs that were written to lately. Only true of the running transaction: forget them
/// when it fails.
#[derive(Default)]
pub(crate) struct Tails(HashMap<u64, Tail>);

impl Tails {
    pub(crate) fn get(&mut self, tables: &Tables<'_>, session: u64) -> Result<Option<Tail>, Failure> {
        if let Some(tail) = self.0.get(&session) {
            return Ok(Some(*tail));
        }
        let last = tables.log.range((session, 0)..=(session, u64::MAX))?.next_back();
        let Some((key, row)) = last.transpose()? else { return Ok(None) };
        let row = row.value();
        let last_seq =
            rows::last_seq(row).map_err(|error| Failure::Damaged { message: error.to_string() })?;
        let tail = Tail { first_seq: key.value().1, last_seq, bytes: row.len() };
        self.set(session, tail);
        Ok(Some(tail))
    }

    pub(crate) fn set(&mut self, session: u64, tail: Tail) {
        if self.0.len() >= MAX_TAILS {
            self.0.clear();
        }
        self.0.insert(session, tail);
    }

    pub(crate) fn forget(&mut self, session: u64) {
        self.0.remove(&session);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Checks one batch: the store as it is, under the batch's own writes so far.
pub(crate) struct Check<'a, 'txn> {
    tables: &'a Tables<'txn>,
    tails: &'a mut Tails,
    deleted: &'a HashSet<u64>,
    /// uid → row key, `None` once deleted in this batch.
    keys: HashMap<u64, Option<String>>,
    /// Row key → uid, the same the other way round.
    uids: HashMap<String, Option<u64>>,
    last_seqs: HashMap<u64, u64>,
}

impl<'a, 'txn> Check<'a, 'txn> {
    pub(crate) fn new(tables: &'a Tables<'txn>, tails: &'a mut Tails, deleted: &'a HashSet<u64>) -> Self {
        Self { tables, tails, deleted, keys: HashMap::new(), uids: HashMap::new(), last_seqs: HashMap::new() }
    }

    pub(crate) fn batch(mut self, writes: &[Prepared]) -> Result<(), Refusal> {
        writes.iter().try_for_each(|write| self.write(write))
    }

    fn write(&mut self, write: &Prepared) -> Result<(), Refusal> {
        match write {
            Prepared::PutSession { uid, key, row_key, .. } => self.put_session(*uid, &key.id, row_key),
            Prepared::DeleteSession { row_key } => self.delete_session(row_key),
            Prepared::Append { session, entries } => self.append(*session, entries),
            Prepared::PutTurn { session, .. } | Prepared::PutImage { session, .. } => self.known(*session),
            Prepared::RemoveTurn { .. } | Prepared::PutMeta { .. } => Ok(()),
        }
    }

    fn put_session(&mut self, uid: u64, id: &str, row_key: &str) -> Result<(), Refusal> {
        match self.key_of(uid)? {
            Some(found) if found == row_key => return Ok(()),
            Some(_) => return Err(Refusal::Invalid(InvalidWrite::KeyChanged { session: uid })),
            None => {}
        }
        // A late update of a deleted session must not bring it back, empty.
        if self.deleted.contains(&uid) || self.keys.contains_key(&uid) {
            return Err(Refusal::Invalid(InvalidWrite::UnknownSession { session: uid }));
        }
        if self.uid_of(row_key)?.is_some() {
            return Err(Refusal::Invalid(InvalidWrite::SessionExists { id: id.to_owned() }));
        }
        self.keys.insert(uid, Some(row_key.to_owned()));
        self.uids.insert(row_key.to_owned(), Some(uid));
        Ok(())
    }

    fn delete_session(&mut self, row_key: &str) -> Result<(), Refusal> {
        if let Some(uid) = self.uid_of(row_key)? {
            self.keys.insert(uid, None);
            self.uids.insert(row_key.to_owned(), None);
        }
        Ok(())
    }

    fn append(&mut self, session: u64, entries: &[(u64, Vec<u8>)]) -> Result<(), Refusal> {
        self.known(session)?;
        let mut last = match self.last_seqs.get(&session) {
            Some(last) => *last,
            None => self.tails.get(self.tables, session)?.map_or(0, |tail| tail.last_seq),
        };
        for (seq, _) in entries {
            if *seq <= last {
                return Err(Refusal::Invalid(InvalidWrite::Sequence { session, last, seq: *seq }));
            }
            last = *seq;
        }
        self.last_seqs.insert(session, last);
        Ok(())
    }

    fn known(&self, session: u64) -> Result<(), Refusal> {
        match self.key_of(session)? {
            Some(_) => Ok(()),
            None => Err(Refusal::Invalid(InvalidWrite::UnknownSession { session })),
        }
    }

    fn key_of(&self, uid: u64) -> Result<Option<String>, Failure> {
        match self.keys.get(&uid) {
            Some(key) => Ok(key.clone()),
            None => Ok(self.tables.keys.get(uid)?.map(|key| key.value().to_owned())),
        }
    }

    fn uid_of(&self, row_key: &str) -> Result<Option<u64>, Failure> {
        match self.uids.get(row_key) {
            Some(uid) => Ok(*uid),
            None => Ok(self.tables.stored_row(row_key)?.map(|row| row.uid)),
        }
    }
}
