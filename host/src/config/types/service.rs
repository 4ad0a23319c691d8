//! `service`: the control plane.

use super::lists;
use super::section::{section, text, texts};

section! {
    /// The control plane: REST, MCP, events, dashboard.
    ServiceConfig {
        /// Whether it listens on TCP. The Unix socket of the state root is always there.
        enabled: bool = true,
        /// The address to bind; anything but loopback needs `exposed` (BND-1).
        #[schemars(length(min = 1))]
        host: String = text("127.0.0.1"),
        /// The port; 0 takes any, and the real one is in `local/service.json`.
        port: u16 = 4114,
        /// Whether a bind beyond loopback is meant.
        exposed: bool = false,
        /// States that a gateway in front authenticates callers.
        behind_gateway: bool = false,
        /// The variable that holds the token callers must present.
        #[serde(deserialize_with = "lists::one_or_many")]
        #[schemars(schema_with = "lists::env_names")]
        token_env: Vec<String> = Vec::new(),
        /// Whether a verb that needs the service may start it.
        auto_start: bool = true,
        /// Accepted; one process always hosts the ingresses.
        host_ingresses: bool = true,
        /// The MCP endpoint.
        mcp: McpConfig = McpConfig::default(),
        /// The event stream.
        stream: StreamConfig = StreamConfig::default(),
        /// What web pages may call.
        cors: CorsConfig = CorsConfig::default(),
    }
}

section! {
    /// The MCP endpoint.
    McpConfig {
        /// Whether it is served.
        enabled: bool = true,
    }
}

section! {
    /// The event stream.
    StreamConfig {
        /// Whether it is served.
        enabled: bool = true,
        /// How many may follow it at once; less than one counts as one.
        #[serde(deserialize_with = "lists::at_least_one")]
        #[schemars(schema_with = "lists::any_integer")]
        max_subscribers: u32 = 100,
        /// Seconds between signs of life on a quiet stream.
        #[schemars(range(min = 1))]
        keep_alive_seconds: u64 = 15,
    }
}

section! {
    /// What web pages may call (BND-2).
    CorsConfig {
        /// Exact origins, such as `https://board.example`.
        #[schemars(inner(regex(pattern = r"^(\*|https?://[^/\s?#]+)$")))]
        allow_origins: Vec<String> = Vec::new(),
        /// Methods.
        #[schemars(inner(length(min = 1)))]
        allow_methods: Vec<String> = texts(&["GET", "POST", "OPTIONS"]),
        /// Request headers.
        #[schemars(inner(length(min = 1)))]
        allow_headers: Vec<String> = texts(&["Accept", "Content-Type"]),
        /// Whether credentials may be sent; never with the origin `*`.
        allow_credentials: bool = false,
        /// Whether pages of a public site may reach this private address.
        allow_private_network: bool = true,
    }
}
