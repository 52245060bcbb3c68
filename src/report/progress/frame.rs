//! The form of progress: a line for the whole, and up to three for what takes longest, none wider than the
//! terminal.

use std::time::{Duration, Instant};

use anstyle::Style;

use super::state::{State, WorkProgress};
use crate::report::text::{printable, size};
use crate::report::{FAINT, GOOD, HELP};

/// A piece of work of this age has its own line.
const LONG: Duration = Duration::from_secs(1);

/// The most pieces of work with their own line.
const MOST: usize = 3;

/// The width of a bar, and the smallest width of a terminal that shows one.
const BAR: usize = 24;
const WIDE: usize = 72;

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The terminal.
pub(super) struct Screen {
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
    pub(super) fn of_stderr(has_styles: bool) -> Self {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let width = size.map_or(80, |(width, _)| usize::from(width.0));
        // A line that also fills the last column wraps on some terminals.
        Self { width: if width < 2 { 80 } else { width - 1 }, has_styles }
    }

    fn line(&self) -> TextLine {
        TextLine { room: self.width, has_styles: self.has_styles, text: String::new() }
    }

    /// The lines to draw; none if nothing is in progress.
    pub(super) fn lines(&self, state: &mut State, now: Instant) -> Vec<String> {
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
