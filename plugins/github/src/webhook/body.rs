//! The bytes of a delivery: read within bounds (GHW-2), and decoded by their content type (GHW-1).

use std::{borrow::Cow, str, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http::{
    HeaderMap,
    header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::percent_decode;
use serde_json::{Map, Value};
use the_loop_plugin_api::Clock;

/// GitHub's own limit for a payload.
pub(super) const SIZE_LIMIT: usize = 25 * 1024 * 1024;

/// How much beyond the limit is read and thrown away. An upstream that still writes when the connection closes may lose
/// the answer, so one that is over by little is heard out.
const HEARD_OUT: usize = 3 * SIZE_LIMIT;

/// How long the whole body may take.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A body that could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    /// It is over [`SIZE_LIMIT`].
    #[error("the body is over {SIZE_LIMIT} bytes")]
    TooLarge,
    /// It took longer than [`TIME_LIMIT`].
    #[error("the body took too long")]
    TimedOut,
    /// It ended before its end.
    #[error("the body was cut off")]
    CutOff,
}

/// Bytes that are not the JSON object that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecodeError {
    /// They are no text.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// The form has no field `payload`, or several.
    #[error("the form does not have exactly one field payload")]
    NoPayload,
    /// The text is not JSON.
    #[error("the payload is not JSON")]
    NotJson,
    /// It is JSON, and not an object.
    #[error("the payload is not a JSON object")]
    NotObject,
}

/// Reads a whole body.
pub(super) async fn read(headers: &HeaderMap, body: Body, clock: &dyn Clock) -> Result<Bytes, BodyError> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if headers.contains_key(EXPECT) && length.is_some_and(|length| length > SIZE_LIMIT as u64) {
        // Its sender waits for a word before it sends anything.
        return Err(BodyError::TooLarge);
    }
    tokio::select! {
        biased;
        whole = whole(body) => whole,
        () = clock.sleep(TIME_LIMIT) => Err(BodyError::TimedOut),
    }
}

async fn whole(mut body: Body) -> Result<Bytes, BodyError> {
    match Limited::new(&mut body, SIZE_LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let mut rest = Limited::new(body, HEARD_OUT);
            while let Some(Ok(_)) = rest.frame().await {}
            Err(BodyError::TooLarge)
        }
        Err(_) => Err(BodyError::CutOff),
    }
}

/// The JSON object of a delivery, which is the body itself or the field `payload` of a form.
pub(super) fn decode(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, DecodeError> {
    let json = if is_form(headers) { Cow::Owned(payload_field(body)?) } else { Cow::Borrowed(body) };
    let text = str::from_utf8(&json).map_err(|_| DecodeError::NotUtf8)?;
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(DecodeError::NotObject),
        Err(_) => Err(DecodeError::NotJson),
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The bytes of the form's one payload. A decoder of text would put replacement characters where the bytes are no UTF-8, and
/// then nothing would tell that the text was another one.
fn payload_field(form: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut payloads = form.split(|&byte| byte == b'&').filter_map(|pair| pair.strip_prefix(b"payload="));
    let (Some(payload), None) = (payloads.next(), payloads.next()) else { return Err(DecodeError::NoPayload) };
    let spaced: Vec<u8> = payload.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    Ok(percent_decode(&spaced).collect())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    fn decoded(media: &str, body: &[u8]) -> Result<Value, DecodeError> {
        let mut headers = HeaderMap::new();
        if !media.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(media).unwrap());
        }
        decode(&headers, body).map(Value::Object)
    }

    #[test]
    fn ghw_1_a_body_is_decoded_by_its_content_type() {
        let text = json!({"a": "ä & b=c+d"});
        for media in ["application/json", "application/json; charset=utf-8", ""] {
            assert_eq!(decoded(media, text.to_string().as_bytes()), Ok(text.clone()));
        }
        let form = serde_urlencoded::to_string([("x", "1"), ("payload", &text.to_string())]).unwrap();
        for media in ["application/x-www-form-urlencoded", "Application/X-WWW-Form-URLEncoded; charset=utf-8"] {
            assert_eq!(decoded(media, form.as_bytes()), Ok(text.clone()));
            assert_eq!(decoded(media, text.to_string().as_bytes()), Err(DecodeError::NoPayload));
            assert_eq!(decoded(media, b"payload=%7B%7D&payload=%7B%7D"), Err(DecodeError::NoPayload));
            assert_eq!(decoded(media, b"payload=%5B%5D"), Err(DecodeError::NotObject));
            assert_eq!(decoded(media, b"payload=\xff"), Err(DecodeError::NotUtf8));
            assert_eq!(decoded(media, b"payload=%7B%22a%22%3A%22%FF%22%7D"), Err(DecodeError::NotUtf8));
        }
        assert_eq!(decoded("application/json", form.as_bytes()), Err(DecodeError::NotJson));
    }
}
