//! The heads and last lines of tables on standard output, in each language.

use super::Language;
use crate::rules::spend::By;

/// A head of the table of `rentop spend`. Those of figures begin with a space: they are set to the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    By(By),
    Account,
    Amount,
    Billed,
    Estimated,
    Assumed,
    Waste,
    GpuHours,
    Shared,
    WithShare,
}

/// What stands below the table of `rentop spend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below<'a> {
    Total,
    NoProject,
    NothingSpent,
    /// The period, and since when anything is known.
    Period {
        from: &'a str,
        to: &'a str,
    },
    KnownSince {
        at: &'a str,
    },
    Possible {
        money: &'a str,
    },
    Prepaid {
        money: &'a str,
        unused: &'a str,
    },
    Drift {
        money: &'a str,
    },
    Joined {
        money: &'a str,
        rates: &'a str,
    },
    Rate {
        one: &'a str,
        dollars: &'a str,
        as_of: &'a str,
    },
    Unexplained {
        account: &'a str,
        money: &'a str,
        from: &'a str,
    },
    Unfinished,
}

impl Language {
    pub fn head(self, head: Head) -> &'static str {
        match self {
            Language::English => match head {
                Head::By(By::Project) => "PROJECT",
                Head::By(By::Provider) => "PROVIDER",
                Head::By(By::Account) | Head::Account => "ACCOUNT",
                Head::By(By::Instance) => "RESOURCE",
                Head::By(By::Component) => "COMPONENT",
                Head::By(By::Day) => "DAY",
                Head::Amount => " AMOUNT",
                Head::Billed => " BILLED",
                Head::Estimated => " COUNTED",
                Head::Assumed => " ASSUMED",
                Head::Waste => " WASTE",
                Head::GpuHours => " GPU-H",
                Head::Shared => " SHARED",
                Head::WithShare => " WITH SHARE",
            },
            Language::Chinese => match head {
                Head::By(By::Project) => "项目",
                Head::By(By::Provider) => "平台",
                Head::By(By::Account) | Head::Account => "账号",
                Head::By(By::Instance) => "资源",
                Head::By(By::Component) => "费用项",
                Head::By(By::Day) => "日期",
                Head::Amount => " 金额",
                Head::Billed => " 平台账单",
                Head::Estimated => " 自计",
                Head::Assumed => " 推定",
                Head::Waste => " 浪费",
                Head::GpuHours => " GPU 小时",
                Head::Shared => " 分摊",
                Head::WithShare => " 含分摊",
            },
        }
    }

    pub fn below(self, below: Below) -> String {
        match self {
            Language::English => match below {
                Below::Total => "total".to_owned(),
                Below::NoProject => "(no project)".to_owned(),
                Below::NothingSpent => "nothing was spent, as far as is known".to_owned(),
                Below::Period { from, to } => format!("{from} to {to}, both included"),
                Below::KnownSince { at } => format!("known since {at}"),
                Below::Possible { money } => format!("perhaps charged besides: up to {money}"),
                Below::Prepaid { money, unused } => format!("paid ahead, in no total: {money}, unused {unused}"),
                Below::Drift { money } => format!("billed beyond what was counted for the same time: {money}"),
                Below::Joined { money, rates } => format!("together {money} ({rates})"),
                Below::Rate { one, dollars, as_of } => format!("1 {one} = {dollars} as of {as_of}"),
                Below::Unexplained { account, money, from } => {
                    format!("{account}: {money} left the balance since {from} that nothing explains")
                }
                Below::Unfinished => "the books are still being added up: figures may be missing".to_owned(),
            },
            Language::Chinese => match below {
                Below::Total => "合计".to_owned(),
                Below::NoProject => "（未归入项目）".to_owned(),
                Below::NothingSpent => "据目前所知没有支出".to_owned(),
                Below::Period { from, to } => format!("{from} 至 {to}（含首尾）"),
                Below::KnownSince { at } => format!("自 {at} 起有记录"),
                Below::Possible { money } => format!("此外可能另有计费：至多 {money}"),
                Below::Prepaid { money, unused } => format!("预付（不计入合计）：{money}，其中闲置 {unused}"),
                Below::Drift { money } => format!("同一时段平台账单比自计多：{money}"),
                Below::Joined { money, rates } => format!("折合 {money}（{rates}）"),
                Below::Rate { one, dollars, as_of } => format!("1 {one} = {dollars}，{as_of}"),
                Below::Unexplained { account, money, from } => {
                    format!("{account}：自 {from} 起余额另有 {money} 的变动无从解释")
                }
                Below::Unfinished => "账目仍在重新汇总：数字可能不全".to_owned(),
            },
        }
    }
}
