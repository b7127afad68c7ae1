//! What seekclaw keeps: redb tables behind one writer thread, bincode records with frozen versions,
//! `config.json`, the home directory and its instance lock. No actors, no protocol dialects.

pub mod atomic;
pub mod codec;
pub mod config;
pub mod home;
pub mod lock;
pub mod record;
pub mod store;
