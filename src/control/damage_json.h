// SPDX-License-Identifier: Apache-2.0
// The JSON form of the known damage of a version, on the control socket.
#pragma once

#include <optional>

#include "control/json_fields.h"
#include "control/requests.h"

namespace varve::control {

template <>
struct JsonOf<DamageReply> {
  [[nodiscard]] static Json write(const DamageReply& damage);
  /// Refuses more than kLostFilesNamed names.
  [[nodiscard]] static std::optional<DamageReply> read(const Json& json);
};

}  // namespace varve::control
