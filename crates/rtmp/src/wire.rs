//! The part that both sides share below commands: handshake, chunks, control messages, acknowledgements, output.

use std::time::Instant;

use bytes::Bytes;

use crate::aggregate::{Aggregate, Part};
use crate::allowance::{Allowance, MESSAGE};
use crate::chunk_reader::{ChunkReader, Message, ReadingState};
use crate::chunk_writer::{ChunkStreamId, ChunkWriter, Head, OUR_CHUNK_SIZE};
use crate::dropped::Dropped;
use crate::handshake::Handshake;
use crate::message::{
    ABORT, ACKNOWLEDGEMENT, AGGREGATE, AUDIO, COMMAND_AMF0, COMMAND_AMF3, Command, DATA_AMF0,
    DATA_AMF3, MediaKind, MediaMessage, PING_REQUEST, PING_RESPONSE, SET_CHUNK_SIZE,
    SET_PEER_BANDWIDTH, STREAM_EOF, USER_CONTROL, VIDEO, WINDOW_ACK_SIZE, normalise_data,
};
use crate::rate::Rate;
use crate::{Error, Framed, Limits, Output};

/// The window we ask peers to acknowledge by.
pub(crate) const OUR_WINDOW: u32 = 2_500_000;
/// The message stream returned for the first createStream (RTMP 7.2.1.3).
pub(crate) const MEDIA_STREAM: u32 = 1;

/// What a session receives; control messages are handled here.
#[derive(Debug)]
pub(crate) enum Incoming {
    Command {
        stream: u32,
        command: Command,
    },
    Media(MediaMessage),
    /// The peer's stream has ended (StreamEOF, RTMP 7.1.7).
    StreamEof {
        stream: u32,
    },
    /// A message was left out.
    Dropped(Dropped),
}

#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) output: Output,
    handshake: Handshake,
    reader: ChunkReader,
    writer: ChunkWriter,
    /// The aggregate that is being split.
    aggregate: Aggregate,
    allowance: Allowance,
    pings: Rate,
    /// Limit of script data within an aggregate, the same as outside.
    amf_limit: usize,
    answer_limit: usize,
    received: u64,
    acknowledged: u64,
    /// The peer expects an acknowledgement after this many bytes.
    window: u64,
}

impl Wire {
    pub(crate) fn server(limits: Limits, seed: [u8; 8], now: Instant) -> Self {
        Self::new(limits, Handshake::server(seed), Output::default(), now)
    }

    pub(crate) fn client(limits: Limits, seed: [u8; 8], now: Instant) -> Self {
        let mut output = Output::default();
        Self::new(limits, Handshake::client(seed, &mut output), output, now)
    }

    fn new(limits: Limits, handshake: Handshake, output: Output, now: Instant) -> Self {
        Self {
            output,
            handshake,
            allowance: Allowance::new(limits.turn_work),
            pings: Rate::new(limits.pings_per_second, now),
            amf_limit: limits.amf_bytes,
            answer_limit: limits.answer_bytes,
            reader: ChunkReader::new(limits),
            writer: ChunkWriter::new(),
            aggregate: Aggregate::default(),
            received: 0,
            acknowledged: 0,
            window: u64::from(OUR_WINDOW),
        }
    }

    /// The wire of a server in a running publish.
    pub(crate) fn resume(limits: Limits, state: &ReadingState, now: Instant) -> Self {
        let reader = ChunkReader::resume(limits.clone(), state);
        Self { reader, ..Self::new(limits, Handshake::done(), Output::default(), now) }
    }

    /// The reading state, if the reader is between two messages.
    pub(crate) fn reading_state(&self) -> Option<ReadingState> {
        self.reader.state().filter(|_| self.is_open() && self.aggregate.is_empty())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.handshake.is_done()
    }

    /// From now on messages up to the longer limit are allowed.
    pub(crate) const fn set_accepted(&mut self) {
        self.reader.set_accepted();
    }

    /// See [`ChunkReader::missing_bytes`].
    pub(crate) fn missing_bytes(&self) -> usize {
        self.reader.missing_bytes()
    }

    /// Starts a new turn of the driver with a fresh allowance of work.
    pub(crate) fn begin_turn(&mut self) {
        self.allowance.begin_turn();
    }

