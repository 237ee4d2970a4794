//! How single values are written: times, kinds, and rows as JSON beside the number of their layout.

use jiff::Timestamp;
use providers::model::{Identity, ResourceKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::LedgerError;

/// The layout of every row's JSON. It rises when an older rentop could misread a newer row.
const LAYOUT: u32 = 1;

#[derive(Serialize)]
struct Written<'a, T> {
    v: u32,
    row: &'a T,
}

#[derive(Deserialize)]
struct Read<T> {
    v: u32,
    row: T,
}

pub(super) fn write<T: Serialize>(row: &T) -> Result<String, LedgerError> {
    Ok(serde_json::to_string(&Written { v: LAYOUT, row })?)
}

/// `None` when this version cannot read it.
pub(super) fn read<T: DeserializeOwned>(json: &str) -> Option<T> {
    let read: Read<T> = serde_json::from_str(json).ok()?;
    (read.v <= LAYOUT).then_some(read.row)
}

pub(super) fn kind_word(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Instance => "instance",
        ResourceKind::Storage => "storage",
    }
}

pub(super) fn kind(word: &str) -> Option<ResourceKind> {
    [ResourceKind::Instance, ResourceKind::Storage].into_iter().find(|kind| kind_word(*kind) == word)
}

/// Times are kept to the millisecond.
pub(super) fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

pub(super) fn time(millis: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(millis).ok()
}

/// The outer `None` is a time out of range, the inner one none at all.
pub(super) fn maybe_time(millis: Option<i64>) -> Option<Option<Timestamp>> {
    millis.map_or(Some(None), |millis| time(millis).map(Some))
}

/// Account, kind, id and generation from four neighbouring columns; `None` when they name no resource.
pub(super) fn identity(row: &rusqlite::Row, first: usize) -> Option<Identity> {
    Some(Identity {
        account: text(row, first)?.into(),
        kind: kind(text(row, first + 1)?)?,
        id: text(row, first + 2)?.into(),
        generation: row.get(first + 3).ok()?,
    })
}

/// `None` when the column holds no text, or text that is not UTF-8.
pub(super) fn text<'a>(row: &'a rusqlite::Row, column: usize) -> Option<&'a str> {
    row.get_ref(column).ok()?.as_str().ok()
}
