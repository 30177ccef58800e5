//! Procedure calls on ranks that are threads: with shared memory, and as if
//! they had none.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use outcore::{Call, Comm, Error, Procedure, ProcedureFault, Procedures, Result, ServerOptions};
use outcore_transport::threads;

use crate::apart::Apart;

const RANKS: [usize; 5] = [1, 2, 3, 5, 16];

/// Runs `program` on all numbers of ranks, together and apart.
fn everywhere(program: impl Fn(&Comm) -> Result<()> + Sync) {
    for ranks in RANKS {
        outcore::run(ranks, &program).unwrap();
        outcore::run(ranks, |comm| program(&Apart::comm(comm))).unwrap();
    }
}

/// Bytes that both sides can compute.
fn bytes(from: usize, to: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 7 + at / 251 + from * 31 + to * 17) as u8)
        .collect()
}

/// A procedure that turns all bytes round, and says who has called what.
fn register_mirror(procedures: &Procedures, rank: usize) -> Result<Procedure> {
    procedures.register("mirror", move |request, response| {
        response.header = request.header().to_vec();
        response.header.push(request.caller() as u8);
        response.header.push(rank as u8);
        let data = request.data()?;
        let target = response.data()?;
        for (place, byte) in target.iter_mut().zip(data) {
            *place = !byte;
        }
        response.set_len(data.len())
    })
}

fn mirrored(data: &[u8]) -> Vec<u8> {
    data.iter().map(|byte| !byte).collect()
}

#[test]
fn data_of_any_size_goes_both_ways() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let procedures = Procedures::start(comm)?;
        let mirror = register_mirror(&procedures, rank)?;
        let sizes = [0, 1, 100, 4000, 4032, 5000, 70_000, 300_000];
        for (round, len) in sizes.into_iter().enumerate() {
            for to in (0..size).map(|step| (rank + step) % size) {
                let header = bytes(rank, to, sizes[(round + to) % 7]);
                let data = bytes(to, rank, len);
                let mut response = vec![0; len + 10];
                let reply = procedures.call(to, mirror, &header, &data, &mut response)?;
                assert_eq!(reply.len, len);
                assert_eq!(response[..len], mirrored(&data));
                assert_eq!(response[len..], [0; 10]);
                let (echo, who) = reply.header.split_at(header.len());
                assert_eq!(echo, header);
                assert_eq!(who, [rank as u8, to as u8]);
            }
        }
        procedures.close()
    });
}

#[test]
fn many_calls_are_under_way_at_once() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let procedures = Procedures::start(comm)?;
        let mirror = register_mirror(&procedures, rank)?;
        // More than there are slots, awaited in another order.
        let mut calls = Vec::new();
        for number in 0..40_usize {
            let to = (rank + number) % size;
            let data = bytes(rank, to, number * 331);
            let room = vec![0; data.len()];
            let call = procedures.start_call(to, mirror, &[number as u8], data, room)?;
            calls.push((number, to, call));
        }
        for (number, to, call) in calls.into_iter().rev() {
            assert_eq!(call.rank(), to);
            let answer = call.wait()?;
            let data = bytes(rank, to, number * 331);
            assert_eq!(answer.header, [number as u8, rank as u8, to as u8]);
            assert_eq!(answer.data, mirrored(&data));
            assert_eq!(answer.request, data);
        }
        procedures.close()
    });
}

