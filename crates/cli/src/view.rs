//! `outcore view`: a plane of an array as a picture.
//!
//! The path: the section's two long axes ([`Plane`]) -> strides that make it as
//! large as the picture ([`Grid`]) -> elements or means of them ([`Samples`]) ->
//! which values are the ends of the colours ([`Scale`]) -> a PNG file or
//! characters of the terminal.

mod canvas;
mod grid;
mod letters;
mod palette;
mod plane;
mod png_file;
mod samples;
mod scale;
mod terminal;

use std::sync::OnceLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Array, Comm, Result, json_number, shape_text};
use serde_json::json;

use crate::memory::Memory;
use crate::output::check_free;
use crate::progress::Progress;
use crate::ranks::{Ranks, print};
use crate::selection::Selection;
use crate::work::{Begun, Ended};
use grid::{Frame, Grid};
use palette::Palette;
use plane::Plane;
use samples::Samples;
use scale::{Limits, Scale};
use terminal::Depth;

/// The longer side of a picture in a file.
const SIZE: u32 = 1024;
/// What a sample takes beside what is read: its sum and its count, those of all
/// ranks while they are added up, and its place among the percentiles.
const BYTES_A_SAMPLE: u64 = 40;
/// What a pixel takes.
const BYTES_A_PIXEL: u64 = 4;
/// With less than this for what is read, single elements would be.
const LEAST_PIECE: u64 = 256 << 10;
/// More is not read at a time.
const MOST_PIECE: u64 = 16 << 20;

/// Show a plane of an array as a picture, in a file or in the terminal
///
/// The picture has the two axes of SECTION that are longer than one: the first
/// downwards, the second to the right. If there are more, it has the last two, at
/// the first index of the others, and says so. An array larger than the picture is
/// read with a stride, so that only what is shown is read; --mean reads all of it
/// and shows the mean of each part. Small arrays are enlarged.
///
/// The colours go from the 2nd to the 98th percentile of what is shown, or as
/// --range says; what is beyond has the colour of the end. NaN has a colour of its
/// own. Of complex numbers the modulus is shown.
///
/// Without -o the picture appears in the terminal: with two pixels to a character
/// where there are colours, otherwise (or in a pipe) in letters from ' ' to '@'.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore view field.oc
  outcore view field.oc -o field.png
  outcore view field.oc '1000:2000, 3000:4000' -o part.png --map coolwarm --range -1,1
  outcore view climate.zarr/surface/t '7, :, :' -o day7.png --mean --memory 64MiB
  outcore view data.npy --range all --size 512 --no-legend -o small.png")]
pub(crate) struct View {
    #[command(flatten)]
    selection: Selection,
    /// The picture, a file that ends in .png; without it the terminal
    #[arg(short, long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    output: Option<String>,
    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// The longer side of the picture, in pixels [default: 1024, or the terminal]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..=16384))]
    size: Option<u32>,
    /// Read all of the section, and show the mean of each part
    #[arg(long)]
    mean: bool,
    /// The colours
    #[arg(long, value_enum, default_value = "viridis")]
    map: Palette,
    /// The values at the ends of the colours, as LO,HI or 'all': the least and the largest
    /// value shown [default: the 2nd and the 98th percentile]
    #[arg(long, value_name = "LO,HI", allow_hyphen_values = true)]
    range: Option<Limits>,
    /// Only the array, without title and scale of colours
    #[arg(long)]
    no_legend: bool,
    /// Print what the picture shows as JSON
    #[arg(long, requires = "output")]
    json: bool,
    /// How the terminal shows colours [default: what it can]
    #[arg(long, value_enum, conflicts_with = "output")]
    colors: Option<Depth>,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    ranks: Ranks,
}

/// What a picture shows.
struct Scene<'a> {
    samples: &'a Samples,
    grid: &'a Grid,
    scale: &'a Scale,
    palette: Palette,
    /// A line about the array, and one about how it is shown; none without a legend.
    caption: Option<[String; 2]>,
}

