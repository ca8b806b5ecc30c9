//! Figures are well-formed, legible and deterministic, for any input.

use std::fs;
use std::path::{Path, PathBuf};

use resvg::tiny_skia::Pixmap;
use resvg::usvg::roxmltree::Document;

use super::axis::{Axis, index_ticks, linear_ticks, square_root_ticks, tick_label};
use super::colour::Palette;
use super::raster;
use super::{Bar, Bars, FigureError, Group, Heatmap, Panel, Point, Scatter, ScatterPanel};
use crate::run_dir::pending::WriteError;

fn heatmap(values: Vec<f64>, len: usize, palette: Palette) -> Heatmap {
    Heatmap {
        title: "Two <counts> & \"one\" effect".to_owned(),
        caption: "A caption that ends < here.".to_owned(),
        x_label: "z₁".to_owned(),
        y_label: "z₂".to_owned(),
        value_label: "probability".to_owned(),
        palette,
        panels: vec![
            Panel::square("True posterior", "", len, values.clone()),
            Panel::square("Mean-field", "KL 0.3509", len, values),
        ],
        ..Heatmap::default()
    }
}

fn scatter(points: Vec<Point>) -> Scatter {
    let panel = |title: &str, x, y| ScatterPanel {
        title: title.to_owned(),
        x,
        y,
        points: points.clone(),
        ..Default::default()
    };
    Scatter {
        title: "Draws".to_owned(),
        caption: "Caption.".to_owned(),
        legend: vec![(Group::Red, "region 1".to_owned()), (Group::Blue, "region 2".to_owned())],
        panels: vec![
            panel("(a)", Axis::linear("λ₁"), Axis::linear("λ₂")),
            panel("(b)", Axis::log("z₁"), Axis::log("z₂")),
        ],
    }
}

/// The XML parser and the SVG parser accept it, and no number in it is NaN or infinite.
fn assert_well_formed(svg: &str) {
    let document = Document::parse(svg).expect("well-formed XML");
    assert_eq!(document.root_element().attribute("role"), Some("img"));
    for node in document.descendants().filter(|node| node.tag_name().name() != "desc") {
        for attribute in node.attributes().filter(|a| a.name() != "aria-label") {
            assert!(!attribute.value().contains("NaN") && !attribute.value().contains("inf"), "{attribute:?}");
        }
    }
    raster::parse(svg).expect("valid SVG");
}

#[test]
fn text_is_escaped_and_survives_the_round_trip() {
    let mut figure = heatmap(vec![0.25; 4], 2, Palette::Sequential);
    figure.panels[0].title = "a < b & c > d \"e\" 'f' \u{1}".to_owned();
    let svg = figure.svg();
    assert_well_formed(&svg);
    let document = Document::parse(&svg).expect("well-formed XML");
    let text_of = |tag: &str| document.descendants().find(|n| n.has_tag_name(("http://www.w3.org/2000/svg", tag)));
    assert_eq!(text_of("title").and_then(|n| n.text()), Some(figure.title.as_str()));
    assert_eq!(text_of("desc").and_then(|n| n.text()), Some(figure.caption.as_str()));
    let all: String = document.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect();
    assert!(all.contains("a < b & c"), "{all}");
    assert!(!svg.contains('\u{1}'));
}

#[test]
fn awkward_input_is_drawn_without_panic_or_nan() {
    let awkward = [
        vec![],
        vec![0.0; 9],
        vec![f64::NAN; 9],
        vec![f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e308, -1e308, 1e-320, 0.0, 1.0, f64::NAN],
        vec![1.0],
        vec![0.1; 50],
    ];
    for palette in [Palette::Sequential, Palette::SequentialSquareRoot, Palette::Diverging] {
        for values in &awkward {
            for len in [0, 1, 3] {
                let figure = Heatmap { annotate: true, ..heatmap(values.clone(), len, palette) };
                assert_well_formed(&figure.svg());
                assert_well_formed(&Heatmap { limit: Some(f64::NAN), ..figure }.svg());
            }
            let points = values.iter().map(|&v| Point { x: v, y: -v, group: Group::Red }).collect();
            assert_well_formed(&scatter(points).svg());
        }
    }
    assert_well_formed(&Heatmap::default().svg());
    assert_well_formed(&Scatter::default().svg());
}

