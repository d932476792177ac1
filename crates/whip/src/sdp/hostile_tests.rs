//! Whatever the text: no panic, bounded time, and an accepted offer gets a valid answer.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::golden_tests::{GOLDENS, check_answer, settings};
use super::*;

/// Reads a text; an accepted offer must get an answer of valid form.
fn read_and_answer(text: &str) {
    if let Ok(offer) = read_offer(text) {
        let answer = write_answer(&offer, &settings());
        assert!(answer.starts_with("v=0\r\n") && answer.ends_with("\r\n"));
        assert_eq!(answer.matches(['\r', '\n']).count(), 2 * answer.matches("\r\n").count());
        assert!(answer.matches("\r\nm=").count() <= 2 && answer.is_ascii());
    }
}

/// One change to a text's lines.
#[derive(Clone, Debug)]
enum Change {
    Remove(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
    Insert(prop::sample::Index, &'static str),
    Byte(prop::sample::Index, u8),
    Cut(prop::sample::Index),
}

const ODD_LINES: &[&str] = &[
    "m=",
    "m=audio",
    "m=audio 9 UDP/TLS/RTP/SAVPF 111",
    "m=video 9 UDP/TLS/RTP/SAVPF 96 99999999999 -1",
    "a=",
    "a=:",
    "a=fmtp:",
    "a=fmtp:* apt=*;=;;packetization-mode=-1;profile-level-id=\u{e9}\u{e9}\u{e9}",
    "a=rtpmap:* H264/90000",
    "a=group:BUNDLE",
    "a=group:BUNDLE 0 0 1 1 2",
    "a=mid:\u{1f600}",
    "a=fingerprint:sha-256 :",
    "a=candidate:",
    "a=candidate:1 1 udp 1 [::1] 1",
    "a=rid: send",
    "a=extmap:3/ x",
    "a=ssrc-group:FID",
    "a=ssrc:",
    "a=sprop",
    "=",
    "\u{feff}v=0",
];

fn change() -> impl Strategy<Value = Change> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        index().prop_map(Change::Remove),
        (index(), index()).prop_map(|(from, to)| Change::Repeat(from, to)),
        (index(), prop::sample::select(ODD_LINES)).prop_map(|(at, line)| Change::Insert(at, line)),
        (index(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        index().prop_map(Change::Cut),
    ]
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut text = text.to_owned();
    for change in changes {
        let mut lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            break;
        }
        match change {
            Change::Remove(at) => {
                lines.remove(at.index(lines.len()));
            }
            Change::Repeat(from, to) => {
                lines.insert(to.index(lines.len()), lines[from.index(lines.len())]);
            }
            Change::Insert(at, line) => lines.insert(at.index(lines.len()), line),
            Change::Byte(at, byte) => {
                let mut bytes = text.into_bytes();
                let at = at.index(bytes.len());
                bytes[at] = *byte;
                text = String::from_utf8_lossy(&bytes).into_owned();
                continue;
            }
            Change::Cut(at) => {
                let cut = at.index(lines.len());
                lines.truncate(cut.max(1));
            }
        }
        text = lines.join("\n");
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes_are_parsed_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        read_and_answer(&String::from_utf8_lossy(&bytes));
        read_and_answer(&format!("v=0\n{}", String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn mutated_offers_are_parsed_without_a_panic(
        golden in prop::sample::select(&GOLDENS[..]),
        changes in prop::collection::vec(change(), 0..12),
    ) {
        read_and_answer(&changed(golden.1, &changes));
    }
}

#[test]
fn offers_without_one_of_their_lines_are_rejected_or_get_a_valid_answer() {
    for (name, text) in GOLDENS {
        let lines: Vec<&str> = text.lines().collect();
        for (at, removed) in lines.iter().enumerate() {
            // Without one of these lines the text is a different offer, with one section or another role.
            if removed.starts_with("m=") || removed.starts_with("a=setup") {
                continue;
            }
            let text = [&lines[..at], &lines[at + 1..]].concat().join("\n");
            if let Ok(offer) = read_offer(&text) {
                check_answer(name, &text, &write_answer(&offer, &settings()));
            }
        }
    }
}

#[test]
fn texts_made_to_be_slow_are_parsed_in_time() {
    let head = GOLDENS[1].1;
    let formats: Vec<_> = (0..64).map(|n| if n < 32 { n } else { n + 64 }.to_string()).collect();
    let video = format!("{head}m=video 9 UDP/TLS/RTP/SAVPF {}\n", formats.join(" "));
    let fill = |line: &str| {
        let count = ((OFFER_LIMIT_BYTES - video.len()) / line.len()).min(1800);
        let section = video.replacen("a=group", &line.repeat(count / 2), 1);
        [section, format!("{video}{}", line.repeat(count)), format!("{head}{}", line.repeat(count))]
    };
    let table = [
        "a=rtpmap:* H264/90000\n",
        "a=rtpmap:127 rtx/90000\n",
        "a=fmtp:* apt=1;apt=1;apt=1;apt=1\n",
        "a=group:BUNDLE 0 0 0 0 0 0 0\n",
        "a=fingerprint:sha-256 00:00\n",
        "a=candidate:1 1 udp 1 x 1 typ host\n",
        "a=extmap:1 x\n",
        "m=audio 9 UDP/TLS/RTP/SAVPF 0\n",
        "\n",
    ];
    // Parsing takes milliseconds; the limit allows for a loaded machine and an unoptimised build.
    let started = Instant::now();
    for text in table.iter().flat_map(|line| fill(line)) {
        read_and_answer(&text);
    }
    read_and_answer(&format!("v=0\na=group:BUNDLE{}", " 0".repeat(32_000)));
    read_and_answer(&format!("v=0\nm=video 9 UDP/TLS/RTP/SAVPF{}", " 96".repeat(21_000)));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}
