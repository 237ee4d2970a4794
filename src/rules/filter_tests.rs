use std::cell::Cell;

use jiff::SignedDuration;
use proptest::prelude::*;
use providers::model::{Component, RateLine};
use providers::money::Rate;
use rstest::rstest;

use super::*;
use crate::rules::samples::at;

/// What one row says, word for word.
#[derive(Clone, Debug)]
struct Sample {
    name: Option<&'static str>,
    id: &'static str,
    account: &'static str,
    provider: Option<&'static str>,
    region: Option<&'static str>,
    gpus: Option<(&'static str, u32)>,
    labels: BTreeMap<String, String>,
    project: Option<&'static str>,
    phase: Option<Phase>,
    market: Option<Market>,
    kind: Option<StorageKind>,
    rates: Rates,
    utilization: Option<f64>,
    memory_used_bytes: Option<u64>,
    started_at: Option<Timestamp>,
    created_at: Option<Timestamp>,
    saved_at: Option<Timestamp>,
    size_gib: Option<Decimal>,
    verdict: Option<Verdict>,
    unattached: Option<bool>,
    wastes: Option<bool>,
    protected: bool,
    mine: bool,
    needs_you: bool,
    under_way: bool,
    /// How often something was asked for that takes a look at settings or samples.
    look_ups: Cell<usize>,
}

impl Sample {
    fn look_up<T>(&self, value: T) -> T {
        self.look_ups.set(self.look_ups.get() + 1);
        value
    }
}

impl Subject for Sample {
    fn name(&self) -> Option<&str> {
        self.name
    }
    fn id(&self) -> &str {
        self.id
    }
    fn account(&self) -> &str {
        self.account
    }
    fn provider(&self) -> Option<&str> {
        self.provider
    }
    fn region(&self) -> Option<&str> {
        self.region
    }
    fn gpu_model(&self) -> Option<&str> {
        self.gpus.map(|(model, _)| model)
    }
    fn gpu_count(&self) -> Option<u32> {
        self.gpus.map(|(_, count)| count)
    }
    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
    fn project(&self) -> Option<&str> {
        self.look_up(self.project)
    }
    fn phase(&self) -> Option<Phase> {
        self.phase
    }
    fn market(&self) -> Option<Market> {
        self.market
    }
    fn storage_kind(&self) -> Option<StorageKind> {
        self.kind
    }
    fn rates(&self) -> Cow<'_, Rates> {
        Cow::Borrowed(&self.rates)
    }
    fn utilization(&self) -> Option<f64> {
        self.utilization
    }
    fn memory_used_bytes(&self) -> Option<u64> {
        self.memory_used_bytes
    }
    fn started_at(&self) -> Option<Timestamp> {
        self.started_at
    }
    fn saved_at(&self) -> Option<Timestamp> {
        self.saved_at
    }
    fn unsaved(&self) -> bool {
        self.saved_at.is_none()
    }
    fn created_at(&self) -> Option<Timestamp> {
        self.created_at
    }
    fn size_gib(&self) -> Option<Decimal> {
        self.size_gib
    }
    fn verdict(&self) -> Option<Verdict> {
        self.look_up(self.verdict)
    }
    fn unattached(&self) -> Option<bool> {
        self.unattached
    }
    fn wastes(&self) -> Option<bool> {
        self.wastes
    }
    fn protected(&self) -> bool {
        self.look_up(self.protected)
    }
    fn mine(&self) -> bool {
        self.look_up(self.mine)
    }
    fn needs_you(&self) -> bool {
        self.needs_you
    }
    fn under_way(&self) -> bool {
        self.under_way
    }
}

const GIB: u64 = 1 << 30;

fn rate(hourly: &str, currency: Currency) -> Rate {
    Rate::per_hour(hourly.parse().unwrap(), currency).unwrap()
}

fn usd(hourly: &str) -> Rate {
    rate(hourly, Currency::USD)
}

fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect()
}

fn now() -> Timestamp {
    at("12:00:00")
}

/// A spot machine that runs since two hours and was rented nine days ago, of which everything is known.
fn machine() -> Sample {
    Sample {
        name: Some("LLaMA ft-7"),
        id: "8zq0-1f",
        account: "team",
        provider: Some("vast"),
        region: Some("eu-NL"),
        gpus: Some(("RTX 4090", 2)),
        labels: labels(&[("owner", "ana"), ("tier", "Gold=1")]),
        project: Some("art"),
        phase: Some(Phase::Running),
        market: Some(Market::Spot),
        kind: None,
        rates: Rates::known().with(Component::Compute, usd("0.9")).with(Component::Disk, usd("0.1")),
        utilization: Some(0.07),
        memory_used_bytes: Some(40 * GIB),
        started_at: Some(at("10:00:00")),
        created_at: Some(now() - SignedDuration::from_hours(9 * 24)),
        saved_at: Some(now() - SignedDuration::from_mins(25 * 60)),
        size_gib: None,
        verdict: Some(Verdict::Idle),
        unattached: Some(false),
        wastes: Some(false),
        protected: false,
        mine: true,
        needs_you: false,
        under_way: false,
        look_ups: Cell::new(0),
    }
}

