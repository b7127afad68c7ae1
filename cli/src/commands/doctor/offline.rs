//! The checks that need no daemon.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;

use jsonc_parser::{JsonValue, ParseOptions};

use crate::client::{Client, ConnectError};
use crate::commands::doctor::Row;
use crate::place::Place;

/// Checks the home, the socket, the configuration and whether a daemon answers.
pub(super) async fn check(place: &Place) -> Vec<Row> {
    let checks = [
        ("Home", home(place)),
        ("Socket Path", socket_path(place)),
        ("Config File", config(place)),
        ("Daemon", daemon(place).await),
    ];
    let row = |(name, checked): (&str, Result<String, String>)| {
        let ok = checked.is_ok();
        let detail = checked.unwrap_or_else(|detail| detail);
        Row { name: name.to_owned(), ok, detail, kind: "runtime".to_owned() }
    };
    checks.into_iter().map(row).collect()
}

fn home(place: &Place) -> Result<String, String> {
    let at = place.home().display();
    match fs::metadata(place.home()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(format!("{at} does not exist yet")),
        Err(error) => Err(format!("{at} cannot be read: {error}")),
        Ok(found) if !found.is_dir() => Err(format!("{at} is no directory")),
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            Err(format!("{at} is open to others: the daemon makes it private when it starts"))
        }
        Ok(_) => Ok(format!("{at} is private")),
    }
}

fn socket_path(place: &Place) -> Result<String, String> {
    place.storage().check_socket_path().map_err(|error| error.to_string())?;
    Ok(place.socket().display().to_string())
}

fn config(place: &Place) -> Result<String, String> {
    let path = place.storage().config();
    let at = path.display();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(format!("{at} does not exist: defaults hold"));
        }
        Err(error) => return Err(format!("{at} cannot be read: {error}")),
    };
    match jsonc_parser::parse_to_value(&text, &options()) {
        Ok(Some(JsonValue::Object(_))) => Ok(format!("{at} can be read")),
        Ok(_) => Err(format!("{at} holds no JSON object")),
        Err(error) => Err(format!("{at}: {error}")),
    }
}

/// JSON with comments and trailing commas, and no further liberties.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

async fn daemon(place: &Place) -> Result<String, String> {
    match Client::connect(place).await {
        Ok(client) => Ok(format!("running, version {}", client.hello().server_version)),
        Err(ConnectError::Absent) => Ok("not running".to_owned()),
        Err(error) => Err(error.into_failure(place).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[tokio::test]
    async fn a_home_that_does_not_exist_yet_is_fine() {
        let temp = tempfile::tempdir().unwrap();
        let rows = check(&Place::at(&temp.path().join("new"))).await;
        assert!(rows.iter().all(|row| row.ok), "{rows:?}");
        assert_eq!(
            rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(),
            ["Home", "Socket Path", "Config File", "Daemon"]
        );
    }

    #[test]
    fn a_config_that_does_not_parse_is_found_with_its_place() {
        let temp = tempfile::tempdir().unwrap();
        let place = Place::at(temp.path());
        fs::write(place.storage().config(), "{\"agent\": {}, // fine\n}").unwrap();
        assert!(config(&place).is_ok());
        fs::write(place.storage().config(), "{\n  \"agent\" {}\n}").unwrap();
        assert!(config(&place).unwrap_err().contains("line 2"), "{:?}", config(&place));
        fs::write(place.storage().config(), "[]").unwrap();
        assert!(config(&place).is_err());
    }

    #[test]
    fn an_open_home_and_a_long_path_are_found() {
        let temp = tempfile::tempdir().unwrap();
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(home(&Place::at(temp.path())).is_err());
        assert!(socket_path(&Place::at(Path::new(&format!("/{}", "x".repeat(120))))).is_err());
    }
}
