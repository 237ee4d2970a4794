//! What is said of use, idleness and the streams to machines, in each language.

use jiff::Timestamp;
use providers::usage::Server;

use super::Language;
use crate::app::state::ChartSpan;
use crate::rules::streams::{Consent, Trouble};
use crate::rules::usage::{Hint, Idleness, Mismatch, Verdict, Why, Work};
use crate::ui::format;

/// What is told of one instance beside a verdict.
#[derive(Clone, Copy, Debug)]
pub enum OfUse<'a> {
    /// What an idle instance costs for nothing; `so_far` where it is known since when.
    Wasting {
        rate: &'a str,
        so_far: Option<&'a str>,
    },
    /// How old figures are that are not of now.
    Old {
        age: &'a str,
    },
    /// How far back the curves reach.
    Curves(ChartSpan),
    /// The figures come from the machine itself, or from its provider.
    ByMachine,
    ByProvider,
    /// A file system: its place, its size, how full it is.
    Mount {
        path: &'a str,
        share: &'a str,
        size: &'a str,
    },
    Disk {
        flow: &'a str,
    },
    Network {
        flow: &'a str,
    },
    /// Who is logged in; empty when nobody is.
    Users {
        names: &'a str,
    },
    /// So many further ones of a list.
    More {
        count: usize,
    },
    Fault {
        said: &'a str,
    },
    Connecting {
        time: &'a str,
    },
    /// Since when a stream tells, and how often.
    Streams {
        time: &'a str,
        pace: i64,
    },
    /// Why a stream ended, and when it is tried again.
    Down {
        trouble: &'a Trouble,
        again: Option<&'a str>,
    },
    /// No stream, for nobody has said whether there may be one; the key that asks.
    Unasked {
        key: &'a str,
    },
    /// No stream, for somebody said no; the key that changes it.
    NotWanted {
        key: &'a str,
    },
}

