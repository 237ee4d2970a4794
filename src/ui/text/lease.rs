//! Leases in both languages: what is to happen by itself, what came of it, and what is wrong with what was written.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Language;
use super::alerts::{Sentence, Telling};
use crate::app::lease_form::{Choice, Field};
use crate::app::leases::Note;
use crate::app::message::LeaseNote;
use crate::rules::alerts::Money;
use crate::rules::lease::{End, Instead, Mistake, Next, NextWhen, OnBox, Shift, What, When, Why};
use crate::ui::format;

impl Language {
    fn of_lease(self, [english, chinese]: [String; 2]) -> String {
        match self {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }

    /// What a lease does, for a list.
    pub fn lease_what(self, what: What) -> &'static str {
        match (self, what) {
            (Language::English, What::Stop) => "stop",
            (Language::English, What::Release) => "save, then release",
            (Language::English, What::Start) => "start",
            (Language::Chinese, What::Stop) => "停止",
            (Language::Chinese, What::Release) => "保存后释放",
            (Language::Chinese, What::Start) => "启动",
        }
    }

    /// What comes next, for a row: `22:00 save+rel`.
    pub fn lease_next(self, next: Next, now: Timestamp, zone: &TimeZone) -> String {
        let what = match (self, next.what) {
            (Language::English, What::Release) => "save+rel",
            (_, what) => self.lease_what(what),
        };
        match next.when {
            NextWhen::At(at) => format!("{} {what}", format::moment(at, now, zone, self)),
            NextWhen::JobEnd => self.of_lease([
                format!("job end: {}", if next.what == What::Release { "release" } else { what }),
                format!("任务结束：{what}"),
            ]),
            NextWhen::Now => self.of_lease([format!("now {what}"), format!("现在{what}")]),
            NextWhen::Asks => self.of_lease([format!("asks: {what}"), format!("待定：{what}")]),
        }
    }

    /// When a lease acts, in full.
    pub fn lease_when(self, when: &When, now: Timestamp, zone: &TimeZone) -> String {
        match when {
            When::At(at) => {
                let (moment, span) = (format::moment(*at, now, zone, self), at.duration_since(now));
                match span.is_positive() {
                    true => {
                        let span = format::span(span, self);
                        self.of_lease([format!("at {moment}, in {span}"), format!("{moment}（{span}后）")])
                    }
                    false => self.of_lease([format!("at {moment}"), moment]),
                }
            }
            When::File(path) => {
                self.of_lease([format!("when {path} says that the job went well"), format!("{path} 写明任务成功时")])
            }
            When::Process { pid, .. } => {
                self.of_lease([format!("when process {pid} is gone"), format!("进程 {pid} 结束时")])
            }
        }
    }

    /// What somebody should know before a lease is made.
    pub fn lease_note(self, note: &Note) -> String {
        self.of_lease(match note {
            Note::SavedBy(name) => [
                format!("checkpoint {name} is made and verified first; without it nothing is released"),
                format!("先执行并验证检查点 {name}；未通过则不释放"),
            ],
            Note::NoCheckpoint => [
                "no [[checkpoint]] of the config fits it: it is stopped instead".into(),
                "配置中没有适用的 [[checkpoint]]：将改为停止".into(),
            ],
            Note::Protected => [
                "it is protected; a lease of its own counts all the same".into(),
                "该实例受保护；为它单独设置的租约仍然有效".into(),
            ],
            Note::NoExitCode => [
                "a process leaves no exit code: the instance is kept and you are asked; --max-cost stops it".into(),
                "进程不留退出码：实例保留并询问；达到费用上限时停止".into(),
            ],
            Note::Shifted(Shift::Skipped) => {
                ["the clocks skip that time: it is as much later".into(), "当天时钟会跳过该时刻：相应顺延".into()]
            }
            Note::Shifted(Shift::Twice) => [
                "the clocks show that time twice: the first to come is meant".into(),
                "当天该时刻出现两次：取最先到来的一次".into(),
            ],
            Note::Replaces(what, _) => [
                format!("takes the place of its lease to {}", Language::English.lease_what(*what)),
                format!("取代原有租约：{}", Language::Chinese.lease_what(*what)),
            ],
            Note::StaysArmed => {
                ["what was armed on the instance for that stays armed".into(), "此前在实例上设置的定时仍然有效".into()]
            }
        })
    }

