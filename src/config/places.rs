//! Where the files are, and how they are made so that nobody else can read them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{Environment, Notice, shown};

/// The two places on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub config_file: PathBuf,
    /// The folder of ledger, logs and known-hosts.
    pub state_dir: PathBuf,
}

/// The system's own folders for the program's config and state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformFolders {
    pub config: PathBuf,
    pub state: PathBuf,
}

impl PlatformFolders {
    /// `None` when the system knows no home folder.
    pub fn of_the_user() -> Option<Self> {
        let folders = directories::ProjectDirs::from("", "", "rentop")?;
        // Only Linux tells state apart from data.
        let state = folders.state_dir().unwrap_or_else(|| folders.data_local_dir()).to_owned();
        Some(PlatformFolders { config: folders.config_dir().to_owned(), state })
    }
}

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("this system names no home folder for {what}; say where with {flag} or {variable}")]
    NoHome { what: &'static str, flag: &'static str, variable: &'static str },
    #[error("state folder {}: {}", shown(.folder), reason(.source))]
    StateFolder { folder: PathBuf, source: io::Error },
}

impl Places {
    /// A flag wins over its environment variable, and that over the system's folders. An empty variable
    /// counts as not set.
    pub fn find(
        config_flag: Option<PathBuf>,
        state_flag: Option<PathBuf>,
        environment: &Environment,
        platform: impl FnOnce() -> Option<PlatformFolders>,
    ) -> Result<Self, PlaceError> {
        let config = config_flag.or_else(|| super::set(environment, "RENTOP_CONFIG").map(PathBuf::from));
        let state = state_flag.or_else(|| super::set(environment, "RENTOP_STATE_DIR").map(PathBuf::from));
        let (config_file, state_dir) = match (config, state) {
            (Some(config), Some(state)) => (Some(config), Some(state)),
            (config, state) => match platform() {
                Some(folders) => (
                    Some(config.unwrap_or_else(|| folders.config.join("config.toml"))),
                    Some(state.unwrap_or(folders.state)),
                ),
                None => (config, state),
            },
        };
        let no_home = |what, flag, variable| PlaceError::NoHome { what, flag, variable };
        Ok(Places {
            config_file: config_file.ok_or_else(|| no_home("the config file", "--config", "RENTOP_CONFIG"))?,
            state_dir: state_dir.ok_or_else(|| no_home("the state", "--state-dir", "RENTOP_STATE_DIR"))?,
        })
    }

    /// Makes the state folder, for its owner alone whatever the umask, and proves that a file can be
    /// written in it. One that is there and holds something keeps its mode: it may be anybody's, so the
    /// answer then is a notice.
    pub fn prepare_state_dir(&self) -> Result<Option<Notice>, PlaceError> {
        let failed = |source| PlaceError::StateFolder { folder: self.state_dir.clone(), source };
        create_private(&self.state_dir).map_err(failed)?;
        let is_empty = fs::read_dir(&self.state_dir).map_err(failed)?.next().is_none();
        if is_empty {
            // Also after creating it: a folder that another process made meanwhile has that one's mode.
            make_private(&self.state_dir, 0o700).map_err(failed)?;
        }
        probe(&self.state_dir).map_err(failed)?;
        let mode = mode_bits(&fs::metadata(&self.state_dir).map_err(failed)?);
        Ok(mode
            .filter(|mode| mode & 0o077 != 0)
            .map(|mode| Notice::StateFolderOpen { path: self.state_dir.clone(), mode }))
    }
}

/// Opens a file of ours so that only its owner can read it: a new one is made 0600 whatever the umask, an
/// old one that others could read is tightened. `options` says how to open it; reading alone tightens too.
pub fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.permissions().mode() & 0o777 != 0o600 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

/// The permission bits; `None` on systems that have none.
pub(super) fn mode_bits(metadata: &fs::Metadata) -> Option<u32> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777);
    #[cfg(not(unix))]
    {
        let _on_other_systems = metadata;
        None
    }
}

pub(super) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn make_private(path: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    #[cfg(not(unix))]
    let _on_other_systems = (path, mode);
    Ok(())
}

/// A folder may look fine and still take no file: read-only, full, over its quota.
fn probe(folder: &Path) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".rentop-probe-").tempfile_in(folder)?;
    file.write_all(b"rentop")
}

fn reason(error: &io::Error) -> String {
    let reason = match error.kind() {
        ErrorKind::ReadOnlyFilesystem => "its file system is read-only",
        ErrorKind::StorageFull => "no space left on its file system",
        ErrorKind::QuotaExceeded => "its quota is used up",
        ErrorKind::PermissionDenied => "no permission to write there",
        ErrorKind::NotADirectory => "it, or a part of its path, is not a folder",
        ErrorKind::AlreadyExists => "it is there and is not a folder",
        ErrorKind::NotFound => "it does not exist and cannot be made",
        _ => return providers::text::clean(&error.to_string()),
    };
    format!("{reason}; another one can be named with --state-dir or RENTOP_STATE_DIR")
}

