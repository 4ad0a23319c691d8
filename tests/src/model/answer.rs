//! An answer of the Messages API, whole or as the events of a stream.

use std::io;

use axum::{
    body::Body,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use futures::stream;
use serde_json::{Value, json};

/// The answer that holds one block.
pub(super) fn message(request: &Value, block: Value, number: usize) -> Value {
    let reason = if block["type"] == "tool_use" { "tool_use" } else { "end_turn" };
    json!({
        "id": format!("msg_{number:024}"), "type": "message", "role": "assistant", "model": request["model"],
        "content": [block], "stop_reason": reason, "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    })
}

/// The same as a stream; one that is cut ends after its first words.
pub(super) fn stream(message: &Value, cut: bool) -> Response {
    let mut frames: Vec<io::Result<String>> = events(message).iter().map(|event| Ok(frame(event))).collect();
    if cut {
        frames.truncate(3);
        frames.push(Err(io::Error::other("cut off, as the prompt asks")));
    }
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream::iter(frames))).into_response()
}

fn frame(event: &Value) -> String {
    // Every event below has a type.
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

fn events(message: &Value) -> Vec<Value> {
    let mut begun = message.clone();
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    let block = &message["content"][0];
    let mut opened = block.clone();
    let delta = if block["type"] == "tool_use" {
        opened["input"] = json!({});
        json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
    } else {
        opened["text"] = "".into();
        json!({"type": "text_delta", "text": block["text"]})
    };
    vec![
        json!({"type": "message_start", "message": begun}),
        json!({"type": "content_block_start", "index": 0, "content_block": opened}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": message["stop_reason"], "stop_sequence": null},
            "usage": message["usage"]}),
        json!({"type": "message_stop"}),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_says_what_the_whole_answer_says() {
        let input = json!({"command": "touch a"});
        let block = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": input});
        let told = events(&message(&json!({"model": "m"}), block, 1));
        assert_eq!(told[1]["content_block"]["input"], json!({}));
        let sent: Value = serde_json::from_str(told[2]["delta"]["partial_json"].as_str().unwrap()).unwrap();
        assert_eq!(sent, input);
        assert_eq!(told[4]["delta"]["stop_reason"], "tool_use");
        assert!(frame(&told[5]).starts_with("event: message_stop\ndata: {"));
    }
}