/// A free machine of which the provider tells hardly anything.
fn stranger() -> Sample {
    Sample {
        name: None,
        id: "x",
        account: "lab",
        provider: None,
        region: None,
        gpus: None,
        labels: BTreeMap::new(),
        project: None,
        phase: Some(Phase::Unknown),
        market: Some(Market::OnDemand),
        kind: None,
        rates: Rates::unknown(),
        utilization: None,
        memory_used_bytes: None,
        started_at: None,
        created_at: None,
        saved_at: None,
        size_gib: None,
        verdict: None,
        unattached: None,
        wastes: None,
        protected: false,
        mine: false,
        needs_you: true,
        under_way: false,
        look_ups: Cell::new(0),
    }
}

fn snapshot() -> Sample {
    Sample {
        name: Some("训练 数据"),
        kind: Some(StorageKind::Snapshot),
        size_gib: Some("100.5".parse().unwrap()),
        unattached: Some(true),
        wastes: Some(true),
        protected: true,
        under_way: true,
        phase: None,
        market: None,
        verdict: Some(Verdict::NotApplicable),
        rates: Rates::known().with(Component::Storage, rate("0.5", Currency::CNY)),
        ..stranger()
    }
}

fn fits(text: &str, row: &Sample) -> bool {
    Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).matches(row, now())
}

fn check(text: &str, row: &Sample, expected: bool) {
    assert_eq!(fits(text, row), expected, "{text} on {row:#?}");
}

#[rstest]
#[case("", true)]
#[case("  \u{3000}\t ", true)]
#[case("llama", true)]
#[case("LLAMA", true)]
#[case("7 llama", true)]
#[case("llama nothing", false)]
#[case("\"a ft\"", true)]
#[case("\"ft llama\"", false)]
#[case("“a ft”", true)]
#[case("\"LLaMA ft-7\"", true)]
#[case("8ZQ", true)]
#[case("team", true)]
#[case("vast", true)]
#[case("nl", true)]
#[case("4090", true)]
#[case("runn", true)]
#[case("运行", true)]
#[case("spo", true)]
#[case("竞", true)]
#[case("demand", false)]
#[case("snapshot", false)]
#[case("art", true)]
#[case("owner", true)]
#[case("ANA", true)]
#[case("owner=a", true)]
#[case("er=an", true)]
#[case("owner=b", false)]
#[case("ana=owner", false)]
#[case("tier=gold=1", true)]
#[case("gold=", true)]
#[case("=", true)]
fn every_word_is_found_somewhere_in_what_a_row_is_called(#[case] text: &str, #[case] expected: bool) {
    check(text, &machine(), expected);
}

#[rstest]
#[case("数据", true)]
#[case("\"训练 数\"", true)]
#[case("数练", false)]
#[case("快照", true)]
#[case("snap", true)]
#[case("spot", false)]
#[case("running", false)]
fn a_storage_item_is_called_by_its_name_and_kind(#[case] text: &str, #[case] expected: bool) {
    check(text, &snapshot(), expected);
}

/// No row shows that word, and `de` is to find a region.
#[test]
fn a_word_does_not_find_what_is_rented_on_demand() {
    check("de", &stranger(), false);
    check("market:de", &stranger(), true);
}

#[rstest]
#[case("Straße Ä1", "ä1", true)]
#[case("Straße Ä1", "STRASSE", false)]
#[case("ＧＰＵ 测试", "ｇｐｕ", true)]
#[case("训练-FT", "ft", true)]
#[case("plain", "练", false)]
#[case("aab", "ab", true)]
#[case("ab", "abc", false)]
#[case("", "a", false)]
fn a_part_is_found_in_any_case(#[case] text: &str, #[case] part: &str, #[case] expected: bool) {
    assert_eq!(Part::new(part).is_in(text), expected);
}

