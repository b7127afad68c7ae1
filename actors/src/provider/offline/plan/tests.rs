use super::*;

fn list(path: &str) -> Wish {
    Wish::List { path: path.to_owned() }
}

fn read(path: &str) -> Wish {
    Wish::Read { path: path.to_owned() }
}

fn find(text: &str, path: Option<&str>) -> Wish {
    Wish::Find { text: text.to_owned(), path: path.map(str::to_owned) }
}

fn replace(old: &str, new: &str, path: &str) -> Wish {
    Wish::Replace { old: old.to_owned(), new: new.to_owned(), path: path.to_owned() }
}

fn run(command: &str) -> Wish {
    Wish::Run { command: command.to_owned() }
}

#[test]
fn the_requests_of_the_manual_are_understood() {
    let cases: &[(&str, Vec<Wish>)] = &[
        ("list files", vec![list(".")]),
        ("List the files in src", vec![list("src")]),
        ("ls actors/src", vec![list("actors/src")]),
        ("list all files in this project, please!", vec![list(".")]),
        ("read README.md", vec![read("README.md")]),
        ("Please open the file \"my notes.txt\".", vec![read("my notes.txt")]),
        ("cat ./a/b.rs", vec![read("./a/b.rs")]),
        ("what is in Cargo.toml?", vec![read("Cargo.toml")]),
        ("find TODO", vec![find("TODO", None)]),
        ("search for \"fn main\" in src", vec![find("fn main", Some("src"))]),
        ("where is Decoder?", vec![find("Decoder", None)]),
        ("find *.rs", vec![Wish::Match { pattern: "*.rs".to_owned() }]),
        ("replace foo with bar in a.txt", vec![replace("foo", "bar", "a.txt")]),
        ("change \"in a\" to \"with b\" in `c d.txt`", vec![replace("in a", "with b", "c d.txt")]),
        ("run cargo test --all", vec![run("cargo test --all")]),
        ("run `echo a; echo b`", vec![run("echo a; echo b")]),
        (
            "write \"x y\" to out.txt",
            vec![Wish::Write { path: "out.txt".to_owned(), content: "x y".to_owned() }],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(asked(text).wishes, *expected, "{text}");
    }
}

#[test]
fn requests_are_combined_with_and_then_and_new_lines() {
    let cases: &[(&str, Vec<Wish>)] = &[
        ("list files and read README.md", vec![list("."), read("README.md")]),
        (
            "read a.txt, then replace x with y in a.txt, and then run cat a.txt",
            vec![read("a.txt"), replace("x", "y", "a.txt"), run("cat a.txt")],
        ),
        ("read a\nfind b", vec![read("a"), find("b", None)]),
        ("replace cat and dog with bird in a.txt", vec![replace("cat and dog", "bird", "a.txt")]),
        ("run \"echo a and list b\" and read c", vec![run("echo a and list b"), read("c")]),
        ("run echo salt and pepper", vec![run("echo salt and pepper")]),
    ];
    for (text, expected) in cases {
        assert_eq!(asked(text).wishes, *expected, "{text}");
    }
}

#[test]
fn what_needs_a_model_is_no_wish() {
    for text in [
        "what is in this folder?",
        "hello",
        "be brief",
        "fix the bug",
        "explain this project",
        "list the three biggest files by size",
        "",
    ] {
        assert_eq!(asked(text).wishes, [], "{text}");
    }
}

#[test]
fn a_text_is_searched_literally() {
    assert_eq!(find("a.b(c)", None).arguments(), r#"{"pattern":"a\\.b\\(c\\)"}"#);
}

#[test]
fn what_is_not_understood_beside_a_wish_is_kept() {
    let both = asked("list files and delete README.md\nread a.txt\nthanks\nmake it nicer");
    assert_eq!(both.wishes, [list("."), read("a.txt")]);
    assert_eq!(both.unknown, ["delete README.md", "make it nicer"]);
}

#[test]
fn arguments_are_written_in_reading_order() {
    let cases = [
        (
            replace("a", "b", "z.txt"),
            r#"{"path":"z.txt","old_string":"a","new_string":"b","replace_all":true}"#,
        ),
        (find("x", Some("src")), r#"{"path":"src","pattern":"x"}"#),
        (
            Wish::Write { path: "z".to_owned(), content: "\"a\"".to_owned() },
            r#"{"path":"z","content":"\"a\""}"#,
        ),
        (run("ls"), r#"{"command":"ls"}"#),
    ];
    for (wish, expected) in cases {
        assert_eq!(wish.arguments(), expected);
    }
}
