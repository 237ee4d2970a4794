//! The units and dates that figures need in each language.

use jiff::civil::Weekday;

pub use crate::config::Language;

/// Units of time, as short as people write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Second,
    Minute,
    Hour,
    Day,
}

impl Language {
    pub fn unit(self, unit: Unit) -> &'static str {
        match (self, unit) {
            (Language::English, Unit::Second) => "s",
            (Language::English, Unit::Minute) => "m",
            (Language::English, Unit::Hour) => "h",
            (Language::English, Unit::Day) => "d",
            (Language::Chinese, Unit::Second) => "秒",
            (Language::Chinese, Unit::Minute) => "分钟",
            (Language::Chinese, Unit::Hour) => "小时",
            (Language::Chinese, Unit::Day) => "天",
        }
    }

    /// After the stroke of a rate.
    pub fn per_hour(self) -> &'static str {
        match self {
            Language::English => "h",
            Language::Chinese => "时",
        }
    }

    /// A unit that follows a larger one: `3 小时 40 分`.
    pub fn lesser_unit(self, unit: Unit) -> &'static str {
        match (self, unit) {
            (Language::Chinese, Unit::Minute) => "分",
            _ => self.unit(unit),
        }
    }

    pub fn weekday(self, day: Weekday) -> &'static str {
        let at = usize::from(day.to_monday_zero_offset().unsigned_abs());
        match self {
            Language::English => ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][at],
            Language::Chinese => ["周一", "周二", "周三", "周四", "周五", "周六", "周日"][at],
        }
    }

    /// `month` is 1 to 12.
    pub fn month(self, month: i8) -> &'static str {
        const ENGLISH: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        const CHINESE: [&str; 12] =
            ["1月", "2月", "3月", "4月", "5月", "6月", "7月", "8月", "9月", "10月", "11月", "12月"];
        let at = usize::from(month.clamp(1, 12).unsigned_abs()) - 1;
        match self {
            Language::English => ENGLISH[at],
            Language::Chinese => CHINESE[at],
        }
    }

    /// Days of one month, from the first to the last.
    pub fn days_of_month(self, year: Option<i16>, month: i8, first: i8, last: i8) -> String {
        let name = self.month(month);
        match (self, year) {
            (Language::English, Some(year)) => format!("{name} {first}-{last}, {year}"),
            (Language::English, None) => format!("{name} {first}-{last}"),
            (Language::Chinese, Some(year)) => format!("{year}年{name}{first}-{last}日"),
            (Language::Chinese, None) => format!("{name}{first}-{last}日"),
        }
    }

    /// A whole year.
    pub fn year(self, year: i16) -> String {
        match self {
            Language::English => year.to_string(),
            Language::Chinese => format!("{year}年"),
        }
    }

    /// A day of the year, and the year where it is given. `month` is 1 to 12.
    pub fn date(self, year: Option<i16>, month: i8, day: i8) -> String {
        match (self, year) {
            (Language::English, year) => {
                let month = self.month(month);
                year.map_or(format!("{day} {month}"), |year| format!("{day} {month} {year}"))
            }
            (Language::Chinese, Some(year)) => format!("{year}年{month}月{day}日"),
            (Language::Chinese, None) => format!("{month}月{day}日"),
        }
    }
}
