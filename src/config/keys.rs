//! Where an account's key comes from, and how it is read: exactly one source, and nothing falls through.
//!
//! A key is never quoted: errors name the variable, the program or the file, and what is wrong with it.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use providers::text::{clean, excerpt};
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::{Environment, shown};

/// The longest wait for a key.
const LIMIT: Duration = Duration::from_secs(10);
/// No key is larger; what is, is something else.
const KEY_LIMIT_BYTES: usize = 64 * 1024;
/// The longest excerpt of what a key command complained about, in characters.
const EXCERPT: usize = 160;

/// The one source of an account's key.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable of rentop's own process.
    Env(String),
    /// A program and its arguments, run without a shell; its whole output is the key.
    Command(Vec<String>),
    /// A file that only its owner can read; a leading `~/` is the home folder.
    File(PathBuf),
    /// There is nothing to open with a key.
    NotNeeded,
}

/// Names the source. Arguments of a command are left out: somebody may have put a secret there.
impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::Env(variable) => write!(f, "key_env {}", clean(variable)),
            KeySource::Command(words) => write!(f, "key_cmd {}", program(words)),
            KeySource::File(path) => write!(f, "key_file {}", shown(path)),
            KeySource::NotNeeded => f.write_str("no key"),
        }
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySource({self})")
    }
}

/// Why a key could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {kind}")]
pub struct KeyError {
    /// The source, as [`KeySource`] prints.
    pub origin: String,
    #[source]
    pub kind: KeyErrorKind,
}

/// What is wrong with a key's source or with what it gave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyErrorKind {
    #[error("this environment variable is not set")]
    NotSet,
    #[error("the key is empty")]
    Empty,
    #[error("the key is not one line of text")]
    NotOneLine,
    #[error("larger than {} KiB, so it is no key", .limit_bytes / 1024)]
    TooLarge { limit_bytes: usize },
    #[error("this program was not found")]
    NoProgram,
    #[error("cannot be run: {message}")]
    NotRun { message: String },
    #[error("gave no key within {} s", .limit.as_secs_f32())]
    TimedOut { limit: Duration },
    /// `complaint` is the first line of its error output, cleaned and cut; empty when there was none.
    #[error("failed with {how}{}{complaint}", if .complaint.is_empty() { "" } else { ": " })]
    Failed { how: String, complaint: String },
    #[error("no such file")]
    NoFile,
    #[error("no home folder is known for `~/`")]
    NoHome,
    #[error("not a regular file")]
    NotAFile,
    #[error("cannot be read: {message}")]
    NotRead { message: String },
    #[error("mode {mode:04o} lets others at the key; run: chmod 600 {path}")]
    OpenToOthers { mode: u32, path: String },
}

impl KeySource {
    /// Reads the key afresh. Blanks and line ends around it do not count.
    pub async fn read(&self) -> Result<SecretString, KeyError> {
        let home = directories::BaseDirs::new().map(|folders| folders.home_dir().to_owned());
        self.read_in(&super::process_environment, home.as_deref(), LIMIT).await
    }

    async fn read_in(
        &self,
        environment: &Environment,
        home: Option<&Path>,
        limit: Duration,
    ) -> Result<SecretString, KeyError> {
        if *self == KeySource::NotNeeded {
            return Ok(SecretString::default());
        }
        let source = async {
            match self {
                KeySource::Env(variable) => match environment(variable) {
                    Some(value) => Ok(Zeroizing::new(value.into_encoded_bytes())),
                    None => Err(KeyErrorKind::NotSet),
                },
                KeySource::Command(words) => output(words).await,
                // A file may hang, too: on a network folder whose server is away.
                KeySource::File(path) => match expand_home(path, home) {
                    Some(path) => contents(&path).await,
                    None => Err(KeyErrorKind::NoHome),
                },
                KeySource::NotNeeded => Ok(Zeroizing::default()),
            }
        };
        let bytes = tokio::time::timeout(limit, source).await;
        let bytes = bytes.unwrap_or(Err(KeyErrorKind::TimedOut { limit }));
        bytes.and_then(|bytes| key(&bytes)).map_err(|kind| KeyError { origin: self.to_string(), kind })
    }
}

