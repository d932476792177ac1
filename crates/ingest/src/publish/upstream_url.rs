//! The parts of an upstream's RTMP URL. Pure; names are resolved by the gateway.

use std::fmt;

use headgate_rtmp::Credentials;

/// An upstream: `rtmp[s]://[user:password@]host[:port]/app[?arguments]/name[?arguments]`. An app of several segments is
/// separated from its arguments by `%3F`, and they are percent-encoded; an app of one segment may use either form.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamUrl {
    /// Host name or address literal, without brackets.
    pub host: String,
    /// 1935 by default, 443 with TLS.
    pub port: u16,
    /// Whether the scheme is `rtmps`.
    pub is_tls: bool,
    /// For servers that require authentication (`authmod=adobe`, `llnw`).
    pub credentials: Option<Credentials>,
    /// What the connection is for, with the arguments that belong to it rather than to the stream.
    pub app: String,
    /// The last path segment with its arguments, verbatim.
    pub name: String,
}

impl UpstreamUrl {
    /// Parses a URL; `None` unless it is an `rtmp` or `rtmps` URL with app and name.
    #[must_use]
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (is_tls, default_port) = match scheme {
            "rtmp" => (false, 1935),
            "rtmps" => (true, 443),
            _ => return None,
        };
        let (authority, path) = rest.split_once('/')?;
        let (credentials, authority) = match authority.rsplit_once('@') {
            Some((user_info, authority)) => (Some(read_credentials(user_info)?), authority),
            None => (None, authority),
        };
        let (host, port) = split_authority(authority, default_port)?;
        let (app, name) = split_path(path)?;
        if host.is_empty() || app.is_empty() || app.starts_with('?') || is_without_path(name) {
            return None;
        }
        let name = name.to_owned();
        Some(Self { host: host.to_owned(), port, is_tls, credentials, app, name })
    }

    /// The stream `name` at a tcUrl, whose arguments belong to the connection and not to the stream.
    pub(crate) fn at(tc_url: &str, name: &str) -> Option<Self> {
        let (base, arguments) =
            tc_url.split_once('?').map_or((tc_url, None), |(b, a)| (b, Some(a)));
        let url = Self::parse(&format!("{base}/{name}"))?;
        let Some(arguments) = arguments else { return Some(url) };
        Some(Self { app: format!("{}?{arguments}", url.app), ..url })
    }

    /// The `tcUrl` of the connect command.
    #[must_use]
    pub fn tc_url(&self) -> String {
        let scheme = if self.is_tls { "rtmps" } else { "rtmp" };
        format!("{scheme}://{self}/{}", self.app)
    }

    /// The same for people: without the arguments of the app, which may be secret.
    #[must_use]
    pub(crate) fn shown(&self) -> String {
        let tc_url = self.tc_url();
        tc_url.split_once('?').map(|(shown, _)| shown.to_owned()).unwrap_or(tc_url)
    }

    /// An upstream's text made fit to be shown: without our stream key, arguments and password, on one line and
    /// shortened.
    #[must_use]
    pub(crate) fn conceal(&self, words: &str) -> String {
        const LIMIT_CHARACTERS: usize = 200;
        /// Anything shorter is no secret and would match inside ordinary words.
        const LEAST_BYTES: usize = 3;
        let (name, arguments) = self.name.split_once('?').unwrap_or((&self.name, ""));
        let password = self.credentials.as_ref().map_or("", |credentials| &credentials.password);
        let (_, of_app) = self.app.split_once('?').unwrap_or_default();
        let mut shown = words.to_owned();
        for secret in [&self.name, name, arguments, of_app, password] {
            if secret.len() >= LEAST_BYTES {
                shown = shown.replace(secret, "…");
            }
        }
        shown.chars().filter(|one| !one.is_control()).take(LIMIT_CHARACTERS).collect()
    }
}

/// App and name of a path.
fn split_path(path: &str) -> Option<(String, &str)> {
    let (base, arguments) = path.split_once('?').map_or((path, None), |(b, a)| (b, Some(a)));
    let Some((app, name)) = base.rsplit_once('/') else {
        // A server with arguments and the key after it: `live2?backup=1/key?k=v`. The key is what follows the last slash
        // before its own arguments.
        let own = arguments?
            .split_once('?')
            .map_or(path.len(), |(of_app, _)| base.len() + 1 + of_app.len());
        let slash = path[..own].rfind('/')?;
        return Some((path[..slash].to_owned(), &path[slash + 1..]));
    };
    // A slash after the first question mark belongs to the arguments of the name.
    let name = &path[base.len() - name.len()..];
    let lower = app.to_ascii_lowercase();
    let app = match lower.find("%3f") {
        Some(at) => format!("{}?{}", &app[..at], decode_percent(&app[at + 3..])?),
        None => app.to_owned(),
    };
    Some((app, name))
}

