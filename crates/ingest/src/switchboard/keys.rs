//! Generational keys: one that outlives what it named leads to nothing, never to another's.

use slotmap::new_key_type;

new_key_type! {
    /// A session of this worker.
    pub(crate) struct SessionKey;
    /// A live stream on this worker: published here, or fed by a relay.
    pub(crate) struct StreamKey;
    /// A reader's queue on a stream of this worker.
    pub(crate) struct SubscriberKey;
}
