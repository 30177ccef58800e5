//! What irregular calls must do: an array in memory, the last axis fastest, whose
//! elements are looked up one by one.

use outcore::{Array, ArrayDescriptor, ByteOrder, Element};

/// Numbers that the tests compute with.
pub(crate) trait Value: Element + PartialEq + std::fmt::Debug {
    fn of(number: u64) -> Self;
}

macro_rules! values {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn of(number: u64) -> Self {
                // Small enough to be exact in every type, and in sums.
                (number % 50) as $type
            }
        }
    )*};
}

values! { u8 i16 i32 u64 f32 f64 }

impl Value for outcore::Complex<f64> {
    fn of(number: u64) -> Self {
        Self::new((number % 50) as f64, (number % 7) as f64)
    }
}

/// An array of elements that are records of some components.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) shape: Vec<u64>,
    pub(crate) layout: String,
    pub(crate) components: Option<u64>,
    pub(crate) byte_order: ByteOrder,
}

impl Target {
    pub(crate) fn descriptor<T: Element>(&self) -> ArrayDescriptor {
        let mut shape = self.shape.clone();
        shape.extend(self.components);
        ArrayDescriptor::new(&shape, T::TYPE)
            .layout(self.layout.parse().expect("a layout"))
            .byte_order(self.byte_order)
    }

    pub(crate) fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    pub(crate) fn record(&self) -> usize {
        self.components.unwrap_or(1) as usize
    }
}

/// All values of an array, the last axis fastest.
pub(crate) fn contents<T: Value>(array: &Array) -> Vec<T> {
    let values: Vec<T> = array.read(&array.whole()).expect("readable");
    let order: Vec<usize> = (0..array.shape().len()).collect();
    if array.layout().slowest_first() == order {
        return values;
    }
    let mut turned = vec![T::of(0); values.len()];
    let size = size_of::<T>();
    let mut bytes = vec![0; values.len() * size];
    outcore::reorder(
        array.shape(),
        (bytes_of(&values), array.layout().slowest_first()),
        (&mut bytes, &order),
    );
    for (value, bytes) in turned.iter_mut().zip(bytes.chunks_exact(size)) {
        // SAFETY: values of these types are plain bytes, and there are as many.
        *value = unsafe { bytes.as_ptr().cast::<T>().read_unaligned() };
    }
    turned
}

fn bytes_of<T: Value>(values: &[T]) -> &[u8] {
    // SAFETY: values of these types have no padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}