    /// Whether something besides input is to be read in the next turn: messages from an aggregate, or what the reader has
    /// taken already.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.aggregate.is_empty() || self.reader.has_pending()
    }

    /// Total bytes received, including those not read yet.
    pub(crate) const fn received(&self) -> u64 {
        self.received
    }

    /// Counts received bytes. Called once per input, before [`Wire::next`].
    pub(crate) fn count(&mut self, bytes: usize) {
        self.received += bytes as u64;
        let is_due = self.is_open() && self.received - self.acknowledged >= self.window;
        // For a peer that does not read, a later acknowledgement replaces those that would only wait.
        if is_due && self.has_room_for_answers() {
            self.acknowledged = self.received;
            // The counter wraps at 32 bits (RTMP 5.4.3).
            #[allow(clippy::cast_possible_truncation, reason = "the wire's counter wraps")]
            let count = self.received as u32;
            self.send_control(ACKNOWLEDGEMENT, &count.to_be_bytes());
        }
    }

    /// The next message in `input`; `None` when all of it was taken or the turn's allowance is spent.
    pub(crate) fn next(
        &mut self,
        input: &mut &[u8],
        now: Instant,
    ) -> Result<Option<Incoming>, Error> {
        if !self.handshake.is_done() {
            self.handshake.read(input, &mut self.output)?;
        }
        if !self.handshake.is_done() {
            return Ok(None);
        }
        loop {
            // At this point every answer so far has been counted, whether from here or from the session above.
            if self.output.answer_bytes() > self.answer_limit {
                return Err(Error::AnswerBytesLimit);
            }
            if self.allowance.is_spent() {
                return Ok(None);
            }
            if !self.aggregate.is_empty()
                && let Some(part) = self.aggregate.next()
            {
                self.allowance.spend(MESSAGE);
                match self.read_part(part) {
                    Some(incoming) => return Ok(Some(incoming)),
                    None => continue,
                }
            }
            let read = self.reader.read(input, &mut self.allowance)?;
            let Some(message) = read else { return Ok(None) };
            self.allowance.spend(MESSAGE);
            if let Some(incoming) = self.handle_message(message, now) {
                return Ok(Some(incoming));
            }
        }
    }

    fn read_part(&mut self, part: Part) -> Option<Incoming> {
        match part {
            Part::Media(message) if message.kind == MediaKind::Script => {
                self.allowance.spend_amf(message.payload.len());
                let is_too_long = message.payload.len() > self.amf_limit;
                let too_long = Incoming::Dropped(Dropped::TooLong);
                Some(if is_too_long { too_long } else { Incoming::Media(message) })
            }
            Part::Media(message) => Some(Incoming::Media(message)),
            Part::Other => None,
            Part::Cut => Some(Incoming::Dropped(Dropped::Truncated)),
        }
    }

    fn handle_message(&mut self, message: Message, now: Instant) -> Option<Incoming> {
        let Message { kind, stream, timestamp, payload, dropped } = message;
        if let Some(dropped) = dropped {
            return Some(Incoming::Dropped(dropped));
        }
        let media =
            |kind, payload| Some(Incoming::Media(MediaMessage { kind, timestamp, payload }));
        match kind {
            AUDIO => media(MediaKind::Audio, payload),
            VIDEO => media(MediaKind::Video, payload),
            DATA_AMF0 | DATA_AMF3 => {
                self.allowance.spend_amf(payload.len());
                media(MediaKind::Script, normalise_data(payload))
            }
            COMMAND_AMF0 | COMMAND_AMF3 => {
                self.allowance.spend_amf(payload.len());
                let command = Command::parse(&payload);
                let unreadable = Incoming::Dropped(Dropped::Unreadable);
                Some(command.map_or(unreadable, |command| Incoming::Command { stream, command }))
            }
            AGGREGATE => {
                self.aggregate = Aggregate::new(timestamp, payload);
                None
            }
            SET_CHUNK_SIZE | ABORT | WINDOW_ACK_SIZE => {
                let is_read = number(&payload).is_some_and(|number| self.apply(kind, number));
                (!is_read).then_some(Incoming::Dropped(Dropped::Unreadable))
            }
            USER_CONTROL => self.handle_user_control(&payload, now),
            // Acknowledgements and bandwidth require nothing from us; unknown types are ignored.
            _ => None,
        }
    }

    /// Applies a control message that consists of a number; false if the number means nothing.
    fn apply(&mut self, kind: u8, number: u32) -> bool {
        match kind {
            SET_CHUNK_SIZE => return self.reader.set_chunk_size(number),
            ABORT => self.reader.abort(number),
            // Without a window the previous one stays.
            _ if number == 0 => return false,
            _ => self.window = u64::from(number),
        }
        true
    }

    fn handle_user_control(&mut self, payload: &Bytes, now: Instant) -> Option<Incoming> {
        let (event, argument) = payload.split_first_chunk()?;
        let argument = argument.first_chunk::<4>()?;
        match u16::from_be_bytes(*event) {
            PING_REQUEST if self.has_room_for_answers() && self.pings.take(now) => {
                self.send_user_control(PING_RESPONSE, argument);
                None
            }
            PING_REQUEST => Some(Incoming::Dropped(Dropped::Excess)),
            STREAM_EOF => Some(Incoming::StreamEof { stream: u32::from_be_bytes(*argument) }),
            _ => None,
        }
    }

    /// Whether fewer answers wait for the peer than half of what ends the connection.
    const fn has_room_for_answers(&self) -> bool {
        self.output.answer_bytes() < self.answer_limit / 2
    }

    /// Announces our chunk size immediately: it must arrive before the first long answer.
    pub(crate) fn announce_chunk_size(&mut self) {
        self.send_control(SET_CHUNK_SIZE, &OUR_CHUNK_SIZE.to_be_bytes());
        self.writer.set_chunk_size(OUR_CHUNK_SIZE);
    }

    /// Announces our window and the peer's (dynamic limit).
    pub(crate) fn announce_window(&mut self) {
        self.send_control(WINDOW_ACK_SIZE, &OUR_WINDOW.to_be_bytes());
        let [a, b, c, d] = OUR_WINDOW.to_be_bytes();
        self.send_control(SET_PEER_BANDWIDTH, &[a, b, c, d, 2]);
    }

    pub(crate) fn send_user_control(&mut self, event: u16, argument: &[u8]) {
        self.send_control(USER_CONTROL, &[&event.to_be_bytes(), argument].concat());
    }

    fn send_control(&mut self, kind: u8, payload: &[u8]) {
        let head = Head { chunk_stream: ChunkStreamId::Control, kind, stream: 0, timestamp: 0 };
        self.answer(head, payload, &Bytes::new());
    }

    pub(crate) fn send_command(&mut self, stream: u32, command: &Bytes) {
        let (chunk_stream, kind) = (ChunkStreamId::Command, COMMAND_AMF0);
        let head = Head { chunk_stream, kind, stream, timestamp: 0 };
        self.answer(head, &[], command);
    }

    fn answer(&mut self, head: Head, prefix: &[u8], payload: &Bytes) {
        let before = self.output.pending_bytes();
        self.writer.write(&mut self.output, head, prefix, payload);
        self.output.count_answer(before);
    }

    pub(crate) fn send_media(
        &mut self,
        stream: u32,
        kind: MediaKind,
        timestamp: u32,
        prefix: &[u8],
        payload: &Bytes,
    ) {
        let head = media_head(stream, kind, timestamp);
        self.writer.write(&mut self.output, head, prefix, payload);
    }

    /// Sends the same message as [`Wire::send_media`] would.
    pub(crate) fn send_framed(&mut self, stream: u32, framed: &Framed) {
        if stream == MEDIA_STREAM && self.writer.chunk_size() == OUR_CHUNK_SIZE {
            self.output.put_parts(framed.parts(), framed.wire_bytes());
        } else {
            let (kind, timestamp) = (framed.kind(), framed.timestamp());
            self.send_media(stream, kind, timestamp, framed.header(), framed.payload());
        }
    }
}

/// The header of a media message; audio, video and script data have separate chunk streams.
pub(crate) const fn media_head(stream: u32, kind: MediaKind, timestamp: u32) -> Head {
    let chunk_stream = match kind {
        MediaKind::Audio => ChunkStreamId::Audio,
        MediaKind::Video => ChunkStreamId::Video,
        MediaKind::Script => ChunkStreamId::Script,
    };
    Head { chunk_stream, kind: kind.message_type(), stream, timestamp }
}

fn number(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|number| u32::from_be_bytes(*number))
}
