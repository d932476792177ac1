use super::*;
use rtc_stun::attributes::{ATTR_USERNAME, AttrType};
use rtc_stun::error_code::{CODE_FORBIDDEN, ErrorCodeAttribute};
use rtc_stun::fingerprint::FINGERPRINT;
use rtc_stun::integrity::MessageIntegrity;
use rtc_stun::message::{BINDING_ERROR, BINDING_REQUEST, Getter, Setter, TransactionId};
use rtc_stun::textattrs::TextAttribute;

const PASSWORD: &str = "0123456789abcdefghijklmn";

fn provider() -> Arc<dyn RTCCryptoProvider> {
    rtc_crypto::default_provider().expect("a provider is built in")
}

fn address(port: u16) -> Path {
    SocketAddr::from(([127, 0, 0, 1], port)).into()
}

fn request(user: &str, password: &str, nominates: bool) -> Vec<u8> {
    signed(user, password, nominates.then_some(Zeros(ATTR_USE_CANDIDATE, 0)))
}

/// A request with one more attribute before its integrity.
fn signed(user: &str, password: &str, attribute: Option<Zeros>) -> Vec<u8> {
    let provider = provider();
    let mut message = Message::new();
    let integrity = MessageIntegrity::new_short_term_integrity_with_provider(
        password.into(),
        provider.crypto(),
    );
    let mut setters: Vec<Box<dyn Setter + '_>> = vec![
        Box::new(TransactionId([7; 12])),
        Box::new(BINDING_REQUEST),
        Box::new(TextAttribute::new(ATTR_USERNAME, user.into())),
    ];
    if let Some(attribute) = attribute {
        setters.push(Box::new(attribute));
    }
    setters.push(Box::new(integrity));
    setters.push(Box::new(FINGERPRINT));
    message.build(&setters).expect("builds");
    message.raw
}

/// An attribute with this many zero bytes.
struct Zeros(AttrType, usize);

impl Setter for Zeros {
    fn add_to(&self, message: &mut Message) -> rtc_shared::error::Result<()> {
        message.add(self.0, &vec![0; self.1]);
        Ok(())
    }
}

fn ice() -> IceLite {
    IceLite::new("server".into(), PASSWORD.into(), vec!["client".into()], provider())
}

#[test]
fn a_valid_request_is_answered_and_authenticates_its_source() {
    let (mut ice, now) = (ice(), Instant::now());
    let answer = ice.handle_request(now, address(9), &request("server:client", PASSWORD, false));
    let mut response = Message::new();
    response.unmarshal_binary(&answer.expect("answered")).expect("valid");
    assert_eq!(response.typ, BINDING_SUCCESS);
    assert_eq!(response.transaction_id, TransactionId([7; 12]));
    let provider = provider();
    MessageIntegrity::check(&mut response, PASSWORD.as_bytes(), provider.crypto()).expect("signed");
    assert!(ice.is_proven(address(9)) && !ice.is_proven(address(10)));
    assert_eq!(ice.selected(), Some(address(9)));
}

#[test]
fn a_request_that_carries_a_dtls_flight_is_answered_like_any_other() {
    const FLIGHT: AttrType = AttrType(0xc070);
    let (mut ice, now) = (ice(), Instant::now());
    let datagram = signed("server:client", PASSWORD, Some(Zeros(FLIGHT, 900)));
    let with_junk = [&datagram[..], &[0; 4]].concat();
    assert_eq!(ice.handle_request(now, address(9), &with_junk), None);
    assert!(!ice.is_proven(address(9)));
    let answer = ice.handle_request(now, address(9), &datagram).expect("answered");
    assert!(answer.len() <= datagram.len(), "{} for {}", answer.len(), datagram.len());
    assert!(ice.is_proven(address(9)));
    let mut revoked = ice.revoke().expect("a client was connected");
    assert!(revoked.handle_request(&datagram).is_some());
    // Everything but the flight takes 76 bytes.
    for (bytes, is_answered) in [(1_204, true), (1_208, false)] {
        let datagram = signed("server:client", PASSWORD, Some(Zeros(FLIGHT, bytes)));
        let answer = ice.handle_request(now, address(9), &datagram);
        assert_eq!(answer.is_some(), is_answered, "{} bytes", datagram.len());
    }
}

#[test]
fn an_ipv4_client_on_a_dual_stack_socket_learns_its_ipv4_address() {
    let (mut ice, now) = (ice(), Instant::now());
    let source: SocketAddr = "[::ffff:198.51.100.7]:4000".parse().expect("an address");
    let datagram = request("server:client", PASSWORD, true);
    let answer = ice.handle_request(now, source.into(), &datagram).expect("answered");
    let mut response = Message::new();
    response.unmarshal_binary(&answer).expect("valid");
    let mut mapped = XorMappedAddress::default();
    mapped.get_from(&response).expect("there");
    assert_eq!((mapped.ip.to_string(), mapped.port), ("198.51.100.7".to_owned(), 4000));
    assert_eq!(ice.selected(), Some(source.into()), "packets still go to its source");
}

