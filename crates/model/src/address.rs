//! Addresses of repositories, which may contain secrets.

/// Removes credentials from an address: user name and password from a web address, the password from others.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host = rest.find('/').unwrap_or(rest.len());
    let Some(at) = rest[..host].rfind('@') else { return url.to_owned() };
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    // In other schemes the user name is needed to fetch, like the `git` of `ssh://git@host`.
    let name = rest[..at].split(':').next().filter(|name| !is_web && !name.is_empty());
    match name {
        Some(name) => format!("{scheme}://{name}{}", &rest[at..]),
        None => format!("{scheme}://{}", &rest[at + 1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed() {
        for (url, want) in [
            ("https://me:secret@example.com/a.git", "https://example.com/a.git"),
            ("HTTP://token@example.com", "HTTP://example.com"),
            ("https://a@b:c@example.com/x", "https://example.com/x"),
            ("https://example.com/a@b.git", "https://example.com/a@b.git"),
            ("ssh://git@example.com/a", "ssh://git@example.com/a"),
            ("ssh://git:secret@example.com/a", "ssh://git@example.com/a"),
            ("ftp://:secret@example.com/a", "ftp://example.com/a"),
            ("git@example.com:team/a.git", "git@example.com:team/a.git"),
            ("/srv/a.git", "/srv/a.git"),
        ] {
            assert_eq!(without_credentials(url), want);
        }
    }
}
