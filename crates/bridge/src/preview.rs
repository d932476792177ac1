//! Previews: a running publish as FLV, in buffers that JavaScript forwards unchanged.

use headgate_ingest::{PreviewRead, PreviewReader};
use napi::bindgen_prelude::{Buffer, Function, Result};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;

use crate::MediaCore;
use crate::names::PreviewEnd;
use crate::whole::whole;

/// One preview of one running publish.
#[napi]
pub struct MediaPreview(Option<PreviewReader>);

/// The result of a read: bytes, or the reason why there will be no more, or neither when nothing is available yet.
#[napi(object, object_from_js = false)]
pub struct PreviewPart {
    /// Exactly as long as its content and not shared.
    #[napi(ts_type = "Uint8Array<ArrayBuffer>")]
    pub data: Option<Buffer>,
    pub ended: Option<PreviewEnd>,
}

#[napi]
impl MediaPreview {
    /// The next bytes. When it returns neither bytes nor an end, `wake` is called once as soon as there is something to
    /// read.
    #[napi(catch_unwind)]
    pub fn read(&self) -> PreviewPart {
        let nothing = PreviewPart { data: None, ended: None };
        match self.0.as_ref().map(PreviewReader::read) {
            Some(PreviewRead::Batch(bytes)) => PreviewPart { data: Some(bytes.into()), ..nothing },
            Some(PreviewRead::Waiting) => nothing,
            Some(PreviewRead::Ended(end)) => PreviewPart { ended: Some(end.into()), ..nothing },
            None => PreviewPart { ended: Some(PreviewEnd::Closed), ..nothing },
        }
    }

    /// Closes the preview.
    #[napi(catch_unwind)]
    pub fn close(&mut self) {
        self.0 = None;
    }
}

#[napi]
impl MediaCore {
    /// Opens a running publish, or the pull of one, as FLV, starting at its cached keyframe with time 0; null when it does
    /// not run. A reader that is too slow loses frames up to the next keyframe, and after 30 s of that the preview ends.
    /// A reader that stops must call `close`.
    #[napi(catch_unwind)]
    pub fn open_preview(
        &self,
        client_id: f64,
        wake: Function<'_, (), ()>,
    ) -> Result<Option<MediaPreview>> {
        let client_id = whole(client_id)?;
        // Weak: a preview alone does not keep the process alive.
        let wake = wake.build_threadsafe_function().weak::<true>().build()?;
        let wake = Box::new(move || {
            wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        });
        Ok(self.ingest.open_preview(client_id, wake).map(|reader| MediaPreview(Some(reader))))
    }
}
