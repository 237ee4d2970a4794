//! TUI-01: whatever goes wrong while the screen is up, the terminal is the shell's again and the message can be
//! read. The program under test is this very file, started once more in a pseudo-terminal: the real loop, with
//! something that fails where frames are painted.

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod support;

#[cfg(unix)]
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, flag, way, folder] = &args[..]
        && flag == program::FLAG
    {
        std::process::exit(program::run(way, folder.as_ref()));
    }
    // As other tests: words are parts of names.
    let words: Vec<&String> = args[1..].iter().filter(|arg| !arg.starts_with('-')).collect();
    for (way, said) in checks::WAYS {
        if words.is_empty() || words.iter().any(|word| way.contains(word.as_str())) {
            checks::check(way, said);
            println!("test {way} ... ok");
        }
    }
}

/// The loop of the screen, and what goes wrong in it.
#[cfg(unix)]
mod program {
    use std::cell::Cell;
    use std::path::Path;

    use rentop::app::state::{Fixed, State, View, World};
    use rentop::config::{Config, Language};
    use rentop::rules::memory::Owner;
    use rentop::rules::settings::Rules;
    use rentop::runtime::accounts::Accounts;
    use rentop::runtime::channels::Channels;
    use rentop::runtime::checkpoint::Copies;
    use rentop::runtime::effects::Performer;
    use rentop::runtime::jobs::Jobs;
    use rentop::runtime::keeper::Keeper;
    use rentop::runtime::screen::{self, Ended, Given};
    use rentop::runtime::streams::Streams;
    use rentop::runtime::{Inbox, clock};
    use rentop::ui::{self, Look};

    pub const FLAG: &str = "--go-wrong";

    pub fn run(way: &str, folder: &Path) -> i32 {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let ended = runtime.block_on(screen(way, folder));
        runtime.shutdown_timeout(std::time::Duration::from_millis(100));
        match ended {
            Ok(Ended::Left) => 0,
            Ok(Ended::Signal) => 1,
            Err(error) => {
                eprintln!("the program says: {error:#}");
                1
            }
        }
    }

    async fn screen(way: &str, folder: &Path) -> anyhow::Result<Ended> {
        let owner = Owner { host: "test".to_owned(), pid: std::process::id() };
        let (mut inbox, outbox) = Inbox::new();
        let keeper = Keeper::start(folder.to_owned(), owner, outbox.clone(), false)?;
        let streams = Streams::new(Default::default(), outbox.clone());
        let performer = Performer {
            accounts: Accounts::new([]),
            keeper,
            copies: Copies::new(&streams, outbox.clone()),
            jobs: Jobs::new(&streams, outbox.clone()),
            streams,
            channels: Channels::new(&Config::default(), Language::English, false, outbox.clone()),
            outbox,
            read_only: false,
            preferences: None,
        };
        let fixed = Fixed::default();
        let world = World::new(Vec::new(), Rules::default(), false, "test".to_owned(), clock::now());
        let mut state = State { world, view: View::new(fixed, Vec::new()), leaving: false };
        let mut look = Look::of_environment(Language::English, &|name| std::env::var_os(name));
        let done = Cell::new(false);
        let given = Given {
            look: &mut look,
            ask: true,
            mouse: true,
            config: folder,
            paint: &|frame, state, look, now| {
                let text_top = ui::draw(frame, state, look, now);
                // The first frame is whole, and the help window is asked for when the test is ready.
                if !state.view.modals.is_empty() && !done.replace(true) {
                    go_wrong(way);
                }
                text_top
            },
            add: &|_| Err("nothing is added here".to_owned()),
        };
        let ended = screen::run(&mut state, &performer, &mut inbox, given).await;
        performer.keeper.end(state.world.collects());
        ended
    }

    fn go_wrong(way: &str) {
        match way {
            "a panic while painting" => panic!("no frame today"),
            "a panic of a background task" => drop(tokio::spawn(async { panic!("no task today") })),
            "a panic of a thread" => drop(std::thread::spawn(|| panic!("no thread today"))),
            "an output that is full" => {
                rustix::stdio::dup2_stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()).unwrap();
            }
            "an output that is closed" => {
                let (reader, writer) = std::io::pipe().unwrap();
                drop(reader);
                rustix::stdio::dup2_stdout(writer).unwrap();
            }
            _ => {}
        }
    }
}

#[cfg(unix)]
mod checks {
    use portable_pty::CommandBuilder;

    use super::program::FLAG;
    use super::support::terminal::{Answers, Terminal};

    /// What goes wrong, and what is said about it.
    pub const WAYS: [(&str, &str); 6] = [
        ("a panic while painting", "no frame today"),
        ("a panic of a background task", "the program says: a background task failed: "),
        ("a panic of a thread", "no thread today"),
        ("an output that is full", "the program says: No space left on device"),
        ("an output that is closed", "the program says: Broken pipe"),
        ("nothing", ""),
    ];

    pub fn check(way: &str, said: &str) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args([FLAG, way, folder.path().to_str().unwrap()]);
        command.env_clear();
        for (name, value) in [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("RUST_BACKTRACE", "0")] {
            command.env(name, value);
        }
        let mut sleep = CommandBuilder::new("sleep");
        sleep.arg("60");
        let before = Terminal::spawn(sleep, 100, 30).modes();

        let mut terminal = Terminal::spawn_with(Answers::KITTY, command, 100, 30);
        // Keyboard, mouse, paste and screen are all on when it happens.
        terminal.wait_written("\x1b[>7u");
        terminal.press("?");
        if way == "nothing" {
            terminal.wait_for("Help");
            terminal.press("\x03");
        }
        let code = terminal.wait_end().exit_code();
        assert_eq!(code == 0, way == "nothing", "{way}: ended with {code}");

        let written = terminal.wrote();
        let count = |text: &str| written.matches(text).count();
        for (on, off) in [
            ("\x1b[?1049h", "\x1b[?1049l"),
            ("\x1b[?1000h", "\x1b[?1000l"),
            ("\x1b[?1006h", "\x1b[?1006l"),
            ("\x1b[?2004h", "\x1b[?2004l"),
            ("\x1b[>7u", "\x1b[<1u"),
        ] {
            assert_eq!((count(on), count(off)), (1, 1), "{way}: {on:?} is taken back once");
        }
        let after = written.split("\x1b[?1049l").nth(1).unwrap();
        assert!(after.contains("\x1b[?25h"), "{way}: the cursor is hidden");
        assert!(after.contains(said) && terminal.text().contains(said), "{way}: {after:?}");
        assert!(count(said) == 1 || said.is_empty(), "{way}: it is said more than once");
        let screen = terminal.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste(), "{way}");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "{way}");
        assert_eq!(terminal.modes(), before, "{way}: the terminal's modes");
    }
}
