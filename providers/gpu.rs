//! One card, one name: what providers, tools and drivers call a GPU, brought to one normal form.

use serde::{Deserialize, Serialize};

use crate::text::clean;

/// The GPUs of one instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gpus {
    /// The normal form, for instance `RTX 4090`, `H100 SXM`, `A100 SXM 80GB`; an unknown name as it came.
    pub model: String,
    /// Number of cards; 0 for an instance that was started without any.
    pub count: u32,
    /// Memory of one card in GiB; `None` when neither the provider nor the name says it.
    pub memory_gib: Option<u32>,
}

impl Gpus {
    /// Reads any vendor's name. `count` is the provider's own field where it has one; a count inside the
    /// name serves otherwise, and 1 where neither speaks.
    pub fn parse(name: &str, count: Option<u32>, memory_gib: Option<u32>) -> Self {
        let (model, named_count) = normalize(name);
        // What stands behind a GH200 is the memory of its processor.
        let named_memory = || memory_in(name).filter(|_| !model.starts_with("GH200"));
        let memory_gib = memory_gib.or_else(named_memory).or_else(|| usual_memory(&model));
        Gpus { model, count: count.or(named_count).unwrap_or(1), memory_gib }
    }
}

impl Gpus {
    /// Whether a driver's name may be of the card that is rented, or of one with more memory. Only two names that are
    /// both known can tell that it is another one; what one of them leaves out, memory or form, the other may have.
    pub fn is_same_card(&self, name: &str) -> bool {
        let known = |name: &str| known_model(&words_of(&clean(name)));
        let (Some(rented), Some(seen)) = (known(&self.model), known(name)) else { return true };
        let less = memory_in(&seen).zip(memory_in(&rented)).is_some_and(|(seen, rented)| seen < rented);
        let words = |model: &'_ str| model.split(' ').filter(|word| !word.ends_with("GB")).map(str::to_owned).collect();
        let (rented, seen): (Vec<String>, Vec<String>) = (words(&rented), words(&seen));
        let within = |one: &[String], other: &[String]| one.iter().all(|word| other.contains(word));
        !less && (within(&rented, &seen) || within(&seen, &rented))
    }
}

/// Brings a name to its normal form, with the count that the name itself held.
fn normalize(name: &str) -> (String, Option<u32>) {
    let shown = clean(name);
    let mut words = words_of(&shown);
    let mut count = None;
    // `RTX 3080 Ti * 1卡`, `8x H100`, `1x_RTX4090`, `gpu_8x_h100_sxm5`.
    if let Some(star) = words.iter().position(|word| word == "*") {
        count = words.get(star + 1).and_then(|word| word.trim_end_matches('卡').parse().ok());
        words.truncate(star);
    }
    words.retain(|word| match word.strip_suffix('X').and_then(|digits| digits.parse().ok()) {
        Some(n) => {
            count = count.or(Some(n));
            false
        }
        None => true,
    });
    // Verda: `8V100.48V` is eight V100 and 48 virtual CPUs.
    if let [only] = words.as_slice()
        && let Some((head, cpus)) = only.split_once('.')
        && cpus.ends_with('V')
    {
        let digits = head.len() - head.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        count = count.or(head[..digits].parse().ok());
        words = vec![head[digits..].to_owned()];
    }
    match known_model(&words) {
        Some(model) => (model, count),
        None => (shown, count),
    }
}

fn words_of(shown: &str) -> Vec<String> {
    let mut words: Vec<String> = shown
        .replace(['_', '(', ')', ','], " ")
        .split([' ', '-'])
        .filter(|word| !word.is_empty())
        .map(str::to_uppercase)
        .collect();
    // `A10 (24 GB PCIe)`: the number and its unit are one word.
    while let Some(at) = words.iter().position(|word| word == "GB").filter(|at| *at > 0) {
        words.remove(at);
        words[at - 1].push_str("GB");
    }
    words
}

