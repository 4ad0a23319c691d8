//! The one file that links plugins (ARC-1). A crate that is listed in Cargo.toml and never named registers nothing,
//! silently: each is named here.

#[cfg(feature = "github")]
use the_loop_plugin_github as _;
#[cfg(feature = "local")]
use the_loop_plugin_local as _;
#[cfg(feature = "shell")]
use the_loop_plugin_shell as _;
#[cfg(feature = "tmux")]
use the_loop_plugin_tmux as _;