#[rstest]
#[case::idle("idle", "闲置", true, false)]
#[case::busy("busy", "忙碌", false, false)]
#[case::underused("underused", "低用", false, false)]
#[case::waiting("waiting", "待请求", false, false)]
#[case::spot("spot", "竞价", true, false)]
#[case::reserved("reserved", "包期", false, false)]
#[case::on("on", "运行中", true, false)]
#[case::off("off", "停机", false, false)]
#[case::gone("gone", "已消失", false, false)]
#[case::waste("waste", "浪费", false, true)]
#[case::unattached("unattached", "未挂载", false, true)]
#[case::trouble("trouble", "需要处理", false, true)]
#[case::pending("pending", "操作中", false, true)]
#[case::mine("mine", "我的", true, false)]
#[case::protected("protected", "受保护", false, true)]
fn a_flag_asks_for_a_state_in_both_languages(
    #[case] english: &str,
    #[case] chinese: &str,
    #[case] of_machine: bool,
    #[case] of_snapshot: bool,
) {
    for word in [english, chinese, &english.to_uppercase()] {
        check(word, &machine(), of_machine);
        check(&format!("-{word}"), &machine(), !of_machine);
        check(word, &snapshot(), of_snapshot);
        check(&format!("!{word}"), &snapshot(), !of_snapshot);
        check(&format!("\"{word}\" "), &Sample { name: Some("nothing"), market: None, ..stranger() }, false);
    }
}

#[test]
fn every_flag_can_be_true() {
    let reserved = Market::Reserved { until: None };
    let rows = [
        machine(),
        snapshot(),
        Sample { market: Some(reserved), phase: Some(Phase::Gone), ..machine() },
        Sample { phase: Some(Phase::Reclaimed), ..machine() },
        Sample { verdict: Some(Verdict::Busy), ..machine() },
        Sample { verdict: Some(Verdict::Underused), ..machine() },
        Sample { verdict: Some(Verdict::Waiting), ..machine() },
        Sample { saved_at: None, ..machine() },
    ];
    for flag in Flag::ALL {
        for name in flag.names() {
            assert!(rows.iter().any(|row| fits(name, row)), "{name} fits no row");
        }
    }
}

#[rstest]
#[case(Phase::Running, true, false)]
#[case(Phase::Provisioning, false, false)]
#[case(Phase::Stopped, false, true)]
#[case(Phase::Reclaimed, false, true)]
#[case(Phase::Unreachable, false, true)]
#[case(Phase::Failed, false, true)]
#[case(Phase::Unknown, false, false)]
#[case(Phase::Gone, false, false)]
fn on_and_off_are_told_by_the_phase(#[case] phase: Phase, #[case] on: bool, #[case] off: bool) {
    let row = Sample { phase: Some(phase), ..machine() };
    check("on", &row, on);
    check("off", &row, off);
}

/// How old the last copy is; what has none is neither older nor younger.
#[test]
fn a_copy_is_told_by_its_age() {
    let never = Sample { saved_at: None, ..machine() };
    for (filter, fits, fits_never) in [
        ("saved>1d", true, false),
        ("saved<1d", false, false),
        ("-saved>1d", false, false),
        ("unsaved", false, true),
        ("-unsaved", true, false),
        ("unsaved|saved>1d", true, true),
        ("已存>1天", true, false),
    ] {
        check(filter, &machine(), fits);
        check(filter, &never, fits_never);
    }
}

#[test]
fn only_a_whole_word_without_quotes_is_a_flag() {
    let row =
        Sample { name: Some("spot-idle"), verdict: Some(Verdict::Busy), market: Some(Market::OnDemand), ..machine() };
    check("spot", &row, false);
    check("\"spot\"", &row, true);
    check("spot-", &row, true);
    check("\"idle\"", &row, true);
    check("idle", &row, false);
}

#[rstest]
#[case("name:llama", true)]
#[case("NAME:llama", true)]
#[case("名称：llama", true)]
#[case("name:team", false)]
#[case("name:\"a ft\"", true)]
#[case("name:*ft-?", true)]
#[case("name:llama*", true)]
#[case("name:llama?", false)]
#[case("name:\"*\"", false)]
#[case("name:-", false)]
#[case("name:\"-\"", true)]
#[case("id:8zq", true)]
#[case("account:team", true)]
#[case("账户:team", true)]
#[case("account:t?am", true)]
#[case("account:?am", false)]
#[case("provider:vast", true)]
#[case("平台:vast", true)]
#[case("region:eu", true)]
#[case("地区:us", false)]
#[case("gpu:4090", true)]
#[case("显卡:a100", false)]
#[case("gpu:\"rtx 4090\"", true)]
#[case("project:art", true)]
#[case("项目:ART", true)]
#[case("project:*", true)]
#[case("project:-", false)]
#[case("-project:art", false)]
#[case("label:owner", true)]
#[case("label:ana", true)]
#[case("label:owner=ana", true)]
#[case("标签:owner=an", true)]
#[case("label:owner=*", true)]
#[case("label:own=*", false)]
#[case("label:o*=a?a", true)]
#[case("label:an?", true)]
#[case("label:team", false)]
#[case("label:-", false)]
#[case("phase:run", true)]
#[case("状态:运行", true)]
#[case("phase:stopp", false)]
#[case("phase:*ing", true)]
#[case("market:spot", true)]
#[case("market:on-demand", false)]
#[case("计费:竞价", true)]
#[case("kind:volume", false)]
#[case("name:ft-7|8", true)]
#[case("name:\"a|b\"", false)]
fn a_key_asks_for_its_own_text(#[case] text: &str, #[case] expected: bool) {
    check(text, &machine(), expected);
}

