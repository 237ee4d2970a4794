//! Simplified Chinese.

use providers::error::ErrorKind;
use providers::model::{Action, Component, DataKind, Phase, Refusal, Remark, Risk, StorageKind};
use providers::money::Currency;

use super::view;
use super::words::{Phrase, Word};
use crate::app::message::{GroupName, Msg, QuickName, SortName};
use crate::app::rows::MarketName;
use crate::rules::filter::{Expected, FilterErrorKind};
use crate::rules::fleet::{Freshness, Trouble};
use crate::rules::memory::LedgerNotice;
use crate::rules::plan::Hindrance;
use crate::rules::saga::{NotSent, Outcome, Step};
use crate::rules::spend::By;
use crate::ui::format;
use crate::ui::language::Language;
use crate::ui::look::Look;

const SPOKEN: Language = Language::Chinese;

pub fn word(word: Word) -> &'static str {
    match word {
        Word::Demo => "演示",
        Word::ReadOnly => "只读",
        Word::Fleet => "实例",
        Word::Storage => "存储",
        Word::Activity => "操作",
        Word::NoBudgets => "还没有预算",
        Word::NoBudgetsWhy => "按 n 新建：按日、周或月，限制全部或某个项目的花费",
        Word::NoAlerts => "没有需要处理的事",
        Word::NoAlertsWhy => "触发的和已结束的告警都在这里；在配置中添加通知渠道可发送到别处",
        Word::Budgets => "预算",
        Word::Alerts => "告警",
        Word::Notices => "提示",
        Word::InFull => "详情",
        Word::Seen => "知道了",
        Word::Spent => "累计",
        Word::SpentSoFar => "已花费",
        Word::AssignProject => "项目",
        Word::AssignFrom => "起始",
        Word::AssignProjectWhy => "留空：按配置里的规则",
        Word::AssignFromWhy => "now、all（全部）、3d、2026-11-01 [14:30]",
        Word::Save => "保存",
        Word::OtherField => "换一栏",
        Word::Name => "名称",
        Word::Gpu => "GPU",
        Word::Util => "利用率",
        Word::Memory => "显存 G",
        Word::Idle => "闲置",
        Word::NotYet => "新开",
        Word::PerHour => "时",
        Word::Saved => "已存",
        Word::Next => "接下来",
        Word::Account => "账户",
        Word::Project => "项目",
        Word::Region => "地区",
        Word::Up => "运行",
        Word::When => "时间",
        Word::Who => "操作者",
        Word::What => "操作",
        Word::On => "对象",
        Word::State => "状态",
        Word::SavesHead => "节省/时",
        Word::Kind => "类型",
        Word::Size => "容量",
        Word::Age => "时长",
        Word::Note => "说明",
        Word::PerMonth => "月",
        Word::NoGpu => "无 GPU",
        Word::NoProject => "（无项目）",
        Word::StoppedBilled => "停机仍计费",
        Word::StoppedDisk => "已停，盘计费",
        Word::StoppedFree => "已停，免费",
        Word::Spot => "竞价",
        Word::Reserved => "包期",
        Word::ReclaimAnyTime => "随时可能被回收",
        Word::ReadOnlyAccount => "只读",
        Word::Protected => "受保护",
        Word::NotMine => "非本人",
        Word::NeedsYou => "需要处理",
        Word::Ssh => "SSH",
        Word::Processes => "GPU 进程",
        Word::Disks => "磁盘",
        Word::HostKeyChanged => "主机密钥已变",
        Word::AnotherHostKey => "主机密钥已变",
        Word::GpuFault => "GPU 故障",
        Word::LookInto => "查看机器内部",
        Word::OtherSpan => "10 分钟、1 小时、24 小时",
        Word::Answers => "回答",
        Word::Labels => "标签",
        Word::AllGpus => "平均",
        Word::MainMemory => "内存",
        Word::Costs => "费用",
        Word::Nothing => "无",
        Word::Unknown => "未知",
        Word::PartUnknown => "部分费用未知",
        Word::Estimated => "估算",
        Word::Perhaps => "可能计费",
        Word::MayBeCharged => "可能计费",
        Word::PaidAhead => "已预付",
        Word::SavesNothing => "不省钱",
        Word::SavesUnknown => "节省多少未知",
        Word::ListComma => "、",
        Word::Comma => "，",
        Word::Colon => "：",
        Word::Semicolon => "；",
        Word::Answer => "答复",
        Word::Took => "用时",
        Word::PlanSaves => "节省",
        Word::PlanCosts => "将计费",
        Word::PlanGoesOn => "继续计费",
        Word::PlanKeeps => "保留",
        Word::PlanDeletes => "删除",
        Word::LastSaved => "上次保存",
        Word::LoggedIn => "登录者",
        Word::Nobody => "无人",
        Word::SavesPaths => "路径",
        Word::Meanwhile => "期间费用",
        Word::PlanUse => "使用",
        Word::PlanMind => "注意",
        Word::PlanAge => "已存在",
        Word::PlanEnds => "到期",
        Word::PlanPhase => "当前状态",
        Word::PlanAsOf => "数据时间",
        Word::OnlyRemembered => "仅为上次记录：平台尚未答复",
        Word::Help => "帮助",
        Word::InLists => "实例和存储",
        Word::InAPlan => "在确认窗口中",
        Word::InThePopup => "弹出的告警",
        Word::Everywhere => "通用",
        Word::FilterHelp => "筛选：须满足每个条件；- 表示相反，| 表示或",
        Word::FilterWords => "词语",
        Word::FilterKeys => "字段",
        Word::FilterAmounts => "数量",
        Word::FilterExamples => "例子",
        Word::Signs => "符号",
        Word::Close => "关闭",
        Word::Cancel => "取消",
        Word::Back => "返回",
        Word::KeepFilter => "保留",
        Word::LastAnswer => "上次答复",
        Word::LastComplete => "上次完整答复",
        Word::Never => "从未",
        Word::LeaveNow => "立即退出",
        Word::AnyOther => "其他键",
        Word::Stay => "不退出",
        Word::PlanChanged => "询问期间情况有变。以下是现状，请重新决定。",
        Word::PlanNothingLeft => "询问期间情况有变：已无可执行的操作。",
        Word::NotTheSame => "不一致",
        Word::Palette => "要做什么？",
        Word::Choose => "选择",
        Word::Columns => "列",
        Word::ColumnsWhy => "状态、名称、GPU、利用率、闲置、费用、已存和“接下来”始终显示。",
        Word::ShowOrHide => "显示、隐藏",
        Word::LeavesEarlierLater => "窄屏时先隐、后隐",
        Word::ColumnUp => "运行时长",
        Word::ColumnRegion => "地区",
        Word::ColumnProject => "项目（有项目时）",
        Word::ColumnMemory => "显存",
        Word::ColumnTrend => "利用率曲线，在数字旁",
        Word::ColumnMonth => "本月花费",
        Word::ColumnSpent => "租用以来的花费",
        Word::ColumnAccount => "账户（不按账户分组时）",
        Word::SaidLast => "刚才的消息",
        Word::Welcome => "欢迎使用 rentop。",
        Word::WhatItIs => "一屏看清租用的所有 GPU：哪些在跑、花多少钱，一个键安全结束。",
        Word::FoundKeys => "环境变量里有以下平台的密钥，按数字键添加账户：",
        Word::NoAccounts => "还没有账户。",
        Word::SetAKey => "把平台的 API 密钥放进对应的环境变量，再重新启动：",
        Word::OrDemo => "也可以先看看演示，无需任何配置：",
        Word::GoOn => "不再添加，进入列表",
        Word::ShowsAll => "显示全部",
        Word::NothingRented => "目前没有租用实例。在任何地方新开的实例都会自动出现在这里。",
        Word::Loading => "正在查询各账户：",
        Word::NobodyAnswered => "所有账户都没有答复：",
        Word::NotAskedYet => "尚未查询",
        Word::NothingIdleWhy => "这里列出已停止的实例，以及没有运行中实例使用的卷、快照和地址。",
        Word::NothingDone => "还没有停止、启动或释放过实例。",
        Word::NothingDoneWhy => "每个操作都会记在这里：谁做的、平台怎么答复、结果是否已证实。",
        Word::Waste => "浪费",
        Word::OfStopped => "已停实例的存储",
        Word::PerhapsUsed => "可能在用",
        Word::WorkingUnlisted => "在用，未列出",
        Word::NothingIdle => "未发现闲置计费的资源。",
        Word::AttachedToNothing => "未挂载",
        Word::UsedSomewhere => "在用，平台不告知使用者",
        Word::UseUnknown => "平台不告知是否在用",
        Word::MayBeUsedByOthers => "可能有人在用",
        Word::ComputeBilled => "停机仍收计算费",
        Word::CostsMoreWhileStopped => "停机时磁盘更贵",
        Word::AddressBilled => "停机时公网地址仍计费",
        Word::Spend => "费用",
        Word::Amount => "金额",
        Word::Compute => "算力",
        Word::Disk => "磁盘",
        Word::StorageHead => "存储",
        Word::OtherHead => "其他",
        Word::WasteHead => "浪费",
        Word::GpuHours => "GPU·时",
        Word::Share => "占比",
        Word::Instance => "实例",
        Word::Provider => "平台",
        Word::Component => "费用项",
        Word::Day => "日期",
        Word::Total => "合计",
        Word::RowsRounded => "（各行四舍五入）",
        Word::NotInConfig => "（不在配置中）",
        Word::Billed => "平台账单",
        Word::Observed => "实测",
        Word::Inferred => "推断",
        Word::Assumed => "推定",
        Word::BilledByProvider => "平台账单金额",
        Word::CountedByUs => "rentop 自行计量",
        Word::ReadingBooks => "正在读取账目",
        Word::NothingSpent => "这段时间没有花费。",
        Word::SpendWhy => "花费会自动出现在这里，并注明依据：平台账单、实测、推断或推定。",
        Word::BooksEmpty => "账目还是空的：从第一次查询起开始记账。",
        Word::StillAdding => "仍在汇总",
        Word::AnEstimate => "没有平台账单，均为自行估算",
        Word::Today => "今天",
        Word::Times => "时间格式",
        Word::Dearest => "花费最多",
        Word::Entries => "明细",
        Word::StillRunning => "仍在计费",
        Word::OurFigure => "自计金额",
        Word::ReplacedWhy => "（…）为自计金额，该时段已有平台账单，不计入合计",
        Word::NoEntry => "这段时间没有它的明细。",
        Word::WhichDays => "选择时间范围",
        Word::TodayOnly => "今天",
        Word::ThisWeek => "本周",
        Word::ThisMonth => "本月",
        Word::MonthBefore => "上月",
        Word::NinetyDays => "最近 90 天",
        Word::ThisYear => "今年",
        Word::FromTo => "起..止",
        Word::NoDate => "如 2026-11-01..2026-11-15、2026-11-15 或 2026-11",
        Word::DaysReversed => "结束日期早于开始日期",
        Word::DaysAhead => "这些日期还没到",
        Word::DaysTooMany => "最长十年",
    }
}

