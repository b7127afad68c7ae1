use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn locate(variables: &[(&str, &str)]) -> Result<Home, HomeError> {
    Home::locate(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
}

#[test]
fn seekclaw_home_wins_and_empty_counts_as_unset() {
    assert_eq!(locate(&[("SEEKCLAW_HOME", "/a/b"), ("HOME", "/h")]).unwrap().path(), Path::new("/a/b"));
    assert_eq!(locate(&[("SEEKCLAW_HOME", ""), ("HOME", "/h")]).unwrap().path(), Path::new("/h/.seekclaw"));
    assert!(matches!(locate(&[("HOME", "")]), Err(HomeError::Unknown)));
}

#[test]
fn relative_home_becomes_absolute() {
    let home = locate(&[("SEEKCLAW_HOME", "some/where")]).unwrap();
    assert_eq!(home.path(), std::env::current_dir().unwrap().join("some/where"));
}

#[test]
fn prepare_creates_everything_private() {
    let root = tempfile::tempdir().unwrap();
    let home = Home::at(&root.path().join("deep/home")).unwrap();
    home.prepare().unwrap();
    home.prepare().unwrap();
    assert_eq!(mode(home.path()), 0o700);
    for folder in [home.logs(), home.skills(), home.prompts(), home.memory(), home.blobs(), home.scratch()] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
}

#[test]
fn open_home_of_our_own_becomes_private() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("home");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    Home::at(&path).unwrap().prepare().unwrap();
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn shared_directory_is_refused_and_keeps_its_mode() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("shared");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o1777)).unwrap();
    assert!(matches!(Home::at(&path).unwrap().prepare(), Err(HomeError::Shared { .. })));
    assert_eq!(mode(&path), 0o1777);
}

#[test]
fn file_in_the_way_is_named() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("file");
    fs::write(&path, "x").unwrap();
    for place in [path.clone(), path.join("below")] {
        let error = Home::at(&place).unwrap().prepare().unwrap_err();
        assert!(matches!(&error, HomeError::NotADirectory { path } if *path == place), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"x");
}

#[test]
fn file_in_the_place_of_a_folder_is_named() {
    let root = tempfile::tempdir().unwrap();
    let home = Home::at(&root.path().join("home")).unwrap();
    fs::create_dir(home.path()).unwrap();
    fs::write(home.logs(), "x").unwrap();
    let text = home.prepare().unwrap_err().to_string();
    assert!(text.contains(home.logs().to_str().unwrap()), "{text}");
}

#[test]
fn socket_path_that_does_not_fit_says_its_length() {
    let fits = MAX_SOCKET_PATH_BYTES - "/daemon.sock".len();
    let exact = Home::at(Path::new(&format!("/{}", "h".repeat(fits - 1)))).unwrap();
    exact.check_socket_path().unwrap();
    let long = Home::at(Path::new(&format!("/{}", "h".repeat(fits)))).unwrap();
    let text = long.prepare().unwrap_err().to_string();
    assert!(text.contains(&format!("is {} bytes long", MAX_SOCKET_PATH_BYTES + 1)), "{text}");
}
