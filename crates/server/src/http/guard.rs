//! Checks whether a client may send a request, before routing and on every path.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use constant_time_eq::constant_time_eq;

use super::problem::Problem;

/// The path of login links.
const LOGIN: &str = "/login";
/// How many unused links are valid, and for how long.
const LINKS_MAX: usize = 8;
const LINK_LIFETIME: Duration = Duration::from_mins(10);

/// The checks of the guard. Tests switch each one off to show that it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is on or off by itself")]
pub struct Defences {
    /// The `Host` has to be this server.
    pub host: bool,
    /// Pages of other origins are refused.
    pub origin: bool,
    /// The token is required.
    pub token: bool,
    /// Content types that HTML forms can send are refused.
    pub forms: bool,
}

impl Default for Defences {
    fn default() -> Self {
        Self { host: true, origin: true, token: true, forms: true }
    }
}

/// Checks requests.
pub(super) struct Guard {
    token: String,
    /// The value of the browser's cookie. It is not the token, because browsers send cookies to every server on this machine.
    session: String,
    /// The name of the cookie. It has the port, because browsers do not separate cookies by port.
    cookie_name: String,
    /// The valid hosts: `127.0.0.1`, `localhost` and `[::1]` with the port.
    hosts: [String; 3],
    /// The codes of unused links, and when they were made.
    links: Mutex<VecDeque<(String, Instant)>>,
    defences: Defences,
}

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It is routed.
    Request,
    /// It has followed a login link, and gets a cookie.
    Login,
}

/// How a client has authenticated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Credential {
    Header,
    Cookie,
}

impl Guard {
    pub(super) fn new(token: String, port: u16, defences: Defences) -> Self {
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        Self {
            token,
            session: new_token(),
            cookie_name: format!("steno_{port}"),
            hosts,
            links: Mutex::default(),
            defences,
        }
    }

    /// Makes a link that logs a browser in once.
    pub(super) fn link(&self) -> String {
        let code = new_token();
        let mut links = self.links();
        if links.len() >= LINKS_MAX {
            links.pop_front();
        }
        links.push_back((code.clone(), Instant::now()));
        format!("http://{}{LOGIN}?code={code}", self.hosts[0])
    }

    fn links(&self) -> MutexGuard<'_, VecDeque<(String, Instant)>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a request, or returns why it is refused.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<Access, Problem> {
        self.check_host(request)?;
        let has_origin = self.check_origin(request.headers())?;
        if request.method() == Method::GET && request.uri().path() == LOGIN {
            return self.check_link(request.uri().query().unwrap_or_default()).map(|()| Access::Login);
        }
        let shown = self.check_token(request.headers())?;
        if changes_something(request.method()) {
            // A browser adds the cookie to requests that any page triggers.
            if self.defences.origin && shown == Some(Credential::Cookie) && !has_origin {
                return Err(Problem::forbidden("a change with a cookie needs an `Origin`"));
            }
        }
        // HTML forms can send only GET and POST.
        if request.method() == Method::POST {
            self.check_form(request.headers())?;
        }
        Ok(Access::Request)
    }

    /// Checks and removes the code of a link, which works once.
    fn check_link(&self, query: &str) -> Result<(), Problem> {
        let code = query.split('&').find_map(|pair| pair.strip_prefix("code=")).unwrap_or_default();
        let mut links = self.links();
        links.retain(|(_, made)| made.elapsed() < LINK_LIFETIME);
        let known = links.iter().position(|(known, _)| constant_time_eq(known.as_bytes(), code.as_bytes()));
        known.and_then(|at| links.remove(at)).map(|_| ()).ok_or_else(|| {
            Problem::unauthorized(
                "this login link was already used, has expired, or is not valid: \
                 `steno serve --link` prints a new one when it starts",
            )
        })
    }

    /// Refuses names that others have pointed at this machine (DNS rebinding).
    fn check_host<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        if !self.defences.host {
            return Ok(());
        }
        let is_ours = |name: &str| self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name));
        let named = only(request.headers(), &header::HOST)
            .map_err(|()| Problem::bad_request("there is more than one `Host` header"))?
            .ok_or_else(|| Problem::bad_request("there is no `Host` header"))?;
        let in_uri = request.uri().authority().map(axum::http::uri::Authority::as_str);
        if !is_ours(named) || in_uri.is_some_and(|name| !is_ours(name)) {
            return Err(Problem::forbidden("the `Host` is not this server"));
        }
        Ok(())
    }

    /// Returns whether the request has an `Origin`, and refuses any other than this server.
    fn check_origin(&self, headers: &HeaderMap) -> Result<bool, Problem> {
        if !self.defences.origin {
            return Ok(true);
        }
        let origin = only(headers, &header::ORIGIN);
        let Some(origin) =
            origin.map_err(|()| Problem::forbidden("there is more than one `Origin` header"))?
        else {
            return Ok(false);
        };
        let host = origin.strip_prefix("http://");
        if host.is_some_and(|host| self.hosts.iter().any(|ours| ours == host)) {
            return Ok(true);
        }
        Err(Problem::forbidden("the `Origin` is not this server"))
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<Option<Credential>, Problem> {
        let is_it = |token: &str| constant_time_eq(token.as_bytes(), self.token.as_bytes());
        let bearer = only(headers, &header::AUTHORIZATION).ok().flatten();
        let bearer = bearer.and_then(|value| value.split_once(' '));
        if let Some((_, token)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
            if is_it(token) {
                return Ok(Some(Credential::Header));
            }
        } else if self
            .cookies(headers)
            .any(|value| constant_time_eq(value.as_bytes(), self.session.as_bytes()))
        {
            // A page of another port is of the same site, so the browser sends the cookie.
            let from = only(headers, &HeaderName::from_static("sec-fetch-site"));
            let is_ours =
                from.is_ok_and(|from| from.is_none_or(|from| ["same-origin", "none"].contains(&from)));
            if self.defences.origin && !is_ours {
                return Err(Problem::forbidden("the request comes from a page of another origin"));
            }
            return Ok(Some(Credential::Cookie));
        }
        if self.defences.token {
            return Err(Problem::unauthorized(
                "send the token of `steno serve` as `Authorization: Bearer TOKEN`",
            ));
        }
        Ok(None)
    }

    fn check_form(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let kind = only(headers, &header::CONTENT_TYPE).ok().flatten().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_json = ["application/json", "application/x-ndjson"].contains(&kind.as_str());
        if self.defences.forms && !is_json {
            return Err(Problem::forbidden("send changes as `application/json` or `application/x-ndjson`"));
        }
        Ok(())
    }

    /// Returns the header that sets the browser's cookie.
    pub(super) fn cookie(&self) -> Option<HeaderValue> {
        let text = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name, self.session);
        HeaderValue::from_str(&text).ok()
    }

    /// Returns the values of the cookies with our name.
    fn cookies<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(name, _)| *name == self.cookie_name).map(|(_, value)| value)
    }
}

/// Makes a random token.
#[must_use]
pub fn new_token() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

fn changes_something(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Returns the only value of a header; an error for several, or one that is not text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}
