//! Runs the crate's fuzz bodies on inputs that are the same in every run.

#[path = "../../fuzz/replay.rs"]
mod replay;

use headgate_rtmp::fuzz;
use replay::run_all;

#[test]
fn chunks_of_random_bytes_parse_the_same_however_they_arrive() {
    run_all(fuzz::chunk_reader, "chunk_reader");
}

#[test]
fn a_proxy_header_of_any_bytes_is_read_the_same_however_it_arrives() {
    run_all(fuzz::proxy_header, "proxy_header");
}

#[test]
fn any_app_and_name_yield_no_more_than_their_bytes() {
    run_all(fuzz::target, "target");
}

#[test]
fn amf0_of_any_bytes_does_no_harm_and_survives_writing() {
    run_all(fuzz::amf0, "amf0");
}

#[test]
fn messages_of_any_bytes_do_no_harm() {
    run_all(fuzz::message, "message");
}

#[test]
fn any_bytes_do_a_server_session_no_harm() {
    run_all(fuzz::server_session, "server_session");
}

#[test]
fn any_bytes_do_a_client_session_no_harm() {
    run_all(fuzz::client_session, "client_session");
}
