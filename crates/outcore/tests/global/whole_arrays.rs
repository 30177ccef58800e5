//! Whole global arrays at once, against loops over dense ones.

use outcore::{Arithmetic, Complex, Distribution, GlobalArray};
use proptest::prelude::*;

use crate::ground::{RANKS, Random, on, with_procedures};

fn dense(count: u64, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    (0..count).map(|_| random.below(17) as f64 - 8.0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn fill_copy_scale_add_dot(seed in any::<u64>(), at in 0..RANKS.len()) {
        let ranks = RANKS[at];
        let mut random = Random(seed);
        let shape = random.shape();
        let [one, other, third] = [0; 3].map(|_| random.distribution(&shape, ranks as u64));
        let third = if seed % 2 == 0 { one.clone() } else { third };
        let count = shape.iter().product();
        let (x, y) = (dense(count, seed), dense(count, seed + 1));
        on(ranks, |comm| {
            let place = |index: &[u64]| {
                index.iter().zip(&shape).fold(0, |place, (i, n)| place * n + i) as usize
            };
            let a = GlobalArray::<f64>::new(comm, None, one.clone())?;
            let b = GlobalArray::<f64>::new(comm, None, other.clone())?;
            let c = GlobalArray::<f64>::new(comm, None, third.clone())?;
            a.fill_with(comm, |index| x[place(index)])?;
            b.fill_with(comm, |index| y[place(index)])?;
            c.copy_from(comm, &a)?;
            assert_eq!(c.read(&c.whole())?, x);
            c.scale(comm, 3.0)?;
            let dot = x.iter().zip(&y).map(|(x, y)| 3.0 * x * y).sum::<f64>();
            assert_eq!(c.dot(comm, &b)?, dot);
            c.add(comm, (2.0, &c), (-1.0, &b))?;
            let sums: Vec<f64> = x.iter().zip(&y).map(|(x, y)| 6.0 * x - y).collect();
            assert_eq!(c.read(&c.whole())?, sums);
            c.add(comm, (1.0, &a), (1.0, &a))?;
            c.sync(comm)?;
            c.fill(comm, 5.0)?;
            assert!(c.read(&c.whole())?.iter().all(|value| *value == 5.0));
            Ok(())
        });
    }

    #[test]
    fn products_and_transposes(seed in any::<u64>(), at in 0..RANKS.len()) {
        let ranks = RANKS[at];
        let mut random = Random(seed);
        let [m, n, k] = [0; 3].map(|_| 1 + random.below(30));
        let shapes = [[m, k], [k, n], [m, n], [n, m]];
        let distributions = shapes.map(|shape| random.distribution(&shape, ranks as u64));
        let (x, y) = (dense(m * k, seed), dense(k * n, seed + 1));
        let mut product = vec![0.0; (m * n) as usize];
        for (i, j, l) in (0..m).flat_map(|i| (0..n).flat_map(move |j| (0..k).map(move |l| (i, j, l)))) {
            product[(i * n + j) as usize] += x[(i * k + l) as usize] * y[(l * n + j) as usize];
        }
        on(ranks, |comm| {
            let new = |at: usize| GlobalArray::<f64>::new(comm, None, distributions[at].clone());
            let (a, b, c, turned) = (new(0)?, new(1)?, new(2)?, new(3)?);
            a.fill_with(comm, |index| x[(index[0] * k + index[1]) as usize])?;
            b.fill_with(comm, |index| y[(index[0] * n + index[1]) as usize])?;
            c.fill(comm, f64::NAN)?;
            c.matmul(comm, &a, &b)?;
            assert_eq!(c.read(&c.whole())?, product);
            c.matmul_add(comm, (2.0, &a, &b), -1.0)?;
            assert_eq!(c.read(&c.whole())?, product);
            turned.transpose_from(comm, &c)?;
            let values = turned.read(&turned.whole())?;
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                assert_eq!(values[(j * m + i) as usize], product[(i * n + j) as usize]);
            }
            Ok(())
        });
    }
}