#[test]
fn missing_values_are_noted_in_the_caption() {
    let missing = heatmap(vec![0.5, f64::NAN, 0.25, 0.25], 2, Palette::Sequential).svg();
    assert!(missing.contains("Grey cells have no value."));
    let whole = heatmap(vec![0.25; 4], 2, Palette::Sequential).svg();
    assert!(!whole.contains("Grey cells"));
    let points = [-1.0, 2.0, 3.0].map(|x| Point { x, y: 1.0, group: Group::Blue });
    assert!(scatter(points.to_vec()).svg().contains("(b): 1 of 3 points lie outside the axes."));
    assert!(heatmap(vec![0.25; 4], 2, Palette::SequentialSquareRoot).svg().contains("square-root"));
}

/// Points of a colour are joined in order, and with no others.
#[test]
fn a_curve_joins_the_points_of_its_colour() {
    let at = |x: f64, group| Point { x, y: x, group };
    let points = vec![at(1.0, Group::Red), at(2.0, Group::Blue), at(3.0, Group::Red), at(4.0, Group::Red)];
    let mut figure = scatter(points);
    let strokes = |figure: &Scatter, colour: &str| figure.svg().matches(&format!("stroke=\"{colour}\"")).count();
    assert_eq!([strokes(&figure, "#c8252c"), strokes(&figure, "#1763ab")], [0, 0]);
    figure.panels.iter_mut().for_each(|panel| panel.is_joined = true);
    assert_eq!([strokes(&figure, "#c8252c"), strokes(&figure, "#1763ab")], [2 * 2, 0]);
    assert_well_formed(&figure.svg());
}

/// The first index runs along x, and y grows upwards.
#[test]
fn cells_lie_where_the_axes_say() {
    let mut figure = heatmap(vec![0.0, 0.0, 1.0, 0.0], 2, Palette::Sequential);
    figure.panels.truncate(1);
    let svg = figure.svg();
    let dark = format!("fill=\"{}\" d=\"M", Palette::Sequential.at(1.0));
    let start = svg.find(&dark).expect("a dark cell") + dark.len();
    let corner: Vec<f64> = svg[start..].split(['h', ' ']).take(2).map(|n| n.parse().expect("number")).collect();
    let frame = svg.find("fill=\"none\"").map(|end| &svg[..end]).and_then(|s| s.rfind("<rect").map(|at| &s[at..]));
    let value = |name: &str| -> f64 {
        let rest = frame.and_then(|f| f.split(&format!(" {name}=\"")).nth(1)).expect("attribute");
        rest.split('"').next().and_then(|n| n.parse().ok()).expect("number")
    };
    assert_eq!(corner[0], value("x") + value("width") / 2.0);
    assert_eq!(corner[1], value("y") + value("height") / 2.0);
}

#[test]
fn annotations_are_short_and_correct() {
    let values = vec![-0.416, 0.0, 10.25, 1.0, f64::NAN, -0.001, 0.996, -1.26, 0.5];
    let mut figure = Heatmap { annotate: true, ..heatmap(values, 3, Palette::Diverging) };
    figure.panels.truncate(1);
    (figure.title, figure.caption, figure.limit) = (String::new(), String::new(), Some(1e-3));
    let svg = figure.svg();
    let document = Document::parse(&svg).expect("well-formed XML");
    let drawn: Vec<_> = document.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect();
    for wanted in ["−.42", "10", "1", "−1.3", ".5"] {
        assert!(drawn.contains(&wanted), "{wanted} in {drawn:?}");
    }
    assert!(drawn.iter().all(|text| *text != "−" && *text != "−0"), "{drawn:?}");
}

