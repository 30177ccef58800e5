//! [`Scale`]: which values have the colours at the ends, and the numbers beside
//! them.

use std::str::FromStr;

use outcore::ElementType;

/// How the ends are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Limits {
    /// The 2nd and the 98th percentile.
    #[default]
    Percentiles,
    /// The least and the largest value.
    All,
    /// These values.
    Given(f64, f64),
}

impl FromStr for Limits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let number = |text: &str| {
            let number = text.trim().parse::<f64>().ok();
            number.filter(|number| number.is_finite())
        };
        let ends = text.split_once(',');
        let ends = ends.and_then(|(low, high)| Some((number(low)?, number(high)?)));
        match ends {
            Some((low, high)) if low < high => Ok(Self::Given(low, high)),
            Some(_) => Err(format!("in '{text}' the first value must be the lesser")),
            None => Err(format!("'{text}' is no range; write e.g. -1.5,2 or all")),
        }
    }
}

/// The values at the ends of the colours.
pub(super) struct Scale {
    low: f64,
    high: f64,
    /// Where they come from.
    origin: &'static str,
    has_nan: bool,
}

impl Scale {
    /// The scale for these values of arrays of `kind`.
    pub(super) fn of(kind: ElementType, values: &[f64], limits: Limits) -> Self {
        let has_nan = values.iter().any(|value| value.is_nan());
        let (low, high, origin) = match limits {
            Limits::Given(low, high) => (low, high, "as asked for"),
            Limits::All if kind == ElementType::Bool => (0.0, 1.0, "false to true"),
            Limits::Percentiles if kind == ElementType::Bool => (0.0, 1.0, "false to true"),
            Limits::All => extremes(values),
            Limits::Percentiles => percentiles(values).unwrap_or_else(|| extremes(values)),
        };
        Self {
            low,
            high,
            origin,
            has_nan,
        }
    }

    /// Where a value stands: 0 at the lower end, 1 at the upper one; in the
    /// middle if there is but one value.
    pub(super) fn place(&self, value: f64) -> f64 {
        if value.is_nan() || (self.low == self.high && value == self.low) {
            return if value.is_nan() { f64::NAN } else { 0.5 };
        }
        if value.is_infinite() || self.low == self.high {
            return if value > self.low { 1.0 } else { 0.0 };
        }
        // Halves, since the difference of two finite values may be infinite.
        (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
    }

    pub(super) fn has_nan(&self) -> bool {
        self.has_nan
    }

    /// The ends, and where they come from.
    pub(super) fn text(&self) -> String {
        let nan = if self.has_nan { ", and NaN" } else { "" };
        if self.low.is_nan() {
            return "nothing finite".into();
        }
        if self.low == self.high {
            return format!("{} everywhere{nan}", short(self.low));
        }
        let (low, high) = (short(self.low), short(self.high));
        format!("{low} to {high} ({}){nan}", self.origin)
    }

    /// The values at the ends; NaN if there is nothing finite.
    pub(super) fn limits(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// The texts of both ends, unless there is no value.
    pub(super) fn ends(&self) -> Option<(String, String)> {
        (!self.low.is_nan()).then(|| (short(self.low), short(self.high)))
    }

    /// Round values between the ends, with their texts.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let span = self.high - self.low;
        if !(span.is_finite() && span > 0.0) {
            let ends = [self.low, self.high];
            let ends = ends.into_iter().filter(|end| !end.is_nan());
            let mut ends: Vec<_> = ends.map(|end| (end, short(end))).collect();
            ends.dedup_by(|a, b| a.0 == b.0);
            return ends;
        }
        let rough = span / 6.0;
        let power = rough.log10().floor() as i32;
        let unit = 10f64.powi(power);
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * unit);
        let step = step.into_iter().find(|step| *step >= rough * (1.0 - 1e-9));
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil();
        let largest = self.low.abs().max(self.high.abs());
        let ticks = (0..=7).map(|at| (first + f64::from(at)) * step);
        let ticks = ticks.filter(|value| *value <= self.high + step * 1e-9);
        ticks
            .map(|value| (value, rounded(value, step, largest)))
            .collect()
    }
}

