//! The first config file, written for an account that was found in the environment. Only a file that is
//! not there is written; one that is there belongs to its owner's editor.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::{AccountConfig, KeySource, open_private, shown};

/// Why the account could not be written down.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    #[error("{} is there already; write the [[account]] into it", shown(.0))]
    FileIsThere(std::path::PathBuf),
    #[error("only a key in the environment can be offered")]
    NotInEnvironment,
    #[error("{} cannot be written: {source}", shown(.file))]
    Io { file: std::path::PathBuf, source: io::Error },
}

/// Adds the account to a config file that holds nothing but accounts written here before, or is not there.
pub fn write(file: &Path, account: &AccountConfig) -> Result<(), OfferError> {
    let KeySource::Env(variable) = &account.key else { return Err(OfferError::NotInEnvironment) };
    let failed = |source| OfferError::Io { file: file.to_owned(), source };
    let before = match fs::read_to_string(file) {
        Ok(text) if text.starts_with(HEAD) => text,
        Ok(_) => return Err(OfferError::FileIsThere(file.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => HEAD.to_owned(),
        Err(error) => return Err(failed(error)),
    };
    let text = format!(
        "{before}\n[[account]]\nprovider = \"{}\"\nname = \"{}\"\nkey_env = \"{variable}\"\n",
        account.provider.name, account.name
    );
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    // Whole or not at all: a half-written config would stop the next start.
    let mut whole = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    whole.write_all(text.as_bytes()).and_then(|()| whole.as_file().sync_all()).map_err(failed)?;
    whole.persist(file).map_err(|error| failed(error.error))?;
    open_private(file, OpenOptions::new().read(true)).map(drop).map_err(failed)
}

const HEAD: &str = "# Written by rentop. config.example.toml in its repository names every key.\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn an_offered_account_becomes_a_config_that_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/config.toml");
        let environment = |name: &str| name.ends_with("_API_KEY").then(|| "k".into());
        let offered = crate::config::keys_in_environment(&environment);
        assert!(offered.len() >= 2);
        for account in &offered {
            write(&file, account).unwrap();
        }
        let config = Config::load(&file).unwrap();
        assert_eq!(config.accounts, offered);
    }

    #[test]
    fn a_config_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        fs::write(&file, "currency = \"EUR\"\n").unwrap();
        let environment = |name: &str| (name == "RUNPOD_API_KEY").then(|| "k".into());
        let offered = crate::config::keys_in_environment(&environment);
        assert!(matches!(write(&file, &offered[0]), Err(OfferError::FileIsThere(_))));
        assert_eq!(fs::read_to_string(&file).unwrap(), "currency = \"EUR\"\n");
    }
}
