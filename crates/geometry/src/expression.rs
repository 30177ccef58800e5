//! [`Expression`]: a whole number written with the rank `p` and the number of
//! ranks `N` (or `nprocs`), as in `1+32*p`.
//!
//! The operators are `+ - * / %` (division rounds down) and parentheses; all
//! arithmetic is checked.

use crate::error::{Error, Result};

/// How deeply parentheses and signs may nest: text comes from outside, and
/// reading it recurses.
const DEEPEST: usize = 64;

/// How many operators one expression may have: its value is computed by
/// recursion, too.
const LONGEST: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    Number(i64),
    Rank,
    Ranks,
    Negative(Box<Expression>),
    Binary(char, Box<Expression>, Box<Expression>),
}

impl Expression {
    /// The value on rank `rank` of `ranks`.
    pub(crate) fn value(&self, rank: u64, ranks: u64) -> Result<i64> {
        let too_large = || Error::Overflow("the value of an expression in a section".into());
        Ok(match self {
            Self::Number(number) => *number,
            Self::Rank => i64::try_from(rank).map_err(|_| too_large())?,
            Self::Ranks => i64::try_from(ranks).map_err(|_| too_large())?,
            Self::Negative(inner) => inner
                .value(rank, ranks)?
                .checked_neg()
                .ok_or_else(too_large)?,
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.value(rank, ranks)?, right.value(rank, ranks)?);
                match operator {
                    '+' => left.checked_add(right).ok_or_else(too_large)?,
                    '-' => left.checked_sub(right).ok_or_else(too_large)?,
                    '*' => left.checked_mul(right).ok_or_else(too_large)?,
                    _ if right == 0 => {
                        return Err(Error::invalid("a section divides by zero"));
                    }
                    '/' => left.checked_div_euclid(right).ok_or_else(too_large)?,
                    _ => left.checked_rem_euclid(right).ok_or_else(too_large)?,
                }
            }
        })
    }

    pub(crate) fn depends_on_rank(&self) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Rank | Self::Ranks => true,
            Self::Negative(inner) => inner.depends_on_rank(),
            Self::Binary(_, left, right) => left.depends_on_rank() || right.depends_on_rank(),
        }
    }
}

/// Reads a text character by character and remembers where it is.
pub(crate) struct Reader<'a> {
    what: &'static str,
    text: &'a str,
    characters: Vec<char>,
    position: usize,
    depth: usize,
    operators: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(what: &'static str, text: &'a str) -> Self {
        Self {
            what,
            text,
            characters: text.chars().collect(),
            position: 0,
            depth: 0,
            operators: 0,
        }
    }

    /// The next character that is not white space, without taking it.
    pub(crate) fn peek(&mut self) -> Option<char> {
        while self
            .characters
            .get(self.position)
            .is_some_and(|c| c.is_whitespace())
        {
            self.position += 1;
        }
        self.characters.get(self.position).copied()
    }

    /// Takes `expected` if it comes next.
    pub(crate) fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        self.position += found as usize;
        found
    }

    /// Takes `expected` or fails.
    pub(crate) fn need(&mut self, expected: char) -> Result<()> {
        if self.take(expected) {
            return Ok(());
        }
        let found = self
            .peek()
            .map_or("the text ends".into(), |c| format!("'{c}' stands"));
        Err(self.error(format!("{found} where '{expected}' is needed")))
    }

    pub(crate) fn error(&self, problem: impl Into<String>) -> Error {
        Error::Text {
            what: self.what,
            text: self.text.into(),
            position: self.position,
            problem: problem.into(),
        }
    }

    /// An expression of its own.
    pub(crate) fn expression(&mut self) -> Result<Expression> {
        self.operators = 0;
        self.sum()
    }

    fn sum(&mut self) -> Result<Expression> {
        let mut left = self.product()?;
        while let Some(operator @ ('+' | '-')) = self.peek() {
            self.operator()?;
            left = Expression::Binary(operator, left.into(), self.product()?.into());
        }
        Ok(left)
    }

    /// Takes an operator.
    fn operator(&mut self) -> Result<()> {
        self.position += 1;
        self.operators += 1;
        if self.operators > LONGEST {
            return Err(self.error(format!(
                "an expression may have {LONGEST} operators at most"
            )));
        }
        Ok(())
    }

    fn product(&mut self) -> Result<Expression> {
        let mut left = self.factor()?;
        while let Some(operator @ ('*' | '/' | '%')) = self.peek() {
            self.operator()?;
            left = Expression::Binary(operator, left.into(), self.factor()?.into());
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expression> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error(format!("nested more than {DEEPEST} deep")));
        }
        let factor = match self.peek() {
            Some('-') => {
                self.position += 1;
                Expression::Negative(self.factor()?.into())
            }
            Some('(') => {
                self.position += 1;
                let inner = self.sum()?;
                self.need(')')?;
                inner
            }
            Some(digit) if digit.is_ascii_digit() => Expression::Number(self.number()?),
            Some(letter) if letter.is_ascii_alphabetic() => self.name()?,
            Some(other) => {
                return Err(
                    self.error(format!("'{other}' stands where a number, p or N is needed"))
                );
            }
            None => return Err(self.error("the text ends where a number, p or N is needed")),
        };
        self.depth -= 1;
        Ok(factor)
    }

    fn number(&mut self) -> Result<i64> {
        let digits = self.word(|c| c.is_ascii_digit());
        digits
            .parse()
            .map_err(|_| self.error(format!("{digits} does not fit into 63 bits")))
    }

    fn name(&mut self) -> Result<Expression> {
        let start = self.position;
        let word = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        match word.as_str() {
            "p" => Ok(Expression::Rank),
            "N" | "nprocs" => Ok(Expression::Ranks),
            _ => {
                self.position = start;
                Err(self.error(format!(
                    "'{word}' is unknown; p is the rank, N or nprocs the number of ranks"
                )))
            }
        }
    }

    fn word(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = &self.characters[self.position..];
        let word: String = rest.iter().take_while(|c| belongs(**c)).collect();
        self.position += word.len();
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, rank: u64, ranks: u64) -> Result<i64> {
        let mut reader = Reader::new("section", text);
        let expression = reader.expression()?;
        assert_eq!(reader.peek(), None, "{text}");
        expression.value(rank, ranks)
    }

    #[test]
    fn values() {
        assert_eq!(value("1+32*p", 3, 4).unwrap(), 97);
        assert_eq!(value("p + 1", 3, 4).unwrap(), 4);
        assert_eq!(value("(N-1-p)*100/nprocs % 7", 1, 4).unwrap(), 50 % 7);
        assert_eq!(value("-(2 - 5) * -2", 0, 1).unwrap(), -6);
        assert_eq!(value("10-3-2", 0, 1).unwrap(), 5);
    }

    #[test]
    fn bad_expressions_are_refused() {
        for text in [
            "9223372036854775807+1",
            "1/0",
            "5%(p)",
            "q",
            "1+",
            "(1",
            "99999999999999999999",
        ] {
            assert!(value(text, 0, 1).is_err(), "{text}");
        }
        assert!(value(&"(".repeat(10_000), 0, 1).is_err());
        assert!(value(&"-".repeat(10_000), 0, 1).is_err());
        assert!(value(&vec!["1"; 100_000].join("+"), 0, 1).is_err());
        assert_eq!(value(&vec!["1"; 257].join("+"), 0, 1).unwrap(), 257);
    }
}
