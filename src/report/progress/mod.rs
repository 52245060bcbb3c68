//! Progress on stderr: a live line while something is done, and one more for each piece of work that takes
//! long.
//!
//! A thread draws, so that the line also moves while nothing happens; it starts with the first thing that may
//! take long. If stderr is not a terminal, it only says which server a run is waiting for, and starts with the
//! first request. After Ctrl-C nothing is left on the screen. `state.rs` knows what is in progress.
//!
//! How that looks: a line for the whole, and up to three for what takes longest, none wider than the
//! terminal.

mod state;

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anstyle::Style;
use mu_provider::http::RequestEvent;
use mu_provider::threads::lock;

use crate::report::progress::state::WorkProgress;
use crate::report::table::{printable, size};
use crate::report::{FAINT, GOOD, HELP};

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

/// A piece of work of this age has its own line.
const LONG: Duration = Duration::from_secs(1);

/// The most pieces of work with their own line.
const MOST: usize = 3;

/// The width of a bar, and the smallest width of a terminal that shows one.
const BAR: usize = 24;
const WIDE: usize = 72;

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The terminal.
struct Screen {
    /// In characters.
    width: usize,
    has_styles: bool,
}

/// A line under construction: the text that fits, and its styles.
struct TextLine {
    room: usize,
    has_styles: bool,
    text: String,
}

impl TextLine {
    /// Adds as much text as fits.
    fn add(&mut self, style: Style, text: &str) {
        let length = text.chars().count();
        let text = if length <= self.room { text.to_owned() } else { cut(text, self.room) };
        self.room -= length.min(self.room);
        match self.has_styles {
            true => self.text.push_str(&format!("{style}{text}{style:#}")),
            false => self.text.push_str(&text),
        }
    }
}

impl Screen {
    /// The terminal on stderr.
    fn of_stderr(has_styles: bool) -> Self {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let width = size.map_or(80, |(width, _)| usize::from(width.0));
        // A line that also fills the last column wraps on some terminals.
        Self { width: if width < 2 { 80 } else { width - 1 }, has_styles }
    }

    fn line(&self) -> TextLine {
        TextLine { room: self.width, has_styles: self.has_styles, text: String::new() }
    }

    /// The lines to draw; none if nothing is in progress.
    fn lines(&self, state: &mut State, now: Instant) -> Vec<String> {
        let Some(first) = self.first(state, now) else { return Vec::new() };
        let mut lines = vec![first];
        if let Some((text, _)) = &state.note {
            let mut line = self.line();
            line.add(FAINT, &format!("  {}", printable(text).replace('\n', " ")));
            lines.push(line.text);
        }
        for (host, silent) in state.waited_for(now).into_iter().take(MOST) {
            let mut line = self.line();
            line.add(FAINT, &format!("  waiting for {host} to answer  {}", clock(silent)));
            lines.push(line.text);
        }
        let long = |work: &&WorkProgress| now.saturating_duration_since(work.since) >= LONG;
        let room = MOST.saturating_sub(lines.len() - 1);
        let long: Vec<&WorkProgress> = state.work.iter().filter(long).collect();
        lines.extend(long.iter().take(room).map(|work| self.work(work, now)));
        lines
    }

    /// The line for the whole.
    fn first(&self, state: &mut State, now: Instant) -> Option<String> {
        let speed = state.speed(now);
        let age = |since: Instant| now.saturating_duration_since(since);
        let (what, since) = match (&state.stage, state.work.first(), &state.note) {
            (Some(counted), ..) => {
                let verb = counted.stage.verb();
                let what = match counted.total {
                    0 if counted.done == 0 => verb.to_owned(),
                    0 => format!("{verb} {}", counted.done),
                    total => format!("{verb} {}/{total}", counted.done),
                };
                (what, age(counted.since))
            }
            (None, Some(work), _) => (format!("asking {}", work.shown), age(work.since)),
            (None, None, Some((_, since))) => ("waiting".to_owned(), age(*since)),
            (None, None, None) => {
                let (host, silent) = state.waited_for(now).first().copied()?;
                (format!("asking {host}"), silent)
            }
        };
        let mut line = self.line();
        let frame = state.time_in_progress(now).as_millis() / 100;
        let frame = usize::try_from(frame).unwrap_or_default() % SPINNER.len();
        line.add(HELP, &SPINNER[frame].to_string());
        line.add(Style::new(), &format!(" {}", printable(&what).replace('\n', " ")));
        if state.came() > 0 {
            line.add(FAINT, &format!("  {}", size(state.came())));
        }
        if let Some(speed) = speed {
            line.add(FAINT, &format!("  {}/s", size(speed)));
        }
        line.add(FAINT, &format!("  {}", clock(since)));
        Some(line.text)
    }

