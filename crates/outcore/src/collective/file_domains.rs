//! [`Array::file_domains`]: who would move which bytes of the file, known
//! without asking anybody, from the sections of all ranks.

use std::ops::Range;

use outcore_geometry::Section;

use super::domains::Domains;
use super::kind::DomainKind;
use super::request::{Request, bounds_of};
use super::weights::Weights;
use crate::array::Array;
use crate::error::{Error, Result};

impl Array {
    /// The file domain of every rank, if rank `r` asked for `sections[r]`: its
    /// bytes, counted from the beginning of the data, as ascending ranges;
    /// none for a rank that has no domain.
    pub fn file_domains(
        &self,
        kind: DomainKind,
        sections: &[Section],
    ) -> Result<Vec<Vec<Range<u64>>>> {
        Domains::check(kind, self)?;
        let request =
            |section| Request::new(self.layout(), section).map_err(Error::geometry(self.name()));
        let requests: Result<Vec<Request>> = sections.iter().map(request).collect();
        let requests = requests?;
        let bounds = bounds_of(&requests);
        if bounds.0 == bounds.1 {
            return Ok(vec![Vec::new(); sections.len()]);
        }
        let weights = || Ok(Weights::of(bounds, &requests));
        let domains = Domains::new(kind, self, bounds, sections.len(), weights)?;
        let of_rank = |rank| {
            let pieces = domains
                .of_rank(rank)
                .map(|domain| domains.pieces(domain, 0, u64::MAX));
            let ranges = pieces.into_iter().flatten();
            ranges.map(|piece| piece.start..piece.end).collect()
        };
        Ok((0..sections.len()).map(of_rank).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{ArrayDescriptor, ElementType};
    use outcore_storage::MemoryStore;

    /// 8 columns of 4 elements of 4 bytes.
    fn array() -> Array {
        let layout = "column".parse().unwrap();
        let descriptor = ArrayDescriptor::new(&[4, 8], ElementType::F32).layout(layout);
        let store = Arc::new(MemoryStore::from(vec![0; 128]));
        Array::in_store("columns", &descriptor, store).unwrap()
    }

    #[test]
    fn columns_of_the_array_or_of_what_is_asked_for() {
        let array = array();
        let sections: Vec<Section> = ["1:3, 2:4", "0:2, 4:6"]
            .iter()
            .map(|text| array.section(text).unwrap())
            .collect();
        let of = |kind| array.file_domains(kind, &sections).unwrap();
        let ends = |kind| -> Vec<(u64, u64)> {
            let ranges = of(kind).into_iter().flatten();
            ranges.map(|range| (range.start, range.end)).collect()
        };
        // From the first to the last byte that is asked for, cut between columns.
        assert_eq!(ends(DomainKind::Static), [(36, 64), (64, 88)]);
        assert_eq!(ends(DomainKind::Dynamic), [(36, 64), (64, 88)]);
        assert_eq!(ends(DomainKind::Conforming), [(0, 64), (64, 128)]);
        assert_eq!(of(DomainKind::Few(1))[1], []);
        for kind in DomainKind::ALL {
            if kind == DomainKind::Disks {
                assert!(array.file_domains(kind, &sections).is_err());
                continue;
            }
            let mut bytes: Vec<u64> = of(kind).into_iter().flatten().flatten().collect();
            bytes.sort_unstable();
            let all = if kind == DomainKind::Conforming {
                0..128
            } else {
                36..88
            };
            assert_eq!(bytes, all.collect::<Vec<_>>(), "{kind}");
        }
    }

    #[test]
    fn nothing_asked_for_is_nobodys() {
        let array = array();
        let none = [Section::empty(2), Section::empty(2)];
        let domains = array.file_domains(DomainKind::Dynamic, &none).unwrap();
        assert_eq!(domains, [vec![], vec![]]);
        assert_eq!(
            array.file_domains(DomainKind::Static, &[]).unwrap().len(),
            0
        );
    }
}
