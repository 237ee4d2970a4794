//! `rentop export --focus`: the file is checked against the rules of FOCUS 1.2 for each of its columns.

mod support;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use providers::sim::{Life, Machine, Shared, Store};
use rust_decimal::Decimal;
use support::{Account, Lab, world};

/// What a column of the specification may hold.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Decimal,
    NotNegative,
    Moment,
    Json,
    OneOf(&'static [&'static str]),
}

use Holds::{Decimal as Number, Json, Moment, NotNegative, OneOf, Text};

/// Which rows must have a value: `Always`, those that are about a resource, or none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filled {
    Always,
    OfResources,
    Perhaps,
    /// Nothing that the books know ever fills it.
    Never,
}

use Filled::{Always, Never, OfResources, Perhaps};

const SERVICES: &[&str] = &[
    "AI and Machine Learning",
    "Analytics",
    "Business Applications",
    "Compute",
    "Databases",
    "Developer Tools",
    "Multicloud",
    "Identity",
    "Integration",
    "Internet of Things",
    "Management and Governance",
    "Media",
    "Migration",
    "Mobile",
    "Networking",
    "Security",
    "Storage",
    "Web",
    "Other",
];

/// The 21 mandatory columns, as of FOCUS 1.2.
const MANDATORY: [(&str, Holds, Filled); 21] = [
    ("BilledCost", Number, Always),
    ("BillingAccountId", Text, Always),
    ("BillingAccountName", Text, Always),
    ("BillingCurrency", Text, Always),
    ("BillingPeriodEnd", Moment, Always),
    ("BillingPeriodStart", Moment, Always),
    ("ChargeCategory", OneOf(&["Usage", "Purchase", "Tax", "Credit", "Adjustment"]), Always),
    ("ChargeClass", OneOf(&["Correction"]), Never),
    ("ChargeDescription", Text, Always),
    ("ChargePeriodEnd", Moment, Always),
    ("ChargePeriodStart", Moment, Always),
    ("ContractedCost", Number, Always),
    ("EffectiveCost", Number, Always),
    ("InvoiceIssuerName", Text, Always),
    ("ListCost", Number, Always),
    ("PricingQuantity", Number, Always),
    ("PricingUnit", OneOf(&["Hours", "Units"]), Always),
    ("ProviderName", Text, Always),
    ("PublisherName", Text, Always),
    ("ServiceCategory", OneOf(SERVICES), Always),
    ("ServiceName", Text, Always),
];

/// Those that are recommended, or mandatory on a condition. Of a usage none but the discounts' may be null.
const OTHERS: [(&str, Holds, Filled); 19] = [
    ("ChargeFrequency", OneOf(&["One-Time", "Recurring", "Usage-Based"]), Always),
    ("CommitmentDiscountCategory", OneOf(&["Spend", "Usage"]), Never),
    ("CommitmentDiscountId", Text, Never),
    ("CommitmentDiscountName", Text, Never),
    ("CommitmentDiscountStatus", OneOf(&["Used", "Unused"]), Never),
    ("CommitmentDiscountType", Text, Never),
    ("ConsumedQuantity", Number, Always),
    ("ConsumedUnit", OneOf(&["Hours", "Units"]), Always),
    ("ContractedUnitPrice", NotNegative, Always),
    ("InvoiceId", Text, Never),
    ("ListUnitPrice", NotNegative, Always),
    ("PricingCategory", OneOf(&["Standard", "Dynamic", "Committed", "Other"]), Always),
    ("RegionId", Text, Perhaps),
    ("RegionName", Text, Perhaps),
    ("ResourceId", Text, OfResources),
    ("ResourceName", Text, Perhaps),
    ("ResourceType", Text, OfResources),
    (
        "ServiceSubcategory",
        OneOf(&[
            "Other (Compute)",
            "Block Storage",
            "Other (Storage)",
            "Network Infrastructure",
            "Network Connectivity",
            "Other (Other)",
        ]),
        Always,
    ),
    ("Tags", Json, Perhaps),
];

type Record = BTreeMap<String, String>;

