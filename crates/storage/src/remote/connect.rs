//! [`connect`]: a store of the crate `object_store` with what the environment says:
//! who asks, which server, and how patiently.
//!
//! Variables say who asks, and nothing else does: unless one is set, it is refused
//! before that crate would ask the machine's metadata address or look into the home
//! directory. What is wrong with a variable is said with its name, never with its
//! value.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as S3};
use object_store::azure::{AzureConfigKey as Az, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey as Gs};
use object_store::http::HttpBuilder;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig,
    StaticCredentialProvider,
};

use super::explain::variables;
use crate::address::{Address, Scheme};

/// How often a request is made at most, unless somebody says otherwise.
const ATTEMPTS: usize = 8;

/// What a store is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Reading,
    /// While bytes are sent, nothing comes, for as long as that takes.
    Writing,
}

/// A variable with what it says.
type Setting = (&'static str, Option<String>);

/// A store with the settings of the environment.
pub(super) fn connect(address: &Address, purpose: Purpose) -> io::Result<Arc<dyn ObjectStore>> {
    let scheme = address.scheme();
    let made = match scheme {
        Scheme::S3 => s3(address.place(), purpose)?,
        Scheme::Gs => gs(address.place(), purpose)?,
        Scheme::Az => az(address.place(), purpose)?,
        Scheme::Http | Scheme::Https => web(address, purpose),
    };
    // The text of the error may repeat what a variable says.
    made.map_err(|_| {
        let text = format!(
            "the environment makes no connection; check {}, and that addresses, times and switches \
             in such variables are what they should be",
            variables(scheme)
        );
        io::Error::new(ErrorKind::InvalidInput, text)
    })
}

type Made = Result<Arc<dyn ObjectStore>, object_store::Error>;

fn s3(bucket: &str, purpose: Purpose) -> io::Result<Made> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let given = |key: S3| builder.get_config_value(&key);
    check_headers(&[
        ("AWS_ACCESS_KEY_ID", given(S3::AccessKeyId)),
        ("AWS_SECRET_ACCESS_KEY", given(S3::SecretAccessKey)),
        ("AWS_SESSION_TOKEN", given(S3::Token)),
        ("AWS_REGION", given(S3::Region)),
    ])?;
    check_endpoints(&[
        ("AWS_ENDPOINT_URL", given(S3::Endpoint)),
        ("AWS_ENDPOINT_URL_S3", given(S3::S3Endpoint)),
    ])?;
    let all = |keys: &[S3]| keys.iter().all(|key| given(*key).is_some());
    let machine = std::env::var("AWS_EC2_METADATA_DISABLED");
    let known = is_on(given(S3::SkipSignature))
        || all(&[S3::AccessKeyId])
        || all(&[S3::SecretAccessKey])
        || all(&[S3::WebIdentityTokenFile, S3::RoleArn])
        || all(&[S3::ContainerCredentialsRelativeUri])
        || all(&[
            S3::ContainerCredentialsFullUri,
            S3::ContainerAuthorizationTokenFile,
        ])
        || all(&[S3::MetadataEndpoint])
        || machine.is_ok_and(|said| said.eq_ignore_ascii_case("false"));
    check_known(Scheme::S3, known)?;
    for (key, value) in patience("AWS", purpose) {
        builder = builder.with_config(S3::Client(key), value);
    }
    Ok(builder
        .with_retry(retries())
        .build()
        .map(|store| Arc::new(store) as _))
}

fn gs(bucket: &str, purpose: Purpose) -> io::Result<Made> {
    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
    let given = |key: Gs| builder.get_config_value(&key);
    check_headers(&[("GOOGLE_BEARER_TOKEN", given(Gs::BearerToken))])?;
    check_endpoints(&[("GOOGLE_BASE_URL", given(Gs::BaseUrl))])?;
    let anonymous = is_on(given(Gs::SkipSignature));
    let saying = [
        Gs::ServiceAccount,
        Gs::ServiceAccountKey,
        Gs::ApplicationCredentials,
        Gs::BearerToken,
    ];
    check_known(
        Scheme::Gs,
        anonymous || saying.into_iter().any(|key| given(key).is_some()),
    )?;
    for (key, value) in patience("GOOGLE", purpose) {
        builder = builder.with_config(Gs::Client(key), value);
    }
    if anonymous {
        // Otherwise a file in the home directory is read, though for nothing.
        let bearer = String::new();
        let nobody = StaticCredentialProvider::new(GcpCredential { bearer });
        builder = builder.with_credentials(Arc::new(nobody));
    }
    Ok(builder
        .with_retry(retries())
        .build()
        .map(|store| Arc::new(store) as _))
}

