//! [`Pattern`]: a section as text, one text for all ranks.
//!
//! Two forms are accepted everywhere:
//!
//! - NumPy style, 0-based and half-open: `0:100:2, ::16, 7`. Bounds may be
//!   missing or negative (from the end), `...` stands for all axes not named,
//!   missing trailing axes are taken whole, `[1,5,9]` is an index list.
//! - Fortran style, as the papers print it, in parentheses, 1-based and with
//!   the upper bound included: `(1:100:1, 1:4096:1)`. Every axis is named; a
//!   lone `:` is a whole axis.
//!
//! Every number may be an expression of the rank `p` and the number of ranks
//! `N` or `nprocs`, so that `(1+32*p:16+32*p:1, 1:4096:1)` gives every rank
//! its own section. An axis given by one number keeps its place with one
//! index. Bounds outside the array are an error, not clipped.

use std::fmt;
use std::str::FromStr;

use crate::axis::AxisSection;
use crate::error::{Error, Result};
use crate::expression::{Expression, Reader};
use crate::section::Section;
use crate::shape::shape_text;

/// A section as text whose numbers may depend on the rank.
///
/// ```
/// use outcore_geometry::Pattern;
/// let pattern: Pattern = "(1+32*p:16+32*p:1, 1:4096:1)".parse()?;
/// let section = pattern.section(&[4096, 4096], 2, 4)?;
/// assert_eq!(section.to_string(), "64:80, 0:4096");
/// # Ok::<(), outcore_geometry::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    style: Style,
    axes: Vec<AxisPattern>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Numpy,
    Fortran,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AxisPattern {
    Range {
        lower: Option<Expression>,
        upper: Option<Expression>,
        stride: Option<Expression>,
    },
    Index(Expression),
    List(Vec<Expression>),
    Ellipsis,
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let style = if is_parenthesised(text) {
            Style::Fortran
        } else {
            Style::Numpy
        };
        let mut reader = Reader::new("section", text);
        let mut axes = Vec::new();
        if style == Style::Fortran {
            reader.need('(')?;
        }
        let end = if style == Style::Fortran {
            Some(')')
        } else {
            None
        };
        while reader.peek() != end {
            axes.push(AxisPattern::read(&mut reader, style)?);
            if !reader.take(',') {
                break;
            }
        }
        if style == Style::Fortran {
            reader.need(')')?;
        }
        if let Some(rest) = reader.peek() {
            return Err(reader.error(format!(
                "'{rest}' stands where ',' or the end is needed (an axis is lower:upper:stride)"
            )));
        }
        if axes
            .iter()
            .filter(|axis| **axis == AxisPattern::Ellipsis)
            .count()
            > 1
        {
            return Err(reader.error("'...' may stand only once"));
        }
        Ok(Self {
            text: text.trim().into(),
            style,
            axes,
        })
    }
}

/// Whether the first character opens a parenthesis that the last one closes.
fn is_parenthesised(text: &str) -> bool {
    let text = text.trim();
    let mut depth = 0usize;
    for (position, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return character == ')' && position + 1 == text.len();
        }
    }
    // Never closed: read as Fortran style, so that the message asks for ')'.
    text.starts_with('(')
}

impl AxisPattern {
    fn read(reader: &mut Reader<'_>, style: Style) -> Result<Self> {
        if style == Style::Numpy && reader.take('.') {
            reader.need('.')?;
            reader.need('.')?;
            return Ok(Self::Ellipsis);
        }
        if reader.take('[') {
            let mut list = Vec::new();
            while reader.peek() != Some(']') {
                list.push(reader.expression()?);
                if reader.peek() == Some(':') {
                    return Err(reader.error(
                        "a list holds indices, not ranges; write the section without outer brackets",
                    ));
                }
                if !reader.take(',') {
                    break;
                }
            }
            reader.need(']')?;
            return Ok(Self::List(list));
        }
        let bound = |reader: &mut Reader<'_>| match reader.peek() {
            None | Some(':' | ',' | ')') => Ok(None),
            Some(_) => reader.expression().map(Some),
        };
        let lower = bound(reader)?;
        if !reader.take(':') {
            let missing =
                || reader.error("an axis is missing between the commas; ':' is a whole one");
            return lower.map(Self::Index).ok_or_else(missing);
        }
        let upper = bound(reader)?;
        let stride = if reader.take(':') {
            bound(reader)?
        } else {
            None
        };
        Ok(Self::Range {
            lower,
            upper,
            stride,
        })
    }

    fn expressions(&self) -> Vec<&Expression> {
        match self {
            Self::Range {
                lower,
                upper,
                stride,
            } => [lower, upper, stride].into_iter().flatten().collect(),
            Self::Index(index) => vec![index],
            Self::List(list) => list.iter().collect(),
            Self::Ellipsis => Vec::new(),
        }
    }
}

/// What the axes of one pattern are resolved against.
struct Place<'a> {
    pattern: &'a Pattern,
    shape: &'a [u64],
    rank: u64,
    ranks: u64,
}

