use super::*;

#[test]
fn sender_reports_and_goodbyes_are_read_out_of_a_compound() {
    let mut compound = vec![0x80, 200, 0, 6];
    for word in [7_u32, 100, 200, 300, 1, 2] {
        compound.extend_from_slice(&word.to_be_bytes());
    }
    compound.extend_from_slice(&[0x81, 203, 0, 1, 0, 0, 0, 7]);
    let mut reports = Vec::new();
    read(&compound, &mut |report| reports.push(report));
    let expected =
        [Report::Sender { ssrc: 7, ntp: 100 << 32 | 200, rtp: 300 }, Report::Bye { ssrc: 7 }];
    assert_eq!(reports, expected);
    for length in 0..compound.len() {
        read(&compound[..length], &mut |_| {});
    }
    for at in 0..compound.len() {
        compound[at] ^= 0xff;
        read(&compound, &mut |_| {});
    }
}

#[test]
fn a_request_packs_neighbours_into_one_pair() {
    let mut compound = Compound::new(1, &[]);
    compound.put_nack(7, &[65535, 0, 15, 16, 17]);
    let bytes = compound.as_slice();
    assert_eq!(&bytes[..8], [0x80, 201, 0, 1, 0, 0, 0, 1]);
    assert_eq!(&bytes[8..20], [0x81, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 7]);
    assert_eq!(&bytes[20..], [0xff, 0xff, 0x80, 0x01, 0, 16, 0, 1]);
}

#[test]
fn a_keyframe_request_and_a_report_have_their_fields_in_place() {
    let reception = Reception {
        ssrc: 7,
        fraction_lost: 0x80,
        lost: 5,
        highest: 0x1_2345,
        jitter: 9,
        last_report: 10,
        delay: 11,
    };
    let mut compound = Compound::new(1, &[reception]);
    compound.put_pli(7);
    let bytes = compound.as_slice();
    assert_eq!(&bytes[..4], [0x81, 201, 0, 7]);
    assert_eq!(&bytes[8..16], [0, 0, 0, 7, 0x80, 0, 0, 5]);
    assert_eq!(&bytes[32..], [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 7]);
}

/// Decodes a transport feedback: base, and per packet its arrival in ticks or none.
fn decode(bytes: &[u8]) -> (u16, Vec<Option<i64>>) {
    assert_eq!(bytes.len() % 4, 0);
    assert_eq!(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])) * 4 + 4, bytes.len());
    let base = u16::from_be_bytes([bytes[12], bytes[13]]);
    let count = usize::from(u16::from_be_bytes([bytes[14], bytes[15]]));
    let mut ticks = i64::from(u32::from_be_bytes([0, bytes[16], bytes[17], bytes[18]])) * 256;
    let (mut symbols, mut at) = (Vec::new(), 20);
    while symbols.len() < count {
        let chunk = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        at += 2;
        if chunk & 0x8000 == 0 {
            symbols.extend(vec![chunk >> 13 & 3; usize::from(chunk & 0x1fff)]);
        } else {
            symbols.extend((0..7).map(|n| chunk >> (12 - 2 * n) & 3));
        }
    }
    let mut arrivals = Vec::new();
    for symbol in &symbols[..count] {
        let delta = match symbol {
            0 => None,
            1 => {
                at += 1;
                Some(i64::from(bytes[at - 1]))
            }
            _ => {
                at += 2;
                Some(i64::from(i16::from_be_bytes([bytes[at - 2], bytes[at - 1]])))
            }
        };
        arrivals.push(delta.map(|delta| {
            ticks += delta;
            ticks
        }));
    }
    (base, arrivals)
}

#[test]
fn arrivals_are_told_with_losses_reordering_and_long_pauses() {
    let start = Instant::now();
    let mut arrivals = Arrivals::new(start);
    let at = |millis: u64| start + Duration::from_millis(millis);
    let mut feedback = |packets: &[(u16, u64)]| {
        for (sequence, millis) in packets {
            arrivals.note(at(*millis), *sequence);
        }
        let mut compound = Compound::new(1, &[]);
        compound.put_arrivals(7, &mut arrivals);
        decode(&compound.as_slice()[8..])
    };
    let (base, told) = feedback(&[(65534, 1000), (65535, 1001), (1, 1003), (0, 1200)]);
    assert_eq!((base, told), (65534, vec![Some(4000), Some(4004), Some(4800), Some(4012)]));
    let (base, told) = feedback(&[(5, 1300), (6, 1300)]);
    assert_eq!(base, 2);
    assert_eq!(told, [None, None, None, Some(5200), Some(5200)]);
    let many: Vec<_> = (7..107).map(|n| (n, 1400)).collect();
    assert_eq!(feedback(&many).1.len(), 100);
}

#[test]
fn nothing_is_told_when_nothing_came_and_too_many_are_bounded() {
    let start = Instant::now();
    let mut arrivals = Arrivals::new(start);
    let mut compound = Compound::new(1, &[]);
    compound.put_arrivals(7, &mut arrivals);
    assert_eq!(compound.as_slice().len(), 8);
    for n in 0..10_000_u32 {
        arrivals.note(start, (n * 31) as u16);
    }
    assert!(arrivals.seen.len() <= ARRIVALS_LIMIT);
    compound.put_arrivals(7, &mut arrivals);
}

#[test]
fn a_bitrate_limit_is_written_as_the_draft_says() {
    for (bitrate, word) in
        [(6_000_000_u64, 0x0216_dc6c_u32), (262_143, 0x0203_ffff), (1_000, 0x0200_03e8)]
    {
        let mut compound = Compound::new(1, &[]);
        compound.put_remb(bitrate, &[7, 8]);
        let remb = &compound.as_slice()[8..];
        assert_eq!(remb[..4], [0x8f, 206, 0, 6]);
        assert_eq!(remb[4..16], [0, 0, 0, 1, 0, 0, 0, 0, b'R', b'E', b'M', b'B']);
        let told = u32::from_be_bytes(remb[16..20].try_into().expect("four bytes"));
        assert_eq!(told, word, "{bitrate}: {told:08x}");
        assert_eq!(remb[20..], [0, 0, 0, 7, 0, 0, 0, 8]);
    }
}