/// The normal form of a card that is known here, or `None`: an unknown name is shown as it is.
fn known_model(words: &[String]) -> Option<String> {
    const NOISE: [&str; 9] = ["NVIDIA", "GEFORCE", "GPU", "TESLA", "QUADRO", "GRAPHICS", "SECURE", "COMMUNITY", "SPOT"];
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !NOISE.contains(word)).collect();
    if words.contains(&"MIG") {
        return None;
    }
    let memory = words.iter().find_map(|word| word.strip_suffix("GB").and_then(|n| n.parse::<u32>().ok()));
    let has = |needle: &str| words.iter().any(|word| word.starts_with(needle));
    let form_factor = if has("SXM") || has("HBM3") {
        " SXM"
    } else if has("PCIE") {
        " PCIe"
    } else if has("NVL") {
        " NVL"
    } else {
        ""
    };
    let joined: String = words.concat();
    // Consumer and workstation cards: a number, then perhaps Ti, Super, D.
    if let Some(rest) = joined.strip_prefix("RTX") {
        if let Some(rest) = rest.strip_prefix("PRO") {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            return (!digits.is_empty()).then(|| format!("RTX PRO {digits}"));
        }
        if rest.starts_with('A') && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let digits: String = rest[1..].chars().take_while(char::is_ascii_digit).collect();
            return Some(format!("RTX A{digits}"));
        }
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        if digits.len() != 4 {
            return None;
        }
        let tail = &rest[4..];
        let tail = match tail {
            "" | "24GB" | "12GB" | "16GB" | "32GB" | "48GB" => "",
            // Another chip, with less memory.
            "LAPTOP" => " Laptop",
            "ADA" | "ADAGENERATION" => " Ada",
            "TI" | "TI12GB" => " Ti",
            "SUPER" | "S" => " Super",
            "TISUPER" | "TIS" => " Ti Super",
            "D" => " D",
            _ => return None,
        };
        return Some(format!("RTX {digits}{tail}"));
    }
    let family = words.iter().find_map(|word| {
        let known = [
            "H100", "H200", "H800", "H20", "GH200", "B200", "B300", "GB200", "GB300", "A100", "A800", "V100", "P100",
            "L40S", "L40", "L20", "L4", "A10G", "A10", "A16", "A30", "A40", "A2", "T4", "P4", "P40", "K80", "MI210",
            "MI250X", "MI250", "MI300X", "MI325X", "MI350X", "MI355X",
        ];
        let stem = ["SXM", "PCIE"].iter().find_map(|tail| word.find(tail)).map_or(*word, |at| &word[..at]);
        known.into_iter().find(|model| *model == stem)
    })?;
    let extra = words.iter().any(|word| {
        let plain = word.trim_end_matches(|c: char| c.is_ascii_digit());
        !(word.starts_with(family)
            || word.ends_with("GB") && word.trim_end_matches("GB").chars().all(|c| c.is_ascii_digit())
            || ["SXM", "PCIE", "HBM", "HBM3E", "NVL", "X", "GB", "AMD", "INSTINCT", "OAM"].contains(&plain)
            || word.ends_with("HBM3E")
            || word.starts_with("SXM"))
    });
    if extra {
        return None;
    }
    Some(match family {
        // The memory is part of what an A100 is: 40 and 80 GB cards bear the same name.
        "A100" => {
            let memory = memory.or((form_factor == " SXM").then_some(40));
            format!("A100{form_factor}{}", memory.map(|gb| format!(" {gb}GB")).unwrap_or_default())
        }
        // One form factor is all that most names mean by these two.
        "H100" | "A800" | "H800" => format!("{family}{form_factor}"),
        "GH200" | "B200" | "B300" | "GB200" | "GB300" | "H200" => match form_factor {
            " NVL" => format!("{family} NVL"),
            _ => family.to_owned(),
        },
        _ => family.to_owned(),
    })
}

/// Memory that a name states, as in `NVIDIA A100-SXM4-80GB`.
fn memory_in(name: &str) -> Option<u32> {
    name.to_uppercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .find_map(|word| word.strip_suffix("GB").and_then(|n| n.parse().ok()))
}

