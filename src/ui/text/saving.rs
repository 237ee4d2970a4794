//! What the screen says of checkpoints in both languages: under way, made, and offered before something ends.

use providers::model::Action;

use super::Language;
use crate::rules::checkpoint::{Method, Recipe, Stage};

/// Figures come ready for the screen.
#[derive(Clone, Copy, Debug)]
pub enum OfSaving<'a> {
    // Under way.
    /// Where it is, without figures.
    At(Stage),
    /// What this stage has done of all bytes; the unit stands at the whole.
    Done {
        part: &'a str,
        whole: &'a str,
    },
    TimeLeft {
        time: &'a str,
    },
    /// What follows this stage, shorter where `briefly`. Empty where nothing does.
    Then {
        stage: Stage,
        action: Action,
        briefly: bool,
    },
    /// What was to follow does not: nobody saw to it for too long.
    Lapsed {
        action: Action,
    },
    TriedAgain {
        seconds: i64,
    },
    /// What the machine costs meanwhile: an hour, since it began, and until the stage is done where that is known.
    Meanwhile {
        rate: &'a str,
        so_far: &'a str,
        more: Option<&'a str>,
    },
    // Made.
    Last {
        age: &'a str,
        bytes: &'a str,
        files: u64,
    },
    Made {
        bytes: &'a str,
        files: u64,
    },
    /// Files that were being written and are not in it.
    NotIn {
        files: u64,
    },
    // What is saved, and where it goes.
    /// Paths with where they go.
    Paths {
        recipe: &'a Recipe,
    },
    /// The same for one of several rows.
    PathsBriefly {
        recipe: &'a Recipe,
    },
    /// How the saved paths stand to what is deleted.
    Covers {
        all: bool,
    },
    // Offered.
    PlanFor {
        action: Action,
        name: &'a str,
    },
    PlanForMany {
        action: Action,
        count: usize,
    },
    First {
        action: Action,
        paths: usize,
        last: Option<&'a str>,
        /// The key begins it, and does not only change the plan.
        begins: bool,
    },
    /// The same for so many of so many.
    FirstMany {
        action: Action,
        count: usize,
        of: usize,
        begins: bool,
    },
    /// What the last one was: its bytes, how long it took, and what the machine costs in that time.
    LastTime {
        bytes: &'a str,
        took: Option<&'a str>,
        costs: Option<&'a str>,
    },
    CannotFirst {
        why: &'a str,
    },
    Without {
        action: Action,
        count: usize,
    },
    // Leaving.
    StopsAtLeave {
        count: usize,
    },
}

impl Language {
    pub fn of_saving(self, of: &OfSaving) -> String {
        match self {
            Language::English => english(of),
            Language::Chinese => chinese(of),
        }
    }
}

