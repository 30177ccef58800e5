//! What the lines say: how `auto` does beside outcore's other ways, and beside
//! other systems.

use crate::line::Line;

/// How `auto` does: within how much of the best own way, and how much faster
/// than the best other system and the best collective call of one. Only those
/// are compared who took turns.
pub fn collective_summary(lines: &[Line]) -> String {
    let mut text = String::new();
    let autos: Vec<&Line> = lines
        .iter()
        .filter(|line| line.strategy == "auto")
        .collect();
    let own = |line: &Line| line.system == "outcore" && line.strategy != "auto";
    let foreign = |line: &Line| line.system != "outcore" && line.strategy != "sequential";
    let collective = |line: &Line| line.strategy == "collective";
    text += &compared("own way", lines, &autos, &own);
    text += &compared("other system", lines, &autos, &foreign);
    text += &compared("other system's collective call", lines, &autos, &collective);
    let limit = |line: &Line| line.strategy == "sequential";
    text += &compared("sequential read of the file", lines, &autos, &limit);
    let wrong = lines.iter().filter(|line| !line.ok).count();
    if wrong > 0 {
        text += &format!("{wrong} lines are WRONG\n");
    }
    text
}

/// One sentence about `auto` and the best of those who are like that.
fn compared(what: &str, lines: &[Line], autos: &[&Line], like: &dyn Fn(&Line) -> bool) -> String {
    let mut rows: Vec<(f64, f64, &Line)> = Vec::new();
    for auto in autos {
        let same = |line: &&Line| {
            line.case == auto.case
                && line.op == auto.op
                && line.ranks == auto.ranks
                && line.transport == auto.transport
        };
        let others = lines.iter().filter(same).filter(|line| like(line));
        if let Some(best) = others.map(|line| line.best_s).reduce(f64::min) {
            // The same row may have been measured beside several systems.
            let known = rows.iter_mut().find(|(_, _, other)| {
                other.case == auto.case && other.op == auto.op && other.ranks == auto.ranks
            });
            match known {
                Some(row) if best / auto.best_s < row.0 / row.1 => *row = (best, auto.best_s, auto),
                Some(_) => {}
                None => rows.push((best, auto.best_s, auto)),
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let count = rows.len();
    let not_slower = rows.iter().filter(|(best, auto, _)| auto <= best).count();
    let within = |(best, auto, _): &&(f64, f64, &Line)| *auto <= (best * 1.15).max(best + 5e-5);
    let near = rows.iter().filter(within).count();
    let logs: f64 = rows.iter().map(|(best, auto, _)| (best / auto).ln()).sum();
    let worst = rows
        .iter()
        .max_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let mut text = format!(
        "auto and the best {what}: not slower in {not_slower} of {count} rows, within 1.15x (or \
         0.05 ms) in {near}; {:.2}x faster in the geometric mean",
        (logs / count as f64).exp()
    );
    if let Some((best, auto, line)) = worst {
        text += &format!(
            "; at worst {:.2}x as long ({:.3} ms against {:.3}) on {} {} {} ranks",
            auto / best,
            auto * 1e3,
            best * 1e3,
            line.case,
            line.op,
            line.ranks
        );
    }
    text + "\n"
}
