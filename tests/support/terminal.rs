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

pub struct Terminal {
    screen: vt100::Parser,
    output: Receiver<Vec<u8>>,
    /// Everything that the program ever wrote.
    pub written: Vec<u8>,
    input: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    pub child: Box<dyn Child + Send + Sync>,
}

impl Terminal {
    /// Starts the binary over a lab.
    pub fn start(lab: &Lab, args: &[&str], width: u16, height: u16) -> Self {
        let mut command = CommandBuilder::new(binary());
        command.args(args);
        command.env_clear();
        for (name, value) in lab.environment() {
            command.env(name, value);
        }
        Self::spawn(command, width, height)
    }

    pub fn spawn(command: CommandBuilder, width: u16, height: u16) -> Self {
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
                Ok(bytes) => {
                    self.written.extend_from_slice(&bytes);
                    self.screen.process(&bytes);
                }
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

    fn take(&mut self, patience: Duration) -> bool {
        match self.output.recv_timeout(patience) {
            Ok(bytes) => {
                self.written.extend_from_slice(&bytes);
                self.screen.process(&bytes);
                true
            }
            Err(_) => false,
        }
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.process_id().unwrap().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        drop(self.child.kill());
    }
}
