//! Checkpoints in both languages: where they are, and why there is none.

use jiff::Timestamp;

use super::{Language, OfSaving};
use crate::rules::checkpoint::{Method, Progress, Proof, Recipe, Stage, Trouble, Which};
use crate::ui::format;

impl Language {
    /// Why there is no checkpoint.
    pub fn save_trouble(self, trouble: &Trouble) -> String {
        let [english, chinese]: [String; 2] = match trouble {
            Trouble::NoAddress => ["nobody knows its address for ssh".into(), "没有可用的 ssh 地址".into()],
            Trouble::Link(link) => {
                let link = self.link_trouble(link);
                [format!("ssh: {link}"), format!("ssh：{link}")]
            }
            Trouble::Stalled => ["nothing moved for too long".into(), "长时间没有进展".into()],
            Trouble::NoTool(tool) => {
                [format!("the machine lacks the program `{tool}`"), format!("实例上没有程序 {tool}")]
            }
            Trouble::Missing(paths) => {
                let paths = paths.join(", ");
                [format!("not on the machine: {paths}"), format!("实例上不存在：{paths}")]
            }
            Trouble::Nothing => ["the paths hold no file".into(), "路径下没有任何文件".into()],
            Trouble::Unreadable { files, first } => [
                format!("files that cannot be read there: {files}, first {first}"),
                format!("{files} 个文件无法读取：{first}"),
            ],
            Trouble::NotQuiet { files, first } => [
                format!("{files} {} still being written: {first}", plural(*files)),
                format!("{files} 个文件仍在写入：{first}"),
            ],
            Trouble::Changed { files, first } => [
                format!("files that changed meanwhile: {files}, first {first}"),
                format!("{files} 个文件在复制期间有变化：{first}"),
            ],
            Trouble::Differs { files, first } => [
                format!("{files} {} not the same on both sides: {first}", plural(*files)),
                format!("{files} 个文件两端不一致：{first}"),
            ],
            Trouble::NoRoom { need, free } => {
                let (need, free) = (format::bytes(*need), format::bytes(*free));
                [format!("no room here: {need} needed, {free} free"), format!("本机空间不足：需要 {need}，剩余 {free}")]
            }
            Trouble::Local(why) => [format!("it cannot be written here: {why}"), format!("无法写入本机：{why}")],
            Trouble::Name(name) => {
                [format!("a name that cannot be kept here: {name}"), format!("本机无法保存此文件名：{name}")]
            }
            Trouble::Command { command, code, complaint } => {
                let said = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
                [
                    format!("the {} command ended with code {code}{said}", which(*command)),
                    format!("{} 命令退出码 {code}{said}", which(*command)),
                ]
            }
            Trouble::Rsync { code, complaint } => {
                let said = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
                match code {
                    Some(code) => [format!("rsync ended with code {code}{said}"), format!("rsync 退出码 {code}{said}")],
                    None => [format!("rsync was killed{said}"), format!("rsync 被终止{said}")],
                }
            }
            Trouble::NotOnVolume { path } => {
                [format!("{path} is on no storage that outlives the machine"), format!("{path} 不在独立于实例的存储上")]
            }
            Trouble::Garbled(said) => {
                [format!("an answer that cannot be read: {said}"), format!("返回内容无法识别：{said}")]
            }
        };
        match self {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }

    /// What is brought to safety before an action, for its plan.
    pub fn saved_first(self, recipe: &Recipe) -> String {
        let paths = recipe.paths.join(", ");
        let [english, chinese] = match &recipe.method {
            Method::Copy { to } => [
                format!("copies {paths} to {to}, and compares both sides"),
                format!("将 {paths} 复制到 {to}，并校验两端一致"),
            ],
            Method::Command { run, .. } => {
                [format!("runs `{run}` for {paths}, and proves it"), format!("对 {paths} 执行 {run}，并验证结果")]
            }
            Method::Volume => [
                format!("{paths}: on storage that outlives the instance, which is proven"),
                format!("{paths}：位于独立于实例的存储上，并加以验证"),
            ],
        };
        match self {
            Language::English => format!("first: {english}"),
            Language::Chinese => format!("先：{chinese}"),
        }
    }

    /// Where a verified checkpoint is, and what it holds.
    pub fn saved_to(self, proof: &Proof) -> String {
        let Proof { files, bytes, place, left_out, .. } = proof;
        match self {
            Language::English => {
                let count = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
                let open =
                    if *left_out == 0 { String::new() } else { format!("; still being written, left out: {left_out}") };
                format!("verified copy: {place} ({count}, {bytes} bytes{open})")
            }
            Language::Chinese => {
                let open = if *left_out == 0 {
                    String::new()
                } else {
                    format!("；{left_out} 个文件仍在写入，未包含")
                };
                format!("已校验的副本：{place}（{files} 个文件，{bytes} 字节{open}）")
            }
        }
    }

    /// Where a checkpoint is.
    pub fn saving_step(self, stage: Stage, progress: &Progress, next_try: Option<Timestamp>, now: Timestamp) -> String {
        if let Some(at) = next_try {
            let seconds = format::seconds_left(at, now);
            return match self {
                Language::English => format!("copy tried again in {seconds} s"),
                Language::Chinese => format!("{seconds} 秒后重试复制"),
            };
        }
        let word = self.of_saving(&OfSaving::At(stage));
        match progress.done.saturating_mul(100).checked_div(progress.bytes) {
            Some(percent) if stage != Stage::Prepare => format!("{word} {percent} %"),
            _ => word,
        }
    }
}

fn plural(files: u64) -> &'static str {
    if files == 1 { "file is" } else { "files are" }
}

/// By its key in the config.
fn which(command: Which) -> &'static str {
    match command {
        Which::Prepare => "prepare",
        Which::Run => "run",
        Which::Verify => "verify",
        Which::Listing => "listing",
    }
}
