//! Contraction of block-sparse tensors whose blocks are on disks, by tasks that
//! ranks take when they are free (Krishnamoorthy et al. 2006, sections IV, VI and
//! VII).
//!
//! An [`Expression`] such as `i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]` over
//! [`Spaces`] of segments is a [`Contraction`]; [`contract`] carries it out. Each
//! block of the result that is not zero is one task. Blocks of the factors are
//! fetched by any rank at any time from wherever they are kept:
//!
//! | [`Blocks`] | where | what the paper calls it |
//! |---|---|---|
//! | [`CallBlocks`] | on the disks of the ranks, who serve one another by procedure calls | GPC-IO |
//! | [`FileBlocks::whole`] | one array that all ranks reach | |
//! | [`replicate`] | a copy for every rank | replication |
//! | [`FileBlocks::create_parts`] | one file a rank, whole or striped, that all ranks reach | a parallel file system |
//!
//! ```
//! use outcore::{Array, ArrayDescriptor, ElementType, Error, MemoryBudget};
//! use outcore_apps::Resources;
//! use outcore_apps::contract::{Contraction, FileBlocks, Predicate, Spaces, TaskCounter, Tensors, contract};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = |name: &str| format!("{}/{name}.oc", directory.path().display());
//! let spaces = Spaces::default().with_space("p", "4,3".parse()?).with_space("h", "5,2".parse()?);
//! let text = "c[p1,p2] += a[p1,h1] * b[h1,p2]";
//! let contraction = Contraction::new(text.parse()?, &spaces, |_, at| Predicate::Parity.holds(at))?;
//! let make = |tensor: &outcore_apps::contract::BlockTensor, value: f64| {
//!     let descriptor = ArrayDescriptor::new(&[tensor.len()], ElementType::F64);
//!     let array = Array::create(&path(tensor.name()), &descriptor)?;
//!     array.write(&array.whole(), &vec![value; tensor.len() as usize])?;
//!     Ok::<_, Error>(array)
//! };
//! let a = make(contraction.left(), 2.0)?;
//! let b = make(contraction.right(), 3.0)?;
//! let c = make(contraction.output(), 1.0)?;
//!
//! outcore::run(2, |comm| {
//!     let tensors = Tensors {
//!         output: &FileBlocks::whole(contraction.output(), c.clone())?,
//!         left: &FileBlocks::whole(contraction.left(), a.clone())?,
//!         right: &FileBlocks::whole(contraction.right(), b.clone())?,
//!     };
//!     let tasks = TaskCounter::new(comm, None, contraction.groups())?;
//!     let resources = Resources::of(MemoryBudget::of(64 << 20));
//!     let done = contract::<f64>(comm, &contraction, &tensors, &tasks, &resources)?;
//!     assert_eq!(done.tasks, 2);
//!     Ok::<(), Error>(())
//! })?;
//! // Block (0, 0) is the sum over the first segment of h, which has 5 elements.
//! let values: Vec<f64> = c.read(&c.whole())?;
//! assert_eq!(values[0], 1.0 + 5.0 * 2.0 * 3.0);
//! assert_eq!(values[values.len() - 1], 1.0 + 2.0 * 2.0 * 3.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrays;
mod blocks;
mod call_blocks;
mod contraction;
mod copy;
mod counter;
mod division;
mod einsum;
mod execute;
mod expression;
mod file_blocks;
mod matrix_form;
mod predicate;
mod reader;
mod replicate;
mod segments;
mod shelf;
mod tensor;
mod way;

pub use arrays::{Spent, TensorArrays, check_arrays, contract_arrays};
pub use blocks::{Blocks, Fetch};
pub use call_blocks::CallBlocks;
pub use contraction::{Contraction, Pair, Task};
pub use counter::TaskCounter;
pub use einsum::einsum;
pub use execute::{Contracted, Tasks, Tensors, contract, least_memory};
pub use expression::{Expression, Role, Term};
pub use file_blocks::{FileBlocks, STRIPE, Spread};
pub use predicate::Predicate;
pub use replicate::{open_replica, replicate};
pub use segments::{Segments, Spaces};
pub use tensor::{BlockTensor, Place};
pub use way::{Placing, Way};
