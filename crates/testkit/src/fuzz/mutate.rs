//! Random mutations of inputs: bytes, tokens, numbers, splices, nesting, truncation.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

/// The maximum length of an input.
const LEN: usize = 1 << 16;

/// Numbers that are likely to hit a limit.
const NUMBERS: [&str; 34] = [
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "3",
    "0.5",
    "1e-320",
    "1e308",
    "-1e308",
    "1e309",
    "1e9999",
    "255",
    "256",
    "32767",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "16777217",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "999999999999",
    "1000000000000000",
    "99999999999999999999999999",
    "1e15",
    "NaN",
    "inf",
    "00000000000000000000001",
];

/// Bytes that often break text readers: line ends, NUL, byte order marks, incomplete and overlong UTF-8.
const ODD: [&[u8]; 16] = [
    b"\0",
    b"\r",
    b"\r\n",
    b"\x1a",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xc0\x80",
    "\u{2212}".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{1f600}".as_bytes(),
    "\u{a0}".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{202e}".as_bytes(),
];

/// One of the inputs with a few mutations.
pub(super) fn mutated(inputs: &[Vec<u8>], words: &[&str], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut input = one_of(inputs, rng).clone();
    // Usually few, so that the text before the mutation still parses; occasionally many.
    let changes = 1 << rng.random_range(0..5_u32);
    for _ in 0..rng.random_range(1..=changes) {
        change(&mut input, inputs, words, rng);
        input.truncate(LEN);
    }
    input
}

fn change(input: &mut Vec<u8>, inputs: &[Vec<u8>], words: &[&str], rng: &mut ChaCha8Rng) {
    let tokens = tokens(input);
    match rng.random_range(0..18_u32) {
        0 => flip(input, rng),
        1 => {
            let at = place(input, rng);
            input.insert(at, rng.random());
        }
        2 => {
            let range = range(input, rng);
            input.drain(range);
        }
        3 => input.truncate(place(input, rng)),
        4 => {
            let piece = input[range(input, rng)].to_vec();
            put(input, rng, &piece);
        }
        5 => {
            let odd = *one_of(&ODD, rng);
            put(input, rng, odd);
        }
        6 => {
            let other = one_of(inputs, rng);
            splice(input, other, rng);
        }
        7 => deepen(input, words, rng),
        8 | 9 => {
            let numbers: Vec<_> = tokens.into_iter().filter(|t| input[t.start].is_ascii_digit()).collect();
            replace(input, &numbers, one_of(&NUMBERS, rng).as_bytes(), rng);
        }
        10 if !words.is_empty() => {
            let word = *one_of(words, rng);
            put(input, rng, word.as_bytes());
        }
        11 if !words.is_empty() => replace(input, &tokens, one_of(words, rng).as_bytes(), rng),
        12 | 13 => replace(input, &tokens, b"", rng),
        14 => swap(input, &tokens, rng),
        15 | 16 => {
            // A token of the same kind from elsewhere: the input stays well formed but means something else.
            let other = one_of(inputs, rng);
            let others = self::tokens(other);
            if let (Some(token), true) = (pick(&tokens, rng), !others.is_empty()) {
                let alike = |t: &&Range<usize>| kind(other[t.start]) == kind(input[token.start]);
                let found: Vec<_> = others.iter().filter(alike).collect();
                let with = if found.is_empty() { &others[0] } else { found[rng.random_range(0..found.len())] };
                input.splice(token, other[with.clone()].iter().copied());
            }
        }
        _ => {
            let lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
            let (line, to) = (one_of(&lines_or_one(lines), rng).to_vec(), place(input, rng));
            let to = input[..to].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            input.splice(to..to, line);
        }
    }
}

fn lines_or_one(lines: Vec<&[u8]>) -> Vec<&[u8]> {
    if lines.is_empty() { vec![b"\n"] } else { lines }
}

fn flip(input: &mut [u8], rng: &mut ChaCha8Rng) {
    if !input.is_empty() {
        let at = rng.random_range(0..input.len());
        input[at] = if rng.random() { input[at] ^ (1 << rng.random_range(0..8_u32)) } else { rng.random() };
    }
}

/// The beginning of one and the end of another.
fn splice(input: &mut Vec<u8>, other: &[u8], rng: &mut ChaCha8Rng) {
    input.truncate(place(input, rng));
    input.extend_from_slice(&other[place(other, rng)..]);
}

