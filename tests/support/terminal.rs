//! The real binary in a pseudo-terminal: keys go in, the screen is read back. Waits for text, never sleeps
//! for its own sake.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::{Lab, binary};

/// The longest wait for something that must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the terminal answers when it is asked.
#[derive(Clone, Copy)]
pub struct Answers {
    /// What it is, and where its cursor is.
    pub attributes: bool,
    /// That it knows the kitty keyboard protocol.
    pub keyboard: bool,
    /// Its background, as in `rgb:ffff/ffff/ffff`.
    pub background: Option<&'static str>,
    /// It draws doubtful signs in two cells.
    pub wide: bool,
}

impl Answers {
    /// A terminal as most are.
    pub const USUAL: Answers =
        Answers { attributes: true, keyboard: false, background: Some("rgb:1e1e/1e1e/1e1e"), wide: false };
    /// One that says nothing.
    pub const SILENT: Answers = Answers { attributes: false, keyboard: false, background: None, wide: false };
    /// One with the kitty keyboard protocol.
    pub const KITTY: Answers = Answers { keyboard: true, ..Answers::USUAL };
}

const ASKS: [&str; 4] = ["\x1b[c", "\x1b[?u", "\x1b]11;?\x1b\\", "\x1b[6n"];

pub struct Terminal {
    screen: vt100::Parser,
    output: Receiver<Vec<u8>>,
    /// Everything that the program ever wrote.
    pub written: Vec<u8>,
    answers: Answers,
    /// So much of what was written was looked through for questions.
    answered: usize,
    input: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    pub child: Box<dyn Child + Send + Sync>,
}

impl Terminal {
    /// Starts the binary over a lab.
    pub fn start(lab: &Lab, args: &[&str], width: u16, height: u16) -> Self {
        Self::spawn(Self::command(lab, args), width, height)
    }

    /// The binary over a lab, ready to be started.
    pub fn command(lab: &Lab, args: &[&str]) -> CommandBuilder {
        let mut command = CommandBuilder::new(binary());
        command.args(args);
        command.env_clear();
        for (name, value) in lab.environment() {
            command.env(name, value);
        }
        command
    }

    pub fn spawn(command: CommandBuilder, width: u16, height: u16) -> Self {
        Self::spawn_with(Answers::USUAL, command, width, height)
    }

    /// Starts a program in a terminal that answers like this.
    pub fn spawn_with(answers: Answers, command: CommandBuilder, width: u16, height: u16) -> Self {
        let size = PtySize { rows: height, cols: width, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let input = pair.master.take_writer().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0u8; 8192];
            while let Ok(read) = reader.read(&mut buffer) {
                if read == 0 || sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let cells = |n| NonZeroU16::new(n).unwrap();
        Terminal {
            screen: vt100::Parser::new(cells(height), cells(width), 0),
            output,
            written: Vec::new(),
            answers,
            answered: 0,
            input,
            master: pair.master,
            child,
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.master.resize(PtySize { rows: height, cols: width, pixel_width: 0, pixel_height: 0 }).unwrap();
        let cells = |n| NonZeroU16::new(n).unwrap();
        self.screen.screen_mut().set_size(cells(height), cells(width));
    }

    /// Everything that the program ever wrote, as text.
    pub fn wrote(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// The screen as text.
    pub fn text(&self) -> String {
        self.screen.screen().contents().to_owned()
    }

    pub fn screen(&self) -> &vt100::Screen {
        self.screen.screen()
    }

    /// Waits until the screen satisfies `done`.
    #[track_caller]
    pub fn wait(&mut self, what: &str, done: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let text = self.text();
            if done(&text) {
                return text;
            }
            if began.elapsed() > PATIENCE {
                panic!("waited for {what}; the screen is:\n{text}");
            }
            match self.output.recv_timeout(Duration::from_millis(100)) {
                Ok(bytes) => self.receive(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let text = self.text();
                    assert!(done(&text), "waited for {what}; the program ended with:\n{text}");
                    return text;
                }
            }
        }
    }

    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        self.wait(&format!("`{text}`"), |screen| screen.contains(text))
    }

    /// Waits for the program's end and takes in the rest of its output.
    #[track_caller]
    pub fn wait_end(&mut self) -> portable_pty::ExitStatus {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end; the screen is:\n{}", self.text());
            self.take(Duration::from_millis(20));
        };
        while self.take(Duration::from_millis(200)) {}
        status
    }

    /// Takes in what comes next; false when nothing comes for so long.
    pub fn take(&mut self, patience: Duration) -> bool {
        match self.output.recv_timeout(patience) {
            Ok(bytes) => {
                self.receive(&bytes);
                true
            }
            Err(_) => false,
        }
    }

    /// Draws what the program wrote, and answers what it asked on the way.
    fn receive(&mut self, bytes: &[u8]) {
        let mut drawn = self.written.len();
        self.written.extend_from_slice(bytes);
        while let Some((end, asked)) = self.question() {
            // Its last byte came now, so nothing behind it is drawn yet.
            self.screen.process(&self.written[drawn..end]);
            drawn = end;
            self.answered = end;
            self.answer(asked);
        }
        self.screen.process(&self.written[drawn..]);
    }