#[rstest]
#[case("name:-", true)]
#[case("name:*", false)]
#[case("region:-", true)]
#[case("-region:eu", true)]
#[case("provider:-", true)]
#[case("gpu:-", true)]
#[case("项目:-", true)]
#[case("-project:*", true)]
#[case("label:-", true)]
#[case("label:*", false)]
#[case("account:-", false)]
#[case("phase:unknown", true)]
#[case("market:demand", true)]
fn a_dash_asks_for_what_has_none(#[case] text: &str, #[case] expected: bool) {
    check(text, &stranger(), expected);
    check(text, &Sample { name: Some(""), region: Some(""), ..stranger() }, expected);
}

#[rstest]
#[case("kind:snap", true)]
#[case("类型:快照", true)]
#[case("kind:volume", false)]
#[case("kind:volume|snapshot", true)]
#[case("-kind:volume", true)]
#[case("market:spot", false)]
#[case("phase:running", false)]
#[case("size>100g", true)]
#[case("size>100.5g", false)]
#[case("size>=100.5", true)]
#[case("大小<0.1t", true)]
#[case("size<102911m", false)]
#[case("size>102911m", true)]
#[case("size:100.5gib", true)]
#[case("size:>1tb", false)]
fn a_storage_item_has_a_kind_and_a_size(#[case] text: &str, #[case] expected: bool) {
    check(text, &snapshot(), expected);
}

#[rstest]
#[case("gpus=2", true)]
#[case("gpus==2", true)]
#[case("gpus:2", true)]
#[case("gpus!=2", false)]
#[case("gpus≠4", true)]
#[case("gpus>=2", true)]
#[case("gpus≥3", false)]
#[case("gpus>2", false)]
#[case("gpu<3", true)]
#[case("卡数＜＝2", true)]
#[case("gpus:>1", true)]
#[case("gpus=1|2", true)]
#[case("gpus=1|4", false)]
#[case("util<10%", true)]
#[case("util<=7%", true)]
#[case("util<7%", false)]
#[case("利用率＞5％", true)]
#[case("util>5", true)]
#[case("mem>=40g", true)]
#[case("mem>40g", false)]
#[case("mem<41", true)]
#[case("显存>0.03t", true)]
#[case("mem>40959mb", true)]
#[case("up>2h", false)]
#[case("up>=2h", true)]
#[case("up=120m", true)]
#[case("up<2h1m", true)]
#[case("up<0.1d", true)]
#[case("运行>119分钟", true)]
#[case("age>1w", true)]
#[case("age>1w2d", false)]
#[case("age>=1w2d", true)]
#[case("age<10d", true)]
#[case("已租>30天", false)]
#[case("-age>30d", true)]
#[case("size>0", false)]
#[case("-size>0", false)]
fn an_amount_is_compared(#[case] text: &str, #[case] expected: bool) {
    check(text, &machine(), expected);
}

#[rstest]
#[case(">1/h", false)]
#[case(">=1/h", true)]
#[case(">=1", true)]
#[case(">0.999999999999/h", true)]
#[case(">0.9999999999999/h", true)]
#[case("<1.0000000000001", true)]
#[case("=1/h", false)]
#[case("rate=1/h", true)]
#[case("rate:1/h", true)]
#[case("费用>0.9/时", true)]
#[case("cost<2/小时", true)]
#[case(">=24/d", true)]
#[case(">24/天", false)]
#[case(">=168/w", true)]
#[case(">=730/mo", true)]
#[case(">730/月", false)]
#[case(">729.99/month", true)]
#[case(">$0.9/h", true)]
#[case(">0.9usd/h", true)]
#[case(">USD0.9/h", true)]
#[case("＞＄0.9／h", true)]
#[case(">¥0.9/h", false)]
#[case("<¥0.9/h", false)]
#[case("-<¥0.9/h", false)]
fn a_rate_is_compared_exactly_and_in_its_own_currency(#[case] text: &str, #[case] expected: bool) {
    check(text, &machine(), expected);
}

