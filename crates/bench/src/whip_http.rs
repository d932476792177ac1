//! HTTP/1.1 as far as a WHIP client on loopback needs it: one request per connection. No TLS, no redirects.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A server that takes longer fails the run.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// More than any answer.
const ANSWER_BYTES_LIMIT: u64 = 256 * 1024;

/// The response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The path of `Location`.
    pub(crate) session_path: Option<String>,
    pub(crate) body: String,
}

impl Answer {
    /// The first UDP candidate, as an address and as the original text.
    pub(crate) fn candidate(&self) -> Option<(SocketAddr, String)> {
        self.body.lines().find_map(|line| {
            let words: Vec<_> = line.strip_prefix("a=candidate:")?.split(' ').collect();
            let [_, "1", protocol, _, address, port, "typ", ..] = words[..] else { return None };
            let is_udp = protocol.eq_ignore_ascii_case("udp");
            let server = SocketAddr::new(address.parse().ok()?, port.parse().ok()?);
            is_udp.then(|| (server, format!("{address} {port}")))
        })
    }
}

/// The request's path for a stream: of Headgate, with `stream_url` as the only upstream, or of another server, where
/// `stream_url` is a path with `{name}` in it.
pub(crate) fn post_path(stream_url: &str, name: &str) -> String {
    if stream_url.starts_with('/') {
        return stream_url.replace("{name}", &escape(name));
    }
    format!("/p/webrtc?stream_name={}&stream_url={}", escape(name), escape(stream_url))
}

/// Posts an offer to `path`.
pub(crate) fn post_offer(server: SocketAddr, path: &str, offer: &str) -> io::Result<Answer> {
    exchange(
        server,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{offer}",
            offer.len()
        ),
    )
}

/// Ends a session.
pub(crate) fn delete(server: SocketAddr, path: &str) -> io::Result<Answer> {
    exchange(
        server,
        &format!("DELETE {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n"),
    )
}

/// Everything but unreserved characters as `%XX` (RFC 3986 2.1).
fn escape(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    escaped.collect()
}

fn exchange(server: SocketAddr, request: &str) -> io::Result<Answer> {
    let mut socket = TcpStream::connect_timeout(&server, ANSWER_LIMIT)?;
    socket.set_read_timeout(Some(ANSWER_LIMIT))?;
    socket.set_nodelay(true)?;
    socket.write_all(request.as_bytes())?;
    let mut text = String::new();
    socket.take(ANSWER_BYTES_LIMIT).read_to_string(&mut text)?;
    parse(&text).ok_or_else(|| io::Error::other(format!("not an HTTP answer: {text:?}")))
}

fn parse(text: &str) -> Option<Answer> {
    let (head, rest) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let headers: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let header =
        |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
    let is_chunked = header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
    let body = if is_chunked { join_chunks(rest)? } else { rest.to_owned() };
    Some(Answer { status, session_path: header("location").and_then(path_of), body })
}

fn path_of(location: &str) -> Option<String> {
    let behind = location.split_once("://").map_or(location, |(_, behind)| behind);
    behind.find('/').and_then(|at| behind.get(at..)).map(str::to_owned)
}

/// RFC 9112 7.1, without trailers.
fn join_chunks(mut rest: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.push_str(after.get(..size)?);
        rest = after.get(size..)?.strip_prefix("\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_and_a_chunked_answer_are_parsed() {
        let head = "HTTP/1.1 201 Created\r\nlocation: https://a.example/p/webrtc/1-2\r\n";
        let plain = parse(&format!("{head}Content-Length: 5\r\n\r\nv=0\r\n")).expect("valid");
        let chunked =
            format!("{head}Transfer-Encoding: chunked\r\n\r\n2\r\nv=\r\n3\r\n0\r\n\r\n0\r\n\r\n");
        assert_eq!(parse(&chunked).expect("valid"), plain);
        let session_path = Some("/p/webrtc/1-2".to_owned());
        assert_eq!(plain, Answer { status: 201, session_path, body: "v=0\r\n".to_owned() });
    }

    #[test]
    fn a_path_is_that_of_headgate_or_of_another_server() {
        assert_eq!(post_path("/live/{name}/whip", "a b"), "/live/a%20b/whip");
        assert_eq!(
            post_path("rtmp://h/l", "a"),
            "/p/webrtc?stream_name=a&stream_url=rtmp%3A%2F%2Fh%2Fl"
        );
    }

    #[test]
    fn reserved_characters_are_escaped() {
        assert_eq!(escape("rtmp://h:1/live?a=b"), "rtmp%3A%2F%2Fh%3A1%2Flive%3Fa%3Db");
    }
}
