//! [`Summary`]: what is known of some elements, and how two of them are joined.
//!
//! Means and sums of squared distances are joined by the formula of Chan, Golub
//! and LeVeque, which loses nothing where the mean is large and the deviation
//! small. Sums of floats carry what rounding has lost (Neumaier), sums of integers
//! are exact.

use std::cmp::Ordering;

use super::value::Value;

/// What one chunk of elements comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    /// Elements that are numbers.
    pub(crate) count: u64,
    pub(crate) nans: u64,
    /// Of the numbers, if there are any.
    pub(crate) least: Value,
    pub(crate) most: Value,
    pub(crate) sum: Value,
    /// The sum of the squared distances from their mean.
    pub(crate) squares: f64,
}

/// The least or the largest value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extreme {
    /// The value.
    pub value: Value,
    /// The number of its element in the section, counted in the axis order of the
    /// file; the first of several.
    pub(crate) place: u64,
}

/// What is known of some elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    count: u64,
    nans: u64,
    extremes: Option<(Extreme, Extreme)>,
    sum: Value,
    /// What rounding has taken from the sum.
    lost: f64,
    squares: f64,
}

/// The words of a summary in a message.
const WORDS: usize = 16;

impl Summary {
    /// Of no element; `zero` says of which kind the sum is.
    pub(crate) fn of_none(zero: Value) -> Self {
        Self {
            count: 0,
            nans: 0,
            extremes: None,
            sum: zero,
            lost: 0.0,
            squares: 0.0,
        }
    }

    /// How many elements are numbers.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many are not.
    pub fn nans(&self) -> u64 {
        self.nans
    }

    /// The least number and where it stands first; `None` without numbers.
    pub fn least(&self) -> Option<Extreme> {
        self.extremes.map(|(least, _)| least)
    }

    /// The largest number and where it stands first; `None` without numbers.
    pub fn most(&self) -> Option<Extreme> {
        self.extremes.map(|(_, most)| most)
    }

    /// The sum of the numbers.
    pub fn sum(&self) -> Value {
        match self.sum {
            Value::Real(sum) if self.lost.is_finite() => Value::Real(sum + self.lost),
            sum => sum,
        }
    }

    /// Their mean; NaN without numbers.
    pub fn mean(&self) -> f64 {
        self.sum().as_f64() / self.count as f64
    }

    /// Their deviation from the mean: the root of the mean of the squared
    /// distances (of all elements, not of a sample); NaN without numbers.
    pub fn deviation(&self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }

    /// Joins a chunk whose first element has the number that `first` tells; `place` finds
    /// the first element of the chunk with a value. Both are seldom asked.
    pub(crate) fn add(
        &mut self,
        chunk: &Chunk,
        first: impl Fn() -> u64,
        place: impl Fn(Value) -> u64,
    ) {
        self.nans += chunk.nans;
        if chunk.count == 0 {
            return;
        }
        let found = |value: Value| Extreme {
            value,
            place: place(value),
        };
        match &mut self.extremes {
            None => self.extremes = Some((found(chunk.least), found(chunk.most))),
            Some((least, most)) => {
                if beats(chunk.least, &first, least, Ordering::Less) {
                    take(least, found(chunk.least), Ordering::Less);
                }
                if beats(chunk.most, &first, most, Ordering::Greater) {
                    take(most, found(chunk.most), Ordering::Greater);
                }
            }
        }
        self.join_sums(chunk.count, (chunk.sum, 0.0), chunk.squares);
    }

    /// Joins what is known of other elements.
    pub(crate) fn join(&mut self, other: &Self) {
        self.nans += other.nans;
        let Some((their_least, their_most)) = other.extremes else {
            return;
        };
        match &mut self.extremes {
            None => self.extremes = other.extremes,
            Some((least, most)) => {
                take(least, their_least, Ordering::Less);
                take(most, their_most, Ordering::Greater);
            }
        }
        self.join_sums(other.count, (other.sum, other.lost), other.squares);
    }

    fn join_sums(&mut self, count: u64, (sum, lost): (Value, f64), squares: f64) {
        let theirs = (sum.as_f64() + lost) / count as f64;
        if self.count == 0 {
            self.squares = squares;
        } else {
            let (a, b) = (self.count as f64, count as f64);
            let apart = theirs - self.mean();
            self.squares += squares + apart * apart * (a * b / (a + b));
        }
        self.count += count;
        match (&mut self.sum, sum) {
            (Value::Integer(all), Value::Integer(sum)) => *all += sum,
            (all, sum) => {
                let (old, more) = (all.as_f64(), sum.as_f64());
                let new = old + more;
                self.lost += lost
                    + match old.abs() >= more.abs() {
                        true => (old - new) + more,
                        false => (more - new) + old,
                    };
                *all = Value::Real(new);
            }
        }
    }

