//! [`Contents`]: the arrays of a container that become those of another one.
//!
//! Rank 0 looks what there is and makes the groups of the new container, with what is
//! kept with them; then array after array is made in it, each under its own name when it
//! is complete. So a run that was stopped leaves a container of whole arrays.

use std::collections::{HashMap, HashSet};

use outcore::{Array, ArrayDescriptor, Comm, Error, Filling, Result, list};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chunks::is_hdf5;
use crate::counted::counted;
use crate::output::is_netcdf4;
use crate::ranks::{cause, print, shown};
use crate::rearrange::describe;
use crate::work::{Ended, made_facts};

/// What is to be made.
#[derive(Serialize, Deserialize)]
pub(crate) struct Contents {
    input: String,
    output: String,
    pub(crate) members: Vec<Member>,
    /// What is no array that can be opened, and why.
    left_out: Vec<(String, String)>,
}

/// An array of the container.
#[derive(Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) input: String,
    pub(crate) output: String,
    pub(crate) axis_names: Option<Vec<String>>,
    pub(crate) bytes: u64,
    /// Whether another run has made it.
    pub(crate) complete: bool,
}

impl Contents {
    /// Collective: finds what `input` holds, and begins to fill the container `output`, or
    /// goes on with one. Rank 0 alone has the second.
    pub(crate) fn begin(
        comm: &Comm,
        (input, output): (&str, &str),
        options: &str,
        resume: bool,
    ) -> Result<(Self, Option<Filling>)> {
        let begun = match comm.rank() {
            0 => Self::find((input, output), options, resume).map(Some),
            _ => Ok(None),
        };
        let begun = comm.agree(begun)?;
        let mut text = begun
            .as_ref()
            .map_or(String::new(), |(contents, _)| json!(contents).to_string());
        comm.broadcast_string(0, &mut text)?;
        let contents = serde_json::from_str(&text);
        let contents = contents.map_err(|error| Error::Invalid(error.to_string()))?;
        Ok((contents, begun.map(|(_, filling)| filling)))
    }

    fn find((input, output): (&str, &str), options: &str, resume: bool) -> Result<(Self, Filling)> {
        let mut contents = Self {
            input: input.into(),
            output: output.into(),
            members: Vec::new(),
            left_out: Vec::new(),
        };
        let (mut groups, mut arrays) = (Vec::new(), Vec::new());
        for item in list(input)? {
            let mut names = item.path.split('/');
            let problem = if item.path.contains(char::is_control) {
                Some("names with control characters are not made".into())
            } else if names.any(|name| name.starts_with('.')) {
                Some("nothing is made under hidden names".into())
            } else {
                let own = format!("{}: ", item.name);
                let without = |problem: String| problem.strip_prefix(&own).map(str::to_owned);
                item.problem
                    .map(|problem| without(problem.clone()).unwrap_or(problem))
            };
            match (problem, item.array) {
                (Some(problem), _) => contents.left_out.push((item.name, problem)),
                (None, None) => groups.push((item.path, item.attributes)),
                (None, Some(_)) if item.path.is_empty() => {
                    return Err(Error::Invalid(format!(
                        "{input} is one array and no container; leave --all out"
                    )));
                }
                (None, Some(array)) => arrays.push((item.name, item.path, array)),
            }
        }
        if arrays.is_empty() {
            return Err(Error::Invalid(match contents.left_out.first() {
                Some((name, problem)) => {
                    format!("{input} holds no array that can be opened: {name}: {problem}")
                }
                None => format!("{input} holds no array"),
            }));
        }
        let kept = groups
            .iter()
            .map(|(path, kept): &(String, _)| (&**path, Clone::clone(kept)));
        let filling = Filling::begin((input, output), options, kept, resume)?;
        let made: HashMap<_, _> = match filling.resumed() {
            true => shapes(list(output)?).collect(),
            false => HashMap::new(),
        };
        // The others refer to the coordinates.
        arrays.sort_by_key(|(_, path, array)| !is_coordinates(path, array));
        let no_coordinates = arrays.iter().filter(|(_, path, array)| {
            // Only there, what has the name of an axis is the axis.
            is_netcdf4(output) && !is_coordinates(path, array)
        });
        let no_axes: HashSet<String> = no_coordinates.map(|(_, path, _)| path.clone()).collect();
        let separator = if is_hdf5(output) { ":/" } else { "/" };
        for (name, path, array) in arrays {
            let there = made.get(&path);
            if there.is_some_and(|shape| *shape != array.shape) {
                return Err(Error::Invalid(format!(
                    "{output} has another array {path} than {input}; remove that"
                )));
            }
            let count = array.element_count().unwrap_or(u64::MAX);
            contents.members.push(Member {
                axis_names: axis_names(&path, &array, &no_axes),
                input: name,
                output: format!("{}{separator}{path}", output.trim_end_matches('/')),
                bytes: count.saturating_mul(array.element_type.size()),
                complete: there.is_some(),
            });
        }
        Ok((contents, filling))
    }

