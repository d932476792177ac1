//! A server that sends: media with the times of a long stream, and pings that nobody reads the answers of.

use headgate_rtmp::{ClientEvent, Error};

use crate::fake::Upstream;
use crate::wire_times::{ACKNOWLEDGEMENT_BYTES, EDGES, picture};

#[test]
fn a_client_reads_all_32_bits_of_a_time_repeated_on_type_3_or_not() {
    for repeats in [true, false] {
        for are_differences in [true, false] {
            let mut upstream = Upstream::starting();
            upstream.events();
            let mut before = 0;
            for (n, time) in (1..).zip(EDGES) {
                let is_difference = are_differences && n > 1;
                let field = if is_difference { time.wrapping_sub(before) } else { time };
                upstream.says(&picture(is_difference, field, n, repeats));
                before = time;
            }
            upstream.says(&ACKNOWLEDGEMENT_BYTES);
            let times = upstream.events().into_iter().zip(1_u8..).map(|(event, n)| match event {
                ClientEvent::Media(media) if media.payload == vec![n; 300] => media.timestamp,
                other => panic!("{other:?}"),
            });
            assert_eq!(times.collect::<Vec<_>>(), EDGES, "{repeats} {are_differences}");
        }
    }
}

#[test]
fn a_server_that_pings_and_does_not_read_is_left() {
    let mut upstream = Upstream::starting();
    upstream.written();
    let ping = [2, 0, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 0, 6, 1, 2, 3, 4];
    let end = (0..100_000).find_map(|_| upstream.try_says(&ping).err());
    assert_eq!(end, Some(Error::AnswerBytesLimit));
    assert!(upstream.client.output().pending_bytes() <= (64 << 10) + ping.len());
}
