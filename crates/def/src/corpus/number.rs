//! Numbers in a line of bytes.

use super::COUNT_MAX;

/// A run of bytes without a blank, and where it is in its line.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub at: usize,
    pub bytes: &'a [u8],
}

impl Token<'_> {
    /// What a message shows of it.
    pub fn shown(&self) -> String {
        let text = String::from_utf8_lossy(self.bytes);
        let mut characters = text.chars();
        let shown: String = characters.by_ref().take(24).flat_map(char::escape_debug).collect();
        if characters.next().is_some() { shown + "…" } else { shown }
    }

    /// The whole number that it is, if it is one.
    pub fn whole(&self) -> Option<u64> {
        whole(self.bytes)
    }

    /// The two sides of its first `sign`.
    pub fn split_at(&self, sign: u8) -> Option<(Self, Self)> {
        let i = self.bytes.iter().position(|&byte| byte == sign)?;
        let right = Self { at: self.at + i + 1, bytes: &self.bytes[i + 1..] };
        Some((Self { at: self.at, bytes: &self.bytes[..i] }, right))
    }

    /// The count that it is: a whole number from 0 on, however it is written.
    pub fn count(&self) -> Result<f32, CountFault> {
        if let Some(count) = self.whole() {
            return if count as f64 <= COUNT_MAX { Ok(count as f32) } else { Err(CountFault::TooLarge) };
        }
        let text = std::str::from_utf8(self.bytes).map_err(|_| CountFault::NotANumber)?;
        // `inf` and `nan` are words to the standard reader; here they are no counts.
        if !text.contains(|c: char| c.is_ascii_digit()) {
            return Err(CountFault::NotANumber);
        }
        match text.parse::<f64>() {
            Err(_) => Err(CountFault::NotANumber),
            Ok(x) if x < 0.0 => Err(CountFault::Negative),
            Ok(x) if x > COUNT_MAX => Err(CountFault::TooLarge),
            Ok(x) if x.fract() != 0.0 => Err(CountFault::Fractional),
            Ok(x) => Ok(x as f32),
        }
    }
}

/// Why something is no count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountFault {
    NotANumber,
    Negative,
    Fractional,
    TooLarge,
}

fn whole(bytes: &[u8]) -> Option<u64> {
    // Nineteen digits fit whatever they are.
    if bytes.is_empty() || bytes.len() > 19 {
        return None;
    }
    let mut number = 0;
    for &byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

/// The tokens of a line, one after another.
pub(super) struct Tokens<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    #[inline]
    fn next(&mut self) -> Option<Token<'a>> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let line = self.line;
        while line.get(self.at).is_some_and(is_blank) {
            self.at += 1;
        }
        let at = self.at;
        while line.get(self.at).is_some_and(|byte| !is_blank(byte)) {
            self.at += 1;
        }
        (self.at > at).then(|| Token { at, bytes: &line[at..self.at] })
    }
}
