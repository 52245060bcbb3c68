//! A link to a program that this process started: `ssh`, or `git upload-pack`.

use std::io::{self, Read, Write as _};
#[cfg(unix)]
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mu_provider::ProviderError;
use mu_provider::threads::start;
#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(unix)]
use rustix::io::retry_on_intr;

use super::session::{Connected, Link, Session};
use crate::remote_url::RemoteUrl;
use crate::wire::{Handshake, WireError};
use crate::words::printable_end;

/// How a program ended, for code that can interpret it.
#[derive(Debug)]
pub(super) struct Ending {
    /// Its exit code, if it exited.
    pub(super) code: Option<i32>,
    /// The end of its standard error.
    pub(super) words: String,
    /// The error in the conversation.
    pub(super) error: WireError,
}

/// Turns the ending of a program into an error.
pub(super) type Explain = fn(&RemoteUrl, Ending) -> ProviderError;

/// A running program.
#[derive(Debug)]
pub(super) struct Pipe {
    remote: RemoteUrl,
    child: Child,
    input: Option<ChildStdin>,
    output: Patient<ChildStdout>,
    words: Receiver<Vec<u8>>,
    explain: Explain,
}

/// Starts `command` and begins a conversation with it.
///
/// The outer error is that the program could not be started.
pub(super) fn open(
    remote: &RemoteUrl,
    mut command: Command,
    explain: Explain,
) -> io::Result<Result<Box<dyn Session>, ProviderError>> {
    let mut child = command.spawn()?;
    let (Some(input), Some(output), Some(words)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("a program without pipes"));
    };
    let mut pipe = Pipe {
        remote: remote.clone(),
        child,
        input: Some(input),
        output: Patient(output),
        words: collect(words),
        explain,
    };
    Ok(match Handshake::receive(&mut pipe.output) {
        Ok(handshake) => Ok(Box::new(Connected::new(remote, pipe, handshake))),
        Err(error) => Err(pipe.explain(error)),
    })
}

/// Keeps the end of a program's standard error, so that the program never blocks there.
fn collect(mut words: ChildStderr) -> Receiver<Vec<u8>> {
    const KEPT: usize = 4 << 10;
    let (sender, receiver) = channel();
    // Without a thread, nobody reads it, and nobody is told.
    let _ = start(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 1 << 10];
        while let Ok(count @ 1..) = words.read(&mut buffer) {
            kept.extend(buffer.iter().take(count));
            let surplus = kept.len().saturating_sub(KEPT);
            kept.drain(..surplus);
        }
        // Nobody listens if the conversation succeeded.
        let _ = sender.send(kept);
    });
    receiver
}

/// Reads from a program that is not waited for without end.
#[derive(Debug)]
struct Patient<R>(R);

/// How long a program may be silent, if that can be measured. The other end of ssh may be anybody's.
#[cfg(unix)]
const SILENCE: Duration = Duration::from_secs(120);

#[cfg(unix)]
impl<R: Read + AsFd> Read for Patient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        wait(&self.0, SILENCE)?;
        self.0.read(buffer)
    }
}

/// On systems that cannot wait for a pipe with a timeout, it is read as long as the program runs.
#[cfg(not(unix))]
impl<R: Read> Read for Patient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Waits until there is something to read, or the end.
#[cfg(unix)]
fn wait(pipe: &impl AsFd, patience: Duration) -> io::Result<()> {
    let mut pipes = [PollFd::new(pipe, PollFlags::IN)];
    let limit = Timespec::try_from(patience).expect("minutes fit");
    match retry_on_intr(|| poll(&mut pipes, Some(&limit)))? {
        0 => Err(io::Error::other(WireError::Silent(patience.as_secs()))),
        _ => Ok(()),
    }
}

impl Link for Pipe {
    fn request(&mut self, request: Vec<u8>) -> Result<Box<dyn Read + '_>, ProviderError> {
        let sent = match &mut self.input {
            Some(input) => input.write_all(&request).and_then(|()| input.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        match sent {
            Ok(()) => Ok(Box::new(&mut self.output)),
            Err(error) => Err(self.explain(error.into())),
        }
    }

    fn explain(&mut self, error: WireError) -> ProviderError {
        // The program's last output is worth a short wait, but its child process may keep the pipe open.
        const MOMENT: Duration = Duration::from_secs(2);
        self.input = None;
        let words = self.words.recv_timeout(MOMENT).unwrap_or_default();
        // A program that has ended already keeps its code.
        let _ = self.child.kill();
        let code = self.child.wait().ok().and_then(|status| status.code());
        (self.explain)(&self.remote, Ending { code, words: printable_end(&words), error })
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.input = None;
        // It has nothing left to do, and an error here would change nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_says_nothing_is_not_waited_for() {
        let (reader, writer) = io::pipe().expect("there is room");
        let error = wait(&reader, Duration::ZERO).expect_err("nothing comes");
        assert!(matches!(error.into(), WireError::Silent(0)));
        drop(writer);
        wait(&reader, SILENCE).expect("it is over");
        assert_eq!(Patient(reader).read(&mut [0; 8]).expect("can be read"), 0);
    }
}
