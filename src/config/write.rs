//! A budget written back into the config file. Only the texts that change are cut out and replaced, by the places
//! that the parser tells, so that every comment and every other byte stays. What comes of it is read as a config
//! before anything is written, and the file is replaced as a whole or not at all.

mod draft;
mod page;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use providers::text::clean;
use toml::de::DeTable;

use self::draft::Wanted;
use self::page::Page;
use super::file::quote;
use super::{Config, ConfigError, FILE_LIMIT_BYTES, places, shown};
use crate::rules::budgets::{Budget, BudgetDraft, Scope};

/// Writes a budget into a config file, in place of the one named `of`, or as a new one. The file that a link leads to
/// is replaced, the link stays, and a file that is not there is begun. Fails with one line for the person.
pub fn save_budget(file: &Path, draft: &BudgetDraft, of: Option<&str>) -> Result<(), String> {
    save_when(file, draft, of, || ())
}

/// The same; `ready` is called between reading and writing.
fn save_when(file: &Path, draft: &BudgetDraft, of: Option<&str>, ready: impl FnOnce()) -> Result<(), String> {
    let target = followed(file);
    let before = read(&target)?;
    let text = before.as_deref().map_or(Ok(""), |bytes| {
        std::str::from_utf8(bytes).map_err(|_| format!("{}: this is not UTF-8 text", shown(&target)))
    })?;
    let changed = with_budget(text, file, draft, of)?;
    ready();
    if read(&target)? != before {
        return Err(format!("{}: somebody else has just changed it; nothing was written", shown(&target)));
    }
    write(&target, changed.as_bytes()).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::PermissionDenied => "no permission to write there".to_owned(),
            ErrorKind::ReadOnlyFilesystem => "its file system is read-only".to_owned(),
            ErrorKind::StorageFull => "no space left on its file system".to_owned(),
            ErrorKind::QuotaExceeded => "its quota is used up".to_owned(),
            _ => clean(&error.to_string()),
        };
        format!("{}: {reason}; nothing was written", shown(&target))
    })
}

/// The file at the end of all links, also where it is not there yet.
fn followed(file: &Path) -> PathBuf {
    let mut target = file.to_owned();
    // So many as the system itself follows.
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    target
}

/// What is in a file; `None` when there is none.
fn read(file: &Path) -> Result<Option<Vec<u8>>, String> {
    match fs::metadata(file) {
        Ok(metadata) if metadata.len() > FILE_LIMIT_BYTES => {
            return Err(ConfigError::TooLarge { file: file.to_owned() }.to_string());
        }
        Ok(metadata) if metadata.is_dir() => return Err(ConfigError::Folder { file: file.to_owned() }.to_string()),
        _ => {}
    }
    match fs::read(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Unreadable { file: file.to_owned(), source }.to_string()),
    }
}

/// Beside it first, then in its place.
fn write(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    places::create_private(folder)?;
    // A file that is read-only was meant to stay as it is, although its folder would let it be replaced.
    let mode = match fs::metadata(target) {
        Ok(metadata) if metadata.permissions().readonly() => return Err(ErrorKind::PermissionDenied.into()),
        Ok(metadata) => Some(metadata.permissions()),
        Err(_) => None,
    };
    // Its owner's alone, whatever the umask.
    let mut beside = tempfile::Builder::new().prefix(".rentop-config-").tempfile_in(folder)?;
    beside.write_all(bytes)?;
    if let Some(mode) = mode {
        beside.as_file().set_permissions(mode)?;
    }
    beside.as_file().sync_all()?;
    beside.persist(target).map_err(|failed| failed.error)?;
    Ok(())
}

/// Where a text is written in a way that cannot be changed here.
const BY_HAND: &str = "this budget is written in a way that cannot be changed here; change it in the config file";
const SEVERAL: &str = "this budget is for what fits several conditions; change these in the config file";

/// The text with the budget in it, checked.
fn with_budget(text: &str, file: &Path, draft: &BudgetDraft, of: Option<&str>) -> Result<String, String> {
    let before = Config::parse(text, file).map_err(|error| first_line(&error.to_string()))?;
    let wanted = Wanted::of(draft)?;
    let meant = wanted.meant(&before.timezone)?;
    // A byte-order mark at the beginning stays there.
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = &text[..text.len() - bare.len()];
    let table = DeTable::parse(bare).map_err(|error| clean(error.message()))?.into_inner();
    let page = Page { text: bare, newline: if bare.contains("\r\n") { "\r\n" } else { "\n" } };
    let old = of.map(|name| before.budgets.iter().find(|budget| budget.name == name).ok_or(name));
    let (edits, expected) = match old.transpose() {
        Err(name) => return Err(format!("there is no budget `{}` in the config file any more", quote(name))),
        Ok(None) => (page.add(&table, &wanted), meant),
        Ok(Some(old)) => {
            let expected = Budget { scope: instead_of(&old.scope, meant.scope), ..meant };
            (page.change(&table, &wanted, old, &expected)?, expected)
        }
    };
    let changed = format!("{mark}{}", page.with(edits));
    let after = Config::parse(&changed, file).map_err(|error| for_a_form(&error))?;
    // Whatever the text looks like, it means what was wanted, and all else means what it meant.
    let mut budgets = before.budgets.clone();
    match of.and_then(|name| budgets.iter_mut().find(|budget| budget.name == name)) {
        Some(old) => *old = expected,
        None => budgets.push(expected),
    }
    let expected = Config { budgets, notices: Vec::new(), ..before };
    if (Config { notices: Vec::new(), ..after }) != expected {
        return Err(BY_HAND.to_owned());
    }
    Ok(changed)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The first mistake, by its key alone: the lines are of a text that nobody sees.
fn for_a_form(error: &ConfigError) -> String {
    let ConfigError::Mistakes { mistakes, .. } = error else { return first_line(&error.to_string()) };
    let Some(first) = mistakes.first() else { return first_line(&error.to_string()) };
    match first.key.split_once("].").map(|(_, key)| key) {
        Some(key) => format!("{key}: {}", first.message),
        None => first.message.clone(),
    }
}

/// A scope of several conditions keeps those that a form does not show.
fn instead_of(old: &Scope, new: Scope) -> Scope {
    let conditions = [
        old.provider.is_some(),
        old.account.is_some(),
        old.project.is_some(),
        old.instance.is_some(),
        old.label.is_some(),
    ];
    if conditions.into_iter().filter(|given| *given).count() < 2 {
        return new;
    }
    Scope {
        provider: new.provider.or_else(|| old.provider.clone()),
        account: new.account.or_else(|| old.account.clone()),
        project: new.project.or_else(|| old.project.clone()),
        instance: new.instance.or_else(|| old.instance.clone()),
        label: new.label.or_else(|| old.label.clone()),
    }
}

#[cfg(test)]
mod tests;
