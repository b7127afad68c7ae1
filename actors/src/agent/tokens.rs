//! Estimates of how many tokens a text takes, and cuts by that estimate.

use std::borrow::Cow;

/// Quarters of a token per character, by the length of its UTF-8 form. ASCII is four characters to a
/// token as in the contract (5.5); a Chinese character is about a token of its own, an emoji about two.
const QUARTERS: [u64; 4] = [1, 2, 4, 8];

/// Estimated tokens of `text`.
#[must_use]
pub fn estimate(text: &str) -> u64 {
    text.bytes().map(quarters_at).sum::<u64>().div_ceil(4)
}

/// `text`, or its beginning and end with a marker between if it is estimated at more than `most` tokens.
#[must_use]
pub fn head_and_tail<'a>(text: &'a str, most: u64, label: &str) -> Cow<'a, str> {
    if estimate(text) <= most {
        return Cow::Borrowed(text);
    }
    let half = most.saturating_mul(2);
    let (head, rest) = text.split_at(head_length(text, half));
    let (omitted, tail) = rest.split_at(rest.len() - tail_length(rest, half));
    Cow::Owned(format!("{head}\n[… {} bytes of {label} left out here …]\n{tail}", omitted.len()))
}

/// The beginning of `text`, marked if it is not all of it.
#[must_use]
pub fn head<'a>(text: &'a str, most: u64, label: &str) -> Cow<'a, str> {
    if estimate(text) <= most {
        return Cow::Borrowed(text);
    }
    let (head, omitted) = text.split_at(head_length(text, most.saturating_mul(4)));
    Cow::Owned(format!("{head}\n[… {} bytes of {label} left out here …]", omitted.len()))
}

/// Counts a character at its first byte and nothing at the others.
fn quarters_at(byte: u8) -> u64 {
    match byte {
        0x00..=0x7f => QUARTERS[0],
        0x80..=0xbf => 0,
        0xc0..=0xdf => QUARTERS[1],
        0xe0..=0xef => QUARTERS[2],
        0xf0..=0xff => QUARTERS[3],
    }
}

fn quarters(character: char) -> u64 {
    QUARTERS.get(character.len_utf8() - 1).copied().unwrap_or(QUARTERS[3])
}

fn head_length(text: &str, most: u64) -> usize {
    taken(text.chars(), most)
}

fn tail_length(text: &str, most: u64) -> usize {
    taken(text.chars().rev(), most)
}

/// Bytes of the first characters that weigh no more than `most` quarters together.
fn taken(characters: impl Iterator<Item = char>, most: u64) -> usize {
    let mut weight = 0;
    characters
        .take_while(|character| {
            weight += quarters(*character);
            weight <= most
        })
        .map(char::len_utf8)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_is_four_characters_to_a_token() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("a"), 1);
        assert_eq!(estimate(&"a".repeat(400)), 100);
    }

    #[test]
    fn no_text_is_estimated_below_the_contract() {
        for text in ["naïve café", "Привет, мир", "重命名这个函数", "🦀 crab", "mixed 混合 text"]
        {
            let contract = u64::try_from(text.encode_utf16().count()).unwrap().div_ceil(4);
            assert!(estimate(text) >= contract, "{text}");
        }
        assert_eq!(estimate("重命名函数"), 5);
    }

    #[test]
    fn a_text_that_fits_is_untouched() {
        assert!(matches!(head_and_tail("four", 1, "x"), Cow::Borrowed("four")));
        assert!(matches!(head("four", 1, "x"), Cow::Borrowed("four")));
    }

    #[test]
    fn a_long_text_keeps_half_of_the_budget_at_each_end() {
        let text = format!("{}{}", "a".repeat(50_000), "z".repeat(50_000));
        let cut = head_and_tail(&text, 10_000, "AGENTS.md");
        assert!(cut.starts_with(&"a".repeat(20_000)) && cut.ends_with(&"z".repeat(20_000)));
        assert!(cut.contains("[… 60000 bytes of AGENTS.md left out here …]"));
        assert_eq!(cut.matches('a').count(), 20_000);
    }

    #[test]
    fn cuts_fall_between_characters() {
        let text = "é重🦀".repeat(500);
        for most in 0..60 {
            let cut = head_and_tail(&text, most, "it");
            let kept = cut.split("\n[… ").next().unwrap();
            assert!(text.starts_with(kept) && estimate(kept) <= most);
            assert!(text.starts_with(head(&text, most, "it").split("\n[… ").next().unwrap()));
        }
    }
}
