//! Escapes text from models, data and corpora for HTML and for embedded JSON.

use serde::Serialize;

/// Text for an element or a quoted attribute. Characters that HTML does not allow become U+FFFD.
pub fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(letter),
            // Bidirectional controls in a name would change the direction of the rest of the page.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{fffd}'),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Data for a `<script type="application/json">`, which ends at the first `</script`, even inside a string.
pub fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(value)?;
    // These characters occur only in strings, where an escape means the same.
    Ok(json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

/// An argument, quoted for a shell.
pub fn argument(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_element() {
        let name = "</td><script>alert(\"1\")</script>&'\u{0}\u{202e}";
        let escaped = text(name);
        let expected = "&lt;/td&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;\u{fffd}\u{fffd}";
        assert_eq!(escaped, expected);
        assert_eq!(text("λ[1]\n"), "λ[1]\n");
    }

    #[test]
    fn a_name_cannot_end_the_script() {
        let names = ["</script><!--", "a & b", "\u{2028}\"\\"];
        let escaped = json(&names).expect("JSON");
        assert!(!escaped.contains(['<', '>', '&']), "{escaped}");
        let back: Vec<String> = serde_json::from_str(&escaped).expect("JSON");
        assert_eq!(back, names);
    }

    #[test]
    fn an_argument_is_one_word() {
        assert_eq!(argument("runs/a_1.5"), "runs/a_1.5");
        assert_eq!(argument("my run"), "'my run'");
        assert_eq!(argument("it's; rm"), r"'it'\''s; rm'");
        assert_eq!(argument(""), "''");
    }
}
