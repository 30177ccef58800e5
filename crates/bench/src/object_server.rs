//! [`ObjectServer`]: a small server of objects on the loopback interface, which
//! answers late or wrongly as it is told to: for measuring what a network costs,
//! and for tests of what programs do when a server fails.
//!
//! It speaks as much of HTTP and of the protocol of S3 as reading and writing
//! objects takes: GET with ranges, HEAD, PUT, DELETE, lists, deletions of several
//! objects, uploads in parts. It looks at no signature. Objects are in memory, by
//! their path `bucket/key`; each connection has a thread, which sleeps for the
//! latency before it answers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How a request goes wrong.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// It is answered with this status, and a code as S3 gives one.
    Status(u16, &'static str),
    /// Of the bytes that are promised, half come.
    CutOff,
    /// The connection ends without an answer.
    Reset,
    /// All of an object comes, whatever range was asked for.
    NoRanges,
    /// The object comes as it is, whatever version was asked for.
    NoVersions,
}

/// A server, until the value is dropped; connections that are open then are
/// served to their end.
#[derive(Debug)]
pub struct ObjectServer {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    latency: Duration,
    requests: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// With a number that changes when they do.
    objects: BTreeMap<String, (u64, Vec<u8>)>,
    writes: u64,
    /// Parts of uploads: by upload and number.
    parts: BTreeMap<(String, u64), Vec<u8>>,
    /// Requests whose path has this in it fail so many times.
    faults: Vec<(String, Fault, usize)>,
    /// Whether it is not said which version of an object comes.
    untagged: bool,
    closed: bool,
}

/// One request.
struct Request {
    method: String,
    /// Without the first `/`, decoded.
    path: String,
    query: BTreeMap<String, String>,
    range: Option<(u64, u64)>,
    if_match: Option<String>,
    /// It is not to be there yet.
    if_none: bool,
    body: Vec<u8>,
}

/// The answer to one request.
struct Answer {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl ObjectServer {
    /// Starts a server that answers every request after `latency`.
    pub fn start(latency: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            latency,
            requests: AtomicU64::new(0),
            state: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        thread::Builder::new().spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.state().closed {
                    return;
                }
                let serving = Arc::clone(&serving);
                // One that cannot be served is closed, as by a busy server.
                let _ = thread::Builder::new().spawn(move || serving.serve(&stream));
            }
        })?;
        Ok(Self { port, shared })
    }

    /// Its address, as in `http://127.0.0.1:8000`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Puts an object at the path `bucket/key`.
    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        self.shared.state().put(path, bytes);
    }

    /// The object at a path.
    pub fn get(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.shared.state();
        state.objects.get(path).map(|(_, object)| object.clone())
    }

    /// Removes an object; `path` is `bucket/key`.
    pub fn remove(&self, path: &str) {
        self.shared.state().objects.remove(path);
    }

    /// The paths of all objects.
    pub fn paths(&self) -> Vec<String> {
        self.shared.state().objects.keys().cloned().collect()
    }

    /// Lets the next `times` requests whose path has `part` in it go wrong.
    pub fn fail(&self, part: &str, fault: Fault, times: usize) {
        self.shared.state().faults.push((part.into(), fault, times));
    }

    /// Lets nothing go wrong any more.
    pub fn forgive(&self) {
        self.shared.state().faults.clear();
    }

    /// From now on does not say which version of an object comes.
    pub fn tag_nothing(&self) {
        self.shared.state().untagged = true;
    }

    /// How many requests have come.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        // Wakes who waits for connections.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the requests of one connection.
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut input = BufReader::new(stream);
        while let Some(mut request) = Request::read(&mut input, stream)? {
            self.requests.fetch_add(1, Ordering::Relaxed);
            thread::sleep(self.latency);
            let fault = self.state().fault(&request.path);
            match fault {
                Some(Fault::NoRanges) => request.range = None,
                Some(Fault::NoVersions) => request.if_match = None,
                _ => {}
            }
            let mut answer = match fault {
                Some(Fault::Reset) => return stream.shutdown(Shutdown::Both),
                Some(Fault::Status(status, code)) => Answer::problem(status, code),
                _ => self.state().answer(&request),
            };
            let length = answer.body.len();
            let mut bytes = format!(
                "HTTP/1.1 {} X\r\nContent-Length: {length}\r\n{}\r\n",
                answer.status, answer.headers
            )
            .into_bytes();
            if request.method != "HEAD" {
                bytes.append(&mut answer.body);
            }
            if let Some(Fault::CutOff) = fault {
                bytes.truncate(bytes.len().saturating_sub(length / 2));
                (&*stream).write_all(&bytes)?;
                return stream.shutdown(Shutdown::Both);
            }
            (&*stream).write_all(&bytes)?;
        }
        Ok(())
    }
}

