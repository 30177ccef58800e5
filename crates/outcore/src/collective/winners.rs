//! [`won`]: what of a rank's section nobody above it writes.
//!
//! The mathematics. Where sections overlap, the highest rank's data count. If
//! every rank writes only what no higher one does, no two write the same element,
//! and they need not wait for one another. What a box `A` keeps of itself when a
//! box `B` within it is taken away is, for each axis `k`, the product of `B`
//! along the axes before `k`, of `A` less `B` along `k`, and of `A` along those
//! behind. Along one axis a progression less another one whose stride is `m`
//! times as long is what lies before, what lies behind, and `m - 1` progressions
//! in between.
//!
//! All is counted in positions of the rank's own section, where it is a box of
//! stride 1.

use outcore_geometry::{AxisSection, Section};

use super::request::Request;

/// More parts than this are not worth it.
const MOST: usize = 64;

/// The positions of the section of `rank` that no higher rank writes, in boxes;
/// `None` if those are not few, or not regular.
pub(super) fn won(requests: &[Request], rank: usize) -> Option<Vec<Section>> {
    let own = &requests[rank];
    let mut parts = vec![Section::whole(&own.section.shape()).ok()?];
    parts.retain(|part| !part.is_empty());
    for other in &requests[rank + 1..] {
        if other.start >= own.end || own.start >= other.end {
            continue;
        }
        let both = own.section.intersect(&other.section).ok()?;
        if both.is_empty() {
            continue;
        }
        let taken = positions(&own.section, &both)?;
        let mut left = Vec::new();
        for part in parts {
            subtract(part, &taken, &mut left)?;
        }
        parts = left;
    }
    Some(parts)
}

/// The positions in `whole` of the elements of `part`, if they are regular.
fn positions(whole: &Section, part: &Section) -> Option<Section> {
    let axes = whole.axes().iter().zip(part.axes()).map(|(whole, part)| {
        let (first, last) = (
            whole.position(part.first()?)?,
            whole.position(part.last()?)?,
        );
        let steps = part.count() - 1;
        if steps == 0 || steps == last - first {
            return Some(AxisSection::span(first, last + 1));
        }
        let step = part.stride()? / whole.stride()?;
        AxisSection::range(first, last + 1, step).ok()
    });
    Section::new(axes.collect::<Option<_>>()?).ok()
}

/// Adds to `left` what `part` keeps when `taken` is taken away.
fn subtract(part: Section, taken: &Section, left: &mut Vec<Section>) -> Option<()> {
    let both = part.intersect(taken).ok()?;
    if both.is_empty() {
        left.push(part);
        return Some(());
    }
    let mut axes = part.axes().to_vec();
    for (axis, both) in both.axes().iter().enumerate() {
        let whole = std::mem::replace(&mut axes[axis], both.clone());
        for rest in less(&whole, both)? {
            let mut kept = axes.clone();
            kept[axis] = rest;
            left.push(Section::new(kept).ok()?);
        }
        if left.len() > MOST {
            return None;
        }
    }
    Some(())
}

/// What a progression keeps when some of its indices, at least one, are taken
/// away.
fn less(whole: &AxisSection, taken: &AxisSection) -> Option<Vec<AxisSection>> {
    let (first, last) = (taken.first()?, taken.last()?);
    let (stride, (_, upper)) = (whole.stride()?, whole.bounds());
    let mut rest = vec![
        AxisSection::range(whole.bounds().0, first, stride).ok()?,
        AxisSection::range(last.saturating_add(stride).min(upper), upper, stride).ok()?,
    ];
    if taken.count() > 1 {
        let step = taken.stride()?;
        let between = step / stride;
        if between > MOST as u64 {
            return None;
        }
        for at in 1..between {
            rest.push(AxisSection::range(first + at * stride, last, step).ok()?);
        }
    }
    rest.retain(|axis| !axis.is_empty());
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_geometry::{Layout, Order};
    use proptest::prelude::*;

    fn requests(sections: Vec<Section>) -> Vec<Request> {
        let layout = Layout::new(&[20, 20], 1, &Order::Row, None).unwrap();
        let sections = sections.iter();
        sections
            .map(|section| Request::new(&layout, section).unwrap())
            .collect()
    }

    /// Every element of all sections must be in one part, of the highest rank
    /// that has it.
    fn check(sections: Vec<Section>) {
        let requests = requests(sections.clone());
        for (rank, section) in sections.iter().enumerate() {
            let Some(parts) = won(&requests, rank) else {
                continue;
            };
            let parts: Vec<Section> = parts.iter().map(|part| section.select(part)).collect();
            for index in (0..400).map(|at| [at / 20, at % 20]) {
                let above = sections[rank + 1..].iter();
                let lost = above.into_iter().any(|above| above.contains(&index));
                let expected = section.contains(&index) && !lost;
                let found = parts.iter().filter(|part| part.contains(&index)).count();
                assert_eq!(found, usize::from(expected), "{index:?} of rank {rank}");
            }
        }
    }

    fn axis() -> impl Strategy<Value = AxisSection> {
        prop_oneof![
            4 => (0u64..20, 0u64..=20, 1u64..5)
                .prop_map(|(lower, upper, stride)| AxisSection::range(lower, upper.max(lower), stride).unwrap()),
            1 => proptest::collection::btree_set(0u64..20, 0..6)
                .prop_map(|set| AxisSection::list(set.into_iter().collect::<Vec<_>>()).unwrap()),
        ]
    }

    proptest! {
        #[test]
        fn every_element_is_of_the_highest_rank(
            axes in proptest::collection::vec((axis(), axis()), 1..6)
        ) {
            let sections = axes.into_iter().map(|(a, b)| Section::new(vec![a, b]).unwrap());
            check(sections.collect());
        }
    }

    #[test]
    fn regular_overlaps_leave_few_parts() {
        let count = |texts: [&str; 3]| {
            let sections = texts.map(|text| Section::parse(text, &[20, 20]).unwrap());
            check(sections.to_vec());
            let requests = requests(sections.to_vec());
            [0, 1, 2].map(|rank| won(&requests, rank).map(|parts| parts.len()))
        };
        let one = [Some(0), Some(0), Some(1)];
        assert_eq!(count(["2:9, 3:7"; 3]), one);
        assert_eq!(count(["[1,5,6], :"; 3]), one);
        assert_eq!(count([":, 0:8", ":, 4:12", ":, 8:16"]), [Some(1); 3]);
        assert_eq!(
            count(["0:8, 0:8", "4:12, 4:12", "8:16, 8:16"]),
            [Some(2), Some(2), Some(1)]
        );
        assert_eq!(
            count([":, :", "::3, :", "1::3, :"]).map(Option::unwrap),
            [1, 1, 1]
        );
        // A list of which others write a part.
        assert_eq!(count(["[1,5,6,9], :", "[1,6,9], :", "12, :"])[0], None);
    }
}