/// What an action is about, counted.
fn things(action: Action, count: usize) -> String {
    match action {
        Action::Delete => format!("{count} 个存储项"),
        _ => format!("{count} 个实例"),
    }
}

pub fn phrase(phrase: &Phrase) -> String {
    match *phrase {
        Phrase::TooSmall { width, height, quit, under_way: None } => {
            format!("窗口太小：至少 {width}×{height}，{quit} 退出")
        }
        Phrase::TooSmall { quit, under_way: Some(count), .. } => {
            format!("有 {count} 个操作正在进行，{quit} 立即退出")
        }
        Phrase::Wasting { rate } => format!("浪费 {rate}"),
        Phrase::Today { money } => format!("今日 {money}"),
        Phrase::InMonth { month, money } => format!("{month}月 {money}"),
        Phrase::Unwatched { count, rate, age } => {
            let when = age.map_or_else(|| "最后一次查看时".to_owned(), |age| format!("{age}前"));
            format!("{when}有 {count} 项在计费，{rate}；已不再监看，此后也不计入")
        }
        Phrase::SpentSince { money, at } => format!("{money}，自 {at} 起"),
        Phrase::OfItAssumed { money } => format!("其中推定 {money}"),
        Phrase::PerhapsMore { money } => format!("可能还有 {money}"),
        Phrase::AssignTitle { name, count: 1 } => format!("{name} 所属项目"),
        Phrase::AssignTitle { count, .. } => format!("{count} 项资源所属项目"),
        Phrase::Prepaid { rate } => format!("预付 {rate}"),
        Phrase::Lasts { account, time, at_most: false } => format!("{account} 余额可用 {time}"),
        Phrase::Lasts { account, time, at_most: true } => format!("{account} 余额至多 {time}"),
        Phrase::LastsStill { time, at_most: false } => format!("可用 {time}"),
        Phrase::LastsStill { time, at_most: true } => format!("最多可用 {time}"),
        Phrase::StorageCosts { rate } => format!("存储 {rate}"),
        Phrase::UpTo { rate } => format!(" 至 {rate}"),
        Phrase::InTrouble { count } => format!("{count} 个账户异常"),
        Phrase::MoreInTrouble { count } => format!("另有 {count} 个账户异常"),
        Phrase::TroubleSince { age } => format!("已 {age}"),
        Phrase::LooksOn { host, pid } => format!("旁观：由 {host}（{pid}）采集"),
        Phrase::Notices { count } => format!("{count} 条提示"),
        Phrase::ClockOff { account, off, behind } => {
            let way = if behind { "慢" } else { "快" };
            format!("本机时钟比平台（{account}）{way}约 {off}：请校准。")
        }
        Phrase::NotLookedInto { account, machines } => format!(
            "{account}：有 {machines} 台机器未通过 ssh 查看；加 `--ssh` 仅允许这一次，在该账号的配置中写 `ssh = \"always\"` 则一直允许"
        ),
        Phrase::Confirmed { action } => done(action).to_owned(),
        Phrase::GoneSince { age } => format!("{age}前消失"),
        Phrase::MissingSince { age } => format!("已消失 {age}，待查"),
        Phrase::Ends { at } if at.ends_with('日') => format!("{at}到期"),
        Phrase::Ends { at } => format!("{at} 到期"),
        Phrase::ReservedTo { at } => format!("包期至 {at}"),
        Phrase::Old { age } => format!("{age}前"),
        Phrase::Ago { age } => format!("{age}前"),
        Phrase::AskingFor { age } => format!("查询中，已 {age}"),
        Phrase::Left { money } => format!("余额 {money}"),
        Phrase::Voucher { money } => format!("代金券 {money}"),
        Phrase::Step { operation, now, undo } => {
            let since = |moment| format::since(moment, now, SPOKEN);
            match &operation.step {
                Step::Countdown { until } => {
                    let undo = if undo.is_empty() { String::new() } else { format!("，{undo} 撤销") };
                    format!("{} 秒后{}{undo}", format::seconds_left(*until, now), action(operation.action))
                }
                Step::Saving { stage, next_try, .. } => {
                    let progress = operation.saving.as_ref().map(|saving| saving.progress).unwrap_or_default();
                    Language::Chinese.saving_step(*stage, &progress, *next_try, now)
                }
                Step::Checking { next_look: None, .. } => "先核对".to_owned(),
                Step::Checking { next_look: Some(_), .. } => "稍后再核对".to_owned(),
                Step::Sending { since: from } => format!("{}已发出 {}", action(operation.action), since(*from)),
                Step::Waiting { until, .. } => format!("平台要求等 {} 秒", format::seconds_left(*until, now)),
                Step::Verifying { .. } => "被拒，核对中".to_owned(),
                Step::Confirming { since: from, doubt: Some(_), .. } => format!("结果未知 {}", since(*from)),
                Step::Confirming { since: from, doubt: None, .. } => {
                    format!("{}中 {}", action(operation.action), since(*from))
                }
                Step::Overdue { since: overdue, .. } => match operation.action {
                    Action::Start | Action::Restart => {
                        format!("仍未运行 {}", since(operation.sent_at.unwrap_or(*overdue)))
                    }
                    Action::Stop | Action::Release | Action::Delete => {
                        format!("仍在计费！{}", since(operation.sent_at.unwrap_or(*overdue)))
                    }
                    // It is never sent.
                    Action::Checkpoint => String::new(),
                },
                Step::Ended { outcome, .. } => self::outcome(outcome),
            }
        }
        Phrase::Range { from, to } => format!("{from} 至 {to}"),
        Phrase::UpFor { time } => format!("已运行 {time}"),
        Phrase::Repricing { rate, asked, ends } => {
            let ends = ends.map(|at| format!("，否则 {at} 到期")).unwrap_or_default();
            format!("机主要把 {rate} 涨到 {asked}：请在平台上接受{ends}")
        }
        Phrase::Saves { rate } => format!("节省 {rate}"),
        Phrase::SavedThisMonth { money } => format!("本月因停止和释放节省：{money}"),
        Phrase::WillCost { rate } => format!("将计费 {rate}"),
        Phrase::GoesOn { rate } => format!("{rate} 继续计费"),
        Phrase::LeftBehind { name, rate: Some(rate) } => format!("{name} 保留，计费 {rate}"),
        Phrase::LeftBehind { name, rate: None } => format!("{name} 保留，可能计费"),
        Phrase::Deletes { places } => after("删除", places),
        Phrase::AllIn { name, size: Some(size) } => format!("{name}（{size}）中的全部数据"),
        Phrase::AllIn { name, size: None } => format!("{name} 中的全部数据"),
        Phrase::Keeps { places } => after("保留", places),
        Phrase::Rows { count } => format!("{count} 个实例"),
        Phrase::StorageItems { count, rate: Some(rate) } => format!("{count} 个存储项，{rate}"),
        Phrase::StorageItems { count, rate: None } => format!("{count} 个存储项"),
        Phrase::ProviderBurn { rate } => format!("平台自报 {rate}"),
        Phrase::BalanceUnknown { error } => format!("余额未知：{error}"),
        Phrase::Problems { count } => format!("{count} 处无法读取"),
        Phrase::ProblemsOf { account } => format!("{account} 的问题"),
        Phrase::NextTryIn { time } => format!("{time}后重试"),
        Phrase::PlanFor { action, name } => format!("{} {name}", self::action(action)),
        Phrase::PlanForMany { action, count } => format!("{} {}", self::action(action), things(action, count)),
        Phrase::ADay { money } => format!("每天 {money}"),
        Phrase::AMonth { money } => format!("每月 {money}"),
        Phrase::InAll { money } => format!("折合 {money}"),
        Phrase::BooksSince { date } => format!("账目从{date}开始。"),
        Phrase::CountedSince { account: None, date } => format!("自{date}起计"),
        Phrase::CountedSince { account: Some(account), date } => format!("{account} 自{date}起计"),
        Phrase::MoreMayBeCharged { money } => format!("另可能计费，至多 {money}"),
        Phrase::PrepaidAmount { money, unused: None } => format!("另有预付 {money}"),
        Phrase::PrepaidAmount { money, unused: Some(unused) } => format!("另有预付 {money}，其中闲置 {unused}"),
        Phrase::Drift { billed, ours } => format!("平台账单 {billed}，同期自计 {ours}"),
        Phrase::Unexplained { account, money, less: false } => format!("{account}：{money} 去向不明"),
        Phrase::Unexplained { account, money, less: true } => format!("{account}：比自计少扣 {money}"),
        Phrase::PaidIn { account, money } => format!("{account}：充值 {money}"),
        Phrase::VoucherBeside { account, money } => format!("{account}：代金券 {money}"),
        Phrase::Peak { money } => format!("最高 {money}"),
        Phrase::DaysFrom { date, count } => format!("{date}起 {count} 天"),
        Phrase::GpuHours { hours } => format!("{hours} GPU 小时"),
        Phrase::AttachedToStopped { names } => format!("挂载于已停的 {names}"),
        Phrase::AttachedToUnlisted { names } => format!("挂载于 {names}，但列表中没有"),
        Phrase::DataOf { action, count } => format!("{}的数据，见下", things(action, count)),
        Phrase::MoreLines { count } => format!("  另有 {count} 项"),
        Phrase::LeftOutCount { count } => format!("不包括 {count} 项"),
        Phrase::Confirm { action: verb, count, undo } => {
            let what = if count == 1 { String::new() } else { format!(" {count} 个") };
            let undo = if undo.is_empty() { String::new() } else { format!("，{undo} 可撤销") };
            format!("{}{what}：5 秒后开始{undo}", action(verb))
        }
        Phrase::AskName { action: verb, count: 1 } => format!("{}：需先输入名称", action(verb)),
        Phrase::AskName { action: verb, count } => format!("{} {count} 个：需先输入确认文字", action(verb)),
        Phrase::EnterDoes { action: verb } => format!("回车即{}", action(verb)),
        Phrase::LeaveTitle { count } => format!("有 {count} 个操作正在进行"),
        Phrase::UnsentAtLeave { count } => format!("{count} 个操作尚未发出，退出后不再发出。"),
        Phrase::SentAtLeave { count } => format!("{count} 个操作已发出，下次启动时核对结果。"),
        Phrase::Farewell { count, rate, by_then, at, alone } => {
            let watched =
                if alone { "除非另有 rentop（如 rentop watch）在运行，否则无人看管。" } else { "" };
            format!("{count} 个实例仍在计费，合计 {rate}，到{at}为 {by_then}。{watched}")
        }
        Phrase::Marked { count } => format!("已标记 {count}"),
        Phrase::MarkedHidden { count } => format!("其中 {count} 个被隐藏"),
        Phrase::FilterError { kind, part } => filter_error(kind, part),
        Phrase::NothingFound { text } => format!("没有叫“{text}”的"),
        Phrase::Hidden { count } => format!("隐藏 {count}"),
        Phrase::FromVariable { variable } => format!("来自 {variable}"),
        Phrase::ConfigAt { path } => format!("账户写入 {path}，密钥本身不写入。"),
        Phrase::OrConfigAt { path } => format!("或者在 {path} 中写入账户"),
        Phrase::NothingMatches { filter, hidden } => format!("没有实例符合“{filter}”，隐藏 {hidden} 个。"),
        Phrase::AccountsAsked { count } => format!("共查询 {count} 个账户。"),
    }
}

