//! [`Segments`]: an index cut into segments; [`Spaces`]: which index has which.
//!
//! In the papers' example (Krishnamoorthy et al. 2006, section VI) the indices
//! `p1`, `p2`, ... run over the occupied orbitals `O`, `h1` over the virtual ones
//! `V`, and both are cut into segments.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use outcore::Error;

/// The lengths of the segments that an index is cut into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segments {
    /// Where each segment begins, and the end of the last.
    starts: Arc<[u64]>,
}

impl Segments {
    /// Segments of these lengths; none may be empty.
    pub fn new(lengths: &[u64]) -> Result<Self, Error> {
        let mut starts = vec![0u64];
        for length in lengths {
            let last = starts[starts.len() - 1];
            let end = last.checked_add(*length).filter(|_| *length > 0);
            starts.push(end.ok_or_else(|| {
                Error::Invalid(format!(
                    "segments of {lengths:?} elements: {length} is no length"
                ))
            })?);
        }
        if lengths.is_empty() {
            return Err(Error::Invalid("an index has at least one segment".into()));
        }
        Ok(Self {
            starts: starts.into(),
        })
    }

    /// How many segments there are.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The elements of all segments.
    pub fn extent(&self) -> u64 {
        self.starts[self.count()]
    }

    /// Where a segment begins.
    pub fn start(&self, segment: usize) -> u64 {
        self.starts[segment]
    }

    /// The elements of a segment.
    pub fn length(&self, segment: usize) -> u64 {
        self.starts[segment + 1] - self.starts[segment]
    }

    /// As many segments, each `factor` times as long, rounded to whole elements.
    pub fn scaled(&self, factor: f64) -> Result<Self, Error> {
        let lengths = (0..self.count()).map(|segment| {
            let length = self.length(segment) as f64 * factor;
            (length.round() as u64).max(1)
        });
        Self::new(&lengths.collect::<Vec<_>>())
    }
}

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = (0..self.count()).map(|segment| self.length(segment).to_string());
        f.write_str(&lengths.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Segments {
    type Err = Error;

    /// Reads `100,60,40,30`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let lengths = text.split(',').map(|part| part.trim().parse());
        let lengths: Result<Vec<u64>, _> = lengths.collect();
        Self::new(&lengths.map_err(|_| {
            Error::Invalid(format!(
                "'{text}' is not a list of segment lengths such as 100,60,40,30"
            ))
        })?)
    }
}

/// Which segments each index has: spaces such as `O` and `V` have segments, and
/// an index belongs to a space by its name (`p1`) or by the letters that its name
/// begins with (`p`).
///
/// ```
/// use outcore_apps::contract::Spaces;
/// let spaces = Spaces::default()
///     .with_space("O", "10,6".parse()?)
///     .with_space("V", "20,12".parse()?)
///     .with_index("p", "O")?
///     .with_index("h", "V")?;
/// assert_eq!(spaces.of("p3")?.extent(), 16);
/// assert_eq!(spaces.of("h1")?.extent(), 32);
/// assert!(spaces.of("q1").is_err());
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Spaces {
    spaces: BTreeMap<String, Segments>,
    indices: BTreeMap<String, String>,
}

impl Spaces {
    /// The same with a space of this name.
    pub fn with_space(mut self, name: &str, segments: Segments) -> Self {
        self.spaces.insert(name.into(), segments);
        self
    }

    /// The same, in which indices of this name, or whose names begin with these
    /// letters, run over the space.
    pub fn with_index(mut self, index: &str, space: &str) -> Result<Self, Error> {
        if !self.spaces.contains_key(space) {
            return Err(Error::Invalid(format!(
                "index {index} is to run over {space}, of which no segments are given"
            )));
        }
        self.indices.insert(index.into(), space.into());
        Ok(self)
    }

    /// The segments of an index. One that nobody has said anything about runs
    /// over the space that has its letters as name.
    pub fn of(&self, index: &str) -> Result<&Segments, Error> {
        let letters = index.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
        let named = self
            .indices
            .get(index)
            .or_else(|| self.indices.get(letters));
        let space = named.map_or(letters, String::as_str);
        self.spaces.get(space).ok_or_else(|| {
            Error::Invalid(format!(
                "nothing says over which segments the index {index} runs"
            ))
        })
    }
}