/// The key out of what a source gave.
fn key(bytes: &[u8]) -> Result<SecretString, KeyErrorKind> {
    let text = std::str::from_utf8(bytes).map_err(|_| KeyErrorKind::NotOneLine)?;
    // Some editors on Windows put a byte-order mark before a text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    if text.is_empty() {
        return Err(KeyErrorKind::Empty);
    }
    if text.chars().any(char::is_control) {
        return Err(KeyErrorKind::NotOneLine);
    }
    Ok(SecretString::from(text))
}

/// Runs a key command and takes its whole output.
async fn output(words: &[String]) -> Result<Zeroizing<Vec<u8>>, KeyErrorKind> {
    let (program, arguments) = words.split_first().ok_or(KeyErrorKind::NoProgram)?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // The terminal is ours: a group of its own may not read it, and gpg is not told where it is, so that a
    // question for a passphrase comes as a window or not at all.
    command.env_remove("GPG_TTY");
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => KeyErrorKind::NoProgram,
        _ => KeyErrorKind::NotRun { message: clean(&error.to_string()) },
    })?;
    let stdout = child.stdout.take().expect("stdout is piped");
    let stderr = child.stderr.take().expect("stderr is piped");
    let not_run = |error: io::Error| KeyErrorKind::NotRun { message: clean(&error.to_string()) };
    let complaint = async {
        let mut stderr = stderr;
        let mut said = Vec::new();
        (&mut stderr).take(4096).read_to_end(&mut said).await?;
        // The rest is taken too, lest the program wait for ever to get rid of it.
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
        Ok(said)
    };
    let (bytes, said, status) =
        tokio::try_join!(read_limited(stdout), async { complaint.await.map_err(not_run) }, async {
            child.wait().await.map_err(not_run)
        },)?;
    if status.success() {
        return Ok(bytes);
    }
    Err(KeyErrorKind::Failed { how: how(status), complaint: first_line(&said, &bytes) })
}

/// How a program ended that did not succeed.
fn how(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.code().map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"))
}

/// The first line with something on it, unless it repeats what went to the output: that may be the key.
fn first_line(said: &[u8], output: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let output = Zeroizing::new(String::from_utf8_lossy(output).into_owned());
    let repeats = output.split_whitespace().any(|word| word.len() >= 8 && said.contains(word));
    if repeats { String::new() } else { excerpt(line, EXCERPT) }
}

async fn contents(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyErrorKind> {
    let not_read = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => KeyErrorKind::NoFile,
        ErrorKind::PermissionDenied => KeyErrorKind::NotRead { message: "permission denied".to_owned() },
        _ => KeyErrorKind::NotRead { message: clean(&error.to_string()) },
    };
    // Asked before it is opened: opening a pipe that nobody writes to would wait for ever.
    if !tokio::fs::metadata(path).await.map_err(not_read)?.is_file() {
        return Err(KeyErrorKind::NotAFile);
    }
    let file = tokio::fs::File::open(path).await.map_err(not_read)?;
    let mode = super::places::mode_bits(&file.metadata().await.map_err(not_read)?);
    if let Some(mode) = mode.filter(|mode| mode & 0o077 != 0) {
        return Err(KeyErrorKind::OpenToOthers { mode, path: shell_word(path) });
    }
    read_limited(file).await
}

async fn read_limited(source: impl AsyncRead + Unpin) -> Result<Zeroizing<Vec<u8>>, KeyErrorKind> {
    // Room for all of it at once: a vector that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(KEY_LIMIT_BYTES + 1));
    let read = source.take(KEY_LIMIT_BYTES as u64 + 1).read_to_end(&mut bytes).await;
    read.map_err(|error| KeyErrorKind::NotRead { message: clean(&error.to_string()) })?;
    if bytes.len() > KEY_LIMIT_BYTES {
        return Err(KeyErrorKind::TooLarge { limit_bytes: KEY_LIMIT_BYTES });
    }
    Ok(bytes)
}

