//! How people point at a resource: by its name where that is safe, else by the end of its id.

use std::collections::BTreeMap;

use providers::model::Identity;

/// The fewest characters of an id that stand for it.
const TAIL: usize = 6;

/// What is to be typed to mean exactly this resource: its name where it is plain ASCII and no other shown
/// resource has it (in any letter case), else the last six characters of its id, more until unique.
pub fn typed_name<'a>(
    identity: &Identity,
    name: Option<&str>,
    shown: impl Iterator<Item = (&'a Identity, Option<&'a str>)> + Clone,
) -> String {
    let others = || shown.clone().filter(|(other, _)| *other != identity);
    if let Some(name) = name.map(str::trim).filter(|name| !name.is_empty())
        && name.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
        && !others().any(|(_, other)| other.is_some_and(|other| other.trim().eq_ignore_ascii_case(name)))
    {
        return name.to_owned();
    }
    let id: Vec<char> = identity.id.as_str().chars().collect();
    for length in TAIL.min(id.len())..id.len() {
        let tail: String = id[id.len() - length..].iter().collect();
        if !others().any(|(other, _)| other.id.as_str().ends_with(&tail)) {
            return tail;
        }
    }
    id.into_iter().collect()
}

/// How a word on the command line was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pointed {
    One(Identity),
    /// Several; each must be told apart by its id.
    Many(Vec<Identity>),
    None,
}

/// Finds what a word points at: a whole id first, then a whole name. Never a part of either.
pub fn point<'a>(word: &str, shown: impl Iterator<Item = (&'a Identity, Option<&'a str>)> + Clone) -> Pointed {
    let by_id: Vec<_> = shown.clone().filter(|(identity, _)| identity.id.as_str() == word).collect();
    let found = if by_id.is_empty() {
        shown.filter(|(_, name)| !word.is_empty() && *name == Some(word)).collect()
    } else {
        by_id
    };
    // An id that was given to another machine stands for the latest of them.
    let mut latest: BTreeMap<_, Identity> = BTreeMap::new();
    for (identity, _) in found {
        latest.insert((identity.account.clone(), identity.kind, identity.id.clone()), identity.clone());
    }
    let mut found: Vec<Identity> = latest.into_values().collect();
    match found.len() {
        0 => Pointed::None,
        1 => Pointed::One(found.remove(0)),
        _ => Pointed::Many(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use providers::model::ResourceKind;

    fn identity(account: &str, id: &str) -> Identity {
        Identity { account: account.into(), kind: ResourceKind::Instance, id: id.into(), generation: 0 }
    }

    /// LIFE-04: names that look alike, equal names, empty names.
    fn shown() -> Vec<(Identity, Option<&'static str>)> {
        vec![
            (identity("runpod", "a1"), Some("train")),
            (identity("runpod", "a2"), Some("train-2")),
            (identity("vast", "b1"), Some("train")),
            (identity("vast", "b2"), None),
            (identity("vast", "b3"), Some("")),
            (identity("lambda", "c1"), Some("TRAIN")),
            (identity("lambda", "c2"), Some("train ")),
            (identity("lambda", "x-000042"), Some("批量")),
            (identity("lambda", "y-000042"), None),
        ]
    }

    #[test]
    fn a_name_is_typed_only_where_it_means_one_resource() {
        let rows = shown();
        let cases = [
            ("a1", "a1"),
            ("a2", "train-2"),
            ("b1", "b1"),
            ("b2", "b2"),
            ("b3", "b3"),
            ("c1", "c1"),
            ("x-000042", "x-000042"),
        ];
        for (id, expected) in cases {
            let (identity, name) = rows.iter().find(|(identity, _)| identity.id.as_str() == id).unwrap();
            let typed = typed_name(identity, *name, rows.iter().map(|(identity, name)| (identity, *name)));
            assert_eq!(typed, expected);
        }
    }

    #[test]
    fn the_end_of_an_id_is_enough_where_it_is_unique() {
        let rows = [(identity("a", "38056189abcdef"), None), (identity("a", "38056189fedcba"), None)];
        let typed = typed_name(&rows[0].0, None, rows.iter().map(|(identity, name)| (identity, *name)));
        assert_eq!(typed, "abcdef");
    }

    #[test]
    fn a_word_points_at_a_whole_id_or_a_whole_name() {
        let rows = shown();
        let find = |word| point(word, rows.iter().map(|(identity, name)| (identity, *name)));
        assert_eq!(find("a1"), Pointed::One(identity("runpod", "a1")));
        assert_eq!(find("train-2"), Pointed::One(identity("runpod", "a2")));
        assert_eq!(find("train"), Pointed::Many(vec![identity("runpod", "a1"), identity("vast", "b1")]));
        assert_eq!(find("trai"), Pointed::None);
        assert_eq!(find(""), Pointed::None);
    }
}