fn is_without_path(name: &str) -> bool {
    name.is_empty() || name.starts_with('?')
}

/// `user:password`, percent-decoded.
fn read_credentials(user_info: &str) -> Option<Credentials> {
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    Some(Credentials { user: decode_percent(user)?, password: decode_percent(password)? })
}

fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let two = (first == b'%').then(|| after.get(..2)).flatten();
        let value = two.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        bytes.push(value.unwrap_or(first));
        rest = if value.is_some() { after.get(2..)? } else { after };
    }
    String::from_utf8(bytes).ok()
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

/// Host and port only: the rest may contain secrets.
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
    fn arguments_of_the_app_belong_to_the_app() {
        let parts = |url: &str| UpstreamUrl::parse(url).map(|url| (url.app, url.name));
        for (path, app, name) in [
            ("live2?backup=1/key", "live2?backup=1", "key"),
            ("live2?backup=1/key?k=a/b", "live2?backup=1", "key?k=a/b"),
            ("live2?u=a/b/key", "live2?u=a/b", "key"),
            ("live2%3Fbackup=1/key", "live2?backup=1", "key"),
            ("live2%3fu=a%2Fb%26c/key?k=v", "live2?u=a/b&c", "key?k=v"),
            ("app/one%3Fx=1/key?k=v", "app/one?x=1", "key?k=v"),
            ("app/one/key?k=v/w", "app/one", "key?k=v/w"),
        ] {
            let want = Some((app.to_owned(), name.to_owned()));
            assert_eq!(parts(&format!("rtmp://u:p@h/{path}")), want, "{path}");
        }
        for path in
            ["live2?backup=1", "live2?backup=1/", "live2?backup=1/?k=v", "?a=1/key", "%3Fa/key"]
        {
            assert_eq!(parts(&format!("rtmp://h/{path}")), None, "{path}");
        }
        let url = UpstreamUrl::parse("rtmp://h/live2?token=secret/key").expect("valid");
        assert_eq!(url.tc_url(), "rtmp://h:1935/live2?token=secret");
        assert_eq!(url.shown(), "rtmp://h:1935/live2");
        assert_eq!(url.conceal("no token=secret"), "no …");
    }

    #[test]
    fn arguments_of_a_tc_url_stay_with_the_connection() {
        let url = UpstreamUrl::at("rtmp://h:1940/live?moved", "cam?a=b/c").expect("valid");
        assert_eq!((url.app.as_str(), url.name.as_str()), ("live?moved", "cam?a=b/c"));
        assert_eq!(url.tc_url(), "rtmp://h:1940/live?moved");
        assert_eq!(
            UpstreamUrl::at("rtmp://h/live", "cam"),
            UpstreamUrl::parse("rtmp://h/live/cam")
        );
        assert_eq!(UpstreamUrl::at("rtmp://h?moved", "cam"), None);
    }

    #[test]
    fn tls_and_credentials_are_parsed_and_credentials_are_never_shown() {
        let url = UpstreamUrl::parse("rtmps://me%40x:p%3Aw@h/live/x").expect("valid");
        assert_eq!((url.port, url.is_tls, url.host.as_str()), (443, true, "h"));
        let Credentials { user, password } = url.credentials.clone().expect("given");
        assert_eq!((user.as_str(), password.as_str()), ("me@x", "p:w"));
        assert_eq!(
            format!("{url} {url:?} {}", url.tc_url()),
            "h:443 UpstreamUrl(h:443) rtmps://h:443/live"
        );
    }

    #[test]
    fn text_from_an_upstream_is_shown_without_our_secrets() {
        let url = UpstreamUrl::parse("rtmp://me:word@h/live/key?token=1").expect("valid");
        let shown = url.conceal("no key?token=1 here, nor key, nor token=1 for me:word\r\nat all");
        assert_eq!(shown, "no … here, nor …, nor … for me:…at all");
        assert_eq!(url.conceal(&"x".repeat(1000)).len(), 200);
    }

    #[test]
    fn other_urls_are_rejected() {
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
