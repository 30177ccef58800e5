//! Whether a page is well-formed, and what text it holds.

/// Elements that stand in no other: every tag is closed, in the right order.
/// Returns the text between the tags.
pub(crate) fn text_of(page: &str) -> String {
    let page = page.strip_prefix("<!DOCTYPE html>").expect("an HTML page");
    let mut open: Vec<&str> = Vec::new();
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        text += &rest[..at];
        text.push(' ');
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        assert!(!tag.contains('<'), "{tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes are closed: {tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next();
        let name = name.expect("a tag has a name");
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(name), "{tag}"),
            (_, true) => {}
            _ => open.push(name),
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    for forbidden in ["<script", "http://", "https://", "<link", "@import", "url("] {
        let used = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!used.contains(forbidden), "{forbidden}");
    }
    assert!(!page.contains('\u{fffd}'), "a letter was lost");
    text
}
