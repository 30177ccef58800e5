//! Arrays of every format, layout and element type against an oracle in
//! memory, with the requests they make.

use std::sync::Arc;

use outcore::Strategy as MoveBy;
use outcore::storage::{CountedStore, MemoryStore, Store};
use outcore::{
    Array, ArrayDescriptor, AxisSection, ByteOrder, Complex, Direction, Element, ElementType, Fill,
    Order, Section, Stripes, Tuning, dispatch, f16,
};
use proptest::prelude::*;
use tempfile::TempDir;

/// A dense row-major copy of an array, as bytes of one element each.
struct Oracle {
    shape: Vec<u64>,
    elements: Vec<Vec<u8>>,
}

impl Oracle {
    fn new(shape: &[u64], size: usize) -> Self {
        let count = shape.iter().product::<u64>() as usize;
        Self {
            shape: shape.to_vec(),
            elements: vec![vec![0; size]; count],
        }
    }

    /// The places of a section's elements, in the order of a buffer.
    fn places(&self, section: &Section, slowest_first: &[usize]) -> Vec<usize> {
        if section.is_empty() {
            return Vec::new();
        }
        let mut points = vec![vec![0; self.shape.len()]];
        for axis in slowest_first {
            let taken = &section.axes()[*axis];
            points = points
                .iter()
                .flat_map(|point| {
                    (0..taken.count()).map(move |at| {
                        let mut point = point.clone();
                        point[*axis] = taken.index(at);
                        point
                    })
                })
                .collect();
        }
        let number = |point: &Vec<u64>| {
            point
                .iter()
                .zip(&self.shape)
                .fold(0, |number, (at, extent)| number * extent + at)
        };
        points.iter().map(|point| number(point) as usize).collect()
    }

    fn write(&mut self, section: &Section, order: &[usize], bytes: &[u8]) {
        let size = self.elements.first().map_or(1, Vec::len);
        for (place, element) in self
            .places(section, order)
            .into_iter()
            .zip(bytes.chunks(size))
        {
            self.elements[place] = element.to_vec();
        }
    }

    fn read(&self, section: &Section, order: &[usize]) -> Vec<u8> {
        let places = self.places(section, order);
        places
            .into_iter()
            .flat_map(|place| self.elements[place].clone())
            .collect()
    }
}

fn sections(shape: Vec<u64>) -> impl Strategy<Value = Section> {
    let axes: Vec<_> = shape
        .into_iter()
        .map(|extent| {
            let range = (0..=extent, 0..=extent, 1u64..5)
                .prop_map(|(l, u, s)| AxisSection::range(l, u, s).unwrap());
            let list = proptest::collection::btree_set(0..extent, 0..=extent as usize)
                .prop_map(|set| AxisSection::list(set.into_iter().collect::<Vec<_>>()).unwrap());
            prop_oneof![3 => range, 1 => list, 2 => Just(AxisSection::span(0, extent))]
        })
        .collect();
    axes.prop_map(|axes| Section::new(axes).unwrap())
}

/// A descriptor, and a sequence of sections to write.
fn cases() -> impl Strategy<Value = (ArrayDescriptor, Vec<Section>)> {
    let shape = proptest::collection::vec(1u64..8, 0..4);
    shape.prop_flat_map(|shape| {
        let axes = shape.len();
        let order = prop_oneof![
            Just(Order::Row),
            Just(Order::Column),
            Just((0..axes).collect::<Vec<_>>())
                .prop_shuffle()
                .prop_map(Order::Axes),
        ];
        let tile = proptest::option::of(proptest::collection::vec(1u64..5, axes));
        let element = (0..ElementType::ALL.len()).prop_map(|at| ElementType::ALL[at]);
        let writes = proptest::collection::vec(sections(shape.clone()), 1..4);
        (Just(shape), order, tile, element, any::<bool>(), writes).prop_map(
            |(shape, order, tile, element, big, writes)| {
                let mut descriptor = ArrayDescriptor::new(&shape, element);
                descriptor.arrangement = outcore::Arrangement { order, tile };
                descriptor.byte_order = if big {
                    ByteOrder::Big
                } else {
                    ByteOrder::Little
                };
                (descriptor, writes)
            },
        )
    })
}

/// Any way to move a section.
fn tunings() -> impl Strategy<Value = Tuning> {
    let buffer = prop_oneof![1u64..200, Just(4 << 20)];
    let gap = proptest::option::of(prop_oneof![0u64..100, Just(u64::MAX)]);
    (0..MoveBy::ALL.len(), buffer, gap, any::<bool>()).prop_map(
        |(at, buffer, gap, whole_slices)| Tuning {
            strategy: MoveBy::ALL[at],
            buffer: Some(buffer),
            gap,
            whole_slices,
        },
    )
}

