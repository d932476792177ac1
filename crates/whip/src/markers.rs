//! Whether a sender's marker ends its pictures (RFC 6184 5.1), as it should. Pure.
//!
//! A picture is complete at its marker. A sender that sets it on every slice or packet shows that by a further packet
//! of the same picture; from then on its pictures are completed by the next timestamp, one picture later.

/// Pictures of several slices in a row with a marker on the last packet alone, after which the sender is trusted again.
const PROPER_LEAST: u32 = 100;

/// The markers of one sender.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    is_distrusted: bool,
    proper: u32,
    /// The newest packet of the open picture had the marker.
    is_marked: bool,
    misplaced: u64,
}

impl Markers {
    /// The open picture continues with a packet.
    pub(crate) const fn note_packet(&mut self, marker: bool) {
        self.is_marked |= marker;
    }

    /// The picture of a packet with the marker continues.
    pub(crate) const fn note_misplaced(&mut self) {
        self.misplaced += 1;
        (self.is_distrusted, self.is_marked, self.proper) = (true, false, 0);
    }

    /// A complete picture of so many slices ends.
    pub(crate) const fn note_picture(&mut self, slices: u32) {
        if !self.is_marked {
            self.misplaced += 1;
        } else if self.is_distrusted && slices > 1 {
            self.proper += 1;
            self.is_distrusted = self.proper < PROPER_LEAST;
        }
    }

    /// The open picture ends.
    pub(crate) const fn close(&mut self) {
        self.is_marked = false;
    }

    /// Whether the newest packet of the open picture had the marker.
    pub(crate) const fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Whether that completes the picture.
    pub(crate) const fn is_end(&self) -> bool {
        self.is_marked && !self.is_distrusted
    }

    /// Markers inside a picture, and pictures without one, so far.
    pub(crate) const fn misplaced(&self) -> u64 {
        self.misplaced
    }

    /// Whether pictures are completed by the next timestamp.
    #[cfg(test)]
    pub(crate) const fn is_distrusted(&self) -> bool {
        self.is_distrusted
    }
}
