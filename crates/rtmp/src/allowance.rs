//! Limits how much work one connection may cause in one turn of its driver. The bytes per second are limited by the
//! driver, the commands per second by `rate`.
//!
//! One unit is the cost of reading a chunk header, 20 to 35 ns; the other costs are measured relative to it and rounded
//! up.

/// A complete message: its buffer is passed on, an event is queued, and the driver parses and forwards it.
pub(crate) const MESSAGE: usize = 32;
/// Bytes of AMF0 parsed for one unit: the shortest property takes six bytes and two allocations.
const AMF_BYTES: usize = 2;
/// Bytes of payload copied into new memory for one unit.
const PAYLOAD_BYTES: usize = 128;

/// Work left in this turn. Work is spent first and checked afterwards, so one message may overdraw the allowance; what
/// was overdrawn is deducted from the next turn.
#[derive(Debug)]
pub(crate) struct Allowance {
    per_turn: i64,
    left: i64,
    /// Payload bytes that do not yet make up a unit.
    payload: usize,
}

impl Allowance {
    pub(crate) fn new(per_turn: u32) -> Self {
        let per_turn = i64::from(per_turn.max(1));
        Self { per_turn, left: per_turn, payload: 0 }
    }

    /// Starts a new turn; an unused remainder is lost.
    pub(crate) fn begin_turn(&mut self) {
        self.left = (self.left + self.per_turn).min(self.per_turn);
    }

    pub(crate) const fn is_spent(&self) -> bool {
        self.left <= 0
    }

    pub(crate) fn spend(&mut self, units: usize) {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        self.left = self.left.saturating_sub(units);
    }

    pub(crate) fn spend_payload(&mut self, bytes: usize) {
        self.payload += bytes;
        self.spend(self.payload / PAYLOAD_BYTES);
        self.payload %= PAYLOAD_BYTES;
    }

    pub(crate) fn spend_amf(&mut self, bytes: usize) {
        self.spend(bytes / AMF_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_starts_with_a_full_allowance_minus_the_overdraft() {
        let mut allowance = Allowance::new(10);
        allowance.spend(4);
        allowance.begin_turn();
        allowance.spend(9);
        assert!(!allowance.is_spent(), "nothing is saved up, nothing is owed");
        allowance.spend(1);
        assert!(allowance.is_spent());
        allowance.spend(15);
        allowance.begin_turn();
        assert!(allowance.is_spent(), "5 are still owed");
        allowance.begin_turn();
        allowance.spend(4);
        assert!(!allowance.is_spent());
        allowance.spend(1);
        assert!(allowance.is_spent());
    }

    #[test]
    fn payload_in_small_pieces_costs_as_much_as_in_one() {
        let spent = |piece: usize| {
            let mut allowance = Allowance::new(1000);
            (0..12_800 / piece).for_each(|_| allowance.spend_payload(piece));
            1000 - allowance.left
        };
        assert_eq!([1, 100, 12_800].map(spent), [100; 3]);
    }
}