    /// What became of a lease.
    pub(super) fn lease_news(self, name: &str, what: What, note: &LeaseNote) -> String {
        let [en, zh] = [Language::English.lease_what(what), Language::Chinese.lease_what(what)];
        self.of_lease(match note {
            LeaseNote::Set => [format!("{name}: lease set, {en}"), format!("{name}：已设租约，{zh}")],
            LeaseNote::NotKept(why) => {
                [format!("{name}: the lease could not be kept: {why}"), format!("{name}：租约无法保存：{why}")]
            }
            LeaseNote::Ended(how) => {
                let [why, reason] = match how {
                    End::Done => ["done", "已完成"],
                    End::AlreadySo => ["it is so already", "已是如此"],
                    End::TakenBack => ["taken back", "已撤回"],
                    End::Cancelled => ["taken away", "已取消"],
                    End::Replaced => ["another took its place", "已被取代"],
                    End::Gone => ["the instance is gone", "实例已不存在"],
                    End::AnotherMachine => ["its id now names another instance", "其编号现属于另一实例"],
                    End::Answered => ["answered", "已处理"],
                };
                [format!("{name}: lease to {en} ended: {why}"), format!("{name}：租约（{zh}）结束：{reason}")]
            }
        })
    }

    /// A lease was taken away.
    pub fn lease_cancelled(self, name: &str, what: What) -> String {
        self.lease_news(name, what, &LeaseNote::Ended(End::Cancelled))
    }

    /// Who makes a lease while no rentop runs should know.
    pub fn nobody_collects(self) -> &'static str {
        match self {
            Language::English => "no rentop runs that would carry it out: start `rentop watch`",
            Language::Chinese => "当前没有运行中的 rentop 来执行：请启动 rentop watch",
        }
    }

    /// How a timer on an instance stands.
    pub fn on_box(self, on_box: &OnBox) -> String {
        self.of_lease(match on_box {
            OnBox::Wanted => ["not armed yet".into(), "尚未设置".into()],
            OnBox::Armed => ["armed, not confirmed".into(), "已设置，未确认".into()],
            OnBox::Confirmed(_) => ["armed and confirmed".into(), "已设置并确认".into()],
            OnBox::Gone(_) => ["gone from the instance".into(), "实例上的定时已消失".into()],
            OnBox::Failed(why) => [format!("could not be armed: {why}"), format!("设置失败：{why}")],
        })
    }

    /// The title of the form.
    pub fn lease_title(self, name: &str, count: usize) -> String {
        self.of_lease(match count {
            1 => [format!("Lease of {name}"), format!("{name} 的租约")],
            _ => [format!("Lease of {count} instances"), format!("{count} 个实例的租约")],
        })
    }

    pub fn lease_yes(self, yes: bool) -> &'static str {
        match (self, yes) {
            (Language::English, true) => "yes",
            (Language::English, false) => "no",
            (Language::Chinese, true) => "是",
            (Language::Chinese, false) => "否",
        }
    }

    /// What a field of the form is called, and what may stand in it.
    pub fn lease_field(self, field: Field) -> [&'static str; 2] {
        match (self, field) {
            (Language::English, Field::What) => ["what", "left and right choose"],
            (Language::English, Field::When) => {
                ["when", "4h, 22:00, tomorrow 8:00, 2026-12-02 22:00, file /path (holds the exit code), pid 123"]
            }
            (Language::English, Field::MaxCost) => {
                ["at most", "what may be spent after a job that failed until it is stopped, 5 USD; empty: only asks"]
            }
            (Language::English, Field::OnBox) => ["on the box", "a timer on the instance as well, by your command"],
            (Language::Chinese, Field::What) => ["操作", "左右键选择"],
            (Language::Chinese, Field::When) => {
                ["时间", "4小时、22:00、明天 8:00、2026-12-02 22:00、文件 /路径（内容为退出码）、进程 123"]
            }
            (Language::Chinese, Field::MaxCost) => ["上限", "任务失败后最多再花多少就停止，如 5 USD；留空则只询问"],
            (Language::Chinese, Field::OnBox) => ["实例定时", "同时用你的命令在实例上设置定时"],
        }
    }

    pub fn lease_choice(self, choice: Choice) -> &'static str {
        match (self, choice) {
            (_, Choice::Do(what)) => self.lease_what(what),
            (Language::English, Choice::TakeAway) => "take the lease away",
            (Language::Chinese, Choice::TakeAway) => "取消租约",
        }
    }

    /// What is wrong with a field.
    pub fn lease_mistake(self, mistake: &Mistake) -> String {
        self.of_lease(match mistake {
            Mistake::NoTime => {
                ["no time such as 4h, 22:00 or 2026-12-02 22:00".into(), "不是时间，例如 4h、22:00".into()]
            }
            Mistake::Past => ["that is over".into(), "该时刻已过".into()],
            Mistake::TooFar => ["more than 400 days from now".into(), "超过 400 天".into()],
            Mistake::NoPath => ["no absolute path of a file".into(), "不是文件的绝对路径".into()],
            Mistake::NoProcess => ["no number of a process from 2 on".into(), "不是大于 1 的进程号".into()],
            Mistake::NoMoney => ["no amount such as 5 USD".into(), "不是金额，例如 5 USD".into()],
            Mistake::OtherCurrency(currency) => {
                [format!("the instance costs {currency}"), format!("该实例以 {currency} 计费")]
            }
            Mistake::StartByJob => ["a start has a time".into(), "启动只能按时间".into()],
            Mistake::CostWithoutJob => ["only for the end of a job".into(), "只用于任务结束".into()],
            Mistake::JobOfMany => ["a job is one instance's".into(), "任务只属于一个实例".into()],
            Mistake::NoOnBox => ["the config has no on_box in [lease]".into(), "配置的 [lease] 中没有 on_box".into()],
            Mistake::OnBoxWithoutTime => {
                ["a timer on the instance has a time, and starts nothing".into(), "实例定时只能按时间停止或释放".into()]
            }
        })
    }
}

