//! An io_uring of TCP sockets: it receives into buffers that the kernel chooses, sends from them, and submits many of
//! both in one system call. The only unsafe code of this crate. It is sound because the memory that the kernel reads
//! and writes is never freed, and no reference to its bytes is ever made.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

/// Requests submitted in one system call; more of them take two.
const REQUESTS: u32 = 1_024;
/// Completions that wait for us; the kernel keeps further ones.
const COMPLETIONS: u32 = 8_192;
/// Sockets at a time.
const SOCKETS: u32 = 4_096;
/// Buffers, a power of two: no more than are in use at a time, so that they stay in the processor's cache.
const BUFFERS: u16 = 64;
/// Bytes of one buffer: a keyframe. The number of pages is odd, as otherwise the first bytes of all buffers would share
/// a few cache sets.
pub(super) const BUFFER_BYTES: u32 = 33 * 4_096;
const PAGE: usize = 4_096;
const GROUP: u16 = 0;
/// From this size on a send in place is worth its second completion, bytes.
const IN_PLACE_FROM: u32 = 10_000;

const CONNECTION: u64 = 0;
const RECEIVE: u64 = 1;
const SEND: u64 = 2;

/// How the kernel gets the bytes of a large send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sends {
    /// Copied, as by `send`.
    Copied,
    /// Read in place (`IORING_OP_SEND_ZC` from registered buffers).
    InPlace,
}

/// How long a receive stays in force.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Receive {
    /// Until it has received something.
    Once,
    /// Until the connection ends or no buffer is free.
    Many,
}

/// Received bytes; the buffer must be sent or given back.
pub(super) struct Buffer {
    id: u16,
    /// Bytes.
    pub(super) length: u32,
}

/// The result of a receive.
pub(super) enum Received {
    Bytes(Buffer),
    /// No buffer was free.
    Starved,
    Closed,
}

/// What the kernel has done.
pub(super) enum Event {
    /// A connection can be accepted.
    Connection,
    /// A receive of this socket. `is_armed`: it stays in force.
    Received { socket: usize, received: Received, is_armed: bool },
    /// A send of this socket was taken whole, or the connection is broken; its buffer is free again.
    Sent { socket: usize },
}

pub(super) struct Ring {
    ring: IoUring,
    sends: Sends,
    /// `BUFFERS` times `BUFFER_BYTES`. Never freed; the kernel writes to it at any time.
    pool: NonNull<u8>,
    /// The free ones, as `BUFFERS` entries from a page boundary on. Never freed; the kernel reads it at any time.
    free: NonNull<BufRingEntry>,
    tail: u16,
    completed: Vec<cqueue::Entry>,
}