impl Language {
    /// One word for a verdict; `None` of what does not run.
    pub fn verdict(self, verdict: Verdict) -> Option<&'static str> {
        let [english, chinese] = match verdict {
            Verdict::Busy => ["busy", "忙碌"],
            Verdict::Underused => ["underused", "利用不足"],
            Verdict::Waiting => ["waiting", "等待请求"],
            Verdict::Idle => ["idle", "闲置"],
            Verdict::NotYet => ["not judged yet", "尚未判定"],
            Verdict::Unknown => ["not known", "无法判定"],
            Verdict::NotApplicable => return None,
        };
        Some(self.either(english, chinese))
    }

    fn either(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }

    /// Why a verdict is what it is. `memory` says whether anything is known of the memory of its cards.
    pub fn why(self, idleness: &Idleness, memory: bool, now: Timestamp) -> String {
        let chinese = self == Language::Chinese;
        match &idleness.why {
            Why::NoUsage => self.either("there are no figures of its use", "没有利用率数据").to_owned(),
            Why::Work(work) => self.work(*work),
            Why::Few { busy, cards } if chinese => format!("{cards} 张卡中只有 {busy} 张在工作"),
            Why::Few { busy: 1, cards } => format!("1 of {cards} GPUs works"),
            Why::Few { busy, cards } => format!("{busy} of {cards} GPUs work"),
            Why::Quiet { .. } => self.quiet(idleness, memory, now),
            Why::TooFewLooks { seen, window } if chinese => format!("最近 {window} 分钟只看到 {seen} 分钟"),
            Why::TooFewLooks { seen, window } => format!("seen in {seen} of the last {window} minutes"),
            Why::Young { minutes } if chinese => format!("运行满 {minutes} 分钟后判定"),
            Why::Young { minutes } => format!("it takes {minutes} minutes from its start"),
            Why::Partitioned => self
                .either("its cards are cut into parts, whose use nobody tells", "显卡已切分，各部分利用率未知")
                .to_owned(),
            Why::MemoryUntold => self
                .either(
                    "nobody tells the memory of its GPUs in use; the machine itself would, over ssh",
                    "显存用量未知；可通过 ssh 查看",
                )
                .to_owned(),
            Why::Fault(said) if chinese => format!("驱动报错：{said}"),
            Why::Fault(said) => format!("its driver says: {said}"),
            Why::FewerCards { seen, rented } if chinese => format!("租用 {rented} 张卡，只有 {seen} 张应答"),
            Why::FewerCards { seen, rented } => format!("{seen} of {rented} GPUs answer"),
            Why::AtRest => self.either("it does not run", "未运行").to_owned(),
            Why::NoCards => self.either("it has no GPU", "没有 GPU").to_owned(),
        }
    }

    fn work(self, work: Work) -> String {
        let [of, figure] = match (work, self) {
            (Work::Gpu(share), _) => ["GPU", &format::percent(share)],
            (Work::Memory(moved), Language::English) => ["GPU memory moved by", &format::part(moved)],
            (Work::Memory(moved), Language::Chinese) => ["显存变动", &format::part(moved)],
            (Work::Cpu(share), _) => ["CPU", &format::percent(share)],
            (Work::Disk(flow), Language::English) => ["disk", &format::flow(flow)],
            (Work::Disk(flow), Language::Chinese) => ["磁盘读写", &format::flow(flow)],
            (Work::Network(flow), Language::English) => ["network", &format::flow(flow)],
            (Work::Network(flow), Language::Chinese) => ["网络", &format::flow(flow)],
        };
        format!("{of} {figure}")
    }

    /// What was seen while nothing worked.
    fn quiet(self, idleness: &Idleness, memory: bool, now: Timestamp) -> String {
        let Why::Quiet { cards, peak, cpu, users, server, .. } = &idleness.why else { return String::new() };
        let (peak, time) = (peak.known().unwrap_or(0.0), idleness.since.map(|since| now.duration_since(since)));
        let time = time.map(|time| format::span(time, self));
        let mut parts = Vec::new();
        let most = format::percent(peak);
        // Below half a percent nothing was seen.
        let still = peak < 0.005;
        match self {
            Language::English => {
                if let Some(server) = server {
                    parts.push(format!("{} serves and nobody asks", self.server(server)));
                }
                let cards = if *cards == 1 { "GPU".to_owned() } else { format!("{cards} GPUs") };
                let at = if still { "at" } else { "at most" };
                let time = time.map(|time| format!(" for {time}")).unwrap_or_default();
                parts.push(format!("{cards} {at} {most}{time}"));
                if memory {
                    parts.push("memory steady".to_owned());
                }
                parts.extend(cpu.known().map(|share| format!("CPU {}", format::percent(share))));
                parts.extend(users.map(|users| match users {
                    0 => "nobody on".to_owned(),
                    users => format!("{users} logged in"),
                }));
            }
            Language::Chinese => {
                if let Some(server) = server {
                    parts.push(format!("{} 已就绪但无人访问", self.server(server)));
                }
                let cards = if *cards == 1 { "GPU".to_owned() } else { format!("{cards} 张 GPU") };
                let at = if still { "" } else { "最高 " };
                let time = time.map(|time| format!("，已 {time}")).unwrap_or_default();
                parts.push(format!("{cards} {at}{most}{time}"));
                if memory {
                    parts.push("显存无变化".to_owned());
                }
                parts.extend(cpu.known().map(|share| format!("CPU {}", format::percent(share))));
                parts.extend(users.map(|users| match users {
                    0 => "无人登录".to_owned(),
                    users => format!("{users} 人登录"),
                }));
            }
        }
        parts.join(self.either(", ", "，"))
    }

    fn server(self, server: &Server) -> String {
        match server {
            Server::Vllm => "vLLM".to_owned(),
            Server::TensorRtLlm => "TensorRT-LLM".to_owned(),
            Server::Tgi => "TGI".to_owned(),
            Server::Port(port) if self == Language::English => format!("port {port}"),
            Server::Port(port) => format!("端口 {port}"),
        }
    }

    pub fn usage_hint(self, hint: &Hint) -> String {
        match (hint, self) {
            (Hint::PerhapsStuck { power }, Language::English) => {
                format!("perhaps stuck: fully used at {} of its power, and nothing else moves", share(power.known()))
            }
            (Hint::PerhapsStuck { power }, Language::Chinese) => {
                format!("可能卡死：利用率满，功耗仅为上限的 {}，其他指标毫无变化", share(power.known()))
            }
            (Hint::RentLess { memory }, Language::English) => {
                format!("a smaller card may do: at most {} of its memory was used in a week", share(memory.known()))
            }
            (Hint::RentLess { memory }, Language::Chinese) => {
                format!("或可换更小的卡：一周内显存最高只用到 {}", share(memory.known()))
            }
        }
    }

    pub fn mismatch(self, mismatch: &Mismatch) -> String {
        match (mismatch, self) {
            (Mismatch::Fewer { seen, rented }, Language::English) => {
                format!("{rented} GPUs are paid for, {seen} answer: ask the provider, or release it")
            }
            (Mismatch::Fewer { seen, rented }, Language::Chinese) => {
                format!("付费 {rented} 张 GPU，只有 {seen} 张应答：请联系平台或释放")
            }
            (Mismatch::Smaller { seen_gib, rented_gib }, Language::English) => {
                format!("cards of {rented_gib} GiB are paid for, these have {seen_gib}")
            }
            (Mismatch::Smaller { seen_gib, rented_gib }, Language::Chinese) => {
                format!("付费的是 {rented_gib} GiB 显存，实际只有 {seen_gib} GiB")
            }
            (Mismatch::Other { seen, rented }, Language::English) => format!("{rented} is paid for, {seen} is there"),
            (Mismatch::Other { seen, rented }, Language::Chinese) => format!("付费的是 {rented}，实际是 {seen}"),
        }
    }

    /// The same in a few words, for a row.
    pub fn mismatch_short(self, mismatch: &Mismatch) -> String {
        match (mismatch, self) {
            (Mismatch::Fewer { seen, rented }, Language::English) => format!("{seen} of {rented} GPUs"),
            (Mismatch::Fewer { seen, rented }, Language::Chinese) => format!("只有 {seen}/{rented} 卡"),
            (Mismatch::Smaller { seen_gib, .. }, Language::English) => format!("only {seen_gib} GiB"),
            (Mismatch::Smaller { seen_gib, .. }, Language::Chinese) => format!("显存只有 {seen_gib} G"),
            (Mismatch::Other { seen, .. }, Language::English) => format!("is {seen}"),
            (Mismatch::Other { seen, .. }, Language::Chinese) => format!("实为 {seen}"),
        }
    }

    pub fn of_use(self, told: OfUse) -> String {
        match self {
            Language::English => match told {
                OfUse::Wasting { rate, so_far: Some(so_far) } => format!("wasting {rate}, {so_far} so far"),
                OfUse::Wasting { rate, so_far: None } => format!("wasting {rate}"),
                OfUse::Old { age } => format!("use {age} old"),
                OfUse::Curves(ChartSpan::TenMinutes) => "curves: 10 min".to_owned(),
                OfUse::Curves(ChartSpan::Hour) => "curves: 1 h".to_owned(),
                OfUse::Curves(ChartSpan::Day) => "curves: 24 h".to_owned(),
                OfUse::ByMachine => "told over ssh".to_owned(),
                OfUse::ByProvider => "told by the provider".to_owned(),
                OfUse::Mount { path, share, size } => format!("{path} {share} of {size}"),
                OfUse::Disk { flow } => format!("disk {flow}"),
                OfUse::Network { flow } => format!("net {flow}"),
                OfUse::Users { names: "" } => "nobody on".to_owned(),
                OfUse::Users { names } => format!("on: {names}"),
                OfUse::More { count } => format!("and {count} more"),
                OfUse::Fault { said } => format!("GPU fault: {said}"),
                OfUse::Connecting { time } => format!("connecting for {time}"),
                OfUse::Streams { time, pace } => format!("each {pace} s, for {time}"),
                OfUse::Down { trouble, again: None } => self.link_trouble(trouble),
                OfUse::Down { trouble, again: Some(at) } => {
                    format!("{}; tried again {at}", self.link_trouble(trouble))
                }
                OfUse::Unasked { key } => format!("not looked into; {key} asks"),
                OfUse::NotWanted { key } => format!("not looked into, as you said; {key} changes it"),
            },
            Language::Chinese => match told {
                OfUse::Wasting { rate, so_far: Some(so_far) } => format!("浪费 {rate}，至今 {so_far}"),
                OfUse::Wasting { rate, so_far: None } => format!("浪费 {rate}"),
                OfUse::Old { age } => format!("利用率为{age}前"),
                OfUse::Curves(ChartSpan::TenMinutes) => "曲线：10 分钟".to_owned(),
                OfUse::Curves(ChartSpan::Hour) => "曲线：1 小时".to_owned(),
                OfUse::Curves(ChartSpan::Day) => "曲线：24 小时".to_owned(),
                OfUse::ByMachine => "来自 SSH".to_owned(),
                OfUse::ByProvider => "来自平台".to_owned(),
                OfUse::Mount { path, share, size } => format!("{path} 已用 {share}（共 {size}）"),
                OfUse::Disk { flow } => format!("磁盘 {flow}"),
                OfUse::Network { flow } => format!("网络 {flow}"),
                OfUse::Users { names: "" } => "无人登录".to_owned(),
                OfUse::Users { names } => format!("登录：{names}"),
                OfUse::More { count } => format!("另有 {count} 个"),
                OfUse::Fault { said } => format!("GPU 故障：{said}"),
                OfUse::Connecting { time } => format!("连接中，已 {time}"),
                OfUse::Streams { time, pace } => format!("每 {pace} 秒一次，已 {time}"),
                OfUse::Down { trouble, again: None } => self.link_trouble(trouble),
                OfUse::Down { trouble, again: Some(at) } => format!("{}；{at} 重试", self.link_trouble(trouble)),
                OfUse::Unasked { key } => format!("未查看机器内部；按 {key} 决定"),
                OfUse::NotWanted { key } => format!("按你的选择不查看；{key} 可更改"),
            },
        }
    }

    /// Why there is no stream, and what to do about it.
    pub fn link_trouble(self, trouble: &Trouble) -> String {
        let [english, chinese] = match trouble {
            Trouble::NoProgram => ["there is no program `ssh` here", "本机没有 ssh 程序"],
            Trouble::KeyRefused => [
                "key refused: add your public key to the machine, or your key to the ssh agent",
                "密钥被拒：请把公钥加到机器上，或把密钥加入 ssh-agent",
            ],
            Trouble::HostKeyChanged => ["another host key than before", "主机密钥与之前不同"],
            Trouble::NoSuchHost => ["its name has no address", "主机名无法解析"],
            Trouble::NoAnswer => ["no answer at its address", "地址无应答"],
            Trouble::ConnectionRefused => ["nothing listens at its port yet", "端口尚未开放"],
            Trouble::NoCommands => ["it lets one in but runs no commands", "能登录但不能执行命令"],
            Trouble::Garbled => ["its answer is not what was asked for", "返回内容无法识别"],
            Trouble::Ended => ["the connection ended", "连接已断开"],
            Trouble::Said(said) => return said.clone(),
        };
        self.either(english, chinese).to_owned()
    }

    /// What follows from an answer about an account's machines.
    pub fn looks_into(self, account: &str, consent: Consent) -> String {
        match (self, consent) {
            (Language::English, Consent::Yes) => format!("looks into the machines of {account} until rentop ends"),
            (Language::English, Consent::Always) => format!("looks into the machines of {account} from now on"),
            (Language::English, Consent::No) => format!("does not look into {account}; asks again next time"),
            (Language::English, Consent::Never) => format!("never looks into {account}"),
            (Language::English, Consent::Unasked) => format!("nothing was said about {account}"),
            (Language::Chinese, Consent::Yes) => format!("本次运行期间查看 {account} 的机器"),
            (Language::Chinese, Consent::Always) => format!("今后始终查看 {account} 的机器"),
            (Language::Chinese, Consent::No) => format!("本次不查看 {account}，下次再问"),
            (Language::Chinese, Consent::Never) => format!("永不查看 {account}"),
            (Language::Chinese, Consent::Unasked) => format!("{account} 尚未决定"),
        }
    }

    /// The one question, in a line.
    pub fn ask_to_look(self, account: &str, machines: usize) -> String {
        match self {
            Language::English if machines == 1 => {
                format!("look into 1 machine of {account} over your own ssh, read-only?")
            }
            Language::English => format!("look into {machines} machines of {account} over your own ssh, read-only?"),
            Language::Chinese => format!("用你自己的 ssh 查看 {account} 的 {machines} 台机器？只读"),
        }
    }

    /// The same in its window: what would be done, a sentence each.
    pub fn look_explained(self) -> [&'static str; 4] {
        match self {
            Language::English => [
                "Providers tell little about use. The machines themselves tell what each GPU does, who is logged in, \
                 and whether something waits for requests: only so idleness is certain.",
                "rentop runs your own ssh, with your keys, agent and config. One connection a machine stays open and runs \
                 one command that only reads: nvidia-smi and the like, /proc, df, who. Nothing is installed or written.",
                "The row under the cursor is read each second, the others each 15 seconds; at most 8 connect at a time.",
                "Host keys are kept in a file of rentop's own, a name for each rental, so your known_hosts stays as it is.",
            ],
            Language::Chinese => [
                "平台提供的利用率很少。机器自身能说明每张 GPU 在做什么、谁已登录、是否有服务在等请求：这样判断闲置才可靠。",
                "rentop 运行你自己的 ssh，用你的密钥、agent 和配置。每台机器保持一个连接，只运行一条只读命令：nvidia-smi 之类、\
                 /proc、df、who。不安装、不写入任何东西。",
                "光标所在行每秒读取，其余每 15 秒；同时建立的连接至多 8 个。",
                "主机密钥存放在 rentop 自己的文件里，每次租用各有其名，不改动你的 known_hosts。",
            ],
        }
    }

    /// The answers, each after its key.
    pub fn consent_answer(self, consent: Consent) -> &'static str {
        let [english, chinese] = match consent {
            Consent::Yes => ["yes, until rentop ends", "可以，仅本次运行"],
            Consent::Always => ["always", "始终可以"],
            Consent::No => ["not now; ask again next time", "暂不；下次再问"],
            Consent::Never => ["never", "永不"],
            Consent::Unasked => ["nothing said yet", "尚未决定"],
        };
        self.either(english, chinese)
    }

    /// Before and after the word that accepts another host key.
    pub fn type_accept(self) -> [&'static str; 2] {
        match self {
            Language::English => ["If they are the same, type ", " and press enter: from then on the new key counts."],
            Language::Chinese => ["若一致，输入 ", " 并按回车：此后以新密钥为准。"],
        }
    }

    /// What another host key may mean, and how to look into it, a sentence each.
    pub fn host_key_explained(self) -> [&'static str; 4] {
        match self {
            Language::English => [
                "The machine at this address showed another key than the one that this instance had. Nothing was sent to it.",
                "It may be harmless: the instance was set up anew, or restored. It may be another machine that got the \
                 address, or somebody in between.",
                "rentop cannot know which. Open the machine's terminal on its provider's page, or log in another way that \
                 you trust, and have it show its fingerprints:",
                "Compare them with what answers at the address:",
            ],
            Language::Chinese => [
                "该地址的机器出示的密钥与此实例之前的不同。没有向它发送任何内容。",
                "可能无害：实例被重装或恢复过。也可能是别的机器得到了这个地址，或有人在中间。",
                "rentop 无法判断。请在平台网页上打开它自带的终端，或用其他可信方式登录，查看它的指纹：",
                "再与该地址实际应答的指纹比较：",
            ],
        }
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(String::new, format::percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::usage::Share;
    use rstest::rstest;

    fn quiet(cards: u32, peak: f64, cpu: Option<f64>, users: Option<u32>, server: Option<Server>) -> Idleness {
        let why =
            Why::Quiet { cards, peak: Share::of(peak), moved: Share::of(0.0), cpu: Share::from(cpu), users, server };
        Idleness { verdict: Verdict::Idle, since: Some("2026-11-30T06:20:00Z".parse().unwrap()), why, hints: vec![] }
    }

    #[rstest]
    #[case::all(
        quiet(8, 0.0, Some(0.01), Some(0), None),
        "8 GPUs at 0 % for 3 h 40 m, memory steady, CPU 1 %, nobody on",
        "8 张 GPU 0 %，已 3 小时 40 分，显存无变化，CPU 1 %，无人登录"
    )]
    #[case::little(
        quiet(1, 0.03, None, None, None),
        "GPU at most 3 % for 3 h 40 m, memory steady",
        "GPU 最高 3 %，已 3 小时 40 分，显存无变化"
    )]
    #[case::serves(
        quiet(1, 0.0, None, Some(2), Some(Server::Vllm)),
        "vLLM serves and nobody asks, GPU at 0 % for 3 h 40 m, memory steady, 2 logged in",
        "vLLM 已就绪但无人访问，GPU 0 %，已 3 小时 40 分，显存无变化，2 人登录"
    )]
    fn an_idle_instance_is_told_with_its_evidence(
        #[case] idleness: Idleness,
        #[case] english: &str,
        #[case] chinese: &str,
    ) {
        let now = "2026-11-30T10:00:00Z".parse().unwrap();
        assert_eq!(Language::English.why(&idleness, true, now), english);
        assert_eq!(Language::Chinese.why(&idleness, true, now), chinese);
        // Of memory that nobody tells nothing is said.
        assert!(!Language::English.why(&idleness, false, now).contains("memory"));
    }
}
