//! The client id: made once per installation and the same ever after.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Longest client id that a daemon takes.
const MAX_CHARS: usize = 128;

/// Reads the id at `path`, or makes one. Of many processes that make one at once, all get the same.
/// A home that cannot be written gives an id for this process alone.
pub(crate) fn client_id(path: &Path) -> String {
    if let Some(id) = read(path) {
        return id;
    }
    let fresh = random_id();
    match publish(path, &fresh) {
        Ok(()) => read(path).unwrap_or(fresh),
        Err(_) => fresh,
    }
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let id = text.trim();
    let fits = !id.is_empty() && id.chars().count() <= MAX_CHARS && !id.contains(char::is_control);
    fits.then(|| id.to_owned())
}

/// Puts a complete file at `path`. The one that is there already wins, unless it holds no id.
fn publish(path: &Path, id: &str) -> io::Result<()> {
    let draft = path.with_extension(format!("{id}.tmp"));
    write_private(&draft, id)?;
    let linked = fs::hard_link(&draft, path);
    let published = if linked.is_err() && read(path).is_none() { fs::rename(&draft, path) } else { Ok(()) };
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => published,
    }
}

fn write_private(path: &Path, id: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    writeln!(options.open(path)?, "{id}")
}

fn random_id() -> String {
    let mut bytes = [0_u8; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => format!("cli-{:032x}", u128::from_be_bytes(bytes)),
        // Unique enough for a process on a machine without a source of randomness.
        Err(_) => format!("cli-{}-{:?}", std::process::id(), std::time::SystemTime::now())
            .replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_made_once() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("client-id");
        let first = client_id(&path);
        assert!(first.starts_with("cli-"));
        assert_eq!(client_id(&path), first);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1, "no draft is left behind");
    }

    #[test]
    fn many_at_once_agree_on_one() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("client-id");
        let ids: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| client_id(&path))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }

    #[test]
    fn a_broken_file_is_replaced_and_a_missing_home_tolerated() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("client-id");
        fs::write(&path, " \n").unwrap();
        let id = client_id(&path);
        assert_eq!(client_id(&path), id);
        assert!(!client_id(&temp.path().join("absent").join("client-id")).is_empty());
    }
}