    /// The bytes of all arrays.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.members.iter().map(|member| member.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// An error that has stopped the work at the member `at`, with what is left.
    pub(crate) fn left(&self, error: &Error, at: usize) -> Error {
        let complete = self.members[at..].iter().filter(|member| member.complete);
        let (cause, hint) = (cause(error), "--resume");
        let goes_on = match cause.contains(hint) {
            true => String::new(),
            false => format!("; the same command with {hint} goes on"),
        };
        Error::Invalid(format!(
            "{cause}; {} of {} arrays are complete in {}{goes_on}",
            at + complete.count(),
            self.members.len(),
            self.output
        ))
    }

    /// Says what was made.
    pub(crate) fn tell(&self, ended: &Ended, as_json: bool, verified: bool) -> Result<()> {
        let new = self.members.iter().filter(|member| !member.complete);
        let moved: u64 = new.map(|member| member.bytes).sum();
        if as_json {
            let facts = |member: &Member| -> Result<Value> {
                let facts = made_facts(&Array::open(&member.output)?).into_iter();
                let facts = facts.map(|(name, value)| (name.to_owned(), value));
                let input = ("input".to_owned(), json!(member.input));
                Ok(Value::Object([input].into_iter().chain(facts).collect()))
            };
            let left_out = self.left_out.iter();
            let left_out =
                left_out.map(|(name, problem)| json!({ "array": name, "problem": problem }));
            let arrays: Result<Vec<Value>> = self.members.iter().map(facts).collect();
            return print(&ended.json([
                ("input", json!(self.input)),
                ("output", json!(self.output)),
                ("arrays", json!(arrays?)),
                ("left_out", left_out.collect()),
                ("gb_per_s", json!(ended.rate(moved as f64))),
                ("verified", json!(verified)),
            ]));
        }
        let mut text = String::new();
        for member in &self.members {
            let made = shown(&describe(&Array::open(&member.output)?));
            let before = if member.complete { "; made before" } else { "" };
            text.push_str(&format!("{made}{before}\n"));
        }
        for (name, problem) in &self.left_out {
            text.push_str(&format!("left out: {}: {}\n", shown(name), shown(problem)));
        }
        let arrays = counted(self.members.len() as u64, "array");
        let verified = if verified { "; verified" } else { "" };
        text.push_str(&format!(
            "{arrays} in {}{verified}; {}\n",
            shown(&self.output),
            ended.words(moved)
        ));
        print(&text)
    }
}

/// Whether an array has one axis, of its own name.
fn is_coordinates(path: &str, array: &ArrayDescriptor) -> bool {
    let own = path.rsplit('/').next().unwrap_or_default();
    array.axis_names.as_deref() == Some(&[own.to_owned()])
}

/// The names of an array's axes: those that an array beside it has, which is `no_axes`, get
/// the extent behind them.
fn axis_names(
    path: &str,
    array: &ArrayDescriptor,
    no_axes: &HashSet<String>,
) -> Option<Vec<String>> {
    let folder = &path[..path.rfind('/').map_or(0, |slash| slash + 1)];
    let named = array.axis_names.as_ref()?.iter().zip(&array.shape);
    let name = |(name, extent): (&String, &u64)| match no_axes.contains(&format!("{folder}{name}"))
    {
        true => format!("{name}_{extent}"),
        false => name.clone(),
    };
    Some(named.map(name).collect())
}

/// The shapes of arrays by their paths.
fn shapes(items: Vec<outcore::Item>) -> impl Iterator<Item = (String, Vec<u64>)> {
    let shape = |item: outcore::Item| Some((item.path, item.array?.shape));
    items.into_iter().filter_map(shape)
}