fn done(action: Action) -> &'static str {
    match action {
        Action::Stop => "已停止",
        Action::Start => "已启动",
        Action::Restart => "已重启",
        Action::Release => "已释放",
        Action::Delete => "已删除",
        Action::Checkpoint => "已保存",
    }
}

pub fn message(message: &Msg, look: &Look, first: Currency) -> String {
    let fixed = match message {
        Msg::HintStop => "停止",
        Msg::HintStart => "启动",
        Msg::HintRelease => "释放",
        Msg::HintSaveAndEnd => "保存并释放",
        Msg::HintCheckpoint => "保存",
        Msg::HintDelete => "删除",
        Msg::HintTakeBack => "撤销",
        Msg::HintMark => "标记",
        Msg::HintDetails => "更多",
        Msg::HintFilter => "筛选",
        Msg::HintSort => "排序",
        Msg::HintGroup => "分组",
        Msg::HintQuick => "快筛",
        Msg::HintPalette => "查找",
        Msg::HintHelp => "帮助",
        Msg::HintQuit => "退出",
        Msg::HintConfirm => "确认",
        Msg::HintCancel => "取消",
        Msg::HintEarlier => "往前",
        Msg::HintLater => "往后",
        Msg::HintRange => "范围",
        Msg::HintBehind => "构成",
        Msg::HintNewBudget => "新建",
        Msg::HintChange => "修改",
        Msg::HintGoThere => "转到",
        Msg::HintSeen => "已阅",
        Msg::HintSeenAll => "全部已阅",
        Msg::HintSnooze => "稍后提醒",
        Msg::HintAllIdle => "全部空闲",
        Msg::HintPage => "网页",
        Msg::HintLeave => "稍后处理",
        Msg::HelpShowBudgets => "预算：已花多少，将花多少",
        Msg::HelpShowAlerts => "告警：需要处理的与已结束的",
        Msg::HelpNewBudget => "新建预算",
        Msg::HelpChangeBudget => "修改预算",
        Msg::HelpGoThere => "转到相关的行",
        Msg::HelpAlertSeen => "光标处的告警标为已阅，不再提醒",
        Msg::HelpSeenAll => "所有待处理的告警标为已阅",
        Msg::HelpAlertInFull => "告警详情",
        Msg::HelpSnooze => "一小时后或明天再提醒",
        Msg::HelpAllIdle => "列出全部空闲实例：停止，或保存后释放",
        Msg::HelpLeaveAlerts => "留在告警视图中",
        Msg::HelpEarlier => "往前一月（或一周、一天、一段）",
        Msg::HelpLater => "往后一月（或一周、一天、一段）",
        Msg::HelpRange => "选择时间范围：今天、本周、本月、90 天、今年，或起止日期",
        Msg::HelpSpendGroup => "切换分组：项目、平台、账户、实例、费用项、日期",
        Msg::HelpBehind => "金额的构成：各费用项、花费最多的实例、逐条明细",
        Msg::HelpTimes => "时间显示为时刻，或距今多久",
        Msg::HelpShowSpend => "花了多少钱：按项目、平台、账户、实例、费用项或日期",
        Msg::HelpStop => "停止运行中的，启动已停止的；先显示能省多少",
        Msg::HelpRelease => "彻底结束：释放实例、删除存储；先显示会丢失什么",
        Msg::HelpTakeBack => "撤销尚未发出的操作",
        Msg::HelpMark => "标记此行：之后的操作作用于所有已标记的行",
        Msg::HelpDetails => "在窗口中显示全部信息；折叠分组",
        Msg::HelpFilter => "筛选：关键词，或 竞价、>1/h、项目:art、up>2d、-名称:test 等条件",
        Msg::HelpSort => "切换排序：需要处理、费用、利用率、闲置、时长、名称",
        Msg::HelpGroup => "切换分组：账户、平台、项目、计费方式、不分组",
        Msg::HelpQuick => "快速筛选：闲置、竞价、停机或全部",
        Msg::HelpSaveAndEnd => "先保存需要的数据，校验无误后释放；会先显示计划",
        Msg::HelpCheckpoint => "保存需要的数据，实例继续运行",
        Msg::HelpLease => "租约：到时自动执行的操作",
        Msg::HelpPlanSave => "先保存并校验，再执行",
        Msg::HelpColumns => "选择要显示的列，选择会保存",
        Msg::HelpPane => "显示或隐藏列表旁或下方的详情",
        Msg::HelpLookInto => "是否用你自己的 ssh 查看机器内部；处理已变的主机密钥",
        Msg::HelpChart => "利用率曲线的跨度：10 分钟、1 小时、24 小时",
        Msg::HelpSsh => "用 SSH 登录它，退出后回到这里",
        Msg::HelpCopySsh => "复制它的 SSH 命令",
        Msg::HelpProtect => "保护，批量操作不会动它；再按取消",
        Msg::HelpMine => "标为本人或非本人；批量操作不含非本人的",
        Msg::HelpProject => "设定花费归哪个项目，从现在或某个时间起",
        Msg::HelpSeen => "已知晓所提示的内容",
        Msg::Noted => "已记下",
        Msg::NothingToNote => "没有需要确认的提示",
        Msg::HelpPage => "在浏览器打开它在平台上的页面",
        Msg::HelpFold => "折叠分组",
        Msg::HelpUnfold => "展开分组",
        Msg::HelpEditConfig => "用编辑器打开配置；之后会检查，下次启动生效",
        Msg::HelpProblem => "错误详情：账户的、操作的，或刚才的消息",
        Msg::HelpDown => "向下",
        Msg::HelpUp => "向上",
        Msg::HelpPageDown => "下翻一页",
        Msg::HelpPageUp => "上翻一页",
        Msg::HelpFirst => "到第一行",
        Msg::HelpLast => "到最后一行",
        Msg::HelpShowFleet => "实例",
        Msg::HelpShowStorage => "不干活却在花钱的：停机的盘、卷、快照",
        Msg::HelpShowActivity => "操作记录",
        Msg::HelpPalette => "输入几个字找到任何操作或实例",
        Msg::HelpNextView => "下一个视图",
        Msg::HelpRefresh => "在平台限额内重新查询",
        Msg::HelpRepaint => "重绘屏幕",
        Msg::HelpSuspend => "回到命令行，fg 返回",
        Msg::HelpBack => "撤销倒计时，否则依次清除标记、筛选、退出视图",
        Msg::HelpHelp => "本帮助",
        Msg::HelpQuit => "退出",
        Msg::HelpConfirm => "确认（不丢数据时）",
        Msg::HelpPlanAgain => "再按一次：会丢数据时打开名称输入框",
        Msg::HelpCancel => "取消",
        Msg::WorksElsewhere { tab } => return format!("此键用于“{}”视图", word(view(*tab))),
        Msg::NothingSelected => "没有选中任何一行",
        Msg::RowJustChanged => "此行刚刚变了，请再按一次",
        Msg::RowGone => "该行已不在，未执行",
        Msg::NothingToTakeBack => "没有可撤销的操作",
        Msg::MixedMarks => "标记中既有运行的也有停止的：请只标记一类",
        Msg::MixedKinds => "标记中既有实例也有存储：请只标记一类",
        Msg::PasteIgnored => "粘贴的文字不会当作按键",
        Msg::Refreshing => "正在重新查询各平台",
        Msg::NotListed { name } => return format!("{name} 不在列表中：在用或免费"),
        Msg::NoPage => "平台没有它的页面",
        Msg::NoProblem => "没有异常",
        Msg::NoSsh => "目前没有它的 SSH 地址",
        Msg::NoSshInDemo => "模拟的实例没有 SSH",
        Msg::SshCopied { line } => return format!("已复制（若终端支持）：{line}"),
        Msg::NothingToLookInto => "没有可用 ssh 直接连接的机器",
        Msg::LooksInto { account, consent } => return SPOKEN.looks_into(account, *consent),
        Msg::HostKeyAccepted { name } => return format!("{name}：已接受主机现在的密钥"),
        Msg::SeveralTakenBack { count } => return format!("已撤销 {count} 个，没有发出任何请求"),
        Msg::Vetoed { name } => return format!("{name}：守护规则不会动它，直到该情况结束后再次出现"),
        Msg::TakenBack { name } => return format!("{name}：已撤销，没有发出任何请求"),
        Msg::LeftOut { name, action, hindrance } => {
            return format!("{name}：{}", self::hindrance(hindrance, *action));
        }
        Msg::SortedBy { order, reversed } => {
            let by = match order {
                SortName::Attention => "需要处理、浪费、费用",
                SortName::Cost => "费用从高到低",
                SortName::Name => "名称",
                SortName::Age => "时间最久的在前",
                SortName::Use => "利用率从低到高",
                SortName::Idle => "闲置时间从长到短",
                SortName::Account => "账户",
                SortName::Project => "项目",
                SortName::Region => "地区",
                SortName::Size => "容量从大到小",
            };
            return format!("排序：{by}{}", if *reversed { "（反向）" } else { "" });
        }
        Msg::GroupedBy(group) => match group {
            GroupName::None => "不分组",
            GroupName::Account => "按账户分组",
            GroupName::Provider => "按平台分组",
            GroupName::Project => "按项目分组",
            GroupName::Market => "按计费方式分组",
        },
        Msg::SpendBy(by) => match by {
            By::Project => "按项目",
            By::Provider => "按平台",
            By::Account => "按账户",
            By::Instance => "按实例",
            By::Component => "按费用项",
            By::Day => "按日期",
        },
        Msg::AlertsSeen { count: 1 } => "已阅，不再提醒",
        Msg::AlertsSeen { count } => return format!("{count} 条已阅，不再提醒"),
        Msg::Snoozed { clock, .. } => return format!("若仍如此，{clock} 再提醒"),
        Msg::AlertAnswered => "无需再处理：已阅或已结束",
        Msg::Lease { name, what, note } => return super::Language::Chinese.lease_news(name, *what, note),
        Msg::NoAlertHere => "此处没有告警",
        Msg::NotOfThisAlert => "此告警不针对某个实例或存储项；按 enter 转到相关处",
        Msg::NothingIdleNow => "未发现空闲实例",
        Msg::BudgetSaved { name } => return format!("预算 {name} 已写入配置并生效"),
        Msg::BudgetInDemo { name } => return format!("预算 {name} 已生效，演示结束即失效"),
        Msg::BudgetSavedElsewhere { name } => {
            return format!("预算 {name} 已写入配置；采集进程下次启动后生效");
        }
        Msg::BudgetOnlyInConfig { name } => return format!("预算 {name} 有多个条件，请在配置中修改"),
        Msg::NoFuture => "今天之后还没有花费",
        Msg::TimesAgo(true) => "时间显示为距今多久",
        Msg::TimesAgo(false) => "时间显示为时刻",
        Msg::QuickFilter(name) => return format!("显示：{}", quick(*name)),
        Msg::ProtectedNow { name, on: true } => return format!("{name} 已受保护：批量操作不会动它"),
        Msg::ProtectedNow { name, on: false } => return format!("{name} 不再受保护"),
        Msg::Assigned { count, project } => {
            let to = project.as_ref().map_or("按规则归属".to_owned(), |name| format!("归入 {name}"));
            return format!("{count} 项的花费{to}");
        }
        Msg::MineNow { name, on: true } => return format!("{name} 标为本人"),
        Msg::MineNow { name, on: false } => return format!("{name} 标为非本人：批量操作不会动它"),
        Msg::OpeningPage { url } => return format!("打开 {url}"),
        Msg::ConfigEdited => "配置无误，下次启动生效",
        Msg::NoConfigInDemo => "演示没有配置",
        Msg::EditFailed { error } => return error.clone(),
        Msg::SshFailed { error } => return format!("ssh：{error}"),
        Msg::PageNotOpened { error, url } => return format!("无法打开浏览器（{error}）：{url}"),
        Msg::OnlyLooking { host, pid } => return format!("未执行：由 {host}（{pid}）采集和操作"),
        Msg::NotAdded { error } => return format!("未添加：{error}"),
        Msg::Begun { action, count, saves, goes_on } => {
            let (verb, many) =
                (self::action(*action), if *count == 1 { String::new() } else { format!(" {count} 个") });
            let rates = |rates| format::rates(rates, first, look);
            let saves = rates(saves).map(|rate| format!("，节省 {rate}")).unwrap_or_default();
            let goes_on = match (action, rates(goes_on)) {
                (Action::Start, Some(rate)) => format!("，将花费 {rate}"),
                (_, Some(rate)) => format!("，{rate} 继续计费"),
                (_, None) => String::new(),
            };
            return format!("已开始{verb}{many}{saves}{goes_on}");
        }
        Msg::Ended { name, action, outcome: Outcome::Done { despite: None } } => {
            return format!("{name}：{}", done(*action));
        }
        Msg::Ended { name, action, outcome: Outcome::Done { despite: Some(error) } } => {
            return format!("{name}：{}，尽管平台答复：{error}", done(*action));
        }
        Msg::Ended { name, action, outcome } => {
            return format!("{name}：{}：{}", self::action(*action), self::outcome(outcome));
        }
    };
    fixed.to_owned()
}

