//! Domains against every byte by itself.

use std::sync::Arc;

use outcore_geometry::{AxisSection, Section};
use outcore_storage::{MemoryStore, Store, StripedStore};
use proptest::prelude::*;

use super::*;
use crate::{ArrayDescriptor, ElementType};

/// An array of bytes or numbers, on stripes of so many bytes.
fn array(shape: &[u64], layout: &str, element: ElementType, disks: usize, unit: u64) -> Array {
    let descriptor = ArrayDescriptor::new(shape, element).layout(layout.parse().unwrap());
    let disks = (0..disks).map(|_| Arc::new(MemoryStore::new()) as Arc<dyn Store>);
    let store = StripedStore::new(disks.collect(), unit).unwrap();
    Array::in_store("striped", &descriptor, Arc::new(store)).unwrap()
}

fn request(array: &Array, section: &Section) -> Request {
    Request::new(array.layout(), section).unwrap()
}

/// The domains that requests of these sections get.
fn domains_of(kind: DomainKind, array: &Array, requests: &[Request], ranks: usize) -> Domains {
    let filled = requests
        .iter()
        .filter(|request| request.start < request.end);
    let start = filled.clone().map(|request| request.start).min();
    let end = filled.map(|request| request.end).max();
    let bounds = (start.unwrap_or(0), end.unwrap_or(0));
    let weights = || {
        let mut weights = Weights::new(bounds);
        requests.iter().for_each(|request| weights.add(request));
        Ok(weights)
    };
    Domains::new(kind, array, bounds, ranks, weights).unwrap()
}

/// Which domain has each byte between the bounds; checks windows on the way.
fn owners(domains: &Domains, w: u64, element: u64) -> Vec<usize> {
    let mut owners = vec![None; (domains.end - domains.start) as usize];
    let mut longest = 0;
    for domain in 0..domains.count() {
        let length = domains.length(domain);
        longest = longest.max(length);
        let mut seen = 0;
        for k in 0..length.div_ceil(w) {
            let mut last = None;
            for piece in domains.pieces(domain, k, w) {
                assert!(piece.start < piece.end && piece.start >= domains.start);
                assert!(last.is_none_or(|end| end < piece.start), "pieces ascend");
                assert!(piece.start.is_multiple_of(element), "between elements");
                last = Some(piece.end);
                assert_eq!(piece.at, seen - k * w, "dense in the image");
                seen += piece.end - piece.start;
                for offset in piece.start..piece.end {
                    assert_eq!(domains.of_byte(offset), domain);
                    let owner = &mut owners[(offset - domains.start) as usize];
                    assert_eq!(owner.replace(domain), None, "in one domain only");
                }
            }
        }
        assert_eq!(seen, length);
        assert_eq!(domains.pieces(domain, length.div_ceil(w), w).count(), 0);
    }
    assert!(domains.longest() >= longest);
    owners
        .into_iter()
        .map(|owner| owner.expect("in a domain"))
        .collect()
}

/// Whether requests touch the domains that the owners of their bytes say.
fn check_touching(domains: &Domains, owners: &[usize], request: &Request) {
    let mut expected = BTreeSet::new();
    for pass in request.runs.passes() {
        for run in (0..pass.count).map(|at| pass.run(at)) {
            let start = (run.file_offset - domains.start) as usize;
            expected.extend(&owners[start..start + run.len as usize]);
        }
    }
    let expected: Vec<usize> = expected.into_iter().collect();
    assert_eq!(domains.touched(request), expected);
    for domain in 0..domains.count() {
        let touches = expected.contains(&domain);
        assert_eq!(domains.touches(domain, request), touches, "domain {domain}");
    }
}

fn axis() -> impl Strategy<Value = (u64, Vec<AxisSection>)> {
    (1u64..12).prop_flat_map(|extent| {
        let range = (0..=extent, 0..=extent, 1u64..5)
            .prop_map(|(lower, upper, stride)| AxisSection::range(lower, upper, stride).unwrap());
        (Just(extent), proptest::collection::vec(range, 3))
    })
}

