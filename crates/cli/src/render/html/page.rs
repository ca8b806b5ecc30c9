//! The frame of a report: one file that needs no network.

use super::escape;
use std::fmt::Write as _;

const STYLE: &str = include_str!("assets/style.css");

/// Nothing may be loaded, even if a name slipped through the escaping; scripts and styles are inline.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// A report, built section by section.
pub struct Page {
    title: String,
    subtitle: String,
    sections: Vec<Section>,
    scripts: String,
}

struct Section {
    id: &'static str,
    heading: &'static str,
    body: String,
}

impl Page {
    /// A page with a title and a subtitle, both plain text.
    pub fn new(title: &str, subtitle: &str) -> Self {
        let [title, subtitle] = [title, subtitle].map(escape::text);
        Self { title, subtitle, sections: Vec::new(), scripts: String::new() }
    }

    /// Adds a section, unless it is empty. `body` is HTML; a section without a heading is not listed in the contents.
    pub fn section(&mut self, id: &'static str, heading: &'static str, body: String) {
        if !body.is_empty() {
            self.sections.push(Section { id, heading, body });
        }
    }

    /// Adds a script and its data, found under `id` and escaped by [`escape::json`].
    pub fn script(&mut self, id: &str, data: &str, script: &str) {
        let _ = write!(
            self.scripts,
            "<script type=\"application/json\" id=\"{id}\">{data}</script>\n<script>\n{script}</script>\n"
        );
    }

    /// The whole file.
    pub fn html(&self) -> String {
        let Self { title, subtitle, sections, scripts } = self;
        let mut contents = String::new();
        let mut body = String::new();
        for Section { id, heading, body: inner } in sections {
            if heading.is_empty() {
                let _ = writeln!(body, "<section id=\"{id}\">\n{inner}\n</section>");
            } else {
                let _ = write!(contents, "<a href=\"#{id}\">{heading}</a>");
                let _ = writeln!(
                    body,
                    "<section id=\"{id}\" aria-labelledby=\"{id}-heading\">\n<h2 id=\"{id}-heading\">{heading}</h2>\n{inner}\n\
                     </section>"
                );
            }
        }
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"hyperprior {version}\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header><h1>{title}</h1>\n<p class=\"subtitle\">{subtitle}</p>\n\
             <nav aria-label=\"Contents\">{contents}</nav></header>\n<main>\n{body}</main>\n\
             <footer>Made by hyperprior {version}.</footer>\n{scripts}</body>\n</html>\n"
        )
    }
}

/// A label and its value, both HTML; for [`facts`].
pub type Fact = (&'static str, String);

/// A list of labels and values.
pub fn facts(facts: &[Fact]) -> String {
    let rows: String =
        facts.iter().map(|(label, value)| format!("<div><dt>{label}</dt><dd>{value}</dd></div>")).collect();
    if rows.is_empty() { rows } else { format!("<dl class=\"facts\">{rows}</dl>") }
}

/// A table of HTML cells, with numbers from column `numbers` on. It scrolls if it is wider than the screen.
pub fn table(label: &str, header: &[&str], numbers: usize, rows: &[Vec<String>]) -> String {
    let class = |i: usize| if i < numbers { "" } else { " class=\"number\"" };
    let cell = |tag: &str, i: usize, text: &str| format!("<{tag}{}>{text}</{tag}>", class(i));
    let head: String = header.iter().enumerate().map(|(i, text)| cell("th", i, text)).collect();
    let row = |row: &Vec<String>| -> String {
        let cells: String = row.iter().enumerate().map(|(i, text)| cell("td", i, text)).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = rows.iter().map(row).collect();
    let label = escape::text(label);
    format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\"><table>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>\n{body}</tbody></table></div>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_sections_and_no_host() {
        let mut page = Page::new("<model>", "a & b");
        page.section("first", "", "<p>one</p>".to_owned());
        page.section("second", "The second", "<p>two</p>".to_owned());
        page.section("third", "The third", String::new());
        page.script("data", "[1]", "void 0;\n");
        let html = page.html();
        assert!(html.contains("<title>&lt;model&gt;</title>") && html.contains("a &amp; b"), "{html}");
        assert!(html.contains("<a href=\"#second\">The second</a></nav>"), "{html}");
        assert!(!html.contains("third"), "{html}");
        assert!(!html.contains("http://") && !html.contains("https://") && !html.contains("//cdn"), "{html}");
    }
}
