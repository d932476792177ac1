//! Chooses among a section's H.264 payload types (RFC 6184 8.1). It does not interpret the parameter sets (`media`).

use super::lines::Lines;

/// Base64 characters of one parameter set in `sprop-parameter-sets`; real ones have 10 to 80.
const PARAMETER_SET_LIMIT: usize = 1024;
/// Parameter sets that are read; further ones are ignored.
const PARAMETER_SETS_LIMIT: usize = 4;

/// One H.264 payload type of an offer.
#[derive(Debug, Clone)]
pub(super) struct Format {
    pub(super) payload_type: u8,
    pub(super) packetization_mode: u8,
    pub(super) profile_level_id: Option<[u8; 3]>,
    pub(super) parameter_sets: Vec<Vec<u8>>,
}

/// The payload type we accept: packetization mode 1 first, then by the client's preference.
pub(super) fn choose(section: &Lines<'_>, formats: &[u8]) -> Option<Format> {
    let mut accepted: Vec<Format> = formats
        .iter()
        .filter(|format| section.is_codec(**format, "h264", "90000"))
        .map(|format| read_format(section, *format))
        .filter(is_accepted)
        .collect();
    // The sort is stable.
    accepted.sort_by_key(|format| format.packetization_mode != 1);
    accepted.into_iter().next()
}

/// Reads `fmtp`. A malformed profile counts as "any H.264", since the stream itself carries the profile.
fn read_format(section: &Lines<'_>, payload_type: u8) -> Format {
    let mut format = Format {
        payload_type,
        packetization_mode: 0,
        profile_level_id: None,
        parameter_sets: Vec::new(),
    };
    for (name, value) in section.parameters(payload_type) {
        match name.to_ascii_lowercase().as_str() {
            "packetization-mode" => format.packetization_mode = value.parse().unwrap_or(u8::MAX),
            "profile-level-id" => format.profile_level_id = read_hex(value),
            "sprop-parameter-sets" => {
                format.parameter_sets = value
                    .split(',')
                    .take(PARAMETER_SETS_LIMIT)
                    .filter_map(|set| read_base64(set.trim()))
                    .collect();
            }
            _ => {}
        }
    }
    format
}

/// Interleaved packetization is not supported; Baseline, Constrained Baseline, Main and High are (RFC 6184 table 5).
/// Extended (88) counts only when its constraints make it one of the baselines.
fn is_accepted(format: &Format) -> bool {
    let is_profile_ours = match format.profile_level_id {
        None | Some([66 | 77 | 100, ..]) => true,
        Some([88, constraints, _]) => constraints & 0x80 != 0,
        Some(_) => false,
    };
    format.packetization_mode <= 1 && is_profile_ours
}

/// Six digits. FFmpeg 8.0 writes seven for a constrained profile; that value is unusable.
fn read_hex(text: &str) -> Option<[u8; 3]> {
    if text.len() != 6 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let [_, profile, constraints, level] = u32::from_str_radix(text, 16).ok()?.to_be_bytes();
    Some([profile, constraints, level])
}

/// Base64 of RFC 4648 4 and 5, with or without padding.
fn read_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    if text.is_empty() || text.len() > PARAMETER_SET_LIMIT {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for character in text.bytes() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
