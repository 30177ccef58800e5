//! Numbers of things in words: `1 edge`, `5 edges`, `2 passes`.

/// So many of `one`, whose plural is regular.
pub(crate) fn counted(number: u64, one: &str) -> String {
    let ending = match number {
        1 => "",
        _ if one.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {one}{ending}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_no_plural() {
        let all = [counted(1, "edge"), counted(0, "edge"), counted(2, "pass")];
        assert_eq!(all, ["1 edge", "0 edges", "2 passes"]);
    }
}