impl Pattern {
    /// Whether the text mentions the rank or the number of ranks.
    pub fn depends_on_rank(&self) -> bool {
        self.axes
            .iter()
            .any(|axis| axis.expressions().iter().any(|e| e.depends_on_rank()))
    }

    /// The axes, of `axes` in all, that are given by one index and so would
    /// be dropped by an array language.
    pub fn single_axes(&self, axes: usize) -> Vec<usize> {
        let ellipsis = self
            .axes
            .iter()
            .position(|axis| *axis == AxisPattern::Ellipsis);
        let named = self.axes.len();
        let single = self.axes.iter().enumerate().filter_map(|(at, axis)| {
            // What follows '...' counts from the end.
            let after = ellipsis.is_some_and(|gap| at > gap);
            let place = if after {
                (axes + at).checked_sub(named)?
            } else {
                at
            };
            matches!(axis, AxisPattern::Index(_)).then_some(place)
        });
        single.collect()
    }

    /// The section of rank `rank` of `ranks` in an array of `shape`, inside
    /// of which it must lie.
    pub fn section(&self, shape: &[u64], rank: u64, ranks: u64) -> Result<Section> {
        let place = Place {
            pattern: self,
            shape,
            rank,
            ranks,
        };
        let named = self.axes.len();
        let ellipsis = self
            .axes
            .iter()
            .position(|axis| *axis == AxisPattern::Ellipsis);
        let explicit = named - ellipsis.map_or(0, |_| 1);
        if explicit > shape.len() || (self.style == Style::Fortran && explicit != shape.len()) {
            return Err(Error::AxisCount {
                what: format!("section '{}'", self.text),
                expected: shape.len(),
                found: explicit,
            });
        }
        // What '...' or the end of the text stands for.
        let gap = ellipsis.unwrap_or(named);
        let whole = shape.len() - explicit;
        let mut axes = Vec::with_capacity(shape.len());
        for (axis, extent) in shape.iter().enumerate() {
            axes.push(if axis < gap {
                place.axis(axis, &self.axes[axis])?
            } else if axis < gap + whole {
                AxisSection::span(0, *extent)
            } else {
                place.axis(axis, &self.axes[axis - whole + 1])?
            });
        }
        Section::new(axes)
    }
}

