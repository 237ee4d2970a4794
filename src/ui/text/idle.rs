//! The list of all idle ones, in both languages.

use super::Language;

/// A text of the list.
#[derive(Clone, Copy, Debug)]
pub enum OfIdle<'a> {
    /// Of the window: how many, and what they cost an hour where that is known.
    Title {
        count: usize,
        rate: Option<&'a str>,
    },
    /// Since when one does nothing.
    For {
        span: &'a str,
    },
    /// Who is logged in to it, by their names.
    LoggedIn {
        names: &'a str,
    },
    /// What a stop saves an hour; `None` where that is not known.
    Stop {
        saves: Option<&'a str>,
    },
    /// The same, and what it has on its disk is lost.
    StopLoses {
        saves: Option<&'a str>,
    },
    /// What is brought to safety before it is released.
    Save {
        paths: &'a str,
    },
    /// Those that nothing is done to.
    LeftAlone {
        count: usize,
    },
    /// The answers, with how many of them each is about.
    StopAll {
        count: usize,
    },
    SaveAll {
        count: usize,
    },
}

impl Language {
    pub fn of_idle(self, of: OfIdle<'_>) -> String {
        let [english, chinese] = match of {
            OfIdle::Title { count, rate } => {
                let english = if count == 1 { "1 idle instance".to_owned() } else { format!("{count} idle instances") };
                let rate = |joint: &str| rate.map(|rate| format!("{joint}{rate}")).unwrap_or_default();
                [english + &rate(", "), format!("{count} 个空闲实例{}", rate("，"))]
            }
            OfIdle::For { span } => [format!("idle for {span}"), format!("已空闲 {span}")],
            OfIdle::LoggedIn { names: "" } => ["nobody logged in".to_owned(), "无人登录".to_owned()],
            OfIdle::LoggedIn { names } => [format!("logged in: {names}"), format!("登录者：{names}")],
            OfIdle::Stop { saves: Some(saves) } => [format!("stop, saves {saves}"), format!("停止，节省 {saves}")],
            OfIdle::Stop { saves: None } => ["stop".to_owned(), "停止".to_owned()],
            OfIdle::StopLoses { saves } => {
                let saves = |word: &str| saves.map(|saves| format!("{word}{saves}")).unwrap_or_default();
                [
                    format!("stop{}, and lose what is on its disk", saves(", saves ")),
                    format!("停止{}，磁盘数据将丢失", saves("，节省 ")),
                ]
            }
            OfIdle::Save { paths } => [format!("save {paths}, then release"), format!("保存 {paths}，然后释放")],
            OfIdle::LeftAlone { count } => [format!("left alone: {count}"), format!("不予处理：{count} 个")],
            OfIdle::StopAll { count } => [format!("stop all ({count})"), format!("全部停止（{count} 个）")],
            OfIdle::SaveAll { count } => {
                [format!("save and release all ({count})"), format!("全部保存并释放（{count} 个）")]
            }
        };
        match self {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }
}
