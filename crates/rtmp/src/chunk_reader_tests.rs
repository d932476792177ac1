use super::*;

/// One message of `length` bytes on chunk stream 3, in chunks of 128.
fn message(length: usize) -> Vec<u8> {
    let mut bytes = vec![3, 0, 0, 0, 0, 0, length as u8, 9, 1, 0, 0, 0];
    bytes.resize(12 + length, 7);
    bytes
}

#[test]
fn a_whole_message_is_read() {
    let mut reader = ChunkReader::new(Limits::default());
    let bytes = message(100);
    let read = reader.read(&mut &bytes[..]).expect("valid").expect("whole");
    assert_eq!((read.kind, read.stream, read.payload.len()), (9, 1, 100));
}
