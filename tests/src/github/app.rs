//! GitHub Apps: their own tokens, and those of their installations.

use std::{path::Path, time::Duration};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::{
    rsa::KeyPair,
    signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey},
};
use rustls_pki_types::{PrivatePkcs1KeyDer, pem::PemObject};
use serde_json::{Value, json};

/// An App with one installation.
pub(super) struct App {
    id: String,
    installation: u64,
    public: Vec<u8>,
    good_for: Duration,
    issued: u32,
}

impl App {
    pub(super) fn new(id: &str, installation: u64, key: &Path, good_for: Duration) -> Self {
        let der = PrivatePkcs1KeyDer::from_pem_file(key).unwrap_or_else(|error| panic!("{}: {error}", key.display()));
        let pair =
            KeyPair::from_der(der.secret_pkcs1_der()).unwrap_or_else(|error| panic!("{}: {error}", key.display()));
        let public = pair.public().as_ref().to_vec();
        Self { id: id.to_owned(), installation, public, good_for, issued: 0 }
    }

    /// Whether `token` is the newest that an installation was given.
    pub(super) fn takes(&self, token: &str) -> bool {
        self.issued > 0 && token == self.newest()
    }

    /// Answers the exchange of the App's own token for one of an installation.
    pub(super) fn exchange(&mut self, installation: &str, token: &str) -> (u16, Value) {
        if let Err(problem) = self.verify(token) {
            return (401, json!({"message": problem}));
        }
        if installation != self.installation.to_string() {
            return (404, json!({"message": "Not Found"}));
        }
        self.issued += 1;
        let until = Timestamp::now() + self.good_for;
        (201, json!({"token": self.newest(), "expires_at": until, "permissions": {"issues": "write"}}))
    }

    fn newest(&self) -> String {
        format!("not-a-real-installation-token-{}", self.issued)
    }

    /// What GitHub asks of an App's own token: its key's signature, its id, and an end within ten minutes.
    fn verify(&self, token: &str) -> Result<(), &'static str> {
        let decode =
            |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| "A JSON web token could not be decoded");
        let (text, signature) = token.rsplit_once('.').ok_or("A JSON web token could not be decoded")?;
        let (header, claims) = text.split_once('.').ok_or("A JSON web token could not be decoded")?;
        let json =
            |part| serde_json::from_slice::<Value>(&decode(part)?).map_err(|_| "A JSON web token could not be decoded");
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.public);
        if json(header)?["alg"] != "RS256" || key.verify(text.as_bytes(), &decode(signature)?).is_err() {
            return Err("A JSON web token could not be decoded");
        }
        let claims = json(claims)?;
        if claims["iss"] != self.id.as_str() {
            return Err("'Issuer' claim ('iss') must be an Integer or a client id");
        }
        let now = Timestamp::now().as_second();
        let at = |name: &str| claims[name].as_i64().unwrap_or_default();
        if at("iat") > now || at("exp") <= now || at("exp") > now + 600 {
            return Err("'Expiration time' claim ('exp') is too far in the future");
        }
        Ok(())
    }
}
