//! The terminal: raw keys, frames drawn in place, and everything as it was at the end, however that comes.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, terminal};

use super::line::{Line, Style};
use super::render::fit;

/// What a person can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// Stop time, or let it go on.
    Pause,
    /// Twice as fast.
    Faster,
    /// Half as fast.
    Slower,
    /// As fast as what happens allows.
    Automatic,
    /// On to the next thing that happens.
    Next,
    /// Show or hide the oracles.
    Oracles,
    /// Enough.
    Quit,
}

/// A terminal that is drawn on.
pub(crate) struct Screen {
    style: Style,
}

impl Screen {
    /// Takes the terminal over.
    pub(crate) fn take(style: Style) -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        // From here on dropping gives it back.
        let screen = Self { style };
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        give_back_on_panic();
        Ok(screen)
    }

    /// Draws a frame over the last one.
    pub(crate) fn draw(&self, lines: Vec<Line>) -> io::Result<()> {
        let (_, height) = terminal::size().unwrap_or((80, 24));
        let mut frame = String::from("\u{1b}[?2026h\u{1b}[H");
        for (index, line) in fit(lines, usize::from(height)).iter().enumerate() {
            if index > 0 {
                frame.push_str("\r\n");
            }
            frame.push_str(&line.paint(self.style));
            frame.push_str("\u{1b}[K");
        }
        frame.push_str("\u{1b}[J\u{1b}[?2026l");
        let mut out = io::stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let _ = execute!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}

/// A panic's message is of no use on a screen that goes away.
fn give_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
    }));
}

/// How wide the terminal is.
pub(crate) fn width() -> usize {
    terminal::size().map_or(100, |(width, _)| usize::from(width).max(1))
}

/// Whether frames can be drawn.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal() && std::env::var("TERM").is_ok_and(|term| term != "dumb")
}

/// Waits for keys, for this long in real time, and gives what was asked for.
pub(crate) fn listen(time: Duration) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut wait = time;
    while matches!(event::poll(wait), Ok(true)) {
        match event::read() {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => keys.extend(meaning(key)),
            Ok(_) => {}
            Err(_) => break,
        }
        // What is there already is taken along; the next frame waits for nothing more.
        wait = Duration::ZERO;
    }
    keys
}

fn meaning(key: event::KeyEvent) -> Option<Key> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if control => Some(Key::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Char(' ' | 'p') => Some(Key::Pause),
        KeyCode::Char('+' | '=') => Some(Key::Faster),
        KeyCode::Char('-' | '_') => Some(Key::Slower),
        KeyCode::Char('a') => Some(Key::Automatic),
        KeyCode::Char('n') => Some(Key::Next),
        KeyCode::Char('o') => Some(Key::Oracles),
        _ => None,
    }
}