    /// The next question: where it ends, and which it is.
    fn question(&self) -> Option<(usize, &'static str)> {
        let rest = &self.written[self.answered..];
        let found = ASKS.iter().filter_map(|asked| {
            let at = rest.windows(asked.len()).position(|window| window == asked.as_bytes())?;
            Some((self.answered + at + asked.len(), *asked))
        });
        found.min()
    }

    fn answer(&mut self, asked: &str) {
        let Answers { attributes, keyboard, background, wide } = self.answers;
        let answer = match asked {
            "\x1b[c" if attributes => "\x1b[?62;22c".to_owned(),
            "\x1b[?u" if keyboard => "\x1b[?0u".to_owned(),
            "\x1b[6n" if attributes => {
                let (row, column) = self.screen().cursor_position();
                format!("\x1b[{};{}R", row + 1, if wide { 2 * column + 1 } else { column + 1 })
            }
            asked if asked.starts_with("\x1b]11;") => {
                background.map(|background| format!("\x1b]11;{background}\x1b\\")).unwrap_or_default()
            }
            _ => String::new(),
        };
        // Nobody may be there any more to hear it.
        drop(self.input.write_all(answer.as_bytes()).and_then(|()| self.input.flush()));
    }

    /// Takes in all that comes within a time. Returns how many bytes that were.
    pub fn listen(&mut self, time: Duration) -> usize {
        let (before, until) = (self.written.len(), Instant::now() + time);
        while let Some(rest) = until.checked_duration_since(Instant::now()) {
            self.take(rest);
        }
        self.written.len() - before
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.process_id().unwrap().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Sends SIGCONT until the screen satisfies `done`: one that comes before the process has stopped is lost.
    #[track_caller]
    pub fn wake_until(&mut self, what: &str, done: impl Fn(&vt100::Screen) -> bool) {
        let began = Instant::now();
        while !done(self.screen()) {
            assert!(began.elapsed() < PATIENCE, "waited for {what}; the screen is:\n{}", self.text());
            self.signal("CONT");
            self.take(Duration::from_millis(200));
        }
    }

    /// Waits until the terminal is raw (keys come one by one, without echo), or until it is not.
    #[track_caller]
    pub fn wait_raw(&mut self, raw: bool) {
        let began = Instant::now();
        while self.is_raw() != raw {
            assert!(began.elapsed() < PATIENCE, "the terminal's mode stays; the screen is:\n{}", self.text());
            self.take(Duration::from_millis(50));
        }
    }

    /// Waits until the program has written this, whatever the screen made of it.
    #[track_caller]
    pub fn wait_written(&mut self, text: &str) {
        let began = Instant::now();
        while !self.wrote().contains(text) {
            assert!(began.elapsed() < PATIENCE, "{text:?} is not written; the screen is:\n{}", self.text());
            self.take(Duration::from_millis(50));
        }
    }

    /// All modes of the terminal, in `stty`'s own words.
    pub fn modes(&self) -> String {
        self.stty("-g")
    }

    fn is_raw(&self) -> bool {
        let modes = self.stty("-a");
        modes.split_whitespace().any(|word| word.trim_end_matches(';') == "-icanon")
    }

    /// What a shell does to the terminal when a program is stopped: `stty sane`.
    pub fn make_sane(&self) {
        self.stty("sane");
    }

    fn stty(&self, what: &str) -> String {
        let name = self.master.tty_name().unwrap();
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", "stty \"$1\" < \"$0\""]).arg(name).arg(what).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The line of the screen on which the cursor's bar stands.
    pub fn bar(&self) -> Option<usize> {
        bar(&self.text())
    }

    /// Waits until the bar stands on another line.
    #[track_caller]
    pub fn wait_moved(&mut self, from: Option<usize>) {
        self.wait("the cursor to move", |text| bar(text) != from);
    }

    /// The line of the cursor, without the bar before it.
    pub fn row(&self) -> Option<String> {
        self.text().lines().find_map(|line| line.strip_prefix(BARS).map(str::to_owned))
    }

    /// Moves the cursor down to the row that holds this text.
    #[track_caller]
    pub fn select(&mut self, name: &str) {
        let head = |text: &str| text.lines().position(|line| line.contains("NAME") || line.contains("名称"));
        self.wait_for(name);
        self.press("\x1b[H");
        self.wait("the first row", |text| head(text).is_some_and(|head| bar(text) == Some(head + 1)));
        loop {
            let row = self.row().expect("a row was waited for");
            if row.contains(name) {
                return;
            }
            let at = bar(&self.text());
            self.press("j");
            self.wait(&format!("the row of {name}"), |text| bar(text) > at);
        }
    }
}

/// The cursor's bar, and what stands for it where there is only ASCII.
const BARS: [char; 2] = ['▌', '>'];

/// The line of the screen on which the cursor's bar stands.
fn bar(text: &str) -> Option<usize> {
    text.lines().position(|line| line.starts_with(BARS))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        drop(self.child.kill());
    }
}
