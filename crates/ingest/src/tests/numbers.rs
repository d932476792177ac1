//! The figures of running publishes and workers that the gateway graphs over time.

use super::Core;
use super::whip::{Broadcaster, wait_until};
use crate::WorkerStatus;

#[test]
fn frames_keyframes_and_the_round_trip_of_an_rtmp_publisher_are_reported() {
    let mut core = Core::start(1);
    let mut publisher = core.publisher("cam", 1, &[]);
    for n in 0..31 {
        publisher.send_frame(n, 15);
    }
    core.wait_for_time(1, 30 * 40);
    let shown = core.ingest.snapshot(1).expect("it runs");
    assert_eq!((shown.video_frames, shown.gop_ms), (31, Some(600)));
    let rtt_ms = shown.rtt_ms.expect("the handshake has measured it");
    assert!(rtt_ms > 0.0 && rtt_ms < 1_000.0, "{rtt_ms}");
    assert_eq!((shown.loss_percent, shown.skew_ms), (None, None));
    publisher.say_goodbye();
    core.ended(1);
}

#[test]
fn the_network_state_of_a_whip_publisher_comes_from_its_reports() {
    let mut core = Core::start(1);
    let broadcaster = Broadcaster::start(&core, 1, "cam");
    wait_until("the reports have arrived", || {
        core.ingest.snapshot(1).is_some_and(|shown| shown.loss_percent.is_some())
    });
    let shown = core.ingest.snapshot(1).expect("it runs");
    assert!(shown.video_frames > 0, "{shown:?}");
    assert_eq!(shown.loss_percent, Some(0.0));
    assert_eq!(shown.rtt_ms, core.ingest.whip_diagnostics(1).expect("it runs").rtt_ms);
    broadcaster.stop();
    core.ended(1);
}

#[test]
fn a_worker_with_a_stream_reports_a_load() {
    let mut core = Core::start(1);
    assert_eq!(core.ingest.worker_status(), [WorkerStatus::default()]);
    let mut publisher = core.publisher("cam", 1, &[]);
    let mut n = 0;
    let mut workers = Vec::new();
    wait_until("a worker has measured itself", || {
        publisher.send_frame(n, 25);
        n += 1;
        workers = core.ingest.worker_status();
        workers.iter().all(|worker| worker.load > 0.0)
    });
    let [worker] = workers[..] else { panic!("one worker: {workers:?}") };
    assert!(worker.load <= 1.0 && worker.busy > 0.0 && worker.busy <= 1.0, "{worker:?}");
    publisher.say_goodbye();
    core.ended(1);
}
