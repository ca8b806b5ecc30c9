//! The R values of data files: numbers, `NA`, `a:b`, `c(…)`, `structure(…)` and the like.

use super::arrays::Array;
use super::error::DataError;

/// The maximum nesting depth of values.
const DEPTH: usize = 50;
/// The most values that the ranges and repetitions of a file may produce. More is a typing error, and would use up all memory.
const RANGE: f64 = 1e8;

pub(super) struct Reader<'a> {
    text: &'a str,
    pub at: usize,
    depth: usize,
    /// How many values ranges and repetitions have produced.
    made: f64,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, made: 0.0 }
    }

    /// Counts values that a range or a repetition produces.
    fn make(&mut self, count: f64) -> Result<(), DataError> {
        self.made += count;
        if self.made <= RANGE {
            return Ok(());
        }
        let message = format!("more than {RANGE:e} values from `a:b`, `rep` and the like");
        Err(self.error(&message, "check their numbers"))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub fn error(&self, message: &str, remedy: &str) -> DataError {
        DataError::at(self.text, self.at, message, remedy)
    }

    pub fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    pub fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub fn accept_text(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    pub fn accept(&mut self, wanted: char) -> bool {
        self.accept_text(wanted.encode_utf8(&mut [0; 4]))
    }

    pub fn expect(&mut self, wanted: char) -> Result<(), DataError> {
        self.blanks();
        if self.accept(wanted) {
            return Ok(());
        }
        let found = self.rest().chars().next().map_or("the end of the file".to_string(), |c| format!("`{c}`"));
        Err(self.error(&format!("expected `{wanted}`, found {found}"), "check the parentheses and commas before it"))
    }

    fn word(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Accepts a word if an opening parenthesis follows.
    pub fn accept_word(&mut self, wanted: &str) -> bool {
        let word = self.word();
        let found = word == wanted && self.rest()[word.len()..].trim_start().starts_with('(');
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// A name, bare or in quotes.
    pub fn name(&mut self) -> Result<String, DataError> {
        let remedy = "each value is written `name <- value`, or `name = value` within `list(…)`";
        if let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) {
            let inner = &self.rest()[1..];
            let Some(end) = inner.find(quote).filter(|&end| end > 0) else {
                return Err(self.error("a quoted name that is never closed", remedy));
            };
            self.at += end + 2;
            return Ok(inner[..end].to_string());
        }
        let word = self.word();
        if !word.starts_with(|c: char| c.is_alphabetic() || c == '.') {
            return Err(self.error("expected the name of a variable", remedy));
        }
        self.at += word.len();
        Ok(word.to_string())
    }

    /// A value whose `structure` is column-major, as in R.
    pub fn dump_value(&mut self) -> Result<Array, DataError> {
        self.value(true)
    }

    /// A value whose `structure` is row-major, as in OpenBUGS.
    pub fn list_value(&mut self) -> Result<Array, DataError> {
        self.value(false)
    }

    fn value(&mut self, column_major: bool) -> Result<Array, DataError> {
        self.blanks();
        if self.accept_word("structure") {
            return self.structure(column_major);
        }
        let mut values = Vec::new();
        let bare = self.vector(&mut values)?;
        Ok(if bare && values.len() == 1 { Array::scalar(values[0]) } else { Array::vector(values) })
    }

    /// Appends the values of a vector; true if it is a single number.
    fn vector(&mut self, values: &mut Vec<f64>) -> Result<bool, DataError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.error("values nested too deeply", "write c(…) once, around all of them"));
        }
        let bare = self.vector_inner(values);
        self.depth -= 1;
        bare
    }

    fn vector_inner(&mut self, values: &mut Vec<f64>) -> Result<bool, DataError> {
        self.blanks();
        let start = values.len();
        for wrapper in ["c", "as.integer", "as.numeric", "as.double", "integer", "numeric", "double", "rep"] {
            if !self.accept_word(wrapper) {
                continue;
            }
            self.expect('(')?;
            self.blanks();
            if self.accept(')') {
                return Ok(false);
            }
            let mut parts = Vec::new();
            loop {
                self.blanks();
                // Elements may have names: c(a = 1, b = 2).
                let back = self.at;
                if self.name().is_err()
                    || !{
                        self.blanks();
                        self.rest().starts_with('=') && self.accept('=')
                    }
                {
                    self.at = back;
                }
                let before = values.len();
                self.vector(values)?;
                parts.push(before);
                self.blanks();
                if self.accept(')') {
                    break;
                }
                self.expect(',')?;
            }
            match wrapper {
                "rep" => self.repeat(values, start, &parts)?,
                "integer" | "numeric" | "double" => {
                    let length = values.pop().unwrap_or(0.0);
                    if values.len() != start || !(0.0..=RANGE).contains(&length) {
                        return Err(self.error("a length that is not a number", "write c(…)"));
                    }
                    self.make(length)?;
                    values.resize(start + length as usize, 0.0);
                }
                "as.integer" => values[start..].iter_mut().for_each(|x| *x = x.trunc()),
                _ => {}
            }
            return Ok(false);
        }
        let from = self.number()?;
        self.blanks();
        if !self.accept(':') {
            values.push(from);
            return Ok(true);
        }
        self.blanks();
        let to = self.number()?;
        let count = (to - from).abs();
        if !(count < RANGE) {
            return Err(self.error("this range is too long", "check both ends of `a:b`"));
        }
        self.make(count)?;
        let step = if to < from { -1.0 } else { 1.0 };
        values.extend((0..=count as usize).map(|i| from + step * i as f64));
        Ok(false)
    }

    fn repeat(&mut self, values: &mut Vec<f64>, start: usize, parts: &[usize]) -> Result<(), DataError> {
        let times = values.pop().filter(|t| *t >= 0.0 && t.fract() == 0.0);
        let (&[_, second], Some(times)) = (parts, times) else {
            return Err(self.error("`rep` takes a value and a count", "write the values out in c(…)"));
        };
        // Zero values times infinity must be an error too.
        if second != values.len() || times > RANGE || (second - start) as f64 * times > RANGE {
            return Err(self.error("the count of `rep` must be a single small number", "write the values out in c(…)"));
        }
        self.make((second - start) as f64 * times)?;
        let once = values.split_off(start);
        for _ in 0..times as usize {
            values.extend_from_slice(&once);
        }
        Ok(())
    }

    fn number(&mut self) -> Result<f64, DataError> {
        let negative = self.accept('-');
        if !negative {
            self.accept('+');
        }
        self.blanks();
        let word = self.word();
        let value = match word {
            "NA" | "NA_integer_" | "NA_real_" => f64::NAN,
            "TRUE" | "T" => 1.0,
            "FALSE" | "F" => 0.0,
            "NaN" => {
                return Err(self.error("a value that is not a number", "a missing value is written NA"));
            }
            "Inf" => {
                return Err(self.error("an infinite value", "data must be finite numbers or NA"));
            }
            _ => return self.digits().map(|x| if negative { -x } else { x }),
        };
        self.at += word.len();
        Ok(if negative { -value } else { value })
    }

    fn digits(&mut self) -> Result<f64, DataError> {
        let bytes = self.rest().as_bytes();
        let mut end = 0;
        while let Some(&byte) = bytes.get(end) {
            let exponent_sign = matches!(byte, b'+' | b'-') && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
            if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || exponent_sign) {
                break;
            }
            end += 1;
        }
        let value: f64 = match self.rest()[..end].parse() {
            Ok(value) => value,
            Err(_) => {
                let found = self.rest().chars().next().map_or("the end of the file".to_string(), |c| {
                    if self.word().is_empty() { format!("`{c}`") } else { format!("`{}`", self.word()) }
                });
                let message = format!("expected a number, found {found}");
                return Err(self.error(&message, "values are numbers, NA, a:b, c(…) or structure(c(…), .Dim = c(…))"));
            }
        };
        if !value.is_finite() {
            return Err(self.error("a number that is too large", "data must be finite numbers or NA"));
        }
        self.at += end;
        self.accept('L');
        Ok(value)
    }

    /// `structure(c(…), .Dim = c(…))` or `structure(.Data = c(…), .Dim = c(…))`, in any order.
    fn structure(&mut self, column_major: bool) -> Result<Array, DataError> {
        let begin = self.at;
        self.expect('(')?;
        let (mut values, mut shape) = (None, None);
        loop {
            self.blanks();
            let back = self.at;
            let name = self.name().unwrap_or_default();
            self.blanks();
            let name = if self.rest().starts_with('=') {
                self.accept('=');
                name
            } else {
                self.at = back;
                String::new()
            };
            match name.as_str() {
                "" | ".Data" => {
                    let mut found = Vec::new();
                    self.vector(&mut found)?;
                    values = Some(found);
                }
                ".Dim" | "dim" => {
                    let mut found = Vec::new();
                    self.vector(&mut found)?;
                    shape = Some(found);
                }
                _ => self.skip()?,
            }
            self.blanks();
            if self.accept(')') {
                break;
            }
            self.expect(',')?;
        }
        let end = std::mem::replace(&mut self.at, begin);
        let Some(values) = values else {
            return Err(self.error("a structure without values", "write structure(c(…), .Dim = c(…))"));
        };
        let Some(shape) = shape else {
            self.at = end;
            return Ok(Array::vector(values));
        };
        if !shape.iter().all(|&n| n >= 0.0 && n.fract() == 0.0 && n < RANGE) || shape.is_empty() {
            return Err(self.error("a .Dim that is not a vector of whole numbers", "write .Dim = c(rows, columns)"));
        }
        let shape: Vec<usize> = shape.into_iter().map(|n| n as usize).collect();
        let count = shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if count != Some(values.len()) {
            let message = format!("{} values for a structure of {shape:?}", values.len());
            return Err(self.error(&message, "the product of .Dim must be the number of values"));
        }
        self.at = end;
        let values = if column_major { to_row_major(&shape, &values) } else { values };
        Ok(Array { shape, values })
    }

    /// Skips a number or a string.
    pub fn skip_setting(&mut self) -> Result<(), DataError> {
        self.blanks();
        if self.rest().starts_with(['"', '\'']) { self.name().map(|_| ()) } else { self.dump_value().map(|_| ()) }
    }

    /// Skips an attribute that does not affect the numbers: `.Dimnames`, `.Names`, `class`.
    fn skip(&mut self) -> Result<(), DataError> {
        let mut depth = 0_usize;
        let mut quote = None;
        for (i, c) in self.rest().char_indices() {
            match (quote, c) {
                (Some(open), _) if open == c => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'' | '`') => quote = Some(c),
                (None, '(') => depth += 1,
                (None, ')' | ',') if depth == 0 => {
                    self.at += i;
                    return Ok(());
                }
                (None, ')') => depth -= 1,
                _ => {}
            }
        }
        Err(self.error("this attribute is never closed", "close its parentheses"))
    }
}

/// Reorders an array from column-major to row-major.
fn to_row_major(shape: &[usize], values: &[f64]) -> Vec<f64> {
    let mut index = vec![0; shape.len()];
    let mut strides = vec![1; shape.len()];
    for d in 1..shape.len() {
        strides[d] = strides[d - 1] * shape[d - 1];
    }
    (0..values.len())
        .map(|_| {
            let from: usize = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
            for d in (0..shape.len()).rev() {
                index[d] += 1;
                if index[d] < shape[d] {
                    break;
                }
                index[d] = 0;
            }
            values[from]
        })
        .collect()
}
