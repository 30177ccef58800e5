//! Arrays in object stores: a server of `moto` that speaks S3, and one that fails.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use outcore_bench::{Fault, ObjectServer};

use crate::html::text_of;
use crate::program::{Place, complaint};

const SECRET: &str = "swordfish";

/// A directory in which `outcore` knows a server.
struct Client {
    place: Place,
    variables: Vec<(&'static str, String)>,
}

impl Client {
    /// Asks the server at `endpoint` for S3, Google and Azure alike.
    fn of(endpoint: &str) -> Self {
        let variables = [
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
            ("AWS_MAX_ATTEMPTS", "4"),
            ("GOOGLE_BASE_URL", endpoint),
            ("GOOGLE_ALLOW_HTTP", "true"),
            ("GOOGLE_SKIP_SIGNATURE", "true"),
            ("AZURE_STORAGE_ENDPOINT", endpoint),
            ("AZURE_ALLOW_HTTP", "true"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_SKIP_SIGNATURE", "true"),
        ];
        let own = variables.map(|(name, value)| (name, value.to_owned()));
        Self {
            place: Place::new(),
            variables: own.to_vec(),
        }
    }

    /// The same with other variables; one that is empty is not set.
    fn with(&self, variables: &[(&'static str, &str)]) -> Self {
        let mut own = self.variables.clone();
        for (name, value) in variables {
            own.retain(|(known, _)| known != name);
            own.push((name, (*value).to_owned()));
        }
        Self {
            place: self.place.inside("."),
            variables: own,
        }
    }

    /// A command line with `|` between its words, not started yet.
    fn command(&self, line: &str) -> Command {
        let mut command = self.place.command(line.split('|').map(str::trim));
        for (name, value) in &self.variables {
            match value.is_empty() {
                true => command.env_remove(name),
                false => command.env(name, value),
            };
        }
        // Its unfinished files are looked for.
        command.env("TMPDIR", self.place.inside("temporary").root());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().expect("outcore starts")
    }

    /// One that must succeed and say nothing on standard error.
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{line}: {said}");
        assert_eq!(self.left(), 0, "{line} left temporary files");
        String::from_utf8(output.stdout).expect("text")
    }

    /// One that must fail with one sentence that has all of `words` in it.
    fn fails(&self, line: &str, words: &[&str]) {
        let output = self.run(line);
        let said = complaint(&output, 1, line);
        for word in words {
            assert!(said.contains(word), "{line}: {said} does not say {word}");
        }
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(!said.contains(SECRET), "{line}: {said}");
        assert!(!shown.contains(SECRET), "{line}: {shown}");
        assert_eq!(self.left(), 0, "{line} left temporary files");
    }

    /// How many files there are in the directory for temporary ones.
    fn left(&self) -> usize {
        files(self.place.inside("temporary").root(), "").len()
    }
}

/// All files under a directory, with their paths in it.
fn files(directory: &Path, under: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let name = format!("{under}/{name}");
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path(), &name)),
            false => found.push((name, std::fs::read(entry.path()).unwrap())),
        }
    }
    found.sort();
    found
}

/// A server of moto, which ends with the test.
struct Moto(Child, u16);

