//! `amd-smi`: JSON, in which a figure is `{"value": 99, "unit": "%"}` or the word `N/A`.

use providers::usage::GpuSample;
use serde_json::Value;

use super::cards::{Cards, Way, celsius, memory, mib, name, number, percent, watts};

/// It tells no names: those are another question.
pub(super) const AMD: Way = Way {
    word: "amd",
    tool: "amd-smi",
    maker: Some("1002"),
    asked: "metric --usage --mem-usage --power --temperature --json",
    read: |_, answer| read(answer),
};

fn read(answer: &str) -> Cards {
    let Some(rows) = rows(answer) else { return Cards::default() };
    let gpus: Vec<GpuSample> = rows.iter().enumerate().filter_map(card).collect();
    Cards { none: rows.is_empty(), gpus, processes: None }
}

/// Its cards: a list, in newer versions inside of `gpu_data`. Warnings may stand before it.
fn rows(answer: &str) -> Option<Vec<Value>> {
    let begin = answer.find(['{', '['])?;
    let mut values = serde_json::Deserializer::from_str(&answer[begin..]).into_iter::<Value>();
    match values.next()?.ok()? {
        Value::Array(rows) => Some(rows),
        Value::Object(mut object) => match object.remove("gpu_data")? {
            Value::Array(rows) => Some(rows),
            _ => None,
        },
        _ => None,
    }
}

fn card((place, row): (usize, &Value)) -> Option<GpuSample> {
    let row = row.as_object()?;
    let figure = |group: &str, names: &[&str]| {
        let group = row.get(group)?;
        names.iter().find_map(|name| value(group.get(name)?))
    };
    // What shares the machine's memory has next to none of its own: UNSURE, by the documentation of 2025.
    let used = figure("mem_usage", &["used_vram", "used_gtt"]);
    let (memory_used_bytes, memory_total_bytes) =
        memory(mib(used), mib(figure("mem_usage", &["total_vram", "total_gtt"])));
    Some(GpuSample {
        index: index(row.get("gpu")).unwrap_or(place as u32),
        utilization: percent(figure("usage", &["gfx_activity"])),
        memory_used_bytes,
        memory_total_bytes,
        temperature_c: celsius(figure("temperature", &["edge", "hotspot"])),
        power_watts: watts(figure("power", &["socket_power", "current_socket_power", "average_socket_power"])),
        ..GpuSample::default()
    })
}

fn value(figure: &Value) -> Option<f64> {
    match figure {
        Value::Object(figure) => figure.get("value").and_then(value),
        Value::Number(figure) => figure.as_f64(),
        Value::String(figure) => number(figure),
        _ => None,
    }
}

fn index(value: Option<&Value>) -> Option<u32> {
    u32::try_from(value?.as_u64()?).ok()
}

/// What the cards are called, each with its index. UNSURE: the names of these keys are those of 2025.
pub(super) fn names(answer: &str) -> Vec<(u32, String)> {
    let named = |row: &Value| Some((index(row.get("gpu"))?, name(row.get("asic")?.get("market_name")?.as_str()?)?));
    rows(answer).unwrap_or_default().iter().filter_map(named).collect()
}