/// The same piece many times: nested brackets, repeated signs, or a very long line.
fn deepen(input: &mut Vec<u8>, words: &[&str], rng: &mut ChaCha8Rng) {
    const SIGNS: [&str; 8] = ["(", "[", "{", "-", "!", "[1,", "{\"a\":", "c("];
    let sign = if words.is_empty() || rng.random() { one_of(&SIGNS, rng) } else { one_of(words, rng) };
    let times = 1 << rng.random_range(1..15_u32);
    put(input, rng, sign.repeat(times.min(LEN / sign.len())).as_bytes());
}

fn swap(input: &mut Vec<u8>, tokens: &[Range<usize>], rng: &mut ChaCha8Rng) {
    let (Some(a), Some(b)) = (pick(tokens, rng), pick(tokens, rng)) else { return };
    let (a, b) = if a.start <= b.start { (a, b) } else { (b, a) };
    if a.end <= b.start {
        let pieces = [&input[..a.start], &input[b.clone()], &input[a.end..b.start], &input[a.clone()], &input[b.end..]];
        *input = pieces.concat();
    }
}

fn replace(input: &mut Vec<u8>, tokens: &[Range<usize>], with: &[u8], rng: &mut ChaCha8Rng) {
    if let Some(token) = pick(tokens, rng) {
        input.splice(token, with.iter().copied());
    }
}

fn put(input: &mut Vec<u8>, rng: &mut ChaCha8Rng, piece: &[u8]) {
    let at = place(input, rng);
    input.splice(at..at, piece.iter().copied());
}

fn place(input: &[u8], rng: &mut ChaCha8Rng) -> usize {
    rng.random_range(0..=input.len())
}

fn range(input: &[u8], rng: &mut ChaCha8Rng) -> Range<usize> {
    let start = place(input, rng);
    start..(start + (1 << rng.random_range(0..9_u32))).min(input.len())
}

fn one_of<'a, T>(list: &'a [T], rng: &mut ChaCha8Rng) -> &'a T {
    &list[rng.random_range(0..list.len())]
}

fn pick(tokens: &[Range<usize>], rng: &mut ChaCha8Rng) -> Option<Range<usize>> {
    (!tokens.is_empty()).then(|| one_of(tokens, rng).clone())
}

/// The ranges of words, numbers and single symbols; blanks separate them.
fn tokens(input: &[u8]) -> Vec<Range<usize>> {
    let mut tokens: Vec<Range<usize>> = Vec::new();
    for (at, byte) in input.iter().enumerate() {
        let own = kind(*byte);
        match tokens.last_mut() {
            _ if own == Kind::Blank => {}
            Some(last) if last.end == at && own != Kind::Sign && kind(input[last.start]) != Kind::Sign => last.end += 1,
            _ => tokens.push(at..at + 1),
        }
    }
    tokens
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Digit,
    Letter,
    Sign,
}

fn kind(byte: u8) -> Kind {
    match byte {
        byte if byte.is_ascii_whitespace() => Kind::Blank,
        b'0'..=b'9' => Kind::Digit,
        b'.' | b'_' | 128.. => Kind::Letter,
        byte if byte.is_ascii_alphabetic() => Kind::Letter,
        _ => Kind::Sign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_text_falls_into_tokens() {
        let text = b"x[12] <- sd.y + 1.5e3 # \xc3\xa9";
        let found: Vec<&[u8]> = tokens(text).into_iter().map(|token| &text[token]).collect();
        let signs = [&b"x"[..], b"[", b"12", b"]", b"<", b"-", b"sd.y", b"+", b"1.5e3", b"#", b"\xc3\xa9"];
        assert_eq!(found, signs);
    }

    /// Catches a mutation that never happens, one that panics at an edge, and inputs that grow without bound.
    #[test]
    fn inputs_change_in_many_ways_and_stay_small() {
        let inputs = [b"model { x ~ dnorm(0, 1) }\n".to_vec(), Vec::new(), b"7".to_vec()];
        let mut seen = std::collections::HashSet::new();
        for case in 0..3000 {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            rng.set_stream(case);
            let input = mutated(&inputs, &["for", "("], &mut rng);
            assert!(input.len() <= LEN);
            seen.insert(input);
        }
        // Two of the three inputs have little to change.
        assert!(seen.len() > 1200, "{}", seen.len());
        let has = |part: &[u8]| seen.iter().any(|input| input.windows(part.len()).any(|window| window == part));
        assert!([&b"(((((((((("[..], b"\0", b"dnorm(1e9999", b"dnorm(0, 1) }\n7"].iter().all(|part| has(part)));
    }
}