impl Telling<'_> {
    /// Why somebody is asked about a lease.
    pub(super) fn of_lease(&self, name: &str, what: What, why: &Why, since: Timestamp, cost: &[Money]) -> Sentence {
        let language = self.look.language;
        let released = what == What::Release;
        let what = language.lease_what(what);
        let moment = self.moment(since);
        let code = |code: &Option<i32>| match (language, code) {
            (Language::English, Some(code)) => format!("ended with code {code}"),
            (Language::English, None) => "ended, nobody knows how".to_owned(),
            (Language::Chinese, Some(code)) => format!("以退出码 {code} 结束"),
            (Language::Chinese, None) => "已结束，结果未知".to_owned(),
        };
        let says = match why {
            Why::Overdue => [
                format!(": its lease ({what}) of {moment} was not carried out in time"),
                format!(" 的租约（{what}，{moment}）未能按时执行"),
            ],
            Why::Stale => {
                [": the file of its job was there before the lease was".to_owned(), " 的任务文件早于租约".to_owned()]
            }
            Why::Job { code: told } => {
                [format!(": its job {}; it is kept", code(told)), format!(" 的任务{}，实例保留", code(told))]
            }
            Why::Hindered(hindrance) => {
                let why = language.hindrance(hindrance, providers::model::Action::Release);
                [
                    format!(": its lease ({what}) cannot be carried out: {why}"),
                    format!(" 的租约（{what}）无法执行：{why}"),
                ]
            }
            Why::LosesData => {
                [format!(": its lease ({what}) would lose data"), format!(" 的租约（{what}）会丢失数据，未执行")]
            }
            Why::NotDone(outcome) => {
                let why = language.outcome(outcome);
                [format!(": its lease ({what}) was not carried out: {why}"), format!(" 的租约（{what}）未完成：{why}")]
            }
            Why::Stopped(instead) => {
                let why = match instead {
                    Instead::NoCheckpoint(hindrance) => {
                        language.hindrance(hindrance, providers::model::Action::Release)
                    }
                    Instead::NotSaved(trouble) => language.save_trouble(trouble),
                    Instead::CostReached { code: told } => match language {
                        Language::English => format!("its job {}, and the highest cost is reached", code(told)),
                        Language::Chinese => format!("任务{}，已达费用上限", code(told)),
                    },
                };
                match released {
                    true => [format!(" was stopped, not released: {why}"), format!(" 已停止，未释放：{why}")],
                    false => [format!(" was stopped: {why}"), format!(" 已停止：{why}")],
                }
            }
            Why::Blind(trouble) => {
                let why = language.link_trouble(trouble);
                [
                    format!(": nobody can tell since {moment} whether its job is done: {why}"),
                    format!(" 自 {moment} 起无法得知任务是否结束：{why}"),
                ]
            }
        };
        let so_far = self.sums(cost).map(|sum| match language {
            Language::English => format!("{sum} since"),
            Language::Chinese => format!("此后已花 {sum}"),
        });
        let joint = if language == Language::English { ", " } else { "，" };
        Sentence::new(name, language.of_lease(says)).and(joint, so_far)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::samples::at;

    #[test]
    fn what_comes_next_fits_a_row() {
        let told = |what, when| {
            let next = Next { what, when };
            [Language::English, Language::Chinese]
                .map(|language| language.lease_next(next, at("10:00:00"), &TimeZone::UTC))
        };
        assert_eq!(told(What::Release, NextWhen::At(at("22:00:00"))), ["22:00 save+rel", "22:00 保存后释放"]);
        assert_eq!(told(What::Release, NextWhen::JobEnd), ["job end: release", "任务结束：保存后释放"]);
        assert_eq!(told(What::Stop, NextWhen::Now), ["now stop", "现在停止"]);
        assert_eq!(told(What::Start, NextWhen::Asks), ["asks: start", "待定：启动"]);
    }
}
