//! Codecs and extensions in the answer to connect: for peers that know Enhanced RTMP v2, and for all others.

use crate::support::{Encoder, Reply, null, number, object, reply, string, undefined};

/// Decodes 1, encodes 2, forwards 4 (E-RTMP, FourCcInfoMask).
const OPUS: f64 = 5.0;
const AAC: f64 = 6.0;
const VIDEO: f64 = 4.0;
/// Reconnect 1, Multitrack 2 and ModEx 4, but not TimestampNanoOffset 8 (E-RTMP, CapsExMask).
const CAPS_EX: f64 = 7.0;

fn strings(texts: &[&str]) -> Vec<u8> {
    let count = u32::try_from(texts.len()).expect("few").to_be_bytes();
    [&[10][..], &count, &texts.iter().map(|text| string(text)).collect::<Vec<_>>().concat()]
        .concat()
}

fn v1_properties() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("fmsVer", string("FMS/3,0,1,123")),
        ("capabilities", number(31.0)),
        ("fourCcList", strings(&["avc1", "hvc1", "av01", "vp09", "mp4a", "Opus"])),
    ]
}

fn v2_properties() -> Vec<(&'static str, Vec<u8>)> {
    let video = ["avc1", "hvc1", "av01", "vp09"].map(|four_cc| (four_cc, number(VIDEO)));
    let audio = [("mp4a", number(AAC)), ("Opus", number(OPUS))];
    let v2 = [
        ("capsEx", number(CAPS_EX)),
        ("videoFourCcInfoMap", object(&video)),
        ("audioFourCcInfoMap", object(&audio)),
    ];
    [v1_properties(), v2.to_vec()].concat()
}

fn success(properties: &[(&str, Vec<u8>)]) -> Reply {
    let information = object(&[
        ("level", string("status")),
        ("code", string("NetConnection.Connect.Success")),
        ("description", string("Connection succeeded")),
        ("objectEncoding", number(0.0)),
    ]);
    reply(0, "_result", 1.0, &[object(properties), information])
}

/// The last reply to a connect with these properties besides its app.
fn answer(properties: &[(&str, Vec<u8>)]) -> Reply {
    let mut encoder = Encoder::new();
    encoder.connect(&[&[("app", string("live"))], properties].concat());
    encoder.replies().pop().expect("connect is answered")
}

#[test]
fn a_client_without_enhanced_rtmp_is_offered_only_v1() {
    assert_eq!(answer(&[]), success(&v1_properties()));
}

#[test]
fn a_client_of_v1_is_offered_only_v1() {
    let list = strings(&["hvc1", "av01"]);
    assert_eq!(answer(&[("fourCcList", list)]), success(&v1_properties()));
}

#[test]
fn a_client_with_caps_ex_is_offered_everything_whatever_it_lists() {
    for caps_ex in [0.0, 1.0, 4.0, 15.0, 255.0] {
        let want = success(&v2_properties());
        assert_eq!(answer(&[("capsEx", number(caps_ex))]), want, "{caps_ex}");
    }
}

#[test]
fn a_client_with_either_codec_map_is_offered_the_same() {
    for map in ["videoFourCcInfoMap", "audioFourCcInfoMap"] {
        let empty = [vec![8, 0, 0, 0, 0], vec![0, 0, 9]].concat();
        for entries in [object(&[("*", number(4.0))]), object(&[]), empty] {
            assert_eq!(answer(&[(map, entries)]), success(&v2_properties()), "{map}");
        }
    }
}

#[test]
fn a_client_of_both_versions_is_offered_both() {
    let properties = [
        ("fourCcList", strings(&["*"])),
        ("videoFourCcInfoMap", object(&[("hvc1", number(2.0))])),
        ("audioFourCcInfoMap", object(&[("Opus", number(2.0))])),
        ("capsEx", number(7.0)),
    ];
    assert_eq!(answer(&properties), success(&v2_properties()));
}

#[test]
fn a_value_that_is_neither_mask_nor_map_does_not_count_as_v2() {
    for value in [null(), undefined(), string("15"), strings(&["hvc1"])] {
        for name in ["capsEx", "videoFourCcInfoMap", "audioFourCcInfoMap"] {
            assert_eq!(answer(&[(name, value.clone())]), success(&v1_properties()), "{name}");
        }
    }
}

#[test]
fn a_peer_accepts_codecs_that_it_can_decode_or_forward() {
    let mut encoder = Encoder::new();
    let masks = [("av01", 0.0), ("avc1", 1.0), ("hvc1", 2.0), ("vp09", 3.0), ("vp08", -1.0)];
    let video = masks.map(|(four_cc, mask)| (four_cc, number(mask)));
    encoder.connect(&[
        ("app", string("live")),
        ("fourCcList", strings(&["mp4a"])),
        ("videoFourCcInfoMap", object(&video)),
        ("audioFourCcInfoMap", object(&[("*", number(4.0)), ("Opus", null())])),
    ]);
    assert_eq!(encoder.four_cc_list(), ["mp4a", "avc1", "vp09", "*", "Opus"]);
}
