use std::time::Duration;

/// Reads `250ms`, `1.5s` or `2m`, to whole milliseconds.
///
/// # Errors
/// A description of the mistake, for the command line to print.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    const HINT: &str = "write a number and a unit, such as 800ms, 1.5s or 2m";
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .ok_or(HINT)?;
    let (number, unit) = text.split_at(digits);
    let per_unit = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err(HINT.into()),
    };
    let seconds = number.parse::<f64>().map_err(|_| HINT)? * per_unit;
    let exact = Duration::try_from_secs_f64(seconds).map_err(|_| "that is too long")?;
    Ok(Duration::from_millis(millis(exact)))
}

/// A time in whole milliseconds, for messages and for people; rounded to the nearest.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from((time.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a number without a unit that is taken for one, and a fraction that is cut off.
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
            "1h",
            "1e3s",
            "NaNs",
            "99999999999999999999999s",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
