//! What can be said in a filter, in English and in Chinese. Every name is understood in either language; of
//! each list the first is the one to show in English, and the second in Chinese.

use providers::model::{Market, Phase, StorageKind};

/// A word that asks for a state, when it stands alone and without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// Nothing computes on it. What lacks a verdict is neither this nor its opposite.
    Idle,
    /// Something computes on it.
    Busy,
    /// Some of its cards work, most do nothing.
    Underused,
    /// It serves, and nobody asks it anything.
    Waiting,
    /// The provider may take it back at any time.
    Spot,
    /// Paid ahead for a term.
    Reserved,
    /// Running.
    On,
    /// Stopped, reclaimed, unreachable or failed.
    Off,
    /// Proven to be no more; such rows leave after a minute.
    Gone,
    /// Charged for although nobody can use it.
    Waste,
    /// A storage item that nobody uses.
    Unattached,
    /// Somebody should look at it now.
    Trouble,
    /// An action of ours is under way.
    Pending,
    /// Ours to act on in bulk.
    Mine,
    /// Left out of every bulk action.
    Protected,
    /// Something may lie on it, and no copy of that was ever verified.
    Unsaved,
}

impl Flag {
    /// Every one, in the order of the help.
    pub const ALL: [Flag; 16] = [
        Flag::Idle,
        Flag::Busy,
        Flag::Underused,
        Flag::Waiting,
        Flag::Spot,
        Flag::Reserved,
        Flag::On,
        Flag::Off,
        Flag::Gone,
        Flag::Waste,
        Flag::Unattached,
        Flag::Trouble,
        Flag::Pending,
        Flag::Mine,
        Flag::Protected,
        Flag::Unsaved,
    ];

    /// English, Chinese, then further spellings.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Flag::Idle => &["idle", "闲置", "空闲"],
            Flag::Busy => &["busy", "忙碌"],
            Flag::Underused => &["underused", "低用", "利用不足"],
            Flag::Waiting => &["waiting", "待请求", "等待"],
            Flag::Spot => &["spot", "竞价"],
            Flag::Reserved => &["reserved", "包期", "包月", "预留"],
            Flag::On => &["on", "运行中", "开机"],
            Flag::Off => &["off", "停机", "关机"],
            Flag::Gone => &["gone", "已消失"],
            Flag::Waste => &["waste", "浪费"],
            Flag::Unattached => &["unattached", "未挂载"],
            Flag::Trouble => &["trouble", "需要处理", "attention"],
            Flag::Pending => &["pending", "操作中"],
            Flag::Mine => &["mine", "我的", "本人"],
            Flag::Protected => &["protected", "受保护"],
            Flag::Unsaved => &["unsaved", "未保存"],
        }
    }

    pub(super) fn named(word: &str) -> Option<Self> {
        Flag::ALL.into_iter().find(|flag| flag.names().contains(&word))
    }
}

/// What stands before `:`, followed by a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The resource's name.
    Name,
    /// The provider's id.
    Id,
    /// The account's name in the config.
    Account,
    /// The provider's name, for instance `runpod`.
    Provider,
    /// Where it stands, in the provider's words.
    Region,
    /// The GPU model.
    Gpu,
    /// The project, set by hand or by rule.
    Project,
    /// A label, its value, or `label=value`.
    Label,
    /// One of the ten phases: `running`, `stopped`, `reclaimed` …
    Phase,
    /// `on-demand`, `spot` or `reserved`.
    Market,
    /// What a storage item is: `volume`, `snapshot` …
    Kind,
}

impl Key {
    /// Every one, in the order of the help.
    pub const ALL: [Key; 11] = [
        Key::Name,
        Key::Id,
        Key::Account,
        Key::Provider,
        Key::Region,
        Key::Gpu,
        Key::Project,
        Key::Label,
        Key::Phase,
        Key::Market,
        Key::Kind,
    ];

