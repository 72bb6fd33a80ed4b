//! Recognises the protocol of a JSON-RPC message by its method and by the members of its content.

use steno_model::json::JsonString;

use super::{BEGAN, RpcMessage};
use crate::surface::Surface;
use crate::wire::{RawField as _, object, parse, wire};

wire! {
    /// The members of parameters and results that only one protocol has.
    struct Content {
        protocol: "protocol",
        version: "protocolVersion",
        client: "clientInfo" => Program,
        agent: "agentInfo" => Program,
        agent_capabilities: "agentCapabilities",
        client_capabilities: "clientCapabilities",
        server: "serverInfo",
        capabilities: "capabilities",
        tools: "tools",
        session: "sessionId",
        stop_reason: "stopReason",
    }
}

wire! {
    struct Program { version: "version", }
}

/// The beginnings of methods that only ACP has.
const ACP_METHODS: [&str; 4] = ["session/", "fs/", "terminal/", "authenticate"];

/// The beginnings of methods that only MCP has.
const MCP_METHODS: [&str; 10] = [
    "tools/",
    "resources/",
    "prompts/",
    "completion/",
    "logging/",
    "sampling/",
    "elicitation/",
    "roots/",
    "notifications/",
    "server/discover",
];

/// Recognises the surface of a message; `None` if both protocols have such messages.
pub(crate) fn rpc_surface(text: &str) -> Option<Surface> {
    let message: RpcMessage<'_> = parse(text).ok()?;
    let content: Content<'_> = message.content().and_then(object).unwrap_or_default();
    let method = message.method.text().unwrap_or_default();
    if method == BEGAN {
        return content.protocol.is("mcp").then_some(Surface::Mcp);
    }
    let has = |methods: &[&str]| methods.iter().any(|begin| method.starts_with(begin));
    // ACP counts its versions, MCP dates them.
    let is_counted = content.version.number().is_some();
    if has(&ACP_METHODS)
        || (is_counted && (method == "initialize" || method.is_empty()))
        || content.agent_capabilities.is_some()
        || content.client_capabilities.is_some()
        || (method.is_empty() && (content.session.is_some() || content.stop_reason.is_some()))
    {
        return Some(Surface::Acp);
    }
    let is_mcp = has(&MCP_METHODS)
        || (method == "initialize" && content.capabilities.is_some())
        || (method.is_empty() && (content.server.is_some() || content.tools.is_some()));
    is_mcp.then_some(Surface::Mcp)
}

/// Returns the version of the agent, or of the client of an MCP server.
pub(crate) fn rpc_version(surface: Surface, text: &str) -> Option<JsonString> {
    let message: RpcMessage<'_> = parse(text).ok()?;
    let content: Content<'_> = message.content().and_then(object).unwrap_or_default();
    let program = if surface == Surface::Acp { content.agent } else { content.client };
    program.filter(|_| matches!(surface, Surface::Acp | Surface::Mcp))?.version.string()
}
