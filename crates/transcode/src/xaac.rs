//! AAC-LC encoding by libxaac, on memory we allocate. The only unsafe code in this crate.
//!
//! libxaac requests 57 MB per encoder, clears all of it, and uses some hundred KiB. It is therefore given anonymous
//! mappings, and pages that are still zero after `create` are returned to the system: they read as zero either way.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use libxaac_sys as xaac;

use super::encoder::{AacEncoder, EncoderError, EncoderKind};
use headgate_media::aac::SAMPLES_PER_FRAME;
use headgate_media::opus::SAMPLE_RATE;

/// Samples by which a decoder's output lags behind the encoder's input: 1024 for the transform's overlap and 576 for
/// the transient look-ahead.
const DELAY_SAMPLES: u32 = 1600;
/// Frames of silence after which nothing of the previous audio remains in the overlap or the look-ahead.
const FLUSH_FRAMES: usize = 4;
/// Page size if the system does not report it.
const USUAL_PAGE_BYTES: usize = 4096;
/// Space before each allocation for the length of its mapping; preserves the alignment of every vector type.
const HEADER_BYTES: usize = 64;

/// A libxaac encoder.
pub(super) struct Xaac {
    // libxaac writes through pointers to both halves during each call: boxed, so that moving the encoder moves nothing.
    config: Box<xaac::ixheaace_user_config_struct>,
    input: NonNull<i16>,
    input_samples: usize,
    output: NonNull<u8>,
    output_bytes: usize,
}

// SAFETY: an encoder owns its mappings, libxaac keeps no thread-local or mutable global state (its writable symbols are
// tables that are never written), and every call takes `&mut self`.
unsafe impl Send for Xaac {}

impl Xaac {
    /// Takes 35–47 ms: never call it on a media worker.
    pub(super) fn create(kind: EncoderKind) -> Result<Box<dyn AacEncoder>, EncoderError> {
        let channels = i32::from(kind.channels.count());
        let bitrate = i32::try_from(kind.bitrate).map_err(|_| EncoderError::Create(0))?;
        // SAFETY: a C struct of integers, floats, nullable pointers and optional functions, for which all zeros is a
        // valid value.
        let mut config: Box<xaac::ixheaace_user_config_struct> =
            Box::new(unsafe { std::mem::zeroed() });
        let input = &mut config.input_config;
        input.ui_pcm_wd_sz = 16;
        input.i_bitrate = bitrate;
        input.frame_length = SAMPLES_PER_FRAME as i32;
        input.aot = xaac::AOT_AAC_LC as i32;
        input.i_channels = channels;
        input.i_samp_freq = SAMPLE_RATE;
        input.i_native_samp_freq = SAMPLE_RATE as i32;
        input.i_mps_tree_config = -1;
        input.i_use_es = 1;
        input.aac_config.sample_rate = SAMPLE_RATE as i32;
        input.aac_config.bitrate = bitrate;
        input.aac_config.num_channels_in = channels;
        input.aac_config.num_channels_out = channels;
        input.aac_config.use_tns = 1;
        input.aac_config.inv_quant = 2;
        input.aac_config.bitreservoir_size = 768;
        config.output_config.malloc_xheaace = Some(map);
        config.output_config.free_xheaace = Some(unmap);

        // SAFETY: both pointers refer to the halves of a live config; the allocator is set and returns zeroed, aligned
        // memory of at least the requested size, or null, to which libxaac responds with an error.
        let status = unsafe {
            xaac::ixheaace_create(
                ptr::from_mut(&mut config.input_config).cast(),
                ptr::from_mut(&mut config.output_config).cast(),
            )
        };
        // From here on, dropping the encoder frees the memory. After a fatal error `create` has already done so and
        // left `malloc_count` at zero, and a second `delete` does nothing.
        let mut encoder = Self {
            config,
            input: NonNull::dangling(),
            input_samples: SAMPLES_PER_FRAME as usize * usize::from(kind.channels.count()),
            output: NonNull::dangling(),
            output_bytes: 0,
        };
        if status != 0 {
            return Err(EncoderError::Create(status));
        }
        encoder.find_buffers()?;
        encoder.release_zero_pages();
        Ok(Box::new(encoder))
    }

    fn find_buffers(&mut self) -> Result<(), EncoderError> {
        let output_config = &self.config.output_config;
        let input = &output_config.mem_info_table[xaac::IA_MEMTYPE_INPUT as usize];
        let output = &output_config.mem_info_table[xaac::IA_MEMTYPE_OUTPUT as usize];
        let frame_bytes = self.input_samples * size_of::<i16>();
        let fits = usize::try_from(output_config.input_size) == Ok(frame_bytes)
            && input.ui_size as usize >= frame_bytes;
        match (NonNull::new(input.mem_ptr.cast()), NonNull::new(output.mem_ptr.cast())) {
            (Some(input), Some(out)) if fits => {
                (self.input, self.output, self.output_bytes) =
                    (input, out, output.ui_size as usize);
                Ok(())
            }
            (Some(_) | None, Some(_) | None) => Err(EncoderError::Create(0)),
        }
    }

