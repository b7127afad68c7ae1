//! Where this user's daemon lives: its home, and the files in it that belong to the command line.

use std::path::{Path, PathBuf};

use seekclaw_storage::home::{Home, HomeError};

use crate::status::{Failure, Status};

/// The home as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    home: Home,
}

impl Place {
    /// The home that the environment names.
    pub(crate) fn from_env() -> Result<Self, Failure> {
        let home = Home::from_env().map_err(|error| unusable(&error))?;
        Ok(Self { home })
    }

    /// A place for tests.
    #[cfg(test)]
    pub(crate) fn at(home: &Path) -> Self {
        Self { home: Home::at(home).unwrap() }
    }

    /// The directory itself.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The home with all that the daemon keeps in it.
    pub(crate) fn storage(&self) -> &Home {
        &self.home
    }

    /// The socket of the daemon.
    pub(crate) fn socket(&self) -> PathBuf {
        self.home.socket()
    }

    /// What a daemon in the background writes.
    pub(crate) fn log(&self) -> PathBuf {
        self.home.logs().join("daemon.log")
    }

    /// The identity of this installation towards daemons.
    pub(crate) fn client_id(&self) -> PathBuf {
        self.home.path().join("client-id")
    }

    /// Makes the home and its folders, for their owner alone, and checks that a daemon can live there.
    pub(crate) fn create(&self) -> Result<(), Failure> {
        self.home.prepare().map_err(|error| unusable(&error))
    }

    /// A socket path that no system call takes is told apart from a daemon that does not run.
    pub(crate) fn check_socket_path(&self) -> Result<(), Failure> {
        self.home.check_socket_path().map_err(|error| unusable(&error))
    }
}

fn unusable(error: &HomeError) -> Failure {
    Failure::new(Status::Unreachable, format!("cannot use the home of the daemon: {error}"))
        .next("SEEKCLAW_HOME names another directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_command_line_are_inside_the_home() {
        let place = Place::at(Path::new("/user/.seekclaw"));
        assert_eq!(place.log(), Path::new("/user/.seekclaw/logs/daemon.log"));
        assert_eq!(place.client_id(), Path::new("/user/.seekclaw/client-id"));
        assert_eq!(place.socket(), Path::new("/user/.seekclaw/daemon.sock"));
    }

    #[test]
    fn an_unusable_home_says_what_to_do() {
        let place = Place::at(Path::new(&format!("/{}", "x".repeat(200))));
        let failure = place.check_socket_path().unwrap_err();
        assert_eq!(failure.status, Status::Unreachable);
        assert!(failure.to_string().ends_with("\n  SEEKCLAW_HOME names another directory"), "{failure}");
    }
}