#[rstest]
#[case(">0.4/h", true)]
#[case(">¥0.4/h", true)]
#[case(">￥0.4/h", true)]
#[case(">0.4元/时", true)]
#[case(">0.4rmb", true)]
#[case(">0.4CNY/h", true)]
#[case(">$0.1/h", false)]
#[case("<$9/h", false)]
fn a_rate_in_yuan_is_not_one_in_dollars(#[case] text: &str, #[case] expected: bool) {
    check(text, &snapshot(), expected);
}

#[test]
fn what_may_be_charged_counts_as_the_row_shows_it() {
    let doubtful = Sample { rates: machine().rates.doubtful(), ..machine() };
    check(">0.5/h", &doubtful, true);
    check("<0.5/h", &doubtful, false);
    let free = Sample { rates: Rates::known(), ..machine() };
    check("<0.5/h", &free, true);
    check("rate=0", &free, true);
    check("<$0.5/h", &free, false);
    let nothing = Sample { rates: Rates::known().with(Component::Compute, usd("0")), ..machine() };
    check("<$0.5/h", &nothing, true);
}

/// An incomplete rate is at least what is known of it.
#[rstest]
#[case(">0.5/h", true)]
#[case("-<0.5/h", true)]
#[case(">=1/h", true)]
#[case("-<1/h", true)]
#[case("<1/h", false)]
#[case("<0.5/h", false)]
#[case("->0.5/h", false)]
#[case(">1/h", false)]
#[case("->1/h", false)]
#[case("<=1/h", false)]
#[case("-<=1/h", false)]
#[case("rate=1/h", false)]
#[case("rate!=1/h", false)]
#[case("rate!=0.5/h", true)]
#[case("<2/h", false)]
#[case("-<2/h", false)]
fn a_rate_that_lacks_a_part_proves_only_more(#[case] text: &str, #[case] expected: bool) {
    check(text, &Sample { rates: machine().rates.with_missing(), ..machine() }, expected);
}

#[test]
fn two_currencies_are_never_added() {
    let rates = machine().rates.with(Component::Ip, rate("9", Currency::CNY));
    let row = Sample { rates, ..machine() };
    for text in [">5/h", "<50/h", "->5/h", "-<50/h"] {
        check(text, &row, false);
    }
    check(">¥8/h", &row, true);
    check(">$1/h", &row, false);
    check(">=$1/h", &row, true);
    let zero = machine().rates.with(Component::Ip, rate("0", Currency::CNY));
    check(">=1/h", &Sample { rates: zero, ..machine() }, true);
}

/// Unknown is not zero, and not its opposite either.
#[rstest]
#[case("util<10%")]
#[case("util>=0%")]
#[case("gpus=0")]
#[case("gpus!=0")]
#[case("mem<40g")]
#[case("up<2d")]
#[case("age<30d")]
#[case("size<100g")]
#[case("<1/h")]
#[case(">1/h")]
#[case("idle")]
#[case("unattached")]
#[case("waste")]
fn what_is_not_known_fits_neither_way(#[case] text: &str) {
    check(text, &stranger(), false);
    check(&format!("-{text}"), &stranger(), false);
    // An alternative that is known still decides.
    check(&format!("trouble|{text}"), &stranger(), true);
    check(&format!("-trouble|{text}"), &stranger(), false);
    check(&format!("-mine|{text}"), &stranger(), false);
}

#[test]
fn only_what_runs_is_up() {
    let stopped = Sample { phase: Some(Phase::Stopped), ..machine() };
    check("up>1h", &stopped, false);
    check("-up>1h", &stopped, false);
    check("up>1h", &machine(), true);
}

#[test]
fn a_utilization_that_is_no_number_fits_nothing() {
    let row = Sample { utilization: Some(f64::NAN), ..machine() };
    for text in ["util<10%", "-util<10%", "util>=0", "util!=3%"] {
        check(text, &row, false);
    }
}

#[rstest]
#[case("-llama", false)]
#[case("！llama", false)]
#[case("-nothing", true)]
#[case("-\"a ft\"", false)]
#[case("\"-7\"", true)]
#[case("\"-8\"", false)]
#[case("-7", false)]
#[case("ft-7", true)]
#[case("--7", false)]
#[case("nothing|llama", true)]
#[case("nothing|none", false)]
#[case("-nothing|llama", false)]
#[case("-nothing|none", true)]
#[case("off|idle", true)]
#[case("off｜idle", true)]
#[case("a100|gpu:4090", true)]
#[case("gpu:4090|a100", true)]
#[case("gpu:a100|vast", false)]
#[case("gpu:a100|provider:vast", true)]
#[case("gpu:a100|gpus>1", true)]
#[case("gpu:a100|>9/h", false)]
#[case(">9/h|0.5/h", true)]
#[case("owner=b|owner=ana", true)]
#[case("name:x|owner=ana", false)]
#[case("label:x|owner=ana", true)]
#[case("\"off|idle\"", false)]
fn terms_are_negated_and_have_alternatives(#[case] text: &str, #[case] expected: bool) {
    check(text, &machine(), expected);
}

