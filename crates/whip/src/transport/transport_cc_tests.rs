use super::*;
use crate::transport::feedback::Compound;

/// Decodes a transport feedback: the base, and for each packet its arrival in ticks, or `None`.
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
    let mut times = Vec::new();
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
        times.push(delta.map(|delta| {
            ticks += delta;
            ticks
        }));
    }
    (base, times)
}

/// Notes packets, given as sequence number and time in ms, and decodes the resulting feedback.
fn feedback(times: &mut ReceiveTimes, packets: &[(u16, u64)]) -> (u16, Vec<Option<i64>>) {
    for (sequence, millis) in packets {
        times.note(times.start + Duration::from_millis(*millis), *sequence);
    }
    let mut compound = Compound::new(1, &[]);
    compound.put_transport_cc(7, times);
    decode(&compound.as_slice()[8..])
}

#[test]
fn losses_reordering_and_long_pauses_are_reported() {
    let mut times = ReceiveTimes::new(Instant::now());
    let (base, seen) = feedback(&mut times, &[(65534, 1000), (65535, 1001), (1, 1003), (0, 1200)]);
    assert_eq!((base, seen), (65534, vec![Some(4000), Some(4004), Some(4800), Some(4012)]));
    let (base, seen) = feedback(&mut times, &[(5, 1300), (6, 1300)]);
    assert_eq!(base, 2);
    assert_eq!(seen, [None, None, None, Some(5200), Some(5200)]);
    let many: Vec<_> = (7..107).map(|n| (n, 1400)).collect();
    assert_eq!(feedback(&mut times, &many).1.len(), 100);
}

#[test]
fn a_packet_that_arrives_after_its_range_was_reported_repeats_the_range() {
    let mut times = ReceiveTimes::new(Instant::now());
    feedback(&mut times, &[(10, 1000), (11, 1001), (13, 1003), (14, 1004)]);
    let (base, seen) = feedback(&mut times, &[(12, 1050), (15, 1051)]);
    assert_eq!(base, 12);
    assert_eq!(seen, [Some(4200), Some(4012), Some(4016), Some(4204)]);
    // A single late packet is reported too; a packet that arrives twice is not.
    let (base, seen) = feedback(&mut times, &[(9, 1060)]);
    assert_eq!((base, seen.len(), seen[0]), (9, 7, Some(4240)));
    times.note(times.start + Duration::from_millis(1070), 12);
    assert!(times.is_empty());
}

#[test]
fn packets_are_reported_after_a_loss_of_more_than_half_of_all_numbers() {
    for lost in [40_000_u16, 60_000] {
        let mut times = ReceiveTimes::new(Instant::now());
        feedback(&mut times, &[(5_000, 1000)]);
        let next = 5_001_u16.wrapping_add(lost);
        let (base, seen) = feedback(&mut times, &[(next, 2000), (next + 1, 2001)]);
        assert_eq!((base, seen.len()), (next.wrapping_sub(1_022), 1_024));
        assert_eq!(seen[1_021..], [None, Some(8000), Some(8004)]);
    }
}

#[test]
fn nothing_is_written_before_a_packet_arrives_and_the_memory_is_bounded() {
    let mut times = ReceiveTimes::new(Instant::now());
    let mut compound = Compound::new(1, &[]);
    compound.put_transport_cc(7, &mut times);
    assert_eq!(compound.as_slice().len(), 8);
    for n in 0..10_000_u32 {
        times.note(times.start, (n * 31) as u16);
        times.note(times.start, (n * 16_385) as u16);
    }
    assert_eq!(times.slots.len(), SPAN_LIMIT as usize);
    let (_, seen) = feedback(&mut times, &[]);
    assert!(seen.len() <= SPAN_LIMIT as usize);
    compound.put_transport_cc(7, &mut times);
    assert_eq!(compound.as_slice().len(), 8);
}

#[test]
fn mixed_statuses_take_a_chunk_for_seven_and_equal_ones_a_chunk_for_all() {
    let chunks = |symbols: &[u8]| {
        let mut out = Vec::new();
        put_chunks(symbols, &mut out);
        out.chunks(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect::<Vec<_>>()
    };
    assert_eq!(chunks(&[1, 0, 1, 0, 1, 0, 1, 0, 1]), [0xd111, 0xc400]);
    assert_eq!(chunks(&[1; 100]), [0x2064]);
    assert_eq!(chunks(&[2, 2, 2]), [0x4003]);
    assert_eq!(chunks(&[&[0; 7][..], &[1, 2]].concat()), [0x0007, 0xd800]);
}