/// Lightness after rounding to bytes: CIE L*, which the OKLab anchors were not built from.
fn lightness([red, green, blue]: [u8; 3]) -> f64 {
    let linear = |byte: u8| {
        let c = f64::from(byte) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    if luminance > 0.008_856 { 116.0 * luminance.cbrt() - 16.0 } else { 903.3 * luminance }
}

#[test]
fn lightness_falls_steadily_along_every_scale() {
    let sequence = |palette: Palette, from: f64, to: f64| -> Vec<f64> {
        (0..=64).map(|k| lightness(palette.rgb(from + (to - from) * f64::from(k) / 64.0))).collect()
    };
    let scales = [
        sequence(Palette::Sequential, 0.0, 1.0),
        sequence(Palette::Diverging, 0.5, 1.0),
        sequence(Palette::Diverging, 0.5, 0.0),
    ];
    for scale in scales {
        assert!(scale[0] > 95.0 && scale[64] < 40.0, "{} to {}", scale[0], scale[64]);
        let mean_step = (scale[0] - scale[64]) / 64.0;
        for pair in scale.windows(2) {
            let step = pair[0] - pair[1];
            assert!(step > 0.7 * mean_step && step < 1.3 * mean_step, "step {step} against {mean_step}");
        }
    }
    let ends = [0.0, 1.0].map(|p| lightness(Palette::Diverging.rgb(p)));
    assert!((ends[0] - ends[1]).abs() < 5.0, "{ends:?}");
}

#[test]
fn ticks_are_round_and_short() {
    let labels = |ticks: Vec<super::axis::Tick>| ticks.into_iter().map(|t| t.label).collect::<Vec<_>>();
    assert_eq!(labels(linear_ticks(-1.0, 1.0, 4)), ["−1", "−0.5", "0", "0.5", "1"]);
    assert_eq!(labels(linear_ticks(0.0, 0.083, 5)), ["0", "0.02", "0.04", "0.06", "0.08"]);
    assert_eq!(labels(square_root_ticks(0.083)), ["0", "0.005", "0.02", "0.04", "0.08"]);
    assert_eq!(labels(Axis::log("z").ticks((0.02, 400.0))), ["0.1", "1", "10", "100"]);
    assert_eq!(labels(Axis::log("z").ticks((1e-9, 1e3))), ["10⁻⁹", "10⁻⁷", "10⁻⁵", "0.001", "0.1", "10", "1000"]);
    assert_eq!(tick_label(-2e-7), "−2×10⁻⁷");
    let indices: Vec<_> = index_ticks(31, 0, 6.0).into_iter().map(|(i, _)| i).collect();
    assert_eq!(indices, [0, 5, 10, 15, 20, 25, 30]);
    assert_eq!(index_ticks(12, 1, 10.0).first(), Some(&(1, "2".to_owned())));
    assert_eq!(index_ticks(12, 1, 30.0).len(), 12);
}

#[test]
fn a_valid_range_is_kept() {
    let axis = |range| Axis { range, ..Axis::log("z") };
    assert_eq!(axis(Some((0.5, 8.0))).ends([1e3].into_iter()), (0.5, 8.0));
    assert_eq!(axis(Some((0.5, 8.0))).fraction(2.0, (0.5, 8.0)), Some(0.5));
    assert_eq!(axis(None).fraction(9.0, (0.5, 8.0)), None);
    for no_range in [None, Some((0.0, 8.0)), Some((8.0, 0.5)), Some((f64::NAN, 1.0))] {
        let (low, high) = axis(no_range).ends([1.0, 100.0, -5.0, f64::NAN].into_iter());
        assert!(low > 0.5 && low < 1.0 && high > 100.0 && high < 200.0, "{low} to {high}");
    }
}

/// The width table agrees with the rendered font, and wrapped lines fit.
#[test]
fn measured_text_is_as_wide_as_drawn_text() {
    for (text, bold) in
        [("The quick brown fox, 0123456789", false), ("Mean-field λ₁ KL", false), ("True posterior", true)]
    {
        let weight = if bold { "bold" } else { "normal" };
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"90\"><text x=\"9\" y=\"60\" \
             font-family=\"DejaVu Sans\" font-weight=\"{weight}\" font-size=\"20\">{text}</text></svg>"
        );
        let drawn = f64::from(raster::parse(&svg).expect("valid SVG").root().bounding_box().width());
        let measured = super::text::width(text, 20.0, bold);
        assert!((measured / drawn - 1.0).abs() < 0.04, "{text}: {measured} against {drawn}");
    }
    let long = format!("short words and {}", "x".repeat(80));
    for line in super::text::wrap(&long, 12.0, false, 100.0) {
        assert!(super::text::width(&line, 12.0, false) <= 100.0, "{line}");
    }
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("hyperprior-figure-{name}-{}", std::process::id()))
}

