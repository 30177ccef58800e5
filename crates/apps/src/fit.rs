//! How much fits: the largest size whose need is within a limit.

/// The largest of `1..=most` whose `need`, which grows with it, is at most
/// `limit`; `None` if not even 1 fits.
pub(crate) fn largest(most: u64, limit: u64, need: impl Fn(u64) -> u64) -> Option<u64> {
    if most == 0 || need(1) > limit {
        return None;
    }
    let (mut fits, mut fails) = (1, most.saturating_add(1));
    while fits + 1 < fails {
        let middle = fits + (fails - fits) / 2;
        if need(middle) <= limit {
            fits = middle;
        } else {
            fails = middle;
        }
    }
    Some(fits)
}

#[cfg(test)]
mod tests {
    use super::largest;

    #[test]
    fn the_largest_that_fits() {
        assert_eq!(largest(100, 50, |size| 7 * size), Some(7));
        assert_eq!(largest(5, 50, |size| 7 * size), Some(5));
        assert_eq!(largest(5, 6, |size| 7 * size), None);
        assert_eq!(largest(0, 6, |size| size), None);
    }
}
