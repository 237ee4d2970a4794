//! `rocm-smi`, and `hy-smi`, which is the same tool renamed: an object for each card, of names and texts.
//!
//! It is JSON most of the time. A comma may be missing, and warnings stand before it, so that what is quoted is all
//! that is looked at.

use providers::usage::GpuSample;

use super::cards::{Cards, Way, bytes, celsius, memory, mib, name, number, percent, watts};

pub(super) const ROCM: Way = Way {
    word: "rocm",
    tool: "rocm-smi",
    maker: Some("1002"),
    asked: "--showuse --showmeminfo vram --showtemp --showpower --showproductname --showuniqueid --json",
    read: |_, answer| read(answer),
};

/// More would be told by `--showhw`, which breaks its JSON.
pub(super) const HYGON: Way = Way {
    word: "hygon",
    tool: "hy-smi",
    maker: Some("1d94"),
    asked: "--showuse --showmemuse --showmeminfo vram --showtemp --showpower --showproductname --showuniqueid --json",
    read: |_, answer| read(answer),
};

/// A card's number, and what is told of it.
type Told = (u32, Vec<(String, String)>);

fn read(answer: &str) -> Cards {
    let mut told = told(answer);
    told.sort_by_key(|(number, _)| *number);
    Cards { gpus: told.iter().map(card).collect(), ..Cards::default() }
}

fn card((number_of_card, told): &Told) -> GpuSample {
    let text = |keys: &[&str]| {
        let find = |key: &&str| told.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, text)| text);
        keys.iter().filter_map(find).find_map(|text| name(text))
    };
    let figure = |keys: &[&str]| {
        let find = |key: &&str| told.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
        keys.iter().filter_map(find).find_map(|(_, text)| number(text))
    };
    let size = |what: &str| {
        bytes(figure(&[&format!("vram {what} (B)")])).or_else(|| mib(figure(&[&format!("vram {what} (MiB)")])))
    };
    let (memory_used_bytes, memory_total_bytes) = memory(size("Total Used Memory"), size("Total Memory"));
    GpuSample {
        index: *number_of_card,
        key: text(&["Unique ID"]),
        model: text(&["Device Name", "Card Series", "Card Model"]),
        // Of Hygon's, the first since dtk 25.04, the second before.
        utilization: percent(figure(&["GPU use (%)", "HCU use (%)", "DCU use (%)"])),
        memory_used_bytes,
        memory_total_bytes,
        temperature_c: celsius(figure(&["Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)"])),
        power_watts: watts(figure(&[
            "Current Socket Graphics Package Power (W)",
            "Average Graphics Package Power (W)",
        ])),
        power_limit_watts: None,
        partitioned: false,
        fault: None,
    }
}

/// What is told of each `cardN`.
fn told(answer: &str) -> Vec<Told> {
    let mut cards: Vec<Told> = Vec::new();
    // Of `system` and the like nothing is wanted.
    let mut within = false;
    let mut rest = answer;
    while let Some((quoted, after)) = next_quoted(rest) {
        rest = after;
        let Some(value) = after.trim_start().strip_prefix(':').map(str::trim_start) else { continue };
        if value.starts_with('{') {
            let number = quoted.strip_prefix("card").and_then(|number| number.parse().ok());
            within = number.is_some();
            cards.extend(number.map(|number| (number, Vec::new())));
        } else if let Some((_, told)) = cards.last_mut().filter(|_| within) {
            let text = match value.starts_with('"').then(|| next_quoted(value)).flatten() {
                Some((text, after)) => {
                    rest = after;
                    text
                }
                None => &value[..value.find([',', '}', '\n']).unwrap_or(value.len())],
            };
            told.push((quoted.to_owned(), text.to_owned()));
        }
    }
    cards
}

/// The next text in double quotes, and what follows it.
fn next_quoted(text: &str) -> Option<(&str, &str)> {
    let inner = &text[text.find('"')? + 1..];
    let end = inner.find('"')?;
    Some((&inner[..end], &inner[end + 1..]))
}