/// The person's home folder; `None` when the system knows none.
pub fn home() -> Option<PathBuf> {
    directories::BaseDirs::new().map(|folders| folders.home_dir().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::ffi::OsString;

    fn find(
        flags: [Option<&str>; 2],
        variables: &'static [(&'static str, &'static str)],
        platform: bool,
    ) -> Result<(String, String), String> {
        let environment = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        let folders =
            || PlatformFolders { config: "/home/u/.config/rentop".into(), state: "/home/u/.state/rentop".into() };
        let [config, state] = flags.map(|flag| flag.map(PathBuf::from));
        Places::find(config, state, &environment, || platform.then(folders))
            .map(|places| (places.config_file.display().to_string(), places.state_dir.display().to_string()))
            .map_err(|error| error.to_string())
    }

    const BOTH: &[(&str, &str)] = &[("RENTOP_CONFIG", "/e/c.toml"), ("RENTOP_STATE_DIR", "/e/state")];

    #[rstest]
    #[case::system([None, None], &[], true, "/home/u/.config/rentop/config.toml", "/home/u/.state/rentop")]
    #[case::environment([None, None], BOTH, true, "/e/c.toml", "/e/state")]
    #[case::environment_without_home([None, None], BOTH, false, "/e/c.toml", "/e/state")]
    #[case::flags_win([Some("f.toml"), Some("f")], BOTH, true, "f.toml", "f")]
    #[case::one_flag([None, Some("f")], &[], true, "/home/u/.config/rentop/config.toml", "f")]
    #[case::empty_is_not_set([None, None], &[("RENTOP_CONFIG", "")], true, "/home/u/.config/rentop/config.toml", "/home/u/.state/rentop")]
    fn a_flag_wins_over_the_environment_and_that_over_the_system(
        #[case] flags: [Option<&str>; 2],
        #[case] variables: &'static [(&'static str, &'static str)],
        #[case] platform: bool,
        #[case] config: &str,
        #[case] state: &str,
    ) {
        assert_eq!(find(flags, variables, platform), Ok((config.to_owned(), state.to_owned())));
    }

    #[test]
    fn without_a_home_folder_the_error_says_how_to_name_the_place() {
        assert_eq!(
            find([None, None], &[], false).unwrap_err(),
            "this system names no home folder for the config file; say where with --config or RENTOP_CONFIG"
        );
        assert_eq!(
            find([Some("c"), None], &[], false).unwrap_err(),
            "this system names no home folder for the state; say where with --state-dir or RENTOP_STATE_DIR"
        );
    }

    fn places(state_dir: PathBuf) -> Places {
        Places { config_file: "unused".into(), state_dir }
    }

    #[test]
    fn a_state_folder_that_is_a_file_is_told() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("state");
        fs::write(&file, "").unwrap();
        let error = places(file.clone()).prepare_state_dir().unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "state folder {}: it is there and is not a folder; another one can be named with --state-dir or \
                 RENTOP_STATE_DIR",
                file.display()
            )
        );
        let below = places(file.join("below")).prepare_state_dir().unwrap_err().to_string();
        assert!(below.contains(": it, or a part of its path, is not a folder; "), "{below}");
    }

    #[rstest]
    #[case(ErrorKind::ReadOnlyFilesystem, "its file system is read-only")]
    #[case(ErrorKind::StorageFull, "no space left on its file system")]
    #[case(ErrorKind::QuotaExceeded, "its quota is used up")]
    #[case(ErrorKind::PermissionDenied, "no permission to write there")]
    fn a_folder_that_takes_no_file_is_told_with_its_reason_and_a_way_out(
        #[case] kind: ErrorKind,
        #[case] expected: &str,
    ) {
        let error = PlaceError::StateFolder { folder: "/s".into(), source: kind.into() };
        let way_out = "another one can be named with --state-dir or RENTOP_STATE_DIR";
        assert_eq!(error.to_string(), format!("state folder /s: {expected}; {way_out}"));
    }

    #[cfg(unix)]
    mod modes {
        use super::*;
        use std::os::unix::fs::PermissionsExt;

        fn mode(path: &Path) -> u32 {
            mode_bits(&fs::metadata(path).unwrap()).unwrap()
        }

        // SEC-02. A set mode is what umask 000 would have left: a test cannot change the umask of its
        // process without disturbing others.
        #[test]
        fn the_state_folder_is_its_owners_alone() {
            let home = tempfile::tempdir().unwrap();
            let state = home.path().join("a/b/state");
            assert_eq!(places(state.clone()).prepare_state_dir().unwrap(), None);
            assert_eq!(mode(&state), 0o700);
            assert_eq!(fs::read_dir(&state).unwrap().count(), 0, "the probe is taken away");

            fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
            assert_eq!(places(state.clone()).prepare_state_dir().unwrap(), None);
            assert_eq!(mode(&state), 0o700, "an empty folder is taken over");
        }

        #[test]
        fn a_folder_with_something_in_it_keeps_its_mode_and_is_told() {
            let home = tempfile::tempdir().unwrap();
            fs::write(home.path().join("something"), "").unwrap();
            fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
            let notice = places(home.path().to_owned()).prepare_state_dir().unwrap();
            assert_eq!(notice, Some(Notice::StateFolderOpen { path: home.path().to_owned(), mode: 0o755 }));
            assert_eq!(mode(home.path()), 0o755);
        }

        // SEC-02
        #[rstest]
        #[case::new(None)]
        #[case::made_under_umask_000(Some(0o666))]
        #[case::made_under_umask_022(Some(0o644))]
        fn a_private_file_is_0600_also_when_it_was_not(#[case] before: Option<u32>) {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("log");
            if let Some(before) = before {
                fs::write(&path, "kept").unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
            }
            let mut file = open_private(&path, OpenOptions::new().create(true).append(true)).unwrap();
            file.write_all(b"!").unwrap();
            assert_eq!(mode(&path), 0o600);
            assert_eq!(fs::read_to_string(&path).unwrap(), if before.is_some() { "kept!" } else { "!" });
        }
    }
}