impl Moto {
    fn start() -> Self {
        let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let process = Command::new(&python)
            .args(["-m", "moto.server", "-H", "127.0.0.1"])
            .args(["-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python starts");
        let mut server = Self(process, port);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.0.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "{python} has no moto; install 'moto[server]', or set OUTCORE_TEST_PYTHON"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = "PUT /bucket HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\
                       Connection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        server
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.1)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is done on a server of S3 is what is done in files.
#[test]
fn s3_is_as_good_as_files() {
    let server = Moto::start();
    let client = Client::of(&server.endpoint());
    round_trips(&client, "s3://bucket");
    client.fails(
        "read|s3://no-such/x.zarr|0",
        &["s3://no-such/x.zarr", "no such bucket"],
    );
    client.fails(
        "read|s3://no-such/x.npy|0",
        &["s3://no-such/x.npy", "no such bucket"],
    );
    client.fails(
        "info|s3://bucket/nothing.npy",
        &["s3://bucket/nothing.npy", "404"],
    );
}

/// The same objects from a server of the test's own: byte by byte those of files.
#[test]
fn objects_are_those_of_a_directory() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    round_trips(&client, "s3://bucket");
    for (path, bytes) in files(&client.place.path("same.zarr"), "bucket/same.zarr") {
        assert_eq!(server.get(&path), Some(bytes), "{path}");
    }
    let unfinished = |path: &String| path.contains(".unfinished");
    assert!(!server.paths().iter().any(unfinished));
    assert_eq!(
        server.get("bucket/x.npy").unwrap(),
        client.place.bytes("x.npy")
    );
}

/// Makes arrays at an address and in files, and compares what is read of them.
fn round_trips(client: &Client, at: &str) {
    let make = "--shape|60x70|--type|f32|--chunks|16x32|--codec|zstd:3|--fill|index|--ranks|3";
    for name in ["same.zarr/a/t", "zarr2:old.zarr", "zarr2:two"] {
        let (version, path) = name.split_once(':').map_or(("", name), |(v, p)| (v, p));
        let colon = if version.is_empty() { "" } else { ":" };
        client.ok(&format!("create|{version}{colon}{at}/{path}|{make}"));
        client.ok(&format!("create|{name}|{make}"));
        for section in ["::7, ::9", "13, :", "59, 69"] {
            let far = client.ok(&format!("read|{at}/{path}|{section}"));
            assert_eq!(far, client.ok(&format!("read|{path}|{section}")));
        }
    }
    let listed = client.ok(&format!("ls|{at}/same.zarr"));
    assert!(listed.contains("60x70 f32"), "{listed}");
    for command in ["verify", "repair-report"] {
        for group in ["same.zarr", "same.zarr/", "same.zarr/a"] {
            let told = client.ok(&format!("{command}|{at}/{group}"));
            assert!(told.contains(&format!("{at}/same.zarr/a/t")), "{told}");
        }
    }
    client.ok(&format!("info|{at}/same.zarr/a/t|--json"));
    // A part of a chunk, by ranks that share chunks.
    for name in [&format!("{at}/same.zarr/a/t"), "same.zarr/a/t"] {
        client.ok(&format!("write|{name}|3:50, 5:60|--fill|7.5|--ranks|2"));
    }
    // Objects that are arrays by themselves.
    client.ok("create|x.npy|--shape|300x200|--type|f64|--fill|random");
    client.ok("create|big.npy|--shape|1500x1000|--type|f64|--fill|index");
    client.ok("convert|x.npy|x.h5:/g/data|--layout|tiled:64x64");
    let raw = "?shape=300x200&type=f64&layout=column";
    for (from, to) in [
        ("x.npy", "x.npy"),
        ("x.npy", "x.h5:/g/data"),
        ("x.npy", "x.zarr"),
        ("big.npy", "big.npy"),
    ] {
        client.ok(&format!(
            "convert|{from}|{at}/{to}|--ranks|2|--memory|16MiB"
        ));
        client.ok(&format!("convert|{at}/{to}|back.npy|--force"));
        assert_eq!(client.place.npy("back.npy"), client.place.npy(from), "{to}");
    }
    client.ok(&format!("relayout|x.npy|raw:{at}/x.bin{raw}"));
    client.ok(&format!(
        "relayout|raw:{at}/x.bin{raw}|back.npy|--layout|row|--force"
    ));
    assert_eq!(client.place.npy("back.npy"), client.place.npy("x.npy"));
    for section in ["::29, ::13", "299, 199", "5, :4", "[1, 7, 200], 3"] {
        let expected = client.ok(&format!("read|x.npy|{section}"));
        for name in ["x.npy", "x.h5:/g/data", "x.zarr"] {
            let found = client.ok(&format!("read|{at}/{name}|{section}"));
            assert_eq!(found, expected, "{name} [{section}]");
        }
        let found = client.ok(&format!("read|raw:{at}/x.bin{raw}|{section}"));
        assert_eq!(found, expected, "raw [{section}]");
    }
    // Applications that go to and fro between arrays.
    client.ok("create|plate.npy|--shape|40x50|--type|f64|--fill|random");
    for (line, name) in [
        ("laplace|plate.npy|%|--sweeps|5|--fuse|2", "hot.zarr"),
        (
            "laplace|plate.npy|%|--sweeps|4|--fuse|2|--ranks|2",
            "warm.zarr",
        ),
        (
            "laplace|plate.npy|%|--sweeps|90|--fuse|1|--tolerance|0.1",
            "even.zarr",
        ),
        ("fft|plate.npy|%|--real|--memory|64KiB", "real.zarr"),
        ("adi|plate.npy|%|--steps|2", "heat.zarr"),
    ] {
        client.ok(&line.replace('%', &format!("{at}/{name}")));
        client.ok(&line.replace('%', "here.npy"));
        client.ok(&format!("convert|{at}/{name}|back.npy|--force"));
        assert_eq!(
            client.place.npy("back.npy"),
            client.place.npy("here.npy"),
            "{line}"
        );
        std::fs::remove_file(client.place.path("here.npy")).unwrap();
    }
    // What is there already, and what objects cannot do.
    let own = format!("create|{at}/x.oc|--shape|4|--type|f32");
    client.fails(&own, &["x.oc", "file system"]);
    let again = format!("convert|x.npy|{at}/x.npy");
    client.fails(&again, &["exists already", "--force"]);
    client.ok(&format!("{again}|--force"));
    let zarr = format!("convert|x.npy|{at}/x.zarr|--force");
    client.fails(&zarr, &["x.zarr", "cannot be replaced in one step"]);
    let write = format!("write|{at}/x.npy|0, 0|--fill|1");
    client.fails(&write, &["x.npy", "replaced as a whole"]);
    client.fails(&format!("create|{at}|--shape|4|--type|f32"), &["bucket"]);
}

/// Pieces are made of whole chunks: none is fetched or put twice.
#[test]
fn each_chunk_is_moved_once() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    let make = "--shape|40x400x400|--type|f32|--chunks|20x100x200|--codec|zstd:1";
    client.ok("create|t.npy|--shape|40x400x400|--type|f32|--fill|index");
    // As many requests as with room for all of it.
    let [all, few] = ["512MiB", "12MiB"].map(|memory| {
        let array = format!("s3://bucket/{memory}.zarr");
        let lines = [
            &format!("create|{array}|{make}|--fill|index"),
            &format!("read|{array}|-o|back.npy|--force"),
            &format!("write|{array}|--from|t.npy"),
            &format!("view|{array}|7, :, :|-o|t.png|--mean|--force"),
        ];
        let requests = lines.map(|line| {
            let before = server.requests();
            client.ok(&format!("{line}|--memory|{memory}"));
            server.requests() - before
        });
        client.ok(&format!("read|{array}|-o|back.npy|--force"));
        assert!(client.place.npy("back.npy") == client.place.npy("t.npy"));
        requests
    });
    assert_eq!(few, all);
}