#[test]
fn a_nomination_changes_the_pair_and_a_plain_check_does_not() {
    let (mut ice, now) = (ice(), Instant::now());
    ice.handle_request(now, address(9), &request("server:client", PASSWORD, true));
    ice.handle_request(now, address(10), &request("server:client", PASSWORD, false));
    assert_eq!(ice.selected(), Some(address(9)));
    ice.handle_request(now, address(10), &request("server:client", PASSWORD, true));
    assert_eq!(ice.selected(), Some(address(10)));
}

#[test]
fn a_client_that_moved_is_followed_once_its_old_path_is_silent() {
    let (mut ice, start) = (ice(), Instant::now());
    let at = |millis| start + Duration::from_millis(millis);
    ice.handle_request(start, address(9), &request("server:client", PASSWORD, true));
    ice.note_media(at(900), address(9));
    ice.handle_request(at(1000), address(10), &request("server:client", PASSWORD, false));
    assert_eq!(ice.selected(), Some(address(9)));
    ice.note_media(at(1401), address(10));
    assert_eq!(ice.selected(), Some(address(10)));
}

#[test]
fn a_client_whose_half_of_the_name_is_not_known_is_accepted_with_any() {
    let mut ice = IceLite::new("server".into(), PASSWORD.into(), Vec::new(), provider());
    let datagram = request("server:anything", PASSWORD, false);
    assert!(ice.handle_request(Instant::now(), address(9), &datagram).is_some());
}

#[test]
fn a_check_from_elsewhere_takes_no_path_that_carries_media() {
    let (mut ice, start) = (ice(), Instant::now());
    let at = |millis| start + Duration::from_millis(millis);
    let nomination = request("server:client", PASSWORD, true);
    ice.handle_request(start, address(9), &nomination);
    ice.note_media(at(10), address(9));
    // The same datagram again, from another address.
    ice.handle_request(at(20), address(10), &nomination);
    assert_eq!(ice.selected(), Some(address(9)));
    // The client's own nomination counts as soon as its media comes from there.
    ice.note_media(at(30), address(10));
    assert_eq!(ice.selected(), Some(address(10)));
}

#[test]
fn a_path_taken_in_silence_is_given_back_at_the_first_packet_of_media() {
    let (mut ice, start) = (ice(), Instant::now());
    let at = |millis| start + Duration::from_millis(millis);
    let nomination = request("server:client", PASSWORD, true);
    ice.handle_request(start, address(9), &nomination);
    ice.note_media(at(10), address(9));
    for millis in (600..5_000).step_by(100) {
        ice.handle_request(at(millis), address(10), &nomination);
    }
    assert_eq!(ice.selected(), Some(address(10)), "nothing else is known of the client");
    ice.note_media(at(5_000), address(9));
    assert_eq!(ice.selected(), Some(address(9)));
    ice.handle_request(at(5_001), address(10), &nomination);
    assert_eq!(ice.selected(), Some(address(9)));
}

#[test]
fn checks_on_the_old_path_do_not_keep_a_client_there_whose_media_comes_from_another() {
    let (mut ice, start) = (ice(), Instant::now());
    let at = |millis| start + Duration::from_millis(millis);
    ice.handle_request(start, address(9), &request("server:client", PASSWORD, true));
    ice.note_media(at(10), address(9));
    for millis in (100..1_000).step_by(100) {
        ice.handle_request(at(millis), address(9), &request("server:client", PASSWORD, true));
        ice.note_media(at(millis + 1), address(10));
    }
    assert_eq!(ice.selected(), Some(address(10)));
}

#[test]
fn a_restart_changes_the_pair_only_when_the_client_uses_it() {
    const NEW: &str = "abcdefghijklmnopqrstuvwx";
    let (mut ice, now) = (ice(), Instant::now());
    ice.handle_request(now, address(9), &request("server:client", PASSWORD, true));
    ice.restart("renewed".into(), NEW.into(), vec!["other".into()]);
    // The old session continues until the new one is validated; until then a later restart replaces an earlier one.
    assert!(
        ice.handle_request(now, address(9), &request("server:client", PASSWORD, true)).is_some()
    );
    ice.restart("again".into(), NEW.into(), vec!["other".into()]);
    assert!(ice.handle_request(now, address(9), &request("renewed:other", NEW, true)).is_none());
    assert!(ice.handle_request(now, address(9), &request("again:client", NEW, true)).is_none());
    assert!(ice.handle_request(now, address(10), &request("again:other", NEW, false)).is_some());
    assert_eq!(ice.selected(), Some(address(9)));
    assert!(
        ice.handle_request(now, address(9), &request("server:client", PASSWORD, true)).is_some()
    );
    assert!(ice.handle_request(now, address(10), &request("again:other", NEW, true)).is_some());
    assert_eq!(ice.selected(), Some(address(10)));
    assert!(
        ice.handle_request(now, address(9), &request("server:client", PASSWORD, true)).is_none()
    );
    assert_eq!(ice.ufrags().collect::<Vec<_>>(), ["again"]);
}

