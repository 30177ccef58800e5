//! Files that exist are changed so that their makers still read them, or not at all;
//! files that would take memory without bounds are refused.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use outcore_storage::{CountedStore, Fault, FaultyStore, FileStore, MemoryStore, Operation};
use serde_json::json;

use super::checksum::lookup3;
use super::tests::{checked_by_python, contents};
use super::*;
use crate::array::Array;
use crate::element::ElementType;

/// Bytes without order, so that no filter makes less of them.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Writes all elements.
fn write_all(path: &Path, inner: &str, bytes: &[u8]) {
    let array = Array::open_writable(&format!("{}:{inner}", path.display())).unwrap();
    array.write_bytes(&array.whole(), bytes).unwrap();
}

fn refused(path: &Path, inner: &str, access: Access) -> String {
    open(path, Some(inner), access).unwrap_err().to_string()
}

#[test]
fn user_blocks_may_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    checked_by_python(
        folder.path(),
        "import h5py, numpy as np\n\
         for name, more in {'old': {'libver': 'earliest'}, 'new': {'libver': 'latest'}}.items():\n\
         \x20   for block in (0, 512):\n\
         \x20       with h5py.File(f'{name}{block}.h5', 'w', userblock_size=block, **more) as f:\n\
         \x20           f.create_dataset('d', data=np.zeros((100, 10), 'u1'), chunks=(10, 10), compression=1)\n",
    );
    let mut script = String::from("import h5py, numpy as np\n");
    for name in ["old", "new"] {
        let place = |block: usize| folder.path().join(format!("{name}{block}.h5"));
        // What h5jam and h5unjam do.
        let plain = fs::read(place(0)).unwrap();
        fs::write(place(0), [vec![0; 512], plain].concat()).unwrap();
        let blocked = fs::read(place(512)).unwrap();
        fs::write(place(512), &blocked[512..]).unwrap();
        for block in [0, 512] {
            let bytes = noise(1000, block as u64);
            write_all(&place(block), "/d", &bytes);
            let store = open_file(&place(block), Access::ReadOnly).unwrap();
            assert_eq!(contents(store, "/d").unwrap().1, bytes);
            fs::write(folder.path().join(format!("{name}{block}.bin")), bytes).unwrap();
            script += &format!(
                "with h5py.File('{name}{block}.h5', 'r+') as f:\n\
                 \x20   f['more'] = np.arange(10000)\n\
                 with h5py.File('{name}{block}.h5') as f:\n\
                 \x20   assert f['d'][()].tobytes() == open('{name}{block}.bin', 'rb').read()\n\
                 \x20   assert (f['more'][()] == np.arange(10000)).all()\n"
            );
        }
    }
    checked_by_python(folder.path(), &script);
}

#[test]
fn chunks_are_written_where_libraries_look() {
    let folder = tempfile::tempdir().unwrap();
    checked_by_python(
        folder.path(),
        "import h5py, numpy as np\n\
         with h5py.File('grows.h5', 'w', libver=('v110', 'v110')) as f:\n\
         \x20   d = f.create_dataset('d', (200,), 'u1', chunks=(10,), maxshape=(None,), compression=1)\n\
         \x20   d[0:50] = 1\n",
    );
    let path = folder.path().join("grows.h5");
    let array = Array::open_writable(&format!("{}:/d", path.display())).unwrap();
    let mut script = String::from("import h5py\nd = h5py.File('grows.h5')['d'][()]\n");
    let mut written = 0;
    for chunk in 0..20 {
        let section = array
            .section(&format!("{}:{}", 10 * chunk, 10 * chunk + 10))
            .unwrap();
        match array.write_bytes(&section, &[100 + chunk; 10]) {
            Ok(()) => {
                written += 1;
                script += &format!("assert (d[10 * {chunk}:][:10] == 100 + {chunk}).all(), d\n");
            }
            Err(problem) => assert!(problem.to_string().contains("no entry"), "{problem}"),
        }
    }
    assert!((5..20).contains(&written), "{written}");
    drop(array);
    checked_by_python(folder.path(), &script);
}