/// Groups at an address come one by one; a run that goes on makes those that are missing.
#[test]
fn groups_of_containers_are_made_again() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    client.ok("create|in.zarr/g/a|--shape|100|--type|i32|--fill|index");
    let text = r#"{"zarr_format": 3, "node_type": "group", "attributes": {"title": "a run"}}"#;
    std::fs::write(client.place.path("in.zarr/g/zarr.json"), text).unwrap();
    let line = "convert|in.zarr|s3://bucket/out.zarr|--all";
    let group = "bucket/out.zarr/g/zarr.json";
    server.fail(group, Fault::Status(403, "AccessDenied"), 100);
    let fails = |word: &str| {
        let said = complaint(&client.run(line), 1, line);
        assert!(said.contains(word), "{said}");
    };
    fails("g/zarr.json");
    server.forgive();
    assert!(server.get("bucket/out.zarr/zarr.json").is_some() && server.get(group).is_none());
    fails("--resume");
    client.ok(&format!("{line}|--resume"));
    let found = String::from_utf8(server.get(group).unwrap()).unwrap();
    assert!(found.contains("a run"), "{found}");
    client.ok("diff|in.zarr/g/a|s3://bucket/out.zarr/g/a");
}

/// Web servers, the other protocols, and files with their address.
#[test]
fn other_addresses() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    client.ok("create|x.npy|--shape|100x50|--type|i32|--fill|index");
    client.ok("create|t.zarr|--shape|100x50|--type|i32|--chunks|30x30|--fill|index");
    client.ok("convert|x.npy|x.h5:/data");
    server.put("bucket/with space.npy", client.place.bytes("x.npy"));
    server.put("bucket/x.h5", client.place.bytes("x.h5"));
    for (path, bytes) in files(&client.place.path("t.zarr"), "bucket/t.zarr") {
        server.put(&path, bytes);
    }
    let expected = client.ok("read|x.npy|::33, ::24");
    let (web, here) = (server.endpoint(), client.place.root().display().to_string());
    for name in [
        &format!("{web}/bucket/with%20space.npy"),
        &format!("{web}/bucket/x.h5"),
        &format!("{web}/bucket/x.h5:/data"),
        &format!("{web}/bucket/t.zarr"),
        "gs://bucket/with space.npy",
        "gs://bucket/t.zarr",
        "az://bucket/x.h5:/data",
        "az://bucket/t.zarr",
        "s3://bucket/with space.npy",
        "S3://bucket/with space.npy",
        &format!("{}/bucket/x.h5:/data", web.replace("http", "HTTP")),
        "raw:Gs://bucket/with space.npy?shape=100x50&type=i32&offset=128",
        "AZ://bucket/t.zarr",
        &format!("file://{here}/x.npy"),
        &format!("FILE://{here}/x.npy"),
        &format!("file://{here}/x.h5:/data"),
    ] {
        assert_eq!(
            client.ok(&format!("read|{name}|::33, ::24")),
            expected,
            "{name}"
        );
    }
    client.ok(&format!("convert|x.npy|file://{here}/y.zarr"));
    assert_eq!(client.ok("read|y.zarr|::33, ::24"), expected);
    client.fails(&format!("read|{web}/bucket/no.npy|0"), &["no.npy", "404"]);
    client.fails(&format!("convert|x.npy|{web}/bucket/y.npy"), &["only read"]);
    client.fails(&format!("ls|{web}/bucket"), &["404"]);
    client.fails("read|https://me:swordfish@host/x.npy|0", &["environment"]);
    client.fails("read|file://x.npy|0", &["file:///"]);
}

