//! A picture as a PNG file: the array, on its right the scale of colours, below
//! what it is.

use std::io::{self, BufWriter};

use outcore::Result;

use super::Scene;
use super::canvas::Canvas;
use super::letters::Letters;
use crate::picture::Colour;
use crate::whole_file::{self, failed};

const MARGIN: usize = 18;
/// The scale of colours.
const BAR: usize = 22;
const LEAST_BAR: usize = 120;
/// Smaller pictures are widened if their titles are longer.
const LEAST_WIDTH: usize = 800;
/// From the scale to its numbers.
const TICK: usize = 6;
const FONT: f32 = 16.0;
const LINE: usize = 21;

const PAPER: Colour = Colour::WHITE;
const INK: Colour = Colour(0x22, 0x2a, 0x33);
const FAINT: Colour = Colour(0x66, 0x70, 0x7a);

/// Writes the picture; returns how wide and high it is.
pub(super) fn write(name: &str, scene: &Scene<'_>) -> Result<(usize, usize)> {
    let canvas = match &scene.caption {
        Some(caption) => with_legend(scene, caption),
        None => {
            let (width, height) = size(scene);
            let mut canvas = Canvas::new(width, height, PAPER);
            draw_array(&mut canvas, (0, 0), scene);
            canvas
        }
    };
    let (width, height) = canvas.size();
    whole_file::write(name, |file| {
        // No side is longer than 16384 pixels and its legend.
        let mut encoder = png::Encoder::new(BufWriter::new(file), width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let write = || -> io::Result<()> {
            let mut writer = encoder.write_header()?;
            writer.write_image_data(canvas.bytes())?;
            Ok(writer.finish()?)
        };
        write().map_err(failed(name))
    })?;
    Ok((width, height))
}

/// The pixels of the array.
fn size(scene: &Scene<'_>) -> (usize, usize) {
    (scene.grid.columns.length(), scene.grid.rows.length())
}

fn draw_array(canvas: &mut Canvas, (x, y): (usize, usize), scene: &Scene<'_>) {
    let (rows, columns) = (&scene.grid.rows, &scene.grid.columns);
    let each = (columns.pixels as usize, rows.pixels as usize);
    for row in 0..rows.count as usize {
        for column in 0..columns.count as usize {
            let place = scene.scale.place(scene.samples.at(row, column));
            let corner = (x + column * each.0, y + row * each.1);
            canvas.fill(corner, each, scene.palette.colour(place));
        }
    }
}

fn with_legend(scene: &Scene<'_>, caption: &[String; 2]) -> Canvas {
    let (width, height) = size(scene);
    let letters = Letters::of_size(FONT);
    let ticks = scene.scale.ticks();
    let numbers = ticks.iter().map(|(_, text)| letters.width(text));
    let numbers = numbers.fold(letters.width("NaN"), usize::max);
    let nan = if scene.scale.has_nan() { 2 * LINE } else { 0 };
    let bar = height.saturating_sub(nan).max(LEAST_BAR);
    let wanted = caption.iter().map(|text| letters.width(text) + 2 * MARGIN);
    let wanted = wanted.fold(0, usize::max).min(LEAST_WIDTH);
    let all = (4 * MARGIN + width + BAR + TICK + numbers).max(wanted);
    let below = MARGIN + (bar + nan).max(height) + MARGIN;
    let mut canvas = Canvas::new(all, below + 2 * LINE + MARGIN, PAPER);
    draw_array(&mut canvas, (MARGIN, MARGIN), scene);
    // The scale, the largest value on top.
    let (x, y) = (2 * MARGIN + width, MARGIN);
    canvas.fill((x - 1, y - 1), (BAR + 2, bar + 2), FAINT);
    for row in 0..bar {
        let place = 1.0 - (row as f64 + 0.5) / bar as f64;
        canvas.fill((x, y + row), (BAR, 1), scene.palette.colour(place));
    }
    for (value, text) in &ticks {
        let down = (1.0 - scene.scale.place(*value).clamp(0.0, 1.0)) * (bar - 1) as f64;
        let at = y + down.round() as usize;
        canvas.fill((x + BAR, at), (TICK - 1, 1), FAINT);
        let top = (at + 1).saturating_sub(LINE / 2);
        letters.write(&mut canvas, (x + BAR + TICK + 3, top), text, INK);
    }
    if nan > 0 {
        let top = y + bar + LINE;
        canvas.fill((x - 1, top - 1), (BAR + 2, LINE + 1), FAINT);
        canvas.fill((x, top), (BAR, LINE - 1), scene.palette.colour(f64::NAN));
        letters.write(&mut canvas, (x + BAR + TICK + 3, top), "NaN", INK);
    }
    for ((line, text), colour) in caption.iter().enumerate().zip([INK, FAINT]) {
        let text = letters.cut(text, all - 2 * MARGIN);
        letters.write(&mut canvas, (MARGIN, below + line * LINE), &text, colour);
    }
    canvas
}