/// Writes random bytes through the array and the oracle, and compares every
/// section after every write; with every way to move sections in turn.
fn check_writes(array: &Array, writes: &[Section], tunings: &[Tuning]) {
    let size = array.layout().element_size() as usize;
    let order = array.layout().slowest_first();
    let mut oracle = Oracle::new(array.shape(), size);
    let mut ways = tunings.iter().cycle();
    let mut tuned = || array.tuned(*ways.next().unwrap());
    for (round, section) in writes.iter().enumerate() {
        let mut bytes = vec![0; section.count() as usize * size];
        Fill::Random(round as u64)
            .generate(array, section, &mut bytes)
            .unwrap();
        tuned().write_bytes(section, &bytes).unwrap();
        oracle.write(section, order, &bytes);
        for section in writes.iter().chain([&array.whole()]) {
            let mut found = vec![0xaa; section.count() as usize * size];
            let array = tuned();
            array.read_bytes(section, &mut found).unwrap();
            assert_eq!(found, oracle.read(section, order), "{section} of {array:?}");
        }
    }
}

fn ways() -> impl Strategy<Value = Vec<Tuning>> {
    proptest::collection::vec(tunings(), 1..6)
}

proptest! {
    #[test]
    fn sections_in_memory((descriptor, writes) in cases(), ways in ways()) {
        let store = Arc::new(MemoryStore::new());
        store.set_len(descriptor.byte_len().unwrap()).unwrap();
        check_writes(&Array::in_store("memory", &descriptor, store).unwrap(), &writes, &ways);
    }

    #[test]
    fn requests_are_those_of_the_plan((descriptor, writes) in cases(), tuning in tunings()) {
        let store = Arc::new(CountedStore::new(MemoryStore::new()));
        store.set_len(descriptor.byte_len().unwrap()).unwrap();
        let array = Array::in_store("memory", &descriptor, store.clone()).unwrap();
        // What cannot be mapped is sieved.
        let strategy = if tuning.strategy == MoveBy::Mapped { MoveBy::Sieving } else { tuning.strategy };
        let array = array.tuned(Tuning { strategy, ..tuning });
        for section in &writes {
            let mut bytes = vec![0; (section.count() * array.layout().element_size()) as usize];
            store.reset();
            array.read_bytes(section, &mut bytes).unwrap();
            let (plan, counts) = (array.plan(section, Direction::Read).unwrap(), store.counts());
            prop_assert_eq!(plan.useful_bytes(), bytes.len() as u64);
            prop_assert_eq!((counts.reads, counts.bytes_read), (plan.requests(), plan.moved_bytes()));
            store.reset();
            array.write_bytes(section, &bytes).unwrap();
            let (plan, counts) = (array.plan(section, Direction::Write).unwrap(), store.counts());
            prop_assert_eq!((counts.writes, counts.bytes_written), (plan.requests(), plan.moved_bytes()));
            // Only what has gaps is read before it is written.
            let gaps = plan.moved_bytes() - plan.useful_bytes();
            prop_assert_eq!(counts.reads > 0, gaps > 0);
            prop_assert!(counts.bytes_read <= counts.bytes_written);
        }
    }

    #[test]
    fn sections_in_native_files((descriptor, writes) in cases(), unit in 1u64..40, disks in 0usize..4, ways in ways()) {
        let directory = TempDir::new().unwrap();
        let name = directory.path().join("array.oc");
        let mut descriptor = descriptor.attribute("units", "kelvin");
        if disks > 0 {
            let directories = (0..disks).map(|disk| {
                let path = directory.path().join(format!("disk{disk}"));
                std::fs::create_dir(&path).unwrap();
                path.canonicalize().unwrap()
            });
            descriptor.stripes = Some(Stripes { unit, directories: directories.collect() });
        }
        let array = Array::create(name.to_str().unwrap(), &descriptor).unwrap();
        prop_assert_eq!(array.descriptor(), &descriptor);
        check_writes(&array, &writes, &ways);
        let mut written = vec![0; array.whole().count() as usize * array.layout().element_size() as usize];
        array.read_bytes(&array.whole(), &mut written).unwrap();
        // Reopened, it is the same.
        let reopened = Array::open(name.to_str().unwrap()).unwrap();
        prop_assert_eq!(reopened.descriptor(), &descriptor);
        let mut found = vec![0; written.len()];
        reopened.read_bytes(&reopened.whole(), &mut found).unwrap();
        prop_assert_eq!(found, written);
    }

    #[test]
    fn sections_in_npy_and_raw_files((mut descriptor, writes) in cases(), offset in 0u64..100, ways in ways()) {
        descriptor.arrangement.tile = None;
        let directory = TempDir::new().unwrap();
        let raw = directory.path().join("data.bin");
        let raw = format!(
            "raw:{}?shape={}&type={}&layout={}&offset={offset}&byteorder={}",
            raw.display(), outcore::shape_text(&descriptor.shape), descriptor.element_type,
            descriptor.arrangement, descriptor.byte_order
        );
        check_writes(&Array::create(&raw, &descriptor).unwrap(), &writes, &ways);
        prop_assert_eq!(Array::open(&raw).unwrap().shape().to_vec(), descriptor.shape.clone());
        let npy = directory.path().join("data.npy");
        let npy = npy.to_str().unwrap();
        match Array::create(npy, &descriptor) {
            Ok(array) => {
                check_writes(&array, &writes, &ways);
                prop_assert_eq!(Array::open(npy).unwrap().shape().to_vec(), descriptor.shape.clone());
            }
            Err(error) => prop_assert!(error.to_string().contains("row or column"), "{}", error),
        }
    }
}