/// What goes wrong for a while is tried again; what stays wrong is said once.
#[test]
fn failing_servers() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    client.ok("create|x.npy|--shape|100x50|--type|i32|--fill|index");
    client.ok("convert|x.npy|s3://bucket/x.npy");
    client.ok("convert|x.npy|s3://bucket/x.zarr|--chunks|30x30");
    let expected = client.ok("read|x.npy|::33, ::24");
    for fault in [
        Fault::Status(500, "InternalError"),
        Fault::Status(503, "SlowDown"),
        Fault::CutOff,
        Fault::Reset,
    ] {
        for name in ["x.npy", "x.zarr"] {
            server.fail(name, fault, 2);
            let read = format!("read|s3://bucket/{name}|::33, ::24");
            assert_eq!(client.ok(&read), expected, "{fault:?}");
        }
    }
    // What is wrong with a server is not what is wrong with chunks.
    server.fail("x.zarr/c", Fault::Status(503, "SlowDown"), 100_000);
    let before = server.requests();
    let output = client.run("verify|s3://bucket/x.zarr");
    server.forgive();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(
        shown.contains("x.zarr") && shown.contains("try later"),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(server.requests() - before < 100, "it went on");
    let told = client.ok("verify|s3://bucket/x.zarr");
    assert!(
        told.contains("8 chunks were decoded without error"),
        "{told}"
    );
    // Refusals are not repeated.
    for (status, code, word) in [
        (403, "InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"),
        (401, "Unauthorized", "AWS_ACCESS_KEY_ID"),
        (404, "NoSuchBucket", "s3://bucket/x"),
    ] {
        for name in ["x.npy", "x.zarr", "x.zarr/c/0/0"] {
            let before = server.requests();
            server.fail(name, Fault::Status(status, code), 3);
            let opened = name.trim_end_matches("/c/0/0");
            client.fails(
                &format!("read|s3://bucket/{opened}|0"),
                &[word, "s3://bucket/x"],
            );
            server.forgive();
            assert!(server.requests() - before < 9, "{name} {status}");
        }
    }
    server.fail("x.npy", Fault::NoRanges, 1000);
    let web = format!("{}/bucket/x.npy", server.endpoint());
    client.fails(&format!("read|{web}|0"), &[&web, "a range of bytes"]);
    server.forgive();
    // A chunk that is too short.
    let chunk = "bucket/plain.zarr/c/0/0";
    client.ok("convert|x.npy|s3://bucket/plain.zarr|--chunks|30x30|--codec|none");
    server.put(chunk, server.get(chunk).unwrap()[..999].to_vec());
    let short = &["s3://bucket/plain.zarr/c/0/0", "ends at offset 999"];
    client.fails("read|s3://bucket/plain.zarr|29, :", short);
    // A server that stays ill.
    server.fail("x.npy", Fault::Status(503, "SlowDown"), 1000);
    client.fails(
        "read|s3://bucket/x.npy|0",
        &["s3://bucket/x.npy", "503", "try later"],
    );
    server.forgive();
    // Nobody answers at all.
    let mut nowhere = Client::of("http://127.0.0.1:9");
    nowhere.variables.push(("AWS_MAX_ATTEMPTS", "1".into()));
    nowhere.fails(
        "read|s3://bucket/x.npy|0",
        &["s3://bucket/x.npy", "AWS_ENDPOINT_URL"],
    );
    let mut plain = Client::of(&server.endpoint());
    plain
        .variables
        .retain(|(name, _)| *name != "AWS_ALLOW_HTTP");
    plain.fails(
        "read|s3://bucket/x.npy|0",
        &["s3://bucket/x.npy", "AWS_ALLOW_HTTP"],
    );
}

