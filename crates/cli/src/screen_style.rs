//! The colours and times of a drawn session.

use std::fmt::Write as _;

use anstyle::{Ansi256Color, AnsiColor, Color, RgbColor, Style};
use jiff::tz::TimeZone;
use steno_model::Timestamp;
use steno_views::nodes::{AnsiColorName, AnsiStyle, InlineStyle};
use steno_views::screen::ScreenTone;

use crate::output::colors_are_on;

/// Returns the function that appends a part of a line, in its colour if colours are shown.
pub fn painter() -> fn(ScreenTone, &str, &mut String) {
    if colors_are_on() { paint } else { |_, words, line| line.push_str(words) }
}

fn paint(tone: ScreenTone, words: &str, line: &mut String) {
    let style = style_of(tone);
    // Writing to a text does not fail.
    write!(line, "{style}{words}{style:#}").ok();
}

/// Returns a time to the minute, in the time zone of this machine.
pub fn local_minute(time: &Timestamp) -> String {
    match time.instant() {
        Some(instant) => instant.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        None => time.to_string(),
    }
}

fn style_of(tone: ScreenTone) -> Style {
    match tone {
        ScreenTone::Plain => Style::new(),
        ScreenTone::Frame => Style::new().dimmed(),
        ScreenTone::Title | ScreenTone::Heading => Style::new().bold(),
        ScreenTone::User => AnsiColor::Green.on_default().bold(),
        ScreenTone::Model => AnsiColor::Blue.on_default().bold(),
        ScreenTone::Thought => Style::new().dimmed().italic(),
        ScreenTone::Call => AnsiColor::Cyan.on_default(),
        ScreenTone::Failed | ScreenTone::Removed => AnsiColor::Red.on_default(),
        ScreenTone::Open => AnsiColor::Cyan.on_default().bold(),
        ScreenTone::Odd => AnsiColor::Yellow.on_default(),
        ScreenTone::Words(style) => words_style(style),
        ScreenTone::Link => Style::new().dimmed().underline(),
        ScreenTone::Added => AnsiColor::Green.on_default(),
        ScreenTone::AddedPart => AnsiColor::Green.on_default().invert(),
        ScreenTone::RemovedPart => AnsiColor::Red.on_default().invert(),
        ScreenTone::Output(style) => output_style(style),
    }
}

fn words_style(style: InlineStyle) -> Style {
    let mut made = Style::new();
    if style.code {
        made = AnsiColor::Cyan.on_default();
    }
    if style.strong {
        made = made.bold();
    }
    if style.emphasis {
        made = made.italic();
    }
    if style.struck {
        made = made.strikethrough();
    }
    made
}

fn output_style(style: AnsiStyle) -> Style {
    let mut made = Style::new().fg_color(style.color.map(color)).bg_color(style.background.map(color));
    for (is_on, effect) in [
        (style.bold, anstyle::Effects::BOLD),
        (style.dim, anstyle::Effects::DIMMED),
        (style.italic, anstyle::Effects::ITALIC),
        (style.underline, anstyle::Effects::UNDERLINE),
        (style.inverse, anstyle::Effects::INVERT),
    ] {
        if is_on {
            made |= effect;
        }
    }
    made
}

fn color(name: AnsiColorName) -> Color {
    match name {
        AnsiColorName::Indexed(number) => {
            let number = Ansi256Color(number);
            number.into_ansi().map_or(Color::Ansi256(number), Color::Ansi)
        }
        AnsiColorName::Rgb(red, green, blue) => Color::Rgb(RgbColor(red, green, blue)),
    }
}
