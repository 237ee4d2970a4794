//! What an instance is asked on behalf of a lease, as a few lines for a POSIX shell, and what its answer means.

use jiff::{SignedDuration, Timestamp};
use providers::text::excerpt;
use serde::{Deserialize, Serialize};

use super::What;
use crate::rules::streams::Trouble;

/// No other line of the answer counts: whatever greets there, or is written by a command of the person's.
const MARK: &str = "@rentop-";
/// So many characters of a complaint are kept.
const COMPLAINT: usize = 200;

/// What an instance is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Whether this process is there.
    Process(u32),
    /// What this file holds.
    File(String),
    /// To arm its own timer, by this command.
    Arm(String),
    /// Whether that is armed, by this command.
    Confirm(String),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The process is there; with when it began in the kernel's ticks, where the system tells.
    Alive {
        began: Option<u64>,
    },
    NoProcess,
    /// It is not there, or empty.
    NoFile,
    /// The file holds this exit code, or what is none; and so long it has been as it is, where the system tells.
    Code {
        code: Option<i32>,
        age: Option<SignedDuration>,
    },
    Armed,
    /// The reason in one line.
    NotArmed(String),
    Confirmed,
    NotThere,
    /// It could not be asked, or did not answer. That says nothing about the job.
    Lost(Trouble),
}

/// The process as /proc tells it: after its name, which may hold anything, come its state and, 20th from there, when
/// it began (proc_pid_stat(5), fields 3 and 22, read 2026-11-30). Without /proc a signal or `ps` has to do.
const PROCESS: &str = "\
if [ -r /proc/self/stat ]; then
  line=$(cat /proc/$p/stat 2>/dev/null)
  set -- ${line##*) }
  case ${1:-X} in
    Z|X|x) echo @rentop-gone ;;
    *) echo \"@rentop-alive ${20}\" ;;
  esac
elif kill -0 $p 2>/dev/null || ps -p $p >/dev/null 2>&1; then echo @rentop-alive
else echo @rentop-gone
fi";