pub fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Provisioning => "启动中",
        Phase::Running => "运行中",
        Phase::Stopping => "停止中",
        Phase::Stopped => "已停止",
        Phase::Reclaimed => "被回收",
        Phase::Unreachable => "失联",
        Phase::Releasing => "释放中",
        Phase::Gone => "已消失",
        Phase::Failed => "故障",
        Phase::Unknown => "未知",
    }
}

pub fn phase_short(phase: Phase) -> &'static str {
    match phase {
        Phase::Provisioning => "启动",
        Phase::Running => "运行",
        Phase::Stopping => "停止",
        Phase::Stopped => "已停",
        Phase::Reclaimed => "回收",
        Phase::Unreachable => "失联",
        Phase::Releasing => "释放",
        Phase::Gone => "消失",
        Phase::Failed => "故障",
        Phase::Unknown => "未知",
    }
}

pub fn action(action: Action) -> &'static str {
    match action {
        Action::Stop => "停止",
        Action::Start => "启动",
        Action::Restart => "重启",
        Action::Release => "释放",
        Action::Delete => "删除",
        Action::Checkpoint => "保存",
    }
}

pub fn freshness(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Never => "尚无答复",
        Freshness::Fresh => "最新",
        Freshness::Stale => "过期",
        Freshness::Partial => "不完整",
        Freshness::Failed => "失败",
    }
}