    fn release_zero_pages(&self) {
        let output = &self.config.output_config;
        let count = (output.malloc_count as usize).min(output.arr_alloc_memory.len());
        for memory in output.arr_alloc_memory.iter().take(count).filter(|memory| !memory.is_null())
        {
            // SAFETY: `map` returned this pointer, it has not been unmapped, and no call into libxaac is in progress.
            unsafe { release_zero_pages(memory.cast()) }
        }
    }
}

impl AacEncoder for Xaac {
    fn encode(&mut self, pcm: &[i16]) -> Result<&[u8], EncoderError> {
        if pcm.len() != self.input_samples {
            return Err(EncoderError::Length);
        }
        self.config.output_config.i_out_bytes = 0;
        // SAFETY: `find_buffers` checked that the input holds `input_samples`; it is libxaac's own mapping and does not
        // overlap `pcm`. The api object was made by `create` and not deleted, and `&mut self` makes this the only call.
        let status = unsafe {
            ptr::copy_nonoverlapping(pcm.as_ptr(), self.input.as_ptr(), pcm.len());
            xaac::ixheaace_process(
                self.config.output_config.pv_ia_process_api_obj,
                ptr::from_mut(&mut self.config.input_config).cast(),
                ptr::from_mut(&mut self.config.output_config).cast(),
            )
        };
        let length = usize::try_from(self.config.output_config.i_out_bytes).unwrap_or(0);
        // A negative status is fatal; other values report a silent or bit-starved spectrum, but still yield a frame.
        if status < 0 || length == 0 || length > self.output_bytes {
            return Err(EncoderError::Encode(status));
        }
        // SAFETY: the output mapping holds `output_bytes` initialised bytes (it began as zeros) and is written only by
        // the next call, which needs `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts(self.output.as_ptr(), length) })
    }

    fn reset(&mut self) -> Result<(), EncoderError> {
        let silence = vec![0; self.input_samples];
        (0..FLUSH_FRAMES).try_for_each(|_| self.encode(&silence).map(drop))
    }

    fn delay_samples(&self) -> u32 {
        DELAY_SAMPLES
    }
}

impl Drop for Xaac {
    fn drop(&mut self) {
        // SAFETY: frees whatever `malloc_count` records as allocated, with our own `unmap`, and sets it to zero.
        unsafe {
            xaac::ixheaace_delete(ptr::from_mut(&mut self.config.output_config).cast());
        }
    }
}

fn page_bytes() -> usize {
    // SAFETY: queries a constant of the system.
    let answer = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(answer).ok().filter(|bytes| *bytes > 0).unwrap_or(USUAL_PAGE_BYTES)
}

/// Allocator for libxaac: zeroed memory after a header that holds the length of the mapping; null on failure.
unsafe extern "C" fn map(size: u32, alignment: u32) -> *mut c_void {
    let length = (size as usize + HEADER_BYTES).next_multiple_of(page_bytes());
    if alignment as usize > HEADER_BYTES {
        return ptr::null_mut();
    }
    // SAFETY: a new private anonymous mapping touches no existing memory. No swap is reserved, since little of it will
    // ever be used.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    // SAFETY: the mapping is at least one page long, and page-aligned.
    unsafe {
        base.cast::<usize>().write(length);
        base.byte_add(HEADER_BYTES)
    }
}

/// Frees what `map` returned, which libxaac passes back unchanged and once.
unsafe extern "C" fn unmap(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    // SAFETY: by the contract above the header lies before `memory`, as `map` wrote it.
    unsafe {
        let base = memory.byte_sub(HEADER_BYTES);
        libc::munmap(base, base.cast::<usize>().read());
    }
}

/// Returns the all-zero pages of one mapping to the system, in runs.
///
/// # Safety
/// `memory` came from `map`, is still mapped, and nothing else reads or writes it during the call.
unsafe fn release_zero_pages(memory: *mut u8) {
    // SAFETY: the header is as `map` wrote it.
    let (base, length) = unsafe {
        let base = memory.byte_sub(HEADER_BYTES);
        (base, base.cast::<usize>().read())
    };
    let page = page_bytes();
    // SAFETY: the mapping is `length` bytes long, was zero when made, and nothing else accesses it during the call.
    let bytes = unsafe { std::slice::from_raw_parts(base.cast_const(), length) };
    let zero = |index: &usize| bytes[index * page..][..page].iter().all(|byte| *byte == 0);
    let (mut index, pages) = (0, length / page);
    while index < pages {
        let end = (index..pages).find(|index| !zero(index)).unwrap_or(pages);
        if end > index {
            // SAFETY: whole pages inside the mapping; private and anonymous, so they read as zero afterwards, as
            // before. If the call fails, only memory is wasted.
            unsafe {
                libc::madvise(
                    base.add(index * page).cast(),
                    (end - index) * page,
                    libc::MADV_DONTNEED,
                );
            }
        }
        index = end + 1;
    }
}
