//! Why a stream ended, from what `ssh` and the machine said.
//!
//! The words are those of OpenSSH 9.2 under `LC_ALL=C`, seen 2026-11-30; other versions and programs are met with
//! tolerance: what is not known is shown as it was said, cleaned and short. What the machine itself writes comes by the
//! same way as what `ssh` says, so that words count only at the end of a connection that failed.

use providers::text::excerpt;

use crate::rules::streams::Trouble;

/// So many characters of a text are shown.
pub const LONGEST: usize = 200;
/// The code with which `ssh` says that it failed itself, or that the command was killed.
const FAILED: i32 = 255;

/// What came where looks were expected.
pub struct Spoken<'a> {
    /// There was at least one look.
    pub looks: bool,
    /// The command came to its own end.
    pub came_to_its_end: bool,
    /// The first line that belongs to no look.
    pub greeting: Option<&'a str>,
}

/// What proves each trouble, most telling first: a host with another key is also one whose key could not be verified.
const WORDS: &[(&str, Trouble)] = &[
    ("could not resolve hostname", Trouble::NoSuchHost),
    (": connection refused", Trouble::ConnectionRefused),
    ("timed out", Trouble::NoAnswer),
    ("no route to host", Trouble::NoAnswer),
    ("network is unreachable", Trouble::NoAnswer),
    ("host is down", Trouble::NoAnswer),
    ("timeout, server ", Trouble::NoAnswer),
    ("too many authentication failures", Trouble::KeyRefused),
    ("permission denied (", Trouble::KeyRefused),
];

/// A machine, or a provider's proxy, that opens shells for people and runs no commands.
/// UNSURE: the first is what users of RunPod's proxy quote of it, seen in reports of 2024, not tried.
const NO_COMMANDS: &[&str] = &[
    "doesn't support pty",
    "does not support exec",
    "exec request failed",
    "shell request failed",
    "pty allocation request failed",
    "this account is currently not available",
    "this account is not available",
    "allows sftp connections only",
    "please login as the user",
    "administratively prohibited",
    "restricted: cannot",
    ": restricted",
    "rbash:",
];

/// Why a stream ended that ended with this code (`None`: it was killed) and said this.
pub fn trouble(code: Option<i32>, spoken: &Spoken<'_>, aside: &str, alias: &str) -> Trouble {
    let of_ssh = (code == Some(FAILED) && !spoken.came_to_its_end).then(|| of_ssh(aside, alias)).flatten();
    match of_ssh {
        // Whoever was let in can only have been lost.
        Some(trouble) if !spoken.looks || trouble == Trouble::NoAnswer => return trouble,
        _ if spoken.looks => return Trouble::Ended,
        _ => {}
    }
    let no_commands = |text: &str| {
        let text = text.to_lowercase();
        NO_COMMANDS.iter().any(|words| text.contains(words))
    };
    if no_commands(aside) || spoken.greeting.is_some_and(no_commands) {
        return Trouble::NoCommands;
    }
    match (last_line(aside), spoken.greeting) {
        (Some(line), _) => Trouble::Said(line),
        // It speaks, and not of what was asked.
        (None, Some(_)) => Trouble::Garbled,
        (None, None) => Trouble::Ended,
    }
}

/// Whether this proves that nobody answers at the address. A name that means no address may as well be our own
/// network's fault.
pub fn is_silence(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::NoAnswer | Trouble::ConnectionRefused)
}

/// The same of what `ssh` said when it ended.
pub fn says_silence(aside: &str, alias: &str) -> bool {
    of_ssh(aside, alias).as_ref().is_some_and(is_silence)
}

/// What `ssh` itself said, if it is known.
fn of_ssh(aside: &str, alias: &str) -> Option<Trouble> {
    let text = aside.to_lowercase();
    if text.contains("remote host identification has changed") {
        return Some(if changed_host(&text).is_none_or(|host| is_alias(host, alias)) {
            Trouble::HostKeyChanged
        } else {
            // Of a host on the way there.
            let changed = aside.lines().find(|line| changed_host(&line.to_lowercase()).is_some());
            Trouble::Said(excerpt(changed.unwrap_or_default(), LONGEST))
        });
    }
    // The last words are of what ended it: a jump host that lets one in may have warned before.
    let lines = text.lines().rev();
    lines.filter_map(|line| WORDS.iter().find(|(words, _)| line.contains(words))).map(|(_, it)| it.clone()).next()
}

