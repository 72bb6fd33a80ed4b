//! Times as users type them: `yesterday`, `this week`, `7d`, `2026-11-01`.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _, Zoned};

use crate::failure::Failure;

/// The forms that [`parse_time`] reads, for messages.
const FORMS: &str = "`today`, `yesterday`, `monday`, `this-week`, `last-month`, `2h`, `3d`, `2w`, `2026-11-01`, or \
     `2026-11-01T08:00`";

/// Reads the time of an option, if it is given, as milliseconds since 1970.
pub fn read_time(text: Option<&str>, now: &Zoned) -> Result<Option<i64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let time = parse_time(text, now).ok_or_else(|| not_a_time(text))?;
    Ok(Some(time.as_millisecond()))
}

fn not_a_time(text: &str) -> Failure {
    // A shell passes on only the first of two words.
    let hint = match &*text.to_ascii_lowercase() {
        word @ ("this" | "last") => {
            format!("write `{word}-week` or `{word}-month`, or put both words in quotes")
        }
        _ => format!("use {FORMS}"),
    };
    Failure::usage(format!("`{text}` is not a time")).with_hint(hint)
}

/// Reads a time in the past. A day means its beginning in local time, a day of the week the last one, also today; a week and
/// a month mean their first day; `7d` and `7 days ago` mean seven days ago. Words may have hyphens between them.
pub fn parse_time(text: &str, now: &Zoned) -> Option<Timestamp> {
    let zone = now.time_zone();
    let day = |date: Date| Some(date.to_zoned(zone.clone()).ok()?.timestamp());
    let word = text.trim().to_ascii_lowercase();
    let words: Vec<&str> = word.split([' ', '-', '_']).collect();
    match &*word {
        "now" => return Some(now.timestamp()),
        "today" => return day(now.date()),
        "yesterday" => return day(now.date().yesterday().ok()?),
        _ => {}
    }
    if let Some(first) = first_day(&words, now.date()) {
        return day(first);
    }
    if let Some(weekday) = words[..].try_into().ok().and_then(|[word]: [&str; 1]| weekday(word)) {
        let days = now.date().weekday().since(weekday);
        return day(now.date().checked_sub(i32::from(days).days()).ok()?);
    }
    if let Some(ago) = ago(&words, now) {
        return Some(ago);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    // A date without a time also parses as a time, at midnight.
    let text = text.replace(' ', "T");
    Some(text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()?.timestamp())
}

/// Returns the first day of `this week`, `last week`, `this month` or `last month`. Weeks begin on Monday.
fn first_day(words: &[&str], today: Date) -> Option<Date> {
    let days = i32::from(today.weekday().to_monday_zero_offset()).days();
    match words {
        ["this", "week"] => today.checked_sub(days).ok(),
        ["last", "week"] => today.checked_sub(days).ok()?.checked_sub(1.week()).ok(),
        ["this", "month"] => Some(today.first_of_month()),
        ["last", "month"] => today.first_of_month().checked_sub(1.month()).ok(),
        _ => None,
    }
}

/// Reads `monday` or `mon`.
fn weekday(text: &str) -> Option<Weekday> {
    const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let place = NAMES.iter().position(|name| *name == text || name[..3] == *text)?;
    Weekday::from_monday_zero_offset(i8::try_from(place).ok()?).ok()
}

/// Reads `7d`, `12h`, `30m` or `2w`, and `7 days`, `12 hours ago`.
fn ago(words: &[&str], now: &Zoned) -> Option<Timestamp> {
    let (number, unit) = match words {
        [word] | [word, "ago"] => word.split_at(word.find(|letter: char| !letter.is_ascii_digit())?),
        [number, unit] | [number, unit, "ago"] => (*number, *unit),
        _ => return None,
    };
    let number: i32 = number.parse().ok().filter(|number| *number >= 0)?;
    let span = match unit {
        "m" | "min" | "minute" | "minutes" => Span::new().try_minutes(number),
        "h" | "hour" | "hours" => Span::new().try_hours(number),
        "d" | "day" | "days" => Span::new().try_days(number),
        "w" | "week" | "weeks" => Span::new().try_weeks(number),
        _ => return None,
    };
    let span = span.ok()?;
    Some(now.checked_sub(span).ok()?.timestamp())
}

/// Returns the time of this machine, in its zone.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(TimeZone::system())
}

