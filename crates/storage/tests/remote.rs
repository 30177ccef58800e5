//! Objects of a server that speaks the protocol of S3: `moto`, which the
//! interpreter `OUTCORE_TEST_PYTHON` (or `python3`) must have.
//!
//! One test, since the environment says where the server is.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outcore_storage::{
    Address, Bucket, Error, MemoryStore, Objects, ReadRequest, Store, conformance,
};

const SECRET: &str = "swordfish";

/// A server that ends with the test.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start() -> Self {
        let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let process = Command::new(&python)
            .args([
                "-m",
                "moto.server",
                "-H",
                "127.0.0.1",
                "-p",
                &port.to_string(),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python starts");
        let mut server = Self { process, port };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.process.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "{python} has no moto; install 'moto[server]', or set OUTCORE_TEST_PYTHON"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Makes a bucket.
    fn make(&self, bucket: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request = format!(
            "PUT /{bucket} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn at(text: &str) -> Bucket {
    Bucket::at(&Address::parse(text).unwrap()).unwrap()
}

#[test]
fn s3() {
    let server = Server::start();
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    for (name, value) in [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
    ] {
        // SAFETY: this is the only test of the program, and no other thread of it runs.
        unsafe { std::env::set_var(name, value) };
    }
    server.make("bucket");
    conformance::check_objects(&at("s3://bucket/some/folder"));
    conformance::check_objects(&at("s3://bucket"));
    long_objects();
    replaced_objects();
    objects_written_over();
    secrets_and_what_is_missing();
}

/// Objects in several parts, and batches of ranges in any order.
fn long_objects() {
    let data: Vec<u8> = (0..12_345_678u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let file = MemoryStore::new();
    file.write_at(0, &data).unwrap();
    let place = at("s3://bucket/long");
    assert!(!place.is_object().unwrap());
    place.upload(&file).unwrap();
    assert!(place.is_object().unwrap());
    let object = place.object().unwrap();
    assert_eq!(object.len().unwrap(), data.len() as u64);
    assert!(object.parallel() >= 32);
    let mut whole = vec![0; data.len()];
    object.read_at(0, &mut whole).unwrap();
    assert!(whole == data, "the bytes differ");
    let offsets: Vec<usize> = (0..100)
        .map(|i| i * 7919 * 13 % (data.len() - 99))
        .collect();
    let mut buffers = vec![[0; 99]; offsets.len()];
    let both = offsets.iter().zip(&mut buffers);
    let mut requests: Vec<ReadRequest<'_>> = both
        .map(|(offset, buffer)| ReadRequest {
            offset: *offset as u64,
            buffer,
        })
        .collect();
    object.read_batch(&mut requests).unwrap();
    for (offset, buffer) in offsets.iter().zip(&buffers) {
        assert_eq!(buffer, &data[*offset..][..99]);
    }
    // Parts of one object that are far apart, and close to one another.
    let (near, far) = (10..20, 5_000_000..5_000_100);
    let mut buffer = vec![0; data.len()];
    let parts = [far.clone(), near.clone(), 30..31];
    assert!(
        at("s3://bucket")
            .read_parts("long", &parts, &mut buffer)
            .unwrap()
    );
    for part in [near, far, 30..31] {
        assert_eq!(buffer[part.clone()], data[part]);
    }
    // An empty file is an object, too.
    at("s3://bucket/empty").upload(&MemoryStore::new()).unwrap();
    assert_eq!(at("s3://bucket").length("empty").unwrap(), Some(0));
}

fn replaced_objects() {
    let bucket = at("s3://bucket");
    bucket.write("changing", &[1; 1000]).unwrap();
    let object = at("s3://bucket/changing").object().unwrap();
    object.read_at(0, &mut [0; 10]).unwrap();
    bucket.write("changing", &[2; 1000]).unwrap();
    let error = object.read_at(0, &mut [0; 10]).unwrap_err().to_string();
    assert!(
        error.contains("s3://bucket/changing") && error.contains("replaced"),
        "{error}"
    );
}

/// What somebody else has made or replaced meanwhile stays.
fn objects_written_over() {
    let bucket = at("s3://bucket");
    let held = |key: &str| {
        let mut bytes = Vec::new();
        let version = bucket.read(key, 100, &mut bytes).unwrap();
        version.map(|version| (version, bytes))
    };
    assert!(held("over").is_none());
    assert!(bucket.write_over("over", b"first", None).unwrap());
    assert!(!bucket.write_over("over", b"not the first", None).unwrap());
    let (first, bytes) = held("over").unwrap();
    assert_eq!(bytes, b"first");
    assert!(bucket.write_over("over", b"second", Some(&first)).unwrap());
    assert!(!bucket.write_over("over", b"third", Some(&first)).unwrap());
    let (second, bytes) = held("over").unwrap();
    assert_eq!(bytes, b"second");
    bucket.remove("over").unwrap();
    assert!(!bucket.write_over("over", b"fourth", Some(&second)).unwrap());
    assert!(held("over").is_none());
    // Many change one object, and none of them undoes what another has done.
    bucket.write("sum", b"0").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..5 {
                    loop {
                        let (version, bytes) = held("sum").unwrap();
                        let sum: u32 = String::from_utf8(bytes).unwrap().parse().unwrap();
                        let more = (sum + 1).to_string();
                        let over = bucket.write_over("sum", more.as_bytes(), Some(&version));
                        if over.unwrap() {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(held("sum").unwrap().1, b"30");
}

fn secrets_and_what_is_missing() {
    let missing = at("s3://no-such-bucket");
    assert!(!format!("{missing:?} {missing:#?}").contains(SECRET));
    let list = missing.list("").unwrap_err().to_string();
    let write = missing.write("x", b"x").unwrap_err().to_string();
    for error in [&list, &write] {
        assert!(
            error.contains("s3://no-such-bucket") && error.contains("no such bucket"),
            "{error}"
        );
    }
    let error = at("s3://bucket/nothing").object().unwrap_err();
    assert!(matches!(error, Error::Object { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("s3://bucket/nothing: it is not there (404)"),
        "{error}"
    );
}
