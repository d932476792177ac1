//! Which bands of two channels are coded as sum and difference (ISO/IEC 14496-3, 4.6.8.1).

use crate::bands::{LIMIT_BANDS, Layout};
use crate::channel::Channel;
use crate::sections::coded;
use crate::syntax::{Frame, MidSide};

/// Correlation of two channels from which both get the same noise.
const SAME_NOISE: f32 = 0.6;

/// Decides for each band whether sum and difference take fewer bits than left and right.
pub(crate) fn choose(
    layout: &Layout,
    bands: usize,
    [left, right]: [&mut Channel; 2],
    used: &mut [bool; LIMIT_BANDS],
) {
    for band in coded(layout, bands) {
        let lines = layout.lines(band);
        let (l, r) = (&mut left.lines[lines.clone()], &mut right.lines[lines]);
        let mut products = [0.0_f32; 4];
        for (l, r) in l.chunks_exact(4).zip(r.chunks_exact(4)) {
            for lane in 0..4 {
                products[lane] += l[lane] * r[lane];
            }
        }
        let product: f32 = products.iter().sum();
        let (left_energy, right_energy) = (left.energies.energy[band], right.energies.energy[band]);
        let sum = left_energy + right_energy;
        let mid = (0.25 * (sum + 2.0 * product)).max(f32::MIN_POSITIVE);
        let side = (0.25 * (sum - 2.0 * product)).max(f32::MIN_POSITIVE);
        let (left_threshold, right_threshold) = (left.thresholds[band], right.thresholds[band]);
        let common = 0.5 * left_threshold.min(right_threshold);
        let ratio = |energy: f32, threshold: f32| (energy / threshold).max(1.0);
        let apart = ratio(left_energy, left_threshold) * ratio(right_energy, right_threshold);
        let together = ratio(mid, common) * ratio(side, common);
        let noise = [left.noise[band], right.noise[band]];
        if noise != [false; 2] {
            // Of two channels of noise: whether it is the same one.
            used[band] =
                noise == [true; 2] && product > SAME_NOISE * (left_energy * right_energy).sqrt();
            continue;
        }
        used[band] = together <= apart;
        if used[band] {
            for (l, r) in l.iter_mut().zip(r) {
                (*l, *r) = (0.5 * (*l + *r), 0.5 * (*l - *r));
            }
            (left.energies.energy[band], right.energies.energy[band]) = (mid, side);
            (left.thresholds[band], right.thresholds[band]) = (common, common);
        }
    }
}

/// How the choice of each band is written.
pub(crate) fn written<'a>(frame: &Frame<'_>, used: &'a [bool; LIMIT_BANDS]) -> MidSide<'a> {
    let mut bands = coded(frame.layout, frame.bands);
    let count = coded(frame.layout, frame.bands).filter(|band| used[*band]).count();
    match (count, bands.next()) {
        (0, _) | (_, None) => MidSide::Off,
        (count, Some(_)) if count == coded(frame.layout, frame.bands).count() => MidSide::All,
        (_, Some(_)) => MidSide::Some(used),
    }
}