impl Request {
    /// The next request; `None` at the end of the connection.
    fn read(input: &mut impl BufRead, mut output: &TcpStream) -> io::Result<Option<Self>> {
        let mut first = String::new();
        input.read_line(&mut first)?;
        let mut words = first.split_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Ok(None);
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let mut request = Self {
            method: method.into(),
            path: decode(path.trim_start_matches('/')),
            query: query.map(|(k, v)| (decode(k), decode(v))).collect(),
            range: None,
            if_match: None,
            if_none: false,
            body: Vec::new(),
        };
        let (mut length, mut waits) = (0, false);
        loop {
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap_or(0),
                "expect" => waits = true,
                "if-match" => request.if_match = Some(value.into()),
                "if-none-match" => request.if_none = value == "*",
                "range" => {
                    let range = value.strip_prefix("bytes=").and_then(|r| r.split_once('-'));
                    request.range = range
                        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().unwrap_or(u64::MAX))));
                }
                _ => {}
            }
        }
        if waits {
            output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        input.take(length).read_to_end(&mut request.body)?;
        Ok(Some(request))
    }

    fn asks(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }
}

impl Answer {
    fn new(status: u16, headers: String, body: Vec<u8>) -> Self {
        Self {
            status,
            headers,
            body,
        }
    }

    fn xml(text: String) -> Self {
        let headers = "Content-Type: application/xml\r\n".into();
        Self::new(200, headers, text.into_bytes())
    }

    fn problem(status: u16, code: &str) -> Self {
        let body = format!("<Error><Code>{code}</Code><Message>as told</Message></Error>");
        let headers = "Content-Type: application/xml\r\n".into();
        Self::new(status, headers, body.into_bytes())
    }
}

impl State {
    fn fault(&mut self, path: &str) -> Option<Fault> {
        let found = self
            .faults
            .iter_mut()
            .find(|(part, _, times)| *times > 0 && path.contains(&**part))?;
        found.2 -= 1;
        Some(found.1)
    }

    fn put(&mut self, path: &str, bytes: Vec<u8>) -> u64 {
        self.writes += 1;
        self.objects.insert(path.into(), (self.writes, bytes));
        self.writes
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let path = &request.path;
        match request.method.as_str() {
            "GET" if request.asks("list-type").is_some() => self.list(request),
            "GET" | "HEAD" => self.read(request),
            "PUT" => match (request.asks("uploadId"), request.asks("partNumber")) {
                (Some(upload), Some(number)) => {
                    let number = number.parse().unwrap_or(0);
                    let part = (upload.to_owned(), number);
                    self.parts.insert(part, request.body.clone());
                    Answer::new(200, format!("ETag: \"{number}\"\r\n"), Vec::new())
                }
                _ if !self.is_wanted(request) => Answer::problem(412, "PreconditionFailed"),
                _ => {
                    let number = self.put(path, request.body.clone());
                    Answer::new(200, format!("ETag: \"{number}\"\r\n"), Vec::new())
                }
            },
            "POST" if request.asks("delete").is_some() => {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                let mut deleted = String::new();
                for key in body.split("<Key>").skip(1) {
                    let key = key.split("</Key>").next().unwrap_or_default();
                    let bucket = path.trim_end_matches('/');
                    self.objects.remove(&format!("{bucket}/{}", unescape(key)));
                    // Whether it was there or not.
                    deleted.push_str(&format!("<Deleted><Key>{key}</Key></Deleted>"));
                }
                Answer::xml(format!("<DeleteResult>{deleted}</DeleteResult>"))
            }
            "POST" if request.asks("uploads").is_some() => Answer::xml(format!(
                "<InitiateMultipartUploadResult><UploadId>{path}</UploadId>\
                 </InitiateMultipartUploadResult>"
            )),
            "POST" => {
                let upload = request.asks("uploadId").unwrap_or_default().to_owned();
                let (from, to) = ((upload.clone(), 0), (upload, u64::MAX));
                let parts = self.parts.range(from.clone()..to.clone());
                let whole: Vec<u8> = parts.flat_map(|(_, part)| part.clone()).collect();
                self.parts.retain(|part, _| *part < from || *part > to);
                self.put(path, whole);
                Answer::xml(
                    "<CompleteMultipartUploadResult><ETag>\"whole\"</ETag>\
                     </CompleteMultipartUploadResult>"
                        .into(),
                )
            }
            "DELETE" => {
                match request.asks("uploadId") {
                    Some(upload) => self.parts.retain(|(of, _), _| of != upload),
                    None => drop(self.objects.remove(path)),
                }
                Answer::new(204, String::new(), Vec::new())
            }
            _ => Answer::problem(405, "MethodNotAllowed"),
        }
    }