proptest! {
    #[test]
    fn every_byte_has_one_domain(
        axes in proptest::collection::vec(axis(), 1..4),
        layout in proptest::sample::select(vec!["row", "column", "tiled"]),
        element in proptest::sample::select(vec![ElementType::U8, ElementType::I32, ElementType::C128]),
        few in 1usize..12,
        kind in proptest::sample::select(DomainKind::ALL.to_vec()),
        (ranks, disks, stripe) in (1usize..10, 1usize..6, 1u64..20),
        (w, shift) in (1u64..9, 0u64..200),
    ) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let tile = vec!["2"; shape.len()].join("x");
        let layout = match layout { "tiled" => format!("tiled:{tile}"), other => other.into() };
        let size = element.size();
        let array = array(&shape, &layout, element, disks, stripe * size);
        let requests: Vec<Request> = (0..3).map(|rank| {
            let taken = axes.iter().map(|axis| axis.1[rank].clone());
            request(&array, &Section::new(taken.collect()).unwrap())
        }).collect();
        let kind = match kind { DomainKind::Few(_) => DomainKind::Few(few), other => other };
        let mut domains = domains_of(kind, &array, &requests, ranks);
        // As if the data did not begin with the first stripe.
        if let Cut::Stripes { shift: at, unit, parts } = &mut domains.cut {
            *at = shift / size * size % (*unit * *parts);
        }
        let owners = owners(&domains, w * size, size);
        for request in &requests {
            check_touching(&domains, &owners, request);
        }
        // Ranks that have a domain, and which.
        prop_assert!(domains.count() <= ranks);
        let with: Vec<usize> = (0..ranks).filter_map(|rank| domains.of_rank(rank)).collect();
        prop_assert!(with.into_iter().eq(0..domains.count()));
        for domain in 0..domains.count() {
            prop_assert_eq!(domains.of_rank(domains.rank(domain)), Some(domain));
        }
        if let DomainKind::Few(count) = kind {
            prop_assert_eq!(domains.count(), count.min(ranks));
        }
        if let (DomainKind::Disks, Cut::Stripes { shift, .. }) = (kind, &domains.cut) {
            let striping = array.store().striping().unwrap();
            let mut of_disk = vec![None; disks];
            for (at, owner) in owners.iter().enumerate() {
                let disk = striping.disk_of(domains.start + at as u64 + shift);
                prop_assert_eq!(*of_disk[disk].get_or_insert(*owner), *owner, "disk {}", disk);
            }
        }
    }
}

#[test]
fn blocks_are_even_and_static_ones_do_not_ask_who_wants_what() {
    let array = array(&[64, 16], "row", ElementType::F32, 1, 4096);
    let rows = |text| request(&array, &Section::parse(text, &[64, 16]).unwrap());
    let lengths = |kind, text| -> Vec<u64> {
        let domains = domains_of(kind, &array, &[rows(text)], 4);
        (0..4).map(|domain| domains.length(domain) / 64).collect()
    };
    assert_eq!(lengths(DomainKind::Dynamic, "16:32"), [4, 4, 4, 4]);
    assert_eq!(lengths(DomainKind::Static, "16:32"), [0, 16, 0, 0]);
    assert_eq!(lengths(DomainKind::Conforming, "16:32"), [16; 4]);
    assert_eq!(lengths(DomainKind::Few(2), "16:32"), [8, 8, 0, 0]);
    assert_eq!(lengths(DomainKind::Cyclic, "16:32"), [4, 4, 4, 4]);
}

#[test]
fn weighted_domains_balance_what_is_asked_for() {
    let array = array(&[4096, 64], "row", ElementType::U8, 1, 4096);
    let section = |text: &str| Section::parse(text, &[4096, 64]).unwrap();
    // Dense in front, sparse behind, nothing between.
    let texts = [":256", "128:384", "2048::16", "4000:, ::4"];
    let requests: Vec<Request> = texts
        .iter()
        .map(|text| request(&array, &section(text)))
        .collect();
    for ranks in [2, 4, 16, 100] {
        let domains = domains_of(DomainKind::Weighted, &array, &requests, ranks);
        let wanted = |domain| -> u64 {
            let pieces = domains.pieces(domain, 0, u64::MAX);
            let of = |piece: Piece| {
                let shares = requests
                    .iter()
                    .map(|request| request.share(piece.start, piece.end));
                shares.map(|share| share.end - share.start).sum::<u64>()
            };
            pieces.map(of).sum()
        };
        let wanted: Vec<u64> = (0..ranks).map(wanted).collect();
        let mean = wanted.iter().sum::<u64>() / ranks as u64;
        assert!(wanted.iter().all(|bytes| *bytes <= 2 * mean), "{wanted:?}");
    }
}

#[test]
fn disks_are_refused_where_there_are_none() {
    let descriptor = ArrayDescriptor::new(&[8], ElementType::F64);
    let plain = Array::in_store("plain", &descriptor, Arc::new(MemoryStore::new())).unwrap();
    let error = Domains::check(DomainKind::Disks, &plain)
        .unwrap_err()
        .to_string();
    assert!(error.contains("striped over disks"), "{error}");
    let odd = array(&[8], "row", ElementType::F64, 3, 12);
    let error = Domains::check(DomainKind::Disks, &odd)
        .unwrap_err()
        .to_string();
    assert!(error.contains("12 is no multiple of 8"), "{error}");
    assert!(Domains::check(DomainKind::Dynamic, &odd).is_ok());
}

#[test]
fn huge_stripes_and_arrays_do_not_overflow() {
    let array = array(&[1 << 40], "row", ElementType::F64, 3, 1 << 62);
    let all = request(&array, &Section::whole(&[1 << 40]).unwrap());
    for kind in DomainKind::ALL {
        let domains = domains_of(kind, &array, std::slice::from_ref(&all), 10_000);
        let lengths = (0..domains.count()).map(|domain| domains.length(domain));
        assert_eq!(lengths.sum::<u64>(), 1 << 43, "{kind}");
        assert!(domains.touched(&all).len() <= domains.count());
    }
}
