//! What the interface of Vast.ai says, word for word; only fields that are read here.
//!
//! Environment, start script and notebook token stand in every row beside these and are never read.
//! Money that cannot be read makes its row a problem; a figure of mere telemetry that cannot be read is `None`.

use rust_decimal::Decimal;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::text::excerpt;

/// What stands in every answer when something went wrong, also beside status 200.
#[derive(Debug, Deserialize)]
pub struct Told {
    #[serde(default, deserialize_with = "lenient")]
    pub success: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub error: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub msg: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub message: Option<String>,
}

/// `GET /api/v1/instances/`.
#[derive(Debug, Deserialize)]
pub struct Page {
    pub instances: Vec<Box<RawValue>>,
    /// Of the whole account; `instances_found` beside it counts this page.
    #[serde(default, deserialize_with = "lenient")]
    pub total_instances: Option<usize>,
    pub next_token: Option<String>,
}

/// `GET /api/v0/instances/{id}/`: the plural key holds one object, or null when there is none. An answer
/// without the key is no answer.
#[derive(Debug, Deserialize)]
pub struct One {
    #[serde(deserialize_with = "Option::deserialize")]
    pub instances: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
pub struct Instance {
    pub id: Id,
    /// Null while it is being made.
    pub actual_status: Option<Word>,
    /// State of the contract: running, stopped, unloaded.
    pub cur_state: Option<Word>,
    /// Where the contract goes next.
    pub next_state: Option<Word>,
    /// What the user wants: running, stopped, frozen.
    pub intended_status: Option<Word>,
    #[serde(default, deserialize_with = "lenient")]
    pub label: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub status_msg: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub image_runtype: Option<String>,
    /// May end in blanks or a line break.
    #[serde(default, deserialize_with = "lenient")]
    pub public_ipaddr: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub ssh_host: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub ssh_port: Option<u16>,
    /// As Docker writes them: `{"22/tcp": [{"HostPort": "41021"}]}`.
    #[serde(default)]
    pub ports: serde_json::Value,
    /// Seconds of the epoch; the beginning of the rental, which a stop and a start do not move.
    #[serde(default, deserialize_with = "lenient")]
    pub start_date: Option<Exact>,
    /// Seconds of the epoch; the end of the contract.
    #[serde(default, deserialize_with = "lenient")]
    pub end_date: Option<Exact>,
    #[serde(default, deserialize_with = "lenient")]
    pub gpu_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub num_gpus: Option<Exact>,
    /// MiB of one card.
    #[serde(default, deserialize_with = "lenient")]
    pub gpu_ram: Option<Exact>,
    /// 0 to 100, one figure for all cards; negative when not known.
    #[serde(default, deserialize_with = "lenient")]
    pub gpu_util: Option<f64>,
    /// Degrees Celsius.
    #[serde(default, deserialize_with = "lenient")]
    pub gpu_temp: Option<f64>,
    /// A fraction by some sources, 0 to 100 by others (UNSURE).
    #[serde(default, deserialize_with = "lenient")]
    pub cpu_util: Option<f64>,
    /// In the unit of `mem_limit`: GB in the examples, MB in the text (UNSURE).
    #[serde(default, deserialize_with = "lenient")]
    pub mem_usage: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub mem_limit: Option<f64>,
    /// GB that storage is charged on.
    pub disk_space: Option<Exact>,
    /// True for an interruptible instance.
    #[serde(default, deserialize_with = "lenient")]
    pub is_bid: Option<bool>,
    /// USD an hour that an interruptible one has to offer at least, now.
    #[serde(default, deserialize_with = "lenient")]
    pub min_bid: Option<Exact>,
    /// USD an hour for all GPUs together.
    pub dph_base: Option<Exact>,
    /// `dph_base` and the disk, USD an hour; stays so while stopped.
    pub dph_total: Option<Exact>,
    /// USD per GB and month.
    pub storage_cost: Option<Exact>,
    /// USD an hour for the disk.
    pub storage_total_cost: Option<Exact>,
    /// What is charged now.
    pub instance: Option<Charged>,
    /// USD prepaid for this instance; null unless reserved.
    #[serde(default, deserialize_with = "lenient")]
    pub credit_balance: Option<Exact>,
    /// A fraction; null unless reserved.
    #[serde(default, deserialize_with = "lenient")]
    pub credit_discount: Option<Exact>,
    #[serde(default, deserialize_with = "lenient")]
    pub geolocation: Option<String>,
    /// Missing when one instance is asked for by its id.
    pub volume_info: Option<Vec<Mounted>>,
}

/// USD an hour as charged at this moment.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Charged {
    pub gpu_cost_per_hour: Option<Exact>,
    pub disk_hour: Option<Exact>,
    pub total_hour: Option<Exact>,
    /// The total with the discount of a reserved instance; 0 when not told.
    pub discounted_total_per_hour: Option<Exact>,
}

/// A volume as its instance names it.
#[derive(Debug, Deserialize)]
pub struct Mounted {
    pub id: Id,
    #[serde(default, deserialize_with = "lenient")]
    pub label: Option<String>,
    /// `machine` or `network`.
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub kind: Option<String>,
    /// GB.
    #[serde(default, deserialize_with = "lenient")]
    pub total_space: Option<Exact>,
}