/// The age by the instance's own clock on both sides; `stat` is GNU's and BusyBox's, else BSD's.
const FILE: &str = "\
if [ ! -e \"$f\" ]; then echo @rentop-none
elif [ ! -r \"$f\" ]; then echo @rentop-unreadable
else
  echo \"@rentop-age $(date +%s 2>/dev/null) $(stat -c %Y \"$f\" 2>/dev/null || stat -f %m \"$f\" 2>/dev/null)\"
  echo \"@rentop-code $(head -c 64 \"$f\" 2>/dev/null | tr '\\r\\n' '  ')\"
fi";

impl Ask {
    /// The lines that ask it, for `sh -c`.
    pub fn script(&self) -> String {
        match self {
            Ask::Process(pid) => format!("p={pid}\n{PROCESS}"),
            Ask::File(path) => format!("f={}\n{FILE}", quoted(path)),
            // What it says is no answer of ours.
            Ask::Arm(command) | Ask::Confirm(command) => {
                format!("( {command}\n) >&2 </dev/null\necho \"@rentop-ended $?\"")
            }
        }
    }

    /// What the lines that came mean. `complaint` is what was said beside them.
    pub fn read(&self, output: &str, complaint: &str) -> Told {
        let marked = output.lines().filter_map(|line| line.trim_end().strip_prefix(MARK));
        let words: Vec<(&str, &str)> = marked.map(|line| line.split_once(' ').unwrap_or((line, ""))).collect();
        let said = |word: &str| words.iter().find(|(said, _)| *said == word).map(|(_, rest)| rest.trim());
        let told = match self {
            Ask::Process(_) => match (said("alive"), said("gone")) {
                (Some(began), _) => Some(Told::Alive { began: began.parse().ok() }),
                (None, Some(_)) => Some(Told::NoProcess),
                (None, None) => None,
            },
            Ask::File(_) if said("unreadable").is_some() => {
                Some(Told::Lost(Trouble::Said("permission denied".to_owned())))
            }
            Ask::File(_) => match (said("code"), said("none")) {
                // Nothing of it is written yet.
                (Some(""), _) | (None, Some(_)) => Some(Told::NoFile),
                (Some(code), _) => Some(Told::Code { code: code.parse().ok(), age: said("age").and_then(age) }),
                (None, None) => None,
            },
            Ask::Arm(_) => said("ended").and_then(|code| code.parse().ok()).map(|code: i32| match code {
                0 => Told::Armed,
                code => {
                    let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                    Told::NotArmed(excerpt(format!("{code} {last}").trim(), COMPLAINT))
                }
            }),
            Ask::Confirm(_) => said("ended").and_then(|code| code.parse().ok()).map(|code: i32| match code {
                0 => Told::Confirmed,
                _ => Told::NotThere,
            }),
        };
        told.unwrap_or(Told::Lost(Trouble::Garbled))
    }
}

/// Two numbers of seconds, now and then. A file of the future is new.
fn age(text: &str) -> Option<SignedDuration> {
    let (now, then) = text.split_once(' ')?;
    let (now, then): (i64, i64) = (now.parse().ok()?, then.trim().parse().ok()?);
    Some(SignedDuration::from_secs(now.saturating_sub(then).max(0)))
}

/// One word for a POSIX shell, whatever it holds.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A command of the config with what it is for.
pub fn fill_in(command: &str, at: Timestamp, what: What) -> String {
    command.replace("{at}", &at.as_second().to_string()).replace("{what}", what.word())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn code(code: Option<i32>, age: Option<i64>) -> Told {
        Told::Code { code, age: age.map(SignedDuration::from_secs) }
    }

    #[rstest]
    #[case::there(Ask::Process(7), "@rentop-alive 8123", Told::Alive { began: Some(8123) })]
    #[case::greeting(Ask::Process(7), "Welcome!\r\n@rentop-alive 8123\r\n", Told::Alive { began: Some(8123) })]
    #[case::without_proc(Ask::Process(7), "@rentop-alive", Told::Alive { began: None })]
    #[case::no_process(Ask::Process(7), "@rentop-gone", Told::NoProcess)]
    #[case::cut_off(Ask::Process(7), "", Told::Lost(Trouble::Garbled))]
    #[case::another_answer(Ask::Process(7), "@rentop-none", Told::Lost(Trouble::Garbled))]
    #[case::no_file(Ask::File("/d".into()), "@rentop-none", Told::NoFile)]
    #[case::empty(Ask::File("/d".into()), "@rentop-age 90 80\n@rentop-code ", Told::NoFile)]
    #[case::good(Ask::File("/d".into()), "@rentop-age 90 80\n@rentop-code 0 ", code(Some(0), Some(10)))]
    #[case::bad(Ask::File("/d".into()), "@rentop-age 90 80\n@rentop-code 137  ", code(Some(137), Some(10)))]
    #[case::words(Ask::File("/d".into()), "@rentop-age 90 80\n@rentop-code 0 errors", code(None, Some(10)))]
    #[case::no_stat(Ask::File("/d".into()), "@rentop-age 90 \n@rentop-code 0", code(Some(0), None))]
    #[case::of_the_future(Ask::File("/d".into()), "@rentop-age 90 99\n@rentop-code 0", code(Some(0), Some(0)))]
    #[case::unreadable(Ask::File("/d".into()), "@rentop-unreadable", Told::Lost(Trouble::Said("permission denied".into())))]
    #[case::armed(Ask::Arm("at".into()), "@rentop-ended 0", Told::Armed)]
    #[case::not_armed(Ask::Arm("at".into()), "@rentop-ended 127", Told::NotArmed("127 sh: at: not found".into()))]
    #[case::confirmed(Ask::Confirm("atq".into()), "@rentop-ended 0", Told::Confirmed)]
    #[case::not_there(Ask::Confirm("atq".into()), "@rentop-ended 1", Told::NotThere)]
    fn an_answer_means(#[case] ask: Ask, #[case] output: &str, #[case] expected: Told) {
        assert_eq!(ask.read(output, "sh: at: not found\n"), expected);
    }

    /// The very lines, in this machine's own shell.
    #[cfg(unix)]
    #[test]
    fn the_lines_say_what_is_so() {
        let run = |ask: &Ask| {
            let output = std::process::Command::new("sh").arg("-c").arg(ask.script()).output().unwrap();
            ask.read(&String::from_utf8_lossy(&output.stdout), &String::from_utf8_lossy(&output.stderr))
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("it's done; $(rm -rf x)");
        let file = Ask::File(path.to_str().unwrap().to_owned());
        assert_eq!(run(&file), Told::NoFile);
        std::fs::write(&path, "").unwrap();
        assert_eq!(run(&file), Told::NoFile, "nothing of it is written yet");
        for (text, expected) in [("0\n", Some(0)), ("137", Some(137)), ("oops\n", None), ("0\n1\n", None)] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(run(&file), Told::Code { code, age: Some(_) } if code == expected), "{text:?}");
        }
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Ask::Process(child.id());
        let first = run(&process);
        assert!(matches!(first, Told::Alive { .. }), "{first:?}");
        assert_eq!(run(&process), first, "it is the same one");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(run(&process), Told::NoProcess);
        assert_eq!(
            run(&Ask::Arm("echo @rentop-ended 0; false".to_owned())),
            Told::NotArmed("1 @rentop-ended 0".to_owned())
        );
        assert_eq!(run(&Ask::Arm("exit 3 # ".to_owned())), Told::NotArmed("3".to_owned()));
        assert_eq!(run(&Ask::Confirm("true".to_owned())), Told::Confirmed);
    }

    #[test]
    fn a_command_is_told_when_and_what() {
        let at = Timestamp::from_second(1_796_076_000).unwrap();
        assert_eq!(fill_in("arm {what} {at}", at, What::Stop), "arm stop 1796076000");
    }
}
