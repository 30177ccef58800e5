//! What the counting and the throttling adapter report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outcore_storage::{
    CountedStore, Counts, DeviceModel, Fault, FaultyStore, MemoryStore, Operation, Queues,
    ReadRequest, Request, RequestKind, Store, StripedStore, Striping, ThrottledStore, Time,
    WriteRequest,
};

#[test]
fn counts_and_log() {
    let store = CountedStore::with_log(MemoryStore::new());
    store.write_at(0, &[1; 100]).unwrap();
    let data = [2; 10];
    let write = |offset| WriteRequest {
        offset,
        data: &data,
    };
    store.write_batch(&[write(50), write(0)]).unwrap();
    let (mut first, mut second) = ([0; 10], [0; 20]);
    let mut requests = [
        ReadRequest {
            offset: 50,
            buffer: &mut first,
        },
        ReadRequest {
            offset: 70,
            buffer: &mut second,
        },
    ];
    store.read_batch(&mut requests).unwrap();
    assert!(store.read_at(99, &mut first).is_err());
    store.set_len(10).unwrap();
    store.sync().unwrap();
    let counts = Counts {
        reads: 3,
        writes: 3,
        bytes_read: 40,
        bytes_written: 120,
        read_batches: 1,
        write_batches: 1,
        set_lens: 1,
        syncs: 1,
    };
    assert_eq!(store.counts(), counts);
    let lengths: Vec<usize> = store.calls().iter().map(Vec::len).collect();
    assert_eq!(lengths, [1, 2, 2, 1]);
    let (read, write) = (RequestKind::Read, RequestKind::Write);
    let log: Vec<_> = store
        .log()
        .iter()
        .map(|r: &Request| (r.kind, r.offset, r.len))
        .collect();
    let wanted = [
        (write, 0, 100),
        (write, 50, 10),
        (write, 0, 10),
        (read, 50, 10),
        (read, 70, 20),
        (read, 99, 10),
    ];
    assert_eq!(log, wanted);
    store.reset();
    assert_eq!(store.counts(), Counts::default());
    assert!(store.log().is_empty() && store.calls().is_empty());
}