#[test]
fn many_paths_are_forgotten_but_never_the_one_in_use() {
    let (mut ice, now) = (ice(), Instant::now());
    for port in 1..=30 {
        let datagram = request("server:client", PASSWORD, port == 1);
        ice.handle_request(now, address(port), &datagram);
    }
    assert_eq!(ice.selected(), Some(address(1)));
    assert!(ice.is_proven(address(1)) && ice.is_proven(address(30)) && !ice.is_proven(address(2)));
    let changes: Vec<_> = std::iter::from_fn(|| ice.poll_change()).collect();
    let proven = changes.iter().filter(|change| matches!(change, PathChange::Proven(_))).count();
    assert_eq!((proven, changes.len() - proven), (30, 14));
}

#[test]
fn malformed_requests_and_those_without_the_password_get_no_answer() {
    let valid = request("server:client", PASSWORD, false);
    let mut table = vec![
        request("other:client", PASSWORD, false),
        request("server:other", PASSWORD, false),
        request("server:", PASSWORD, false),
        request("server:client2", PASSWORD, false),
        request("server", PASSWORD, false),
        request("server:client", "wrong wrong wrong wrong", false),
        [&valid[..], &[0; 600]].concat(),
    ];
    table.extend((0..valid.len()).map(|length| valid[..length].to_vec()));
    // The fingerprint comes after the integrity and is not covered by it; a request without one is still valid.
    for at in 0..valid.len() - 8 {
        let mut flipped = valid.clone();
        flipped[at] ^= 0x40;
        table.push(flipped);
    }
    for datagram in table {
        let mut ice = ice();
        assert_eq!(ice.handle_request(Instant::now(), address(9), &datagram), None);
        assert!(!ice.is_proven(address(9)));
    }
}

#[test]
fn after_the_end_a_valid_request_gets_a_signed_403_no_longer_than_the_request() {
    let (mut ice, now) = (ice(), Instant::now());
    let datagram = request("server:client", PASSWORD, true);
    ice.handle_request(now, address(9), &datagram);
    let mut revoked = ice.revoke().expect("a client was connected");
    assert_eq!(revoked.ufrags().collect::<Vec<_>>(), ["server"]);
    let answer = revoked.handle_request(&datagram).expect("answered");
    assert!(answer.len() <= datagram.len(), "{} for {}", answer.len(), datagram.len());
    let mut response = Message::new();
    response.unmarshal_binary(&answer).expect("valid");
    assert_eq!(response.typ, BINDING_ERROR);
    assert_eq!(response.transaction_id, TransactionId([7; 12]));
    let mut error = ErrorCodeAttribute::default();
    error.get_from(&response).expect("there");
    assert!(error.code == CODE_FORBIDDEN, "{error}");
    let provider = provider();
    MessageIntegrity::check(&mut response, PASSWORD.as_bytes(), provider.crypto()).expect("signed");
}

#[test]
fn after_the_end_requests_of_a_pending_restart_get_403_too() {
    const NEW: &str = "abcdefghijklmnopqrstuvwx";
    let (mut ice, now) = (ice(), Instant::now());
    ice.handle_request(now, address(9), &request("server:client", PASSWORD, true));
    ice.restart("renewed".into(), NEW.into(), vec!["other".into()]);
    let mut revoked = ice.revoke().expect("a client was connected");
    assert!(revoked.handle_request(&request("server:client", PASSWORD, false)).is_some());
    assert!(revoked.handle_request(&request("renewed:other", NEW, false)).is_some());
}

#[test]
fn after_the_end_strangers_get_nothing_and_a_client_at_most_32_answers() {
    let (mut ice, now) = (ice(), Instant::now());
    assert!(ice.revoke().is_none(), "no client was connected");
    let valid = request("server:client", PASSWORD, false);
    ice.handle_request(now, address(9), &valid);
    let mut revoked = ice.revoke().expect("a client was connected");
    for datagram in [
        request("other:client", PASSWORD, false),
        request("server:other", PASSWORD, false),
        request("server:client", "wrong wrong wrong wrong", false),
        valid[..40].to_vec(),
    ] {
        assert_eq!(revoked.handle_request(&datagram), None);
    }
    let answers = (0..1000).filter(|_| revoked.handle_request(&valid).is_some()).count();
    assert_eq!(answers, 31, "the one with a wrong password was examined");
}