#[test]
fn calls_of_one_rank_are_served_in_their_order() {
    for ranks in [1, 2, 3] {
        let program = |comm: &Comm| {
            let (rank, size) = (comm.rank(), comm.size());
            let procedures = Procedures::start(comm)?;
            let seen = Arc::new(Mutex::new(vec![Vec::new(); size]));
            let kept = seen.clone();
            let note = procedures.register("note", move |request, _| {
                let (from, number) = (request.header()[0], request.header()[1]);
                let mut seen = kept.lock().map_err(|_| Error::Invalid("poisoned".into()))?;
                seen[usize::from(from)].push(number);
                Ok(())
            })?;
            let to = (rank + 1) % size;
            for round in 0..20_u8 {
                // Slots become free in the middle, and are used again.
                let mut calls = std::collections::VecDeque::new();
                for number in 0..250_u8 {
                    let header = [rank as u8, number];
                    calls.push_back(procedures.start_call(to, note, &header, vec![], vec![])?);
                    if (number ^ round) % 3 == 0 {
                        calls.pop_front().expect("one was started").wait()?;
                    }
                }
                calls
                    .into_iter()
                    .try_for_each(|call| call.wait().map(drop))?;
                comm.barrier()?;
                let from = (rank + size - 1) % size;
                let mut seen = seen.lock().expect("nobody panics");
                assert_eq!(seen[from], (0..250).collect::<Vec<u8>>(), "round {round}");
                seen[from].clear();
                drop(seen);
                comm.barrier()?;
            }
            procedures.close()
        };
        outcore::run(ranks, program).unwrap();
    }
}

#[test]
fn any_of_several_calls_is_awaited() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let procedures = Procedures::start(comm)?;
        let number = procedures.register("number", |request, response| {
            response.header = request.header().to_vec();
            Ok(())
        })?;
        let mut calls = Vec::new();
        for call in 0..30_u8 {
            let to = (rank + usize::from(call)) % size;
            calls.push(procedures.start_call(to, number, &[call], vec![], vec![])?);
        }
        let mut came = Vec::new();
        while !calls.is_empty() {
            let place = Call::wait_any(&mut calls)?;
            let mut call = calls.swap_remove(place);
            assert!(call.test()?);
            came.extend(call.wait()?.header);
        }
        came.sort_unstable();
        assert_eq!(came, (0..30).collect::<Vec<u8>>());
        assert!(Call::wait_any(&mut []).is_err());
        procedures.close()
    });
}

#[test]
fn a_call_is_tested_until_it_is_over() {
    everywhere(|comm| {
        let procedures = Procedures::start(comm)?;
        let mirror = register_mirror(&procedures, comm.rank())?;
        let next = (comm.rank() + 1) % comm.size();
        let mut call = procedures.start_call(next, mirror, &[], vec![1; 9000], vec![0; 9000])?;
        while !call.test()? {
            thread::yield_now();
        }
        assert_eq!(call.wait()?.data, [254; 9000]);
        procedures.close()
    });
}

#[test]
fn data_is_read_and_written_piece_by_piece() {
    everywhere(|comm| {
        let procedures = Procedures::start(comm)?;
        let pieces = procedures.register("pieces", |request, response| {
            let half = request.data_len() / 2;
            let mut part = vec![0; request.data_len() - half];
            request.read(half, &mut part)?;
            assert!(request.read(half, &mut vec![0; part.len() + 1]).is_err());
            assert!(response.write(1, &vec![0; response.room()]).is_err());
            // The second half comes first; the last byte through the room.
            response.write(0, &part)?;
            request.read(0, &mut part[..half])?;
            let rest = response.room() - half;
            response.write(rest, &part[..half])?;
            assert_eq!(response.data_len(), response.room());
            if half > 0 {
                let last = response.room() - 1;
                response.data()?[last] = 77;
            }
            Ok(())
        })?;
        let next = (comm.rank() + 1) % comm.size();
        for len in [0, 2, 999, 4032, 100_001] {
            let data = bytes(1, 2, len);
            let mut response = vec![0; len];
            let reply = procedures.call(next, pieces, &[], &data, &mut response)?;
            assert_eq!(reply.len, len);
            let mut expected = data[len / 2..].to_vec();
            expected.extend_from_slice(&data[..len / 2]);
            if len / 2 > 0 {
                expected[len - 1] = 77;
            }
            assert!(response == expected, "{len} bytes");
        }
        procedures.close()
    });
}

