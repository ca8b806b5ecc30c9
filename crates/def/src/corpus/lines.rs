//! Reads a file line by line, plain or compressed, and locates its errors.

use super::number::{CountFault, Token};
use crate::error::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The number of bytes that are read to recognise the format.
const HEAD_LEN: usize = 1 << 12;
const BUFFER_LEN: usize = 1 << 17;

/// The lines of a file.
pub(super) struct Lines<'a> {
    path: PathBuf,
    reader: BufReader<Peeked<'a>>,
    compressed: bool,
    line: Vec<u8>,
    number: usize,
}

impl<'a> Lines<'a> {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|reason| Error::Read { path: path.to_path_buf(), reason })?;
        Ok(Self::new(path, Box::new(file)))
    }

    /// The lines of any reader; errors call it `path`.
    pub fn new(path: &Path, file: Box<dyn Read + 'a>) -> Self {
        let mut peeked = Peeked::new(file, 2);
        // The first two bytes show whether a file is compressed, whatever its name.
        let compressed = peeked.head == [0x1f, 0x8b];
        if compressed {
            peeked = Peeked::new(Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER_LEN, peeked))), HEAD_LEN);
        } else {
            peeked = Peeked::new(Box::new(peeked), HEAD_LEN);
        }
        let reader = BufReader::with_capacity(BUFFER_LEN, peeked);
        Self { path: path.to_path_buf(), reader, compressed, line: Vec::new(), number: 0 }
    }

    /// The beginning of the file, before any line is read.
    pub fn head(&self) -> &[u8] {
        without_mark(&self.reader.get_ref().head)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the line that was read last, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Moves on to the next line; `false` after the last.
    pub fn advance(&mut self) -> Result<bool> {
        self.line.clear();
        match self.reader.read_until(b'\n', &mut self.line) {
            Ok(0) => return Ok(false),
            Ok(_) => self.number += 1,
            Err(reason) => return Err(self.unreadable(reason)),
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            if self.line.last() == Some(&b'\r') {
                self.line.pop();
            }
        }
        Ok(true)
    }

    /// The line that was read last, without its end.
    pub fn bytes(&self) -> &[u8] {
        // No format has a byte order mark, but some editors write one.
        if self.number == 1 { without_mark(&self.line) } else { &self.line }
    }

    /// The line as text.
    pub fn text(&self) -> Result<&str> {
        let bytes = self.bytes();
        if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
            return Err(self.not_text(at, "a NUL byte, which text never has", NO_TEXT));
        }
        std::str::from_utf8(bytes)
            .map_err(|error| self.not_text(error.valid_up_to(), "a byte that is not UTF-8", "save the file as UTF-8"))
    }

    fn unreadable(&self, reason: io::Error) -> Error {
        let (path, line) = (self.path.clone(), self.number);
        match reason.kind() {
            io::ErrorKind::UnexpectedEof if self.compressed => Error::Compressed { path, line, cut_off: true },
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if self.compressed => {
                Error::Compressed { path, line, cut_off: false }
            }
            _ => Error::Read { path, reason },
        }
    }

    /// The line, and the column in characters of a byte in it.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let before = &self.bytes()[..at.min(self.bytes().len())];
        (self.number.max(1), String::from_utf8_lossy(before).chars().count() + 1)
    }

    fn not_text(&self, at: usize, found: &'static str, remedy: &'static str) -> Error {
        let (line, column) = self.place(at);
        Error::NotText { path: self.path.clone(), line, column, found, remedy }
    }

    /// An error at byte `at` of the line.
    pub fn malformed(&self, at: usize, message: impl Into<String>, remedy: impl Into<String>) -> Error {
        let (line, column) = self.place(at);
        Error::Malformed { path: self.path.clone(), line, column, message: message.into(), remedy: remedy.into() }
    }

    /// A token that should be a number.
    pub fn not_a_number(&self, token: Token, remedy: &str) -> Error {
        let shown = if token.bytes.is_empty() { "nothing".into() } else { format!("`{}`", token.shown()) };
        let message = || format!("expected a whole number, found {shown}");
        self.binary(token).unwrap_or_else(|| self.malformed(token.at, message(), remedy))
    }

    /// The error for a token of bytes that are not text, if it is one.
    pub fn binary(&self, token: Token) -> Option<Error> {
        let not_printed = |c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER;
        let is_binary = String::from_utf8_lossy(token.bytes).contains(not_printed);
        is_binary.then(|| self.not_text(token.at, "bytes that are not text", NO_TEXT))
    }

    /// An invalid count.
    pub fn bad_count(&self, token: Token, fault: CountFault, remedy: &str) -> Error {
        let (fault, advice) = match fault {
            CountFault::NotANumber => return self.not_a_number(token, remedy),
            CountFault::Negative => ("negative", "a count is a whole number of at least 0"),
            CountFault::Fractional => ("not a whole number", "give counts, not weights or frequencies"),
            CountFault::TooLarge => ("too large", "the largest count is 16777216"),
        };
        let (line, column) = self.place(token.at);
        Error::BadCount { path: self.path.clone(), line, column, count: token.shown(), fault, remedy: advice }
    }

    /// An error of the file as a whole.
    pub fn disagreement(&self, message: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Disagreement { path: self.path.clone(), message: message.into(), remedy: remedy.into() }
    }

    /// A term whose counts in one document add up to more than the largest count.
    pub fn overflow(&self, term: u32) -> Error {
        let message = format!("the counts of term {term} in one document add up to more than 16777216");
        self.disagreement(message, "split the document, or check that it is a single document")
    }
}

const NO_TEXT: &str = "check that this is the right file; text must be saved as UTF-8";

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// A reader with a buffered head. An error while reading the head is returned when reading reaches it.
struct Peeked<'a> {
    head: Vec<u8>,
    at: usize,
    fault: Option<io::Error>,
    rest: Box<dyn Read + 'a>,
}

impl<'a> Peeked<'a> {
    fn new(mut rest: Box<dyn Read + 'a>, len: usize) -> Self {
        let mut head = Vec::with_capacity(len);
        let fault = rest.by_ref().take(len as u64).read_to_end(&mut head).err();
        Self { head, at: 0, fault, rest }
    }
}

impl Read for Peeked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at < self.head.len() {
            let len = (self.head.len() - self.at).min(buffer.len());
            buffer[..len].copy_from_slice(&self.head[self.at..self.at + len]);
            self.at += len;
            return Ok(len);
        }
        self.fault.take().map_or_else(|| self.rest.read(buffer), Err)
    }
}
