//! [`Address`]: where an object or a folder of objects is that is not a file of
//! this machine: `s3://bucket/key`, `gs://bucket/key`, `az://container/key`,
//! `http://host/path`.
//!
//! Invariant: an address holds no credentials. One that has a user, or a query that
//! signs it, is refused, and the message does not repeat it.

use std::fmt;

use crate::error::{Error, Result};

/// Which protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Amazon S3 and the many that speak its protocol.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure Blob Storage.
    Az,
    /// Any web server that answers requests for ranges, for reading.
    Http,
    /// The same, encrypted.
    Https,
}

impl Scheme {
    const ALL: [(&'static str, Scheme); 5] = [
        ("s3", Scheme::S3),
        ("gs", Scheme::Gs),
        ("az", Scheme::Az),
        ("http", Scheme::Http),
        ("https", Scheme::Https),
    ];

    /// The name before `://`.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, scheme)| *scheme == self);
        found.map_or("", |(name, _)| name)
    }

    /// The protocol of this name, in large or small letters.
    fn named(name: &str) -> Option<Self> {
        let found = Self::ALL
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, scheme)| *scheme)
    }

    /// Whether it is a web server, which is only read.
    pub fn is_web(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }
}

/// Where an object, or a folder of objects, is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    scheme: Scheme,
    place: String,
    key: String,
}

impl Address {
    /// Whether `text` begins as an address does.
    pub fn is_one(text: &str) -> bool {
        let name = text.split_once("://").map(|(name, _)| name);
        name.and_then(Scheme::named).is_some()
    }

    /// The address that `text` is; a `/` at its end says nothing.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, rest) = text.split_once("://").unwrap_or(("", text));
        let Some(scheme) = Scheme::named(name) else {
            return Err(refused(
                "an address begins with s3://, gs://, az://, http:// or https://",
            ));
        };
        let (place, key) = rest.split_once('/').unwrap_or((rest, ""));
        if place.contains('@') {
            return Err(refused(
                "an address must hold neither user nor password; they belong into the environment",
            ));
        }
        if has_password(place) {
            // The rest of one that has a '/' in it would be taken for a name.
            return Err(refused(
                "what stands before the first '/' of an address has no ':' but for the port of a \
                 host; users and passwords belong into the environment",
            ));
        }
        if scheme.is_web() && rest.contains(['?', '#']) {
            return Err(refused(
                "a web address must have neither '?' nor '#'; signed addresses are not supported",
            ));
        }
        if key.split_once('?').is_some_and(|(_, query)| signs(query)) {
            return Err(refused(
                "an address must hold no signature; credentials belong into the environment",
            ));
        }
        let fits = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]$".contains(letter);
        if place.is_empty() || !place.chars().all(fits) {
            return Err(refused(match scheme.is_web() {
                true => "after :// an address names a host, as in http://host/file.npy",
                false => "after :// an address names a bucket, as in s3://bucket/key",
            }));
        }
        let key = key.trim_end_matches('/');
        if key.split('/').any(|name| matches!(name, "." | ".."))
            || key.contains("//")
            || key.starts_with('/')
        {
            return Err(refused(
                "the names of an address, with '/' between them, must not be empty, '.' or '..'",
            ));
        }
        Ok(Self {
            scheme,
            place: place.into(),
            key: key.into(),
        })
    }

    /// Which protocol is spoken.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The bucket, the container or the host.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What is named there; empty for all of it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The bucket, the container or the host, with the protocol.
    pub fn root(&self) -> String {
        format!("{}://{}", self.scheme.name(), self.place)
    }
}

