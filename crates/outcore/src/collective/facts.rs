//! [`Facts`]: what one rank knows that decides how all move their sections
//! together, as it is told to the others.

use outcore_storage::cores;

use super::exchange_cost::ExchangeCost;
use super::request::Request;
use crate::array::Array;
use crate::strategy::profile::Cost;
use crate::strategy::{Direction, Strategy};

/// The strategies of a rank that works for itself.
pub(super) const ALONE: [Strategy; 3] = [Strategy::Direct, Strategy::Sieving, Strategy::Mapped];

/// What a rank takes that works for itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Alone {
    /// The seconds if all is in the page cache; infinite where a strategy
    /// cannot be used,
    pub(super) warm: f64,
    /// and for what is not.
    pub(super) cold: f64,
}

/// What one rank knows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Facts {
    /// The share of its data that is in the page cache.
    pub(super) cached: f64,
    /// Whether they can be mapped and so moved: 1 or 0.
    pub(super) mappable: f64,
    /// The cores of its machine.
    pub(super) cores: f64,
    /// The gap that is worth moving.
    pub(super) gap: f64,
    /// With each of [`ALONE`].
    pub(super) alone: [Alone; 3],
    /// A read from the page cache, one from the device among many that wait
    /// together, a write, a copy of a run.
    pub(super) cached_read: Cost,
    pub(super) cold_read: Cost,
    pub(super) write: Cost,
    pub(super) copy: Cost,
    /// A byte that the system reads ahead by itself, and how far it does.
    pub(super) ahead: f64,
    pub(super) read_ahead: f64,
    pub(super) exchange: ExchangeCost,
}

/// The numbers of a rank.
pub(super) type Told = [f64; 23];

impl Facts {
    pub(super) fn of(
        array: &Array,
        direction: Direction,
        own: &Request,
        bounds: (u64, u64),
        exchange: ExchangeCost,
    ) -> Self {
        let profile = array.profile();
        let extent = own.end - own.start;
        let cached = match extent {
            0 => Some(1.0),
            extent => {
                let offset = array.data_offset() + own.start;
                array.store().cached(offset, extent)
            }
        };
        let cached = cached.unwrap_or(0.0);
        // A write through a mapping leaves the order of bytes as it is.
        let mappable =
            array.is_mappable() && (direction == Direction::Read || array.swap().is_none());
        let (warm, now) = (
            array.seconds_of(&own.runs, direction, 1.0),
            array.seconds_of(&own.runs, direction, cached),
        );
        let alone = ALONE.map(|strategy| {
            let find = |all: &[(Strategy, f64)]| {
                let found = all.iter().find(|(other, _)| *other == strategy);
                found.map_or(f64::INFINITY, |(_, seconds)| *seconds)
            };
            let (warm, now) = (find(&warm), find(&now));
            Alone {
                warm,
                cold: if now > warm { now - warm } else { 0.0 },
            }
        });
        Self {
            cached,
            mappable: f64::from(u8::from(mappable)),
            cores: cores() as f64,
            gap: array.gap(bounds, direction) as f64,
            alone,
            cached_read: profile.cached_read,
            cold_read: Cost {
                each: profile.cold_read.each / profile.parallel,
                ..profile.cold_read
            },
            write: profile.write,
            copy: profile.copy,
            ahead: profile.ahead,
            read_ahead: profile.read_ahead as f64,
            exchange,
        }
    }

    /// The strategy that is fastest for this rank, if it works for itself.
    pub(super) fn best_alone(&self) -> Alone {
        let all = self.alone.into_iter();
        all.min_by(|a, b| (a.warm + a.cold).total_cmp(&(b.warm + b.cold)))
            .expect("there are three")
    }

    pub(super) fn told(&self) -> Told {
        let [direct, sieving, mapped] = self.alone;
        let costs = [
            self.cached_read,
            self.cold_read,
            self.write,
            self.copy,
            self.exchange.message,
        ];
        let mut told = [0.0; 23];
        let alone = [direct, sieving, mapped].map(|alone| [alone.warm, alone.cold]);
        let costs = costs.map(|cost| [cost.each, cost.byte]);
        let single = [
            self.cached,
            self.mappable,
            self.cores,
            self.gap,
            self.ahead,
            self.read_ahead,
            self.exchange.meeting,
        ];
        let all = single
            .into_iter()
            .chain(alone.into_iter().flatten())
            .chain(costs.into_iter().flatten());
        told.iter_mut().zip(all).for_each(|(at, value)| *at = value);
        told
    }

    pub(super) fn of_told(told: Told) -> Self {
        let alone = |at: usize| Alone {
            warm: told[7 + 2 * at],
            cold: told[8 + 2 * at],
        };
        let cost = |at: usize| Cost {
            each: told[13 + 2 * at],
            byte: told[14 + 2 * at],
        };
        Self {
            cached: told[0],
            mappable: told[1],
            cores: told[2],
            gap: told[3],
            ahead: told[4],
            read_ahead: told[5],
            alone: [alone(0), alone(1), alone(2)],
            cached_read: cost(0),
            cold_read: cost(1),
            write: cost(2),
            copy: cost(3),
            exchange: ExchangeCost {
                meeting: told[6],
                message: cost(4),
                ..ExchangeCost::default()
            },
        }
    }
}