/// Every fault of a file, one a line.
fn faults(heads: &[String], records: &[Record]) -> Vec<String> {
    let mut faults = Vec::new();
    let columns: Vec<_> = MANDATORY.iter().chain(&OTHERS).collect();
    for (column, ..) in MANDATORY {
        if !heads.iter().any(|head| head == column) {
            faults.push(format!("{column} is missing"));
        }
    }
    for head in heads {
        if !head.starts_with("x_") && columns.iter().all(|(column, ..)| column != head) {
            faults.push(format!("{head} is no column of FOCUS, and not marked as ours"));
        }
    }
    if !heads.iter().is_sorted_by_key(|head| head.starts_with("x_")) {
        faults.push("a column of ours stands among those of FOCUS".to_owned());
    }
    for record in records {
        for (column, holds, filled) in &columns {
            let Some(value) = record.get(*column) else { continue };
            if let Err(why) = check(value, *holds, *filled, record["x_Product"].is_empty()) {
                faults.push(format!("{column} is `{value}`: {why}"));
            }
        }
        faults.extend(rules(record).into_iter().map(|rule| format!("{rule}: {record:?}")));
    }
    faults
}

fn check(value: &str, holds: Holds, filled: Filled, of_resource: bool) -> Result<(), &'static str> {
    if value.is_empty() {
        let must = filled == Always || (filled == OfResources && of_resource);
        return if must { Err("it must not be null") } else { Ok(()) };
    }
    if filled == Never {
        return Err("nothing is known that could stand here");
    }
    let number = || {
        let plain = value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
        value.parse::<Decimal>().ok().filter(|_| plain)
    };
    let right = match holds {
        Text => !value.trim().is_empty(),
        Number => number().is_some(),
        NotNegative => number().is_some_and(|number| number >= Decimal::ZERO),
        Moment => value.len() == 20 && value.ends_with('Z') && value.parse::<Timestamp>().is_ok(),
        Json => serde_json::from_str::<BTreeMap<String, String>>(value).is_ok(),
        OneOf(words) => words.contains(&value),
    };
    if right { Ok(()) } else { Err("it is not of that form, or not allowed") }
}

/// What must hold between columns.
fn rules(record: &Record) -> Vec<&'static str> {
    let number = |column: &str| record[column].parse::<Decimal>().unwrap_or_default();
    let near = |one: Decimal, two: Decimal| (one - two).abs() < Decimal::new(1, 9);
    let [from, to, start, end] = ["BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"]
        .map(|column| &record[column]);
    let currency = &record["BillingCurrency"];
    let rules = [
        (start < end, "a charge begins before it ends"),
        (from <= start && end <= to, "a charge lies within its billing period"),
        (currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_uppercase()), "a currency is an ISO code"),
        (near(number("ListUnitPrice") * number("PricingQuantity"), number("ListCost")), "price × quantity = list cost"),
        (
            near(number("ContractedUnitPrice") * number("PricingQuantity"), number("ContractedCost")),
            "price × quantity = contracted cost",
        ),
        (
            number("BilledCost")
                == if record["x_Evidence"] == "billed" { number("EffectiveCost") } else { Decimal::ZERO },
            "billed is what the provider billed",
        ),
        (
            ["billed", "observed", "inferred", "assumed"].contains(&record["x_Evidence"].as_str()),
            "every row says how it is known",
        ),
        (["certain", "prepaid"].contains(&record["x_Charge"].as_str()), "nothing that is only possible is a charge"),
        (record["RegionId"].is_empty() == record["RegionName"].is_empty(), "a region has an id and a name"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, rule)| rule).collect()
}

fn lab() -> (Lab, Shared) {
    let mut runpod = world(1.0);
    let now = runpod.now();
    let since = |hours| now - SignedDuration::from_hours(hours);
    let mut tagged = Machine::new("podaaaaaaaaaa1", "ft-\"llama\", 批量", since(70));
    tagged.started_at = Some(since(70));
    let stopped = Machine { life: Life::Stopped, started_at: None, ..Machine::new("podbbbbbbbbbb2", "", since(90)) };
    runpod.machines = vec![tagged, stopped];
    runpod.stores = vec![Store {
        id: "nv1".to_owned(),
        name: "datasets".to_owned(),
        size_gb: 200,
        region: "US-KS-2".to_owned(),
        created_at: since(200),
        gone: false,
    }];
    let mut vast = world(1.0);
    let labels = BTreeMap::from([("owner".to_owned(), "ann".to_owned())]);
    let spot = Machine { spot: true, labels, ..Machine::new("31000001", "sd-lora", since(55)) };
    vast.machines = vec![Machine { started_at: Some(since(55)), ..spot }];
    let runpod = Shared::new(runpod);
    let account = |provider, name, world: Shared| Account { provider, name, world, extra: "" };
    let mut lab = Lab::new(vec![account("runpod", "team", runpod.clone()), account("vast", "me", Shared::new(vast))]);
    lab.config = lab.config.replacen("\"UTC\"", "\"America/New_York\"", 1);
    lab.config.push_str("[[project]]\nname = \"finetune\"\nmatch = { name = \"ft-*\" }\n");
    lab.write_config();
    (lab, runpod)
}