/// What a server has refused is continued when it does not any more; what fails here leaves
/// nothing.
#[test]
fn failed_and_continued() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    client.ok("create|x.npy|--shape|1000x800|--type|f32|--fill|index");
    let passes = "--chunks|50x50|--codec|none|--layout|column|--memory|128KiB";
    for (output, refused, kept) in [
        ("y.zarr|--chunks|300x300", "y.zarr/c/2/", "journal"),
        (&format!("z.zarr|{passes}"), "z.zarr/c/", ".pass"),
        // Replaced, so that nobody asks before it is complete.
        ("y.npy|--force", "y.npy", "y.npy"),
    ] {
        server.fail(refused, Fault::Status(403, "AccessDenied"), 100_000);
        let convert = format!("convert|x.npy|s3://bucket/{output}");
        let said = complaint(&client.run(&convert), 1, &convert);
        server.forgive();
        assert!(said.contains("403") && said.contains("--resume"), "{said}");
        let left = files(client.place.path("temporary").as_path(), "");
        assert!(left.iter().any(|(name, _)| name.contains(kept)), "{output}");
        let told = client.ok(&format!("{convert}|--resume"));
        assert!(told.starts_with("continued, "), "{told}");
        let name = output.split('|').next().unwrap();
        client.ok(&format!("diff|x.npy|s3://bucket/{name}"));
    }
    let before = server.paths();
    for name in ["no.npy", "no.zarr"] {
        let convert = format!("convert|x.npy|s3://bucket/{name}|--type|u8");
        client.fails(&convert, &["x.npy", "u8"]);
        assert_eq!(server.paths(), before);
    }
}

/// What is cut off is read again, also where nobody knows whether it is still the same.
#[test]
fn cut_off_without_a_version() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    client.ok("create|x.npy|--shape|100x50|--type|i32|--fill|index");
    for (name, codec) in [("x.zarr", "zstd:1"), ("plain.zarr", "none")] {
        let chunks = "--chunks|30x30|--codec";
        client.ok(&format!(
            "convert|x.npy|s3://bucket/{name}|{chunks}|{codec}"
        ));
    }
    server.tag_nothing();
    let expected = client.ok("read|x.npy|::33, ::24");
    for (name, cut) in [
        ("x.zarr", "x.zarr/zarr.json"),
        ("x.zarr", "x.zarr/c/0/0"),
        ("plain.zarr", "plain.zarr/c/0/0"),
    ] {
        server.fail(cut, Fault::CutOff, 2);
        let read = format!("read|{}/bucket/{name}|::33, ::24", server.endpoint());
        assert_eq!(client.ok(&read), expected, "{cut}");
        server.forgive();
    }
}

