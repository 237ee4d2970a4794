use std::process::Stdio;

use rstest::rstest;
use tokio::process::Command;

use crate::rules::streams::Trouble;

use super::*;

/// A stand-in for `ssh`: a shell script.
fn stand_in(script: &str) -> Child {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true).spawn().unwrap()
}

/// What `ssh` does with a command that the far shell ran to its end.
fn far(command: &str) -> String {
    format!("sh -c {}", shell_words::quote(&wrapped(command)))
}

fn ended(code: i32, complaint: &str) -> Ran {
    Ran::Ended { code, complaint: complaint.to_owned() }
}

fn not_begun(silent: bool, message: &str) -> Ran {
    Ran::NotBegun { silent, message: message.to_owned() }
}

#[rstest]
#[case::well(&far("true"), ended(0, ""))]
#[case::badly(&far("echo no right >&2; exit 3"), ended(3, "no right"))]
// 255 is what `ssh` itself fails with; a command may say the same.
#[case::with_255(&far("exit 255"), ended(255, ""))]
#[case::with_a_comment(&far("true # all is well"), ended(0, ""))]
#[case::with_quotes(&far("test \"$(echo 'a b')\" = 'a b'"), ended(0, ""))]
#[case::what_it_leaves_behind_is_not_waited_for(&far("sleep 60 & true"), ended(0, ""))]
#[case::cut_by_the_stop(&format!("echo {BEGUN}; echo Connection to h closed by remote host. >&2; exit 255"), Ran::Cut)]
#[case::refused(
    "echo 'ssh: connect to host h port 22: Connection refused' >&2; exit 255",
    not_begun(true, "ssh: connect to host h port 22: Connection refused")
)]
#[case::silent(
    "echo 'ssh: connect to host h port 22: Connection timed out' >&2; exit 255",
    not_begun(true, "ssh: connect to host h port 22: Connection timed out")
)]
#[case::key_refused(
    "echo 'root@h: Permission denied (publickey).' >&2; exit 255",
    not_begun(false, "root@h: Permission denied (publickey).")
)]
#[case::no_such_name(
    "echo 'ssh: Could not resolve hostname h: Name or service not known' >&2; exit 255",
    not_begun(false, "ssh: Could not resolve hostname h: Name or service not known")
)]
#[case::no_word("exit 255", not_begun(false, "ssh ended without a word"))]
#[tokio::test]
async fn the_end_of_a_command_and_of_its_connection_are_told_apart(#[case] script: &str, #[case] expected: Ran) {
    assert_eq!(follow(stand_in(script), "h", LONGEST).await, expected);
}

#[tokio::test]
async fn a_command_that_does_not_end_is_in_doubt_once_it_began() {
    let longest = Duration::from_millis(300);
    let begun = format!("echo {BEGUN}; exec sleep 60");
    assert_eq!(follow(stand_in(&begun), "h", longest).await, Ran::TooLong { after: longest });
    assert!(matches!(follow(stand_in("exec sleep 60"), "h", longest).await, Ran::NotBegun { silent: false, .. }));
}

#[tokio::test]
async fn a_stop_is_remembered_by_whoever_comes_next_and_forgotten_when_the_machine_is_back() {
    let home = tempfile::tempdir().unwrap();
    let streams = Streams::new(home.path().join("known_hosts"), crate::runtime::Inbox::new().1);
    let shell = || OwnSsh::new(home.path(), &streams);
    let (account, id) = (AccountName::from("own"), ResourceId::from("a b/../c"));
    let stop = OwnStop { accepted: "2026-11-30T10:00:00Z".parse().unwrap(), off_since: None };
    assert_eq!(shell().own_stop(&account, &id).await, None);
    shell().note_own_stop(&account, &id, Some(stop)).await;
    assert_eq!(shell().own_stop(&account, &id).await, Some(stop));
    assert_eq!(shell().own_stop(&account, &"other".into()).await, None);
    assert_eq!(std::fs::read_dir(home.path().join(STOPS)).unwrap().count(), 1, "no file of it is elsewhere");
    shell().note_own_stop(&account, &id, None).await;
    assert_eq!(shell().own_stop(&account, &id).await, None);
    shell().note_own_stop(&account, &id, None).await;
}

#[test]
fn a_link_is_what_its_stream_told_last() {
    let links = Links::default();
    let (account, id) = (AccountName::from("own"), ResourceId::from("a"));
    let identity = Identity { account: account.clone(), kind: ResourceKind::Instance, id: id.clone(), generation: 0 };
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let (ten, eleven) = (at("2026-11-30T10:00:00Z"), at("2026-11-30T11:00:00Z"));
    assert_eq!(links.get(&account, &id), None);
    let look = providers::usage::Usage::new(ten, providers::usage::UsageSource::Ssh);
    links.note(&identity, &Told::Usage(Box::new(look)), ten);
    assert_eq!(links.get(&account, &id), Some(Link { heard: Some(ten), end: None }));
    for (trouble, silent) in [
        (Trouble::NoAnswer, true),
        (Trouble::ConnectionRefused, true),
        (Trouble::NoSuchHost, false),
        (Trouble::KeyRefused, false),
        (Trouble::HostKeyChanged, false),
        (Trouble::Ended, false),
    ] {
        links.note(&identity, &Told::Ended(trouble), eleven);
        assert_eq!(links.get(&account, &id), Some(Link { heard: Some(ten), end: Some(End { at: eleven, silent }) }));
    }
}
