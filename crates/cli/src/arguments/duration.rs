//! Durations as people write them.

use std::time::Duration;

/// Reads a duration: a number with `ms`, `s` (also without a unit), `m` or
/// `h`, or several of these from large to small, as `1m30s`.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    const HINT: &str = "write it as 10s, 500ms or 1m30s";
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at_checked(digits).unwrap_or((rest, ""));
        let number: u64 = number.parse().map_err(|_| HINT.to_owned())?;
        let letters = tail.find(|letter: char| letter.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(letters).unwrap_or((tail, ""));
        let part = match unit {
            "ms" => Some(Duration::from_millis(number)),
            "s" => Some(Duration::from_secs(number)),
            "" if number > 0 && rest == text => Some(Duration::from_secs(number)),
            "m" => number.checked_mul(60).map(Duration::from_secs),
            "h" => number.checked_mul(3600).map(Duration::from_secs),
            _ => return Err(HINT.to_owned()),
        };
        let sum = part.and_then(|part| total.checked_add(part));
        total = sum.ok_or_else(|| "that is longer than a clock can tell".to_owned())?;
        rest = tail;
    }
    if total.is_zero() { Err(format!("it must be more than nothing; {HINT}")) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_with_units_and_without() {
        for (text, milliseconds) in [
            ("10", 10_000),
            ("10s", 10_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("1s5ms", 1005),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in
            ["", "0", "0s", "s", "1x", "-1", "1.5s", "1m30", " 1", "18446744073709551615h", "9é"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
