//! Groups of ranks that take turns in reading and writing, against all at once, in
//! virtual time: the steps of an irregular call in messages, event by event.
//!
//! The mathematics. `P` ranks own `b` bytes of the file each, in `C` chunks, and
//! want elements everywhere in equal numbers. In a step one of `G` groups of `S`
//! ranks has to do with the file.
//!
//! - Writing, each rank packs its elements of the group's chunks, which takes
//!   `S b / P` times what a byte costs to rearrange, and sends one message to each
//!   of the group. A message takes `e + bytes c` of the sender and of the
//!   receiver; both send and receive one at a time, and each sender begins with
//!   another receiver. A rank of the group takes messages only when its buffer is
//!   free; then it puts the elements into their places and asks the device to
//!   write. With one group it waits for that; with more, it goes on.
//! - Reading, all ranks ask for their chunk at the beginning. The group's ranks
//!   wait for theirs, pack a message for everybody, send, and ask for the next
//!   chunk; whoever receives puts elements into their places.
//!
//! Requests wait in the queues of the device ([`Device`]). There is no other
//! contention: neither links of the network nor seeks that grow with the number of
//! callers.
//!
//! What the machines cost. Disks of the Paragon have 9 MB/s each (No et al. 1998,
//! section 4). All the rest is assumed: 15 ms a request, for a seek, half a turn and
//! the file system; 90 us and 100 MB/s a message; 0.5 us to rearrange an element of
//! 8 bytes, a few accesses to memory. The device `pfs` has the messages that outcore
//! assumes on one machine and 8 ns an element.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

use outcore::storage::{Device, DeviceModel, Queues, Striping};
use outcore::{Cost, ExchangeCost, PipelineModel, PipelineStorage, Result};

use crate::line::Line;

/// What a machine costs, in seconds.
#[derive(Debug, Clone, Copy)]
struct Machine {
    device: DeviceModel,
    message: Cost,
    /// A byte that is packed or put into its place.
    rearrange: f64,
}

impl Machine {
    /// The Paragon of Caltech with 16 disks.
    fn paragon(stripe: u64) -> Result<Self> {
        let device = DeviceModel {
            latency: Duration::from_millis(15),
            bandwidth: 9e6,
            queues: Queues::Striped(Striping::new(16, stripe)?),
        };
        Ok(Self {
            device,
            message: Cost {
                each: 90e-6,
                byte: 1.0 / 100e6,
            },
            rearrange: 1.0 / 16e6,
        })
    }

    fn pfs() -> Self {
        Self {
            device: DeviceModel::pfs(),
            message: ExchangeCost::default().message,
            rearrange: 1e-9,
        }
    }
}

/// What is moved.
#[derive(Debug, Clone, Copy)]
struct Setting {
    ranks: usize,
    /// The bytes of a rank, and of its chunk.
    share: u64,
    chunk: u64,
}

impl Setting {
    fn chunks(&self) -> u64 {
        self.share.div_ceil(self.chunk)
    }

    fn members(&self, groups: usize, group: usize) -> Range<usize> {
        (group * self.ranks).div_ceil(groups)..((group + 1) * self.ranks).div_ceil(groups)
    }

    /// Where the chunk of a rank is in the file.
    fn request(&self, rank: usize, chunk: u64) -> (u64, usize) {
        (
            rank as u64 * self.share + chunk * self.chunk,
            self.chunk as usize,
        )
    }
}

/// How long something takes, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    all: f64,
    /// The busiest disk; the busiest rank's messages; its rearranging.
    io: f64,
    communication: f64,
    rearranging: f64,
}

