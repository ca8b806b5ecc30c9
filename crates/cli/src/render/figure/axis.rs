//! Axes: the range, the ticks and their labels.

/// Equal differences or equal ratios.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AxisScale {
    /// Equal distances are equal differences.
    #[default]
    Linear,
    /// Equal distances are equal ratios; only positive values have a place on it.
    Log,
}

/// One axis of a scatter panel.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// Such as `λ₁`.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: AxisScale,
    /// The range to show; `None`, or a pair that is not a range on this scale, shows all the points.
    pub range: Option<(f64, f64)>,
}

/// A labelled place on an axis.
pub struct Tick {
    pub value: f64,
    pub label: String,
}

impl Axis {
    /// A linear axis that shows all the points.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// A logarithmic axis that shows all the positive points.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: AxisScale::Log, range: None }
    }

    /// The ends to show for these values: never empty, never infinite.
    pub(super) fn ends(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        if let Some((low, high)) = self.range
            && self.can_place(low)
            && self.can_place(high)
            && low < high
        {
            return (low, high);
        }
        let places = values.filter(|&v| self.can_place(v)).map(|v| self.warp(v));
        let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let margin = if high > low { 0.04 * (high - low) } else { 0.5 * low.abs().max(1.0) };
        (self.unwarp(low - margin), self.unwarp(high + margin))
    }

    /// Where `value` lies between the ends, as a fraction; `None` when it is outside or has no place on this scale.
    pub(super) fn fraction(&self, value: f64, (low, high): (f64, f64)) -> Option<f64> {
        if !self.can_place(value) {
            return None;
        }
        let fraction = (self.warp(value) - self.warp(low)) / (self.warp(high) - self.warp(low));
        (-1e-9..=1.0 + 1e-9).contains(&fraction).then_some(fraction)
    }

    /// Round numbers between the ends.
    pub(super) fn ticks(&self, (low, high): (f64, f64)) -> Vec<Tick> {
        match self.scale {
            AxisScale::Linear => linear_ticks(low, high, 7),
            AxisScale::Log => log_ticks(low, high),
        }
    }

    /// Unlabelled ticks at 2, 3, … 9 times each decade, which show that an axis is logarithmic.
    pub(super) fn minor_ticks(&self, (low, high): (f64, f64)) -> Vec<f64> {
        if self.scale == AxisScale::Linear {
            return Vec::new();
        }
        let (first, last) = (low.log10().floor() as i32, high.log10().floor() as i32);
        // Closer together they would only be a grey edge.
        if last - first > 6 {
            return Vec::new();
        }
        (first..=last).flat_map(|k| (2..=9).map(move |m| f64::from(m) * 10f64.powi(k))).collect()
    }

    /// The limits keep differences and decades of values representable.
    fn can_place(&self, value: f64) -> bool {
        match self.scale {
            AxisScale::Linear => value.abs() < 1e150,
            AxisScale::Log => value > 1e-150 && value < 1e150,
        }
    }

    fn warp(&self, value: f64) -> f64 {
        match self.scale {
            AxisScale::Linear => value,
            AxisScale::Log => value.log10(),
        }
    }

    fn unwarp(&self, place: f64) -> f64 {
        match self.scale {
            AxisScale::Linear => place,
            AxisScale::Log => 10f64.powf(place),
        }
    }
}

/// The smallest of 1, 2, 5 × 10ᵏ that cuts `span` into at most `most` pieces.
fn round_step(span: f64, most: usize) -> f64 {
    let rough = span / most as f64;
    let decade = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|m| m * decade).find(|&step| step >= rough * 0.999).unwrap_or(10.0 * decade)
}

/// Multiples of a round step between `low` and `high`.
pub fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let step = round_step(high - low, most);
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    // A range of a few units in the last place could produce endless ticks.
    let count = ((last - first).clamp(0.0, 20.0) as usize) + 1;
    (0..count).map(|k| (first + k as f64) * step).map(|value| Tick { value, label: tick_label(value) }).collect()
}

/// Whole decades, thinned to six; round multiples if fewer than two decades fit.
fn log_ticks(low: f64, high: f64) -> Vec<Tick> {
    let (first, last) = ((low.log10() - 1e-9).ceil() as i32, (high.log10() + 1e-9).floor() as i32);
    if last > first {
        let stride = ((last - first) as usize).div_ceil(6).max(1);
        return (first..=last).step_by(stride).map(|k| Tick { value: 10f64.powi(k), label: decade_label(k) }).collect();
    }
    linear_ticks(low, high, 5).into_iter().filter(|tick| tick.value > 0.0).collect()
}

/// Indices 0..len with labels that start at `first`: all of them if cells are large and few, else at a round stride.
pub(super) fn index_ticks(len: usize, first: usize, cell: f64) -> Vec<(usize, String)> {
    let every = len <= 7 || (len <= 16 && cell >= 20.0);
    let stride = if every { 1 } else { (round_step((len - 1) as f64, 6) as usize).max(1) };
    // The labels are multiples of the stride, not the places: 5, 10, … and not 1, 6, …
    (0..len).filter(|i| (i + first).is_multiple_of(stride)).map(|i| (i, (i + first).to_string())).collect()
}

/// At most six round numbers in 0..=limit, about evenly spread on a square-root scale.
pub(super) fn square_root_ticks(limit: f64) -> Vec<Tick> {
    let mut values = vec![0.0];
    for k in 1..=4 {
        let wanted = limit * (f64::from(k) / 4.0).powi(2);
        let decade = 10f64.powf(wanted.log10().floor());
        let round = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0].map(|m| m * decade);
        if let Some(&value) = round.iter().rev().find(|&&v| v <= wanted * 1.000_001) {
            values.push(value);
        }
    }
    values.dedup();
    values.into_iter().map(|value| Tick { value, label: tick_label(value) }).collect()
}

fn decade_label(exponent: i32) -> String {
    if (-3..=4).contains(&exponent) {
        return tick_label(10f64.powi(exponent));
    }
    format!("10{}", superscript(exponent))
}

/// A round number in its shortest form, with a true minus sign.
pub(super) fn tick_label(value: f64) -> String {
    let size = value.abs();
    if size < 1e-300 {
        return "0".to_owned();
    }
    let text = if (1e-4..1e5).contains(&size) {
        trim(format!("{value:.7}"))
    } else {
        let exponent = size.log10().floor() as i32;
        format!("{}×10{}", trim(format!("{:.3}", value / 10f64.powi(exponent))), superscript(exponent))
    };
    text.replace('-', "−")
}

fn trim(decimal: String) -> String {
    decimal.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn superscript(exponent: i32) -> String {
    let digit = |letter: char| match letter {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    };
    exponent.to_string().chars().map(digit).collect()
}
