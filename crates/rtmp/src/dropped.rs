//! What a session leaves out of a publisher's input without ending the publish.

/// Why a message, or a part of it, was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// A command, data or control message that cannot be read, in whole or in part; what could be read was used.
    Unreadable,
    /// A message that another began before it was complete, or an aggregate that ends inside one of its messages; those
    /// before it were used.
    Truncated,
    /// A message longer than allowed.
    TooLong,
    /// A message beyond the rate at which its kind is accepted.
    Excess,
}