fn az(container: &str, purpose: Purpose) -> io::Result<Made> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(container);
    let given = |key: Az| builder.get_config_value(&key);
    check_headers(&[
        ("AZURE_STORAGE_ACCOUNT_NAME", given(Az::AccountName)),
        ("AZURE_STORAGE_TOKEN", given(Az::Token)),
    ])?;
    check_endpoints(&[("AZURE_STORAGE_ENDPOINT", given(Az::Endpoint))])?;
    let all = |keys: &[Az]| keys.iter().all(|key| given(*key).is_some());
    let known = is_on(given(Az::SkipSignature))
        || is_on(given(Az::UseEmulator))
        || is_on(given(Az::UseAzureCli))
        || all(&[Az::CredentialType])
        || all(&[Az::AccessKey])
        || all(&[Az::SasKey])
        || all(&[Az::Token])
        || all(&[Az::ClientId, Az::AuthorityId, Az::ClientSecret])
        || all(&[Az::ClientId, Az::AuthorityId, Az::FederatedTokenFile])
        || all(&[Az::MsiEndpoint])
        || all(&[
            Az::FabricTokenServiceUrl,
            Az::FabricWorkloadHost,
            Az::FabricSessionToken,
            Az::FabricClusterIdentifier,
        ]);
    check_known(Scheme::Az, known)?;
    for (key, value) in patience("AZURE", purpose) {
        builder = builder.with_config(Az::Client(key), value);
    }
    Ok(builder
        .with_retry(retries())
        .build()
        .map(|store| Arc::new(store) as _))
}

fn web(address: &Address, purpose: Purpose) -> Made {
    let mut options = web_options(address.scheme());
    for (key, value) in patience("AWS", purpose) {
        options = options.with_config(key, value);
    }
    let builder = HttpBuilder::new().with_url(address.root());
    let builder = builder.with_client_options(options);
    Ok(Arc::new(builder.with_retry(retries()).build()?))
}

/// A server that is asked with encryption cannot lead to one that is asked without.
fn web_options(scheme: Scheme) -> ClientOptions {
    ClientOptions::new().with_allow_http(scheme == Scheme::Http)
}

/// Fails, with the remedy, if no variable says who asks.
fn check_known(scheme: Scheme, known: bool) -> io::Result<()> {
    if known {
        return Ok(());
    }
    let machine = match scheme {
        Scheme::S3 => {
            "; AWS_EC2_METADATA_DISABLED=false asks the machine, if it is one of Amazon's"
        }
        _ => "",
    };
    let text = format!(
        "there are no credentials; set {}{machine}",
        variables(scheme)
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, text))
}

/// Fails if a value cannot be in the header of a request.
fn check_headers(settings: &[Setting]) -> io::Result<()> {
    let fits = |value: &str| value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let wrong = settings
        .iter()
        .find(|(_, value)| value.as_deref().is_some_and(|value| !fits(value)));
    refuse(
        wrong,
        "has a letter that no such value has, a line break perhaps; set it without",
    )
}

/// Fails if a value holds more than where the server is.
fn check_endpoints(settings: &[Setting]) -> io::Result<()> {
    let wrong = settings.iter().find(|(_, value)| {
        value
            .as_deref()
            .is_some_and(|value| value.contains(['@', '?', '#']))
    });
    refuse(
        wrong,
        "must hold neither user nor password nor signature; they belong into variables of their own",
    )?;
    let wrong = settings
        .iter()
        .find(|(_, value)| value.as_deref().is_some_and(|value| !is_endpoint(value)));
    refuse(
        wrong,
        "is no address of a server; it begins with http:// or https://, as in http://127.0.0.1:9000",
    )
}

/// Whether a value says where a server is: what is none is not taken well by who asks it.
fn is_endpoint(value: &str) -> bool {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| value.strip_prefix(scheme));
    let Some(rest) = rest else {
        return false;
    };
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match place.strip_prefix('[') {
        Some(numbers) => match numbers.split_once(']') {
            Some((host, port)) => (host, port),
            None => return false,
        },
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok_and(|port| port > 0),
        None => port.is_empty(),
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%';
    port && !host.is_empty() && host.bytes().all(fits) && path.bytes().all(plain)
}

fn refuse(wrong: Option<&Setting>, reason: &str) -> io::Result<()> {
    match wrong {
        None => Ok(()),
        Some((name, _)) => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("the variable {name} {reason}"),
        )),
    }
}