#[test]
fn threads_use_the_callers_memory_in_place() {
    outcore::run(2, |comm| {
        let procedures = Procedures::start(comm)?;
        let place = procedures.register("place", |request, response| {
            let at = [request.data()?.as_ptr(), response.data()?.as_ptr()];
            response.header = at
                .iter()
                .flat_map(|at| (*at as usize).to_ne_bytes())
                .collect();
            Ok(())
        })?;
        let (data, mut room) = (vec![1; 50_000], vec![0; 60_000]);
        let at = [data.as_ptr() as usize, room.as_ptr() as usize];
        let reply = procedures.call(1 - comm.rank(), place, &[], &data, &mut room)?;
        let expected: Vec<u8> = at.iter().flat_map(|at| at.to_ne_bytes()).collect();
        assert_eq!(reply.header, expected);
        procedures.close()
    })
    .unwrap();
}

/// Many threads of many ranks add to numbers of all ranks.
#[test]
fn everybody_calls_everybody() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let procedures = Procedures::start(comm)?;
        let sum = Arc::new(AtomicU64::new(0));
        let own = sum.clone();
        let add = procedures.register("add", move |request, response| {
            let by = request.header().first_chunk().copied().unwrap_or_default();
            let old = own.fetch_add(u64::from_ne_bytes(by), Ordering::Relaxed);
            response.header = old.to_ne_bytes().to_vec();
            Ok(())
        })?;
        let calls = 200 / size;
        thread::scope(|scope| {
            let procedures = &procedures;
            for worker in 0..3 {
                scope.spawn(move || {
                    for call in 0..calls {
                        let (to, by) = ((rank + call + worker) % size, (call + worker) as u64);
                        let header = by.to_ne_bytes();
                        procedures.call(to, add, &header, &[], &mut []).unwrap();
                    }
                });
            }
        });
        comm.barrier()?;
        let total = comm.all_reduce_one(sum.load(Ordering::Relaxed), outcore::Op::Sum)?;
        let expected: usize = (0..3)
            .flat_map(|worker| (0..calls).map(move |call| call + worker))
            .sum();
        assert_eq!(total, (size * expected) as u64);
        procedures.close()
    });
}

