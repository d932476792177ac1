//! The thread that writes one capture: it takes the session's notes, removes secrets and writes the file. A disk that
//! is slow or full ends the capture; the session never waits for it.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use headgate_capture::{Head, Kind, Writer};
use headgate_media::flv;
use headgate_rtmp::{Limits, MediaKind, ReadingState, Scrubber};
use headgate_whip::MediaBlanker;

use crate::publish::capture::{CLOCK_BYTES, CaptureSettings, CaptureState, Note};

/// How often to check whether the capture should end while no notes arrive.
const CHECK_PAUSE: Duration = Duration::from_millis(200);
/// How long after the time limit the thread ends the capture itself, if no note makes the session do so.
const PATIENCE: Duration = Duration::from_secs(1);
/// Limit of the input that waits behind an incomplete message: several of the longest ones.
const KEPT_LIMIT_BYTES: usize = 32 << 20;

/// What is removed from the recorded inputs.
pub(crate) enum Cleaning {
    /// Secrets in commands, and the media if requested.
    Rtmp,
    /// The media if requested; packets contain neither keys nor addresses.
    Whip(Option<MediaBlanker>),
}

/// Opens the file and starts its thread.
///
/// # Errors
/// The file or the thread cannot be created.
pub(crate) fn start_capture(
    settings: &CaptureSettings,
    head: &Head,
    cleaning: Cleaning,
    notes: Receiver<Note>,
    state: Arc<CaptureState>,
) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&settings.path)?;
    let mut writing = Writing {
        file: BufWriter::new(file),
        writer: Writer::default(),
        bytes: 0,
        bytes_limit: settings.bytes_limit,
        without_media: settings.without_media,
        cleaning,
        scrubber: None,
        kept: VecDeque::new(),
        kept_bytes: 0,
        state,
    };
    writing.append(&Writer::head(head))?;
    let until = Instant::now() + settings.time_limit + PATIENCE;
    let run = move || writing.run(&notes, until);
    Builder::new().name("capture".into()).spawn(run).map(drop)
}

struct Writing {
    file: BufWriter<File>,
    writer: Writer,
    bytes: u64,
    bytes_limit: u64,
    without_media: bool,
    cleaning: Cleaning,
    scrubber: Option<Scrubber>,
    /// Notes that wait behind an input that is not yet completely scrubbed.
    kept: VecDeque<Note>,
    /// Bytes of these.
    kept_bytes: usize,
    state: Arc<CaptureState>,
}

impl Writing {
    fn run(mut self, notes: &Receiver<Note>, until: Instant) {
        let outcome = self.write_all(notes, until).and_then(|()| self.finish());
        if let Err(error) = outcome {
            self.state.stop("disk_failed");
            say!("a capture ended: {error}");
        }
        self.state.close();
    }