/// Of which host the key has changed.
fn changed_host(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("host key for ")?;
    Some(rest.split_once(" has changed")?.0)
}

/// Long names are cut when they are said.
fn is_alias(host: &str, alias: &str) -> bool {
    host == alias || (host.len() >= 200 && alias.starts_with(host))
}

/// The last line that says something: what stands before it are greetings and how it came about.
pub fn last_line(aside: &str) -> Option<String> {
    let says = |line: &&str| {
        let line = line.trim();
        let is_noise = line.starts_with("Warning: Permanently added") || line.starts_with("** ");
        // Only says that it is over.
        let is_end = line.starts_with("Connection to ") && line.contains(" closed")
            || line.starts_with("Connection closed by")
            || line.starts_with("Connection reset by")
            || line.starts_with("Disconnected from")
            || line.contains("Connection closed by remote host")
            || line.contains("Connection reset by peer")
            || line.contains("Broken pipe");
        !is_noise && !is_end
    };
    let mut lines = aside.lines().rev().filter(says).map(|line| excerpt(line, LONGEST));
    lines.find(|line| line.chars().any(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const ALIAS: &str = "rentop.vast.me.m1.0";
    const SILENT: Spoken<'_> = Spoken { looks: false, came_to_its_end: false, greeting: None };
    const CHANGED: &str = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n\
        @    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n\
        IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n\
        Add correct host key in known_hosts to get rid of this message.\n\
        Offending ED25519 key in known_hosts:1\n\
        Host key for HOST has changed and you have requested strict checking.\n\
        Host key verification failed.\n";

    fn said(text: &str) -> Trouble {
        Trouble::Said(text.to_owned())
    }

    #[rstest]
    #[case::key("root@192.0.2.45: Permission denied (publickey,password).\r\n", Trouble::KeyRefused)]
    #[case::keys(
        "Received disconnect from 192.0.2.45 port 22:2: Too many authentication failures\nDisconnected from 192.0.2.45 port 22",
        Trouble::KeyRefused
    )]
    #[case::name("ssh: Could not resolve hostname gone.invalid: Name or service not known", Trouble::NoSuchHost)]
    #[case::no_net(
        "ssh: Could not resolve hostname a.example: Temporary failure in name resolution",
        Trouble::NoSuchHost
    )]
    #[case::time("ssh: connect to host 192.0.2.45 port 22: Connection timed out", Trouble::NoAnswer)]
    #[case::mac("ssh: connect to host 192.0.2.45 port 22: Operation timed out", Trouble::NoAnswer)]
    #[case::banner(
        "Connection timed out during banner exchange\nConnection to 192.0.2.45 port 22 timed out",
        Trouble::NoAnswer
    )]
    #[case::route("ssh: connect to host 192.0.2.45 port 22: No route to host", Trouble::NoAnswer)]
    #[case::net("ssh: connect to host 192.0.2.45 port 22: Network is unreachable", Trouble::NoAnswer)]
    #[case::dead("Timeout, server 192.0.2.45 not responding.", Trouble::NoAnswer)]
    #[case::refused("ssh: connect to host 127.0.0.1 port 9: Connection refused", Trouble::ConnectionRefused)]
    #[case::closed(
        "kex_exchange_identification: Connection closed by remote host\nConnection closed by 192.0.2.45 port 22",
        Trouble::Ended
    )]
    #[case::restarted("Connection to 192.0.2.45 closed by remote host.", Trouble::Ended)]
    #[case::killed("", Trouble::Ended)]
    #[case::jump(
        "nobody@jump: Permission denied (publickey).\nkex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535",
        Trouble::KeyRefused
    )]
    #[case::banner_first(
        "Authorized use only; connection refused without a key\nssh: connect to host h port 22: No route to host",
        Trouble::NoAnswer
    )]
    #[case::unknown(
        "Unable to negotiate with 192.0.2.45 port 22: no matching host key type found. Their offer: ssh-rsa",
        said("Unable to negotiate with 192.0.2.45 port 22: no matching host key type found. Their offer: ssh-rsa")
    )]
    #[case::config(
        "/home/u/.ssh/config: line 3: Bad configuration option: hots\r\n/home/u/.ssh/config: terminating, 1 bad configuration options",
        said("/home/u/.ssh/config: terminating, 1 bad configuration options")
    )]
    #[case::verified("Host key verification failed.", said("Host key verification failed."))]
    #[case::escapes("\x1b]0;mine\x07\x1b[31mbroken\x1b[0m", said("broken"))]
    #[case::proxy("Error: Your SSH client doesn't support PTY", Trouble::NoCommands)]
    #[case::exec("exec request failed on channel 0", Trouble::NoCommands)]
    fn a_connection_that_failed_says_why(#[case] aside: &str, #[case] expected: Trouble) {
        assert_eq!(trouble(Some(255), &SILENT, aside, ALIAS), expected);
        let warned = format!("Warning: Permanently added '{ALIAS}' (ED25519) to the list of known hosts.\r\n{aside}");
        assert_eq!(trouble(Some(255), &SILENT, &warned, ALIAS), expected);
    }

    #[rstest]
    #[case::ours(ALIAS, Trouble::HostKeyChanged)]
    #[case::of_the_jump_host("jump", said("Host key for jump has changed and you have requested strict checking."))]
    fn a_changed_key_is_told_apart_from_one_of_a_jump_host(#[case] host: &str, #[case] expected: Trouble) {
        assert_eq!(trouble(Some(255), &SILENT, &CHANGED.replace("HOST has", &format!("{host} has")), ALIAS), expected);
    }

    #[rstest]
    #[case::no_shell(Some(1), Some("This account is currently not available."), "", Trouble::NoCommands)]
    #[case::other_user(
        Some(142),
        Some("Please login as the user \"ubuntu\" rather than the user \"root\"."),
        "",
        Trouble::NoCommands
    )]
    #[case::restricted(
        Some(1),
        None,
        "rbash: line 1: /bin/sh: restricted: cannot specify `/' in command names",
        Trouble::NoCommands
    )]
    #[case::menu(Some(0), Some("Welcome! Press 1 for the console."), "", Trouble::Garbled)]
    #[case::nothing(Some(0), None, "", Trouble::Ended)]
    #[case::shell(Some(127), None, "sh: 1: while: not found", said("sh: 1: while: not found"))]
    #[case::ours(None, None, "", Trouble::Ended)]
    fn a_connection_without_a_look_is_none(
        #[case] code: Option<i32>,
        #[case] greeting: Option<&str>,
        #[case] aside: &str,
        #[case] expected: Trouble,
    ) {
        assert_eq!(trouble(code, &Spoken { greeting, ..SILENT }, aside, ALIAS), expected);
    }

    #[rstest]
    #[case::greeted(Some(255), false, "*** Permission denied to strangers ***\nWelcome", Trouble::Ended)]
    #[case::dead(Some(255), false, "Timeout, server 192.0.2.45 not responding.", Trouble::NoAnswer)]
    #[case::by_the_command(Some(0), true, "sh: nvidia-smi: Permission denied (13)", Trouble::Ended)]
    #[case::by_the_machine(Some(1), false, "curl: (7) Failed to connect: Connection refused", Trouble::Ended)]
    fn what_a_stream_said_that_worked_is_no_reason(
        #[case] code: Option<i32>,
        #[case] came_to_its_end: bool,
        #[case] aside: &str,
        #[case] expected: Trouble,
    ) {
        let spoken = Spoken { looks: true, came_to_its_end, greeting: Some("Connection refused") };
        assert_eq!(trouble(code, &spoken, aside, ALIAS), expected);
    }

    proptest! {
        #[test]
        fn whatever_was_said_is_shown_clean_and_short(code in any::<Option<i32>>(), aside in any::<String>()) {
            if let Trouble::Said(text) = trouble(code, &SILENT, &aside, ALIAS) {
                prop_assert!(text.chars().count() <= LONGEST + 1 && !text.chars().any(char::is_control));
            }
        }
    }
}