/// Bytes of two versions are never taken for one, also if a cache gives what it has.
#[test]
fn a_cache_that_ignores_versions() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    client.ok("create|old.npy|--shape|100|--type|i32|--fill|1");
    client.ok("create|new.npy|--shape|100|--type|i32|--fill|2");
    server.put("bucket/x.npy", client.place.bytes("old.npy"));
    let array = outcore::Array::open(&format!("{}/bucket/x.npy", server.endpoint())).unwrap();
    let first = array.section("0").unwrap();
    assert_eq!(array.read::<i32>(&first).unwrap(), [1]);
    server.put("bucket/x.npy", client.place.bytes("new.npy"));
    server.fail("x.npy", Fault::NoVersions, 1000);
    let error = array.read::<i32>(&first).unwrap_err().to_string();
    assert!(
        error.contains("x.npy") && error.contains("replaced"),
        "{error}"
    );
}

/// Credentials come from variables, and stand in no message.
#[test]
fn who_asks() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    let (s3, gs, az) = (
        "read|s3://b/x.npy|0",
        "read|gs://b/x.npy|0",
        "read|az://b/x.npy|0",
    );
    // A secret where none should be.
    let user = "http://me:swordfish@127.0.0.1:9";
    for (line, variable, value) in [
        (s3, "AWS_ENDPOINT_URL", user),
        (gs, "GOOGLE_BASE_URL", user),
        (az, "AZURE_STORAGE_ENDPOINT", user),
        (s3, "AWS_ACCESS_KEY_ID", "swordfish\n"),
        (s3, "AWS_SESSION_TOKEN", "swordfish\u{7f}"),
        (s3, "AWS_SECRET_ACCESS_KEY", "swordfish\r"),
        (gs, "GOOGLE_BEARER_TOKEN", "swordfish\n"),
    ] {
        client.with(&[(variable, value)]).fails(line, &[variable]);
    }
    let key = client.with(&[
        ("GOOGLE_SKIP_SIGNATURE", ""),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", "\"swordfish\""),
    ]);
    key.fails(gs, &["gs://b", "GOOGLE_APPLICATION_CREDENTIALS"]);
    let key = client.with(&[
        ("AZURE_SKIP_SIGNATURE", ""),
        ("AZURE_STORAGE_ACCOUNT_KEY", "swordfish!"),
    ]);
    key.fails(az, &["az://b", "AZURE_STORAGE_ACCOUNT_KEY"]);
    for name in [
        "s3://b/x.npy?X-Amz-Signature=swordfish",
        "az://b/x.npy?sv=1&sig=swordfish",
        "https://me:swordfish@h/x.npy",
        "HTTPS://me:swordfish@h/x.npy",
        "raw:https://h/x?sig=swordfish",
        "raw:https://h/x?sig=swordfish&shape=4&type=f32",
    ] {
        for command in ["read", "info", "ls", "stats", "verify", "repair-report"] {
            client.fails(&format!("{command}|{name}"), &[]);
        }
    }
    // Nobody says who asks: then nobody is asked, and no file is looked for.
    let nobody = client.with(&[
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_SECRET_ACCESS_KEY", ""),
        ("AWS_SESSION_TOKEN", ""),
        ("GOOGLE_SKIP_SIGNATURE", ""),
        ("AZURE_SKIP_SIGNATURE", ""),
        ("HOME", client.place.root().to_str().unwrap()),
    ]);
    let adc = nobody.place.inside(".config").inside("gcloud");
    adc.write("application_default_credentials.json", "swordfish");
    let before = server.requests();
    nobody.fails(
        s3,
        &["no credentials", "AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"],
    );
    nobody.fails(gs, &["no credentials", "GOOGLE_SKIP_SIGNATURE"]);
    nobody.fails(az, &["no credentials", "AZURE_SKIP_SIGNATURE"]);
    assert_eq!(server.requests(), before);
    // A machine is asked if that is said.
    let machine = nobody.with(&[
        ("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9"),
        ("AWS_MAX_ATTEMPTS", "1"),
    ]);
    machine.fails(s3, &["cannot be reached"]);
    // Public data.
    client.ok("create|x.npy|--shape|7|--type|i32|--fill|index");
    server.put("b/x.npy", client.place.bytes("x.npy"));
    for on in ["1", "true", "yes"] {
        let public = nobody.with(&[
            ("AWS_SKIP_SIGNATURE", on),
            ("GOOGLE_SKIP_SIGNATURE", on),
            ("AZURE_SKIP_SIGNATURE", on),
        ]);
        for line in [s3, gs, az] {
            assert_eq!(public.ok(line), "0\n", "{line}");
        }
    }
}

