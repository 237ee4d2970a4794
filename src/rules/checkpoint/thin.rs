//! Which of a machine's copies make room for later ones.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{KeepRule, Method, Saved};

/// Those of a machine's copies that go: of what is copied alike, neither one of the latest, nor the last one of one of
/// the latest days. The last one always stays, the last one that leaves nothing out as well, and so does what lies
/// anywhere but below its method's folder.
pub fn surplus<'a>(copies: &'a [Saved], keep: KeepRule, zone: &TimeZone) -> Vec<&'a Saved> {
    let mut latest: Vec<&Saved> = copies.iter().filter(|copy| place_of(copy).is_some()).collect();
    latest.sort_by_key(|copy| std::cmp::Reverse((copy.proof.at, copy.op)));
    let mut going = Vec::new();
    while let Some(first) = latest.first().copied() {
        let (alike, others): (Vec<&Saved>, Vec<&Saved>) = latest.iter().partition(|copy| is_alike(first, copy));
        let mut days: BTreeSet<Date> = BTreeSet::new();
        let last_whole = alike.iter().find(|copy| copy.proof.left_out == 0).map(|copy| copy.op);
        for (at, copy) in alike.into_iter().enumerate() {
            let is_last_of_day = days.insert(zone.to_datetime(copy.proof.at).date());
            let stays =
                at < keep.last.max(1) || (is_last_of_day && days.len() <= keep.days) || last_whole == Some(copy.op);
            if !stays {
                going.push(copy);
            }
        }
        latest = others;
    }
    going
}

/// The same files of the same machine at the same place: the later one takes the place of the earlier.
fn is_alike(one: &Saved, other: &Saved) -> bool {
    one.identity == other.identity && one.recipe.paths == other.recipe.paths && one.recipe.method == other.recipe.method
}

