//! Matrix multiplication `C = A B` of matrices that do not fit in memory.
//!
//! | form | what stays in memory | what is read |
//! |---|---|---|
//! | [`Form::Blocked`] | a block of `C` for each rank, as large as possible | panels of `A` and `B`, ahead of the kernel |
//! | [`Form::Gaxpy`] | rows of `A`, divided among the ranks | columns of `B`, by all ranks together (Thakur and Choudhary 1996, section 2.1) |
//!
//! Any layouts, byte orders and shapes go together: buffers are in the axis
//! order of their files, and the kernel takes strides, so nothing is transposed.

mod blocked;
mod blocking;
mod gaxpy;
mod kernel;
mod number;
mod product;

pub(crate) use kernel::{Before, multiply_add, scratch as kernel_memory};
pub use kernel::{Matrix, multiply_in_memory};
pub use number::Number;
pub(crate) use number::of_number;
pub use product::{Form, multiply, product_shape};
