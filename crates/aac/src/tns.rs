//! Temporal noise shaping (ISO/IEC 14496-3, 4.6.9): prediction over the spectrum, which gives the quantisation noise
//! the envelope of the signal in time.

/// Most coefficients of a filter.
const LIMIT_ORDER: usize = 12;

/// A filter with quantised reflection coefficients; of order 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    order: usize,
    bands: usize,
    coefficients: [i8; LIMIT_ORDER],
}

impl Filter {
    /// Number of coefficients.
    pub(crate) const fn order(&self) -> usize {
        self.order
    }

    /// Bands from the top of the window down to where the filter begins.
    pub(crate) const fn bands(&self) -> usize {
        self.bands
    }

    /// The reflection coefficients, from -8 to 7.
    pub(crate) fn coefficients(&self) -> &[i8] {
        &self.coefficients[..self.order]
    }
}
