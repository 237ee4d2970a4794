//! Guards in both languages: why they are called for, what they are about to do and how to forbid it; what could not be
//! done.

use providers::model::Action;

use super::Language;
use super::alerts::{Sentence, Telling};
use crate::rules::guard::{Cause, Unable, Warning, Way};
use crate::ui::format;

impl Telling<'_> {
    /// What a guard says of a machine.
    pub(super) fn guard(&self, name: &str, guard: &str, cause: &Cause, warning: &Warning) -> Sentence {
        let why = self.cause(guard, cause);
        match self.look.language {
            Language::English => {
                let (says, then) = match warning {
                    Warning::Proposes { action } => (format!(" should be {}", done(*action)), None),
                    Warning::Acts { way, at } => {
                        let forbid = format!("u or `rentop veto {name}` forbids it");
                        (format!(" is {} at {}", english(*way), self.moment(*at)), Some(forbid))
                    }
                    Warning::CanDoNothing { why } => {
                        let why = Language::English.hindrance(why, Action::Stop);
                        (": a guard may do nothing about it".to_owned(), Some(why))
                    }
                    Warning::DidNot { way, why } => {
                        let why = Language::English.outcome(why);
                        (format!(" was not {}", english(*way)), Some(why))
                    }
                };
                Sentence::new(name, says).and("; ", then).and(": ", Some(why))
            }
            Language::Chinese => {
                let (says, then) = match warning {
                    Warning::Proposes { action } => (format!(" 建议{}", Language::Chinese.action(*action)), None),
                    Warning::Acts { way, at } => {
                        let forbid = format!("按 u 或运行 `rentop veto {name}` 可阻止");
                        (format!(" 将于 {} {}", self.moment(*at), chinese(*way)), Some(forbid))
                    }
                    Warning::CanDoNothing { why } => {
                        let why = Language::Chinese.hindrance(why, Action::Stop);
                        ("：守护规则无法处理".to_owned(), Some(why))
                    }
                    Warning::DidNot { way, why } => {
                        let why = Language::Chinese.outcome(why);
                        (format!(" 未能{}", chinese(*way)), Some(why))
                    }
                };
                Sentence::new(name, says).and("；", then).and("；", Some(why))
            }
        }
    }

    /// Which guard is called for, and by what.
    fn cause(&self, guard: &str, cause: &Cause) -> String {
        let [english, chinese] = match cause {
            Cause::Idle { since } => {
                let since = self.moment(*since);
                [format!("idle since {since}"), format!("自 {since} 起空闲")]
            }
            Cause::Budget { name, percent } => {
                [format!("budget {name} is at {percent} %"), format!("预算 {name} 已用 {percent} %")]
            }
            Cause::Burn { burn, above } => {
                let (burn, above) = (format::rate(*burn, self.look), format::rate(*above, self.look));
                [format!("all of it costs {burn}, over {above}"), format!("合计 {burn}，超过 {above}")]
            }
            Cause::Runway { account, ends_at } => {
                let (account, at) = ((self.title)(account), self.moment(*ends_at));
                [format!("{account} is empty at {at}"), format!("{account} 余额 {at} 用完")]
            }
        };
        match self.look.language {
            Language::English => format!("guard {guard}, {english}"),
            Language::Chinese => format!("守护规则 {guard}：{chinese}"),
        }
    }

    /// What could not be done with a machine if it had to be done now.
    pub(super) fn unable(&self, name: &str, why: &Unable) -> Sentence {
        let [english, chinese] = match why {
            Unable::Key(said) => {
                [format!("its account's key cannot be used: {said}"), format!("账户密钥不可用：{said}")]
            }
            Unable::Ssh(said) => [format!("ssh does not reach it: {said}"), format!("ssh 无法到达：{said}")],
            Unable::Plan(why) => {
                [Language::English.hindrance(why, Action::Release), Language::Chinese.hindrance(why, Action::Release)]
            }
            Unable::Folder(said) => {
                [format!("the folder of its copies cannot be written: {said}"), format!("副本目录无法写入：{said}")]
            }
            Unable::NoRoom { need, free } => {
                let (need, free) = (format::bytes(*need), format::bytes(*free));
                [
                    format!("no room for its copy: {need} needed, {free} free"),
                    format!("副本空间不足：需要 {need}，剩余 {free}"),
                ]
            }
        };
        match self.look.language {
            Language::English => {
                Sentence::new(name, ": what is planned cannot be carried out").and(": ", Some(english))
            }
            Language::Chinese => Sentence::new(name, "：计划的操作无法执行").and("：", Some(chinese)),
        }
    }
}

fn english(way: Way) -> String {
    if way.saves { format!("saved, then {}", done(way.action)) } else { done(way.action).to_owned() }
}

fn chinese(way: Way) -> String {
    let action = Language::Chinese.action(way.action);
    if way.saves { format!("先保存再{action}") } else { action.to_owned() }
}

fn done(action: Action) -> &'static str {
    match action {
        Action::Release => "released",
        _ => "stopped",
    }
}
