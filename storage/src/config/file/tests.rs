use std::convert::Infallible;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::config::model::{Model, Profile, Provider};

fn home() -> (TempDir, ConfigFile<Config>) {
    let folder = tempfile::tempdir().unwrap();
    let file = ConfigFile::new(folder.path().join("config.json"));
    (folder, file)
}

fn with(text: &str) -> (TempDir, ConfigFile<Config>) {
    let (folder, file) = home();
    fs::write(file.path(), text).unwrap();
    (folder, file)
}

fn text(file: &ConfigFile<Config>) -> String {
    fs::read_to_string(file.path()).unwrap()
}

fn change(file: &ConfigFile<Config>, change: impl Fn(&mut Config)) -> Updated<Config, ()> {
    file.update(|config| {
        change(config);
        Ok::<_, Infallible>(())
    })
    .unwrap()
}

fn copies(folder: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_str().unwrap().contains("config.json.broken-")).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn provider(id: &str) -> Provider {
    Provider { id: id.to_owned(), base_url: "http://x".to_owned(), ..Provider::default() }
}

#[test]
fn missing_file_is_the_default_and_is_not_made() {
    let (_folder, file) = home();
    assert_eq!(file.load().unwrap(), Config::default());
    assert!(!file.path().exists() && file.stamp().is_none());
}

#[test]
fn comments_trailing_commas_nulls_and_fractions_are_accepted() {
    let (_folder, file) = with(
        "\u{feff}// mine\n{ \"agent\": { \"maxSteps\": 12.0, /* x */ \"mode\": null, },\n \"providers\": [ {\"id\": \"a\", \"apiKey\": null,}, ], }\n",
    );
    let config = file.load().unwrap();
    assert_eq!((config.agent.max_steps, config.agent.mode.as_str()), (12, "edit"));
    assert_eq!(config.providers[0].id, "a");
}

#[test]
fn syntax_error_says_where_and_is_kept_aside_once() {
    let (folder, file) = with("{\n  \"agent\": {\n    \"maxSteps\": ,\n  }\n}");
    let expected = format!("Invalid config: {}: line 3, column 17", file.path().display());
    for _ in 0..3 {
        assert_eq!(file.load().unwrap_err().to_string(), expected);
    }
    let [copy] = copies(&folder).try_into().unwrap();
    assert_eq!(fs::read_to_string(&copy).unwrap(), text(&file));
    assert_eq!(mode(&copy), 0o600);
    let name = copy.file_name().unwrap().to_str().unwrap();
    let stamp = name.strip_prefix("config.json.broken-").unwrap();
    assert!(stamp.len() == 16 && stamp.ends_with('Z') && stamp.as_bytes()[8] == b'T', "{name}");

    fs::write(file.path(), "{").unwrap();
    file.load().unwrap_err();
    assert_eq!(copies(&folder).len(), 2);
}

#[test]
fn invalid_file_is_never_written() {
    for content in ["", "{", "[]", "nonsense", "{'agent': {}}", "{\"a\": 1 \"b\": 2}", "{\"a\":1,\"a\":2}"] {
        let (_folder, file) = with(content);
        let refused = file.update(|config| {
            config.agent.max_steps = 1;
            Ok::<_, Infallible>(())
        });
        assert!(matches!(refused, Err(UpdateError::Config(ConfigError::Invalid(_)))), "{content}");
        assert_eq!(text(&file), content);
    }
}

#[test]
fn bytes_that_are_no_text_are_invalid_where_they_are() {
    let (_folder, file) = home();
    fs::write(file.path(), b"{\n  \"a\": \"\xff\"}").unwrap();
    let error = file.load().unwrap_err().to_string();
    assert!(error.ends_with("line 2, column 9"), "{error}");
}

