//! What is said of budgets, their form and the lists of alerts, in each language.

use providers::money::Currency;

use super::Language;
use crate::app::budget_form::{Field, Mistake};
use crate::rules::budgets::{Cycle, NoLimit};

/// A text about budgets.
#[derive(Clone, Copy, Debug)]
pub enum OfBudgets<'a> {
    HeadBudget,
    HeadScope,
    HeadPeriod,
    HeadSpent,
    HeadForecast,
    HeadCommitted,
    HeadReached,
    HeadBurn,
    /// The scope that takes everything.
    Everything,
    /// So much of so much.
    Of {
        part: &'a str,
        whole: &'a str,
    },
    /// What the signs of the chart stand for.
    Spent,
    Forecast,
    Committed,
    Limit,
    /// The time at which the limit is reached.
    ReachedAt {
        at: &'a str,
    },
    NotReached,
    /// Nobody knows when: in the column of the moment, and beside the name.
    Reached,
    LimitReached,
    LeftRunning,
    NothingRuns,
    /// What of the spent is no provider's own figure.
    Estimated {
        money: &'a str,
    },
    /// What was spent in currencies that are in no other figure.
    Apart {
        money: &'a str,
    },
    /// Nothing is known of the currency of a limit.
    NothingIn {
        currency: Currency,
    },
    Reading,
    MoreRunning {
        count: usize,
    },
    NewBudget,
    ChangeBudget {
        name: &'a str,
    },
    Saving,
    /// The month's spend and its limit, in the header.
    Month {
        month: i8,
        spent: &'a str,
        limit: &'a str,
    },
    MonthBriefly {
        month: i8,
        percent: &'a str,
    },
}

/// A text about alerts in the list and the window.
#[derive(Clone, Copy, Debug)]
pub enum OfAlerts<'a> {
    HeadState,
    HeadSince,
    HeadWhat,
    HeadAnswer,
    Firing,
    Seen,
    Snoozed {
        until: &'a str,
    },
    Pending,
    Ended,
    Title {
        count: usize,
    },
    Since,
    Told,
    ToldAgain,
    EndedAt,
    About,
    Costs,
    Snooze,
    AnHour {
        at: &'a str,
    },
    Morning {
        at: &'a str,
    },
    Waits,
    Stop,
    Release,
    Delete,
    /// A guard is kept from it.
    Forbid,
    AllIdle {
        count: usize,
        rate: &'a str,
    },
}