    /// English, Chinese, then further spellings.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Key::Name => &["name", "名称", "名字"],
            Key::Id => &["id", "编号"],
            Key::Account => &["account", "账户", "账号"],
            Key::Provider => &["provider", "平台"],
            Key::Region => &["region", "地区", "区域"],
            Key::Gpu => &["gpu", "显卡", "型号"],
            Key::Project => &["project", "项目"],
            Key::Label => &["label", "标签"],
            Key::Phase => &["phase", "状态", "state"],
            Key::Market => &["market", "计费", "计费方式"],
            Key::Kind => &["kind", "类型", "种类"],
        }
    }

    /// A term with this key.
    pub fn example(self) -> &'static str {
        match self {
            Key::Name => "name:ft-*",
            Key::Id => "id:7f3a",
            Key::Account => "account:team",
            Key::Provider => "provider:vast",
            Key::Region => "region:eu",
            Key::Gpu => "gpu:4090|a100",
            Key::Project => "project:art",
            Key::Label => "label:team=vision",
            Key::Phase => "phase:stopped",
            Key::Market => "market:spot",
            Key::Kind => "kind:snapshot",
        }
    }

    pub(super) fn named(word: &str) -> Option<Self> {
        Key::ALL.into_iter().find(|key| key.names().contains(&word))
    }
}

/// What can be compared with `<`, `<=`, `=`, `!=`, `>=` and `>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// All that it is or may be charged, an hour where nothing else is said; a month has 730 hours. In the
    /// row's own currency, or only for rows of the one that is named: `>¥4/h`, `>4CNY/h`. Its name may be
    /// left out.
    Rate,
    /// The number of cards.
    Gpus,
    /// The mean over the cards, in percent.
    Utilization,
    /// GPU memory in use, all cards together, in GiB where nothing else is said.
    Memory,
    /// How long the present run lasts; nothing for what does not run.
    Up,
    /// How long ago the rental began.
    Age,
    /// The size of a storage item, in GiB where nothing else is said.
    Size,
    /// How old the last verified copy is; nothing for what has none.
    Saved,
}

impl Quantity {
    /// Every one, in the order of the help.
    pub const ALL: [Quantity; 8] = [
        Quantity::Rate,
        Quantity::Gpus,
        Quantity::Utilization,
        Quantity::Memory,
        Quantity::Up,
        Quantity::Age,
        Quantity::Size,
        Quantity::Saved,
    ];

    /// English, Chinese, then further spellings.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Quantity::Rate => &["rate", "费用", "cost", "price", "单价", "价格"],
            Quantity::Gpus => &["gpus", "卡数", "gpu"],
            Quantity::Utilization => &["util", "利用率", "utilization"],
            Quantity::Memory => &["mem", "显存", "memory", "vram"],
            Quantity::Up => &["up", "运行", "uptime"],
            Quantity::Age => &["age", "已租", "时长"],
            Quantity::Size => &["size", "大小", "容量"],
            Quantity::Saved => &["saved", "已存", "副本"],
        }
    }

    /// A term with this quantity.
    pub fn example(self) -> &'static str {
        match self {
            Quantity::Rate => ">1/h",
            Quantity::Gpus => "gpus>=8",
            Quantity::Utilization => "util<10%",
            Quantity::Memory => "mem>40g",
            Quantity::Up => "up>2d",
            Quantity::Age => "age>30d",
            Quantity::Size => "size>100g",
            Quantity::Saved => "saved>1d",
        }
    }

    pub(super) fn named(word: &str) -> Option<Self> {
        Quantity::ALL.into_iter().find(|quantity| quantity.names().contains(&word))
    }
}

/// What a phase can be called.
pub(super) fn phase_words(phase: Phase) -> [&'static str; 3] {
    let (chinese, shown) = match phase {
        Phase::Provisioning => ("启动中", "starting"),
        Phase::Running => ("运行中", "running"),
        Phase::Stopping => ("停止中", "stopping"),
        Phase::Stopped => ("已停止", "stopped"),
        Phase::Reclaimed => ("被回收", "reclaimed"),
        Phase::Unreachable => ("失联", "no answer"),
        Phase::Releasing => ("释放中", "releasing"),
        Phase::Gone => ("已消失", "gone"),
        Phase::Failed => ("故障", "failed"),
        Phase::Unknown => ("未知", "unknown"),
    };
    [phase.word(), chinese, shown]
}

