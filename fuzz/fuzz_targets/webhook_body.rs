//! A delivery whose signature was right says anything: it is read or refused, as JSON and as a form, and what it is about is
//! a ref that can be written and read again.

#![no_main]

use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use libfuzzer_sys::fuzz_target;
use the_loop_plugin_github::webhook::drills::read;

fuzz_target!(|body: &[u8]| {
    for media in ["application/json", "application/x-www-form-urlencoded"] {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media))]);
        for event in ["issues", "issue_comment", "ping", "push"] {
            if let Ok(Some(item)) = read(event, &headers, body) {
                assert_eq!(item.to_string().parse().as_ref(), Ok(&item));
            }
        }
    }
});