pub fn market(market: MarketName) -> &'static str {
    match market {
        MarketName::OnDemand => "按量",
        MarketName::Spot => "竞价",
        MarketName::Reserved => "包期",
    }
}

pub fn quick(quick: QuickName) -> &'static str {
    match quick {
        QuickName::All => "全部",
        QuickName::Idle => "闲置",
        QuickName::Off => "停机",
        QuickName::Spot => "竞价",
    }
}

pub fn component(component: Component) -> &'static str {
    match component {
        Component::Compute => "算力",
        Component::Disk => "磁盘",
        Component::Storage => "存储",
        Component::Ip => "公网 IP",
        Component::Traffic => "流量",
        Component::Other => "其他",
    }
}

pub fn data_kind(kind: DataKind) -> &'static str {
    match kind {
        DataKind::ContainerDisk => "容器盘",
        DataKind::VolumeDisk => "数据盘",
        DataKind::LocalDisk => "本地盘",
        DataKind::NetworkVolume => "网络卷",
        DataKind::FileSystem => "文件系统",
        DataKind::LocalVolume => "本地卷",
        DataKind::Contents => "其中全部内容",
    }
}

pub fn storage_kind(kind: StorageKind) -> &'static str {
    match kind {
        StorageKind::Volume => "数据盘",
        StorageKind::NetworkVolume => "网络卷",
        StorageKind::FileSystem => "文件系统",
        StorageKind::Snapshot => "快照",
        StorageKind::Image => "镜像",
        StorageKind::Address => "地址",
    }
}

