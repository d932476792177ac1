//! Values of commands and metadata, whichever version of AMF they came in.

/// One AMF0 value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Boolean(bool),
    String(Vec<u8>),
    Object(Vec<(Vec<u8>, Value)>),
    Null,
    Undefined,
    EcmaArray(Vec<(Vec<u8>, Value)>),
    StrictArray(Vec<Value>),
    Date(f64),
}

impl Value {
    pub(crate) fn string(text: &str) -> Self {
        Self::String(text.as_bytes().to_vec())
    }

    pub(crate) fn object<const N: usize>(properties: [(&str, Self); N]) -> Self {
        let owned = |(key, value): (&str, Self)| (key.as_bytes().to_vec(), value);
        Self::Object(properties.into_iter().map(owned).collect())
    }

    pub(crate) fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::String(bytes) => Some(bytes),
            Self::Number(_)
            | Self::Boolean(_)
            | Self::Object(_)
            | Self::Null
            | Self::Undefined
            | Self::EcmaArray(_)
            | Self::StrictArray(_)
            | Self::Date(_) => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<String> {
        self.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub(crate) const fn as_number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// Appends a property to an object.
    pub(crate) fn push(&mut self, key: &str, value: Self) {
        if let Self::Object(properties) = self {
            properties.push((key.as_bytes().to_vec(), value));
        }
    }

    /// A property of an object or ECMA array. Keys are compared without case, because peers spell `tcUrl` in two ways.
    pub(crate) fn property(&self, key: &str) -> Option<&Self> {
        let (Self::Object(properties) | Self::EcmaArray(properties)) = self else { return None };
        let same = |(name, _): &&(Vec<u8>, Self)| name.eq_ignore_ascii_case(key.as_bytes());
        properties.iter().find(same).map(|(_, value)| value)
    }
}