impl Language {
    pub fn of_budgets(self, text: OfBudgets) -> String {
        let pair = |english: &str, chinese: &str| match self {
            Language::English => english.to_owned(),
            Language::Chinese => chinese.to_owned(),
        };
        let zh = self == Language::Chinese;
        match text {
            OfBudgets::HeadBudget => pair("BUDGET", "预算"),
            OfBudgets::HeadScope => pair("FOR", "范围"),
            OfBudgets::HeadPeriod => pair("PERIOD", "周期"),
            OfBudgets::HeadSpent => pair("SPENT", "已用 / 限额"),
            OfBudgets::HeadForecast => pair("FORECAST", "预测"),
            OfBudgets::HeadCommitted => pair("IF LEFT ON", "全部续跑"),
            OfBudgets::HeadReached => pair("LIMIT AT", "到限额"),
            OfBudgets::HeadBurn => pair("BURN", "现耗"),
            OfBudgets::Everything => pair("everything", "全部"),
            OfBudgets::Of { part, whole } if zh => format!("{part} / {whole}"),
            OfBudgets::Of { part, whole } => format!("{part} of {whole}"),
            OfBudgets::Spent => pair("spent", "已用"),
            OfBudgets::Forecast => pair("forecast", "预测"),
            OfBudgets::Committed => pair("if left on", "全部续跑"),
            OfBudgets::Limit => pair("limit", "限额"),
            OfBudgets::ReachedAt { at } if zh => format!("{at} 到限额"),
            OfBudgets::ReachedAt { at } => format!("limit reached {at}"),
            OfBudgets::Reached => pair("reached", "已到"),
            OfBudgets::LimitReached => pair("limit reached", "已到限额"),
            OfBudgets::NotReached => pair("limit not reached", "不会到限额"),
            OfBudgets::LeftRunning => pair("IF LEFT RUNNING", "如继续运行"),
            OfBudgets::NothingRuns => pair("nothing runs", "没有运行中的实例"),
            OfBudgets::Estimated { money } if zh => format!("其中 {money} 为估算"),
            OfBudgets::Estimated { money } => format!("{money} of it estimated"),
            OfBudgets::NothingIn { currency } if zh => {
                format!("没有以 {currency} 计的费用；是否写错？可用 [fx] 换算")
            }
            OfBudgets::NothingIn { currency } => {
                format!("nothing is spent in {currency}; a typing mistake? add [fx] to join it")
            }
            OfBudgets::Apart { money } if zh => format!("另有 {money} 未计入"),
            OfBudgets::Apart { money } => format!("{money} beside, not counted here"),
            OfBudgets::Reading => pair("reading the books", "正在读取账目"),
            OfBudgets::MoreRunning { count } if zh => format!("另有 {count} 个"),
            OfBudgets::MoreRunning { count } => format!("{count} more"),
            OfBudgets::NewBudget => pair("New budget", "新建预算"),
            OfBudgets::ChangeBudget { name } if zh => format!("修改预算 {name}"),
            OfBudgets::ChangeBudget { name } => format!("Budget {name}"),
            OfBudgets::Saving => pair("saving", "正在保存"),
            OfBudgets::Month { month, spent, limit } if zh => format!("{month}月 {spent} / {limit}"),
            OfBudgets::Month { month, spent, limit } => format!("{} {spent} of {limit}", self.month(month)),
            OfBudgets::MonthBriefly { month, percent } => format!("{} {percent}", self.month(month)),
        }
    }