#[test]
fn errors_and_panics_reach_the_caller_alone() {
    everywhere(|comm| {
        let procedures = Procedures::start(comm)?;
        let fragile = procedures.register("fragile", |request, _| match request.header() {
            [0] => Err(Error::Invalid("no luck".into())),
            [1] => panic!("on purpose: {}", request.caller()),
            _ => Ok(()),
        })?;
        let next = (comm.rank() + 1) % comm.size();
        let call = |header: &[u8]| procedures.call(next, fragile, header, &[], &mut []);
        let fault = |outcome: Result<_>| match outcome.map(drop) {
            Err(Error::Procedure {
                rank,
                procedure,
                fault,
            }) => {
                assert_eq!((rank, procedure.as_str()), (next, "fragile"));
                fault
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(fault(call(&[0])), ProcedureFault::Failed("no luck".into()));
        let text = format!("on purpose: {}", comm.rank());
        assert_eq!(fault(call(&[1])), ProcedureFault::Panicked(text));
        let started = procedures.start_call(next, fragile, &[0], vec![], vec![])?;
        let error = started.wait().unwrap_err().to_string();
        assert_eq!(error, format!("procedure fragile on rank {next}: no luck"));
        call(&[2])?;
        procedures.close()
    });
}

#[test]
fn handles_and_ranks_that_are_not_are_refused() {
    everywhere(|comm| {
        let (one, other) = (Procedures::start(comm)?, Procedures::start(comm)?);
        let nothing = one.register("nothing", |_, _| Ok(()))?;
        let foreign = other.register("nothing", |_, _| Ok(()))?;
        let call = |rank, procedure| one.call(rank, procedure, &[], &[], &mut []);
        assert!(call(comm.size(), nothing).is_err());
        assert!(matches!(call(0, foreign), Err(Error::Invalid(_))));
        assert!(one.start_call(0, foreign, &[], vec![], vec![]).is_err());
        call(0, nothing)?;
        other.call(0, foreign, &[], &[], &mut [])?;
        // Two servers of one rank do not meddle.
        other.close()?;
        call(comm.size() - 1, nothing)?;
        let clone = one.clone();
        one.close()?;
        assert!(clone.call(0, nothing, &[], &[], &mut []).is_err());
        Ok(())
    });
}

#[test]
fn ranks_must_register_the_same() {
    everywhere(|comm| {
        let procedures = Procedures::start(comm)?;
        let first = procedures.register("first", |_, _| Ok(()))?;
        let odd = comm.rank() == comm.size() - 1 && comm.size() > 1;
        let name = if odd { "another" } else { "second" };
        let second = procedures.register(name, |_, _| Ok(()));
        assert_eq!(second.is_ok(), comm.size() == 1);
        if let Err(error) = second {
            let text = error.to_string();
            assert!(
                text.contains("another") && text.contains("second"),
                "{text}"
            );
        }
        assert!(procedures.register("first", |_, _| Ok(())).is_err());
        let third = procedures.register("third", |_, response| {
            response.header = vec![3];
            Ok(())
        })?;
        let next = (comm.rank() + 1) % comm.size();
        procedures.call(next, first, &[], &[], &mut [])?;
        let reply = procedures.call(next, third, &[], &[], &mut [])?;
        assert_eq!(reply.header, [3]);
        procedures.close()
    });
}

/// A rank that ends early answers no more, and who calls it is told.
#[test]
fn a_rank_that_has_finished_is_reported() {
    for apart in [false, true] {
        for ranks in [2, 3, 5, 16] {
            outcore::run(ranks, |comm| {
                let comm = &if apart { Apart::comm(comm) } else { comm.clone() };
                let procedures = Procedures::start(comm)?;
                let nothing = procedures.register("nothing", |_, _| Ok(()))?;
                comm.barrier()?;
                if comm.rank() == 0 {
                    return Ok(());
                }
                // Calls of all kinds, before and after the end.
                let mut calls = 0;
                let error = loop {
                    let outcome = match calls % 2 {
                        0 => procedures.call(0, nothing, &[], &[1; 100], &mut [0; 10]).map(drop),
                        _ => procedures
                            .start_call(0, nothing, &[], vec![0; 9000], vec![])?
                            .wait()
                            .map(drop),
                    };
                    calls += 1;
                    if let Err(error) = outcome {
                        break error;
                    }
                };
                let fault = ProcedureFault::Finished;
                assert!(matches!(&error, Error::Procedure { rank: 0, fault: found, .. } if *found == fault), "{error}");
                // The others go on.
                let other = (comm.rank() % (comm.size() - 1)) + 1;
                procedures.call(other, nothing, &[], &[], &mut [])?;
                // Nobody leaves while others call.
                let part = comm.rank();
                comm.send(1, 1, &[part])?;
                if part == 1 {
                    for peer in 1..comm.size() {
                        comm.receive(peer, 1, &mut [0_usize])?;
                    }
                    for peer in 1..comm.size() {
                        comm.send(peer, 2, &[0_u8])?;
                    }
                }
                comm.receive(1, 2, &mut [0_u8])?;
                Ok::<_, Error>(())
            })
            .unwrap();
        }
    }
}

/// When a rank fails, all that wait for calls are released with its error.
#[test]
fn a_failure_of_the_run_releases_everybody() {
    for apart in [false, true] {
        for ranks in [2, 3, 5, 16] {
            for round in 0..5_usize {
                let outcomes = threads::run(ranks, |comm| -> Result<()> {
                    let comm = &if apart {
                        Apart::comm(comm)
                    } else {
                        comm.clone()
                    };
                    let procedures = Procedures::start(comm)?;
                    let slow = procedures.register("slow", |request, response| {
                        thread::sleep(Duration::from_micros(100));
                        response.write(0, &vec![1; request.data_len()])
                    })?;
                    if comm.rank() == round % ranks {
                        thread::sleep(Duration::from_millis(round as u64));
                        return Err(Error::Invalid("on purpose".into()));
                    }
                    let mut number = 0;
                    loop {
                        number += 1;
                        let to = (comm.rank() + number) % ranks;
                        let len = number % 7 * 3000;
                        if number % 2 == 0 {
                            procedures.call(to, slow, &[], &vec![0; len], &mut vec![0; len])?;
                        } else {
                            let (data, room) = (vec![0; len], vec![0; len]);
                            procedures.start_call(to, slow, &[], data, room)?.wait()?;
                        }
                    }
                });
                for (rank, outcome) in outcomes.into_iter().enumerate() {
                    let error = outcome.unwrap_err();
                    let text = error.to_string();
                    match rank == round % ranks {
                        true => assert_eq!(text, "on purpose"),
                        false => assert!(text.ends_with("on purpose"), "rank {rank}: {text}"),
                    }
                }
            }
        }
    }
}

/// A rank that does not answer for longer than its caller has patience.
#[test]
fn patience_has_an_end() {
    for apart in [false, true] {
        outcore::run(3, |comm| {
            let comm = &if apart {
                Apart::comm(comm)
            } else {
                comm.clone()
            };
            let patience = Some(Duration::from_millis(20));
            let options = ServerOptions {
                patience,
                ..Default::default()
            };
            let procedures = Procedures::start_with(comm, options)?;
            let (release, held) = mpsc::channel::<()>();
            let held = Mutex::new(held);
            let stuck = procedures.register("stuck", move |request, response| {
                if request.header() == [1] {
                    // Until the target lets go.
                    let _ = held.lock().unwrap().recv();
                }
                response.write(0, request.data()?)
            })?;
            if comm.rank() == 0 {
                let mut room = [0; 3];
                for _ in 0..20 {
                    let outcome = procedures.call(1, stuck, &[1], &[1, 2, 3], &mut room);
                    let Err(Error::Procedure { rank: 1, fault, .. }) = outcome else {
                        panic!("{outcome:?}");
                    };
                    assert_eq!(fault, ProcedureFault::Silent(Duration::from_millis(20)));
                }
                // Others answer.
                let reply = procedures.call(2, stuck, &[0], &[4, 5, 6], &mut room)?;
                assert_eq!((reply.len, room), (3, [4, 5, 6]));
                // Who waits for any of several is told of all.
                let call = |rank| procedures.start_call(rank, stuck, &[1], vec![], vec![]);
                let error = Call::wait_any(&mut [call(2)?, call(1)?]).unwrap_err();
                assert!(error.to_string().contains("ranks [1, 2]"), "{error}");
                let error = Call::wait_any(&mut [call(1)?, call(1)?]).unwrap_err();
                assert!(error.to_string().contains("on rank 1"), "{error}");
            }
            comm.barrier()?;
            drop(release);
            procedures.close()
        })
        .unwrap();
    }
}

/// Who closes waits for calls that procedures have started, and for those that these
/// have.
#[test]
fn closing_waits_for_calls_of_procedures() {
    for apart in [false, true] {
        let visits = Arc::new(AtomicUsize::new(0));
        outcore::run(3, |comm| {
            let comm = &if apart {
                Apart::comm(comm)
            } else {
                comm.clone()
            };
            let next = (comm.rank() + 1) % comm.size();
            let procedures = Procedures::start(comm)?;
            let (counted, handle) = (visits.clone(), Arc::<Mutex<Option<Procedure>>>::default());
            let known = handle.clone();
            let round = procedures.register("round", move |request, _| {
                // The others have come to their ends meanwhile.
                thread::sleep(Duration::from_millis(5));
                counted.fetch_add(1, Ordering::SeqCst);
                let (left, known) = (request.header()[0], *known.lock().unwrap());
                if let (Some(round), true) = (known, left > 0) {
                    let header = [left - 1];
                    let calls = request.procedures();
                    calls.start_call(next, round, &header, vec![], vec![])?;
                }
                Ok(())
            })?;
            *handle.lock().unwrap() = Some(round);
            comm.barrier()?;
            if comm.rank() == 0 {
                procedures.start_call(next, round, &[8], vec![], vec![])?;
            }
            procedures.close()
        })
        .unwrap();
        assert_eq!(visits.load(Ordering::SeqCst), 9);
    }
}

#[test]
fn procedures_start_calls_of_others() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let procedures = Procedures::start(comm)?;
        let visits = Arc::new(AtomicUsize::new(0));
        let own = visits.clone();
        // Goes round the ranks as often as its header says.
        let handle: Arc<Mutex<Option<Procedure>>> = Arc::default();
        let known = handle.clone();
        let round = procedures.register("round", move |request, _| {
            own.fetch_add(1, Ordering::SeqCst);
            let left = request.header()[0];
            let known = *known.lock().unwrap();
            if let (Some(round), true) = (known, left > 0) {
                let next = (rank + 1) % size;
                let header = [left - 1];
                request
                    .procedures()
                    .start_call(next, round, &header, vec![], vec![])?;
            }
            Ok(())
        })?;
        *handle.lock().unwrap() = Some(round);
        comm.barrier()?;
        procedures.call((rank + 1) % size, round, &[10], &[], &mut [])?;
        // Eleven visits for each rank.
        while comm.all_reduce_one(visits.load(Ordering::SeqCst), outcore::Op::Sum)? < 11 * size {
            thread::yield_now();
        }
        procedures.close()
    });
}