impl Ring {
    /// Fails where the kernel does not support or allow io_uring.
    pub(super) fn new(sends: Sends) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .build(REQUESTS)?;
        ring.submitter().register_files_sparse(SOCKETS)?;
        let pool = pages(usize::from(BUFFERS) * BUFFER_BYTES as usize);
        let free = pages(usize::from(BUFFERS) * size_of::<BufRingEntry>()).cast::<BufRingEntry>();
        // SAFETY: `free` is a page-aligned allocation of `BUFFERS` entries that is never freed.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                free.as_ptr() as u64,
                BUFFERS,
                GROUP,
                0,
            )?;
        }
        if sends == Sends::InPlace {
            let length = usize::from(BUFFERS) * BUFFER_BYTES as usize;
            let whole = libc::iovec { iov_base: pool.as_ptr().cast(), iov_len: length };
            // SAFETY: the pool is that long and is never freed.
            unsafe { ring.submitter().register_buffers(&[whole])? };
        }
        let mut ring = Self { ring, sends, pool, free, tail: 0, completed: Vec::new() };
        for id in 0..BUFFERS {
            ring.give_back(id);
        }
        Ok(ring)
    }

    /// Reports every incoming connection.
    pub(super) fn listen(&mut self, listener: &TcpListener) -> io::Result<()> {
        let events = libc::POLLIN.unsigned_abs().into();
        let poll = opcode::PollAdd::new(Fd(listener.as_raw_fd()), events).multi(true).build();
        self.push(poll.user_data(CONNECTION))
    }

    /// Registers a socket under a number below `SOCKETS` that has no request in force.
    pub(super) fn add(&mut self, socket: usize, stream: &TcpStream) -> io::Result<()> {
        self.ring.submitter().register_files_update(number(socket), &[stream.as_raw_fd()])?;
        Ok(())
    }

    pub(super) fn remove(&mut self, socket: usize) -> io::Result<()> {
        self.ring.submitter().register_files_update(number(socket), &[-1])?;
        Ok(())
    }

    pub(super) fn receive(&mut self, socket: usize, receive: Receive) -> io::Result<()> {
        let file = Fixed(number(socket));
        let request = match receive {
            Receive::Once => opcode::Recv::new(file, std::ptr::null_mut(), BUFFER_BYTES)
                .buf_group(GROUP)
                .build()
                .flags(squeue::Flags::BUFFER_SELECT),
            Receive::Many => opcode::RecvMulti::new(file, GROUP).build(),
        };
        self.push(request.user_data(RECEIVE | (socket as u64) << 8))
    }

    /// One at a time for each socket: the kernel keeps no order among several.
    pub(super) fn send(&mut self, socket: usize, buffer: Buffer) -> io::Result<()> {
        let Buffer { id, length } = buffer;
        let file = Fixed(number(socket));
        let bytes = self.bytes_of(id).cast_const();
        let flags = libc::MSG_WAITALL | libc::MSG_NOSIGNAL;
        let is_in_place = self.sends == Sends::InPlace && length >= IN_PLACE_FROM;
        let request = if is_in_place {
            opcode::SendZc::new(file, bytes, length).buf_index(Some(0)).flags(flags).build()
        } else {
            opcode::Send::new(file, bytes, length).flags(flags).build()
        };
        self.push(request.user_data(SEND | (socket as u64) << 8 | u64::from(id) << 40))
    }

    /// Submits the requests and waits for `wanted` completions, until the timeout if there is one; one system call.
    pub(super) fn submit(&mut self, wanted: usize, timeout: Option<Duration>) -> io::Result<()> {
        let submitter = self.ring.submitter();
        let outcome = match timeout {
            None => submitter.submit_and_wait(wanted),
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                submitter.submit_with_args(wanted, &SubmitArgs::new().timespec(&timeout))
            }
        };
        match outcome {
            Err(error) if !is_passing(&error) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// What the kernel has done since the last call.
    pub(super) fn take_events(&mut self, events: &mut Vec<Event>) {
        let mut completed = std::mem::take(&mut self.completed);
        completed.extend(self.ring.completion());
        for entry in completed.drain(..) {
            events.extend(self.event_of(&entry));
        }
        self.completed = completed;
    }

    fn event_of(&mut self, entry: &cqueue::Entry) -> Option<Event> {
        let (result, flags) = (entry.result(), entry.flags());
        let socket = (entry.user_data() >> 8 & 0xffff_ffff) as usize;
        match entry.user_data() & 0xff {
            CONNECTION => Some(Event::Connection),
            RECEIVE => {
                let is_armed = cqueue::more(flags);
                let received = match (u32::try_from(result), cqueue::buffer_select(flags)) {
                    (Ok(length), Some(id)) if length > 0 => Received::Bytes(Buffer { id, length }),
                    (_, Some(id)) => {
                        self.give_back(id);
                        Received::Closed
                    }
                    (_, None) if result == -libc::ENOBUFS => Received::Starved,
                    (_, None) => Received::Closed,
                };
                Some(Event::Received { socket, received, is_armed })
            }
            // A send in place: its bytes are still needed, and a second completion reports when they are not.
            _ if cqueue::more(flags) => None,
            _ => {
                self.give_back((entry.user_data() >> 40) as u16);
                Some(Event::Sent { socket })
            }
        }
    }

    /// Gives back a buffer that is not sent.
    pub(super) fn discard(&mut self, buffer: Buffer) {
        self.give_back(buffer.id);
    }

    fn give_back(&mut self, id: u16) {
        let address = self.bytes_of(id) as u64;
        // SAFETY: the entry is within the `BUFFERS` of `free`, and the kernel does not read it before the tail covers
        // it. No other reference to it exists: this is the only place that makes one.
        let entry = unsafe { &mut *self.free.as_ptr().add((self.tail % BUFFERS).into()) };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is an aligned 16-bit field of the first entry, which is zeroed or written, is never freed,
        // and is written only here.
        unsafe {
            let tail = BufRingEntry::tail(self.free.as_ptr()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }

    fn bytes_of(&self, id: u16) -> *mut u8 {
        self.pool.as_ptr().wrapping_add(usize::from(id % BUFFERS) * BUFFER_BYTES as usize)
    }

    fn push(&mut self, request: squeue::Entry) -> io::Result<()> {
        if self.ring.submission().is_full() {
            self.ring.submit()?;
        }
        // SAFETY: what a request points to is a buffer of the pool or, where the kernel chooses one, of those that were
        // registered: memory that is never freed and that nothing else refers to.
        unsafe { self.ring.submission().push(&request) }.map_err(io::Error::other)
    }
}

/// Zeroed, page-aligned memory that is never freed.
fn pages(bytes: usize) -> NonNull<u8> {
    let layout = Layout::from_size_align(bytes.max(1), PAGE).expect("a page is a power of two");
    // SAFETY: the layout's size is not zero.
    NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

fn number(socket: usize) -> u32 {
    u32::try_from(socket).unwrap_or(u32::MAX)
}

/// The timeout has passed, a signal came, or completions wait to be taken first.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN))
}
