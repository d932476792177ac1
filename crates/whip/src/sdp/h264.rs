//! Which of an offer's H.264 payload types we take (RFC 6184 8.1).

use super::lines::Lines;

/// Bytes of one parameter set in `sprop-parameter-sets`.
const PARAMETER_SET_LIMIT: usize = 1024;
/// Parameter sets that are read.
const PARAMETER_SETS_LIMIT: usize = 4;

/// One H.264 payload type of an offer.
#[derive(Debug, Clone)]
pub(super) struct Format {
    pub(super) payload_type: u8,
    pub(super) packetization_mode: u8,
    pub(super) profile_level_id: Option<[u8; 3]>,
    pub(super) parameter_sets: Vec<Vec<u8>>,
}

/// What `fmtp` says; what is malformed counts as "any H.264": the stream itself tells.
pub(super) fn read_format(section: &Lines<'_>, payload_type: u8) -> Format {
    let mut format = Format {
        payload_type,
        packetization_mode: 0,
        profile_level_id: None,
        parameter_sets: Vec::new(),
    };
    let parameters = section.of_format("fmtp", payload_type).flat_map(|line| line.split(';'));
    for (name, value) in parameters.filter_map(|parameter| parameter.split_once('=')) {
        match name.trim().to_ascii_lowercase().as_str() {
            "packetization-mode" => {
                format.packetization_mode = value.trim().parse().unwrap_or(u8::MAX);
            }
            "profile-level-id" => format.profile_level_id = read_hex(value.trim()),
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

/// Interleaved packetization is not read; every profile without field or 4:2:2 coding is.
pub(super) fn is_accepted(format: &Format) -> bool {
    let profile_is_ours = match format.profile_level_id {
        None => true,
        Some([profile, ..]) => matches!(profile, 66 | 77 | 88 | 100),
    };
    format.packetization_mode <= 1 && profile_is_ours
}

fn read_hex(text: &str) -> Option<[u8; 3]> {
    if text.len() != 6 || !text.is_ascii() {
        return None;
    }
    let value = u32::from_str_radix(text, 16).ok()?;
    let [_, profile, constraints, level] = value.to_be_bytes();
    Some([profile, constraints, level])
}

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
