//! Folding the log of the session for a turn, off the runtime.

use std::future::Future;
use std::ops::ControlFlow;

use seekclaw_protocol::ErrorCode;

use super::state::TurnState;
use super::{TurnArgs, TurnFailure};
use crate::history::fold::History;
use crate::tools::registry;

/// What the log says.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) history: History,
    pub(crate) turn: TurnState,
}

/// Reads everything that is stored of the session.
pub(super) fn job(
    args: &TurnArgs,
) -> impl Future<Output = Result<Box<Loaded>, TurnFailure>> + Send + 'static {
    let (reader, uid, turn) = (args.services.store.reader().clone(), args.uid, args.turn.clone());
    #[cfg(test)]
    let session = args.log.session().clone();
    async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut loaded = Loaded::default();
            let fold = &mut |entry: seekclaw_storage::record::log::Entry| {
                loaded.history.apply(&entry);
                if entry.turn == turn.as_str() {
                    loaded.turn.apply(&entry, registry::is_mutating);
                }
                ControlFlow::Continue(())
            };
            let read = reader.log(uid, 0, fold);
            #[cfg(test)]
            super::faults::gate(session.as_str());
            read.map(|()| Box::new(loaded))
        });
        match read.await {
            Ok(Ok(loaded)) => Ok(loaded),
            Ok(Err(error)) => Err(failure(format!("cannot read the session: {error}"))),
            Err(error) => Err(failure(format!("reading the session was cut off: {error}"))),
        }
    }
}

fn failure(message: String) -> TurnFailure {
    TurnFailure { code: ErrorCode::Internal, message }
}
