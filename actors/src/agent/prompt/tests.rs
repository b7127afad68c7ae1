use std::sync::Arc;

use seekclaw_storage::config::model::{Model, Provider};
use tempfile::TempDir;

use super::*;

struct Place {
    home: TempDir,
    workspace: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { home: TempDir::new().unwrap(), workspace: TempDir::new().unwrap() }
    }

    fn in_home(&self, path: &str, text: &str) {
        write(self.home.path(), path, text);
    }

    fn in_workspace(&self, path: &str, text: &str) {
        write(self.workspace.path(), path, text);
    }

    fn context(&self) -> PromptContext {
        let provider = Provider { id: "acme".to_owned(), ..Provider::default() };
        let model = Model { id: "coder".to_owned(), ..Model::default() };
        PromptContext {
            home: self.home.path().to_owned(),
            workspace: Some(self.workspace.path().to_owned()),
            root: self.workspace.path().to_owned(),
            daemon_cwd: self.home.path().to_owned(),
            project_kinds: Vec::new(),
            base: "system/default".to_owned(),
            personality: String::new(),
            mode: Mode::Edit,
            network: true,
            auto_verify: false,
            date: "2026-07-31".to_owned(),
            language: "en".to_owned(),
            candidate: Candidate {
                provider: Arc::new(provider),
                model: Arc::new(model),
                deep_seek_optimized: false,
            },
        }
    }

    fn global(&self) -> PromptContext {
        let root = self.home.path().join("scratch/1");
        PromptContext { workspace: None, root, ..self.context() }
    }
}

