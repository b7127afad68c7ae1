//! Turns through the real socket, actors, store and tools: modes, queue, guidance, cancel, disconnect,
//! sessions (contract 2.12, 3.3, 4, 5; rulings 2, 3, 7, 8, 14).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test")]

#[path = "kit/lib.rs"]
mod kit;

#[path = "turns/cancel.rs"]
mod cancel;
#[path = "turns/commands.rs"]
mod commands;
#[path = "turns/connections.rs"]
mod connections;
#[path = "turns/guidance.rs"]
mod guidance;
#[path = "turns/queue.rs"]
mod queue;
#[path = "turns/sessions.rs"]
mod sessions;
#[path = "turns/tools.rs"]
mod tools;
