//! What a server's refusal means, in one sentence with the remedy.
//!
//! Invariant: no sentence holds a credential. Of what a server or a library
//! says, only the status, the code and a few words are passed on, and of
//! addresses in it no user and nothing behind a `?`, where some protocols sign.

use std::io::{self, ErrorKind};

use object_store::Error;

use crate::address::{Scheme, without_secrets};

/// The longest text of others that is passed on, in letters.
const LONGEST: usize = 240;

/// Which variables say who asks.
pub(super) fn variables(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => {
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or \
             AWS_SKIP_SIGNATURE=true for public data"
        }
        Scheme::Gs => {
            "GOOGLE_APPLICATION_CREDENTIALS, or GOOGLE_SKIP_SIGNATURE=true for public data"
        }
        Scheme::Az => {
            "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_SKIP_SIGNATURE=true \
             for public data"
        }
        Scheme::Http | Scheme::Https => "the address",
    }
}

/// The error as a sentence.
pub(super) fn explain(scheme: Scheme, error: &Error) -> io::Error {
    let bucket = match scheme {
        Scheme::Az => "container",
        Scheme::Http | Scheme::Https => "host",
        Scheme::S3 | Scheme::Gs => "bucket",
    };
    let all = all_texts(error);
    let status = match error {
        Error::NotFound { .. } => "404",
        Error::PermissionDenied { .. } => "403",
        Error::Unauthenticated { .. } => "401",
        // Lists have no errors of their own.
        _ => status(&all).unwrap_or(""),
    };
    let (kind, text) = match error {
        _ if is_missing_bucket(&all) => (
            ErrorKind::NotFound,
            format!("there is no such {bucket}; check its name, and the endpoint that is asked"),
        ),
        _ if status == "404" => (ErrorKind::NotFound, "it is not there (404)".into()),
        _ if matches!(status, "401" | "403") && scheme.is_web() => (
            ErrorKind::PermissionDenied,
            format!("the server does not allow it ({status})"),
        ),
        _ if status == "403" => (
            ErrorKind::PermissionDenied,
            format!(
                "access is denied (403{}); check {}",
                code(&all),
                variables(scheme)
            ),
        ),
        _ if status == "401" => (
            ErrorKind::PermissionDenied,
            format!(
                "the server wants to know who asks (401); check {}",
                variables(scheme)
            ),
        ),
        Error::Precondition { .. } => (
            ErrorKind::InvalidData,
            "it was replaced since it was opened; open it again".into(),
        ),
        _ if all.contains("Received non-partial response")
            || all.contains("Range request not supported") =>
        {
            (
                ErrorKind::Unsupported,
                "the server does not answer requests for a range of bytes; copy the file first"
                    .into(),
            )
        }
        Error::NotImplemented { .. } | Error::NotSupported { .. } => (
            ErrorKind::Unsupported,
            "this kind of store cannot do that".into(),
        ),
        _ if all.contains("URL scheme is not allowed") && scheme.is_web() => (
            ErrorKind::PermissionDenied,
            "the server leads to an address that is not encrypted; if that will do, name that one \
             instead, with http://"
                .into(),
        ),
        _ if all.contains("builder error") || all.contains("URL scheme is not allowed") => (
            ErrorKind::InvalidInput,
            format!(
                "the endpoint is not encrypted, or no valid address; for http:// set \
                 {}_ALLOW_HTTP=true",
                match scheme {
                    Scheme::Gs => "GOOGLE",
                    Scheme::Az => "AZURE",
                    _ => "AWS",
                }
            ),
        ),
        _ if all.contains("peer certificate") => (
            ErrorKind::PermissionDenied,
            format!(
                "the certificate of the server is not valid ({}); check the endpoint",
                last_words(&all)
            ),
        ),
        _ if all.contains("dns error") || all.contains("tcp connect error") => (
            ErrorKind::NotConnected,
            format!(
                "the server cannot be reached ({}); check the {bucket}, the network and {}",
                last_words(&all),
                match scheme {
                    Scheme::S3 => "AWS_ENDPOINT_URL",
                    Scheme::Gs => "GOOGLE_BASE_URL",
                    Scheme::Az => "AZURE_STORAGE_ENDPOINT",
                    Scheme::Http | Scheme::Https => "the address",
                }
            ),
        ),
        _ if status.starts_with('5') || status == "429" => (
            ErrorKind::ResourceBusy,
            format!(
                "the server fails ({status}{}), also when asked again; try later",
                code(&all)
            ),
        ),
        _ if !status.is_empty() => (
            ErrorKind::Other,
            format!("the server refuses it ({status}{})", code(&all)),
        ),
        _ if all.contains("timed out") => (
            ErrorKind::TimedOut,
            "the server does not answer in time, also when asked again; try later".into(),
        ),
        _ if all.contains("error sending request") => (
            ErrorKind::NotConnected,
            format!(
                "the connection is lost ({}), also when asked again; try later",
                last_words(&all)
            ),
        ),
        _ => (ErrorKind::Other, shortened(&all)),
    };
    io::Error::new(kind, text)
}

/// Whether a server says that it is not the object that is missing.
pub(super) fn is_missing_bucket(text: &str) -> bool {
    text.contains("NoSuchBucket") || text.contains("ContainerNotFound")
}

/// What an error says, and those beneath it.
fn all_texts(error: &Error) -> String {
    let mut text = error.to_string();
    let mut beneath = std::error::Error::source(error);
    while let Some(error) = beneath {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        beneath = error.source();
    }
    text
}

/// The status in `status code: 500 Internal Server Error`.
fn status(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)
        .filter(|status| status.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The code in `<Code>SlowDown</Code>`, if the server has given one.
fn code(text: &str) -> String {
    let code = text
        .split_once("<Code>")
        .and_then(|(_, rest)| rest.split_once("</Code>"))
        .map(|(code, _)| code)
        .filter(|code| {
            code.len() < 40 && code.bytes().all(|letter| letter.is_ascii_alphanumeric())
        });
    code.map_or(String::new(), |code| format!(" {code}"))
}

/// What is behind the last colon.
fn last_words(text: &str) -> String {
    shortened(text.rsplit(": ").next().unwrap_or(text))
}

/// The text on one line, without secrets, and no longer than makes sense.
fn shortened(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(without_secrets).collect();
    let text = words.join(" ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_and_nothing_behind_a_question_mark_is_passed_on() {
        let source = "Error performing GET https://me:swordfish@a.b/c?sig=swordfish&x=1 in 3ms - \
                      oh\n no";
        let error = Error::Generic {
            store: "X",
            source: source.into(),
        };
        let text = explain(Scheme::Az, &error).to_string();
        assert!(text.contains("https://a.b/c in 3ms - oh no"), "{text}");
        assert!(!text.contains("swordfish"), "{text}");
    }

    #[test]
    fn web_addresses_that_lead_to_others_need_no_variable() {
        let error = Error::Generic {
            store: "HTTP",
            source: "error following redirect: URL scheme is not allowed".into(),
        };
        let text = explain(Scheme::Https, &error).to_string();
        assert!(text.contains("leads to an address"), "{text}");
        let text = explain(Scheme::S3, &error).to_string();
        assert!(text.contains("AWS_ALLOW_HTTP"), "{text}");
    }

    #[test]
    fn statuses_and_codes_are_named() {
        let body = "Server returned non-2xx status code: 503 Service Unavailable: \
                    <Error><Code>SlowDown</Code></Error>";
        let error = Error::Generic {
            store: "S3",
            source: body.into(),
        };
        let text = explain(Scheme::S3, &error).to_string();
        assert!(text.contains("503 SlowDown"), "{text}");
    }
}
