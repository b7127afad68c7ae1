use std::path::Path;

use crate::tools::kit::Kit;

use super::*;

fn fits(pattern: &str, path: &str) -> bool {
    Pattern::new(pattern, Path::new("/top")).unwrap().fits(Path::new(path))
}

#[test]
fn a_star_stays_in_its_directory() {
    assert!(fits("*.rs", "a.rs") && !fits("*.rs", "src/a.rs"));
    assert!(fits("**/*.rs", "a.rs") && fits("**/*.rs", "x/y/a.rs"));
    assert!(fits("src/", "src/x/a.rs") && !fits("src/", "lib/a.rs"));
    assert!(fits("*.{rs,toml}", "a.toml"));
}

#[test]
fn patterns_may_be_written_from_here_or_from_the_top() {
    assert!(fits("./src/*.rs", "src/a.rs"));
    assert!(fits("/top/src/*.rs", "src/a.rs"));
}

#[test]
fn without_a_slash_any_depth_can_be_asked_for() {
    let root = Path::new("/top");
    let anywhere = Pattern::at_any_depth("*.rs", root).unwrap();
    assert!(anywhere.fits(Path::new("a.rs")) && anywhere.fits(Path::new("x/a.rs")));
    let rooted = Pattern::at_any_depth("x/*.rs", root).unwrap();
    assert!(rooted.fits(Path::new("x/a.rs")) && !rooted.fits(Path::new("y/x/a.rs")));
}

#[test]
fn the_walk_is_narrowed_only_by_what_is_literal() {
    let prefix = |pattern| Pattern::new(pattern, Path::new("/top")).unwrap().prefix();
    assert_eq!(prefix("a/b/**/*.rs"), Path::new("a/b"));
    assert_eq!(prefix("a/b*/c/x.rs"), Path::new("a"));
    assert_eq!(prefix("{a/b,c}/d/x.rs"), Path::new(""));
    assert_eq!(prefix("x.rs"), Path::new(""));
}

#[tokio::test]
async fn a_walk_visits_so_many_files_in_order_and_says_if_there_are_more() {
    let kit = Kit::new().await;
    ["b", "a/z", "c"].iter().for_each(|path| drop(kit.write(path, "")));
    let walk = |max_files| {
        let (root, guard) = (kit.root().to_path_buf(), Guard::new(&kit.ctx.reach));
        let tree = Tree { root, guard, prefix: PathBuf::new(), max_files };
        let mut visited = Vec::new();
        let walked = tree.walk(&kit.cancel, |_, path| {
            visited.push(path.to_path_buf());
            ControlFlow::Continue(())
        });
        (visited, walked)
    };
    let (visited, walked) = walk(3);
    assert_eq!(visited, ["a/z", "b", "c"].map(PathBuf::from));
    assert_eq!(walked, Walked::default());
    let (visited, walked) = walk(2);
    assert_eq!(visited, ["a/z", "b"].map(PathBuf::from));
    assert_eq!(walked.notes(), ["stopped after 50000 files; name a directory"]);
    kit.cancel.cancel();
    assert!(walk(3).0.is_empty());
}