    fn write_all(&mut self, notes: &Receiver<Note>, until: Instant) -> io::Result<()> {
        let mut last_ns = 0;
        loop {
            match notes.recv_timeout(CHECK_PAUSE) {
                Ok(note) => {
                    self.state.note_taken(&note);
                    last_ns = note.at_ns;
                    self.take(note)?;
                    if self.bytes >= self.bytes_limit {
                        self.state.stop("size_limit");
                        break;
                    }
                    if self.kept_bytes > KEPT_LIMIT_BYTES {
                        self.state.stop("unfinished_message");
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.file.flush()?;
                    if self.state.is_stopped() {
                        break;
                    }
                    if Instant::now() >= until {
                        self.state.stop("time_limit");
                        break;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Some(scrubber) = &mut self.scrubber {
            scrubber.finish();
        }
        self.write_clean()?;
        let reason = self.state.reason();
        self.write(Kind::Finished, last_ns, reason.as_bytes())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }

    fn take(&mut self, mut note: Note) -> io::Result<()> {
        match &self.cleaning {
            Cleaning::Whip(blanker) => {
                if note.kind == Kind::Input
                    && let Some(blanker) = blanker
                {
                    blanker.blank(&mut note.body);
                }
                self.write(note.kind, note.at_ns, &note.body)
            }
            Cleaning::Rtmp => {
                let state = note.body.get(CLOCK_BYTES..).filter(|_| note.kind == Kind::State);
                let state = state.and_then(|bytes| ReadingState::read(bytes, &Limits::default()));
                let blank = self.without_media.then_some(blank as fn(MediaKind, &mut [u8]));
                let fresh = || Scrubber::new(state.as_ref(), blank);
                let scrubber = self.scrubber.get_or_insert_with(fresh);
                if note.kind == Kind::Input {
                    scrubber.handle_input(&note.body);
                }
                self.kept_bytes += note.body.len();
                self.kept.push_back(note);
                self.write_clean()
            }
        }
    }

    /// Writes the notes that are ready, in order.
    fn write_clean(&mut self) -> io::Result<()> {
        while let Some(note) = self.kept.pop_front() {
            let Some(scrubber) = &mut self.scrubber else { return Ok(()) };
            let length = note.body.len();
            if note.kind != Kind::Input {
                self.write(note.kind, note.at_ns, &note.body)?;
            } else if scrubber.clean() - scrubber.given() >= length {
                let body = scrubber.take(length);
                self.write(note.kind, note.at_ns, &body)?;
            } else {
                self.kept.push_front(note);
                return Ok(());
            }
            self.kept_bytes -= length;
        }
        Ok(())
    }

    fn write(&mut self, kind: Kind, at_ns: u64, body: &[u8]) -> io::Result<()> {
        let mut record = Vec::with_capacity(body.len() + 24);
        self.writer.record(kind, at_ns, body, &mut record);
        self.append(&record)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        self.state.set_bytes(self.bytes);
        Ok(())
    }
}

fn blank(kind: MediaKind, body: &mut [u8]) {
    match kind {
        MediaKind::Audio => flv::blank_audio(body),
        MediaKind::Video => flv::blank_video(body),
        MediaKind::Script => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// The first chunk of an audio message of `length` bytes: 12 bytes of header, 128 of content.
    fn chunk(chunk_stream: u8, length: u16) -> Vec<u8> {
        let [high, low] = length.to_be_bytes();
        let mut bytes = vec![chunk_stream, 0, 0, 0, 0, high, low, 8, 1, 0, 0, 0];
        bytes.resize(12 + 128, 0xaf);
        bytes
    }

    #[test]
    fn a_message_that_stays_incomplete_ends_the_capture_before_memory_does() {
        let path = std::env::temp_dir().join(format!("headgate-{}.capture", std::process::id()));
        let settings = CaptureSettings {
            path: path.clone(),
            header: String::new(),
            bytes_limit: u64::MAX,
            time_limit: Duration::from_secs(60),
            without_media: false,
        };
        let (is_whip, without_media, from_middle, json) = (false, false, false, String::new());
        let head = Head { is_whip, without_media, from_middle, json };
        let state = Arc::new(CaptureState::default());
        let (sender, notes) = sync_channel(4);
        start_capture(&settings, &head, Cleaning::Rtmp, notes, state.clone()).expect("it starts");
        let note = |body| Note { at_ns: 0, kind: Kind::Input, body };
        let handshake = vec![3; 1 + 2 * 1_536];
        let complete = note(chunk(6, 128).repeat(8_000)).body;
        let start = [handshake, chunk(4, 60_000)].concat();
        let rest = std::iter::repeat_n(complete, 100);
        let given = std::iter::once(start)
            .chain(rest)
            .take_while(|body| sender.send(note(body.clone())).is_ok());
        assert!((28..40).contains(&given.count()), "bounded");
        while state.status().ended.is_none() {
            std::thread::yield_now();
        }
        assert_eq!(state.status().ended, Some("unfinished_message"));
        std::fs::remove_file(path).expect("it is there");
    }
}