fn filter_error(kind: FilterErrorKind, part: &str) -> String {
    match kind {
        FilterErrorKind::Unfinished(expected) => match expected {
            Expected::Quote => "还缺一个引号".to_owned(),
            Expected::Term => format!("{part} 之后还缺内容"),
            Expected::Value(key) => format!("例如 {}", key.example()),
            Expected::Amount(quantity) => format!("例如 {}", quantity.example()),
        },
        FilterErrorKind::UnknownKey { nearest: Some(nearest) } => format!("是否指 {nearest}:？"),
        FilterErrorKind::UnknownKey { nearest: None } => format!("没有字段 {part}；按文字查找请加引号"),
        FilterErrorKind::UnknownValue { nearest: Some(nearest), .. } => format!("是否指 {nearest}？"),
        FilterErrorKind::UnknownValue { key, nearest: None } => format!("未知；例如 {}", key.example()),
        FilterErrorKind::NotAnAmount(quantity) => format!("不是数量；例如 {}", quantity.example()),
        FilterErrorKind::NotCompared(key) => format!("{} 是文字：{}", key.names()[1], key.example()),
    }
}

pub fn risk(risk: Risk) -> &'static str {
    match risk {
        Risk::ScratchErased => "容器盘（挂载点以外的全部内容）会被清空",
        Risk::GpuMayBeTaken => "停机期间 GPU 可能被他人占用",
        Risk::StartMayQueue => "启动可能要排队等 GPU，等到后自动开始计费",
        Risk::StartMayLackGpu => "启动后可能没有 GPU",
        Risk::AddressChanges => "SSH 地址会变",
        Risk::ContractEnds => "租期到后无法再启动",
        Risk::DiskMayCostMore => "停机时磁盘费用可能更高",
        Risk::UseUnknown => "可能有人在用：平台不告知挂载情况",
    }
}