/// Who reads chunks of a shard that is replaced gets those of one of both.
#[test]
fn a_shard_is_replaced_while_it_is_open() {
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = Client::of(&server.endpoint());
    let make = "--shape|8x8|--type|i32|--chunks|4x4|--shard|8x8|--codec|zstd:1|--fill";
    client.ok(&format!("create|old.zarr|{make}|1"));
    client.ok(&format!("create|new.zarr|{make}|random"));
    for (path, bytes) in files(&client.place.path("old.zarr"), "bucket/x.zarr") {
        server.put(&path, bytes);
    }
    let array = outcore::Array::open(&format!("{}/bucket/x.zarr", server.endpoint())).unwrap();
    let part = |text: &str| array.read::<i32>(&array.section(text).unwrap()).unwrap();
    assert_eq!(part("0, 0"), [1]);
    for (path, bytes) in files(&client.place.path("new.zarr"), "bucket/x.zarr") {
        server.put(&path, bytes);
    }
    let here = outcore::Array::open(client.place.path("new.zarr").to_str().unwrap()).unwrap();
    let new: Vec<i32> = here.read(&here.section("4:, 4:").unwrap()).unwrap();
    assert_eq!(part("4:, 4:"), new);
}

/// A run that was killed leaves no array, and is continued.
#[test]
fn killed_and_continued() {
    let server = ObjectServer::start(Duration::from_millis(300)).unwrap();
    let client = Client::of(&server.endpoint());
    client.ok("create|x.npy|--shape|100x50|--type|i32|--fill|index");
    let convert = "convert|x.npy|s3://bucket/x.zarr|--chunks|5x5";
    // Of its 200 chunks, at most 64 are written at a time.
    kill_with_a_chunk(&client, convert, &server, "bucket/x.zarr/c/");
    assert_eq!(server.get("bucket/x.zarr/zarr.json"), None);
    let output = client.run("read|s3://bucket/x.zarr|0");
    let said = complaint(&output, 1, "read of what is not complete");
    assert!(
        said.contains("s3://bucket/x.zarr: this is no array"),
        "{said}"
    );
    client.ok(&format!("{convert}|--resume"));
    client.ok("convert|s3://bucket/x.zarr|back.npy");
    assert_eq!(client.place.npy("back.npy"), client.place.npy("x.npy"));
    assert!(
        !server
            .paths()
            .iter()
            .any(|path| path.contains(".unfinished"))
    );
}

