//! AAC encoders of the tests, which record what they are given.

use std::sync::{Arc, Mutex};

use headgate_transcode::{AacEncoder, Encoders};

/// One audio thread's encoders, which append their input to `samples`.
pub(in crate::switchboard) fn recording_encoders(samples: Arc<Mutex<Vec<i16>>>) -> Encoders {
    Encoders::new(move |_| Box::new(Recorder(samples.clone())))
}

/// An encoder without delay that records its input. Its frames are as long as those of 64 kbit/s.
struct Recorder(Arc<Mutex<Vec<i16>>>);

impl AacEncoder for Recorder {
    fn encode(&mut self, pcm: &[f32]) -> &[u8] {
        let rounded = pcm.iter().map(|sample| (sample * 32_768.0).round() as i16);
        self.0.lock().expect("one thread").extend(rounded);
        &[0x55; 171]
    }

    fn delay_frames(&self) -> usize {
        0
    }
}
