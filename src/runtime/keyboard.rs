//! The terminal's input, read while nobody else reads it: drop it before the terminal is given away.

#[cfg(unix)]
pub use terminal_device::Keyboard;

#[cfg(not(unix))]
pub use console::Keyboard;

#[cfg(unix)]
mod terminal_device {
    use std::ffi::CStr;
    use std::io;
    use std::time::Instant;

    use rustix::fs::{Mode, OFlags, open};
    use rustix::termios::ttyname;
    use tokio::io::AsyncReadExt;
    use tokio::net::unix::pipe::Receiver;

    use crate::runtime::input::{Input, Parser};

    pub struct Keyboard {
        /// A terminal is waited for and read like the end of a pipe.
        device: Receiver,
        parser: Parser,
        /// When bytes came last.
        last: Instant,
    }

    impl Keyboard {
        /// Begins to read the terminal that is the standard input.
        pub fn open() -> io::Result<Self> {
            // Opened once more, for reads that return at once: to switch the standard input to them would switch
            // the shell's too.
            let opened = |path: &CStr| open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty());
            // Its own name may lead nowhere in a container, or belong to who has become somebody else.
            let device = ttyname(io::stdin(), Vec::new()).and_then(|name| opened(&name));
            let device = device.or_else(|_| opened(c"/dev/tty"))?;
            let device = Receiver::from_owned_fd_unchecked(device)?;
            Ok(Keyboard { device, parser: Parser::default(), last: Instant::now() })
        }

        /// The next input. Nothing is lost when it is not waited for to the end.
        pub async fn next(&mut self) -> io::Result<Input> {
            loop {
                if let Some(input) = self.parser.pop() {
                    return Ok(input);
                }
                let Some(patience) = self.parser.patience() else {
                    self.read().await?;
                    continue;
                };
                let until = self.last + patience;
                match tokio::time::timeout_at(until.into(), self.read()).await {
                    Ok(read) => read?,
                    Err(_) => self.parser.give_up(),
                }
            }
        }

        async fn read(&mut self) -> io::Result<()> {
            let mut bytes = [0; 4096];
            let read = self.device.read(&mut bytes).await?;
            if read == 0 {
                return Err(io::Error::other("the terminal is gone"));
            }
            self.last = Instant::now();
            self.parser.take(&bytes[..read]);
            Ok(())
        }
    }
}

#[cfg(not(unix))]
mod console {
    use std::io;

    use crossterm::event::EventStream;
    use futures_util::StreamExt;

    use crate::runtime::input::Input;

    pub struct Keyboard(EventStream);

    impl Keyboard {
        pub fn open() -> io::Result<Self> {
            Ok(Keyboard(EventStream::new()))
        }

        /// The next input. Nothing is lost when it is not waited for to the end.
        pub async fn next(&mut self) -> io::Result<Input> {
            match self.0.next().await {
                Some(event) => event.map(Input::Event),
                None => Err(io::Error::other("the terminal is gone")),
            }
        }
    }
}