/// `GET /api/v0/volumes`.
#[derive(Debug, Deserialize)]
pub struct Volumes {
    pub volumes: Vec<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
pub struct Volume {
    pub id: Id,
    #[serde(default, deserialize_with = "lenient")]
    pub label: Option<String>,
    /// `created`, `in-use`; a volume stays `in-use` for about half a minute after its instance is gone.
    pub status: Option<Word>,
    /// `machine` or `network`.
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub kind: Option<String>,
    /// GB.
    pub disk_space: Option<Exact>,
    /// USD an hour by the arithmetic of others; the description says "total cost" only (UNSURE).
    pub storage_total_cost: Option<Exact>,
    /// Ids, or objects with an id (UNSURE).
    #[serde(default)]
    pub instances: Option<Vec<User>>,
    /// Seconds of the epoch.
    #[serde(default, deserialize_with = "lenient")]
    pub start_date: Option<Exact>,
    #[serde(default, deserialize_with = "lenient")]
    pub geolocation: Option<String>,
}

/// An instance that mounts a volume.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum User {
    Number(u64),
    Text(String),
    Object { id: u64 },
}

/// `GET /api/v0/users/current`: who is behind the key. The answer holds keys beside this.
#[derive(Debug, Deserialize)]
pub struct Holder {
    pub id: Option<Id>,
}

/// The same answer: the money. `credit` is what is left; in the documentation's own example `balance` is 0
/// beside it.
#[derive(Debug, Deserialize)]
pub struct Purse {
    pub credit: Option<Exact>,
    pub balance: Option<Exact>,
}

/// `GET /api/v0/charges/`.
#[derive(Debug, Deserialize)]
pub struct Charges {
    pub results: Vec<Box<RawValue>>,
    pub next_token: Option<String>,
}

/// What one contract was charged in the time asked for.
#[derive(Debug, Deserialize)]
pub struct Charge {
    /// Seconds of the epoch.
    #[serde(default, deserialize_with = "lenient")]
    pub start: Option<Exact>,
    #[serde(default, deserialize_with = "lenient")]
    pub end: Option<Exact>,
    /// `instance`, `volume`, `serverless`.
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub kind: Option<String>,
    /// `instance-31000001`.
    #[serde(default, deserialize_with = "lenient")]
    pub source: Option<String>,
    /// USD, to 3 decimals.
    pub amount: Exact,
    #[serde(default)]
    pub items: Option<Vec<ChargeItem>>,
}

#[derive(Debug, Deserialize)]
pub struct ChargeItem {
    /// `gpu`, `disk`, `bwd` (traffic in), `bwu` (traffic out).
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub kind: Option<String>,
    /// USD, to 3 decimals.
    pub amount: Exact,
}

/// `GET /api/v0/instances/pending-price-increases/`.
#[derive(Debug, Deserialize)]
pub struct Rises {
    pub pending_price_increases: Vec<Box<RawValue>>,
}

/// A rise that a host asks for. USD a second, of the whole contract; a price that stays is null. What becomes of
/// traffic and the platform's fee is not read: they have no rate.
#[derive(Debug, Deserialize)]
pub struct Rise {
    pub contract_id: Id,
    #[serde(default, deserialize_with = "lenient")]
    pub old_gpu_costpersec: Option<Exact>,
    #[serde(default, deserialize_with = "lenient")]
    pub new_gpu_costpersec: Option<Exact>,
    #[serde(default, deserialize_with = "lenient")]
    pub old_disk_ram_costpersec: Option<Exact>,
    #[serde(default, deserialize_with = "lenient")]
    pub new_disk_ram_costpersec: Option<Exact>,
    /// Seconds of the epoch.
    #[serde(default, deserialize_with = "lenient")]
    pub contract_end_date: Option<Exact>,
}

/// A number that came as a number or as text, with every digit that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Exact(pub Decimal);

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        exact(raw.get().trim_matches('"'))
            .map(Exact)
            .ok_or_else(|| D::Error::custom(format_args!("`{}` is no number", excerpt(raw.get(), 40))))
    }
}

/// Reads plain and scientific notation; floats such as `-1.1e-16` are sent where 0 is meant.
fn exact(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let mantissa: Decimal = mantissa.trim().parse().ok()?;
    match exponent {
        0 => Some(mantissa),
        1.. => mantissa.checked_mul(Decimal::from_i128_with_scale(10i128.checked_pow(exponent.unsigned_abs())?, 0)),
        -28..0 => mantissa.checked_mul(Decimal::new(1, exponent.unsigned_abs())),
        _ => Some(Decimal::ZERO),
    }
}

/// A word of the provider's; what is no text is kept as it was written, so that it is seen and not guessed.
#[derive(Clone, Debug)]
pub struct Word(pub String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Word(serde_json::from_str(raw.get()).unwrap_or_else(|_| excerpt(raw.get(), 40))))
    }
}

/// An id: digits, as a number or as text.
#[derive(Clone, Debug)]
pub struct Id(pub String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get().trim_matches('"');
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(D::Error::custom(format_args!("`{}` is no id", excerpt(raw.get(), 40))));
        }
        Ok(Id(text.to_owned()))
    }
}

/// `None` for what is missing, null or of another type.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_were_sent() {
        for (text, expected) in [
            ("0.4083333333", "0.4083333333"),
            ("\"0.74\"", "0.74"),
            ("4.079441760601181e-05", "0.00004079441760601181"),
            ("1.795e9", "1795000000"),
            ("1E+2", "100"),
            ("-3", "-3"),
            ("1e-300", "0"),
        ] {
            let read: Exact = serde_json::from_str(text).unwrap();
            assert_eq!(read.0, expected.parse().unwrap(), "{text}");
        }
        for text in ["\"n/a\"", "{}", "true", "[1]", "\"\"", "1e999"] {
            assert!(serde_json::from_str::<Exact>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_word_of_another_type_stays_visible() {
        for (text, expected) in [("\"running\"", "running"), ("7", "7"), ("{\"a\":1}", "{\"a\":1}")] {
            assert_eq!(serde_json::from_str::<Word>(text).unwrap().0, expected);
        }
    }
}
