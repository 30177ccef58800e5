//! [`Letters`]: text on a canvas, in DejaVu Sans Mono, which the program carries
//! with it.

use ab_glyph::{Font, FontRef, ScaleFont, point};

use super::canvas::Canvas;
use crate::picture::Colour;

/// Letters of one size.
pub(super) struct Letters {
    font: Option<FontRef<'static>>,
    size: f32,
}

impl Letters {
    /// Letters of so many pixels.
    pub(super) fn of_size(size: f32) -> Self {
        Self {
            font: FontRef::try_from_slice(dejavu::sans_mono::regular()).ok(),
            size,
        }
    }

    /// How wide a text is; all letters are of the same width.
    pub(super) fn width(&self, text: &str) -> usize {
        let letter = self.font.as_ref().map_or(0.0, |font| {
            let font = font.as_scaled(self.size);
            font.h_advance(font.glyph_id('0'))
        });
        (letter * text.chars().count() as f32).ceil() as usize
    }

    /// The text, or as much of its beginning as is no wider than `most`.
    pub(super) fn cut(&self, text: &str, most: usize) -> String {
        if self.width(text) <= most {
            return text.into();
        }
        let mut kept: Vec<char> = text.chars().collect();
        while !kept.is_empty() {
            kept.pop();
            let cut = kept.iter().collect::<String>() + "...";
            if self.width(&cut) <= most {
                return cut;
            }
        }
        String::new()
    }

    /// Writes `text` from (`x`, `y`), the upper left corner, to the right.
    pub(super) fn write(
        &self,
        canvas: &mut Canvas,
        (x, y): (usize, usize),
        text: &str,
        colour: Colour,
    ) {
        let Some(font) = &self.font else { return };
        let font = font.as_scaled(self.size);
        let mut from = x as f32;
        let foot = y as f32 + font.ascent();
        for letter in text.chars() {
            let id = font.glyph_id(letter);
            let glyph = id.with_scale_and_position(self.size, point(from, foot));
            from += font.h_advance(id);
            let Some(outline) = font.outline_glyph(glyph) else {
                continue;
            };
            let bounds = outline.px_bounds();
            outline.draw(|right, down, share| {
                let x = bounds.min.x + right as f32;
                let y = bounds.min.y + down as f32;
                if x >= 0.0 && y >= 0.0 {
                    canvas.mix((x as usize, y as usize), colour, f64::from(share));
                }
            });
        }
    }
}