#[test]
fn every_term_must_fit() {
    check("idle spot >=1/h project:art 4090", &machine(), true);
    check("idle spot >1/h project:art 4090", &machine(), false);
    check("闲置 竞价 ≥1/时 项目：art 4090", &machine(), true);
    check("idle off", &machine(), false);
}

#[test]
fn what_looks_like_a_comparison_is_one_only_of_a_known_quantity() {
    let row = Sample { labels: labels(&[("size", "big"), ("gpus", "8a"), ("url", "http://x")]), ..machine() };
    check("size=big", &row, true);
    check("gpus=8a", &row, true);
    check("gpus=8", &row, false);
    check("\"gpus=8\"", &row, true);
    check("label:gpus=8", &row, true);
    check("url=http://x", &row, true);
    check("\"http:\"", &row, true);
}

fn unfinished(expected: Expected) -> FilterErrorKind {
    FilterErrorKind::Unfinished(expected)
}

#[rstest]
#[case("\"", Expected::Quote, "\"")]
#[case("idle \"two wo", Expected::Quote, "\"two wo")]
#[case("name:“训练", Expected::Quote, "“训练")]
#[case("\"\"", Expected::Term, "\"\"")]
#[case("idle -", Expected::Term, "-")]
#[case("!", Expected::Term, "!")]
#[case("idle|", Expected::Term, "idle|")]
#[case("gpu:a|", Expected::Term, "gpu:a|")]
#[case("|idle x", Expected::Term, "|idle")]
#[case("a project:", Expected::Value(Key::Project), "project:")]
#[case("项目：", Expected::Value(Key::Project), "项目：")]
#[case("phase:", Expected::Value(Key::Phase), "phase:")]
#[case("name:\"\"", Expected::Value(Key::Name), "name:\"\"")]
#[case(">", Expected::Amount(Quantity::Rate), ">")]
#[case(">=", Expected::Amount(Quantity::Rate), ">=")]
#[case("->1/", Expected::Amount(Quantity::Rate), "->1/")]
#[case(">1.", Expected::Amount(Quantity::Rate), ">1.")]
#[case(">20/m", Expected::Amount(Quantity::Rate), ">20/m")]
#[case(">1/小", Expected::Amount(Quantity::Rate), ">1/小")]
#[case(">$", Expected::Amount(Quantity::Rate), ">$")]
#[case(">us", Expected::Amount(Quantity::Rate), ">us")]
#[case(">4c", Expected::Amount(Quantity::Rate), ">4c")]
#[case("gpus>=", Expected::Amount(Quantity::Gpus), "gpus>=")]
#[case("gpus:", Expected::Amount(Quantity::Gpus), "gpus:")]
#[case("util<", Expected::Amount(Quantity::Utilization), "util<")]
#[case("up>2", Expected::Amount(Quantity::Up), "up>2")]
#[case("up>2d3", Expected::Amount(Quantity::Up), "up>2d3")]
#[case("age>30mi", Expected::Amount(Quantity::Age), "age>30mi")]
#[case("size>5gi", Expected::Amount(Quantity::Size), "size>5gi")]
fn what_is_being_typed_is_unfinished(#[case] text: &str, #[case] expected: Expected, #[case] word: &str) {
    let error = Filter::parse(text).unwrap_err();
    assert_eq!((error.kind, &text[error.at.clone()]), (unfinished(expected), word));
    assert!(error.kind.is_unfinished());
}