impl Place<'_> {
    fn axis(&self, axis: usize, pattern: &AxisPattern) -> Result<AxisSection> {
        match pattern {
            AxisPattern::Range {
                lower,
                upper,
                stride,
            } => {
                let extent = self.shape[axis];
                let lower = lower.as_ref().map_or(Ok(0), |e| self.lower(axis, e))?;
                let upper = upper.as_ref().map_or(Ok(extent), |e| self.upper(axis, e))?;
                let stride = stride.as_ref().map_or(Ok(1), |e| self.value(e))?;
                if stride < 1 {
                    return Err(Error::invalid(format!(
                        "section '{}' has stride {stride} on axis {axis}; a stride must be at least 1",
                        self.pattern.text
                    )));
                }
                AxisSection::range(lower, upper, stride as u64)
            }
            AxisPattern::Index(index) => {
                let index = self.index(axis, index)?;
                Ok(AxisSection::span(index, index + 1))
            }
            AxisPattern::List(list) => {
                let indices: Result<Vec<u64>> = list.iter().map(|e| self.index(axis, e)).collect();
                AxisSection::list(indices?)
            }
            AxisPattern::Ellipsis => unreachable!("resolved by the caller"),
        }
    }

    fn value(&self, expression: &Expression) -> Result<i64> {
        expression.value(self.rank, self.ranks)
    }

    /// A 0-based index inside the axis.
    fn index(&self, axis: usize, expression: &Expression) -> Result<u64> {
        self.place(axis, expression, 1, self.shape[axis] as i128 - 1)
    }

    /// A 0-based lower bound; at the very end it begins an empty range.
    fn lower(&self, axis: usize, expression: &Expression) -> Result<u64> {
        self.place(axis, expression, 1, self.shape[axis].into())
    }

    /// A 0-based excluded upper bound.
    fn upper(&self, axis: usize, expression: &Expression) -> Result<u64> {
        self.place(axis, expression, 0, self.shape[axis].into())
    }

    /// What `expression` means on `axis`, from 0 and at most `most`; Fortran
    /// style counts `from` more.
    fn place(&self, axis: usize, expression: &Expression, from: i128, most: i128) -> Result<u64> {
        let value = i128::from(self.value(expression)?);
        let place = match self.pattern.style {
            Style::Fortran => value - from,
            Style::Numpy if value < 0 => value + i128::from(self.shape[axis]),
            Style::Numpy => value,
        };
        if place < 0 || place > most {
            // An excluded bound reaches the index before it.
            return Err(self.out_of_range(axis, place + from - 1));
        }
        Ok(place as u64)
    }

    /// The error of reaching a 0-based index, counted as the text does.
    fn out_of_range(&self, axis: usize, index: i128) -> Error {
        let base = match self.pattern.style {
            Style::Fortran => 1,
            Style::Numpy => 0,
        };
        Error::OutOfRange {
            section: self.pattern.text.clone(),
            axis,
            index: index + i128::from(base),
            shape: shape_text(self.shape),
            last: self.shape[axis].checked_sub(1).map(|last| last + base),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numpy(text: &str, shape: &[u64]) -> String {
        match Section::parse(text, shape) {
            Ok(section) => section.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn numpy_style() {
        let shape = [100, 200, 10];
        assert_eq!(numpy("0:100:2, ::16, 7", &shape), "0:100:2, 0:200:16, 7:8");
        assert_eq!(numpy("", &shape), "0:100, 0:200, 0:10");
        assert_eq!(numpy("-10:, :-5", &shape), "90:100, 0:195, 0:10");
        assert_eq!(numpy("..., 3", &shape), "0:100, 0:200, 3:4");
        assert_eq!(numpy("5, ..., -1", &shape), "5:6, 0:200, 9:10");
        assert_eq!(numpy("[1,5,9], [ ]", &shape), "[1,5,9], [], 0:10");
        assert_eq!(numpy("50:20", &shape), "50:50, 0:200, 0:10");
        assert_eq!(numpy("100:", &shape), "100:100, 0:200, 0:10");
        assert_eq!(numpy("", &[]), "");
    }

    #[test]
    fn fortran_style() {
        let shape = [4096, 4096];
        assert_eq!(numpy("(1:100:1, 1:4096:1)", &shape), "0:100, 0:4096");
        assert_eq!(numpy(" ( 500:2500:3 , : ) ", &shape), "499:2500:3, 0:4096");
        assert_eq!(numpy("([1,4096], 7)", &shape), "[0,4095], 6:7");
        assert_eq!(numpy("(5:4, 1:1)", &shape), "4:4, 0:1");
        assert_eq!(numpy("()", &[]), "");
    }

    #[test]
    fn patterns_give_each_rank_its_section() {
        let pattern: Pattern = "(p+1:4096:N, p+1:4096:nprocs)".parse().unwrap();
        assert!(pattern.depends_on_rank());
        let section = pattern.section(&[4096, 4096], 3, 16).unwrap();
        assert_eq!(section.to_string(), "3:4096:16, 3:4096:16");
        // A parenthesis at the start does not make it Fortran style.
        let pattern: Pattern = "(p+1)*4:(p+2)*4".parse().unwrap();
        assert_eq!(pattern.section(&[100], 1, 4).unwrap().to_string(), "8:12");
    }

    #[test]
    fn single_indices_are_told() {
        let single = |text: &str, axes| text.parse::<Pattern>().unwrap().single_axes(axes);
        assert_eq!(single("5, :, 3", 3), [0, 2]);
        assert_eq!(single("5, ..., 3", 5), [0, 4]);
        assert_eq!(single("(1, 1:5)", 2), [0]);
        assert_eq!(single("0:1", 2), []);
    }

    #[test]
    fn mistakes_are_named() {
        let shape = [10, 10];
        for (text, part) in [
            ("0:11", "axis 0"),
            ("0, -11", "axis 1"),
            ("(0:5, 1:1)", "axis 0"),
            ("(1:5)", "1 axes where 2"),
            ("1,2,3", "3 axes where 2"),
            ("0:5:0", "stride 0"),
            ("0:5:-1", "stride -1"),
            ("0:5:1:2", "','"),
            ("a:b", "'a' is unknown"),
            ("1:(2, 3", "')' is needed"),
            ("(1:2, 3", "')' is needed"),
            ("[0:4, 1]", "without outer brackets"),
            ("[5,2]", "ascending"),
            ("..., ...", "once"),
            (",", "missing"),
            ("p:5", "rank"),
            ("0:9223372036854775807*2", "63 bits"),
        ] {
            let message = numpy(text, &shape);
            assert!(
                message.starts_with("error: ") && message.contains(part),
                "{text} -> {message}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\PC]{0,40}") {
            if let Ok(section) = Section::parse(&text, &[7, 11]) {
                section.check_within(&[7, 11]).unwrap();
            }
        }

        #[test]
        fn likely_text_is_read_or_refused(text in "[0-9pN:,()\\[\\]+*/%. -]{0,24}") {
            if let Ok(pattern) = text.parse::<Pattern>()
                && let Ok(section) = pattern.section(&[7, 11], 2, 5)
            {
                section.check_within(&[7, 11]).unwrap();
            }
        }

        #[test]
        fn displayed_sections_read_back(lower in 0u64..10, upper in 0u64..10, stride in 1u64..5, list in proptest::collection::btree_set(0u64..20, 0..6)) {
            let section = Section::new(vec![
                AxisSection::range(lower, upper, stride).unwrap(),
                AxisSection::list(list.into_iter().collect::<Vec<_>>()).unwrap(),
            ]).unwrap();
            prop_assert_eq!(Section::parse(&section.to_string(), &[20, 20]).unwrap(), section);
        }
    }
}