/// The least and the largest of the finite values; NaN if there is none.
fn extremes(values: &[f64]) -> (f64, f64, &'static str) {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let low = finite().fold(f64::NAN, f64::min);
    (low, finite().fold(f64::NAN, f64::max), "least to largest")
}

/// The 2nd and the 98th percentile of the finite values, unless they are the same.
fn percentiles(values: &[f64]) -> Option<(f64, f64, &'static str)> {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let mut finite: Vec<f64> = finite.collect();
    let last = finite.len().checked_sub(1)?;
    let mut at = |place: usize| *finite.select_nth_unstable_by(place, f64::total_cmp).1;
    let (low, high) = (at(last / 50), at(last - last / 50));
    (low < high).then_some((low, high, "2nd to 98th percentile"))
}

/// A number with four digits that count.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    if value.fract() == 0.0 {
        return format!("{value}");
    }
    let digits = (3 - size.log10().floor() as i32).clamp(0, 8) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// A multiple of `step` with as many digits as that needs, beside numbers up to
/// `largest`.
fn rounded(value: f64, step: f64, largest: f64) -> String {
    if value.abs() < step / 2.0 {
        return "0".into();
    }
    if !(1e-3..1e7).contains(&largest) {
        let digits = (largest.log10().floor() - step.log10().floor()).clamp(0.0, 6.0);
        return format!("{value:.*e}", digits as usize);
    }
    let digits = (-step.log10().floor()).clamp(0.0, 9.0);
    format!("{value:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!("-1,2.5".parse(), Ok(Limits::Given(-1.0, 2.5)));
        assert_eq!("all".parse(), Ok(Limits::All));
        for text in ["", "1", "2,1", "1,1", "a,b", "0,inf", "nan,1", "1,2,3"] {
            assert!(text.parse::<Limits>().is_err(), "{text}");
        }
    }

    #[test]
    fn ends_of_values() {
        let values: Vec<f64> = (0..=1000).map(f64::from).collect();
        let scale = Scale::of(ElementType::F64, &values, Limits::Percentiles);
        assert_eq!(scale.text(), "20 to 980 (2nd to 98th percentile)");
        assert_eq!(scale.place(500.0), 0.5);
        assert_eq!(scale.place(f64::NEG_INFINITY), 0.0);
        let ticks: Vec<String> = scale.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(ticks, ["200", "400", "600", "800"]);
        let scale = Scale::of(ElementType::F64, &[2.0, f64::NAN], Limits::Percentiles);
        assert_eq!(scale.text(), "2 everywhere, and NaN");
        assert_eq!((scale.place(2.0), scale.place(3.0)), (0.5, 1.0));
        let scale = Scale::of(ElementType::F64, &[f64::NAN], Limits::All);
        assert_eq!(scale.text(), "nothing finite");
        assert!(scale.place(f64::NAN).is_nan() && scale.ticks().is_empty());
        // One value in a thousand: percentiles do not see it.
        let mut values = vec![0.0; 1000];
        values[7] = -1e300;
        let scale = Scale::of(ElementType::F64, &values, Limits::Percentiles);
        assert_eq!(scale.text(), "-1.000e300 to 0 (least to largest)");
        let wide = Scale::of(ElementType::F64, &[], Limits::Given(-1.7e308, 1.7e308));
        assert_eq!(wide.place(0.0), 0.5);
        assert_eq!(wide.ticks().len(), 2);
    }

    #[test]
    fn numbers() {
        assert_eq!(short(0.12345), "0.1235");
        assert_eq!(short(1234567.0), "1234567");
        assert_eq!(short(1e-9), "1.000e-9");
        assert_eq!(short(-2.5), "-2.5");
        let tiny = Scale::of(ElementType::F64, &[], Limits::Given(0.0, 1.2e-6));
        let ticks: Vec<String> = tiny.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(ticks[..3], ["0", "2.0e-7", "4.0e-7"]);
    }
}