#[test]
fn wrong_type_names_its_key_and_place_but_not_its_value() {
    let cases = [
        (
            r#"{"agent": {"maxSteps": "secret"}}"#,
            "column 24: agent.maxSteps: expected a number, found a string",
        ),
        (
            r#"{"providers": [{"id": "a"}, {"headers": "secret"}]}"#,
            "column 41: providers[1].headers: expected an object, found a string",
        ),
        (
            r#"{"providers": [{"models": [{"id": "m"}, {"tags": [1]}]}]}"#,
            "column 51: providers[0].models[1].tags[0]: expected a string, found a number",
        ),
        (
            r#"{"providers": [{"kind": "secret, expected"}]}"#,
            "column 25: providers[0].kind: expected `openai` or `anthropic`, found a string",
        ),
        (r#"{"agent": {"maxSteps": -3}}"#, "column 24: agent.maxSteps: number out of range: -3"),
        (r#"{"agent": 7}"#, "column 11: agent: expected an object, found a number"),
    ];
    for (content, expected) in cases {
        let (folder, file) = with(content);
        let error = file.load().unwrap_err().to_string();
        assert_eq!(error, format!("Invalid config: {}: line 1, {expected}", file.path().display()));
        assert_eq!(copies(&folder).len(), 1);
    }
}

#[test]
fn update_changes_only_what_differs() {
    let before = r#"// my settings
{
  "$schema": "x", // foreign
  "agent": {
    "maxSteps": 12, // enough
    "theirs": { "a": [1, 2] },
  },
  /* last */
  "routing": { "fallback": ["a/b"] },
}
"#;
    let (_folder, file) = with(before);
    let updated = change(&file, |config| {
        config.agent.max_steps = 20;
        config.agent.mode = "plan".to_owned();
        config.active_profile = "work".to_owned();
    });
    assert!(updated.changed);
    assert_eq!(file.load().unwrap(), updated.config);
    insta::assert_snapshot!(text(&file));
}

#[test]
fn first_update_writes_only_what_is_not_default() {
    let (_folder, file) = home();
    change(&file, |config| config.agent.max_steps = 5);
    assert_eq!(text(&file), "{\n  \"agent\": {\n    \"maxSteps\": 5\n  }\n}\n");
    assert_eq!(mode(file.path()), 0o600);
}

#[test]
fn update_without_a_change_writes_nothing() {
    let (_folder, file) = with("{ }");
    let stamp = file.stamp();
    assert!(!change(&file, |config| config.agent.max_steps = 40).changed);
    assert_eq!((text(&file).as_str(), file.stamp()), ("{ }", stamp));
}

#[test]
fn providers_are_edited_in_place_and_keep_foreign_keys() {
    let (_folder, file) = with(
        r#"{
  "providers": [
    // the first
    { "id": "a", "x-note": 1, "models": [{ "id": "m", "x-model": true }] },
    { "id": "b", "x-note": 2, "apiKey": "k" }, // the second
    { "id": "c", "x-note": 3 }
  ]
}"#,
    );
    change(&file, |config| {
        config.providers.remove(0);
        config.providers[0].api_key = None;
        config.providers[1].priority = 4;
        config.providers.push(Provider { models: vec![Model::default()], ..provider("d\"\\\n\u{1}") });
    });
    let config = file.load().unwrap();
    let ids: Vec<&str> = config.providers.iter().map(|provider| provider.id.as_str()).collect();
    assert_eq!(ids, ["b", "c", "d\"\\\n\u{1}"]);
    let written = text(&file);
    for kept in ["\"x-note\": 2", "// the second", "\"x-note\": 3"] {
        assert!(written.contains(kept), "{kept} in {written}");
    }
    assert!(!written.contains("apiKey") && !written.contains("x-model"), "{written}");
}

#[test]
fn reordered_providers_keep_foreign_keys() {
    let (_folder, file) = with(r#"{"providers": [{"id": "a", "x": 1}, {"id": "b", "x": 2}]}"#);
    let updated = change(&file, |config| config.providers.reverse());
    assert_eq!(file.load().unwrap(), updated.config);
    let written: Value = serde_json::from_str(&text(&file)).unwrap();
    assert_eq!(written["providers"][0]["x"], 2);
    assert_eq!(written["providers"][1]["x"], 1);
}

#[test]
fn maps_gain_and_lose_members() {
    let (_folder, file) = with(
        r#"{ "profiles": { "old": {}, "kept": { "x": 1 } }, "routing": { "strategies": { "s": ["a"] } } }"#,
    );
    let updated = change(&file, |config| {
        config.profiles.remove("old");
        config.profiles.insert("new".to_owned(), Profile { temperature: Some(0.5), ..Profile::default() });
        config.routing.strategies.insert("s".to_owned(), vec!["b".to_owned(), "c".to_owned()]);
    });
    assert_eq!(file.load().unwrap(), updated.config);
    assert!(text(&file).contains(r#""kept": { "x": 1 }"#), "{}", text(&file));
}

#[test]
fn value_that_json_cannot_hold_is_refused() {
    let (_folder, file) = with("{}");
    let refused = file.update(|config| {
        let profile = Profile { temperature: Some(f64::NAN), ..Profile::default() };
        config.profiles.insert("p".to_owned(), profile);
        Ok::<_, Infallible>(())
    });
    assert!(matches!(refused, Err(UpdateError::Config(ConfigError::Inexpressible { .. }))), "{refused:?}");
    assert_eq!(text(&file), "{}");
}

#[test]
fn refused_change_writes_nothing() {
    let (_folder, file) = with("{}");
    let refused = file.update(|config| {
        config.agent.max_steps = 1;
        Err::<(), _>("no")
    });
    assert!(matches!(refused, Err(UpdateError::Refused("no"))));
    assert_eq!(text(&file), "{}");
}

#[test]
fn change_on_disk_meanwhile_is_taken_into_account() {
    let (_folder, file) = with("{}");
    let mut runs = 0;
    file.update(|config| {
        runs += 1;
        if runs == 1 {
            fs::write(file.path(), r#"{"foreign": 1}"#).unwrap();
        }
        config.agent.max_steps = 3;
        Ok::<_, Infallible>(())
    })
    .unwrap();
    let written: Value = serde_json::from_str(&text(&file)).unwrap();
    assert_eq!((runs, &written["foreign"], &written["agent"]["maxSteps"]), (2, &1.into(), &3.into()));
}

#[test]
fn link_stays_a_link_and_its_target_is_written() {
    let (folder, file) = home();
    let dotfiles = folder.path().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    symlink("dotfiles/mine.json", file.path()).unwrap();
    for steps in [3, 4] {
        // The first time the link leads nowhere.
        change(&file, |config| config.agent.max_steps = steps);
        assert!(fs::symlink_metadata(file.path()).unwrap().is_symlink());
        assert_eq!(file.load().unwrap().agent.max_steps, steps);
    }
    assert!(dotfiles.join("mine.json").is_file());
}

#[test]
fn open_config_becomes_private_when_it_is_read() {
    let (_folder, file) = with("{}");
    fs::set_permissions(file.path(), Permissions::from_mode(0o644)).unwrap();
    file.load().unwrap();
    assert_eq!(mode(file.path()), 0o600);
}

#[test]
fn torn_write_of_a_crash_is_invisible_and_cleaned_up_by_the_next() {
    let (folder, file) = with(r#"{"agent": {"maxSteps": 7}}"#);
    let torn = folder.path().join(".config.json.Ab12.tmp");
    fs::write(&torn, r#"{"agent": {"maxSt"#).unwrap();
    assert_eq!(file.load().unwrap().agent.max_steps, 7);
    change(&file, |config| config.agent.max_steps = 8);
    assert_eq!(file.load().unwrap().agent.max_steps, 8);
    assert!(!torn.exists());
}

#[test]
fn directory_or_pipe_in_the_place_of_the_file_is_an_error() {
    let (_folder, file) = home();
    fs::create_dir(file.path()).unwrap();
    assert!(matches!(file.load(), Err(ConfigError::Read { .. })));
}

#[test]
fn workspace_config_keeps_its_mode_and_makes_its_folder() {
    let root = tempfile::tempdir().unwrap();
    let file = ConfigFile::of_workspace(root.path());
    let set = |mode: &str| {
        file.update(|config| {
            config.mode = Some(mode.to_owned());
            Ok::<_, Infallible>(())
        })
        .unwrap();
    };
    set("plan");
    fs::set_permissions(file.path(), Permissions::from_mode(0o640)).unwrap();
    set("auto");
    assert_eq!(mode(file.path()), 0o640);
    assert_eq!(file.load().unwrap().mode.as_deref(), Some("auto"));
}
