//! Paths as somebody writes them: what is to be brought to safety, and where to.

use std::path::{Path, PathBuf};

/// Why a text is no path on a machine that could be brought to safety.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPath {
    NotAbsolute,
    LineBreak,
    /// It holds `.` or `..`.
    Dots,
    WholeDisk,
}

/// A path on a machine, absolute and without parts that say nothing.
pub fn on_machine(text: &str) -> Result<String, NoPath> {
    if !text.starts_with('/') {
        Err(NoPath::NotAbsolute)
    } else if text.contains(['\n', '\0']) {
        Err(NoPath::LineBreak)
    } else if text.split('/').any(|part| matches!(part, "." | "..")) {
        Err(NoPath::Dots)
    } else if text.trim_matches('/').is_empty() {
        Err(NoPath::WholeDisk)
    } else {
        Ok(format!("/{}", text.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")))
    }
}

/// A folder of this machine, where `~` is the person's own; `None` when it is not absolute.
pub fn of_ours(text: &str, home: Option<&Path>) -> Option<String> {
    let path = match (text.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    };
    path.is_absolute().then(|| path.to_string_lossy().into_owned())
}

/// Whether a path is another one, or lies below it.
pub fn is_within(path: &str, above: &str) -> bool {
    path.strip_prefix(above.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/workspace//out/", Ok("/workspace/out"))]
    #[case("/data/实验 1", Ok("/data/实验 1"))]
    #[case("workspace", Err(NoPath::NotAbsolute))]
    #[case("~/out", Err(NoPath::NotAbsolute))]
    #[case("/data/../etc", Err(NoPath::Dots))]
    #[case("/a\nb", Err(NoPath::LineBreak))]
    #[case("//", Err(NoPath::WholeDisk))]
    fn a_path_on_a_machine_says_where_it_leads(#[case] text: &str, #[case] expected: Result<&str, NoPath>) {
        assert_eq!(on_machine(text).as_deref(), expected.as_ref().copied());
    }

    #[cfg(unix)]
    #[rstest]
    #[case("~/copies", Some("/home/u/copies"))]
    #[case("~", Some("/home/u/"))]
    #[case("~other/copies", None)]
    #[case("copies", None)]
    #[case("/data/copies", Some("/data/copies"))]
    fn a_folder_of_ours_is_absolute(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(of_ours(text, Some(Path::new("/home/u"))).as_deref(), expected);
    }

    #[rstest]
    #[case("/a/b", "/a", true)]
    #[case("/a", "/a", true)]
    #[case("/a/b", "/a/", true)]
    #[case("/ab", "/a", false)]
    #[case("/a", "/a/b", false)]
    fn what_lies_below_a_path_is_within_it(#[case] path: &str, #[case] above: &str, #[case] expected: bool) {
        assert_eq!(is_within(path, above), expected);
    }
}