/// Returns how long ago something was, in one word like `23h`.
pub fn age(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - time.as_second();
    match seconds {
        ..60 => "now".to_owned(),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..5_184_000 => format!("{}d", seconds / 86_400),
        5_184_000..63_072_000 => format!("{}mo", seconds / 2_592_000),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

/// How lists show times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeForm {
    Age,
    Local,
    Utc,
}

/// Returns a time as a list shows it.
pub fn time_word(time: Timestamp, now: &Zoned, form: TimeForm) -> String {
    const MINUTE: &str = "%Y-%m-%d %H:%M";
    match form {
        TimeForm::Age => age(time, now.timestamp()),
        TimeForm::Local => time.to_zoned(now.time_zone().clone()).strftime(MINUTE).to_string(),
        TimeForm::Utc => time.strftime("%Y-%m-%d %H:%MZ").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon() -> Zoned {
        "2026-11-18T12:00:00+01:00[+01:00]".parse().unwrap()
    }

    #[track_caller]
    fn check(text: &str, want: Option<&str>) {
        assert_eq!(parse_time(text, &noon()).map(|time| time.to_string()).as_deref(), want, "{text}");
    }

    #[test]
    fn days_begin_in_local_time() {
        check("today", Some("2026-11-17T23:00:00Z"));
        check("yesterday", Some("2026-11-16T23:00:00Z"));
        // Noon is on a Wednesday.
        check("monday", Some("2026-11-15T23:00:00Z"));
        check("Wed", Some("2026-11-17T23:00:00Z"));
        check("thursday", Some("2026-11-11T23:00:00Z"));
        check("this week", Some("2026-11-15T23:00:00Z"));
        check("Last week", Some("2026-11-08T23:00:00Z"));
        check("this month", Some("2026-10-31T23:00:00Z"));
        check("last month", Some("2026-09-30T23:00:00Z"));
        check("this-week", Some("2026-11-15T23:00:00Z"));
        check("last_month", Some("2026-09-30T23:00:00Z"));
        check("2026-11-01", Some("2026-10-31T23:00:00Z"));
        check("2026-11-01 08:30", Some("2026-11-01T07:30:00Z"));
        check("2026-11-01T08:30:00Z", Some("2026-11-01T08:30:00Z"));
        check("7d", Some("2026-11-11T11:00:00Z"));
        check("90m", Some("2026-11-18T09:30:00Z"));
        check("2h", Some("2026-11-18T09:00:00Z"));
        check("3d", Some("2026-11-15T11:00:00Z"));
        check("3 days ago", Some("2026-11-15T11:00:00Z"));
        check("1-hour-ago", Some("2026-11-18T10:00:00Z"));
        check("2 weeks", Some("2026-11-04T11:00:00Z"));
        check("2d ago", Some("2026-11-16T11:00:00Z"));
        for wrong in
            ["", "d", "-3d", "soon", "mo", "2026-13-01", "7x", "week", "next week", "ago", "3 ago", "3 d d"]
        {
            check(wrong, None);
        }
        for too_far in ["2147483647w", "2147483647h", "99999999999999999999d"] {
            check(too_far, None);
        }
    }

    #[test]
    fn wrong_time_is_answered_with_examples() {
        let hint = |text| read_time(Some(text), &noon()).unwrap_err().hint.unwrap();
        for form in ["today", "yesterday", "monday", "this-week", "2h", "3d", "2026-11-01"] {
            assert!(hint("soon").contains(&format!("`{form}`")), "{form}");
            assert!(parse_time(form, &noon()).is_some(), "{form}");
        }
        assert_eq!(hint("last"), "write `last-week` or `last-month`, or put both words in quotes");
    }

    #[test]
    fn age_is_one_word() {
        let now = noon().timestamp();
        for (seconds, want) in [
            (0, "now"),
            (-5, "now"),
            (61, "1m"),
            (7200, "2h"),
            (200_000, "2d"),
            (6_000_000, "2mo"),
            (70_000_000, "2y"),
        ] {
            let time = Timestamp::from_second(now.as_second() - seconds).unwrap();
            assert_eq!(age(time, now), want);
        }
    }
}