/// Where a copy lies on this machine; `None` when that is no folder of its own below that of its method.
pub fn place_of(copy: &Saved) -> Option<PathBuf> {
    let Method::Copy { to } = &copy.recipe.method else { return None };
    let (to, place) = (Path::new(to), Path::new(&copy.proof.place));
    let below = place.strip_prefix(to).ok().filter(|_| to.is_absolute())?;
    let mut parts = below.components().peekable();
    parts.peek()?;
    parts.all(|part| matches!(part, Component::Normal(_))).then(|| place.to_owned())
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::rules::checkpoint::{Proof, QUIET, Recipe};
    use crate::rules::saga::OpId;
    use crate::rules::samples::identity;

    fn saved(op: i64, at: Timestamp) -> Saved {
        let recipe = Recipe {
            name: "default".to_owned(),
            paths: vec!["/workspace/out".to_owned()],
            method: Method::Copy { to: "/home/ana/checkpoints".to_owned() },
            prepare: None,
            quiet: QUIET,
        };
        let place = format!("/home/ana/checkpoints/vast-team/trainer-31/{op}");
        let proof = Proof { at, files: 1, bytes: 1, left_out: 0, place, manifest: String::new() };
        Saved { op: OpId(op), identity: identity("team", "31"), recipe, proof }
    }

    fn day_and_hour(text: &str) -> Timestamp {
        format!("2026-11-{text}:00:00Z").parse().unwrap()
    }

    fn going(copies: &[Saved], last: usize, days: usize) -> Vec<i64> {
        surplus(copies, KeepRule { last, days }, &TimeZone::UTC).iter().map(|copy| copy.op.0).collect()
    }

    #[rstest]
    #[case::the_latest_and_the_last_of_each_day(2, 3, &[3, 2])]
    #[case::only_the_latest(2, 0, &[4, 3, 2, 1])]
    #[case::only_the_last_of_each_day(1, 9, &[5, 3, 2])]
    #[case::nothing_of_few(9, 9, &[])]
    fn what_makes_room_is_neither_late_nor_the_last_of_its_day(
        #[case] last: usize,
        #[case] days: usize,
        #[case] expected: &[i64],
    ) {
        let times = ["27T10", "28T09", "28T10", "28T11", "30T09", "30T10"];
        let copies: Vec<Saved> = (1..).zip(times).map(|(op, at)| saved(op, day_and_hour(at))).collect();
        assert_eq!(going(&copies, last, days), expected);
    }

    #[test]
    fn a_day_is_one_of_the_persons_own_zone() {
        let copies =
            [saved(1, day_and_hour("28T15")), saved(2, day_and_hour("28T17")), saved(3, day_and_hour("28T18"))];
        let keep = KeepRule { last: 1, days: 2 };
        let zone = TimeZone::fixed(jiff::tz::offset(8));
        let ops: Vec<i64> = surplus(&copies, keep, &zone).iter().map(|copy| copy.op.0).collect();
        assert_eq!(ops, [2], "15:00 UTC is the day before there");
    }

    #[test]
    fn what_is_copied_otherwise_takes_no_place_of_it() {
        let mut by_hand = saved(1, day_and_hour("01T10"));
        by_hand.recipe.paths = vec!["/data".to_owned()];
        let copies = [by_hand, saved(2, day_and_hour("29T10")), saved(3, day_and_hour("30T10"))];
        assert_eq!(going(&copies, 1, 0), [2]);
    }

    #[rstest]
    #[case("/home/ana/checkpoints")]
    #[case("/home/ana/checkpoints/")]
    #[case("/home/ana/checkpoints/../ssh")]
    #[case("/home/ana/checkpoints-old/x")]
    #[case("/")]
    #[case("checkpoints/x")]
    #[case("")]
    fn what_lies_anywhere_else_never_goes(#[case] place: &str) {
        let mut elsewhere = saved(1, day_and_hour("01T10"));
        elsewhere.proof.place = place.to_owned();
        assert_eq!(place_of(&elsewhere), None);
        assert_eq!(going(&[elsewhere, saved(2, day_and_hour("30T10"))], 1, 0), [] as [i64; 0]);
    }

    /// A file that is being written at every copy is in none of them but an early one.
    #[test]
    fn the_last_one_that_leaves_nothing_out_stays() {
        let mut copies: Vec<Saved> = (1..=5).map(|op| saved(op, day_and_hour(&format!("2{op}T10")))).collect();
        copies[3..].iter_mut().for_each(|copy| copy.proof.left_out = 1);
        assert_eq!(going(&copies, 1, 0), [4, 2, 1]);
    }

    #[test]
    fn what_another_method_made_is_not_ours_to_delete() {
        let mut pushed = saved(1, day_and_hour("01T10"));
        pushed.recipe.method = Method::Volume;
        assert_eq!(place_of(&pushed), None);
    }

    proptest! {
        #[test]
        fn the_last_one_stays_and_what_stays_needs_no_more_thinning(
            hours in prop::collection::vec(0_i64..2000, 0..40),
            last in 0_usize..5,
            days in 0_usize..9,
        ) {
            let start = day_and_hour("01T00");
            let copies: Vec<Saved> =
                (1..).zip(&hours).map(|(op, hour)| saved(op, start + SignedDuration::from_hours(*hour))).collect();
            let keep = KeepRule { last, days };
            let going: BTreeSet<OpId> = surplus(&copies, keep, &TimeZone::UTC).iter().map(|copy| copy.op).collect();
            if let Some(newest) = copies.iter().max_by_key(|copy| (copy.proof.at, copy.op)) {
                prop_assert!(!going.contains(&newest.op));
            }
            let staying: Vec<Saved> = copies.iter().filter(|copy| !going.contains(&copy.op)).cloned().collect();
            prop_assert!(staying.len() >= last.max(1).min(copies.len()));
            prop_assert!(staying.len() <= last.max(1) + days);
            prop_assert!(surplus(&staying, keep, &TimeZone::UTC).is_empty());
        }
    }
}