pub fn remark(remark: Remark) -> &'static str {
    match remark {
        Remark::Outbid => "出价低于当前最低价",
        Remark::StartQueued => "启动请求在平台排队等 GPU，等到即开始计费",
        Remark::NoGpus => "无卡模式运行",
        Remark::Locked => "已在平台锁定，不能停止",
        Remark::BootFailed => "启动失败，不会继续",
        Remark::NothingSurvivesStop => "停止后数据全部丢失",
        Remark::StartTimeUnknown => "平台不提供开始时间",
        Remark::NoApi => "没有平台接口，只能靠配置和 ssh 得知",
    }
}

pub fn remark_short(remark: Remark) -> &'static str {
    match remark {
        Remark::Outbid => "出价过低",
        Remark::StartQueued => "启动排队中",
        Remark::NoGpus => "无卡模式",
        Remark::Locked => "已锁定",
        Remark::BootFailed => "启动失败",
        Remark::NothingSurvivesStop => "停止丢数据",
        Remark::StartTimeUnknown => "开始时间未知",
        Remark::NoApi => "仅凭 ssh",
    }
}

/// A word before another: with a blank between them only where the other begins with Latin text.
fn after(word: &str, other: &str) -> String {
    let gap = if other.starts_with(|c: char| c.is_ascii()) { " " } else { "" };
    format!("{word}{gap}{other}")
}

pub fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotOffered => "平台不提供此操作".to_owned(),
        Refusal::NoApi => "没有可用的平台接口".to_owned(),
        Refusal::WrongPhase => "当前状态下不能进行".to_owned(),
        Refusal::Locked => "已在平台锁定".to_owned(),
        Refusal::InUse => "仍被其他资源使用".to_owned(),
        Refusal::ManagedElsewhere => "属于统一管理的组".to_owned(),
        Refusal::Told(words) => words.clone(),
    }
}

pub fn hindrance(hindrance: &Hindrance, action: Action) -> String {
    let fixed = match hindrance {
        Hindrance::Provider(Refusal::NotOffered) => return not_offered(action),
        Hindrance::Provider(Refusal::NoApi) if action == Action::Stop => "配置中没有为它写 stop 命令",
        Hindrance::Provider(Refusal::NoApi) => "请到租用它的平台操作：这里只能通过 ssh 看到它",
        Hindrance::Provider(refusal) => return self::refusal(refusal),
        Hindrance::ReadOnly => "rentop 以 --read-only 启动",
        Hindrance::ReadOnlyAccount => "配置中此账户为 read_only",
        Hindrance::NotThere => "不在平台最近的列表中",
        Hindrance::UnderWay => "已有操作正在进行",
        Hindrance::Protected => "受保护：批量操作不会动它",
        Hindrance::NotMine => "非本人：批量操作不会动它",
        Hindrance::AccountInTrouble => "账户异常，按 e 查看原因",
        Hindrance::NoRecipe => "配置中没有适用的 [[checkpoint]]；在实例视图按 c 填写路径",
        Hindrance::CannotBeRead => "未在运行，无法复制",
        Hindrance::NoAddress => "没有可用的 ssh 地址",
    };
    fixed.to_owned()
}

/// Why a key does nothing, and which one does what is meant.
fn not_offered(verb: Action) -> String {
    match verb {
        Action::Stop => "该平台不支持停止：释放会删除机器及其本地磁盘，文件系统保留并继续计费".to_owned(),
        _ => format!("该平台不支持{}", action(verb)),
    }
}