/// Of two programs that begin the same array, each sees the other, or one does.
#[test]
fn two_programs_do_not_make_one_array() {
    let server = ObjectServer::start(Duration::from_millis(300)).unwrap();
    let client = Client::of(&server.endpoint());
    let make = "create|s3://bucket/x.zarr|--shape|100x50|--type|i32|--chunks|30x30|--fill|index";
    let other = "bucket/x.zarr/.other.unfinished/zarr.json";
    let mut process = client
        .command(make)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The other one has found nothing either, and says now what it makes.
    let says = |path: &String| path.contains(".unfinished/");
    while !server.paths().iter().any(says) {
        let ended = process.try_wait().unwrap();
        assert!(
            ended.is_none(),
            "it has failed before it said what it makes"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    server.put(other, b"{}".to_vec());
    let output = process.wait_with_output().unwrap();
    let said = complaint(&output, 1, "create beside another program");
    let words = "s3://bucket/x.zarr: another program is making";
    assert!(said.contains(words), "{said}");
    assert_eq!(server.paths(), [other]);
    // Also if it was there before.
    client.fails(make, &[words, "remove the objects"]);
    assert_eq!(server.paths(), [other]);
}

/// A container that was removed after a run into it was killed is made anew: the journal of
/// an array of it means nothing.
#[test]
fn a_removed_container_is_made_anew() {
    let server = ObjectServer::start(Duration::from_millis(300)).unwrap();
    let client = Client::of(&server.endpoint());
    client.ok("create|in.zarr/g/x|--shape|100x50|--type|i32|--fill|index");
    let convert = "convert|in.zarr|s3://bucket/all.zarr|--all|--chunks|5x5";
    kill_with_a_chunk(&client, convert, &server, "bucket/all.zarr/g/x/c/");
    let temporary = client.place.inside("temporary");
    let notes = files(temporary.root(), "").into_iter();
    for (note, _) in notes.filter(|(name, _)| name.ends_with(".filling")) {
        std::fs::remove_file(temporary.path(note.trim_start_matches('/'))).unwrap();
    }
    assert!(client.left() > 0, "there is a journal");
    // A server that has nothing.
    let server = ObjectServer::start(Duration::ZERO).unwrap();
    let client = client.with(&[("AWS_ENDPOINT_URL", &server.endpoint())]);
    client.ok(convert);
    client.ok("diff|in.zarr/g/x|s3://bucket/all.zarr/g/x");
}

/// Starts a command that makes an array of many chunks, and kills it when some are there.
fn kill_with_a_chunk(client: &Client, line: &str, server: &ObjectServer, chunks: &str) {
    let mut process = client.command(line).stdout(Stdio::null()).spawn().unwrap();
    while !server.paths().iter().any(|path| path.starts_with(chunks)) {
        let ended = process.try_wait().unwrap();
        assert!(ended.is_none(), "it has failed before it was killed");
        std::thread::sleep(Duration::from_millis(5));
    }
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn the_bench_removes_only_what_it_has_made() {
    let server = ObjectServer::start(Duration::ZERO).expect("a server");
    let client = Client::of(&server.endpoint());
    client.ok("create|s3://bench/own/bench.npy|--shape|3|--type|u8|--fill|index");
    let line = "bench|remote|--at|s3://bench/own|--repeat|1";
    client.fails(line, &["bench.npy", "exists already"]);
    assert_eq!(client.ok("read|s3://bench/own/bench.npy"), "0 1 2\n");
    client.ok("create|s3://bench/more/bench.zarr|--shape|3|--type|u8|--fill|index");
    let line = "bench|remote|--at|s3://bench/more|--repeat|1";
    client.fails(line, &["bench.zarr", "exists already"]);
    assert_eq!(client.ok("read|s3://bench/more/bench.zarr"), "0 1 2\n");
}

#[test]
fn the_bench_makes_a_page() {
    let place = Place::new();
    let line = "bench remote --latency 0 --repeat 1 --html page.html";
    let output = place.command(line.split_whitespace()).output();
    let output = output.expect("outcore starts");
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).expect("text");
    assert_eq!(table.lines().count(), 1 + 4, "{table}");
    let page = String::from_utf8(place.bytes("page.html")).expect("text");
    let text = text_of(&page);
    for part in [
        line,
        "1000 chunks of a Zarr array: 5::16, 7::16",
        "one-by-one",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Programs that change the same chunks at the same time keep one another's work.
#[test]
fn programs_change_the_same_chunks() {
    let server = ObjectServer::start(Duration::from_millis(100)).unwrap();
    let client = Client::of(&server.endpoint());
    for (name, kind) in [
        ("chunks", "--chunks|8x8|--codec|zstd:3"),
        ("shards", "--chunks|4x4|--shard|8x8|--codec|none"),
    ] {
        client.ok(&format!(
            "create|s3://bucket/{name}.zarr|--shape|8x16|--type|u8|{kind}|--fill|9"
        ));
        // One of the two chunks was never written.
        server.remove(&format!("bucket/{name}.zarr/c/0/1"));
        let write = |row: usize| {
            let mut command = client.command(&format!(
                "write|s3://bucket/{name}.zarr|{row}, 4:12|--fill|{row}"
            ));
            command
                .stdout(Stdio::null())
                .spawn()
                .expect("outcore starts")
        };
        let writers: Vec<Child> = (0..8).map(write).collect();
        for mut writer in writers {
            assert!(writer.wait().expect("it ends").success());
        }
        let rows: String = (0..8).map(|row| format!("9 {row} {row} 0\n")).collect();
        assert_eq!(
            client.ok(&format!("read|s3://bucket/{name}.zarr|:, [3,4,11,12]")),
            rows,
            "{kind}"
        );
    }
}