fn write(base: &Path, path: &str, text: &str) {
    let file = base.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn plain(context: &PromptContext) -> String {
    assemble(context, &[], &[])
}

/// Whether the parts occur one after the other.
fn in_order(prompt: &str, parts: &[&str]) -> bool {
    let mut rest = prompt;
    parts.iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[test]
fn the_parts_come_in_the_order_of_the_contract() {
    let place = Place::new();
    for (key, text) in [
        ("system/default", "BASE"),
        ("personality/pragmatic", "PERSONALITY"),
        ("system/vision", "VISION"),
        ("mode/plan", "MODE"),
        ("permissions/read_only", "PERMISSIONS"),
        ("project/node", "NODE"),
        ("project/vue", "VUE"),
    ] {
        place.in_home(&format!("prompts/{key}.txt"), text);
    }
    place.in_workspace("AGENTS.md", "AGENTS");
    place.in_workspace(".seekclaw/memory/MEMORY.md", "REMEMBERED");
    let mut context = place.context();
    context.mode = Mode::Plan;
    context.project_kinds = ["git", "node", "vue"].map(str::to_owned).to_vec();
    Arc::make_mut(&mut context.candidate.model).capabilities.vision = true;

    let prompt = assemble(&context, &["SKILL".to_owned()], &["MCP".to_owned()]);
    let front = "BASE\n\nPERSONALITY\n\nVISION\n\nMODE\n\nPERMISSIONS\n\nNODE\n\nVUE\n\n";
    assert!(prompt.starts_with(front), "{prompt}");
    assert!(in_order(&prompt, &["VUE", "AGENTS", "SKILL", "MCP", "REMEMBERED"]), "{prompt}");
}

#[test]
fn our_own_texts_leave_no_variable_unfilled() {
    let place = Place::new();
    for mode in [Mode::Plan, Mode::Readonly, Mode::Edit, Mode::Auto] {
        for mut context in [place.context(), place.global()] {
            context.mode = mode;
            context.project_kinds =
                ["dotnet", "node", "python", "rust", "go", "unity", "vue"].map(str::to_owned).to_vec();
            Arc::make_mut(&mut context.candidate.model).capabilities.vision = true;
            let prompt = plain(&context);
            assert!(!prompt.contains("{{"), "{prompt}");
            assert!(prompt.contains(if mode.may_mutate() { "workspace_write" } else { "read_only" }));
        }
    }
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let place = Place::new();
    place.in_workspace("AGENTS.md", "be brief");
    let context = place.context();
    assert_eq!(plain(&context), plain(&context));
}

#[test]
fn edit_mode_has_no_layer_and_a_blind_model_no_images() {
    let place = Place::new();
    let prompt = plain(&place.context());
    assert!(!prompt.contains("# Mode") && !prompt.contains("Images in this conversation"));
}

#[test]
fn the_workspace_wins_over_the_home_and_both_over_ours() {
    let place = Place::new();
    let context = place.context();
    assert!(plain(&context).starts_with("You are SeekClaw"));
    place.in_home("prompts/system/default.txt", "from the home in {{project}} with {{model}}");
    let project = place.workspace.path().file_name().unwrap().to_str().unwrap();
    assert!(plain(&context).starts_with(&format!("from the home in {project} with coder\n\n")));
    place.in_workspace(".seekclaw/prompts/system/default.txt", "from the workspace");
    assert!(plain(&context).starts_with("from the workspace\n\n"));
}

#[test]
fn a_text_that_nobody_has_is_skipped() {
    let place = Place::new();
    for base in ["system/unknown", "../../secret", "/etc/hostname", ""] {
        let context =
            PromptContext { base: base.to_owned(), personality: "none".to_owned(), ..place.context() };
        assert!(plain(&context).starts_with("# Permissions"), "{base}");
    }
}

#[test]
fn a_global_task_takes_nothing_from_a_project() {
    let place = Place::new();
    place.in_workspace("AGENTS.md", "PROJECT RULES");
    place.in_workspace(".seekclaw/prompts/system/global.txt", "PROJECT BASE");
    place.in_home("memory/MEMORY.md", "HOME MEMORY");
    let prompt = plain(&PromptContext { base: "system/default".to_owned(), ..place.global() });
    assert!(prompt.contains("belongs to no project") && prompt.contains("HOME MEMORY"));
    assert!(!prompt.contains("PROJECT"));
}

#[test]
fn instructions_on_the_way_to_the_daemon_come_last() {
    let place = Place::new();
    place.in_workspace("AGENTS.md", "ROOT on {{os}}");
    place.in_workspace("a/AGENTS.md", "MIDDLE");
    place.in_workspace("a/b/AGENTS.md", "DEEP");
    place.in_workspace("other/AGENTS.md", "ELSEWHERE");
    let mut context = place.context();
    assert!(!plain(&context).contains("MIDDLE"));
    context.daemon_cwd = place.workspace.path().join("a/b");
    let prompt = plain(&context);
    let root = format!("ROOT on {}", std::env::consts::OS);
    let parts = ["## AGENTS.md", &root, "## a/AGENTS.md", "MIDDLE", "## a/b/AGENTS.md", "DEEP"];
    assert!(in_order(&prompt, &parts), "{prompt}");
    assert!(!prompt.contains("ELSEWHERE"));
}

#[test]
fn long_documents_keep_their_ends() {
    let place = Place::new();
    let long = format!("FIRST{}LAST", "x".repeat(100_000));
    place.in_workspace("AGENTS.md", &long);
    place.in_workspace(".seekclaw/memory/MEMORY.md", &long);
    let prompt = assemble(&place.context(), std::slice::from_ref(&long), &[]);
    for label in ["AGENTS.md", "this skill", "MEMORY.md"] {
        assert!(prompt.contains(&format!("bytes of {label} left out here")), "{label}");
    }
    assert_eq!((prompt.matches("FIRST").count(), prompt.matches("LAST").count()), (3, 3));
    assert!(prompt.len() < 3 * 40_000 + 10_000);
}

#[test]
fn documents_cannot_multiply_each_other() {
    let place = Place::new();
    place.in_workspace("AGENTS.md", &"{{memory}}{{agents_md}}".repeat(100));
    place.in_workspace(".seekclaw/memory/MEMORY.md", &"m".repeat(30_000));
    place.in_workspace(".seekclaw/prompts/system/default.txt", "{{memory}}");
    let prompt = plain(&place.context());
    assert!(prompt.len() < 80_000);
    assert!(prompt.contains("{{memory}}{{agents_md}}"));
}

#[test]
fn a_huge_file_is_named_and_not_read() {
    let place = Place::new();
    place.in_workspace("AGENTS.md", &"x".repeat(2 * 1024 * 1024));
    assert!(plain(&place.context()).contains("[left out: this file has 2097152 bytes"));
}

#[cfg(unix)]
#[test]
fn links_out_of_the_workspace_are_not_followed() {
    use std::os::unix::fs::symlink;

    let place = Place::new();
    place.in_home("secret.txt", "SECRET");
    let secret = place.home.path().join("secret.txt");
    place.in_workspace("docs/agents.md", "INSIDE");
    std::fs::create_dir_all(place.workspace.path().join(".seekclaw/prompts/system")).unwrap();
    std::fs::create_dir_all(place.workspace.path().join(".seekclaw/memory")).unwrap();
    for link in [".seekclaw/prompts/system/default.txt", ".seekclaw/memory/MEMORY.md"] {
        symlink(&secret, place.workspace.path().join(link)).unwrap();
    }
    symlink(place.workspace.path().join("docs/agents.md"), place.workspace.path().join("AGENTS.md")).unwrap();
    let prompt = plain(&place.context());
    assert!(!prompt.contains("SECRET"));
    assert!(prompt.contains("INSIDE"));
    assert!(prompt.starts_with("You are SeekClaw"));
}

#[test]
fn locales_become_language_tags() {
    for (locale, tag) in
        [("de_DE.UTF-8", "de-DE"), ("zh_CN@x", "zh-CN"), ("C.UTF-8", "en"), ("POSIX", "en"), ("", "en")]
    {
        assert_eq!(language_tag(locale), tag);
    }
    assert_eq!(today().len(), 10);
}