#[rstest]
#[case("x projct:art", FilterErrorKind::UnknownKey { nearest: Some("project") }, "projct")]
#[case("acount:a", FilterErrorKind::UnknownKey { nearest: Some("account") }, "acount")]
#[case("项木:a", FilterErrorKind::UnknownKey { nearest: Some("项目") }, "项木")]
#[case("docker:img", FilterErrorKind::UnknownKey { nearest: None }, "docker")]
#[case("-2001:db8::1", FilterErrorKind::UnknownKey { nearest: None }, "2001")]
#[case(":x", FilterErrorKind::UnknownKey { nearest: None }, ":x")]
#[case("utl<10%", FilterErrorKind::UnknownKey { nearest: Some("util") }, "utl")]
#[case("a<b", FilterErrorKind::UnknownKey { nearest: None }, "a")]
#[case("project>3", FilterErrorKind::NotCompared(Key::Project), "project")]
#[case("名称<3", FilterErrorKind::NotCompared(Key::Name), "名称")]
#[case("phase:stoped", FilterErrorKind::UnknownValue { key: Key::Phase, nearest: Some("stopped") }, "stoped")]
#[case("phase:-", FilterErrorKind::UnknownValue { key: Key::Phase, nearest: None }, "-")]
#[case("phase:run|xyzxyz", FilterErrorKind::UnknownValue { key: Key::Phase, nearest: None }, "xyzxyz")]
#[case("market:spt", FilterErrorKind::UnknownValue { key: Key::Market, nearest: Some("spot") }, "spt")]
#[case("kind:*x", FilterErrorKind::UnknownValue { key: Key::Kind, nearest: None }, "*x")]
#[case(">x", FilterErrorKind::NotAnAmount(Quantity::Rate), "x")]
#[case(">-1/h", FilterErrorKind::NotAnAmount(Quantity::Rate), "-1/h")]
#[case(">1/h/d", FilterErrorKind::NotAnAmount(Quantity::Rate), "1/h/d")]
#[case(">1/year", FilterErrorKind::NotAnAmount(Quantity::Rate), "1/year")]
#[case(">/h", FilterErrorKind::NotAnAmount(Quantity::Rate), "/h")]
#[case(">$/h", FilterErrorKind::NotAnAmount(Quantity::Rate), "$/h")]
#[case(">$1usd", FilterErrorKind::NotAnAmount(Quantity::Rate), "$1usd")]
#[case(">1xyz/h", FilterErrorKind::NotAnAmount(Quantity::Rate), "1xyz/h")]
#[case(">1.2.3", FilterErrorKind::NotAnAmount(Quantity::Rate), "1.2.3")]
#[case(">=1/h|idle", FilterErrorKind::NotAnAmount(Quantity::Rate), "idle")]
#[case("gpus>=1.5", FilterErrorKind::NotAnAmount(Quantity::Gpus), "1.5")]
#[case("gpus:x", FilterErrorKind::NotAnAmount(Quantity::Gpus), "x")]
#[case("util<10g", FilterErrorKind::NotAnAmount(Quantity::Utilization), "10g")]
#[case("mem>40x", FilterErrorKind::NotAnAmount(Quantity::Memory), "40x")]
#[case("up>2x", FilterErrorKind::NotAnAmount(Quantity::Up), "2x")]
#[case("up>d", FilterErrorKind::NotAnAmount(Quantity::Up), "d")]
#[case("up>99999999999999999999999999d", FilterErrorKind::NotAnAmount(Quantity::Up), "99999999999999999999999999d")]
fn an_error_names_its_word(#[case] text: &str, #[case] kind: FilterErrorKind, #[case] word: &str) {
    let error = Filter::parse(text).unwrap_err();
    assert_eq!((error.kind, &text[error.at.clone()]), (kind, word));
    assert!(!error.kind.is_unfinished());
}

#[test]
fn the_first_word_that_cannot_be_read_is_the_error() {
    let error = Filter::parse("idle gpus>=x up>y").unwrap_err();
    assert_eq!(error.at, 11..12);
}

#[test]
fn an_empty_filter_shows_everything() {
    assert!(Filter::default().is_empty());
    assert_eq!(Filter::parse(" ").unwrap(), Filter::default());
    assert!(!Filter::parse("a").unwrap().is_empty());
    assert!(Filter::default().matches(&stranger(), now()));
}

#[test]
fn examples_are_filters_that_ask_for_something_else_than_words() {
    let keys = Key::ALL.iter().map(|key| key.example());
    let quantities = Quantity::ALL.iter().map(|quantity| quantity.example());
    for example in EXAMPLES.iter().copied().chain(keys).chain(quantities) {
        let filter = Filter::parse(example).unwrap_or_else(|error| panic!("{example}: {error:?}"));
        let is_word = |term: &Term| term.any.iter().any(|test| matches!(test, Test::Word(_)));
        assert!(!filter.is_empty() && !filter.terms.iter().any(is_word), "{example}: {filter:?}");
    }
}

/// Each name has one meaning where it may stand, and is a word that can be typed.
#[test]
fn names_mean_one_thing() {
    let flags: Vec<_> = Flag::ALL.iter().flat_map(|flag| flag.names()).collect();
    let keys: Vec<_> = Key::ALL.iter().flat_map(|key| key.names()).collect();
    let quantities: Vec<_> = Quantity::ALL.iter().flat_map(|quantity| quantity.names()).collect();
    for names in [flags, keys, quantities] {
        for (place, name) in names.iter().enumerate() {
            assert_eq!(names.iter().position(|other| other == name), Some(place), "{name} means two things");
            assert_eq!(**name, name.to_lowercase());
            assert!(name.chars().all(|char| char.is_alphanumeric()), "{name}");
        }
    }
}

