//! [`Expression`]: a contraction of two tensors as a text, such as
//! `i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]`.
//!
//! Indices that both factors have and the result has not are summed over. One
//! that all three have is carried along (a batch of products). Each index stands
//! at most once in a tensor, and in two tensors at least; so whatever else one
//! could mean by such a text (traces, sums over one factor alone) is refused.

use std::fmt;
use std::str::FromStr;

use outcore::Error;

/// A tensor of an expression: its name and its indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The name of the tensor.
    pub name: String,
    /// The names of its indices, slowest first.
    pub indices: Vec<String>,
}

/// What an index is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// All three tensors have it.
    Batch,
    /// The left factor and the result have it.
    Left,
    /// The right factor and the result have it.
    Right,
    /// The factors have it; it is summed over.
    Summed,
}

/// A contraction of two tensors.
///
/// ```
/// use outcore_apps::contract::Expression;
/// let expression: Expression = "i0[p1, p2] += t[p1,p3,h1] * i1[p3,h1,p2]".parse()?;
/// assert_eq!(expression.to_string(), "i0[p1,p2] += t[p1,p3,h1] * i1[p3,h1,p2]");
/// let misprint = "i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p3]".parse::<Expression>();
/// assert_eq!(
///     misprint.unwrap_err().to_string(),
///     "i1[p3,p4,h1,p3] has the index p3 twice; each index stands once in a tensor"
/// );
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The result.
    pub output: Term,
    /// Whether the products are added to what the result holds (`+=`), not put
    /// in its place (`=`).
    pub adds: bool,
    /// The left factor.
    pub left: Term,
    /// The right factor.
    pub right: Term,
}

impl Expression {
    /// The result, the left and the right factor.
    pub fn terms(&self) -> [&Term; 3] {
        [&self.output, &self.left, &self.right]
    }

    /// What an index of the expression is for.
    pub fn role(&self, index: &str) -> Role {
        match self.terms().map(|term| term.position(index).is_some()) {
            [true, true, true] => Role::Batch,
            [true, true, false] => Role::Left,
            [true, false, _] => Role::Right,
            [false, ..] => Role::Summed,
        }
    }

    /// The indices that are summed over, in the order of the left factor.
    pub fn summed(&self) -> Vec<&str> {
        let indices = self.left.indices.iter().map(String::as_str);
        indices
            .filter(|index| self.role(index) == Role::Summed)
            .collect()
    }

    /// Every index once: those of the result, then those summed over.
    pub fn indices(&self) -> Vec<&str> {
        let output = self.output.indices.iter().map(String::as_str);
        output.chain(self.summed()).collect()
    }

    fn check(self) -> Result<Self, Error> {
        let wrong = |problem: String| Err(Error::Invalid(problem));
        for term in self.terms() {
            for (at, index) in term.indices.iter().enumerate() {
                if term.indices[..at].contains(index) {
                    return wrong(format!(
                        "{term} has the index {index} twice; each index stands once in a tensor"
                    ));
                }
            }
        }
        for index in &self.output.indices {
            if self.left.position(index).is_none() && self.right.position(index).is_none() {
                return wrong(format!(
                    "the result {} has the index {index}, which neither {} nor {} has",
                    self.output, self.left, self.right
                ));
            }
        }
        for (term, other) in [(&self.left, &self.right), (&self.right, &self.left)] {
            for index in &term.indices {
                if other.position(index).is_none() && self.output.position(index).is_none() {
                    return wrong(format!(
                        "the index {index} of {term} stands in no other tensor; an index that is \
                         summed over stands in both factors, any other in the result"
                    ));
                }
            }
        }
        let [output, left, right] = self.terms().map(|term| &term.name);
        if output == left || output == right {
            return wrong(format!("{output} cannot be a factor and the result"));
        }
        if left == right && self.left.indices.len() != self.right.indices.len() {
            return wrong(format!(
                "{left} cannot have {} indices and {}",
                self.left.indices.len(),
                self.right.indices.len()
            ));
        }
        Ok(self)
    }
}

impl Term {
    /// Where an index stands among those of the tensor.
    pub fn position(&self, index: &str) -> Option<usize> {
        self.indices.iter().position(|own| own == index)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.name, self.indices.join(","))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.adds { "+=" } else { "=" };
        write!(f, "{} {sign} {} * {}", self.output, self.left, self.right)
    }
}

impl FromStr for Expression {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::Invalid(format!(
                "'{text}' is not a contraction; one looks like 'c[i,j] += a[i,k] * b[k,j]', with \
                 += to add and = to replace"
            ))
        };
        let (output, product) = text.split_once('=').ok_or_else(wrong)?;
        let (output, adds) = match output.trim_end().strip_suffix('+') {
            Some(output) => (output, true),
            None => (output, false),
        };
        let (left, right) = product.split_once('*').ok_or_else(wrong)?;
        let term = |text: &str| parse_term(text).ok_or_else(wrong);
        Self {
            output: term(output)?,
            adds,
            left: term(left)?,
            right: term(right)?,
        }
        .check()
    }
}

fn parse_term(text: &str) -> Option<Term> {
    let (name, rest) = text.trim().split_once('[')?;
    let indices = rest.strip_suffix(']')?;
    let name = parse_name(name)?;
    let indices = match indices.trim() {
        "" => Vec::new(),
        indices => indices
            .split(',')
            .map(parse_name)
            .collect::<Option<Vec<_>>>()?,
    };
    Some(Term { name, indices })
}

/// Letters, digits and underscores, a letter first.
fn parse_name(text: &str) -> Option<String> {
    let name = text.trim();
    let first = name.chars().next().is_some_and(char::is_alphabetic);
    let valid = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (first && valid).then(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_from_where_indices_stand() {
        let text = " c [b, i,j]= left[k,i,b] *right[b,j,k] ";
        let expression: Expression = text.parse().unwrap();
        assert!(!expression.adds);
        let roles = ["b", "i", "j", "k"].map(|index| expression.role(index));
        assert_eq!(roles, [Role::Batch, Role::Left, Role::Right, Role::Summed]);
        assert_eq!(expression.indices(), ["b", "i", "j", "k"]);
        let scalar: Expression = "e[] += a[i]*b[i]".parse().unwrap();
        assert_eq!(scalar.to_string(), "e[] += a[i] * b[i]");
    }

    #[test]
    fn what_is_no_contraction_is_refused() {
        let fails = |text: &str, words: &str| {
            let message = text.parse::<Expression>().unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        };
        for text in [
            "",
            "c[i]",
            "c[i] += a[i]",
            "c[i] += a[i * b[i]",
            "c[i] += a[i] * b[i] * d[i]",
            "c[i,] += a[i] * b[i]",
            "c[1] += a[1] * b[1]",
            "[i] += a[i] * b[i]",
        ] {
            fails(text, "is not a contraction");
        }
        fails("c[i,x] += a[i,k] * b[k]", "neither a[i,k] nor b[k] has");
        fails(
            "c[i] += a[i,k,x] * b[k]",
            "the index x of a[i,k,x] stands in no other",
        );
        fails("c[i] += a[i,i] * b[i]", "twice");
        fails("c[i] += c[i,k] * b[k]", "a factor and the result");
        fails("c[i] += a[i,k] * a[k]", "2 indices and 1");
    }
}