fn device(disks: usize, time: Time) -> ThrottledStore<Arc<MemoryStore>> {
    let model = DeviceModel {
        latency: Duration::from_millis(1),
        bandwidth: 1e6,
        queues: Queues::Striped(Striping::new(disks, 1000).unwrap()),
    };
    let memory = Arc::new(MemoryStore::from(vec![0; 100_000]));
    ThrottledStore::new(memory, model, time).unwrap()
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn one_disk_serves_one_request_after_the_other() {
    let store = device(1, Time::Virtual);
    store.read_at(0, &mut [0; 1000]).unwrap();
    assert_eq!(store.elapsed(), milliseconds(2));
    store.write_at(500, &[0; 9000]).unwrap();
    assert_eq!(store.elapsed(), milliseconds(12));
    let data = [0; 1000];
    let write = |offset| WriteRequest {
        offset,
        data: &data,
    };
    store
        .write_batch(&[write(0), write(1000), write(2000)])
        .unwrap();
    assert_eq!(store.elapsed(), milliseconds(18));
    store.read_at(0, &mut []).unwrap();
    assert_eq!(store.elapsed(), milliseconds(18));
    assert_eq!(store.queue_times(), [milliseconds(18)]);
}

#[test]
fn disks_work_at_the_same_time() {
    let store = device(4, Time::Virtual);
    // Two stripes a disk, one access each.
    store.read_at(0, &mut [0; 8000]).unwrap();
    assert_eq!(store.elapsed(), milliseconds(3));
    // Three requests for disk 1, one for disk 2.
    let data = [0; 1000];
    let write = |stripe: u64| WriteRequest {
        offset: stripe * 1000,
        data: &data,
    };
    store
        .write_batch(&[write(1), write(5), write(2), write(9)])
        .unwrap();
    assert_eq!(store.elapsed(), milliseconds(9));
    assert_eq!(store.queue_times(), [3, 9, 5, 3].map(milliseconds));
}

#[test]
fn background_work_has_a_time_of_its_own() {
    let store = CountedStore::new(FaultyStore::new(device(1, Time::Virtual)));
    store.read_at(0, &mut [0; 1000]).unwrap();
    let background = store.background().unwrap();
    assert_eq!(background.time(), Some(milliseconds(2)));
    background.read_at(0, &mut [0; 1000]).unwrap();
    assert_eq!(store.time(), Some(milliseconds(2)));
    assert_eq!(background.time(), Some(milliseconds(4)));
    store.wait_until(milliseconds(4));
    assert_eq!(store.time(), Some(milliseconds(4)));
    // Both are counted, and fail, alike.
    assert_eq!(store.counts().reads, 2);
    store.inner().fail_once(Operation::Read, 0, Fault::Device);
    assert!(background.read_at(0, &mut [0; 10]).is_err());
    // Real time passes for everybody.
    let real = device(1, Time::Real);
    assert!(real.background().is_none() && real.time().is_none());
    assert!(MemoryStore::new().background().is_none());
}

#[test]
fn callers_have_their_own_time_and_share_the_disks() {
    let first = device(2, Time::Virtual);
    let second = first.for_caller();
    first.read_at(0, &mut [0; 1000]).unwrap();
    // The other disk is free, the same disk is not.
    second.read_at(1000, &mut [0; 1000]).unwrap();
    assert_eq!(
        (first.elapsed(), second.elapsed()),
        (milliseconds(2), milliseconds(2))
    );
    first.read_at(0, &mut [0; 1000]).unwrap();
    second.read_at(0, &mut [0; 1000]).unwrap();
    assert_eq!(
        (first.elapsed(), second.elapsed()),
        (milliseconds(4), milliseconds(6))
    );
    assert_eq!(first.busy_until(), milliseconds(6));
    // A computation leaves the disk idle; a barrier brings the callers together.
    first.spend(milliseconds(10));
    second.wait_until(first.elapsed());
    second.wait_until(milliseconds(1));
    assert_eq!(second.elapsed(), milliseconds(14));
    first.read_at(0, &mut [0; 1000]).unwrap();
    assert_eq!(first.elapsed(), milliseconds(16));
}

#[test]
fn a_request_takes_the_stream_that_is_free_first() {
    let queues = Queues::Streams(2);
    let model = DeviceModel {
        latency: milliseconds(1),
        bandwidth: 1e6,
        queues,
    };
    let store = ThrottledStore::new(MemoryStore::new(), model, Time::Virtual).unwrap();
    let data = [0; 5000];
    let write = |len| WriteRequest {
        offset: 0,
        data: &data[..len],
    };
    store
        .write_batch(&[write(5000), write(1000), write(2000), write(0)])
        .unwrap();
    assert_eq!(store.queue_times(), [6, 5].map(milliseconds));
    assert_eq!(store.elapsed(), milliseconds(6));
}

#[test]
fn profiles() {
    let megabyte = vec![0; 1_000_000];
    let time = |model| {
        let store = ThrottledStore::new(MemoryStore::new(), model, Time::Virtual).unwrap();
        store.write_at(0, &megabyte).unwrap();
        store.elapsed().as_secs_f64()
    };
    // Four rounds of 4 KiB stripes on 64 disks, less than one of 1 MiB
    // stripes, one stream.
    assert!((time(DeviceModel::disk1995()) - (0.020 + 4.0 * 4096.0 / 2e6)).abs() < 1e-9);
    assert!((time(DeviceModel::pfs()) - (0.0005 + 1e6 / 1e9)).abs() < 1e-9);
    assert!((time(DeviceModel::object()) - (0.020 + 1e6 / 80e6)).abs() < 1e-9);
}

#[test]
fn real_time_passes() {
    let store = device(1, Time::Real);
    let start = Instant::now();
    store.read_at(0, &mut [0; 4000]).unwrap();
    store.write_at(0, &[0; 4000]).unwrap();
    assert!(start.elapsed() >= milliseconds(10));
    assert!(store.elapsed() >= milliseconds(10));
}

#[test]
fn impossible_devices_are_refused() {
    let model = DeviceModel {
        queues: Queues::Streams(0),
        ..DeviceModel::object()
    };
    assert!(ThrottledStore::new(MemoryStore::new(), model, Time::Virtual).is_err());
    for bandwidth in [0.0, -1.0, f64::NAN] {
        let queues = Queues::Streams(1);
        let model = DeviceModel {
            latency: Duration::ZERO,
            bandwidth,
            queues,
        };
        assert!(ThrottledStore::new(MemoryStore::new(), model, Time::Virtual).is_err());
    }
}

#[test]
fn adapters_pass_the_striping_on() {
    let disks = (0..3).map(|_| Arc::new(MemoryStore::new()) as Arc<dyn Store>);
    let striped = StripedStore::new(disks.collect(), 512).unwrap();
    let striping = Striping::new(3, 512).unwrap();
    let counted: Arc<dyn Store> = Arc::new(CountedStore::new(striped));
    let faulty = FaultyStore::new(counted);
    assert_eq!(faulty.striping(), Some(striping));
    // Behind a device the bytes lie as they do there.
    let object = ThrottledStore::new(faulty, DeviceModel::object(), Time::Virtual).unwrap();
    assert_eq!(object.striping(), None);
    let pfs = ThrottledStore::new(object, DeviceModel::pfs(), Time::Virtual).unwrap();
    assert_eq!(pfs.striping(), Some(Striping::new(8, 1 << 20).unwrap()));
    assert_eq!(MemoryStore::new().striping(), None);
}

#[test]
fn callers_share_a_device_in_the_order_of_their_clocks() {
    let model = |queues| DeviceModel {
        latency: milliseconds(1),
        bandwidth: 1e6,
        queues,
    };
    let one = model(Queues::Streams(1));
    let two = model(Queues::Striped(Striping::new(2, 1000).unwrap()));
    let reads = |offsets: &[u64]| -> Vec<[(u64, usize); 1]> {
        offsets.iter().map(|offset| [(*offset, 1000)]).collect()
    };
    // One queue: 2 ms a request, in turns.
    let times = one.time_of_callers([reads(&[0, 0]), reads(&[0]), reads(&[])]);
    assert_eq!(times.unwrap(), [6, 4, 0].map(milliseconds));
    // Two disks: nobody waits who has one alone; two who meet on one do.
    let alone = two.time_of_callers([reads(&[0, 2000]), reads(&[1000, 3000])]);
    assert_eq!(alone.unwrap(), [4, 4].map(milliseconds));
    let crossed = two.time_of_callers([reads(&[0, 1000]), reads(&[0, 1000])]);
    assert_eq!(crossed.unwrap(), [4, 6].map(milliseconds));
    // As a real store with a clock for each caller does it.
    let store = ThrottledStore::new(MemoryStore::from(vec![0; 4000]), two, Time::Virtual).unwrap();
    let other = store.for_caller();
    store.read_at(0, &mut [0; 1000]).unwrap();
    other.read_at(0, &mut [0; 1000]).unwrap();
    store.read_at(1000, &mut [0; 1000]).unwrap();
    other.read_at(1000, &mut [0; 1000]).unwrap();
    assert_eq!([store.elapsed(), other.elapsed()], [4, 6].map(milliseconds));
}
