//! Where a work item's repository is fetched from (WSP-2).

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use the_loop_plugin_api::WorkItemRef;

use crate::config::CloneProtocol;

/// A repository: its address, and the name of its folder here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// What git is given.
    pub(super) url: String,
    /// The folder's name, one for each address on each tracker.
    pub(super) folder: PathBuf,
}

/// The config's default host is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("routing.workspace.defaultHost is {0:?}, which is no host name; change it to one such as github.com")]
pub(crate) struct NoHost(String);

impl Source {
    /// The repository of an item. Owner and name are those of its ref, whose characters were checked when it was read.
    pub(super) fn of(item: &WorkItemRef, protocol: CloneProtocol, default_host: &str) -> Result<Self, NoHost> {
        let host = item.host().unwrap_or(default_host);
        let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
        let is_name = !name.is_empty()
            && !name.starts_with(['-', '.'])
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'));
        if !is_name || port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(NoHost(host.to_owned()));
        }
        let (owner, repo) = (item.owner(), item.repo());
        let url = match protocol {
            CloneProtocol::Https => format!("https://{host}/{owner}/{repo}.git"),
            // A port in a ref is that of the tracker's web address.
            CloneProtocol::Ssh => format!("ssh://git@{name}/{owner}/{repo}.git"),
        };
        // Names that differ in a dot or a capital must not share a folder, and one name in two spellings must.
        let (owner, repo) = (owner.to_ascii_lowercase(), repo.to_ascii_lowercase());
        let whole = format!("{}:{}/{owner}/{repo}", item.provider(), host.to_ascii_lowercase());
        let digest = hex::encode(&Sha256::digest(whole.as_bytes())[..6]);
        Ok(Self { url, folder: PathBuf::from(format!("{owner}-{repo}-{digest}.git")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(item: &str, protocol: CloneProtocol, host: &str) -> Result<Source, NoHost> {
        Source::of(&item.parse().unwrap(), protocol, host)
    }

    #[test]
    fn wsp_2_an_address_is_made_of_checked_parts() {
        let url = |item, protocol| of(item, protocol, "github.com").unwrap().url;
        assert_eq!(url("github:octo/hello#7", CloneProtocol::Https), "https://github.com/octo/hello.git");
        assert_eq!(url("github:octo/hello#7", CloneProtocol::Ssh), "ssh://git@github.com/octo/hello.git");
        let hosted = "github:ghe.example:8443/octo/hello#7";
        assert_eq!(url(hosted, CloneProtocol::Https), "https://ghe.example:8443/octo/hello.git");
        assert_eq!(url(hosted, CloneProtocol::Ssh), "ssh://git@ghe.example/octo/hello.git");
        for host in ["", "-oProxyCommand=x", "a b", "host/path", "host:x", "user@host", ".."] {
            let error = of("github:octo/hello#7", CloneProtocol::Ssh, host).unwrap_err();
            assert!(error.to_string().contains("routing.workspace.defaultHost"), "{host:?}: {error}");
        }
    }

    #[test]
    fn tm_02_repositories_that_look_alike_have_folders_of_their_own() {
        let refs = ["octo/foo.js#1", "octo/foo_js#1", "octo/foo-js#1", "octo-a/b#1", "octo/a-b#1"];
        let folder = |item: &&str| of(&format!("github:{item}"), CloneProtocol::Https, "github.com").unwrap().folder;
        let folders: std::collections::HashSet<_> = refs.iter().map(folder).collect();
        assert_eq!(folders.len(), refs.len(), "{folders:?}");
        for same in ["octo/hello#2", "Octo/Hello#3", "github.com/octo/hello#4"] {
            assert_eq!(folder(&"octo/hello#1"), folder(&same), "one folder for a repository");
        }
    }
}