#[test]
fn both_files_are_written_whole_and_nothing_else() {
    let folder = scratch("write");
    let figure = heatmap((0..9).map(|k| f64::from(k) / 36.0).collect(), 3, Palette::SequentialSquareRoot);
    let svg = figure.svg();
    let paths = super::write(&svg, &folder.join("inner/figure.1")).expect("written");
    assert_eq!(paths, [folder.join("inner/figure.1.svg"), folder.join("inner/figure.1.png")]);
    super::write(&svg, &folder.join("inner/figure.1")).expect("written over the old one");
    assert_eq!(fs::read_to_string(&paths[0]).expect("readable"), svg);
    assert_eq!(fs::read_dir(folder.join("inner")).expect("folder").count(), 2);

    let pixels = Pixmap::load_png(&paths[1]).expect("a PNG");
    let size = raster::parse(&svg).expect("valid SVG").size();
    assert_eq!((pixels.width(), pixels.height()), (2 * size.width() as u32, 2 * size.height() as u32));
    let [red, green, blue] = Palette::Sequential.rgb(1.0);
    let count = |wanted: &dyn Fn(u8, u8, u8) -> bool| {
        pixels.pixels().iter().filter(|p| wanted(p.red(), p.green(), p.blue())).count()
    };
    assert!(count(&|r, g, b| (r, g, b) == (red, green, blue)) > 1000, "the darkest cell is there");
    assert!(count(&|r, g, b| (r, g, b) == (0x22, 0x22, 0x22)) > 100, "the text is there");
    assert!(count(&|r, g, b| (r, g, b) == (255, 255, 255)) > 1000, "on white");
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn errors_name_the_path_and_the_remedy() {
    let svg = Heatmap::default().svg();
    let blocked = scratch("blocked");
    fs::write(&blocked, "a file").expect("written");
    let error = super::write(&svg, &blocked.join("figure")).expect_err("a file is no folder");
    assert!(matches!(error, FigureError::File(WriteError::Folder { .. })), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(&blocked.display().to_string()) && message.contains("choose another name"), "{message}");
    fs::remove_file(&blocked).expect("removed");

    let taken = scratch("taken");
    fs::create_dir_all(taken.join("figure.png")).expect("created");
    let error = super::write(&svg, &taken.join("figure")).expect_err("a folder has the name");
    assert!(
        matches!(&error, FigureError::File(WriteError::File { path, .. }) if path.ends_with("figure.png")),
        "{error:?}"
    );
    let names: Vec<_> = fs::read_dir(&taken).expect("folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("tmp")), "{names:?}");
    fs::remove_dir_all(&taken).expect("removed");

    let full = WriteError::File { path: "a.png".into(), reason: std::io::ErrorKind::StorageFull.into() };
    assert!(full.to_string().contains("`a.png`") && full.to_string().contains("free some space"), "{full}");
    assert!(matches!(super::write(&svg, Path::new("..")), Err(FigureError::NoName { .. })));
    assert!(matches!(super::write("<svg", Path::new("x")), Err(FigureError::Raster { .. })));
}

/// Catches a bar whose length is not its value, and one that is drawn without a value.
#[test]
fn bars_are_as_long_as_their_values_and_missing_values_have_none() {
    let bar = |label: &str, value, text: &str| Bar {
        label: label.to_owned(),
        value,
        text: text.to_owned(),
        ..Bar::default()
    };
    let bars = |axis, values: &[Option<f64>]| Bars {
        title: "Bars & more".to_owned(),
        axis,
        bars: values.iter().map(|v| bar("name", *v, "a <reason>")).collect(),
        ..Bars::default()
    };
    let lengths = |svg: &str| -> Vec<f64> {
        let starts = svg.split("d=\"M").skip(1).map(|d| d.split_once('h').expect("a width").1);
        starts.map(|d| d.split_once('v').expect("a height").0.parse().expect("a number")).collect()
    };
    let linear = bars(Axis::linear("nats"), &[Some(2.0), None, Some(0.5), Some(f64::NAN)]).svg();
    assert_well_formed(&linear);
    let found = lengths(&linear);
    assert_eq!(found.len(), 2);
    assert!((found[0] / found[1] - 4.0).abs() < 1e-3, "{found:?}");
    // Equal ratios are equal differences in length, and only positive values have a bar.
    let log = bars(Axis::log("nats"), &[Some(1.0), Some(0.1), Some(0.01), Some(0.0), Some(-1e-17)]).svg();
    assert_well_formed(&log);
    let found = lengths(&log);
    assert_eq!(found.len(), 3);
    assert!((found[0] - 2.0 * found[1] + found[2]).abs() < 0.05 && found[2] > 10.0, "{found:?}");
    for values in [&[][..], &[None], &[Some(f64::INFINITY)], &[Some(1e-300), Some(1e300)]] {
        assert_well_formed(&bars(Axis::log(""), values).svg());
        assert_well_formed(&bars(Axis::linear(""), values).svg());
    }
}