/// Ranks and a device at some time, in nanoseconds.
struct Simulation {
    setting: Setting,
    groups: usize,
    machine: Machine,
    device: Device,
    /// Until when each rank is busy.
    free: Vec<u64>,
    /// When the request of each rank has ended.
    ended: Vec<u64>,
    /// Requests that have not been given to the device.
    asked: BinaryHeap<Reverse<(u64, usize, u64)>>,
    messages: Vec<u64>,
    rearranged: Vec<u64>,
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl Simulation {
    fn new(setting: Setting, machine: Machine, groups: usize) -> Result<Self> {
        let none = vec![0; setting.ranks];
        Ok(Self {
            setting,
            groups,
            machine,
            device: Device::new(machine.device)?,
            free: none.clone(),
            ended: none.clone(),
            asked: BinaryHeap::new(),
            messages: none.clone(),
            rearranged: none,
        })
    }

    /// The bytes of a message.
    fn message(&self) -> u64 {
        self.setting.chunk.div_ceil(self.setting.ranks as u64)
    }

    fn rearrange(&mut self, rank: usize, bytes: u64) {
        let time = nanoseconds(bytes as f64 * self.machine.rearrange);
        self.free[rank] += time;
        self.rearranged[rank] += time;
    }

    fn ask(&mut self, rank: usize, chunk: u64) {
        self.asked.push(Reverse((self.free[rank], rank, chunk)));
    }

    /// Lets the device take all that was asked for, in the order of time.
    fn serve(&mut self) {
        while let Some(Reverse((issued, rank, chunk))) = self.asked.pop() {
            let request = self.setting.request(rank, chunk);
            self.ended[rank] = self.device.enqueue(issued, [request].into_iter());
        }
    }

    /// Each sender sends a message to each receiver, who take none before `ready`.
    fn exchange(&mut self, senders: Range<usize>, receivers: Range<usize>, ready: &[u64]) {
        let (from, to) = (senders.len(), receivers.len());
        let bytes = self.message() as f64;
        let time = nanoseconds(self.machine.message.each + bytes * self.machine.message.byte);
        let mut receiving: Vec<u64> = receivers
            .clone()
            .map(|rank| self.free[rank].max(ready[rank]))
            .collect();
        let mut turns: BinaryHeap<_> = senders
            .clone()
            .map(|rank| Reverse((self.free[rank], rank, 0)))
            .collect();
        while let Some(Reverse((now, rank, sent))) = turns.pop() {
            if sent == to {
                self.free[rank] = self.free[rank].max(now);
                continue;
            }
            let first = (rank - senders.start) * to / from;
            let at = (first + sent) % to;
            // What a rank has for itself stays where it is.
            let end = match receivers.start + at == rank {
                true => now,
                false => {
                    self.messages[rank] += time;
                    now.max(receiving[at]) + time
                }
            };
            receiving[at] = receiving[at].max(end);
            turns.push(Reverse((end, rank, sent + 1)));
        }
        for (rank, time) in receivers.zip(receiving) {
            self.free[rank] = self.free[rank].max(time);
        }
    }

    fn write(mut self) -> Outcome {
        let Setting { ranks, chunk, .. } = self.setting;
        for number in 0..self.setting.chunks() {
            for group in 0..self.groups {
                let members = self.setting.members(self.groups, group);
                for rank in 0..ranks {
                    self.rearrange(rank, members.len() as u64 * self.message());
                }
                self.serve();
                let ready = self.ended.clone();
                self.exchange(0..ranks, members.clone(), &ready);
                for rank in members.clone() {
                    self.rearrange(rank, chunk);
                    self.ask(rank, number);
                }
                if self.groups == 1 {
                    self.serve();
                    for rank in members {
                        self.free[rank] = self.ended[rank];
                    }
                }
            }
        }
        self.outcome()
    }

    fn read(mut self) -> Outcome {
        let Setting { ranks, chunk, .. } = self.setting;
        (0..ranks).for_each(|rank| self.ask(rank, 0));
        let ready = vec![0; ranks];
        for number in 0..self.setting.chunks() {
            for group in 0..self.groups {
                let members = self.setting.members(self.groups, group);
                self.serve();
                for rank in members.clone() {
                    self.free[rank] = self.free[rank].max(self.ended[rank]);
                    self.rearrange(rank, chunk);
                }
                self.exchange(members.clone(), 0..ranks, &ready);
                for rank in 0..ranks {
                    self.rearrange(rank, members.len() as u64 * self.message());
                }
                if number + 1 < self.setting.chunks() {
                    members.for_each(|rank| self.ask(rank, number + 1));
                }
            }
        }
        self.outcome()
    }

    fn outcome(mut self) -> Outcome {
        self.serve();
        let seconds = |times: &[u64]| times.iter().copied().max().unwrap_or(0) as f64 / 1e9;
        let disks = self.device.queue_times();
        Outcome {
            all: seconds(&self.free).max(seconds(&self.ended)),
            io: disks.into_iter().max().unwrap_or_default().as_secs_f64(),
            communication: seconds(&self.messages),
            rearranging: seconds(&self.rearranged),
        }
    }
}

/// Every number of groups on every setting, in virtual time, and what the library
/// would choose. The second result says how near that is to the best.
pub fn irregular_pipeline() -> Result<(Vec<Line>, Vec<String>)> {
    const MIB: u64 = 1 << 20;
    let paragon = |ranks, stripe: u64, chunk: u64| {
        let name = format!(
            "paragon {ranks} ranks x 4 MiB; chunk {} MiB; stripes {} KiB",
            chunk / MIB,
            stripe >> 10
        );
        let share = 4 * MIB;
        let setting = Setting {
            ranks,
            share,
            chunk,
        };
        Machine::paragon(stripe).map(|machine| (name, machine, setting))
    };
    let pfs = |ranks, share: u64, chunk: u64| {
        let name = format!(
            "pfs {ranks} ranks x {} MiB; chunk {} MiB",
            share / MIB,
            chunk / MIB
        );
        let setting = Setting {
            ranks,
            share,
            chunk,
        };
        (name, Machine::pfs(), setting)
    };
    let cases = [
        paragon(128, 256 << 10, 4 * MIB)?,
        paragon(128, 256 << 10, MIB)?,
        paragon(128, 64 << 10, 4 * MIB)?,
        paragon(64, 256 << 10, 4 * MIB)?,
        paragon(64, 64 << 10, 4 * MIB)?,
        pfs(128, 4 * MIB, 4 * MIB),
        pfs(128, 16 * MIB, 4 * MIB),
        pfs(16, 64 * MIB, 16 * MIB),
    ];
    let (mut lines, mut notes) = (Vec::new(), Vec::new());
    for (name, machine, setting) in cases {
        for op in ["write", "read"] {
            let (more, note) = one_case((&name, op), machine, setting)?;
            lines.extend(more);
            notes.push(note);
        }
    }
    Ok((lines, notes))
}

fn one_case(
    (name, op): (&str, &'static str),
    machine: Machine,
    setting: Setting,
) -> Result<(Vec<Line>, String)> {
    let line = |op, strategy: String, seconds: f64| Line {
        system: "outcore/simulated".into(),
        bench: "irregular",
        case: name.into(),
        op,
        strategy,
        transport: "virtual time".into(),
        ranks: setting.ranks,
        useful_bytes: setting.share * setting.ranks as u64,
        best_s: seconds,
        median_s: seconds,
        ok: true,
    };
    let simulated = |groups| {
        let simulation = Simulation::new(setting, machine, groups)?;
        Ok::<_, outcore::Error>(match op {
            "write" => simulation.write(),
            _ => simulation.read(),
        })
    };
    let mut lines = Vec::new();
    let mut best = (1, f64::INFINITY);
    for groups in 1..=setting.ranks {
        // Others have groups of the same size.
        let size = |groups| setting.ranks.div_ceil(groups);
        if groups > 1 && size(groups) == size(groups - 1) {
            continue;
        }
        let outcome = simulated(groups)?;
        if outcome.all < best.1 {
            best = (groups, outcome.all);
        }
        let strategy = format!("{groups} groups");
        lines.push(line(op, strategy.clone(), outcome.all));
        for (part, seconds) in [
            ("io", outcome.io),
            ("communication", outcome.communication),
            ("rearranging", outcome.rearranging),
        ] {
            lines.push(line(part, format!("{strategy} to {op}"), seconds));
        }
    }
    let model = PipelineModel {
        ranks: setting.ranks,
        chunk: setting.chunk,
        chunks: setting.chunks(),
        message: machine.message,
        rearrange: machine.rearrange,
        storage: PipelineStorage::Device(machine.device),
    };
    let chosen = model.best().0;
    let (plain, auto) = (simulated(1)?.all, simulated(chosen)?.all);
    let all = simulated(setting.ranks)?.all;
    lines.push(line(op, format!("auto ({chosen} groups)"), auto));
    let note = format!(
        "{name}: {op}: best {} groups {:.3} s; plain {:.2} times that, {} groups {:.2} times, auto ({chosen}) {:.3} times",
        best.0,
        best.1,
        plain / best.1,
        setting.ranks,
        all / best.1,
        auto / best.1
    );
    Ok((lines, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> Setting {
        Setting {
            ranks: 8,
            share: 1 << 20,
            chunk: 1 << 18,
        }
    }

    #[test]
    fn nothing_is_faster_than_the_busiest_disk_or_rank() {
        for groups in 1..=8 {
            for write in [true, false] {
                let machine = Machine::paragon(64 << 10).unwrap();
                let simulation = Simulation::new(setting(), machine, groups).unwrap();
                let outcome = match write {
                    true => simulation.write(),
                    false => simulation.read(),
                };
                assert!(outcome.all >= outcome.io);
                assert!(outcome.all >= outcome.communication + outcome.rearranging);
            }
        }
    }

    #[test]
    fn one_group_does_one_thing_after_the_other() {
        let machine = Machine {
            device: DeviceModel {
                latency: Duration::from_millis(1),
                bandwidth: f64::INFINITY,
                queues: Queues::Streams(8),
            },
            message: Cost {
                each: 1e-3,
                byte: 0.0,
            },
            rearrange: 0.0,
        };
        // Four times seven messages and a request.
        let simulation = Simulation::new(setting(), machine, 1).unwrap();
        assert!((simulation.write().all - 0.032).abs() < 1e-9);
    }

    /// No et al. 1998, section 4.1: some groups are best where ranks far exceed disks.
    #[test]
    fn the_finding_of_the_paper() {
        let (lines, _) = irregular_pipeline().unwrap();
        let case = "paragon 128 ranks x 4 MiB; chunk 4 MiB; stripes 256 KiB";
        let of = |strategy: &str| {
            let mut lines = lines.iter();
            let found = lines
                .find(|line| line.case == case && line.op == "write" && line.strategy == strategy);
            found.unwrap().best_s
        };
        assert!(of("4 groups") < of("1 groups"));
        assert!(of("4 groups") < of("128 groups"));
    }
}