/// One of each.
pub(super) const MARKETS: [Market; 3] = [Market::OnDemand, Market::Spot, Market::Reserved { until: None }];

pub(super) fn market_words(market: Market) -> &'static [&'static str] {
    match market {
        Market::OnDemand => &["on-demand", "按量", "ondemand", "on_demand"],
        Market::Spot => Flag::Spot.names(),
        Market::Reserved { .. } => Flag::Reserved.names(),
    }
}

pub(super) const KINDS: [StorageKind; 6] = [
    StorageKind::Volume,
    StorageKind::NetworkVolume,
    StorageKind::FileSystem,
    StorageKind::Snapshot,
    StorageKind::Image,
    StorageKind::Address,
];

pub(super) fn kind_words(kind: StorageKind) -> [&'static str; 2] {
    let chinese = match kind {
        StorageKind::Volume => "数据盘",
        StorageKind::NetworkVolume => "网络卷",
        StorageKind::FileSystem => "文件系统",
        StorageKind::Snapshot => "快照",
        StorageKind::Image => "镜像",
        StorageKind::Address => "地址",
    };
    [kind.word(), chinese]
}

/// Seconds.
pub(super) const TIMES: &[(&str, u32)] = &[
    ("m", 60),
    ("min", 60),
    ("分", 60),
    ("分钟", 60),
    ("h", 3600),
    ("hr", 3600),
    ("时", 3600),
    ("小时", 3600),
    ("d", 86_400),
    ("day", 86_400),
    ("天", 86_400),
    ("日", 86_400),
    ("w", 604_800),
    ("week", 604_800),
    ("周", 604_800),
];

/// Hours. A month is the twelfth part of a year.
pub(super) const PERIODS: &[(&str, u32)] = &[
    ("h", 1),
    ("hr", 1),
    ("hour", 1),
    ("时", 1),
    ("小时", 1),
    ("d", 24),
    ("day", 24),
    ("天", 24),
    ("日", 24),
    ("w", 168),
    ("week", 168),
    ("周", 168),
    ("mo", 730),
    ("month", 730),
    ("月", 730),
];

/// MiB.
pub(super) const SIZES: &[(&str, u32)] = &[
    ("m", 1),
    ("mb", 1),
    ("mib", 1),
    ("", 1024),
    ("g", 1024),
    ("gb", 1024),
    ("gib", 1024),
    ("t", 1_048_576),
    ("tb", 1_048_576),
    ("tib", 1_048_576),
];

/// How currencies are written, and their codes.
pub(super) const CURRENCIES: &[(&str, &str)] = &[
    ("$", "USD"),
    ("¥", "CNY"),
    ("元", "CNY"),
    ("rmb", "CNY"),
    ("€", "EUR"),
    ("£", "GBP"),
    ("usd", "USD"),
    ("cny", "CNY"),
    ("eur", "EUR"),
    ("gbp", "GBP"),
    ("jpy", "JPY"),
    ("krw", "KRW"),
    ("inr", "INR"),
    ("hkd", "HKD"),
    ("twd", "TWD"),
    ("sgd", "SGD"),
    ("cad", "CAD"),
    ("aud", "AUD"),
    ("chf", "CHF"),
];

/// A word longer than this is no slip of the finger.
const LONGEST_SLIP: usize = 24;

/// The name that was probably meant; `None` when none is close.
pub(super) fn nearest(word: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    if word.chars().count() > LONGEST_SLIP {
        return None;
    }
    let far = |name: &&'static str| strsim::osa_distance(word, name);
    let near = names.min_by_key(far)?;
    (far(&near) * 3 <= near.chars().count().max(3)).then_some(near)
}
