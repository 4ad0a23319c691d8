//! The wall between a plugin and the host (ARC-4): what a plugin may not do is not a matter of manners, it does not compile.
//!
//! Each file of `wall/` is a plugin that tries one thing; the `.stderr` beside it is the compiler's answer.

use serde::de::DeserializeOwned;
use the_loop_plugin_api::{
    Delivery, PluginContext, Post, SpawnOrder, Termination, channel::Message, registry::HostKey, tracker::Reaction,
};

/// Does not compile when the type has the trait: which of the two methods is meant could not be told any more.
macro_rules! lacks {
    ($trait:path: $($type:ty),+) => {
        $(const _: fn() = || {
            trait Ambiguous<With> {
                fn method() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct Trait;
            impl<T: $trait> Ambiguous<Trait> for T {}
            <$type as Ambiguous<_>>::method();
        };)+
    };
}

// The key can be neither copied nor conjured up, and what it makes cannot be read from a text.
lacks!(Clone: HostKey, Delivery);
lacks!(Default: HostKey, Delivery, SpawnOrder, Termination, Post, Reaction, Message, PluginContext);
lacks!(DeserializeOwned: HostKey, Delivery, SpawnOrder, Termination, Post, Reaction, Message, PluginContext);

#[test]
fn arc_4_a_plugin_cannot_make_what_only_the_host_may_make() {
    let cases = trybuild::TestCases::new();
    // The same makings with a key: what stops the others is the wall and nothing else.
    cases.pass("tests/wall/allowed/*.rs");
    cases.compile_fail("tests/wall/*.rs");
}