/// Replaces a leading `~/`; `None` when there is no home folder to put in its place.
fn expand_home(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~") {
        Ok(below) => home.map(|home| home.join(below)),
        Err(_) => Some(path.to_owned()),
    }
}

/// The program's name for errors, cleaned.
fn program(words: &[String]) -> String {
    words.first().map(|program| excerpt(program, EXCERPT)).unwrap_or_default()
}

/// A path as a person can paste it into a shell.
fn shell_word(path: &Path) -> String {
    clean(&shell_words::quote(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use secrecy::ExposeSecret;
    use std::ffi::OsString;

    const KEY: &str = "TESTKEY-0000000000000000-aaaa";

    async fn read(source: &KeySource) -> Result<String, String> {
        read_with(source, None).await
    }

    async fn read_with(source: &KeySource, variable: Option<OsString>) -> Result<String, String> {
        let environment = move |name: &str| (name == "A_KEY").then(|| variable.clone()).flatten();
        let outcome = source.read_in(&environment, Some(Path::new("/nowhere")), LIMIT).await;
        assert!(!format!("{outcome:?}").contains(KEY), "no debug print shows a key");
        outcome.map(|key| key.expose_secret().to_owned()).map_err(|error| error.to_string())
    }

    fn command(words: &[&str]) -> KeySource {
        KeySource::Command(words.iter().map(|word| word.to_string()).collect())
    }

    // SEC-01
    #[rstest]
    #[case::line_end("TESTKEY-0000000000000000-aaaa\n", Ok(KEY))]
    #[case::windows_line_end("TESTKEY-0000000000000000-aaaa\r\n", Ok(KEY))]
    #[case::blanks("  TESTKEY-0000000000000000-aaaa  ", Ok(KEY))]
    #[case::byte_order_mark("\u{feff}TESTKEY-0000000000000000-aaaa", Ok(KEY))]
    #[case::two_parts("id:secret", Ok("id:secret"))]
    #[case::empty("", Err("key_env A_KEY: the key is empty"))]
    #[case::blank(" \n ", Err("key_env A_KEY: the key is empty"))]
    #[case::two_lines("TESTKEY-0000000000000000-aaaa\nuser: me", Err("key_env A_KEY: the key is not one line of text"))]
    #[tokio::test]
    async fn what_stands_around_a_key_does_not_count(#[case] given: &str, #[case] expected: Result<&str, &str>) {
        let read = read_with(&KeySource::Env("A_KEY".into()), Some(given.into())).await;
        assert_eq!(read.as_deref().map_err(String::as_str), expected);
    }

    #[tokio::test]
    async fn a_variable_that_is_not_set_is_named() {
        let read = read(&KeySource::Env("A_KEY".into())).await;
        assert_eq!(read.unwrap_err(), "key_env A_KEY: this environment variable is not set");
    }

    #[tokio::test]
    async fn a_key_can_be_read_in_a_task_of_its_own_and_from_the_real_environment() {
        let path = KeySource::Env("PATH".to_owned());
        let read = tokio::spawn(async move { path.read().await }).await.expect("the task ends");
        assert_eq!(read.unwrap().expose_secret(), std::env::var("PATH").unwrap());
    }

    #[cfg(unix)]
    #[rstest]
    #[case::output(&["printf", "TESTKEY-0000000000000000-aaaa\n"], Ok(KEY))]
    #[case::no_shell(&["printf", "%s", "$HOME;true"], Ok("$HOME;true"))]
    #[case::noise_on_stderr(&["sh", "-c", "echo warning >&2; echo key"], Ok("key"))]
    #[case::nothing_on_stdin(&["sh", "-c", "cat; echo key"], Ok("key"))]
    #[case::silent(&["true"], Err("key_cmd true: the key is empty"))]
    #[case::several_lines(&["printf", "a\nb"], Err("key_cmd printf: the key is not one line of text"))]
    #[case::not_there(&["rentop-test-no-such-program", "x"], Err("key_cmd rentop-test-no-such-program: this program was not found"))]
    #[case::failed(&["sh", "-c", "echo TESTKEY-0000000000000000-aaaa; echo; echo ' \x1b[31mlocked\x1b[0m' >&2; echo more >&2; exit 3"],
        Err("key_cmd sh: failed with exit code 3: locked"))]
    #[case::failed_silently(&["false"], Err("key_cmd false: failed with exit code 1"))]
    #[case::repeats_the_key(&["sh", "-c", "echo TESTKEY-0000000000000000-aaaa; echo bad key TESTKEY-0000000000000000-aaaa >&2; exit 1"],
        Err("key_cmd sh: failed with exit code 1"))]
    #[case::ended_by_a_signal(&["sh", "-c", "kill -9 $$"], Err("key_cmd sh: failed with signal 9"))]
    #[case::endless(&["yes"], Err("key_cmd yes: larger than 64 KiB, so it is no key"))]
    #[case::loud(&["sh", "-c", "yes complaint | head -c 300000 >&2; echo key"], Ok("key"))]
    #[tokio::test]
    async fn a_command_gives_its_output_or_a_reason_without_it(
        #[case] words: &[&str],
        #[case] expected: Result<&str, &str>,
    ) {
        let read = read(&command(words)).await;
        assert_eq!(read.as_deref().map_err(String::as_str), expected);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_that_hangs_is_ended() {
        let hanging = command(&["sleep", "600"]);
        let limit = Duration::from_millis(50);
        let outcome = hanging.read_in(&|_: &str| None, None, limit).await;
        assert_eq!(outcome.unwrap_err().to_string(), "key_cmd sleep: gave no key within 0.05 s");
    }

    #[test]
    fn the_arguments_of_a_command_are_not_printed() {
        let source = command(&["fetch", "--token", KEY]);
        assert_eq!(format!("{source} {source:?}"), "key_cmd fetch KeySource(key_cmd fetch)");
    }

    #[cfg(unix)]
    mod files {
        use super::*;
        use std::fs::{self, Permissions};
        use std::os::unix::fs::PermissionsExt;

        fn file(home: &Path, mode: u32) -> PathBuf {
            let path = home.join("the key");
            fs::write(&path, format!("{KEY}\n")).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        }

        #[rstest]
        #[case(0o600, true)]
        #[case(0o400, true)]
        #[case(0o640, false)]
        #[case(0o644, false)]
        #[case(0o604, false)]
        #[case(0o620, false)]
        #[tokio::test]
        async fn a_file_that_others_can_get_at_is_refused(#[case] mode: u32, #[case] taken: bool) {
            let home = tempfile::tempdir().unwrap();
            let path = file(home.path(), mode);
            let shown = path.display();
            let refused = format!("key_file {shown}: mode {mode:04o} lets others at the key; run: chmod 600 '{shown}'");
            let expected = if taken { Ok(KEY.to_owned()) } else { Err(refused) };
            assert_eq!(read(&KeySource::File(path.clone())).await, expected);
        }

        #[tokio::test]
        async fn the_home_folder_stands_for_a_leading_tilde() {
            let home = tempfile::tempdir().unwrap();
            file(home.path(), 0o600);
            let source = KeySource::File("~/the key".into());
            let key = source.read_in(&|_: &str| None, Some(home.path()), LIMIT).await.unwrap();
            assert_eq!(key.expose_secret(), KEY);
            let homeless = source.read_in(&|_: &str| None, None, LIMIT).await.unwrap_err();
            assert_eq!(homeless.to_string(), "key_file ~/the key: no home folder is known for `~/`");
        }

        #[tokio::test]
        async fn what_is_no_file_is_told() {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().display();
            let told = |path: PathBuf| async move { read(&KeySource::File(path)).await.unwrap_err() };
            assert_eq!(told(home.path().to_owned()).await, format!("key_file {path}: not a regular file"));
            assert_eq!(told(home.path().join("x")).await, format!("key_file {path}/x: no such file"));
            let large = file(home.path(), 0o600);
            fs::write(&large, "x".repeat(KEY_LIMIT_BYTES + 1)).unwrap();
            assert!(told(large).await.ends_with(": larger than 64 KiB, so it is no key"));
        }
    }
}
