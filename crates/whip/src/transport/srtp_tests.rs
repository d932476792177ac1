use super::*;

fn provider() -> Arc<dyn RTCCryptoProvider> {
    rtc_crypto::default_provider().expect("a provider is built in")
}

fn keys(profile: SrtpProfile) -> SrtpKeys {
    let master = |fill: u8| MasterKey {
        key: (0..16).map(|n| n ^ fill).collect(),
        salt: (0..profile.salt_len() as u8).map(|n| n.wrapping_mul(7) ^ fill).collect(),
    };
    SrtpKeys { profile, ours: master(1), theirs: master(9) }
}

/// The library acts as an independent sender.
fn sender(keys: &SrtpKeys) -> Context {
    let profile = match keys.profile {
        SrtpProfile::Gcm => ProtectionProfile::AeadAes128Gcm,
        SrtpProfile::Cm => ProtectionProfile::Aes128CmHmacSha1_80,
    };
    let master = &keys.theirs;
    Context::new(&master.key, &master.salt, profile, None, None, provider().crypto())
        .expect("valid keys")
}

fn packet(sequence: u16, ssrc: u32) -> Vec<u8> {
    let mut bytes = vec![0x90, 96];
    bytes.extend_from_slice(&sequence.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 1]);
    bytes.extend_from_slice(&ssrc.to_be_bytes());
    bytes.extend_from_slice(&[0xbe, 0xde, 0, 1, 0x31, 5, 6, 0]);
    bytes.extend_from_slice(&[sequence as u8; 100]);
    bytes
}

#[test]
fn packets_of_an_independent_sender_are_decrypted_across_the_rollover() {
    for profile in [SrtpProfile::Gcm, SrtpProfile::Cm] {
        let keys = keys(profile);
        let mut sender = sender(&keys);
        let mut srtp = Srtp::new(&keys, &provider()).expect("valid keys");
        for n in 65_000_u32..70_000 {
            let clear = packet(n as u16, 7);
            let mut protected = sender.encrypt_rtp(&clear).expect("protects").to_vec();
            let length = srtp.open(&mut protected).expect("opens");
            assert_eq!(&protected[..length], &clear[..]);
        }
    }
}

#[test]
fn replays_forgeries_and_old_packets_are_rejected_and_reordered_ones_are_not() {
    for profile in [SrtpProfile::Gcm, SrtpProfile::Cm] {
        let keys = keys(profile);
        let mut sender = sender(&keys);
        let mut srtp = Srtp::new(&keys, &provider()).expect("valid keys");
        let mut protect = |n: u16| sender.encrypt_rtp(&packet(n, 7)).expect("protects").to_vec();
        let protected: Vec<_> = (0..2000).map(&mut protect).collect();
        let mut open = |n: usize| srtp.open(&mut protected[n].clone());
        assert!(open(10).is_ok());
        assert_eq!(open(10), Err(Rejected::Replayed));
        assert!(open(12).is_ok());
        assert!(open(11).is_ok());
        assert!(open(1500).is_ok());
        // Too old for the window: it is taken for the next packet with this number, and then its tag is wrong.
        assert_eq!(open(13), Err(Rejected::Forged));
        assert!(open(600).is_ok());
        for at in 0..protected[601].len() {
            let mut forged = protected[601].clone();
            forged[at] ^= 1;
            assert!(srtp.open(&mut forged).is_err(), "byte {at}");
        }
        assert!(srtp.open(&mut protected[601].clone()).is_ok());
    }
}

#[test]
fn a_source_is_decrypted_again_after_a_loss_of_more_than_half_of_all_numbers() {
    let profiles = [SrtpProfile::Gcm, SrtpProfile::Cm];
    for (profile, lost) in profiles.into_iter().flat_map(|of| [(of, 40_000), (of, 60_000)]) {
        let keys = keys(profile);
        let mut sender = sender(&keys);
        let mut srtp = Srtp::new(&keys, &provider()).expect("valid keys");
        let mut protect =
            |n: u32| sender.encrypt_rtp(&packet(n as u16, 7)).expect("protects").to_vec();
        for n in 0..=5_000 {
            assert!(srtp.open(&mut protect(n)).is_ok());
        }
        for n in 5_001..5_001 + lost {
            protect(n);
        }
        let next: Vec<_> = (5_001 + lost..=6_025 + lost).map(&mut protect).collect();
        for protected in &next {
            assert!(srtp.open(&mut protected.clone()).is_ok(), "after {lost} lost packets");
        }
        for back in 0..=1_024 {
            assert!(srtp.open(&mut next[1_024 - back].clone()).is_err(), "{back} back");
        }
    }
}

#[test]
fn reports_are_decrypted_once_and_only_if_encrypted_and_authenticated() {
    for profile in [SrtpProfile::Gcm, SrtpProfile::Cm] {
        let keys = keys(profile);
        let mut sender = sender(&keys);
        let mut srtp = Srtp::new(&keys, &provider()).expect("valid keys");
        let clear = [&[0x80, 200, 0, 6][..], &[7; 24]].concat();
        for _ in 0..100 {
            let protected = sender.encrypt_rtcp(&clear).expect("protects").to_vec();
            for at in 0..protected.len() {
                let mut forged = protected.clone();
                forged[at] ^= 0x80;
                assert!(srtp.open_rtcp(&mut forged).is_err(), "byte {at}");
            }
            let mut opened = protected.clone();
            let length = srtp.open_rtcp(&mut opened).expect("opens");
            assert_eq!(&opened[..length], &clear[..]);
            assert_eq!(srtp.open_rtcp(&mut protected.clone()), Err(Rejected::Replayed));
        }
    }
}

#[test]
fn beyond_the_limit_the_least_recently_used_source_makes_room_for_a_new_one() {
    let keys = keys(SrtpProfile::Gcm);
    let mut sender = sender(&keys);
    let mut srtp = Srtp::new(&keys, &provider()).expect("valid keys");
    for ssrc in 0..1000 {
        assert!(srtp.open(&mut packet(1, ssrc)).is_err());
    }
    assert!(srtp.media_senders.known.is_empty(), "forged packets take no memory");
    let mut protect = |n, ssrc| sender.encrypt_rtp(&packet(n, ssrc)).expect("protects").to_vec();
    for ssrc in 0..100 {
        let first = protect(1, ssrc);
        assert!(srtp.open(&mut first.clone()).is_ok(), "source {ssrc}");
        assert_eq!(srtp.open(&mut first.clone()), Err(Rejected::Replayed), "source {ssrc}");
        // A source that keeps sending keeps its replay window.
        let again = protect(2 + ssrc as u16, 1000);
        assert!(srtp.open(&mut again.clone()).is_ok());
        assert_eq!(srtp.open(&mut again.clone()), Err(Rejected::Replayed));
        assert!(srtp.media_senders.known.len() <= SSRC_LIMIT);
    }
}

#[test]
fn short_and_unprotected_packets_are_rejected_without_a_panic() {
    for profile in [SrtpProfile::Gcm, SrtpProfile::Cm] {
        let mut srtp = Srtp::new(&keys(profile), &provider()).expect("valid keys");
        let whole = packet(1, 7);
        for length in 0..whole.len() {
            assert!(srtp.open(&mut whole[..length].to_vec()).is_err());
            assert!(srtp.open_rtcp(&mut whole[..length].to_vec()).is_err());
        }
    }
}