    /// For a message.
    pub(crate) fn words(&self) -> Vec<u64> {
        let mut words = vec![self.count, self.nans, u64::from(self.extremes.is_some())];
        let nothing = Extreme {
            value: Value::Integer(0),
            place: 0,
        };
        let (least, most) = self.extremes.unwrap_or((nothing, nothing));
        for extreme in [least, most] {
            words.extend(extreme.value.words());
            words.push(extreme.place);
        }
        words.extend(self.sum.words());
        words.push(self.squares.to_bits());
        words.push(self.lost.to_bits());
        debug_assert_eq!(words.len(), WORDS);
        words
    }

    pub(crate) fn of_words(words: &[u64]) -> Self {
        let extreme = |at: usize| Extreme {
            value: Value::of_words(&words[at..at + 3]),
            place: words[at + 3],
        };
        Self {
            count: words[0],
            nans: words[1],
            extremes: (words[2] != 0).then(|| (extreme(3), extreme(7))),
            sum: Value::of_words(&words[11..14]),
            squares: f64::from_bits(words[14]),
            lost: f64::from_bits(words[15]),
        }
    }
}

/// Takes an extreme in place of the best one, if it is better or before it.
fn take(best: &mut Extreme, other: Extreme, better: Ordering) {
    if beats(other.value, || other.place, best, better) {
        *best = other;
    }
}

/// Whether a value takes the place of the best one: it is better, or as good and
/// perhaps before it.
fn beats(value: Value, place: impl Fn() -> u64, best: &Extreme, better: Ordering) -> bool {
    let order = value.order(best.value);
    order == better || (order == Ordering::Equal && place() < best.place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], first: u64) -> Summary {
        let mut all = Summary::of_none(Value::Real(0.0));
        for (at, value) in values.iter().enumerate() {
            let value = Value::Real(*value);
            let chunk = Chunk {
                count: 1,
                nans: 0,
                least: value,
                most: value,
                sum: value,
                squares: 0.0,
            };
            let place = first + at as u64;
            all.add(&chunk, || place, |_| place);
        }
        all
    }

    #[test]
    fn joining_is_what_all_together_come_to() {
        let values = [1e9, 1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0, 1e9];
        let (mut left, right) = (of(&values[..2], 0), of(&values[2..], 2));
        left.join(&right);
        assert_eq!(left.count(), 5);
        assert_eq!(left.sum(), Value::Real(5e9 + 6.0));
        assert!((left.deviation() - 1.36f64.sqrt()).abs() < 1e-6);
        assert_eq!(left.least().unwrap().place, 0);
        assert_eq!(left.most().unwrap().place, 3);
        assert_eq!(Summary::of_words(&left.words()), left);
        let mut none = Summary::of_none(Value::Real(0.0));
        assert!(none.mean().is_nan() && none.least().is_none());
        none.join(&left);
        assert_eq!(none.mean(), left.mean());
    }

    #[test]
    fn small_numbers_beside_large_ones_are_not_lost() {
        let values: Vec<f64> = [1e16]
            .into_iter()
            .chain([1.0; 1000])
            .chain([-1e16])
            .collect();
        assert_eq!(of(&values, 0).sum(), Value::Real(1000.0));
    }

    #[test]
    fn of_equal_values_the_first_counts_in_whatever_order() {
        let (mut late, early) = (of(&[3.0, 3.0], 10), of(&[3.0], 4));
        late.join(&early);
        assert_eq!(late.least().unwrap().place, 4);
        assert_eq!(late.most().unwrap().place, 4);
        // A chunk that begins before the best one, but has the value after it.
        let three = Value::Real(3.0);
        let chunk = Chunk {
            count: 2,
            nans: 0,
            least: Value::Real(2.0),
            most: three,
            sum: Value::Real(5.0),
            squares: 0.5,
        };
        late.add(&chunk, || 0, |value| if value == three { 7 } else { 0 });
        assert_eq!(late.most().unwrap().place, 4);
        assert_eq!(late.least().unwrap().place, 0);
    }
}