fn english(of: &OfSaving) -> String {
    match *of {
        OfSaving::At(Stage::Prepare) => "preparing to copy".to_owned(),
        OfSaving::At(Stage::Copy) => "copying".to_owned(),
        OfSaving::At(Stage::Verify) => "checking the copy".to_owned(),
        OfSaving::Done { part, whole } => format!("{part} of {whole}"),
        OfSaving::TimeLeft { time } => format!("{time} left"),
        OfSaving::Then { stage, action, briefly } => {
            let verb = action.word();
            let steps: Vec<&str> = match (stage, action, briefly) {
                (Stage::Prepare, Action::Checkpoint, false) => vec!["copy", "verify"],
                (Stage::Copy, Action::Checkpoint, false) => vec!["verify"],
                (_, Action::Checkpoint, _) => return String::new(),
                (Stage::Prepare, _, false) => vec!["copy", "verify", verb],
                (Stage::Copy, _, false) => vec!["verify", verb],
                _ => vec![verb],
            };
            format!("then {}", steps.join(", "))
        }
        OfSaving::Lapsed { action } => format!("no {} after it: asked too long ago", action.word()),
        OfSaving::TriedAgain { seconds } => format!("again in {seconds} s"),
        OfSaving::Meanwhile { rate, so_far, more: None } => format!("{rate}, {so_far} since it began"),
        OfSaving::Meanwhile { rate, so_far, more: Some(more) } => {
            format!("{rate}, {so_far} since it began, about {more} more")
        }
        OfSaving::Last { age, bytes, files } => format!("{age} ago, {bytes} in {}", many(files, "file", "files")),
        OfSaving::Made { bytes, files } => format!("saved {bytes} in {}", many(files, "file", "files")),
        OfSaving::NotIn { files } => {
            format!("{} being written and not in it", many(files, "file was", "files were"))
        }
        OfSaving::Paths { recipe } => {
            let paths = recipe.paths.join(", ");
            match &recipe.method {
                Method::Copy { to } => format!("{paths} to {to}"),
                Method::Command { .. } => format!("{paths} by a command of yours, then checked"),
                Method::Volume => format!("{paths}, which outlives the machine"),
            }
        }
        OfSaving::PathsBriefly { recipe } => {
            let paths = many(recipe.paths.len() as u64, "path", "paths");
            match &recipe.method {
                Method::Copy { .. } => format!("copies {paths}"),
                Method::Command { .. } => format!("saves {paths} by command"),
                Method::Volume => format!("{paths} on a volume"),
            }
        }
        OfSaving::Covers { all: true } => "these paths hold all that is deleted".to_owned(),
        OfSaving::Covers { all: false } => {
            "only these paths are saved; everything else on the disk is deleted".to_owned()
        }
        OfSaving::PlanFor { action, name } => format!("Save, then {} {name}", action.word()),
        OfSaving::PlanForMany { action, count } => format!("Save, then {} {count} instances", action.word()),
        OfSaving::First { action, paths, last, begins } => {
            let last = last.map(|last| format!(" ({last})")).unwrap_or_default();
            let (begin, paths) = (if begins { "begin: " } else { "" }, many(paths as u64, "path", "paths"));
            match action {
                Action::Checkpoint => format!("{begin}save {paths}{last}"),
                _ => format!("{begin}save {paths} first{last}, then {}", action.word()),
            }
        }
        OfSaving::FirstMany { action, count, of, begins } => {
            let begin = if begins { "begin: " } else { "" };
            let which = if count == of { format!("all {count}") } else { format!("{count} of {of}") };
            match action {
                Action::Checkpoint => format!("{begin}save {which}"),
                _ => format!("{begin}save {which} first, then {} each once its copy is verified", action.word()),
            }
        }
        OfSaving::LastTime { bytes, took, costs } => {
            let took = took.map(|took| format!(", {took}")).unwrap_or_default();
            let costs = costs.map(|costs| format!(", cost {costs}")).unwrap_or_default();
            format!("last time {bytes}{took}{costs}")
        }
        OfSaving::CannotFirst { why } => format!("saving first is not possible: {why}"),
        OfSaving::Without { action, count: 1 } => format!("{} without saving: asks for its name first", action.word()),
        OfSaving::Without { action, count } => {
            format!("{} {count} without saving: asks for a typed word first", action.word())
        }
        OfSaving::StopsAtLeave { count } => {
            format!(
                "{} here; the next start, or a `rentop watch`, goes on where it was. More than ten minutes later \
                 nothing is released or stopped by it.",
                many(count as u64, "checkpoint stops", "checkpoints stop")
            )
        }
    }
}

fn many(count: u64, one: &str, more: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {more}") }
}