/// Whether a host, or what stands in its place, has a `:` that no port follows.
fn has_password(place: &str) -> bool {
    // Numbers of hosts in brackets have colons.
    let behind = place.rsplit(']').next().unwrap_or_default();
    let port = behind.split_once(':').map(|(_, port)| port);
    port.is_some_and(|port| port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a query is a signature.
fn signs(query: &str) -> bool {
    const ALONE: [&str; 5] = [
        "sig",
        "signature",
        "awsaccesskeyid",
        "googleaccessid",
        "token",
    ];
    query.split(['&', '?']).any(|setting| {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let name = name.to_ascii_lowercase();
        let known = ALONE.contains(&name.as_str());
        !value.is_empty() && (known || name.starts_with("x-amz-") || name.starts_with("x-goog-"))
    })
}

/// The text without the users and the queries of the addresses in it, which may be
/// what lets one in.
pub fn without_secrets(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("://") {
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        // Another address may follow without a gap.
        let end = match after[..end].strip_suffix(':') {
            Some(before) if after[end..].starts_with("//") => before.len(),
            _ => end,
        };
        // A password may have a '/' in it.
        let end = match after.rfind('@') {
            Some(at) if at > end && has_password(&after[..end]) => {
                let host = &after[at + 1..];
                at + 1 + host.find(['/', '?', '#']).unwrap_or(host.len())
            }
            _ => end,
        };
        let host = after[..end].rsplit('@').next().unwrap_or_default();
        kept.extend([before, "://", host]);
        rest = &after[end..];
        if let Some((path, _)) = rest.split_once('?') {
            rest = path;
            break;
        }
    }
    kept.push_str(rest);
    kept
}

fn refused(reason: &str) -> Error {
    Error::Settings {
        store: "connection to an object store",
        reason: reason.into(),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => f.write_str(&self.root()),
            key => write!(f, "{}/{key}", self.root()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_what_is_none() {
        for (text, scheme, place, key) in [
            ("s3://b/a.zarr/t", Scheme::S3, "b", "a.zarr/t"),
            ("s3://b", Scheme::S3, "b", ""),
            ("gs://b/x/", Scheme::Gs, "b", "x"),
            ("az://c/x y?#%", Scheme::Az, "c", "x y?#%"),
            ("http://[::1]:80/x", Scheme::Http, "[::1]:80", "x"),
            ("HTTPS://Host/X", Scheme::Https, "Host", "X"),
        ] {
            assert!(Address::is_one(text));
            let address = Address::parse(text).unwrap();
            assert_eq!(
                (address.scheme(), address.place(), address.key()),
                (scheme, place, key)
            );
            let shown = address.to_string();
            assert!(
                shown.eq_ignore_ascii_case(text.trim_end_matches('/')),
                "{shown}"
            );
            assert!(shown.starts_with(scheme.name()), "{shown}");
        }
        for text in ["a.npy", "s3:/b/x", "ftp://b/x", "dir/s3://b", "file:///x"] {
            assert!(!Address::is_one(text), "{text}");
        }
        for text in ["s3://", "s3:///x", "s3://b//x", "s3://b/../x", "s3://b c/x"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_message_repeats_a_secret() {
        for text in [
            "https://me:swordfish@host/x.npy",
            "HTTPS://me:swordfish@host/x.npy",
            "https://host/x.npy?sig=swordfish",
            "s3://key:swordfish@bucket/x",
            "s3://bucket/x.npy?X-Amz-Date=1&X-Amz-Signature=swordfish",
            "gs://bucket/x.npy?x-goog-signature=swordfish",
            "az://c/x.npy?sv=2026&sig=swordfish",
        ] {
            let message = Address::parse(text).unwrap_err().to_string();
            assert!(!message.contains("swordfish"), "{message}");
            let shown = without_secrets(&format!("raw:{text}"));
            assert!(!shown.contains("swordfish"), "{shown}");
            assert!(shown.ends_with('x') || shown.ends_with("x.npy"), "{shown}");
        }
        assert_eq!(without_secrets("a@b?c.npy"), "a@b?c.npy");
        let two = "from=http://me:swordfish@h,http://me:swordfish@g";
        assert!(!without_secrets(two).contains("swordfish"));
    }
}
