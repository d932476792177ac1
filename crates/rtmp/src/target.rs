//! The target of a publish or play command (R2 of the decisions).

use std::fmt;

/// App, stream name and custom arguments, bytes as sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// First segment of the path.
    pub app: String,
    /// The rest of the path, up to the first `?`.
    pub name: Vec<u8>,
    /// Bytes after the first `?`; `None` if there is none.
    pub arguments: Option<Vec<u8>>,
}

impl Target {
    /// Joins app, `/` and name, takes the first segment as app and splits at the first `?`. An encoder that splits the
    /// URL elsewhere (at a `/` in an argument) thus yields the same result. Without a name the app is everything: OBS
    /// sends that for a whole URL as server and no stream key. (FFmpeg sends the same for arguments that end in `/`,
    /// and loses that.)
    #[must_use]
    pub(crate) fn parse(app: &[u8], name: &[u8]) -> Self {
        // Arguments of the connection (`rtmp://host/live?k=v`) do not belong to the stream.
        let of_connection = app.iter().position(|byte| *byte == b'?');
        let app = match of_connection {
            Some(at) if !app[..at].contains(&b'/') => &app[..at],
            Some(_) | None => app,
        };
        let separator: &[u8] = if name.is_empty() { b"" } else { b"/" };
        let joined = [app, separator, name].concat();
        let question = joined.iter().position(|byte| *byte == b'?');
        let (path, arguments) = match question {
            Some(at) => (&joined[..at], Some(joined[at + 1..].to_vec())),
            None => (&joined[..], None),
        };
        let slash = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
        let app = String::from_utf8_lossy(&path[..slash]).into_owned();
        let name = path.get(slash + 1..).unwrap_or_default().to_vec();
        Self { app, name, arguments }
    }
}

/// Arguments are secrets: only their length is printed.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("app", &self.app)
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("arguments_bytes", &self.arguments.as_ref().map(Vec::len))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(app: &str, name: &str) -> (String, String, Option<String>) {
        let target = Target::parse(app.as_bytes(), name.as_bytes());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("ASCII");
        (target.app, text(target.name), target.arguments.map(text))
    }

    #[test]
    fn arguments_are_what_follows_the_first_question_mark_untouched() {
        let want = ("live".into(), "cam".into(), Some("a=s%2Fx&b=%20y?c=/d".into()));
        assert_eq!(split("live", "cam?a=s%2Fx&b=%20y?c=/d"), want);
    }

    #[test]
    fn a_url_cut_inside_its_arguments_means_the_same() {
        assert_eq!(split("live/cam?u=a", "b"), ("live".into(), "cam".into(), Some("u=a/b".into())));
        assert_eq!(split("live", "cam"), ("live".into(), "cam".into(), None));
        assert_eq!(split("live", "cam?"), ("live".into(), "cam".into(), Some(String::new())));
    }

    #[test]
    fn without_a_stream_key_the_whole_url_is_in_the_app() {
        assert_eq!(split("live/cam", ""), ("live".into(), "cam".into(), None));
        assert_eq!(split("live/cam?k=v", ""), ("live".into(), "cam".into(), Some("k=v".into())));
        assert_eq!(split("live", ""), ("live".into(), String::new(), None));
    }

    #[test]
    fn arguments_of_the_connection_are_ignored() {
        assert_eq!(split("live?k=v", "cam?a=b"), ("live".into(), "cam".into(), Some("a=b".into())));
    }

    #[test]
    fn debug_output_hides_arguments() {
        let shown = format!("{:?}", Target::parse(b"live", b"cam?passcode=s3cret"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