/// A file with four chunks of a filter that makes nothing shorter.
fn four_chunks(folder: &Path) -> PathBuf {
    let path = folder.join("four.h5");
    let descriptor = ArrayDescriptor::new(&[4, 5000], ElementType::U8)
        .layout("tiled:1x5000".parse().unwrap())
        .codecs("fletcher32".parse().unwrap());
    create("new", &path, "/d", &descriptor).unwrap();
    path
}

#[test]
fn a_chunk_that_is_rewritten_is_old_or_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = four_chunks(folder.path());
    let mut expected = noise(20000, 0);
    write_all(&path, "/d", &expected);
    let faulty = FileStore::open(&path, Access::ReadWrite).unwrap();
    let faulty = Arc::new(FaultyStore::new(faulty));
    let store: Arc<dyn Store> = faulty.clone();
    let opened = open_store(store, Some("/d"), Access::ReadWrite).unwrap();
    let found = || {
        let store = open_file(&path, Access::ReadOnly).unwrap();
        contents(store, "/d").unwrap().1
    };
    // First the end of the file moves, which is a write of its own; later the chunk goes
    // to a place that is known.
    for (round, pass) in [(1, 1), (2, 0), (3, 0)] {
        let new = noise(5000, round);
        // In the middle of its bytes the device fails.
        faulty.fail_once(Operation::Write, pass, Fault::Short);
        faulty.fail_once(Operation::Write, pass + 1, Fault::Device);
        opened.store.write_at(5000, &new).unwrap_err();
        assert!(found() == expected, "{round}");
        // What failed is forgotten; written twice, it has a second place again.
        for seed in [round + 100, round + 200] {
            let new = noise(5000, seed);
            opened.store.write_at(5000, &new).unwrap();
            expected[5000..10000].copy_from_slice(&new);
            assert!(found() == expected, "{round}");
        }
    }
    // At the entry it is one or the other as well.
    for pass in 0.. {
        let new = noise(5000, 300 + pass);
        let before = faulty.struck();
        faulty.fail_once(Operation::Write, pass, Fault::Device);
        let written = opened.store.write_at(5000, &new);
        faulty.clear();
        if written.is_ok() {
            expected[5000..10000].copy_from_slice(&new);
        }
        assert!(found() == expected, "{pass}");
        if faulty.struck() == before {
            break;
        }
    }
}

#[test]
fn a_file_that_is_rewritten_does_not_grow_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = four_chunks(folder.path());
    write_all(&path, "/d", &noise(20000, 0));
    let once = fs::metadata(&path).unwrap().len();
    let array = Array::open_writable(&format!("{}:/d", path.display())).unwrap();
    for round in 1..7 {
        let bytes = noise(20000, round);
        array.write_bytes(&array.whole(), &bytes).unwrap();
        let len = fs::metadata(&path).unwrap().len();
        assert!(len <= 2 * once, "{round}: {len}, {once}");
        let store = open_file(&path, Access::ReadOnly).unwrap();
        assert!(contents(store, "/d").unwrap().1 == bytes, "{round}");
    }
}

/// Two handles that move the same chunks off one another's places.
#[test]
fn handles_do_not_share_free_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = four_chunks(folder.path());
    write_all(&path, "/d", &noise(20000, 0));
    let open = || Array::open_writable(&format!("{}:/d", path.display())).unwrap();
    let handles = [open(), open(), open()];
    let mut expected = noise(20000, 0);
    for step in 0..60_usize {
        let array = &handles[step * step % 7 % 3];
        let row = step * 5 % 4;
        let section = array.section(&format!("{row}:{}, :", row + 1)).unwrap();
        let bytes = noise(5000, step as u64);
        array.write_bytes(&section, &bytes).unwrap();
        expected[row * 5000..][..5000].copy_from_slice(&bytes);
        let store = open_file(&path, Access::ReadOnly).unwrap();
        assert!(contents(store, "/d").unwrap().1 == expected, "{step}");
    }
}

