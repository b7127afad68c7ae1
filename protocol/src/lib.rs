//! Every type that crosses a seekclaw socket: the method table, params and results per domain, the
//! canonical session events, error codes, limits, and the JSONL codec. No tokio, no files, no clock.

pub mod agent;
pub mod basics;
pub mod chat;
pub mod doctor;
pub mod error;
pub mod event;
pub mod hello;
pub mod ids;
pub mod jsonl;
pub mod limits;
pub mod lock;
pub mod method;
pub mod mode;
pub mod model;
pub mod params;
pub mod provider;
pub mod scope;
pub mod session;
pub mod time;
pub mod workspace;

pub use agent::{Mode, ReasoningLevel};
pub use error::{ErrorCode, WireError};
pub use event::Event;
pub use ids::{RequestId, SessionId, TurnId};
pub use params::{FromParams, NoParams, Params};
pub use time::Timestamp;