#[test]
fn typed_values_of_every_type() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(values: [T; 3]) {
        let directory = TempDir::new().unwrap();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let name = directory.path().join(format!("{order}.oc"));
            let descriptor = ArrayDescriptor::new(&[3, 5], T::TYPE).byte_order(order);
            let array = Array::create(name.to_str().unwrap(), &descriptor).unwrap();
            let section = array.section("::2, 1:4").unwrap();
            array.write(&section, &[values, values].concat()).unwrap();
            assert_eq!(
                array.read::<T>(&section).unwrap(),
                [values, values].concat()
            );
            assert_eq!(
                array.read::<T>(&array.section("2, 3").unwrap()).unwrap(),
                values[2..]
            );
        }
    }
    check([true, false, true]);
    check([-1i8, 2, i8::MIN]);
    check([-1i16, 2, i16::MIN]);
    check([-1i32, 2, i32::MIN]);
    check([-1i64, 2, i64::MIN]);
    check([1u8, 2, u8::MAX]);
    check([1u16, 2, u16::MAX]);
    check([1u32, 2, u32::MAX]);
    check([1u64, 2, u64::MAX]);
    check([f16::from_f32(1.5), f16::MIN, f16::INFINITY]);
    check([1.5f32, f32::MIN, f32::INFINITY]);
    check([1.5f64, f64::MIN, f64::INFINITY]);
    check([
        Complex::new(1.5f32, -2.0),
        Complex::new(0.0, 1.0),
        Complex::new(3.0, 0.0),
    ]);
    check([
        Complex::new(1.5f64, -2.0),
        Complex::new(0.0, 1.0),
        Complex::new(3.0, 0.0),
    ]);
}

#[test]
fn a_terabyte_is_made_at_once_and_written_beyond_every_32_bit_limit() {
    let directory = TempDir::new().unwrap();
    let name = directory.path().join("big.oc");
    let descriptor = ArrayDescriptor::new(&[1 << 19, 1 << 19], ElementType::F32);
    let array = Array::create(name.to_str().unwrap(), &descriptor).unwrap();
    assert_eq!(array.layout().byte_len(), 1 << 40);
    let corner = array.section("-2:, -3:").unwrap();
    array.write(&corner, &[1f32, 2., 3., 4., 5., 6.]).unwrap();
    let around = array.section("-3:, -2:").unwrap();
    assert_eq!(
        array.read::<f32>(&around).unwrap(),
        [0., 0., 2., 3., 5., 6.]
    );
    let array = array.tuned(Tuning {
        strategy: MoveBy::Direct,
        ..Tuning::default()
    });
    let middle = array.section("600, 65530:65540").unwrap();
    let plan = array.plan(&middle, Direction::Read).unwrap();
    assert!(plan.accesses().next().unwrap().0 > 1 << 30);
    assert_eq!(array.read::<f32>(&middle).unwrap(), [0.0; 10]);
}

#[test]
fn the_index_fill_is_the_row_major_number_in_every_layout() {
    let store = |descriptor: &ArrayDescriptor| {
        let store = Arc::new(MemoryStore::new());
        store.set_len(descriptor.byte_len().unwrap()).unwrap();
        store
    };
    for layout in [
        "row",
        "column",
        "axes:1,2,0",
        "tiled:2x3x2",
        "tiled:2x3x2:column",
    ] {
        let descriptor =
            ArrayDescriptor::new(&[4, 5, 6], ElementType::I64).layout(layout.parse().unwrap());
        let array = Array::in_store(layout, &descriptor, store(&descriptor)).unwrap();
        let mut bytes = vec![0; 120 * 8];
        Fill::Index
            .generate(&array, &array.whole(), &mut bytes)
            .unwrap();
        array.write_bytes(&array.whole(), &bytes).unwrap();
        let one = array.section("3, 2, 5").unwrap();
        assert_eq!(
            array.read::<i64>(&one).unwrap(),
            [3 * 30 + 2 * 6 + 5],
            "{layout}"
        );
    }
}

#[test]
fn plans_print_themselves() {
    let descriptor = ArrayDescriptor::new(&[100, 100], ElementType::F32);
    let store = Arc::new(MemoryStore::new());
    let array = Array::in_store("memory", &descriptor, store).unwrap();
    let array = array.tuned(Tuning {
        strategy: MoveBy::Direct,
        ..Tuning::default()
    });
    let text = array
        .plan(&array.section("::5, 10:20").unwrap(), Direction::Read)
        .unwrap()
        .to_string();
    for part in [
        "direct",
        "requests  20",
        "bytes     800",
        "2040",
        "(12 more)",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn every_type_dispatches_to_itself() {
    for element in ElementType::ALL {
        let size = dispatch!(element, T => {
            assert_eq!(<T as Element>::TYPE, element);
            size_of::<T>()
        });
        assert_eq!(size as u64, element.size());
    }
}