/// Memory of cards that are built with one size only, in GiB.
fn usual_memory(model: &str) -> Option<u32> {
    Some(match model {
        "RTX 4090" | "RTX 3090" | "RTX 3090 Ti" | "A10" | "A10G" | "L4" | "A30" | "RTX A5000" => 24,
        "RTX 5090" => 32,
        "RTX 3080 Ti" => 12,
        "H100 SXM" | "H100 PCIe" | "A100 SXM 80GB" | "A100 PCIe 80GB" | "A100 80GB" => 80,
        "A100 SXM 40GB" | "A100 PCIe 40GB" | "A100 40GB" => 40,
        "H100 NVL" => 94,
        "H200" => 141,
        "GH200" | "H20" => 96,
        "B200" => 180,
        "A40" | "L40" | "L40S" | "RTX A6000" | "RTX 6000 Ada" => 48,
        "T4" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    /// GPU-08: one card, many names.
    #[rstest]
    #[case("RTX 4090", Some(1), "RTX 4090", 1)]
    #[case("RTX_4090", Some(1), "RTX 4090", 1)]
    #[case("NVIDIA GeForce RTX 4090", Some(1), "RTX 4090", 1)]
    #[case("NVIDIA GeForce RTX 4090", Some(2), "RTX 4090", 2)]
    #[case("1x_RTX4090_SECURE", None, "RTX 4090", 1)]
    #[case("gpu_1x_a100_sxm4", None, "A100 SXM 40GB", 1)]
    #[case("gpu_8x_h100_sxm5", None, "H100 SXM", 8)]
    #[case("8V100.48V", None, "V100", 8)]
    #[case("1B200.30V", None, "B200", 1)]
    #[case("NVIDIA H100 80GB HBM3", Some(1), "H100 SXM", 1)]
    #[case("NVIDIA H100 PCIe", Some(1), "H100 PCIe", 1)]
    #[case("NVIDIA A100-SXM4-80GB", Some(1), "A100 SXM 80GB", 1)]
    #[case("RTX 3080 Ti * 1卡", None, "RTX 3080 Ti", 1)]
    #[case("NVIDIA Next 9000", Some(1), "NVIDIA Next 9000", 1)]
    // The same kind, beyond the case's own list.
    #[case("NVIDIA A100 80GB PCIe", Some(1), "A100 PCIe 80GB", 1)]
    #[case("A100 (40 GB SXM4)", Some(1), "A100 SXM 40GB", 1)]
    #[case("H100 SXM", Some(8), "H100 SXM", 8)]
    #[case("H100 (80 GB SXM5)", Some(8), "H100 SXM", 8)]
    #[case("NVIDIA H200", Some(1), "H200", 1)]
    #[case("A10 (24 GB PCIe)", Some(1), "A10", 1)]
    #[case("NVIDIA RTX A5000", Some(1), "RTX A5000", 1)]
    #[case("NVIDIA RTX 6000 Ada Generation", Some(1), "RTX 6000 Ada", 1)]
    #[case("RTX 4070S Ti", Some(1), "RTX 4070S Ti", 1)]
    #[case("NVIDIA A100-SXM4-80GB MIG 1g.10gb", Some(1), "NVIDIA A100-SXM4-80GB MIG 1g.10gb", 1)]
    #[case("NVIDIA L40S", Some(1), "L40S", 1)]
    #[case("Tesla T4", Some(1), "T4", 1)]
    #[case("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", Some(1), "RTX PRO 6000", 1)]
    #[case("NVIDIA H100 NVL", Some(1), "H100 NVL", 1)]
    fn one_card_has_one_name(#[case] name: &str, #[case] field: Option<u32>, #[case] model: &str, #[case] count: u32) {
        let gpus = Gpus::parse(name, field, None);
        assert_eq!((gpus.model.as_str(), gpus.count), (model, count));
    }

    /// What providers call a card, and what its own driver does: GPU-05 has no false alarm.
    #[rstest]
    #[case("RTX 4090", "NVIDIA GeForce RTX 4090")]
    #[case("RTX_4090", "NVIDIA GeForce RTX 4090")]
    #[case("RTX 4090D", "NVIDIA GeForce RTX 4090 D")]
    #[case("RTX 3090", "NVIDIA GeForce RTX 3090")]
    #[case("RTX 3080 Ti * 1卡", "NVIDIA GeForce RTX 3080 Ti")]
    #[case("RTX 4070S Ti", "NVIDIA GeForce RTX 4070 Ti SUPER")]
    #[case("RTX 4070 Ti Super", "NVIDIA GeForce RTX 4070 Ti SUPER")]
    #[case("RTX 5090", "NVIDIA GeForce RTX 5090")]
    #[case("RTX 4090 Laptop", "NVIDIA GeForce RTX 4090 Laptop GPU")]
    #[case("A100 80GB PCIe", "NVIDIA A100 80GB PCIe")]
    #[case("A100 PCIe 80GB", "NVIDIA A100 80GB PCIe")]
    #[case("A100 PCIE", "NVIDIA A100 80GB PCIe")]
    #[case("A100 PCIE", "NVIDIA A100-PCIE-40GB")]
    #[case("A100 SXM", "NVIDIA A100-SXM4-80GB")]
    #[case("A100 SXM4", "NVIDIA A100-SXM4-80GB")]
    #[case("A100X", "NVIDIA A100X")]
    #[case("A100-80G", "NVIDIA A100-SXM4-80GB")]
    #[case("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB")]
    #[case("gpu_1x_a100_sxm4", "NVIDIA A100-SXM4-40GB")]
    #[case("gpu_8x_a100_80gb_sxm4", "NVIDIA A100-SXM4-80GB")]
    #[case("gpu_1x_a100", "NVIDIA A100-PCIE-40GB")]
    #[case("A100 (40 GB SXM4)", "NVIDIA A100-SXM4-40GB")]
    #[case("H100 SXM", "NVIDIA H100 80GB HBM3")]
    #[case("H100 SXM5", "NVIDIA H100 80GB HBM3")]
    #[case("H100", "NVIDIA H100 80GB HBM3")]
    #[case("H100", "NVIDIA H100 PCIe")]
    #[case("gpu_8x_h100_sxm5", "NVIDIA H100 80GB HBM3")]
    #[case("H100 PCIe", "NVIDIA H100 PCIe")]
    #[case("H100 NVL", "NVIDIA H100 NVL")]
    #[case("H200", "NVIDIA H200")]
    #[case("H200 SXM", "NVIDIA H200")]
    #[case("H200 NVL", "NVIDIA H200 NVL")]
    #[case("H800", "NVIDIA H800")]
    #[case("H20", "NVIDIA H20")]
    #[case("H20", "NVIDIA H20-3e")]
    #[case("A800 80GB PCIe", "NVIDIA A800 80GB PCIe")]
    #[case("A800 SXM", "NVIDIA A800-SXM4-80GB")]
    #[case("GH200", "NVIDIA GH200 480GB")]
    #[case("gpu_1x_gh200", "NVIDIA GH200 480GB")]
    #[case("B200", "NVIDIA B200")]
    #[case("1B200.30V", "NVIDIA B200")]
    #[case("B300", "NVIDIA B300 SXM6 AC")]
    #[case("GB200", "NVIDIA GB200")]
    #[case("8V100.48V", "Tesla V100-SXM2-16GB")]
    #[case("V100-SXM2-32GB", "Tesla V100-SXM2-32GB")]
    #[case("V100 32GB", "Tesla V100-SXM2-32GB")]
    #[case("V100 FHHL", "Tesla V100-FHHL-16GB")]
    #[case("V100", "Tesla V100S-PCIE-32GB")]
    #[case("V100 PCIe", "Tesla V100-PCIE-16GB")]
    #[case("P100", "Tesla P100-PCIE-16GB")]
    #[case("T4", "Tesla T4")]
    #[case("T4", "NVIDIA T4")]
    #[case("P40", "Tesla P40")]
    #[case("K80", "Tesla K80")]
    #[case("A10 (24 GB PCIe)", "NVIDIA A10")]
    #[case("gpu_1x_a10", "NVIDIA A10")]
    #[case("A10G", "NVIDIA A10G")]
    #[case("A10", "NVIDIA A10-12Q")]
    #[case("A16", "NVIDIA A16-8C")]
    #[case("A30", "NVIDIA A30")]
    #[case("A40", "NVIDIA A40")]
    #[case("A40", "NVIDIA A40-48Q")]
    #[case("L4", "NVIDIA L4")]
    #[case("L20", "NVIDIA L20")]
    #[case("L40", "NVIDIA L40")]
    #[case("L40S", "NVIDIA L40S")]
    #[case("L40S", "NVIDIA L40S-48C")]
    #[case("RTX A4000", "NVIDIA RTX A4000")]
    #[case("RTX A5000", "NVIDIA RTX A5000")]
    #[case("A5000", "NVIDIA RTX A5000")]
    #[case("RTX A6000", "NVIDIA RTX A6000")]
    #[case("A6000", "NVIDIA RTX A6000")]
    #[case("gpu_1x_a6000", "NVIDIA RTX A6000")]
    #[case("RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation")]
    #[case("RTX 6000Ada", "NVIDIA RTX 6000 Ada Generation")]
    #[case("RTX 4000 Ada", "NVIDIA RTX 4000 SFF Ada Generation")]
    #[case("RTX 5000 Ada", "NVIDIA RTX 5000 Ada Generation")]
    #[case("gpu_1x_rtx6000", "Quadro RTX 6000")]
    #[case("RTX 6000", "NVIDIA RTX 6000 Ada Generation")]
    #[case("RTX PRO 6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition")]
    #[case("RTX PRO 6000 WK", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition")]
    #[case("RTX PRO 6000 S", "NVIDIA RTX PRO 6000 Blackwell Server Edition")]
    #[case("Quadro RTX 8000", "Quadro RTX 8000")]
    #[case("GTX 1080 Ti", "NVIDIA GeForce GTX 1080 Ti")]
    #[case("TITAN Xp", "NVIDIA TITAN Xp")]
    #[case("MI300X", "AMD Instinct MI300X OAM")]
    #[case("MI250", "AMD Instinct MI250X / MI250")]
    #[case("vGPU-32GB", "NVIDIA GeForce RTX 4080 SUPER")]
    #[case("A100 80GB", "GRID A100X-20C")]
    #[case("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "NVIDIA A100-SXM4-80GB")]
    #[case("Ascend 910B", "910B3")]
    fn a_card_under_its_drivers_name_is_the_one_that_is_rented(#[case] rented: &str, #[case] seen: &str) {
        let gpus = Gpus::parse(rented, Some(1), None);
        assert!(gpus.is_same_card(seen), "{} against {}", gpus.model, Gpus::parse(seen, None, None).model);
    }

    #[rstest]
    #[case("RTX 4090", "NVIDIA GeForce RTX 3090")]
    #[case("RTX 4090", "NVIDIA GeForce RTX 4080")]
    #[case("RTX 4080 Super", "NVIDIA GeForce RTX 4080 Ti")]
    #[case("H100 SXM", "NVIDIA H100 PCIe")]
    #[case("H100 SXM", "NVIDIA A100-SXM4-80GB")]
    #[case("A100 SXM 80GB", "NVIDIA A100-SXM4-40GB")]
    #[case("H200", "NVIDIA H100 80GB HBM3")]
    #[case("L40S", "NVIDIA L40")]
    #[case("A10G", "NVIDIA A10")]
    #[case("RTX 6000 Ada", "NVIDIA RTX A6000")]
    #[case("RTX PRO 6000", "NVIDIA RTX 6000 Ada Generation")]
    fn another_card_is_told(#[case] rented: &str, #[case] seen: &str) {
        assert!(!Gpus::parse(rented, Some(1), None).is_same_card(seen));
    }

    /// What a driver reports, in MiB, with error correction where the card may have it.
    #[rstest]
    #[case("GH200 480GB", 97_871)]
    #[case("RTX 4090 Laptop", 16_376)]
    #[case("A10G", 22_731)]
    #[case("L4", 23_034)]
    #[case("A40", 46_068)]
    #[case("L40S", 46_068)]
    #[case("RTX A6000", 46_068)]
    #[case("T4", 15_109)]
    #[case("V100-SXM2-32GB", 32_510)]
    #[case("P100-PCIE-16GB", 16_280)]
    #[case("A100 SXM 40GB", 40_536)]
    #[case("H100 NVL", 95_830)]
    #[case("H200", 143_771)]
    #[case("B200", 183_359)]
    #[case("MI300X 192GB", 196_592)]
    fn a_card_has_nearly_the_memory_that_its_name_promises(#[case] name: &str, #[case] driver: u32) {
        let promised = Gpus::parse(name, None, None).memory_gib;
        assert!(promised.is_none_or(|gib| f64::from(driver) / 1024.0 > f64::from(gib) * 0.9), "{promised:?}");
    }

    #[test]
    fn zero_cards_stay_zero() {
        assert_eq!(Gpus::parse("NVIDIA L4", Some(0), None).count, 0);
    }

    proptest! {
        #[test]
        fn any_name_gives_a_name(name in "\\PC{0,40}") {
            let _model = Gpus::parse(&name, None, None).model;
        }

        #[test]
        fn a_normal_form_is_its_own_normal_form(model in prop::sample::select(vec![
            "RTX 4090", "H100 SXM", "A100 SXM 80GB", "A100 PCIe 40GB", "H200", "L4", "RTX 6000 Ada", "RTX 4070 Ti Super"])) {
            prop_assert_eq!(Gpus::parse(model, None, None).model, model);
        }
    }
}