#[test]
fn an_entry_is_written_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.h5");
    let descriptor = ArrayDescriptor::new(&[200, 8], ElementType::U8)
        .layout("tiled:1x8".parse().unwrap())
        .codecs("fletcher32".parse().unwrap());
    create("new", &path, "/d", &descriptor).unwrap();
    let counted = FileStore::open(&path, Access::ReadWrite).unwrap();
    let counted = Arc::new(CountedStore::new(counted));
    let store: Arc<dyn Store> = counted.clone();
    let opened = open_store(store, Some("/d"), Access::ReadWrite).unwrap();
    counted.reset();
    opened.store.write_at(199 * 8, &[7; 8]).unwrap();
    // The end of the file, the chunk, the last entry of the block and its checksum.
    let written = counted.counts().bytes_written;
    assert!(written < 100, "{written}");
}

#[test]
fn files_in_use_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    checked_by_python(
        folder.path(),
        "import h5py, numpy as np\n\
         h5py.File('new.h5', 'w', libver='latest')['d'] = np.arange(10)\n",
    );
    let path = folder.path().join("new.h5");
    open(&path, Some("/d"), Access::ReadWrite).unwrap();
    let is_local = {
        let store = FileStore::open(&path, Access::ReadWrite).unwrap();
        store.lock_shared(0, 1).unwrap().is_some()
    };
    if is_local {
        let other = fs::File::open(&path).unwrap();
        // SAFETY: the file is open; the call touches no memory.
        let locked = unsafe { libc::flock(other.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        assert_eq!(locked, 0);
        let problem = refused(&path, "/d", Access::ReadWrite);
        assert!(problem.contains("another program has it open"), "{problem}");
        open(&path, Some("/d"), Access::ReadOnly).unwrap();
    }
    // What the library writes into a file while it is open for writing.
    let mut bytes = fs::read(&path).unwrap();
    bytes[11] |= 1;
    let sum = lookup3(&bytes[..44]);
    bytes[44..48].copy_from_slice(&sum.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let problem = refused(&path, "/d", Access::ReadWrite);
    assert!(problem.contains("h5clear -s"), "{problem}");
    open(&path, Some("/d"), Access::ReadOnly).unwrap();
}

#[test]
fn images_of_metadata_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    checked_by_python(
        folder.path(),
        "import h5py, numpy as np\n\
         with h5py.File('pages.h5', 'w', libver='latest', fs_strategy='page') as f:\n\
         \x20   f.create_dataset('d', data=np.arange(10), chunks=(5,), compression=1)\n",
    );
    let path = folder.path().join("pages.h5");
    let problem = refused(&path, "/d", Access::ReadWrite);
    assert!(problem.contains("account of free space"), "{problem}");
    // The message of that account becomes one of an image.
    let mut bytes = fs::read(&path).unwrap();
    let header = u64::from_le_bytes(bytes[20..28].try_into().unwrap()) as usize;
    assert_eq!(bytes[header..][..5], *b"OHDR\x02");
    let flags = usize::from(bytes[header + 5]);
    let size_at = header + 6 + if flags & 0x20 != 0 { 16 } else { 0 };
    let size_at = size_at + if flags & 0x10 != 0 { 4 } else { 0 };
    let width = 1 << (flags & 3);
    let mut size = [0; 8];
    size[..width].copy_from_slice(&bytes[size_at..][..width]);
    let mut at = size_at + width;
    let end = at + u64::from_le_bytes(size) as usize;
    while u16::from(bytes[at]) != kind::FILE_SPACE {
        let len = u16::from_le_bytes([bytes[at + 1], bytes[at + 2]]);
        at += 4 + if flags & 4 != 0 { 2 } else { 0 } + usize::from(len);
        assert!(at < end);
    }
    bytes[at] = kind::CACHE_IMAGE as u8;
    let sum = lookup3(&bytes[header..end]);
    bytes[end..end + 4].copy_from_slice(&sum.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let problem = refused(&path, "/d", Access::ReadOnly);
    assert!(problem.contains("image of its metadata"), "{problem}");
}

#[test]
fn only_what_holds_nothing_else_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.h5");
    let descriptor = ArrayDescriptor::new(&[3], ElementType::U8).attribute("units", "kelvin");
    create("new", &path, "/g/d", &descriptor).unwrap();
    assert!(holds_only(&path, "/g/d"));
    assert!(holds_only(&path, "g/d"));
    assert!(!holds_only(&path, "/g"));
    assert!(!holds_only(&path, "/d"));
    let changes = [
        "f.attrs['a'] = 1",
        "f['g'].attrs['a'] = 1",
        "[f['g'].attrs.__setitem__(str(a), a) for a in range(30)]",
        "f.create_group('h')",
        "f['h'] = h5py.SoftLink('/g/d')",
        "f['g/h'] = h5py.ExternalLink('other.h5', '/d')",
        "f['g/h'] = f['g/d']",
        "f['h'] = np.dtype('f4')",
    ];
    for change in changes {
        let copy = folder.path().join("changed.h5");
        fs::copy(&path, &copy).unwrap();
        let script = format!(
            "import h5py, numpy as np\nwith h5py.File('changed.h5', 'r+') as f:\n    {change}\n"
        );
        checked_by_python(folder.path(), &script);
        assert!(!holds_only(&copy, "/g/d"), "{change}");
    }
}

#[test]
fn what_would_take_all_memory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    checked_by_python(
        folder.path(),
        "import h5py, numpy as np\n\
         with h5py.File('bad.h5', 'w') as f:\n\
         \x20   d = f.create_dataset('d', data=np.arange(5))\n\
         \x20   d.attrs['good'] = np.zeros((2, 0))\n\
         \x20   h5py.h5a.create(d.id, b'bad', h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((1 << 33, 0)))\n\
         with h5py.File('deep.h5', 'w') as f:\n\
         \x20   g = f\n\
         \x20   for level in range(450): g = g.create_group('n' * 1000)\n\
         \x20   f['d'] = g['d'] = 1\n",
    );
    // Lists without values, as many as the extents say.
    let opened = open(&folder.path().join("bad.h5"), Some("/d"), Access::ReadOnly).unwrap();
    let attributes = serde_json::Value::Object(opened.descriptor.attributes);
    assert_eq!(attributes, json!({"good": [[], []]}));
    // Paths that grow with every group.
    let deep = folder.path().join("deep.h5");
    let problem = list(&deep, "").unwrap_err().to_string();
    assert!(problem.contains("bytes together"), "{problem}");
    open(&deep, Some("/d"), Access::ReadOnly).unwrap();
    // A header that goes on where it has been.
    let closed = |mut bytes: Vec<u8>| {
        let sum = lookup3(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    };
    let again = |kind: u8, address: u64, len: u64| {
        let head = [kind, 16, 0, 0];
        [&head[..], &address.to_le_bytes(), &len.to_le_bytes()].concat()
    };
    let block = closed([&b"OCHK"[..], &again(16, 128, 28)].concat());
    let header = closed([&b"OHDR\x02\x00\x14"[..], &again(16, 128, 28)].concat());
    let mut head = SIGNATURE.to_vec();
    head.extend([2, 8, 8, 0]);
    for number in [0, u64::MAX, 128 + block.len() as u64, 48] {
        head.extend(number.to_le_bytes());
    }
    let mut file = closed(head);
    file.extend(header);
    file.resize(128, 0);
    file.extend(block);
    let store = Arc::new(MemoryStore::from(file));
    let problem = File::open(store).and_then(|file| tree::list(&file));
    let problem = Problem::of("memory")(problem.unwrap_err()).to_string();
    assert!(problem.contains("leads back"), "{problem}");
}

#[test]
fn chunks_that_are_not_read_are_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.h5");
    let made = |chunk: u64, codecs: &str| {
        let arrangement = Arrangement {
            order: Order::Row,
            tile: Some(vec![chunk]),
        };
        let descriptor = ArrayDescriptor::new(&[1 << 30], ElementType::U8)
            .layout(arrangement)
            .codecs(codecs.parse().unwrap());
        create("new", &path, "/d", &descriptor)
    };
    let problem = made((256 << 20) + 1, "deflate:1").unwrap_err().to_string();
    assert!(problem.contains("at most 256 MiB"), "{problem}");
    assert!(!path.exists());
    made(256 << 20, "deflate:1").unwrap();
    open(&path, Some("/d"), Access::ReadWrite).unwrap();
}