pub fn not_sent(reason: &NotSent) -> String {
    match reason {
        NotSent::TakenBack => "已撤销".to_owned(),
        NotSent::ProgramEnded => "未发出：rentop 已先退出".to_owned(),
        NotSent::TooLate => "未发出：间隔太久，请重新操作".to_owned(),
        NotSent::AnotherMachine => "未发出：该 ID 现在是另一台机器".to_owned(),
        NotSent::NoLongerThere => "未发出：实例已不存在".to_owned(),
        NotSent::AlreadySo => "未发出：已经如此，无需操作".to_owned(),
        NotSent::PhaseChanged { was, is } => format!("未发出：状态由{}变为{}", phase(*was), phase(*is)),
        NotSent::PlanChanged => "未发出：现在会删除确认时未列出的数据".to_owned(),
        NotSent::NotOffered(refusal) => format!("未发出：{}", self::refusal(refusal)),
        NotSent::CouldNotLook(error) => format!("未发出：无法先行核对：{error}"),
        NotSent::CouldNotRecord(error) => format!("未发出：无法写入账本：{error}"),
        NotSent::UnderWay { host, pid } => format!("未发出：{host}（{pid}）对它的另一操作正在进行"),
    }
}

pub fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { despite: None } => "完成，已证实".to_owned(),
        Outcome::Done { despite: Some(error) } => format!("完成，尽管答复是：{error}"),
        Outcome::Queued(words) if words.is_empty() => "排队中：有空闲 GPU 时启动并计费".to_owned(),
        Outcome::Queued(words) => format!("排队中：有空闲 GPU 时启动并计费：{words}"),
        Outcome::NotSent(reason) => not_sent(reason),
        Outcome::Refused(words) => format!("被拒绝：{words}"),
        Outcome::Unproven => "未能证实：已被另一操作取代".to_owned(),
        Outcome::NotSaved(trouble) => {
            format!("未保存，因此未发出任何请求：{}", Language::Chinese.save_trouble(trouble))
        }
    }
}

/// The provider's own words follow a colon.
fn said(text: &str, words: Option<&str>) -> String {
    match words.filter(|words| !words.is_empty()) {
        Some(words) => format!("{text}：{words}"),
        None => text.to_owned(),
    }
}

fn retry(text: String, after: &Option<std::time::Duration>) -> String {
    match after {
        Some(after) => format!("{text}，{} 秒后重试", after.as_secs()),
        None => text,
    }
}

pub fn error_kind(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::Credentials { message } => format!("{}；请检查账户密钥", said("密钥被拒绝", message.as_deref())),
        ErrorKind::Forbidden { message } => said("密钥没有此权限", message.as_deref()),
        ErrorKind::NoSuchId => "没有此 ID".to_owned(),
        ErrorKind::Retired { status, message } => {
            format!("HTTP {status}：{}；新版 rentop 可能已适配", said("接口已停用", message.as_deref()))
        }
        ErrorKind::RateLimited { retry_after } => retry("请求过于频繁".to_owned(), retry_after),
        ErrorKind::Refused { message, retry_after, .. } => retry(said("被拒绝", Some(message)), retry_after),
        ErrorKind::Server { status, message, retry_after } => {
            retry(said(&format!("平台出错，HTTP {status}"), message.as_deref()), retry_after)
        }
        ErrorKind::NotJson { status, excerpt } => said(&format!("HTTP {status}，答复不是 JSON"), excerpt.as_deref()),
        ErrorKind::Decode { path, message } => format!("无法读取 `{path}`：{message}"),
        ErrorKind::Timeout { after } => format!("{} 秒内没有答复", after.as_secs()),
        ErrorKind::Connect { message } => format!("无法连接：{message}"),
        ErrorKind::Disconnected { message } => format!("连接中断：{message}"),
        ErrorKind::Redirected => "被重定向到别处；为保护密钥没有跟随".to_owned(),
        ErrorKind::TooLarge { limit_bytes } => format!("答复超过 {limit_bytes} 字节"),
        ErrorKind::PagingLoop { pages } => format!("翻页标记重复，读了 {pages} 页后停止"),
        ErrorKind::Unusable { message } => message.clone(),
    }
}

pub fn trouble(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Request(error) => format!("{}：{}", error.request, error_kind(&error.kind)),
        Trouble::Key(message) => message.clone(),
        Trouble::OtherTenant => "密钥对应的账号与之前不同；已知数据保留".to_owned(),
        Trouble::SameAs(other) => format!("与 `{other}` 是平台上的同一账号；请删去其一"),
    }
}

pub fn advice(trouble: &Trouble) -> &'static str {
    match trouble {
        Trouble::Request(error) if error.kind.is_credentials() => {
            "请检查账户的密钥及其权限。已知的实例不会被当作消失。"
        }
        Trouble::Request(error) if error.kind.is_transient() => {
            "会自动重试，间隔逐渐加长；F5 立即查询。各行显示上次的数据。"
        }
        Trouble::Request(_) => "F5 重新查询。各行显示上次的数据。",
        Trouble::Key(_) => "请修正密钥后重新启动 rentop。",
        Trouble::OtherTenant => "请换回原来的密钥，或为新密钥另起一个账户名。",
        Trouble::SameAs(_) => "两个都算会重复计算。",
    }
}

pub fn ledger_notice(notice: &LedgerNotice) -> String {
    match notice {
        LedgerNotice::SetAside { kept_as, why } => format!("账本无法使用（{why}），已另存为 {kept_as}，并新建账本。"),
        LedgerNotice::Restored { from, as_of } => {
            let of = as_of.map(|at| at.strftime("（%Y-%m-%d %H:%M UTC）").to_string()).unwrap_or_default();
            format!("账本从备份恢复{of}：{from}，此后的记录不在其中。")
        }
        LedgerNotice::Newer => "账本由更新版本的 rentop 写成：只读取，不写入。".to_owned(),
        LedgerNotice::NotWritable { why } => format!("账本无法写入（{why}）：本次运行后不留记录。"),
        LedgerNotice::BackedUp { kept_as } => format!("账本升级前已备份：{kept_as}。"),
        LedgerNotice::Unreadable { rows } => format!("账本中有 {rows} 行无法读取，原样保留。"),
    }
}

pub fn type_name() -> [&'static str; 2] {
    ["输入 ", " 并按回车"]
}