/// Whether a switch is on.
fn is_on(value: Option<String>) -> bool {
    let on = ["1", "true", "on", "yes", "y"];
    value.is_some_and(|value| on.contains(&value.to_ascii_lowercase().as_str()))
}

/// How long a request may take: as long as bytes come at least every 30 s, and those
/// that send bytes 10 minutes, unless variables that begin with `prefix`, or with AWS,
/// say otherwise.
fn patience(prefix: &str, purpose: Purpose) -> [(ClientConfigKey, String); 2] {
    times(purpose, |name| {
        let own = std::env::var(format!("{prefix}_{name}"));
        own.or_else(|_| std::env::var(format!("AWS_{name}"))).ok()
    })
}

/// The same, where `said` is what variables say.
fn times(
    purpose: Purpose,
    said: impl Fn(&str) -> Option<String>,
) -> [(ClientConfigKey, String); 2] {
    let usual = match purpose {
        Purpose::Reading => "3600s",
        Purpose::Writing => "600s",
    };
    let all = said("TIMEOUT").unwrap_or_else(|| usual.into());
    let silence = match purpose {
        Purpose::Reading => said("READ_TIMEOUT").unwrap_or_else(|| "30s".into()),
        // Set as well, in place of what the builder has taken from the environment.
        Purpose::Writing => all.clone(),
    };
    [
        (ClientConfigKey::Timeout, all),
        (ClientConfigKey::ReadTimeout, silence),
    ]
}

/// How often a request is made at most. The variable is that of other programs for S3.
pub(super) fn attempts() -> usize {
    let said = std::env::var("AWS_MAX_ATTEMPTS").ok();
    said.and_then(|text| text.trim().parse().ok())
        .unwrap_or(ATTEMPTS)
        .max(1)
}

/// A request is made again that a server could not answer (5xx, 429) or whose connection
/// was lost: after 0.1 s, and each time on average after twice as long.
fn retries() -> RetryConfig {
    RetryConfig {
        max_retries: attempts() - 1,
        // It waits for anything between the first time and the last one times this.
        backoff: BackoffConfig {
            base: 4.0,
            ..BackoffConfig::default()
        },
        ..RetryConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use object_store::ClientConfigKey;
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

    use super::{Purpose, is_endpoint, retries, times, web_options};
    use crate::address::Scheme;

    #[test]
    fn encryption_is_not_given_up_on_the_way() {
        for (scheme, plain) in [(Scheme::Http, "true"), (Scheme::Https, "false")] {
            let allowed = web_options(scheme).get_config_value(&ClientConfigKey::AllowHttp);
            assert_eq!(allowed.as_deref(), Some(plain), "{scheme:?}");
        }
    }

    #[test]
    fn silence_ends_reads_and_no_writes() {
        let said = |name: &str| (name == "READ_TIMEOUT").then(|| "5s".to_owned());
        let silence = AmazonS3ConfigKey::Client(ClientConfigKey::ReadTimeout);
        let longest = |purpose| {
            // As if it had been taken from the environment.
            let mut builder = AmazonS3Builder::new().with_config(silence, "5s");
            for (key, value) in times(purpose, said) {
                builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
            }
            builder.get_config_value(&silence)
        };
        assert_eq!(longest(Purpose::Reading).as_deref(), Some("5s"));
        assert_eq!(longest(Purpose::Writing).as_deref(), Some("600s"));
    }

    #[test]
    fn each_time_is_on_average_twice_the_one_before() {
        let backoff = retries().backoff;
        let first = backoff.init_backoff.as_secs_f64();
        let mut last = first;
        while last < backoff.max_backoff.as_secs_f64() {
            let next = (first + backoff.base * last) / 2.0;
            assert!(next >= 2.0 * last, "{next} after {last}");
            last = next;
        }
    }

    #[test]
    fn endpoints_are_addresses_of_servers() {
        for good in [
            "http://127.0.0.1:5000",
            "https://minio.example.org",
            "https://host/account/",
            "http://[::1]:9000",
        ] {
            assert!(is_endpoint(good), "{good}");
        }
        for bad in [
            "127.0.0.1:5000",
            "localhost:5000",
            "http://",
            "http:///x",
            "http://host ",
            "x",
            "/",
            "http://host:99999",
            "http://host:",
            "http://[::1",
            "http://%zz",
            "ftp://host",
        ] {
            assert!(!is_endpoint(bad), "{bad}");
        }
    }
}
