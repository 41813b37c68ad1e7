//! Times as people write and read them.

use std::time::Duration;

use palisade_gateway::wire::millis;

/// Reads `250ms`, `1.5s`, `2m` or `24h`, to whole milliseconds.
///
/// # Errors
/// A description of the mistake, for the command line to print.
pub fn parse(text: &str) -> Result<Duration, String> {
    const HINT: &str = "write a number and a unit, such as 800ms, 1.5s, 2m or 24h";
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .ok_or(HINT)?;
    let (number, unit) = text.split_at(digits);
    let per_unit = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(HINT.into()),
    };
    let seconds = number.parse::<f64>().map_err(|_| HINT)? * per_unit;
    let exact = Duration::try_from_secs_f64(seconds).map_err(|_| "that is too long")?;
    Ok(Duration::from_millis(millis(exact)))
}

/// Reads a time and compares it with these limits.
///
/// # Errors
/// As [`parse`], or a text with the limits.
pub fn within(text: &str, least: &str, most: &str) -> Result<Duration, String> {
    let (value, allowed) = (parse(text)?, parse(least)?..=parse(most)?);
    if allowed.contains(&value) {
        return Ok(value);
    }
    Err(format!("choose a time from {least} to {most}"))
}

/// Milliseconds as seconds for people: `1.50 s`.
#[must_use]
pub fn seconds(ms: u64) -> String {
    format!("{}.{:02} s", ms / 1000, ms % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a number without a unit that is accepted, and a fraction that is cut off.
    #[test]
    fn a_number_and_a_unit_are_a_time_and_nothing_else_is() {
        for (text, ms) in [
            ("250ms", 250),
            ("1.5s", 1500),
            ("2m", 120_000),
            (".5s", 500),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in [
            "",
            "5",
            "s",
            "-1s",
            "1 s",
            "1d",
            "1e3s",
            "NaNs",
            "99999999999999999999999s",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
