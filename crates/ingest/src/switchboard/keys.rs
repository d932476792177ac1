//! Generational keys: a key that outlives what it named refers to nothing, never to something else.

use slotmap::new_key_type;

new_key_type! {
    /// A session of this worker.
    pub(crate) struct SessionKey;
    /// A live stream on this worker: published here, or fed by a relay.
    pub(crate) struct StreamKey;
    /// A subscriber's queue on a stream of this worker.
    pub(crate) struct SubscriberKey;
}
