//! Reading: each call sees one snapshot and closes it before it returns. A snapshot that is kept would
//! make the file grow with every commit.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata};

use crate::codec::CodecError;
use crate::record::Record;
use crate::record::log::Entry;
use crate::record::session::{SessionKey, SessionRow};
use crate::record::turn::TurnRow;

use super::failure::Failure;
use super::rows;
use super::shared::{Shared, Stats};
use super::tables::{self, IMAGES, LOG, META, SESSIONS, SESSIONS_BY_TIME, TURNS};

type Sessions = ReadOnlyTable<&'static str, &'static [u8]>;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The database.
    #[error(transparent)]
    Failed(Failure),
    /// One record.
    #[error("cannot read a stored {what}: {source}")]
    Record {
        /// Which kind.
        what: &'static str,
        /// Why.
        source: CodecError,
    },
}

impl<T: Into<Failure>> From<T> for ReadError {
    fn from(failure: T) -> Self {
        Self::Failed(failure.into())
    }
}

/// How much is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions, archived ones included.
    pub sessions: u64,
    /// Rows of all logs; each holds several entries.
    pub log_rows: u64,
    /// Open turns.
    pub turns: u64,
    /// Images.
    pub images: u64,
}

/// Reads the store. Calls block: keep them off the runtime.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn snapshot(&self) -> Result<ReadTransaction, ReadError> {
        Ok(self.shared.begin_read()?)
    }

    /// The row of a session.
    ///
    /// # Errors
    /// The store or the row cannot be read.
    pub fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, ReadError> {
        row(&self.snapshot()?.open_table(SESSIONS)?, key)
    }

    /// Sessions of a scope, the newest first, at most `limit`.
    ///
    /// # Errors
    /// The store or a row cannot be read.
    pub fn sessions(
        &self,
        scope: &str,
        include_archived: bool,
        limit: Option<usize>,
    ) -> Result<Vec<SessionRow>, ReadError> {
        let snapshot = self.snapshot()?;
        let (index, rows) = (snapshot.open_table(SESSIONS_BY_TIME)?, snapshot.open_table(SESSIONS)?);
        let mut found = Vec::new();
        for listed in index.range((scope, 0, "")..)? {
            let listed = listed?.0;
            let (in_scope, _, id) = listed.value();
            if in_scope != scope || limit.is_some_and(|limit| found.len() >= limit) {
                break;
            }
            let key = SessionKey { scope: scope.to_owned(), id: id.to_owned() };
            let row = row(&rows, &key)?.ok_or_else(|| Failure::Damaged {
                message: format!("session {id} is listed but not stored"),
            })?;
            if include_archived || !row.archived {
                found.push(row);
            }
        }
        Ok(found)
    }

    /// The session of a scope that was used last and is not archived.
    ///
    /// # Errors
    /// The store or a row cannot be read.
    pub fn latest_session(&self, scope: &str) -> Result<Option<SessionRow>, ReadError> {
        Ok(self.sessions(scope, false, Some(1))?.pop())
    }

    /// Hands the entries of a log after `after_seq` to `each`, in order, until it breaks. Reads no more
    /// than it hands out, give or take a row.
    ///
    /// # Errors
    /// The store or an entry cannot be read.
    pub fn log(
        &self,
        session: u64,
        after_seq: u64,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let Some(from) = after_seq.checked_add(1) else { return Ok(()) };
        let table = self.snapshot()?.open_table(LOG)?;
        let holder = table.range((session, 0)..=(session, from))?.next_back().transpose()?;
        let first = holder.map_or(from, |(key, _)| key.value().1);
        for row in table.range((session, first)..=(session, u64::MAX))? {
            let row = row?.1;
            let flow = rows::visit(row.value(), from, each).map_err(in_record("log entry"))?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The last sequence number in a log, 0 if it has no entry.
    ///
    /// # Errors
    /// The store or the entry cannot be read.
    pub fn last_seq(&self, session: u64) -> Result<u64, ReadError> {
        let table = self.snapshot()?.open_table(LOG)?;
        let last = table.range((session, 0)..=(session, u64::MAX))?.next_back().transpose()?;
        last.map_or(Ok(0), |(_, row)| rows::last_seq(row.value()).map_err(in_record("log entry")))
    }

    /// All turns that are not finished, by session and then in the order of their prompts.
    ///
    /// # Errors
    /// The store or a row cannot be read.
    pub fn open_turns(&self) -> Result<Vec<TurnRow>, ReadError> {
        let table = self.snapshot()?.open_table(TURNS)?;
        let mut found = Vec::new();
        for row in table.iter()? {
            let row = row?.1;
            found.push(TurnRow::from_bytes(row.value()).map_err(in_record("turn"))?);
        }
        found.sort_by_key(|row| (row.session, row.prompt_seq));
        Ok(found)
    }

    /// An image of a session.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn image(&self, session: u64, id: &str) -> Result<Option<Vec<u8>>, ReadError> {
        let table = self.snapshot()?.open_table(IMAGES)?;
        Ok(table.get((session, id))?.map(|image| image.value().to_vec()))
    }

    /// A value that was kept under a name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, ReadError> {
        let table = self.snapshot()?.open_table(META)?;
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }

    /// How much is stored.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn counts(&self) -> Result<Counts, ReadError> {
        let snapshot = self.snapshot()?;
        Ok(Counts {
            sessions: snapshot.open_table(SESSIONS)?.len()?,
            log_rows: snapshot.open_table(LOG)?.len()?,
            turns: snapshot.open_table(TURNS)?.len()?,
            images: snapshot.open_table(IMAGES)?.len()?,
        })
    }

    /// Figures for `daemon.status`; does not block.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

fn row(table: &Sessions, key: &SessionKey) -> Result<Option<SessionRow>, ReadError> {
    let Some(record) = table.get(tables::row_key(key).as_str())? else { return Ok(None) };
    SessionRow::from_bytes(record.value()).map(Some).map_err(in_record("session"))
}

fn in_record(what: &'static str) -> impl Fn(CodecError) -> ReadError {
    move |source| ReadError::Record { what, source }
}
