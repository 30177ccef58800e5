//! [`Svg`]: a drawing as plain SVG text, without fonts of its own and without
//! scripts, written from top to bottom.

use std::fmt::Write;

/// A colour, in red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

impl Colour {
    pub(crate) const WHITE: Self = Self(255, 255, 255);

    /// The colour with `share` of `other` in it.
    pub(crate) fn mixed(self, other: Self, share: f64) -> Self {
        let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share) as u8;
        Self(
            mix(self.0, other.0),
            mix(self.1, other.1),
            mix(self.2, other.2),
        )
    }

    /// The colour of this hue (0 to 1) that is as light as `light` says.
    pub(crate) fn of_hue(hue: f64, light: f64) -> Self {
        const SATURATION: f64 = 0.62;
        let part = |shift: f64| {
            let at = (shift + hue * 12.0) % 12.0;
            let swing = (at - 3.0).min(9.0 - at).clamp(-1.0, 1.0);
            (255.0 * (light - SATURATION * light.min(1.0 - light) * swing)) as u8
        };
        Self(part(0.0), part(8.0), part(4.0))
    }
}

impl std::fmt::Display for Colour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// A rectangle.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// How a text stands.
#[derive(Clone, Copy)]
pub(crate) struct Font {
    pub(crate) size: f64,
    pub(crate) colour: Colour,
    pub(crate) bold: bool,
    /// `start`, `middle` or `end`.
    pub(crate) anchor: &'static str,
}

/// A drawing.
pub(crate) struct Svg {
    width: f64,
    body: String,
}

impl Svg {
    pub(crate) fn new(width: f64) -> Self {
        Self {
            width,
            body: String::new(),
        }
    }

    /// A filled rectangle, with an edge if it has a colour.
    pub(crate) fn rectangle(&mut self, area: Area, fill: Colour, edge: Option<Colour>) {
        let edge = edge.map_or(String::new(), |colour| format!(" stroke=\"{colour}\""));
        self.put(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"{edge}/>\n",
            number(area.x),
            number(area.y),
            number(area.width),
            number(area.height)
        ));
    }

    /// The edge of a rectangle, `thick` units wide.
    pub(crate) fn outline(&mut self, area: Area, colour: Colour, thick: f64) {
        self.put(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"{thick}\"/>\n",
            number(area.x),
            number(area.y),
            number(area.width),
            number(area.height)
        ));
    }

    /// Many rectangles of one colour, as one path.
    pub(crate) fn rectangles(&mut self, fill: Colour, areas: impl IntoIterator<Item = Area>) {
        let mut path = String::new();
        for area in areas {
            let (width, height) = (number(area.width), number(area.height));
            let (x, y) = (number(area.x), number(area.y));
            let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
        }
        if !path.is_empty() {
            self.put(format_args!(
                "<path shape-rendering=\"crispEdges\" fill=\"{fill}\" d=\"{path}\"/>\n"
            ));
        }
    }

    /// Many straight lines of one colour, as one path.
    pub(crate) fn lines(
        &mut self,
        colour: Colour,
        thick: f64,
        lines: impl IntoIterator<Item = [f64; 4]>,
    ) {
        let mut path = String::new();
        for [x, y, to_x, to_y] in lines {
            let (x, y, to_x, to_y) = (number(x), number(y), number(to_x), number(to_y));
            let _ = write!(path, "M{x} {y}L{to_x} {to_y}");
        }
        if !path.is_empty() {
            self.put(format_args!(
                "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"{thick}\" d=\"{path}\"/>\n"
            ));
        }
    }

    /// A text whose first line's foot is at (`x`, `y`).
    pub(crate) fn text(&mut self, x: f64, y: f64, font: Font, text: &str) {
        let weight = if font.bold {
            " font-weight=\"bold\""
        } else {
            ""
        };
        self.put(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{}\"{weight}>{}</text>\n",
            number(x),
            number(y),
            font.size,
            font.colour,
            font.anchor,
            escaped(text)
        ));
    }

    /// The whole drawing, so many units high.
    pub(crate) fn finish(self, height: f64, title: &str) -> String {
        let (width, height) = (number(self.width), number(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\">\n\
             <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(element);
    }
}

/// A coordinate with at most two digits behind the point.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// The text as it stands in SVG; what XML cannot hold becomes a replacement.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control < ' ' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers() {
        assert_eq!(escaped("a<b>&\"\u{1}"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
        assert_eq!(number(1.0), "1");
        assert_eq!(number(0.126), "0.13");
        assert_eq!(number(100.0), "100");
        assert_eq!(Colour(0, 0, 0).mixed(Colour::WHITE, 1.0), Colour::WHITE);
        assert_eq!(Colour(1, 16, 255).to_string(), "#0110ff");
    }
}