fn read(csv: &str) -> (Vec<String>, Vec<Record>) {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let record = |record: csv::StringRecord| heads.iter().cloned().zip(record.iter().map(str::to_owned)).collect();
    let records = reader.records().map(|row| record(row.unwrap())).collect();
    (heads, records)
}

#[test]
fn the_file_keeps_the_rules_of_focus() {
    let (lab, _) = lab();
    let csv = lab.run(&["export", "--focus", "--from", "2026-01", "--to", "today"]).ends_with(0).stdout;
    let (heads, records) = read(&csv);
    assert!(records.len() >= 4, "{csv}");
    let faults = faults(&heads, &records);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let categories: Vec<&String> = records.iter().map(|record| &record["ServiceCategory"]).collect();
    assert!(categories.iter().any(|name| *name == "Compute") && categories.iter().any(|name| *name == "Storage"));
    let spot = records.iter().find(|record| record["ResourceId"] == "31000001").unwrap();
    assert_eq!((spot["PricingCategory"].as_str(), spot["ProviderName"].as_str()), ("Dynamic", "Vast.ai"));
    let project = |id: &str| records.iter().find(|record| record["ResourceId"] == id).unwrap()["x_Project"].clone();
    assert_eq!((project("podaaaaaaaaaa1").as_str(), project("nv1").as_str()), ("finetune", ""));
}

/// The rules above find what is wrong: else they would prove nothing.
#[test]
fn a_file_that_breaks_the_rules_is_found_out() {
    let (lab, _) = lab();
    let csv = lab.run(&["export", "--focus"]).ends_with(0).stdout;
    let (heads, records) = read(&csv);
    let broken = |column: &str, value: &str| {
        let mut records = records.clone();
        records[0].insert(column.to_owned(), value.to_owned());
        faults(&heads, &records)
    };
    for (column, value) in [
        ("ListCost", ""),
        ("EffectiveCost", "1e3"),
        ("ListUnitPrice", "-1"),
        ("ChargeCategory", "usage"),
        ("ChargePeriodEnd", "2020-01-01T00:00:00Z"),
        ("ChargePeriodStart", "2026-11-01T00:00:00+01:00"),
        ("BillingCurrency", "usd"),
        ("Tags", "owner=ann"),
        ("ResourceId", ""),
        ("x_Evidence", "guessed"),
    ] {
        assert!(!broken(column, value).is_empty(), "{column} = `{value}` went unseen");
    }
    let without: Vec<String> = heads.iter().filter(|head| *head != "BilledCost").cloned().collect();
    assert_eq!(faults(&without, &[]), ["BilledCost is missing"]);
    let invented = [heads.clone(), vec!["Evidence".to_owned()]].concat();
    assert_eq!(faults(&invented, &[]).len(), 2);
}

/// A month's file comes to what `rentop spend` tells of it, day by day.
#[test]
fn the_file_comes_to_what_spend_tells() {
    let (lab, _) = lab();
    let day = |back: i64| {
        let at = Timestamp::now() - SignedDuration::from_hours(24 * back + 12);
        at.strftime("%Y-%m-%d").to_string()
    };
    let days = ["--from", &day(2), "--to", &day(1)];
    let (_, records) = read(&lab.run(&[&["export", "--focus"], &days[..]].concat()).ends_with(0).stdout);
    let spend = lab.run(&[&["spend", "--json", "--by", "day"], &days[..]].concat()).ends_with(0).json();
    let groups = spend["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{spend:#}");
    for group in groups {
        let zone = jiff::tz::TimeZone::get("America/New_York").unwrap();
        let start = rentop::rules::spend::start_of(group["key"].as_str().unwrap().parse().unwrap(), &zone);
        let start = start.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let own = records.iter().filter(|record| record["ChargePeriodStart"] == start);
        let sum: Decimal = own.map(|record| record["EffectiveCost"].parse::<Decimal>().unwrap()).sum();
        let amount: Decimal = group["amount"].as_str().unwrap().parse().unwrap();
        assert!((sum - amount).abs() <= Decimal::new(1, 6), "{sum} is not {amount}");
    }
}

#[test]
fn the_form_must_be_named() {
    let (lab, _) = lab();
    let ran = lab.run(&["export"]).ends_with(2);
    assert!(ran.stderr.contains("--focus"), "{}", ran.stderr);
    assert!(lab.run(&["export", "--help"]).ends_with(0).stdout.contains("FOCUS 1.2"));
}
