//! The parts of an upstream's RTMP URL. Pure; names are resolved by the gateway.

use std::fmt;

/// An upstream: `rtmp[s]://host[:port]/app/name[?arguments]`.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamUrl {
    /// Host name or address literal, without brackets.
    pub host: String,
    /// 1935 unless given, 443 with TLS.
    pub port: u16,
    /// `rtmps`.
    pub is_tls: bool,
    /// Everything between host and last path segment.
    pub app: String,
    /// Last path segment with its arguments, bytes as given.
    pub name: String,
}

impl UpstreamUrl {
    /// `None` when it is not an `rtmp` or `rtmps` URL with app and name.
    #[must_use]
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (is_tls, default_port) = match scheme {
            "rtmp" => (false, 1935),
            "rtmps" => (true, 443),
            _ => return None,
        };
        let (authority, path) = rest.split_once('/')?;
        let (host, port) = split_authority(authority, default_port)?;
        // A slash behind the first question mark belongs to the arguments.
        let (path, arguments) = path.split_once('?').map_or((path, None), |(p, a)| (p, Some(a)));
        let (app, name) = path.rsplit_once('/')?;
        if host.is_empty() || app.is_empty() || name.is_empty() {
            return None;
        }
        let name =
            arguments.map_or_else(|| name.to_owned(), |arguments| format!("{name}?{arguments}"));
        Some(Self { host: host.to_owned(), port, is_tls, app: app.to_owned(), name })
    }

    /// The `tcUrl` of the connect command.
    #[must_use]
    pub fn tc_url(&self) -> String {
        let scheme = if self.is_tls { "rtmps" } else { "rtmp" };
        format!("{scheme}://{self}/{}", self.app)
    }
}

fn split_authority(authority: &str, default_port: u16) -> Option<(&str, u16)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return match port.strip_prefix(':') {
            Some(port) => Some((host, port.parse().ok()?)),
            None => port.is_empty().then_some((host, default_port)),
        };
    }
    match authority.split_once(':') {
        Some((host, port)) => Some((host, port.parse().ok()?)),
        None => Some((authority, default_port)),
    }
}

/// Host and port only: what follows may hold secrets.
impl fmt::Display for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_taken_verbatim() {
        let url = UpstreamUrl::parse("rtmp://[::1]:1940/live/eu/cam?a=b/c%2F?d").expect("valid");
        assert_eq!((url.host.as_str(), url.port), ("::1", 1940));
        assert_eq!((url.app.as_str(), url.name.as_str()), ("live/eu", "cam?a=b/c%2F?d"));
        assert_eq!(url.tc_url(), "rtmp://[::1]:1940/live/eu");
        assert_eq!(UpstreamUrl::parse("rtmp://h/live/x").map(|url| url.port), Some(1935));
    }

    #[test]
    fn anything_else_is_refused() {
        for url in [
            "http://h/live/x",
            "rtmp://h/live",
            "rtmp:///live/x",
            "rtmp://h:99999/live/x",
            "rtmp://h/live/",
        ] {
            assert_eq!(UpstreamUrl::parse(url), None, "{url}");
        }
    }
}
