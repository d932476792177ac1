use super::*;

#[test]
fn sender_reports_and_goodbyes_are_read_from_a_compound_packet() {
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

#[test]
fn a_bitrate_limit_is_written_as_in_the_draft() {
    for (bitrate, word) in
        [(6_000_000_u64, 0x0216_dc6c_u32), (262_143, 0x0203_ffff), (1_000, 0x0200_03e8)]
    {
        let mut compound = Compound::new(1, &[]);
        compound.put_remb(bitrate, &[7, 8]);
        let remb = &compound.as_slice()[8..];
        assert_eq!(remb[..4], [0x8f, 206, 0, 6]);
        assert_eq!(remb[4..16], [0, 0, 0, 1, 0, 0, 0, 0, b'R', b'E', b'M', b'B']);
        let word_read = u32::from_be_bytes(remb[16..20].try_into().expect("four bytes"));
        assert_eq!(word_read, word, "{bitrate}: {word_read:08x}");
        assert_eq!(remb[20..], [0, 0, 0, 7, 0, 0, 0, 8]);
    }
}

#[test]
fn a_goodbye_names_as_many_sources_as_it_counts_whatever_follows_them() {
    // Two sources, and a reason of seven letters after its length.
    let mut compound = vec![0x82, 203, 0, 4, 0, 0, 0, 7, 0, 0, 0, 9, 7];
    compound.extend_from_slice(b"goodbye");
    let mut reports = Vec::new();
    read(&compound, &mut |report| reports.push(report));
    assert_eq!(reports, [Report::Bye { ssrc: 7 }, Report::Bye { ssrc: 9 }]);
}
