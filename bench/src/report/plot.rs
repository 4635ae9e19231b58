//! The curves: cost against reservations, mappings, attachments, parallelism.

use std::path::Path;

use plotters::prelude::*;

use super::Report;
use crate::Outcome;
use crate::subject::Subject;

/// A plot that was drawn.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// The section that it belongs to.
    pub section: &'static str,
    /// What it shows.
    pub title: String,
    /// Its file, beside the others.
    pub file: String,
}

/// What is drawn: section, calls, and what they are plotted against.
const CURVES: &[(&str, &[&str], &str)] = &[
    ("host-local", &["host-local ADD", "host-local DEL"], "addresses reserved by others"),
    ("portmap", &["portmap ADD", "portmap CHECK", "portmap DEL"], "port mappings of others"),
    (
        "attachments",
        &[
            "bridge with masquerade ADD",
            "bridge with masquerade CHECK",
            "bridge with masquerade DEL",
        ],
        "attachments on the bridge",
    ),
    ("crowd", &["all ADD", "all DEL"], "containers at once"),
    ("store", &["loopback ADD", "loopback DEL", "list"], "attachments recorded"),
];

/// Points of one subject: what is there, and milliseconds.
type Points = Vec<(f64, f64)>;

/// Draws every curve that has at least two points.
///
/// # Errors
/// A file can't be written.
pub fn draw_all(report: &Report, directory: &Path) -> Outcome<Vec<Drawn>> {
    let mut drawn = Vec::new();
    for (section, calls, against) in CURVES {
        for call in *calls {
            let lines: Vec<_> = Subject::ALL
                .into_iter()
                .map(|subject| (subject, points(report, section, call, subject)))
                .filter(|(_, points)| points.len() > 1)
                .collect();
            if lines.is_empty() {
                continue;
            }
            let file = format!("{section}-{}.svg", call.to_lowercase().replace(' ', "-"));
            draw(&directory.join(&file), call, against, &lines)
                .map_err(|error| format!("{file}: {error}"))?;
            drawn.push(Drawn { section, title: format!("{call} against {against}"), file });
        }
    }
    Ok(drawn)
}

fn points(report: &Report, section: &str, call: &str, subject: Subject) -> Points {
    let mut points: Points = report
        .rows(section)
        .filter(|(place, _)| place.call == call)
        .filter_map(|(place, cells)| {
            let median = cells.get(&subject)?.median()?;
            Some((f64::from(place.at?), median))
        })
        .collect();
    points.sort_by(|left, right| left.0.total_cmp(&right.0));
    points
}

fn draw(
    path: &Path,
    title: &str,
    against: &str,
    lines: &[(Subject, Points)],
) -> Result<(), Box<dyn std::error::Error>> {
    let all = || lines.iter().flat_map(|(_, points)| points);
    let most = |of: fn(&(f64, f64)) -> f64| all().map(of).fold(0.0, f64::max);
    let least = all().map(|point| point.1).fold(f64::INFINITY, f64::min);
    // Both axes are logarithmic; none at all is drawn where one would be.
    let (right, top) = (most(|point| point.0).max(1.0) * 1.5, most(|point| point.1) * 2.0);
    let root = SVGBackend::new(path, (720, 400)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .caption(title, ("sans-serif", 18))
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((1.0..right).log_scale(), (least * 0.5..top).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(against)
        .y_desc("milliseconds, median")
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    for (subject, points) in lines {
        let color = color(*subject);
        let points: Points = points.iter().map(|(at, time)| (at.max(1.0), *time)).collect();
        chart
            .draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?
            .label(subject.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, color.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}

/// Told apart by those who see fewer colours, too.
const fn color(subject: Subject) -> RGBColor {
    match subject {
        Subject::Podwire => RGBColor(213, 94, 0),
        Subject::GoNew => RGBColor(0, 114, 178),
        Subject::GoOld => RGBColor(86, 180, 233),
        Subject::Floor => RGBColor(90, 90, 90),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::Place;
    use crate::call::Run;

    #[test]
    fn a_curve_becomes_a_picture() {
        let mut report = Report::default();
        for at in [10, 1_000] {
            let time = Duration::from_millis(u64::from(at));
            let run = Run { times: Some((time, time)), ..Run::default() };
            let place = Place::new("host-local", "host-local ADD").at(at);
            report.add(&place, Subject::Podwire, &run);
        }
        let directory =
            std::env::temp_dir().join(format!("podwire-bench-plot-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let drawn = draw_all(&report, &directory).unwrap();
        let text = std::fs::read_to_string(directory.join(&drawn[0].file)).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(drawn.len(), 1);
        assert!(text.contains("<svg") && text.contains("Podwire"), "{text}");
    }
}
