//! Counts what pushes generate besides the media of their stream.

use headgate_media::Irregularity;

use super::Hub;
use crate::session::silence_budget::Made;
use crate::switchboard::keys::SubscriberKey;

impl Hub {
    /// Counts silence that a push has added for its upstream.
    pub(in crate::switchboard) fn count_made(&self, key: SubscriberKey, made: Made) {
        let Some(subscriber) = self.subscribers.get(key) else { return };
        if let Some(delivery) = &subscriber.delivery {
            delivery.add_out(made.bytes);
        }
        if let Some(stream) = self.streams.get(subscriber.stream) {
            stream.record.add_out(made.bytes);
            if made.limited > 0 {
                stream.record.note_irregularity(Irregularity::FillerLimited, made.limited);
            }
        }
    }
}