fn chinese(of: &OfSaving) -> String {
    let verb = |action| Language::Chinese.action(action);
    match *of {
        OfSaving::At(Stage::Prepare) => "准备复制".to_owned(),
        OfSaving::At(Stage::Copy) => "复制中".to_owned(),
        OfSaving::At(Stage::Verify) => "校验中".to_owned(),
        OfSaving::Done { part, whole } => format!("{part} / {whole}"),
        OfSaving::TimeLeft { time } => format!("还需 {time}"),
        OfSaving::Then { stage, action, briefly } => {
            let last = verb(action);
            let steps: Vec<&str> = match (stage, action, briefly) {
                (Stage::Prepare, Action::Checkpoint, false) => vec!["复制", "校验"],
                (Stage::Copy, Action::Checkpoint, false) => vec!["校验"],
                (_, Action::Checkpoint, _) => return String::new(),
                (Stage::Prepare, _, false) => vec!["复制", "校验", last],
                (Stage::Copy, _, false) => vec!["校验", last],
                _ => vec![last],
            };
            format!("然后{}", steps.join("、"))
        }
        OfSaving::Lapsed { action } => format!("之后不再{}：距确认已太久", verb(action)),
        OfSaving::TriedAgain { seconds } => format!("{seconds} 秒后重试"),
        OfSaving::Meanwhile { rate, so_far, more: None } => format!("{rate}，开始至今 {so_far}"),
        OfSaving::Meanwhile { rate, so_far, more: Some(more) } => format!("{rate}，开始至今 {so_far}，约还需 {more}"),
        OfSaving::Last { age, bytes, files } => format!("{age}前，{bytes}，{files} 个文件"),
        OfSaving::Made { bytes, files } => format!("已保存 {bytes}，{files} 个文件"),
        OfSaving::NotIn { files } => format!("{files} 个文件正在写入，未包括在内"),
        OfSaving::Paths { recipe } => {
            let paths = recipe.paths.join("、");
            match &recipe.method {
                Method::Copy { to } => format!("{paths} 复制到 {to}"),
                Method::Command { .. } => format!("{paths} 由您的命令上传，随后核对"),
                Method::Volume => format!("{paths} 所在的存储独立于实例"),
            }
        }
        OfSaving::PathsBriefly { recipe } => {
            let paths = recipe.paths.len();
            match &recipe.method {
                Method::Copy { .. } => format!("复制 {paths} 个路径"),
                Method::Command { .. } => format!("用命令保存 {paths} 个路径"),
                Method::Volume => format!("{paths} 个路径在卷上"),
            }
        }
        OfSaving::Covers { all: true } => "这些路径包含将被删除的全部数据".to_owned(),
        OfSaving::Covers { all: false } => "只保存这些路径，磁盘上的其他数据都会删除".to_owned(),
        OfSaving::PlanFor { action, name } => format!("保存后{} {name}", verb(action)),
        OfSaving::PlanForMany { action, count } => format!("保存后{} {count} 个实例", verb(action)),
        OfSaving::First { action, paths, last, begins } => {
            let last = last.map(|last| format!("（{last}）")).unwrap_or_default();
            let begin = if begins { "开始：" } else { "" };
            match action {
                Action::Checkpoint => format!("{begin}保存 {paths} 个路径{last}"),
                _ => format!("{begin}先保存 {paths} 个路径{last}，再{}", verb(action)),
            }
        }
        OfSaving::FirstMany { action, count, of, begins } => {
            let begin = if begins { "开始：" } else { "" };
            let which = if count == of { format!("全部 {count} 个") } else { format!("{of} 个中的 {count} 个") };
            match action {
                Action::Checkpoint => format!("{begin}保存{which}"),
                _ => format!("{begin}先保存{which}，各自校验无误后{}", verb(action)),
            }
        }
        OfSaving::LastTime { bytes, took, costs } => {
            let took = took.map(|took| format!("，{took}")).unwrap_or_default();
            let costs = costs.map(|costs| format!("，费用 {costs}")).unwrap_or_default();
            format!("上次 {bytes}{took}{costs}")
        }
        OfSaving::CannotFirst { why } => format!("无法先保存：{why}"),
        OfSaving::Without { action, count: 1 } => format!("不保存直接{}：需先输入名称", verb(action)),
        OfSaving::Without { action, count } => format!("不保存直接{} {count} 个：需先输入确认文字", verb(action)),
        OfSaving::StopsAtLeave { count } => format!(
            "{count} 个保存在此中断，下次启动或运行 rentop watch 时从中断处继续；若超过十分钟，之后不再释放或停止。"
        ),
    }
}
