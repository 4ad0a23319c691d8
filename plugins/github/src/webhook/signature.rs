//! Where a delivery came from: the HMAC-SHA-256 over its raw bytes (GHW-1).

use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// The header that carries the signature. Its SHA-1 predecessor is not read.
const HEADER: &str = "x-hub-signature-256";

/// A delivery whose origin is not proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureError {
    /// It carries no signature.
    #[error("unsigned")]
    Unsigned,
    /// Its signature does not fit the bytes, or is none.
    #[error("invalid signature")]
    Invalid,
}

/// Checks the signature of `headers` over `body`, in constant time.
pub(super) fn verify(headers: &HeaderMap, secret: &SecretString, body: &[u8]) -> Result<(), SignatureError> {
    let mut signatures = headers.get_all(HEADER).iter();
    let signature = signatures.next().ok_or(SignatureError::Unsigned)?;
    if signatures.next().is_some() {
        return Err(SignatureError::Invalid);
    }
    let code = signature
        .to_str()
        .ok()
        .and_then(|text| text.strip_prefix("sha256="))
        .and_then(|digits| hex::decode(digits).ok())
        .ok_or(SignatureError::Invalid)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes())
        // An HMAC takes a key of any length; were it not so, nothing would be proven.
        .map_err(|_| SignatureError::Invalid)?;
    mac.update(body);
    mac.verify_slice(&code).map_err(|_| SignatureError::Invalid)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const BODY: &[u8] = b"Hello, World!";
    const CODE: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn check(secret: &str, body: &[u8], signatures: &[&str]) -> Result<(), SignatureError> {
        let mut headers = HeaderMap::new();
        for signature in signatures {
            headers.append(HEADER, HeaderValue::from_str(signature).unwrap());
        }
        verify(&headers, &SecretString::from(secret.to_owned()), body)
    }

    #[test]
    fn ghw_1_only_the_signature_over_these_bytes_with_this_secret_is_taken() {
        let secret = "It's a Secret to Everybody";
        let right = format!("sha256={CODE}");
        assert_eq!(check(secret, BODY, &[&right]), Ok(()));
        assert_eq!(check(secret, BODY, &[&format!("sha256={}", CODE.to_uppercase())]), Ok(()));
        assert_eq!(check(secret, BODY, &[]), Err(SignatureError::Unsigned));
        let wrong_first = format!("sha256=0{}", &CODE[1..]);
        let wrong_last = format!("sha256={}8", &CODE[..63]);
        let longer = format!("{right}00");
        for signature in [
            "",
            "sha256=",
            CODE,
            &right[..right.len() - 2],
            &right[..right.len() - 1],
            &longer,
            &wrong_first,
            &wrong_last,
            &right.replace("sha256", "SHA256"),
            &right.replace("sha256", "sha1"),
            &right.replace("757107", "zzzzzz"),
        ] {
            assert_eq!(check(secret, BODY, &[signature]), Err(SignatureError::Invalid), "{signature:?}");
        }
        assert_eq!(check(secret, BODY, &[&right, &right]), Err(SignatureError::Invalid));
        assert_eq!(check(secret, b"Hello, World! ", &[&right]), Err(SignatureError::Invalid));
        assert_eq!(check("another", BODY, &[&right]), Err(SignatureError::Invalid));
    }
}