/// More calls than there are slots, and nobody waits for any.
#[test]
fn calls_that_nobody_awaits_are_made() {
    everywhere(|comm| {
        let procedures = Procedures::start(comm)?;
        let made = Arc::new(AtomicUsize::new(0));
        let own = made.clone();
        let count = procedures.register("count", move |_, _| {
            own.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })?;
        let next = (comm.rank() + 1) % comm.size();
        for _ in 0..100 {
            procedures.start_call(next, count, &[], vec![0; 100], vec![])?;
        }
        while made.load(Ordering::SeqCst) < 100 {
            comm.check()?;
            thread::yield_now();
        }
        procedures.close()
    });
}

#[test]
fn servers_that_spin_answer_too() {
    outcore::run(2, |comm| {
        let options = ServerOptions {
            spin: true,
            ..Default::default()
        };
        let procedures = Procedures::start_with(comm, options)?;
        let mirror = register_mirror(&procedures, comm.rank())?;
        for len in [0, 10, 10_000] {
            let mut response = vec![0; len];
            let data = bytes(0, 1, len);
            procedures.call(1 - comm.rank(), mirror, &[], &data, &mut response)?;
            assert_eq!(response, mirrored(&data));
        }
        procedures.close()
    })
    .unwrap();
}

#[test]
fn groups_have_procedures_of_their_own() {
    outcore::run(5, |comm| {
        let all = Procedures::start(comm)?;
        let part = comm
            .split(Some(comm.rank() as u64 % 2), 0)?
            .expect("a colour was given");
        let some = Procedures::start(&part)?;
        let of_all = register_mirror(&all, comm.rank())?;
        let of_some = register_mirror(&some, part.rank())?;
        let (next, beside) = ((comm.rank() + 1) % 5, (part.rank() + 1) % part.size());
        let reply = all.call(next, of_all, &[], &[], &mut [])?;
        assert_eq!(reply.header, [comm.rank() as u8, next as u8]);
        let reply = some.call(beside, of_some, &[], &[], &mut [])?;
        assert_eq!(reply.header, [part.rank() as u8, beside as u8]);
        some.close()?;
        all.close()
    })
    .unwrap();
}
