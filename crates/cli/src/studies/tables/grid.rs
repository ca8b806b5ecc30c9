//! A table with marked entries, as plain text or Markdown.

use crate::render::terminal::table;

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub text: String,
    /// Whether it is the best of its row.
    pub is_best: bool,
}

impl Entry {
    /// An unmarked entry.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_best: false }
    }
}

/// A table with a title and notes.
pub struct Section {
    pub title: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<Entry>>,
    pub notes: Vec<String>,
}

impl Section {
    /// As plain text; the best entries have a star.
    pub fn plain(&self) -> String {
        let has_star = |c: usize| self.rows.iter().any(|row| row[c].is_best);
        let text = |(c, entry): (usize, &Entry)| match (has_star(c), entry.is_best) {
            (true, true) => format!("{}*", entry.text),
            (true, false) => format!("{} ", entry.text),
            _ => entry.text.clone(),
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().enumerate().map(text).collect()).collect();
        let header: Vec<&str> = self.header.iter().map(String::as_str).collect();
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        format!(
            "{}\n\n{}{}{notes}",
            self.title,
            table::render(&header, &rows),
            if notes.is_empty() { "" } else { "\n" }
        )
    }

    /// In Markdown; the best entries are bold.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let text = |entry: &Entry| if entry.is_best { format!("**{}**", entry.text) } else { entry.text.clone() };
        let is_number = |c: usize| {
            let starts = |text: &str| text.starts_with(|x: char| x.is_ascii_digit() || "-–".contains(x));
            self.rows.iter().all(|row| row[c].text.is_empty() || starts(&row[c].text))
        };
        let rule = |c: usize| if is_number(c) { "---:" } else { "---" }.to_owned();
        let mut out = format!("## {}\n\n{}", self.title, line(self.header.clone()));
        out.push_str(&line((0..self.header.len()).map(rule).collect()));
        self.rows.iter().for_each(|row| out.push_str(&line(row.iter().map(text).collect())));
        self.notes.iter().for_each(|note| out.push_str(&format!("\n{note}\n")));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_marked_in_both_forms() {
        let best = |text: &str| Entry { text: text.to_owned(), is_best: true };
        let section = Section {
            title: "Perplexity".to_owned(),
            header: ["model", "HVM", "mean-field"].map(str::to_owned).to_vec(),
            rows: vec![
                vec![Entry::plain("100"), best("845.1"), Entry::plain("869.0")],
                vec![Entry::plain("100-30"), Entry::plain("1012.0"), best("990.5")],
            ],
            notes: vec!["A note.".to_owned()],
        };
        let plain = section.plain();
        let trimmed: Vec<&str> = plain.lines().map(str::trim_end).collect();
        assert_eq!(trimmed[2], " model      HVM  mean-field", "{plain}");
        assert_eq!(trimmed[4..6], ["   100   845.1*      869.0", "100-30  1012.0       990.5*"], "{plain}");
        assert!(plain.starts_with("Perplexity\n\n") && plain.ends_with("\n\nA note.\n"), "{plain}");
        let markdown = section.markdown();
        assert!(markdown.contains("| 100 | **845.1** | 869.0 |\n"), "{markdown}");
        assert!(markdown.contains("| ---: | ---: | ---: |\n"), "{markdown}");
    }
}