#[test]
fn every_key_and_quantity_answers_to_its_example() {
    for key in Key::ALL {
        assert_eq!(Key::named(key.example().split(':').next().unwrap()), Some(key));
        for name in key.names() {
            let expected = FilterErrorKind::Unfinished(Expected::Value(key));
            assert_eq!(Filter::parse(&format!("{name}:")).unwrap_err().kind, expected);
        }
    }
    for quantity in Quantity::ALL {
        for name in quantity.names() {
            let expected = FilterErrorKind::Unfinished(Expected::Amount(quantity));
            assert_eq!(Filter::parse(&format!("{name}>")).unwrap_err().kind, expected);
        }
    }
}

/// What is looked up is asked for only when nothing else decides.
#[test]
fn a_look_up_is_the_last_thing_that_is_asked_for() {
    for (text, expected) in [
        ("4090", 0),
        ("ana", 0),
        ("-running", 0),
        ("name:nothing mine project:art", 0),
        ("spot|idle", 0),
        ("nothing", 1),
        ("mine project:art", 2),
    ] {
        let row = machine();
        Filter::parse(text).unwrap().matches(&row, now());
        assert_eq!(row.look_ups.get(), expected, "{text}");
    }
}

/// Texts that are near to what has a meaning.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "idle", "闲置", "gpu", "gpus", "rate", "util", "up", "size", "project", "项目", "phase", "kind", "label", "-", "!",
            "|", ":", "：", ">", "<", "=", "≥", "\"", "“", "*", "?", " ", "\u{3000}", "/", "h", "mo", "m", "d", "g", "%", "$",
            "¥", "usd", "1", "0.5", ".", "9999999999999999999999999999", "\u{0}", "\u{202e}", "é", "İ", "ß", "Σ",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_is_typed_is_a_filter_or_an_error_within_the_text(text in any_text()) {
        match Filter::parse(&text) {
            Ok(filter) => {
                for row in [machine(), stranger(), snapshot()] {
                    filter.matches(&row, now());
                }
                prop_assert_eq!(filter.is_empty(), text.trim().is_empty());
            }
            Err(error) => {
                prop_assert!(!error.at.is_empty(), "{:?}", error);
                prop_assert!(text.get(error.at.clone()).is_some(), "{:?}", error);
            }
        }
    }

    /// Quotes take every meaning away. (The sign for Kelvin is left out: its small letter is the plain `k`.)
    #[test]
    fn a_quoted_name_finds_itself(name in "[^\"“”＂\u{212a}]{1,12}") {
        let filter = Filter::parse(&format!("\"{name}\"")).unwrap();
        let row = Sample { name: Some(Box::leak(name.clone().into_boxed_str())), ..stranger() };
        prop_assert!(filter.matches(&row, now()), "{:?}", filter);
        let by_key = Filter::parse(&format!("name:\"{name}\"")).unwrap();
        prop_assert!(by_key.matches(&row, now()), "{:?}", by_key);
    }

    /// A filter of two terms is what fits both; a negated one is never fitted together with its opposite.
    #[test]
    fn terms_narrow_and_negation_excludes(one in any_text(), other in any_text()) {
        let (Ok(first), Ok(second)) = (Filter::parse(&one), Filter::parse(&other)) else { return Ok(()) };
        let both = Filter::parse(&format!("{one} {other}")).unwrap();
        let opposite = Filter::parse(&format!("-{}", one.trim())).ok().filter(|filter| filter.terms.len() == 1);
        for row in [machine(), stranger(), snapshot()] {
            prop_assert_eq!(both.matches(&row, now()), first.matches(&row, now()) && second.matches(&row, now()));
            if let Some(opposite) = opposite.as_ref().filter(|_| !one.trim().starts_with(['-', '!', '－', '！'])) {
                prop_assert!(!(opposite.matches(&row, now()) && first.matches(&row, now())));
            }
        }
    }

    /// Comparisons of rates are those of the exact amounts.
    #[test]
    fn a_rate_is_compared_as_an_exact_number(picos in 0i64..4_000_000_000_000, limit in 0u32..400, scale in 0u32..12) {
        let hourly = Rate::from_picos(picos, Currency::USD);
        let rates = Rates::known().push(RateLine { component: Component::Compute, rate: hourly, estimated: false, certain: true });
        let row = Sample { rates, ..machine() };
        let limit = Decimal::new(limit.into(), scale);
        let matches = |text: String| Filter::parse(&text).unwrap().matches(&row, now());
        prop_assert_eq!(matches(format!(">{limit}/h")), hourly.amount() > limit);
        prop_assert_eq!(matches(format!("<={limit}/d")), hourly.amount() * Decimal::from(24) <= limit);
        prop_assert_ne!(matches(format!("<{limit}/mo")), matches(format!(">={limit}/mo")));
    }
}
