//! [`Canvas`]: pixels of a picture in a file.

use crate::picture::Colour;

/// Pixels in red, green and blue, row by row.
pub(super) struct Canvas {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Canvas {
    /// A canvas of one colour.
    pub(super) fn new(width: usize, height: usize, colour: Colour) -> Self {
        let pixel = [colour.0, colour.1, colour.2];
        Self {
            width,
            height,
            bytes: pixel.repeat(width * height),
        }
    }

    pub(super) fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Fills a rectangle, as far as it is on the canvas.
    pub(super) fn fill(
        &mut self,
        (x, y): (usize, usize),
        (width, height): (usize, usize),
        colour: Colour,
    ) {
        let (right, bottom) = ((x + width).min(self.width), (y + height).min(self.height));
        for row in y..bottom {
            let line = row * self.width;
            for pixel in
                self.bytes[3 * (line + x.min(right))..3 * (line + right)].chunks_exact_mut(3)
            {
                pixel.copy_from_slice(&[colour.0, colour.1, colour.2]);
            }
        }
    }

    /// Mixes a share of `colour` into a pixel, if there is such a pixel.
    pub(super) fn mix(&mut self, (x, y): (usize, usize), colour: Colour, share: f64) {
        if x >= self.width || y >= self.height {
            return;
        }
        let at = 3 * (y * self.width + x);
        if let [red, green, blue] = &mut self.bytes[at..at + 3] {
            let mixed = Colour(*red, *green, *blue).mixed(colour, share.clamp(0.0, 1.0));
            (*red, *green, *blue) = (mixed.0, mixed.1, mixed.2);
        }
    }
}
