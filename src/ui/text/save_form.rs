//! The form of what is to be brought to safety, in both languages.

use providers::model::Action;

use super::Language;
use crate::app::save_form::{Look, MOST, Mistake};
use crate::rules::checkpoint::paths::NoPath;

/// A text of the form.
#[derive(Clone, Copy, Debug)]
pub enum OfSaveForm<'a> {
    /// Of the window: what is done to which machine.
    Title {
        action: Action,
        name: &'a str,
    },
    /// Why it is asked.
    Why,
    Looking,
    /// The machine was looked at, and nothing stands out.
    NothingFound,
    Failed {
        trouble: &'a str,
    },
    Another,
    Folder,
    /// Beside a path.
    WorksHere,
    Newest {
        since: &'a str,
    },
    /// A release leaves what is there alone.
    Kept {
        place: &'a str,
    },
    Missing,
    Measuring,
    /// How much is chosen; `None` when not all of it could be counted.
    Sum {
        paths: usize,
        size: Option<&'a str>,
    },
    /// What the keys do.
    TakeInOrOut,
    Add,
    Begin {
        action: Action,
    },
    LookAgain,
}

impl Language {
    pub fn of_save_form(self, text: OfSaveForm<'_>) -> String {
        let [english, chinese]: [String; 2] = match text {
            OfSaveForm::Title { action: Action::Checkpoint, name } => {
                [format!("Save results of {name}"), format!("保存 {name} 的结果")]
            }
            OfSaveForm::Title { name, .. } => [format!("Save, then release {name}"), format!("保存后释放 {name}")],
            OfSaveForm::Why => [
                "No [[checkpoint]] of the config fits it: choose what is worth keeping.".into(),
                "配置中没有适用的 [[checkpoint]]：请在此选择值得保留的内容。".into(),
            ],
            OfSaveForm::Looking => ["looking for likely paths over ssh".into(), "正在通过 ssh 查找可能的路径".into()],
            OfSaveForm::NothingFound => [
                "found no GPU job and no big new files: name a path below".into(),
                "没有发现 GPU 任务，也没有新的大文件：请在下方填写路径".into(),
            ],
            OfSaveForm::Failed { trouble } => [format!("could not look: {trouble}"), format!("无法查看：{trouble}")],
            OfSaveForm::Another => ["another path".into(), "其他路径".into()],
            OfSaveForm::Folder => ["copied into".into(), "复制到".into()],
            OfSaveForm::WorksHere => ["the GPU job works here".into(), "GPU 任务的工作目录".into()],
            OfSaveForm::Newest { since } => [format!("newest files, {since} ago"), format!("最新文件，{since}前")],
            OfSaveForm::Kept { place } => [format!("kept anyway: {place}"), format!("本来就保留：{place}")],
            OfSaveForm::Missing => ["not there".into(), "不存在".into()],
            OfSaveForm::Measuring => ["measuring".into(), "计算中".into()],
            OfSaveForm::Sum { paths, size } => {
                let plural = if paths == 1 { "path" } else { "paths" };
                match size {
                    Some(size) => [format!("{paths} {plural}, {size}"), format!("{paths} 个路径，{size}")],
                    None => {
                        [format!("{paths} {plural}, not all of it measured"), format!("{paths} 个路径，大小未完全得知")]
                    }
                }
            }
            OfSaveForm::TakeInOrOut => ["in or out".into(), "选或不选".into()],
            OfSaveForm::Add => ["add it".into(), "添加".into()],
            OfSaveForm::Begin { action: Action::Checkpoint } => ["begin".into(), "开始".into()],
            OfSaveForm::Begin { .. } => ["the plan".into(), "查看计划".into()],
            OfSaveForm::LookAgain => ["look again".into(), "重新查找".into()],
        };
        match self {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }

    /// What is wrong with the form.
    pub fn saving_mistake(self, mistake: Mistake) -> String {
        let [english, chinese]: [String; 2] = match mistake {
            Mistake::NothingChosen => {
                ["nothing is chosen: take a path in, or add one".into(), "未选择任何路径：请选择或添加".into()]
            }
            Mistake::Path(NoPath::NotAbsolute) => {
                ["a path on the machine begins with /".into(), "实例上的路径须以 / 开头".into()]
            }
            Mistake::Path(NoPath::LineBreak) => ["it holds a line break".into(), "路径含换行符".into()],
            Mistake::Path(NoPath::Dots) => {
                ["it holds . or ..: write where it leads".into(), "路径含 . 或 ..：请写实际位置".into()]
            }
            Mistake::Path(NoPath::WholeDisk) => {
                ["the whole disk: name what is worth keeping".into(), "这是整个磁盘：请指明值得保留的部分".into()]
            }
            Mistake::TooMany => [
                format!("more than {MOST} paths: write a [[checkpoint]] into the config"),
                format!("超过 {MOST} 个路径：请在配置中写 [[checkpoint]]"),
            ],
            Mistake::NoFolder => {
                ["the folder of this computer begins with / or ~".into(), "本机的目标文件夹须以 / 或 ~ 开头".into()]
            }
        };
        match self {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }

    /// How far the look is, where there is something to say of it.
    pub fn saving_look(self, look: &Look, found: bool) -> Option<String> {
        match look {
            Look::UnderWay => Some(self.of_save_form(OfSaveForm::Looking)),
            Look::Failed(trouble) => {
                Some(self.of_save_form(OfSaveForm::Failed { trouble: &self.save_trouble(trouble) }))
            }
            Look::Done => (!found).then(|| self.of_save_form(OfSaveForm::NothingFound)),
        }
    }
}
