//! A plugin makes what is written in the host's name: a comment, a reaction, a message.

use the_loop_plugin_api::{Post, WorkItemRef, channel::Message, tracker::Reaction};

fn forge(item: WorkItemRef) {
    let _ = Post { item: item.clone(), key: String::new(), body: String::new() };
    let _ = Reaction { item, comment: String::new(), content: String::new() };
    let _ = Message { key: String::new(), markdown: String::new(), choices: Vec::new() };
}

fn main() {
    let _ = forge;
}