    /// Whether the object is the one that is meant, where the request says which.
    fn is_wanted(&self, request: &Request) -> bool {
        let there = self.objects.get(&request.path);
        match (&request.if_match, request.if_none) {
            (_, true) => there.is_none(),
            (Some(tag), _) => there.is_some_and(|(number, _)| *tag == format!("\"{number}\"")),
            (None, _) => true,
        }
    }

    fn read(&self, request: &Request) -> Answer {
        let Some((number, object)) = self.objects.get(&request.path) else {
            return Answer::problem(404, "NoSuchKey");
        };
        if !self.is_wanted(request) {
            return Answer::problem(412, "PreconditionFailed");
        }
        let (length, tag) = (object.len() as u64, format!("\"{number}\""));
        let mut headers = String::from(
            "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nAccept-Ranges: bytes\r\n",
        );
        if !self.untagged {
            headers += &format!("ETag: {tag}\r\n");
        }
        match request.range {
            None => Answer::new(200, headers, object.clone()),
            Some((first, _)) if first >= length => Answer::problem(416, "InvalidRange"),
            Some((first, last)) => {
                let last = last.min(length - 1).max(first);
                headers += &format!("Content-Range: bytes {first}-{last}/{length}\r\n");
                let bytes = object[first as usize..=last as usize].to_vec();
                Answer::new(206, headers, bytes)
            }
        }
    }

    /// Everything at once; nobody asks for more than fits.
    fn list(&self, request: &Request) -> Answer {
        let bucket = format!("{}/", request.path.trim_end_matches('/'));
        let prefix = request.asks("prefix").unwrap_or_default();
        let flat = request.asks("delimiter").is_none();
        let (mut objects, mut folders) = (String::new(), BTreeSet::new());
        for (path, (_, object)) in &self.objects {
            let Some(key) = path.strip_prefix(&bucket) else {
                continue;
            };
            let Some(rest) = key.strip_prefix(prefix) else {
                continue;
            };
            match rest.split_once('/') {
                Some((folder, _)) if !flat => {
                    folders.insert(format!("{prefix}{folder}/"));
                }
                _ => {
                    objects += &format!(
                        "<Contents><Key>{}</Key><Size>{}</Size>\
                         <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",
                        escape(key),
                        object.len()
                    );
                }
            }
        }
        let folders = folders.iter().map(|folder| {
            let folder = escape(folder);
            format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>")
        });
        let folders: String = folders.collect();
        Answer::xml(format!(
            "<ListBucketResult>{objects}{folders}</ListBucketResult>"
        ))
    }
}

/// Text whose `%xx` are the bytes they stand for.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let pair = after
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        let byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        (rest, _) = match (first, byte) {
            (b'%', Some(byte)) => (&after[2..], bytes.push(byte)),
            _ => (after, bytes.push(*first)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

fn unescape(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}
