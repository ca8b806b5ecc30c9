//! Colour scales whose lightness is linear in the value, interpolated in OKLab.

/// The map from values to colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// From 0 (near white) to the largest value (near black), for probabilities.
    #[default]
    Sequential,
    /// The same with colour ∝ √value, so that small modes stay visible; the colour bar is labelled accordingly.
    SequentialSquareRoot,
    /// Blue for negative, white for 0, red for positive, for correlations.
    Diverging,
}

/// A colour as (lightness, a, b) in OKLab.
type Oklab = [f64; 3];

/// Equal steps of lightness, hue from pale green through blue to violet.
const SEQUENTIAL: [Oklab; 5] = [
    [0.985, -0.003, 0.006],
    [0.805, -0.082, 0.012],
    [0.625, -0.085, -0.058],
    [0.445, -0.025, -0.112],
    [0.265, 0.030, -0.105],
];

/// Equal steps of lightness, mirrored about white.
const DIVERGING: [Oklab; 5] =
    [[0.385, -0.030, -0.135], [0.685, -0.045, -0.095], [0.985, 0.0, 0.0], [0.685, 0.130, 0.065], [0.385, 0.135, 0.065]];

impl Palette {
    /// The colour at `position` in 0..=1 along the colour bar, as `#rrggbb`.
    pub(super) fn at(self, position: f64) -> String {
        let [red, green, blue] = self.rgb(position);
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// The colour at `position` as sRGB bytes.
    pub(super) fn rgb(self, position: f64) -> [u8; 3] {
        srgb(self.oklab(position))
    }

    /// Whether the colour is so dark that text on it should be white.
    pub(super) fn is_dark(self, position: f64) -> bool {
        self.oklab(position)[0] < 0.62
    }

    fn oklab(self, position: f64) -> Oklab {
        let anchors = match self {
            Self::Sequential | Self::SequentialSquareRoot => &SEQUENTIAL,
            Self::Diverging => &DIVERGING,
        };
        let scaled = position.clamp(0.0, 1.0) * (anchors.len() - 1) as f64;
        let before = (scaled as usize).min(anchors.len() - 2);
        let weight = scaled - before as f64;
        std::array::from_fn(|i| anchors[before][i] + weight * (anchors[before + 1][i] - anchors[before][i]))
    }

    /// The position along the colour bar of `value`, where `limit > 0` is the end of the bar.
    pub(super) fn position(self, value: f64, limit: f64) -> f64 {
        let ratio = (value / limit).clamp(-1.0, 1.0);
        match self {
            Self::Sequential => ratio.max(0.0),
            Self::SequentialSquareRoot => ratio.max(0.0).sqrt(),
            Self::Diverging => 0.5 + 0.5 * ratio,
        }
    }
}

/// OKLab to sRGB (Ottosson 2020); colours out of gamut are clipped channel by channel.
fn srgb([lightness, a, b]: Oklab) -> [u8; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let linear = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    linear.map(|channel| {
        let encoded = if channel <= 0.003_130_8 { 12.92 * channel } else { 1.055 * channel.powf(1.0 / 2.4) - 0.055 };
        (encoded.clamp(0.0, 1.0) * 255.0).round() as u8
    })
}