    /// How often a budget begins anew.
    pub fn cycle(self, cycle: &Cycle) -> &'static str {
        let [english, chinese] = match cycle {
            Cycle::Day => ["day", "日"],
            Cycle::Week => ["week", "周"],
            Cycle::Month => ["month", "月"],
            Cycle::Total => ["total", "总计"],
            Cycle::Dates(_) => ["dates", "日期"],
        };
        if self == Language::English { english } else { chinese }
    }

    /// What a field of the form is called, and what may stand in it.
    pub fn field(self, field: Field) -> [&'static str; 2] {
        let [english, chinese] = match field {
            Field::Name => [["name", "as you call it"], ["名称", "随意取名"]],
            Field::Limit => [["limit", "like 1500 USD or 200 gpu-h"], ["限额", "如 1500 USD 或 200 gpu-h"]],
            Field::Period => [
                ["period", "day, week, month, total, or 2026-09-01..2026-12-31"],
                ["周期", "日、周、月、总计，或 2026-09-01..2026-12-31"],
            ],
            Field::Scope => [
                ["for", "empty: everything; or project, account, provider, instance, label and which"],
                ["范围", "留空为全部；或 项目、账号、平台、实例、标签 加空格加名称"],
            ],
            Field::Thresholds => [
                ["tell at", "percents of the limit that are spent, like 50, 80, 100"],
                ["提醒点", "已用百分比，如 50, 80, 100"],
            ],
            Field::Forecast => [
                ["forecast", "tell when the forecast comes to so many percent; empty: never"],
                ["预测", "预测达到此百分比时提醒；留空则不提醒"],
            ],
            Field::Zone => [
                ["zone", "empty: the config's own; or like Asia/Shanghai"],
                ["时区", "留空用配置的时区；或如 Asia/Shanghai"],
            ],
        };
        if self == Language::English { english } else { chinese }
    }

    /// What to change about a field.
    pub fn mistake(self, mistake: &Mistake) -> String {
        let zh = self == Language::Chinese;
        let fixed = match mistake {
            Mistake::NoName => ["give it a name", "请取一个名称"],
            Mistake::NameTaken => ["another budget has this name", "已有同名预算"],
            Mistake::NoLimit(NoLimit::DecimalComma) => [
                "a comma parts thousands: 1,500 USD; decimals begin with a point: 0.5 USD",
                "逗号只分千位：1,500 USD；小数用点：0.5 USD",
            ],
            Mistake::NoLimit(NoLimit::NoUnit | NoLimit::Unreadable) => {
                ["an amount above 0 and a unit: 1500 USD, 200 gpu-h", "大于 0 的数量和单位：1500 USD、200 gpu-h"]
            }
            Mistake::NoPeriod => [
                "day, week, month, total, or two dates: 2026-09-01..2026-12-31",
                "日、周、月、总计，或两个日期：2026-09-01..2026-12-31",
            ],
            Mistake::DatesReversed => ["the last day is before the first", "结束日期早于开始日期"],
            Mistake::NoScope => [
                "a kind and which: project art, account team, instance ft-*, label team=a",
                "种类加名称：项目 art、账号 team、实例 ft-*、标签 team=a",
            ],
            Mistake::NoAccount(name) if zh => return format!("配置中没有账号 {name}"),
            Mistake::NoAccount(name) => return format!("the config has no account {name}"),
            Mistake::NoProvider(name) if zh => return format!("没有平台 {name}"),
            Mistake::NoProvider(name) => return format!("there is no provider {name}"),
            Mistake::NoPercents => ["percents from 1 to 1000", "1 到 1000 的百分比"],
            Mistake::NoZone => ["a zone like Asia/Shanghai", "时区名，如 Asia/Shanghai"],
        };
        fixed[usize::from(zh)].to_owned()
    }

    pub fn of_alerts(self, text: OfAlerts) -> String {
        let pair = |english: &str, chinese: &str| match self {
            Language::English => english.to_owned(),
            Language::Chinese => chinese.to_owned(),
        };
        let zh = self == Language::Chinese;
        match text {
            OfAlerts::HeadState => pair("STATE", "状态"),
            OfAlerts::HeadSince => pair("AGE", "时长"),
            OfAlerts::HeadWhat => pair("WHAT", "内容"),
            OfAlerts::HeadAnswer => pair("ANSWER", "处理"),
            OfAlerts::Firing => pair("needs you", "待处理"),
            OfAlerts::Seen => pair("seen", "已阅"),
            OfAlerts::Snoozed { until } if zh => format!("{until} 再提醒"),
            OfAlerts::Snoozed { until } => format!("until {until}"),
            OfAlerts::Pending => pair("not told yet", "未通知"),
            OfAlerts::Ended => pair("over", "已结束"),
            OfAlerts::Title { count } if zh => format!("{count} 件事需要处理"),
            OfAlerts::Title { count: 1 } => "1 thing needs you".to_owned(),
            OfAlerts::Title { count } => format!("{count} things need you"),
            OfAlerts::Since => pair("since", "开始于"),
            OfAlerts::Told => pair("told", "通知于"),
            OfAlerts::ToldAgain => pair("told last", "最近通知"),
            OfAlerts::EndedAt => pair("over at", "结束于"),
            OfAlerts::About => pair("about", "关于"),
            OfAlerts::Costs => pair("costs", "费用"),
            OfAlerts::Snooze => pair("Tell it again", "何时再提醒"),
            OfAlerts::AnHour { at } if zh => format!("一小时后（{at}）"),
            OfAlerts::AnHour { at } => format!("in an hour ({at})"),
            OfAlerts::Morning { at } if zh => format!("早上（{at}）"),
            OfAlerts::Morning { at } => format!("in the morning ({at})"),
            OfAlerts::Waits => pair("keys in a moment", "按键稍后生效"),
            OfAlerts::Stop => pair("stop", "停止"),
            OfAlerts::Release => pair("release", "释放"),
            OfAlerts::Delete => pair("delete", "删除"),
            OfAlerts::Forbid => pair("forbid", "阻止"),
            OfAlerts::AllIdle { count, rate } if zh => format!("全部空闲（{count} 个，{rate}）"),
            OfAlerts::AllIdle { count, rate } => format!("all idle ({count}, {rate})"),
        }
    }
}
