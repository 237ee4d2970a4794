//! What Lambda's interface says, word for word: only the fields that are read.
//!
//! Optional keys are absent when there is nothing to say; a `null` in their place is read the same way.
//! The notebook's token and address are secrets and are not read at all.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Every success is wrapped in `data`.
#[derive(Debug, Deserialize)]
pub struct Data<T> {
    pub data: T,
}

/// A list, each row still unread.
pub type List = Data<Vec<Box<RawValue>>>;

/// An id that can stand in a path as it is: anything else is not taken for one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Id(String);

impl Id {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Id {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if plain && (1..=128).contains(&text.len()) {
            Ok(Id(text))
        } else {
            Err("not an id of letters and digits".to_owned())
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct Instance {
    pub id: Id,
    pub name: Option<String>,
    pub status: Option<String>,
    /// Missing while booting.
    pub ip: Option<String>,
    pub file_system_names: Option<Vec<String>>,
    pub file_system_mounts: Option<Vec<Mount>>,
    pub region: Option<Region>,
    pub instance_type: Option<InstanceType>,
    pub actions: Option<Actions>,
    pub tags: Option<Vec<Tag>>,
    /// Not in the description of 1.8.3, yet in its examples.
    pub is_reserved: Option<bool>,
    /// When it first passed its health checks, which is when its charge begins. Newer servers only.
    #[serde(default, deserialize_with = "moment")]
    pub first_healthy: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
pub struct Mount {
    pub mount_point: Option<String>,
    pub file_system_id: Id,
}

#[derive(Debug, Deserialize)]
pub struct Region {
    pub name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct InstanceType {
    /// For instance `gpu_8x_h100_sxm5`.
    pub name: Option<String>,
    /// One card, for instance `H100 (80 GB SXM5)`; `N/A` for types without any.
    pub gpu_description: Option<String>,
    /// US cents per hour for the whole instance, all its GPUs included.
    #[serde(default, deserialize_with = "amount")]
    pub price_cents_per_hour: Option<Decimal>,
    pub specs: Option<Specs>,
}

#[derive(Debug, Deserialize)]
pub struct Specs {
    /// Local disk in GiB.
    #[serde(default, deserialize_with = "amount")]
    pub storage_gib: Option<Decimal>,
    /// 0 for CPU types.
    pub gpus: Option<u32>,
}

/// What can be done now. The map has more entries, for which there is no public call.
#[derive(Debug, Default, Deserialize)]
pub struct Actions {
    pub restart: Option<Availability>,
    pub terminate: Option<Availability>,
}

#[derive(Debug, Deserialize)]
pub struct Availability {
    pub available: Option<bool>,
    /// Present when not available, for instance `vm-has-not-launched`.
    pub reason_code: Option<String>,
    pub reason_description: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Tag {
    pub key: Option<String>,
    pub value: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct FileSystem {
    pub id: Id,
    pub name: Option<String>,
    #[serde(default, deserialize_with = "moment")]
    pub created: Option<Timestamp>,
    /// Stays true for a while after the last instance has gone.
    pub is_in_use: Option<bool>,
    pub region: Option<Region>,
    /// Bytes in use: approximate, refreshed every few hours, missing until it was measured.
    #[serde(default, deserialize_with = "amount")]
    pub bytes_used: Option<Decimal>,
}

/// The body of terminate and restart.
#[derive(Debug, Serialize)]
pub struct Operation<'a> {
    pub instance_ids: [&'a str; 1],
}

/// The answer to terminate or restart: the instances that it was carried out on.
#[derive(Debug, Deserialize)]
pub struct Operated {
    #[serde(alias = "terminated_instances", alias = "restarted_instances")]
    pub instances: Vec<Named>,
}

#[derive(Debug, Deserialize)]
pub struct Named {
    pub id: Id,
}

/// The answer to the deletion of a file system.
#[derive(Debug, Deserialize)]
pub struct Deleted {
    pub deleted_ids: Vec<Id>,
}

/// A decimal of 0 or more as number or text; `None` for null and for an empty text.
fn amount<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Decimal>, D::Error> {
    let text = match Value::deserialize(json)? {
        Value::Null => return Ok(None),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => text.trim().to_owned(),
        _ => return Err(D::Error::custom("neither a number nor a text that holds one")),
    };
    let read = text.parse().or_else(|_| Decimal::from_scientific(&text));
    match read {
        Ok(amount) if amount >= Decimal::ZERO => Ok(Some(amount)),
        Ok(_) => Err(D::Error::custom("less than nothing")),
        Err(_) => Err(D::Error::custom("not a decimal number")),
    }
}

/// A moment with its zone. One that cannot be read is as good as none: a row is worth more than its date.
fn moment<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(Value::deserialize(json)?.as_str().and_then(|text| text.trim().parse().ok()))
}
