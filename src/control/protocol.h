// SPDX-License-Identifier: Apache-2.0
// The form of the messages between a command and the daemon that holds the repository. Each message
// is one JSON object on a line. The command sends a request, the daemon sends a reply. Request and
// reply name the protocol.
#pragma once

#include <string>
#include <string_view>

#include "control/requests.h"
#include "varve/result.h"

namespace varve::control {

[[nodiscard]] std::string encode(const Request& request);
[[nodiscard]] std::string encode(const Reply& reply);
/// Decodes a request or a reply. An error inside a reply is part of the value.
/// Errors: kInvalid if the line is not a request (or reply) of this protocol; kUnsupported for a
/// request of another protocol, except kHello.
[[nodiscard]] Result<Request> decode_request(std::string_view line);
[[nodiscard]] Result<Reply> decode_reply(std::string_view line);

}  // namespace varve::control
