//! [`Page`]: a self-contained HTML page, light or dark as the reader's system is,
//! without scripts and without anything from elsewhere. Its tags are well-formed,
//! so that programs can read it, too.

use std::fmt::Write;

pub(crate) use crate::picture::escaped;

/// What all pages look like.
const STYLE: &str = include_str!("page.css");

/// A page that grows from top to bottom.
pub(crate) struct Page {
    title: String,
    body: String,
}

impl Page {
    pub(crate) fn new(title: &str) -> Self {
        let mut page = Self {
            title: title.into(),
            body: String::new(),
        };
        page.element("h1", title);
        page
    }

    /// An element with nothing but text in it, such as `h2` or `p`.
    pub(crate) fn element(&mut self, name: &str, text: &str) {
        self.put(format_args!("<{name}>{}</{name}>\n", escaped(text)));
    }

    /// A paragraph that stands back.
    pub(crate) fn note(&mut self, text: &str) {
        self.put(format_args!("<p class=\"note\">{}</p>\n", escaped(text)));
    }

    /// Text as it is, line by line.
    pub(crate) fn lines(&mut self, text: &str) {
        let lines: Vec<String> = text.lines().map(escaped).collect();
        self.put(format_args!("<pre>{}</pre>\n", lines.join("\n")));
    }

    /// A drawing, or other elements that are complete.
    pub(crate) fn drawing(&mut self, class: &str, elements: &str) {
        self.put(format_args!("<div class=\"{class}\">\n{elements}</div>\n"));
    }

    /// Names and what they stand for.
    pub(crate) fn facts(&mut self, facts: &[(&str, String)]) {
        let mut list = String::from("<dl>\n");
        for (name, value) in facts {
            let _ = writeln!(
                list,
                "<dt>{}</dt><dd>{}</dd>",
                escaped(name),
                escaped(value)
            );
        }
        self.put(format_args!("{list}</dl>\n"));
    }

    /// A table without its empty columns; what looks like a number stands at the
    /// right.
    pub(crate) fn table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
        let used = |column: &usize| cells(*column).any(|cell| !cell.is_empty());
        let used: Vec<usize> = (0..heads.len()).filter(used).collect();
        let class = |column: usize| match cells(column).all(|cell| is_number(cell)) {
            true => " class=\"number\"",
            false => "",
        };
        let classes: Vec<&str> = used.iter().map(|column| class(*column)).collect();
        let mut table = String::from("<div class=\"wide\"><table>\n<thead><tr>");
        for (column, class) in used.iter().zip(&classes) {
            let _ = write!(table, "<th{class}>{}</th>", escaped(heads[*column]));
        }
        table += "</tr></thead>\n<tbody>\n";
        for row in rows {
            table += "<tr>";
            for (column, class) in used.iter().zip(&classes) {
                let cell = row.get(*column).map_or("", String::as_str);
                let _ = write!(table, "<td{class}>{}</td>", escaped(cell));
            }
            table += "</tr>\n";
        }
        self.put(format_args!("{table}</tbody></table></div>\n"));
    }

    /// What `fill` adds is hidden until the reader opens it.
    pub(crate) fn folded(&mut self, summary: &str, fill: impl FnOnce(&mut Self)) {
        let summary = escaped(summary);
        self.put(format_args!("<details><summary>{summary}</summary>\n"));
        fill(self);
        self.body += "</details>\n";
    }

    /// The whole page.
    pub(crate) fn finish(self) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{}\
             <footer>made by outcore {}</footer>\n</main>\n</body>\n</html>\n",
            escaped(&self.title),
            self.body,
            env!("CARGO_PKG_VERSION")
        )
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(element);
    }
}

/// Whether a cell begins with a number, or has none.
fn is_number(cell: &str) -> bool {
    let first = cell.trim_start_matches(['-', '+']).chars().next();
    first.is_none_or(|letter| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_tags_closed() {
        let mut page = Page::new("a < b");
        page.facts(&[("\"name\"", "<script>".into())]);
        let row = ["x&y", "1.5 ms", ""].map(String::from).to_vec();
        page.table(&["who", "time", "nothing"], &[row]);
        page.folded("more", |page| page.lines("1 < 2\n3"));
        let text = page.finish();
        assert!(text.contains("<title>a &lt; b</title>"));
        assert!(text.contains("<dt>&quot;name&quot;</dt><dd>&lt;script&gt;</dd>"));
        assert!(text.contains("<td>x&amp;y</td><td class=\"number\">1.5 ms</td>"));
        assert!(!text.contains("nothing"));
        assert!(text.contains("<summary>more</summary>\n<pre>1 &lt; 2\n3</pre>\n</details>"));
    }
}
