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

    /// A month, 1 to 12.
    pub fn month(self, month: i8) -> String {
        match self {
            Language::English => english_month(month).to_owned(),
            Language::Chinese => format!("{month}月"),
        }
    }

    /// A day of the year, and the year where it is given. `month` is 1 to 12.
    pub fn date(self, year: Option<i16>, month: i8, day: i8) -> String {
        match (self, year) {
            (Language::English, year) => {
                let month = english_month(month);
                year.map_or(format!("{day} {month}"), |year| format!("{day} {month} {year}"))
            }
            (Language::Chinese, Some(year)) => format!("{year}年{month}月{day}日"),
            (Language::Chinese, None) => format!("{month}月{day}日"),
        }
    }
}

fn english_month(month: i8) -> &'static str {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    MONTHS[usize::from(month.clamp(1, 12).unsigned_abs()) - 1]
}