impl View {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.selection.section.depends_on_rank() {
            return Err(format!(
                "section '{}' differs from rank to rank; a picture has one section",
                self.selection.section
            ));
        }
        match &self.output {
            Some(name) if !name.to_lowercase().ends_with(".png") => Err(format!(
                "the picture '{name}' must be a PNG file, with a name that ends in .png"
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn run(&self) -> Result<()> {
        let (progress, begun) = (OnceLock::new(), Begun::now());
        self.ranks.run(|comm| {
            comm.agree(self.check_free())?;
            let array = Array::open_all(comm, &self.selection.array)?;
            let section = self.selection.of_each(comm, &array)?;
            // 1. Which elements.
            let plane = comm.agree(Plane::of(&array, &section))?;
            let (rows, columns) = plane.extents();
            let depth = self.colors.unwrap_or_else(Depth::of_terminal);
            let frame = match &self.output {
                Some(_) => Frame::square(self.size.unwrap_or(SIZE)),
                None => depth.frame(self.size).of_first(comm)?,
            };
            let grid = Grid::fitted((rows, columns), frame);
            // 2. Their values.
            let samples = self.samples(comm, &array, (&plane, &grid), &progress)?;
            // 3. The picture.
            let ended = begun.end(comm)?;
            let shown = if comm.rank() == 0 {
                self.show(&array, (&plane, &grid, &samples), depth, &ended)
            } else {
                Ok(())
            };
            Ok(comm.agree(shown)?)
        })
    }

    /// Fails if there is something that must not be replaced.
    fn check_free(&self) -> Result<()> {
        match &self.output {
            Some(name) => check_free(name, self.force),
            None => Ok(()),
        }
    }

    /// Collective: what the picture shows, read by all ranks.
    fn samples(
        &self,
        comm: &Comm,
        array: &Array,
        (plane, grid): (&Plane, &Grid),
        progress: &OnceLock<Progress>,
    ) -> Result<Samples> {
        let budget = self.memory.budget().for_rank(comm);
        let held =
            grid.samples() * BYTES_A_SAMPLE + grid.pixels() * BYTES_A_PIXEL + array.decoded_bytes();
        let purpose = "a picture of this --size";
        comm.agree(budget.require(held.saturating_add(LEAST_PIECE), purpose))?;
        let room = budget.limit() - held;
        let array = array.staged(room / 4, &budget);
        let strides = grid.strides();
        let (source, step) = if self.mean {
            (plane.section().clone(), strides)
        } else {
            (plane.strided(strides)?, (1, 1))
        };
        let bytes = source.count() * array.layout().element_size() / comm.size() as u64;
        let progress = Progress::shared(progress, "reading", comm, bytes)?;
        let reading = samples::Reading {
            array: &array,
            plane,
            source: &source,
            step,
            piece: (room / 2).min(MOST_PIECE.max(array.whole_chunk())),
            progress,
        };
        Samples::read(comm, &reading, grid)
    }

    fn show(
        &self,
        array: &Array,
        (plane, grid, samples): (&Plane, &Grid, &Samples),
        depth: Depth,
        ended: &Ended,
    ) -> Result<()> {
        let limits = self.range.unwrap_or_default();
        let scale = Scale::of(array.element_type(), samples.values(), limits);
        let shown = self.shown(plane, grid);
        let caption = [
            format!(
                "{} {} {}",
                array.name(),
                shape_text(array.shape()),
                array.element_type()
            ),
            format!("{shown}; {}", scale.text()),
        ];
        let scene = Scene {
            samples,
            grid,
            scale: &scale,
            palette: self.map,
            caption: (!self.no_legend).then_some(caption),
        };
        match &self.output {
            Some(name) => {
                let (width, height) = png_file::write(name, &scene)?;
                if self.json {
                    let [low, high] = scale.limits().map(json_number);
                    return print(&ended.json([
                        ("array", json!(array.name())),
                        ("section", json!(plane.section().to_string())),
                        ("strides", json!(grid.strides())),
                        ("mean", json!(self.mean)),
                        ("range", json!([low, high])),
                        ("output", json!(name)),
                        ("width", json!(width)),
                        ("height", json!(height)),
                    ]));
                }
                let (array, scale) = (array.name(), scale.text());
                print(&format!(
                    "{name}: {width}x{height} pixels; {array} {shown}; {scale}\n"
                ))
            }
            None => print(&terminal::text(&scene, depth)),
        }
    }

    /// The section as it is shown.
    fn shown(&self, plane: &Plane, grid: &Grid) -> String {
        let how = match (grid.strides(), self.mean) {
            ((1, 1), _) => String::new(),
            ((down, across), true) => format!(", mean of each {down}x{across}"),
            ((down, across), false) => format!(", first of each {down}x{across}"),
        };
        format!("[{}]{}{how}", plane.section(), plane.note())
    }
}
