//! Tables as JSON: a list with an object for each row.

use serde_json::{Map, Number, Value};

/// The rows of comma-separated values without quotes, under the names of their header;
/// what reads as a number is one.
pub(crate) fn json(csv: &str) -> String {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        let fields = names.iter().zip(line.split(','));
        let fields = fields.map(|(name, field)| ((*name).to_owned(), value(field)));
        Value::Object(fields.collect::<Map<_, _>>())
    };
    let rows: Vec<Value> = lines.map(row).collect();
    format!("{}\n", Value::Array(rows))
}

fn value(field: &str) -> Value {
    if let Ok(whole) = field.parse::<i64>() {
        return whole.into();
    }
    let number = field.parse().ok().and_then(Number::from_f64);
    number.map_or_else(|| field.into(), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_objects() {
        let found = json("system,ranks,best_s,ok\npread,2,0.5,ok\nours,1,inf,WRONG\n");
        let expected = "[{\"system\":\"pread\",\"ranks\":2,\"best_s\":0.5,\"ok\":\"ok\"},\
                        {\"system\":\"ours\",\"ranks\":1,\"best_s\":\"inf\",\"ok\":\"WRONG\"}]\n";
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(read(&found), read(expected));
        assert_eq!(json("a,b\n"), "[]\n");
    }
}