#[test]
fn products_of_other_types_and_large_tiles() {
    fn try_type<T: Arithmetic + std::fmt::Debug>(value: impl Fn(u64) -> T + Sync) {
        on(3, |comm| {
            let parse = |text, shape: &[u64]| Distribution::parse(text, shape, 3, None).unwrap();
            let a = GlobalArray::<T>::new(comm, None, parse("cyclic(3),*", &[20, 11]))?;
            let b = GlobalArray::<T>::new(comm, None, parse("*,block", &[11, 9]))?;
            let c = GlobalArray::<T>::new(comm, None, parse("block,*", &[20, 9]))?;
            a.fill_with(comm, |index| value(index[0] + 2 * index[1]))?;
            b.fill_with(comm, |index| value(3 * index[0] + index[1]))?;
            c.matmul_add(comm, (T::ONE.plus(T::ONE), &a, &b), T::ONE)?;
            for (i, j) in [(0, 0), (19, 8), (7, 3)] {
                let terms = (0..11).map(|l| value(i + 2 * l).times(value(3 * l + j)));
                let sum = terms.fold(T::zeroed(), T::plus);
                assert_eq!(c.get_one(&[i, j])?, sum.plus(sum));
            }
            Ok(())
        });
    }
    try_type(|at| at as i32 % 7 - 3);
    try_type(|at| at as u8);
    try_type(|at| at as f32 % 5.0);
    try_type(|at| Complex::new(at as f64 % 5.0, 1.0));
    // More than a tile, and more than one depth.
    on(2, |comm| {
        let parse = |text, shape: &[u64]| Distribution::parse(text, shape, 2, None).unwrap();
        let a = GlobalArray::<f64>::new(comm, None, parse("block,*", &[2100, 530]))?;
        let b = GlobalArray::<f64>::new(comm, None, parse("*,block", &[530, 20]))?;
        let c = GlobalArray::<f64>::new(comm, None, parse("block,*", &[2100, 20]))?;
        a.fill_with(comm, |index| (index[0] % 3 + index[1] % 2) as f64)?;
        b.fill_with(comm, |index| (index[0] % 5 + index[1]) as f64)?;
        c.matmul(comm, &a, &b)?;
        let sum = |i: u64, j: u64| {
            (0..530)
                .map(|l| ((i % 3 + l % 2) * (l % 5 + j)) as f64)
                .sum::<f64>()
        };
        for (i, j) in [(0, 0), (2099, 19), (1024, 7), (1049, 3), (1050, 4)] {
            assert_eq!(c.get_one(&[i, j])?, sum(i, j));
        }
        Ok(())
    });
}

#[test]
fn through_servers() {
    with_procedures(3, |comm, procedures| {
        let parse = |text| Distribution::parse(text, &[12, 12], 3, None).unwrap();
        let a = GlobalArray::<f64>::apart(comm, procedures, parse("block,*"))?;
        let b = GlobalArray::<f64>::apart(comm, procedures, parse("*,cyclic"))?;
        let c = GlobalArray::<f64>::apart(comm, procedures, parse("cyclic(2),*"))?;
        a.fill_with(comm, |index| (index[0] * 12 + index[1]) as f64)?;
        b.transpose_from(comm, &a)?;
        c.copy_from(comm, &b)?;
        assert_eq!(c.get_one(&[3, 7])?, (7 * 12 + 3) as f64);
        c.matmul(comm, &a, &b)?;
        let norm: f64 = (0..12).map(|at| ((5 * 12 + at) as f64).powi(2)).sum();
        assert_eq!(c.get_one(&[5, 5])?, norm);
        c.close(comm)
    });
}

#[test]
fn arrays_that_do_not_fit_together() {
    on(2, |comm| {
        let parse = |shape: &[u64]| Distribution::parse("block,*", shape, 2, None).unwrap();
        let a = GlobalArray::<f64>::new(comm, None, parse(&[4, 5]))?;
        let b = GlobalArray::<f64>::new(comm, None, parse(&[5, 4]))?;
        assert!(a.copy_from(comm, &b).is_err());
        let square = GlobalArray::<f64>::new(comm, None, parse(&[4, 4]))?;
        let error = square.transpose_from(comm, &square.clone()).unwrap_err();
        assert!(error.to_string().contains("from itself"), "{error}");
        assert!(a.dot(comm, &b).is_err());
        assert!(a.matmul(comm, &a, &b).is_err());
        let c = GlobalArray::<f64>::new(comm, None, parse(&[4, 4]))?;
        assert!(c.matmul(comm, &c, &c).is_err());
        c.matmul(comm, &a, &b)
    });
}
