//! Numbers in a line of bytes.

/// The largest count: every whole number up to it is an `f32`.
pub(super) const COUNT_MAX: f64 = 16_777_216.0;

/// A run of bytes without blanks, and its position in the line.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub at: usize,
    pub bytes: &'a [u8],
}

impl Token<'_> {
    /// The token as shown in messages.
    pub fn shown(&self) -> String {
        let text = String::from_utf8_lossy(self.bytes);
        let mut characters = text.chars();
        let shown: String = characters.by_ref().take(24).flat_map(char::escape_debug).collect();
        if characters.next().is_some() { shown + "…" } else { shown }
    }

    /// Its value, if it is a whole number.
    pub fn whole(&self) -> Option<u64> {
        whole(self.bytes)
    }

    /// The parts before and after its first `sign`.
    pub fn split_at(&self, sign: u8) -> Option<(Self, Self)> {
        let i = self.bytes.iter().position(|&byte| byte == sign)?;
        let right = Self { at: self.at + i + 1, bytes: &self.bytes[i + 1..] };
        Some((Self { at: self.at, bytes: &self.bytes[..i] }, right))
    }

    /// Its value as a count: a whole number of at least 0, in any notation.
    pub fn count(&self) -> Result<f32, CountFault> {
        if let Some(count) = self.whole() {
            return if count as f64 <= COUNT_MAX { Ok(count as f32) } else { Err(CountFault::TooLarge) };
        }
        let text = std::str::from_utf8(self.bytes).map_err(|_| CountFault::NotANumber)?;
        // The standard parser accepts `inf` and `nan`, which are not counts.
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

/// Why a token is not a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountFault {
    NotANumber,
    Negative,
    Fractional,
    TooLarge,
}

fn whole(bytes: &[u8]) -> Option<u64> {
    // Nineteen digits always fit.
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

/// Iterates over the tokens of a line.
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
