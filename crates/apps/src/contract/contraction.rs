//! [`Contraction`]: an expression over block-sparse tensors, and the tasks that
//! it consists of.
//!
//! Each block of the result that is not zero is a task: the sum, over all
//! segments of the indices summed over, of the products of two blocks of the
//! factors, as far as neither is zero. Tasks that need the same blocks of the left
//! factor stand together, those with the most work first.

use std::cmp::Reverse;
use std::collections::HashMap;

use outcore::{Error, Result};

use super::expression::{Expression, Role};
use super::matrix_form::MatrixForm;
use super::segments::{Segments, Spaces};
use super::tensor::{BlockTensor, Place};

/// An expression over block-sparse tensors.
///
/// ```
/// use outcore_apps::contract::{Contraction, Predicate, Spaces};
/// let spaces = Spaces::default().with_space("p", "3,2".parse()?);
/// let text = "c[p1,p2] += a[p1,p3] * b[p3,p2]";
/// let contraction = Contraction::new(text.parse()?, &spaces, |_, at| Predicate::Parity.holds(at))?;
/// // Of four blocks two are not zero, and each is the sum of one product.
/// assert_eq!(contraction.tasks(), 2);
/// let task = contraction.task(0);
/// assert_eq!((task.segments, task.pairs.len()), (vec![0, 0], 1));
/// assert_eq!(contraction.multiplications(), 3 * 3 * 3 + 2 * 2 * 2);
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Contraction {
    expression: Expression,
    /// The result, the left and the right factor.
    tensors: [BlockTensor; 3],
    /// The segments of the indices summed over.
    summed: Vec<Segments>,
    /// Where the indices of each factor stand among all indices.
    positions: [Vec<usize>; 2],
    form: MatrixForm,
    /// The segments of each task's block and its multiplications, in the order in
    /// which they are taken.
    tasks: Vec<(Vec<usize>, u64)>,
    /// The segments of the indices summed over that have products, and the
    /// multiplications of these, the most first.
    sums: Vec<(Vec<usize>, u64)>,
    multiplications: u64,
    /// The elements of all blocks of all pairs.
    asked: u64,
}

/// One block of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its segments.
    pub segments: Vec<usize>,
    /// Where it stands.
    pub output: Place,
    /// The blocks whose products are summed up.
    pub pairs: Vec<Pair>,
}

/// Two blocks that are multiplied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The block of the left factor.
    pub left: Place,
    /// The block of the right factor.
    pub right: Place,
    /// The segments of the indices summed over.
    pub summed: Vec<usize>,
}

/// The extents of a batch of products of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extents {
    pub(super) batch: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) between: usize,
}

impl Contraction {
    /// An expression whose indices run over these spaces; `is_there` says, by the
    /// name of a tensor and segment numbers, which blocks are not zero.
    pub fn new(
        expression: Expression,
        spaces: &Spaces,
        is_there: impl Fn(&str, &[usize]) -> bool,
    ) -> Result<Self> {
        let segments = |index: &str| spaces.of(index).cloned();
        let tensor = |term: &super::Term| {
            let axes: Result<Vec<Segments>> =
                term.indices.iter().map(|index| segments(index)).collect();
            BlockTensor::new(&term.name, &axes?, |at| is_there(&term.name, at))
        };
        let [output, left, right] = expression.terms();
        let tensors = [tensor(output)?, tensor(left)?, tensor(right)?];
        if left.name == right.name && tensors[1].axes() != tensors[2].axes() {
            return Err(Error::Invalid(format!(
                "{left} and {right} are one tensor, but their indices have different segments"
            )));
        }
        let summed = expression.summed();
        let summed: Result<Vec<Segments>> = summed.into_iter().map(segments).collect();
        let all = expression.indices();
        let positions = [left, right].map(|term| {
            let indices = term.indices.iter();
            let among = |index: &String| all.iter().position(|one| *one == index.as_str());
            indices.filter_map(among).collect()
        });
        let mut contraction = Self {
            form: MatrixForm::new(&expression, &tensors),
            summed: summed?,
            positions,
            tensors,
            tasks: Vec::new(),
            sums: Vec::new(),
            multiplications: 0,
            asked: 0,
            expression,
        };
        contraction.order_tasks();
        Ok(contraction)
    }

    fn order_tasks(&mut self) {
        let mut tasks = Vec::new();
        let mut alike: HashMap<Vec<usize>, u64> = HashMap::new();
        let mut sums: HashMap<Vec<usize>, u64> = HashMap::new();
        for (segments, output) in self.tensors[0].blocks() {
            let task = self.task_of(segments, output);
            if task.pairs.is_empty() && self.expression.adds {
                continue;
            }
            let mut work = 0;
            for pair in &task.pairs {
                let more = self.work(&task, pair);
                *sums.entry(pair.summed.clone()).or_default() += more;
                work += more;
            }
            let pairs = task.pairs.iter();
            self.asked += pairs
                .map(|pair| pair.left.len + pair.right.len)
                .sum::<u64>();
            let shared = self.left_segments(&task.segments);
            *alike.entry(shared.clone()).or_default() += work;
            tasks.push((shared, work, task.segments));
        }
        tasks.sort_by_cached_key(|(shared, work, _)| {
            (Reverse(alike[shared]), shared.clone(), Reverse(*work))
        });
        self.sums = sums.into_iter().collect();
        self.sums
            .sort_unstable_by(|(a, most), (b, more)| (more, a).cmp(&(most, b)));
        self.multiplications = tasks.iter().map(|(_, work, _)| work).sum();
        self.tasks = tasks.into_iter().map(|(_, work, at)| (at, work)).collect();
    }

