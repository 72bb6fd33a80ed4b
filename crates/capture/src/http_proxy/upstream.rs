//! The server behind the proxy: its address, and how it is reached.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::tapped_body::TappedBody;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an idle connection to the upstream is kept. Servers close theirs after a minute or more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The client that sends requests to the upstream.
pub(super) type UpstreamClient = Client<HttpsConnector<HttpConnector>, TappedBody>;

/// The server that all requests go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    scheme: Scheme,
    authority: Authority,
    /// What is put before the path of each request; without a slash at its end.
    prefix: String,
}

/// Why an upstream cannot be used. No message repeats the address, which may contain a password.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It is not an address.
    #[error("the upstream is not a URL like `https://api.example.com`")]
    NotUrl,
    /// Its scheme is another one.
    #[error("the upstream must begin with `http://` or `https://`")]
    Scheme,
    /// It contains a user name or a password.
    #[error("the upstream must not contain a user name or a password")]
    Userinfo,
    /// It has a query.
    #[error("the upstream must not have a query")]
    Query,
    /// A file of certificates cannot be read.
    #[error("cannot read certificates from `{}`", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::pki_types::pem::Error,
    },
    /// A certificate is not one.
    #[error("`{}` has no certificate that can be used", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The system's certificates cannot be read.
    #[error("no trusted certificates were found on this system")]
    NoRoots,
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
}

impl Upstream {
    /// Parses the address of an upstream.
    ///
    /// # Errors
    /// If it is not an address with the scheme `http` or `https`, or has a user name, a password or a query.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let without_fragment = text.split('#').next().unwrap_or_default();
        let uri: Uri = without_fragment.parse().map_err(|_| UpstreamError::NotUrl)?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(UpstreamError::NotUrl);
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(UpstreamError::Scheme);
        }
        if authority.as_str().contains('@') {
            return Err(UpstreamError::Userinfo);
        }
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        if path.query().is_some() {
            return Err(UpstreamError::Query);
        }
        Ok(Self { scheme, authority, prefix: path.path().trim_end_matches('/').to_owned() })
    }

    /// Returns the scheme, the host and the port, without a path.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// Returns the value of the `Host` header.
    pub(super) fn host(&self) -> &str {
        self.authority.as_str()
    }

    /// Returns the address of a request.
    pub(super) fn target(&self, request: &Uri) -> Result<Uri, hyper::http::Error> {
        let path = request.path_and_query().map_or("/", PathAndQuery::as_str);
        let (scheme, authority) = (self.scheme.clone(), self.authority.clone());
        Uri::builder()
            .scheme(scheme)
            .authority(authority)
            .path_and_query(format!("{}{path}", self.prefix))
            .build()
    }

    /// Makes the client, with the system's certificates and those of a file. Without `https` none are read.
    pub(super) fn client(&self, ca_file: Option<&Path>) -> Result<UpstreamClient, UpstreamError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = if self.scheme == Scheme::HTTPS { roots(ca_file)? } else { RootCertStore::empty() };
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .http1_preserve_header_case(true)
            .set_host(false)
            .build(connector))
    }
}

/// Returns the certificates that are trusted: the system's, and those of a file.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, UpstreamError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let unreadable = |source| UpstreamError::CaFile { path: path.to_owned(), source };
        let certificates = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
        let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(unreadable)?;
        let (added, _) = roots.add_parsable_certificates(certificates);
        if added == 0 {
            return Err(UpstreamError::NoCertificate { path: path.to_owned() });
        }
    }
    if roots.is_empty() { Err(UpstreamError::NoRoots) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_the_upstream_comes_before_that_of_the_request() {
        for (upstream, request, want) in [
            (
                "http://127.0.0.1:8088",
                "/v1/messages?beta=true",
                "http://127.0.0.1:8088/v1/messages?beta=true",
            ),
            ("https://example.com/", "/v1", "https://example.com/v1"),
            ("https://example.com:444/api/", "/v1", "https://example.com:444/api/v1"),
        ] {
            let upstream = Upstream::parse(upstream).unwrap();
            assert_eq!(upstream.target(&request.parse().unwrap()).unwrap().to_string(), want);
        }
    }

    #[test]
    fn other_addresses_are_refused_without_repeating_them() {
        for text in [
            "",
            "api.example.com",
            "/v1",
            "ftp://h",
            "http://me:hunter2@h",
            "http://h/?key=hunter2",
            "http://",
        ] {
            let error = Upstream::parse(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{text}: {error}");
        }
    }
}
