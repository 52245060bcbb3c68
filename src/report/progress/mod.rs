//! Progress on stderr: a live line while something is done, and one more for each piece of work that takes
//! long.
//!
//! A thread draws, so that the line also moves while nothing happens; it starts with the first thing that may
//! take long. If stderr is not a terminal, it only says which server a run is waiting for, and starts with the
//! first request. After Ctrl-C nothing is left on the screen. `state.rs` knows what is in progress, `frame.rs`
//! how that looks.

mod frame;
mod state;

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use mu_provider::http::RequestEvent;
use mu_provider::threads::lock;

use self::frame::Screen;
pub(super) use self::state::State;

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Short work should not make the screen flicker.
const FIRST: Duration = Duration::from_millis(150);

/// The progress of one run.
pub(super) struct ProgressLine {
    shared: Option<Arc<Shared>>,
}

struct Shared {
    is_terminal: bool,
    has_styles: bool,
    drawing: Mutex<Drawing>,
    wake: Condvar,
    /// Ctrl-C was pressed.
    interrupted: Arc<AtomicBool>,
}

#[derive(Default)]
struct Drawing {
    state: State,
    /// How many lines are on the screen.
    lines: usize,
    /// Whether the thread runs.
    is_running: bool,
    /// Whether something else writes to the terminal.
    is_held: bool,
    is_over: bool,
}

impl ProgressLine {
    /// `is_said`: whether anything is printed meanwhile; `is_drawn`: whether the line may be drawn, if stderr
    /// is a terminal.
    pub(super) fn new(is_said: bool, is_drawn: bool, has_styles: bool) -> Self {
        let shared = is_said.then(|| {
            Arc::new(Shared {
                is_terminal: is_drawn && std::io::stderr().is_terminal(),
                has_styles,
                drawing: Mutex::default(),
                wake: Condvar::new(),
                interrupted: Arc::default(),
            })
        });
        Self { shared }
    }

    /// Whether transient texts are part of the live line.
    pub(super) fn is_drawn(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.is_terminal)
    }

    /// Something happened to a request.
    pub(super) fn request(&self, event: &RequestEvent<'_>) {
        let mut line = None;
        self.change(|state, now| {
            state.request(event, now);
            line = state.first_repetition(event);
        });
        if let Some(line) = line.filter(|_| !self.is_drawn()) {
            write(&format!("{line}\n"));
        }
    }

    /// Changes what is in progress, at the time that `change` is given.
    pub(super) fn change(&self, change: impl FnOnce(&mut State, Instant)) {
        let Some(shared) = &self.shared else { return };
        let mut drawing = lock(&shared.drawing);
        change(&mut drawing.state, Instant::now());
        let is_due = shared.is_terminal || drawing.state.is_requesting();
        if is_due && !drawing.is_running && !drawing.is_over {
            drawing.is_running = true;
            drop(drawing);
            shared.start();
        }
    }

    /// Clears the lines, so that other text can be printed.
    pub(super) fn clear(&self) {
        self.clear_and(|_| {});
    }

    /// Clears the lines, because the work is done.
    pub(super) fn done(&self) {
        self.clear_and(|drawing| drawing.state.clear_work());
    }

    /// Draws nothing while the returned value lives: something else has the terminal.
    pub(super) fn hold(&self) -> PausedProgress<'_> {
        self.set_held(true);
        PausedProgress(self)
    }

    fn set_held(&self, is_held: bool) {
        self.clear_and(|drawing| drawing.is_held = is_held);
    }

    /// Ends it for good.
    pub(super) fn end(&self) {
        self.clear_and(|drawing| drawing.is_over = true);
        self.shared.iter().for_each(|shared| shared.wake.notify_all());
    }

    fn clear_and(&self, change: impl FnOnce(&mut Drawing)) {
        if let Some(shared) = &self.shared {
            let mut drawing = lock(&shared.drawing);
            shared.clear(&mut drawing);
            change(&mut drawing);
        }
    }
}

/// See [`ProgressLine::hold`].
pub(super) struct PausedProgress<'line>(&'line ProgressLine);

impl Drop for PausedProgress<'_> {
    fn drop(&mut self) {
        self.0.set_held(false);
    }
}

impl Shared {
    /// Starts the thread that draws. If no thread can be started, nothing is drawn.
    fn start(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        let _ = std::thread::Builder::new().name("mu-progress".to_owned()).spawn(move || {
            shared.watch_for_interrupts();
            shared.run();
        });
    }

    fn run(&self) {
        let mut drawing = lock(&self.drawing);
        while !drawing.is_over {
            if self.interrupted.load(Ordering::SeqCst) {
                self.interrupt(drawing);
                return;
            }
            self.tick(&mut drawing);
            let waited = self.wake.wait_timeout(drawing, TICK);
            drawing = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    fn tick(&self, drawing: &mut Drawing) {
        let now = Instant::now();
        if drawing.is_held {
            return;
        }
        if !self.is_terminal {
            for line in drawing.state.slow_servers(now) {
                write(&format!("{line}\n"));
            }
            return;
        }
        if drawing.state.time_in_progress(now) < FIRST {
            return;
        }
        let screen = Screen::of_stderr(self.has_styles);
        let lines = screen.lines(&mut drawing.state, now);
        if lines.is_empty() && drawing.lines == 0 {
            return;
        }
        write(&format!("{}{}", erased(drawing.lines), lines.join("\r\n")));
        drawing.lines = lines.len();
    }

    fn clear(&self, drawing: &mut Drawing) {
        if drawing.lines > 0 {
            write(&erased(drawing.lines));
            drawing.lines = 0;
        }
    }

    /// Ends the process as Ctrl-C does, with no stale progress left on the screen.
    #[cfg(unix)]
    fn interrupt(&self, mut drawing: MutexGuard<'_, Drawing>) {
        self.clear(&mut drawing);
        write("interrupted\n");
        // Shells recognize by the signal that the user ended it, and end their loops; they show 130. The lock
        // is held, so nothing else is drawn meanwhile.
        let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGINT);
    }

    #[cfg(not(unix))]
    fn interrupt(&self, mut drawing: MutexGuard<'_, Drawing>) {
        self.clear(&mut drawing);
    }

    #[cfg(unix)]
    fn watch_for_interrupts(&self) {
        use signal_hook::consts::SIGINT;
        use signal_hook::flag;

        // Until all is registered, an interrupt ends the process at once, as it would without this; afterwards the
        // second one does, whatever this thread does. No interrupt is lost in between.
        let ends = Arc::new(AtomicBool::new(true));
        let registered = flag::register_conditional_default(SIGINT, Arc::clone(&ends))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&self.interrupted)))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&ends)));
        if registered.is_ok() {
            ends.store(false, Ordering::SeqCst);
        }
    }

    #[cfg(not(unix))]
    fn watch_for_interrupts(&self) {}
}

/// The escape that clears the last `lines` lines of a terminal.
fn erased(lines: usize) -> String {
    match lines {
        0 => String::new(),
        1 => "\r\u{1b}[J".to_owned(),
        more => format!("\r\u{1b}[{}A\u{1b}[J", more - 1),
    }
}

fn write(text: &str) {
    // There is no way to report that stderr is closed.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