    /// The line of one piece of work.
    fn work(&self, work: &WorkProgress, now: Instant) -> String {
        let age = clock(now.saturating_duration_since(work.since));
        let (has_bar, end) = match work.total {
            Some(total) if total > 0 && work.done > 0 => {
                (self.width >= WIDE, format!("  {}/{}  {age}", size(work.done), size(total)))
            }
            _ if work.done > 0 => (false, format!("  {}  {age}", size(work.done))),
            _ => (false, format!("  {age}")),
        };
        let taken = 2 + end.chars().count() + if has_bar { BAR + 2 } else { 0 };
        let name = printable(&work.shown).replace('\n', " ");
        let mut line = self.line();
        line.add(Style::new(), &format!("  {}", cut(&name, self.width.saturating_sub(taken))));
        if let Some(total) = work.total.filter(|_| has_bar) {
            let full = work.done.min(total) as u128 * BAR as u128 / u128::from(total);
            let full = usize::try_from(full).unwrap_or(BAR);
            line.add(Style::new(), "  ");
            line.add(GOOD, &"━".repeat(full));
            line.add(FAINT, &"─".repeat(BAR - full));
        }
        line.add(FAINT, &end);
        line.text
    }
}

/// Minutes and seconds, as `0:07`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// A text without its middle, if it is longer than this many characters: names differ at their ends.
fn cut(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let Some(kept) = most.checked_sub(1) else { return String::new() };
    let head = kept / 2;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - (kept - head)).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Stage;

    fn shown(width: usize, state: &mut State, now: Instant) -> Vec<String> {
        let lines = Screen { width, has_styles: false }.lines(state, now);
        for line in &lines {
            assert!(line.chars().count() <= width, "{width}: `{line}`");
        }
        lines
    }

    #[test]
    fn what_is_old_has_a_line_and_fits_the_terminal() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut state = State::default();
        state.step(Stage::Fetching, 2, 7, begin);
        for number in 0..5 {
            state.begins(
                &format!("git.acme.example/platform/networking/module-{number} 1.0.0"),
                begin,
            );
        }
        assert_eq!(shown(100, &mut state, begin), ["⠋ fetching 2/7  0:00"]);
        let name = "git.acme.example/platform/networking/module-0 1.0.0";
        state.bytes(name, 1 << 20, Some(4 << 20), at(1));
        let lines = shown(100, &mut state, at(28));
        assert_eq!((lines.len(), &*lines[0]), (4, "⠋ fetching 2/7  1.0 MiB  0:28"));
        assert_eq!(
            lines[1],
            "  git.acme.example/platfor…etworking/module-0 1.0.0  ━━━━━━──────────────────  1.0 MiB/4.0 MiB  0:28"
        );
        assert_eq!(shown(40, &mut state, at(28))[1], "  git.acm…0 1.0.0  1.0 MiB/4.0 MiB  0:28");
        (1..30).for_each(|width| drop(shown(width, &mut state, at(28))));
        state.ends(name);
        state.doing("git.acme.example/platform/networking/module-1 1.0.0", "cloning here");
        assert_eq!(shown(80, &mut state, at(29))[1], "  cloning here  0:29");
        state.clear_work();
        assert_eq!(shown(80, &mut state, at(29)), [""; 0]);
    }

    #[test]
    fn what_is_waited_for_is_one_line_that_changes() {
        let now = Instant::now();
        let mut state = State::default();
        state.waiting("another mu process is pruning the store", now);
        assert_eq!(shown(80, &mut state, now)[0], "⠋ waiting  0:00");
        let repeated = |attempt| mu_provider::http::RequestEvent::Repeated {
            reason: "`http://x/` answered 503",
            attempt,
            attempts: 4,
            pause: Duration::from_millis(250),
        };
        state.request(&repeated(1), now);
        state.request(&repeated(2), now);
        let lines = shown(80, &mut state, now);
        assert_eq!(lines[1..], ["  `http://x/` answered 503; attempt 3 of 4 in 0.2 s"]);
        let plain = [1, 2].map(|attempt| state.first_repetition(&repeated(attempt)));
        let line = "waiting: `http://x/` answered 503; trying again";
        assert_eq!(plain, [Some(line.to_owned()), None]);
    }

    #[test]
    fn the_middle_of_long_names_is_left_out() {
        assert_eq!((cut("aws/ec2", 7), cut("aws/ec2", 6)), ("aws/ec2".into(), "aw…ec2".into()));
        assert_eq!((cut("aws/ec2", 1), cut("aws/ec2", 0)), ("…".into(), String::new()));
    }
}
