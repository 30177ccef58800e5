//! [`Contents`]: the arrays of a container that become those of another one.
//!
//! Rank 0 looks what there is and makes the groups of the new container, with what is
//! kept with them; then array after array is made in it, each under its own name when it
//! is complete. So a run that was stopped leaves a container of whole arrays.

use std::collections::HashMap;

use outcore::{Array, Comm, Error, Result, create_groups, distinct, list};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::chunks::is_hdf5;
use crate::counted::counted;
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
    pub(crate) bytes: u64,
    /// Whether another run has made it.
    pub(crate) complete: bool,
}

impl Contents {
    /// Collective: finds what `input` holds, and begins the container `output`, or goes on
    /// with one.
    pub(crate) fn begin(comm: &Comm, input: &str, output: &str, resume: bool) -> Result<Self> {
        let found = match comm.rank() {
            0 => Self::find(input, output, resume).map(|contents| json!(contents).to_string()),
            _ => Ok(String::new()),
        };
        let mut text = comm.agree(found)?;
        comm.broadcast_string(0, &mut text)?;
        serde_json::from_str(&text).map_err(|error| Error::Invalid(error.to_string()))
    }

    fn find(input: &str, output: &str, resume: bool) -> Result<Self> {
        distinct(input, output)?;
        let mut contents = Self {
            input: input.into(),
            output: output.into(),
            members: Vec::new(),
            left_out: Vec::new(),
        };
        let (mut groups, mut made) = (Vec::new(), HashMap::new());
        let exists = resume
            && list(output)
                .map(|items| made.extend(by_path(items)))
                .is_ok();
        for item in list(input)? {
            let hidden = |name: &str| name.starts_with('.') || name.chars().any(char::is_control);
            if item.path.split('/').any(hidden) {
                let problem = "arrays and groups are not made under hidden names".into();
                contents.left_out.push((item.name, problem));
                continue;
            }
            if let Some(problem) = item.problem {
                contents.left_out.push((item.name, problem));
                continue;
            }
            let Some(array) = item.array else {
                groups.push((item.path, item.attributes));
                continue;
            };
            if item.path.is_empty() {
                return Err(Error::Invalid(format!(
                    "{input} is one array and no container; leave --all out"
                )));
            }
            let there = made.get(&item.path);
            if there.is_some_and(|shape| *shape != array.shape) {
                return Err(Error::Invalid(format!(
                    "{output} has another array {} than {input}, so it was made of something \
                     else; name another output",
                    item.path
                )));
            }
            let separator = if is_hdf5(output) { ":/" } else { "/" };
            let count = array.element_count().unwrap_or(u64::MAX);
            contents.members.push(Member {
                input: item.name,
                output: format!("{}{separator}{}", output.trim_end_matches('/'), item.path),
                bytes: count.saturating_mul(array.element_type.size()),
                complete: there.is_some(),
            });
        }
        if contents.members.is_empty() {
            return Err(Error::Invalid(match contents.left_out.first() {
                Some((name, problem)) => {
                    format!("{input} holds no array that can be opened: {name}: {problem}")
                }
                None => format!("{input} holds no array"),
            }));
        }
        if !exists {
            let kept = |(path, kept): &(String, Map<String, Value>)| (path.clone(), kept.clone());
            let groups: Vec<_> = groups.iter().map(kept).collect();
            create_groups(
                output,
                groups.iter().map(|(path, kept)| (&**path, kept.clone())),
            )?;
        }
        Ok(contents)
    }

    /// The bytes of all arrays.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.members.iter().map(|member| member.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// An error that has stopped the work at the member `at`, with what is left.
    pub(crate) fn left(&self, error: &Error, at: usize) -> Error {
        let complete = self.members[at..].iter().filter(|member| member.complete);
        Error::Invalid(format!(
            "{}; {} of {} arrays are complete in {}, and --resume goes on with the others",
            cause(error),
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

/// The shapes of arrays by their paths.
fn by_path(items: Vec<outcore::Item>) -> impl Iterator<Item = (String, Vec<u64>)> {
    let shape = |item: outcore::Item| Some((item.path, item.array?.shape));
    items.into_iter().filter_map(shape)
}
