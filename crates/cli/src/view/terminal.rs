//! A picture in characters: an upper half block has the colour of one pixel as
//! its own and that of the pixel below as its background.

use std::fmt::Write;
use std::io::IsTerminal;

use clap::ValueEnum;

use super::Scene;
use super::grid::Frame;
use crate::picture::Colour;

/// Without a terminal that says its size.
const SIZE: (u32, u32) = (80, 45);
/// Lines that the picture leaves: the scale, what it is, and the prompt.
const OTHER_LINES: u32 = 5;
/// The characters of the scale.
const SCALE: usize = 32;
/// From the least value to the largest, and NaN.
const LETTERS: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
const NAN: char = '?';

/// How a terminal shows colours.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Depth {
    /// 24 bits a colour
    #[value(name = "24bit")]
    Full,
    /// 256 colours
    #[value(name = "256")]
    Cube,
    /// Letters from ' ' to '@', without colours
    Ascii,
}

impl Depth {
    /// What standard output can show.
    pub(super) fn of_terminal() -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        if !std::io::stdout().is_terminal() || !variable("NO_COLOR").is_empty() {
            return Self::Ascii;
        }
        let (colours, terminal) = (variable("COLORTERM"), variable("TERM"));
        match (colours.as_str(), terminal.as_str()) {
            ("truecolor" | "24bit", _) => Self::Full,
            (_, kind) if kind.contains("direct") => Self::Full,
            (_, kind) if kind.contains("256") => Self::Cube,
            _ => Self::Ascii,
        }
    }

    /// The room for a picture, whose longer side may be given.
    pub(super) fn frame(self, size: Option<u32>) -> Frame {
        let (width, lines) = terminal_size::terminal_size()
            .map_or(SIZE, |(width, height)| (width.0.into(), height.0.into()));
        let lines = lines.saturating_sub(OTHER_LINES).max(1);
        let pixel = if self == Self::Ascii { 2 } else { 1 };
        Frame {
            width: size.unwrap_or(width).max(1),
            height: size.map_or(lines * 2 / pixel, |size| (size / pixel).max(1)),
            pixel,
        }
    }
}

/// The picture as text.
pub(super) fn text(scene: &Scene<'_>, depth: Depth) -> String {
    let (rows, columns) = (&scene.grid.rows, &scene.grid.columns);
    let place = |row: usize, column: usize| {
        let sample = scene
            .samples
            .at(row / rows.pixels as usize, column / columns.pixels as usize);
        scene.scale.place(sample)
    };
    let (height, width) = (rows.length(), columns.length());
    let mut text = String::new();
    if depth == Depth::Ascii {
        for row in 0..height {
            let line: String = (0..width)
                .map(|column| letter(place(row, column)))
                .collect();
            text += line.trim_end();
            text.push('\n');
        }
    } else {
        let colour = |row: usize, column: usize| scene.palette.colour(place(row, column));
        for row in (0..height).step_by(2) {
            let mut before = (None, None);
            for column in 0..width {
                let below = (row + 1 < height).then(|| colour(row + 1, column));
                let pair = (Some(colour(row, column)), below);
                if pair != before {
                    paint(&mut text, depth, pair);
                    before = pair;
                }
                text.push('\u{2580}');
            }
            text += "\x1b[0m\n";
        }
    }
    if let Some(caption) = &scene.caption {
        text += &scale(scene, depth);
        let _ = writeln!(text, "{}\n{}", caption[0], caption[1]);
    }
    text
}

fn letter(place: f64) -> char {
    if place.is_nan() {
        return NAN;
    }
    let at = place.clamp(0.0, 1.0) * LETTERS.len() as f64;
    LETTERS[(at as usize).min(LETTERS.len() - 1)]
}

/// The scale of colours, with the numbers at its ends.
fn scale(scene: &Scene<'_>, depth: Depth) -> String {
    let places = (0..SCALE).map(|at| (at as f64 + 0.5) / SCALE as f64);
    let ticks = scene.scale.ends();
    let Some((low, high)) = ticks else {
        return String::new();
    };
    let mut text = format!("{low} ");
    if depth == Depth::Ascii {
        text.push('[');
        text.extend(places.map(letter));
        text.push(']');
    } else {
        for place in places {
            paint(&mut text, depth, (Some(scene.palette.colour(place)), None));
            text.push('\u{2588}');
        }
        text += "\x1b[0m";
    }
    text = format!("{text} {high}");
    if scene.scale.has_nan() {
        if depth == Depth::Ascii {
            let _ = write!(text, "   {NAN} NaN");
        } else {
            text += "   ";
            paint(
                &mut text,
                depth,
                (Some(scene.palette.colour(f64::NAN)), None),
            );
            text += "\u{2588}\u{2588}\x1b[0m NaN";
        }
    }
    text + "\n"
}

/// Sets the colours of the next characters; the background is the terminal's if
/// there is none.
fn paint(text: &mut String, depth: Depth, (front, back): (Option<Colour>, Option<Colour>)) {
    for (code, colour) in [(38, front), (48, back)] {
        let _ = match (colour, depth) {
            (None, _) => write!(text, "\x1b[{}m", code + 1),
            (Some(Colour(red, green, blue)), Depth::Full) => {
                write!(text, "\x1b[{code};2;{red};{green};{blue}m")
            }
            (Some(colour), _) => write!(text, "\x1b[{code};5;{}m", of_256(colour)),
        };
    }
}

/// The nearest of the 6x6x6 colours and 24 grays that terminals have.
fn of_256(colour: Colour) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let nearest = |value: u8| {
        let distance = |level: &u8| LEVELS[usize::from(*level)].abs_diff(value);
        (0..6).min_by_key(distance).unwrap_or(0)
    };
    let [red, green, blue] = [colour.0, colour.1, colour.2].map(nearest);
    let cube = [red, green, blue].map(|level| LEVELS[usize::from(level)]);
    let mean = (u16::from(colour.0) + u16::from(colour.1) + u16::from(colour.2)) / 3;
    let step = (mean.saturating_sub(3) / 10).min(23) as u8;
    let gray = [8 + 10 * step; 3];
    let distance = |other: [u8; 3]| -> u32 {
        let own = [colour.0, colour.1, colour.2];
        let parts = own.iter().zip(other);
        parts.map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    if distance(gray) < distance(cube) {
        return 232 + step;
    }
    16 + 36 * red + 6 * green + blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_256() {
        assert_eq!(of_256(Colour(0, 0, 0)), 16);
        assert_eq!(of_256(Colour::WHITE), 231);
        assert_eq!(of_256(Colour(255, 0, 0)), 196);
        assert_eq!(of_256(Colour(128, 128, 128)), 244);
    }

    #[test]
    fn letters() {
        assert_eq!(
            [0.0, 0.05, 0.5, 1.0, f64::NAN].map(letter),
            [' ', ' ', '+', '@', '?']
        );
    }
}
