//! [`Palette`]: from a place between 0 and 1 to a colour.

use clap::ValueEnum;

use crate::picture::Colour;

/// A map of colours.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Palette {
    /// From violet over green to yellow, as bright as the value is large
    Viridis,
    /// From black to white
    Gray,
    /// From blue over light gray to red, for values around a middle
    Coolwarm,
}

/// Colours at equal distances.
const VIRIDIS: [Colour; 9] = [
    Colour(0x44, 0x01, 0x54),
    Colour(0x47, 0x2d, 0x7b),
    Colour(0x3b, 0x52, 0x8b),
    Colour(0x2c, 0x72, 0x8e),
    Colour(0x21, 0x91, 0x8c),
    Colour(0x28, 0xae, 0x80),
    Colour(0x5e, 0xc9, 0x62),
    Colour(0xad, 0xdc, 0x30),
    Colour(0xfd, 0xe7, 0x25),
];
const GRAY: [Colour; 2] = [Colour(0, 0, 0), Colour::WHITE];
const COOLWARM: [Colour; 9] = [
    Colour(0x3b, 0x4c, 0xc0),
    Colour(0x62, 0x82, 0xea),
    Colour(0x8d, 0xb0, 0xfe),
    Colour(0xb8, 0xd0, 0xf9),
    Colour(0xdd, 0xdd, 0xdd),
    Colour(0xf5, 0xc4, 0xad),
    Colour(0xf4, 0x9a, 0x7b),
    Colour(0xde, 0x60, 0x4d),
    Colour(0xb4, 0x04, 0x26),
];

impl Palette {
    /// The colour at `place`, which is cut to 0..=1; that of NaN is none of the
    /// others.
    pub(super) fn colour(self, place: f64) -> Colour {
        if place.is_nan() {
            return match self {
                Self::Viridis => Colour(0xc8, 0xc8, 0xc8),
                Self::Gray => Colour(0xd6, 0x27, 0x28),
                Self::Coolwarm => Colour(0x20, 0x20, 0x20),
            };
        }
        let points: &[Colour] = match self {
            Self::Viridis => &VIRIDIS,
            Self::Gray => &GRAY,
            Self::Coolwarm => &COOLWARM,
        };
        let place = place.clamp(0.0, 1.0) * (points.len() - 1) as f64;
        let below = (place as usize).min(points.len() - 2);
        points[below].mixed(points[below + 1], place - below as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_points_between() {
        for palette in [Palette::Viridis, Palette::Gray, Palette::Coolwarm] {
            let first = palette.colour(0.0);
            assert_eq!(palette.colour(f64::NEG_INFINITY), first);
            assert_eq!(palette.colour(f64::INFINITY), palette.colour(1.0));
            assert_ne!(first, palette.colour(1.0));
            assert!(
                (0..=1000).all(|at| {
                    palette.colour(f64::from(at) / 1000.0) != palette.colour(f64::NAN)
                })
            );
        }
        assert_eq!(Palette::Viridis.colour(0.5), VIRIDIS[4]);
        assert_eq!(Palette::Viridis.colour(1.0), VIRIDIS[8]);
        assert_eq!(Palette::Gray.colour(0.2), Colour(51, 51, 51));
    }
}