    /// The segments that a block of the result shares with those of the left factor.
    fn left_segments(&self, output: &[usize]) -> Vec<usize> {
        let indices = self.expression.output.indices.iter().zip(output);
        let shared = indices.filter(|(index, _)| self.expression.role(index) != Role::Right);
        shared.map(|(_, segment)| *segment).collect()
    }

    /// The segments of a task's block, and its multiplications.
    pub(super) fn task_work(&self, number: u64) -> Option<(&[usize], u64)> {
        let (segments, work) = self.tasks.get(number as usize)?;
        Some((segments, *work))
    }

    /// The segments of the indices summed over that have products, and the
    /// multiplications of these, the most first.
    pub(super) fn sums(&self) -> &[(Vec<usize>, u64)] {
        &self.sums
    }

    /// The expression.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// The result.
    pub fn output(&self) -> &BlockTensor {
        &self.tensors[0]
    }

    /// The left factor.
    pub fn left(&self) -> &BlockTensor {
        &self.tensors[1]
    }

    /// The right factor.
    pub fn right(&self) -> &BlockTensor {
        &self.tensors[2]
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> u64 {
        self.tasks.len() as u64
    }

    /// The multiplications (each with an addition) of all tasks.
    pub fn multiplications(&self) -> u64 {
        self.multiplications
    }

    /// The elements of the factors that all tasks ask for, each as often as it is
    /// asked for.
    pub fn elements_asked(&self) -> u64 {
        self.asked
    }

    /// A task.
    pub fn task(&self, number: u64) -> Task {
        let segments = self.tasks[number as usize].0.clone();
        let output = self.place(&segments);
        self.task_of(segments, output)
    }

    /// Where the block of a task stands.
    fn place(&self, segments: &[usize]) -> Place {
        let place = self.tensors[0].find(segments);
        place.expect("tasks are of blocks that are not zero")
    }

    fn task_of(&self, segments: Vec<usize>, output: Place) -> Task {
        let mut pairs = Vec::new();
        let mut summed = vec![0; self.summed.len()];
        loop {
            pairs.extend(self.pair(&segments, &summed));
            // The next segments of the indices summed over.
            let mut axes = summed.iter_mut().zip(&self.summed).rev();
            let moved = axes.any(|(segment, axis)| {
                *segment = (*segment + 1) % axis.count();
                *segment > 0
            });
            if !moved {
                break;
            }
        }
        Task {
            segments,
            output,
            pairs,
        }
    }

    /// The product that adds to a block of the result, at some segments of the indices
    /// summed over; `None` if a factor is zero there.
    fn pair(&self, output: &[usize], summed: &[usize]) -> Option<Pair> {
        let find = |side: usize| {
            let at = self.factor_segments(side, output, summed);
            self.tensors[side + 1].find(&at)
        };
        Some(Pair {
            left: find(0)?,
            right: find(1)?,
            summed: summed.to_vec(),
        })
    }

    /// All tasks, with their products at these segments of the indices summed over.
    pub(super) fn tasks_of(&self, sums: &[Vec<usize>]) -> Vec<Task> {
        let tasks = self.tasks.iter().map(|(segments, _)| Task {
            segments: segments.clone(),
            output: self.place(segments),
            pairs: {
                let pairs = sums.iter();
                pairs.filter_map(|at| self.pair(segments, at)).collect()
            },
        });
        tasks.collect()
    }

    /// The segments of a block of the left (0) or right (1) factor.
    fn factor_segments(&self, side: usize, output: &[usize], summed: &[usize]) -> Vec<usize> {
        let places = self.positions[side].iter();
        let segment = |place: &usize| match place.checked_sub(output.len()) {
            Some(place) => summed[place],
            None => output[*place],
        };
        places.map(segment).collect()
    }

    /// The extents of the blocks of a pair: of the left and the right factor.
    pub(super) fn shapes(&self, task: &Task, pair: &Pair) -> [Vec<u64>; 2] {
        [0, 1].map(|side| {
            let segments = self.factor_segments(side, &task.segments, &pair.summed);
            self.tensors[side + 1].shape(&segments)
        })
    }

    pub(super) fn form(&self) -> &MatrixForm {
        &self.form
    }

    /// The extents of the product of a pair.
    pub(super) fn extents(&self, task: &Task, pair: &Pair) -> Extents {
        let mut extents = Extents {
            batch: 1,
            rows: 1,
            columns: 1,
            between: 1,
        };
        let shape = self.tensors[0].shape(&task.segments);
        for (index, extent) in self.expression.output.indices.iter().zip(shape) {
            *(match self.expression.role(index) {
                Role::Batch => &mut extents.batch,
                Role::Left => &mut extents.rows,
                _ => &mut extents.columns,
            }) *= extent as usize;
        }
        for (axis, segment) in self.summed.iter().zip(&pair.summed) {
            extents.between *= axis.length(*segment) as usize;
        }
        extents
    }

    fn work(&self, task: &Task, pair: &Pair) -> u64 {
        let Extents {
            batch,
            rows,
            columns,
            between,
        } = self.extents(task, pair);
        let matrix = (rows as u64).saturating_mul(columns as u64);
        matrix.saturating_mul((batch as u64).saturating_mul(between as u64))
    }
}
