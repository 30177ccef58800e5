//! Numbers from text, as `text` writes them: in row-major order, with spaces, commas or
//! ends of lines between them. Read twice: nothing is written unless all of them are numbers
//! of the right type, and as many as are needed.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use outcore::{Array, Error, Pieces, Result, Section, reorder};

use crate::memory::Room;
use crate::progress::Progress;

/// Elements in memory at a time, at the most.
const PIECE: u64 = 1 << 20;

/// No number is longer: a complex one of the least two that are not zero has less.
const LONGEST: usize = 1024;

/// The text of a section's values.
pub(crate) struct Numbers<'a> {
    pub(crate) file: &'a str,
    pub(crate) array: &'a Array,
    pub(crate) section: &'a Section,
}

impl Numbers<'_> {
    /// Writes them into the section.
    pub(crate) fn write(&self, room: &Room, progress: &Progress) -> Result<()> {
        self.check()?;
        let (mut words, mut word) = (self.words()?, Vec::new());
        let order = self.array.layout().slowest_first();
        let row_major: Vec<usize> = (0..order.len()).collect();
        let size = self.array.layout().element_size();
        let most = room.elements(2, size).clamp(1, PIECE);
        let (mut bytes, mut ordered) = (Vec::new(), Vec::new());
        for piece in Pieces::new(self.section, &row_major, most) {
            bytes.clear();
            for _ in 0..piece.count() {
                match words.next(&mut word).map_err(self.failed())? {
                    Some(line) => self.read(&word, line, &mut bytes)?,
                    None => return Err(self.wrong_count(words.count)),
                }
            }
            ordered.resize(bytes.len(), 0);
            reorder(&piece.shape(), (&bytes, &row_major), (&mut ordered, order));
            self.array.write_bytes(&piece, &ordered)?;
            progress.add(bytes.len() as u64);
        }
        self.array.sync()
    }

    /// Fails unless they are what the section needs.
    fn check(&self) -> Result<()> {
        let (mut words, mut word, mut bytes) = (self.words()?, Vec::new(), Vec::new());
        while let Some(line) = words.next(&mut word).map_err(self.failed())? {
            bytes.clear();
            self.read(&word, line, &mut bytes)?;
            if words.count.is_multiple_of(PIECE) && outcore::interrupted().is_some() {
                return Err(Error::Interrupted);
            }
        }
        match words.count == self.section.count() {
            true => Ok(()),
            false => Err(self.wrong_count(words.count)),
        }
    }

    fn words(&self) -> Result<Words<BufReader<File>>> {
        let path = Path::new(self.file);
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            return Err(Error::Invalid(format!(
                "{} is no file; text is read twice, so put it into one",
                self.file
            )));
        }
        let file = File::open(path).map_err(self.failed())?;
        Ok(Words::new(BufReader::with_capacity(1 << 18, file)))
    }

    /// Appends the bytes of a number.
    fn read(&self, word: &[u8], line: u64, bytes: &mut Vec<u8>) -> Result<()> {
        let wrong =
            |problem: String| Error::Invalid(format!("{}, line {line}: {problem}", self.file));
        let text = str::from_utf8(word).ok();
        match text.filter(|text| text.len() <= LONGEST) {
            Some("") => Err(wrong("there is no number between the commas".into())),
            Some(text) => {
                let read = self.array.element_type().read_text(text, bytes);
                read.map_err(|error| wrong(error.to_string()))
            }
            None => Err(wrong("there is something else than numbers".into())),
        }
    }

    fn failed(&self) -> impl FnOnce(std::io::Error) -> Error + use<> {
        let path = self.file.into();
        |source| Error::File {
            action: "read",
            path,
            source,
        }
    }

    fn wrong_count(&self, found: u64) -> Error {
        Error::Invalid(format!(
            "{} has {found} numbers, but section [{}] of {} needs {}",
            self.file,
            self.section,
            self.array.name(),
            self.section.count()
        ))
    }
}

/// What stands between spaces, commas and ends of lines.
struct Words<R> {
    from: R,
    line: u64,
    /// How many there were.
    count: u64,
    /// Whether there was one since the last comma or the beginning of the line.
    filled: bool,
    /// Whether the line has a comma.
    commas: bool,
}

impl<R: BufRead> Words<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            line: 1,
            count: 0,
            filled: false,
            commas: false,
        }
    }

    /// The next one, cut where it is too long for a number, and its line; an empty one
    /// where it is missing beside a comma.
    fn next(&mut self, word: &mut Vec<u8>) -> std::io::Result<Option<u64>> {
        word.clear();
        loop {
            let Some(byte) = self.from.fill_buf()?.first().copied() else {
                return Ok(self.ends(word, None));
            };
            self.from.consume(1);
            if !byte.is_ascii_whitespace() && byte != b',' {
                if word.len() <= LONGEST {
                    word.push(byte);
                }
            } else if let Some(line) = self.ends(word, Some(byte)) {
                return Ok(Some(line));
            }
        }
    }

    /// Whether a word ends before `separator`, or at the end of the file; its line.
    fn ends(&mut self, word: &[u8], separator: Option<u8>) -> Option<u64> {
        let line = self.line;
        let filled = self.filled || !word.is_empty();
        let is_missing = match separator {
            Some(b',') => !filled,
            Some(b'\n') | None => self.commas && !filled,
            Some(_) => false,
        };
        match separator {
            Some(b',') => (self.filled, self.commas) = (false, true),
            Some(b'\n') | None => {
                (self.filled, self.commas) = (false, false);
                self.line += 1;
            }
            Some(_) => self.filled = filled,
        }
        let found = is_missing || !word.is_empty();
        self.count += u64::from(found);
        found.then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(String, u64)> {
        let (mut words, mut word, mut all) = (Words::new(text.as_bytes()), Vec::new(), Vec::new());
        while let Some(line) = words.next(&mut word).unwrap() {
            all.push((String::from_utf8(word.clone()).unwrap(), line));
        }
        assert_eq!(words.count, all.len() as u64);
        all
    }

    fn expect(text: &str, expected: &[(&str, u64)]) {
        let expected: Vec<_> = (expected.iter())
            .map(|(word, line)| ((*word).to_owned(), *line))
            .collect();
        assert_eq!(words(text), expected, "{text:?}");
    }

    #[test]
    fn words_know_their_lines() {
        expect("", &[]);
        expect("\n\n", &[]);
        expect("1 2\n3\r\n\n 4", &[("1", 1), ("2", 1), ("3", 2), ("4", 4)]);
        expect("1,2\n3 , 4\n", &[("1", 1), ("2", 1), ("3", 2), ("4", 2)]);
    }

    #[test]
    fn what_is_missing_beside_a_comma_is_found() {
        expect("1,,2", &[("1", 1), ("", 1), ("2", 1)]);
        expect(",1\n2, \n", &[("", 1), ("1", 1), ("2", 2), ("", 2)]);
        expect("1,", &[("1", 1), ("", 1)]);
    }
}
