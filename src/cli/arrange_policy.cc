// SPDX-License-Identifier: Apache-2.0
#include "cli/arrange_policy.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace varve::cli {
namespace {

using Name = std::pair<ArrangePolicyKind, std::string_view>;
constexpr std::array<Name, 3> kNames = {{{ArrangePolicyKind::kOriginal, "original"},
                                         {ArrangePolicyKind::kBatched, "batched"},
                                         {ArrangePolicyKind::kTiered, "tiered"}}};

}  // namespace

Result<ArrangePolicyKind> parse_policy(std::string_view name) {
  const auto place = std::ranges::find(kNames, name, &Name::second);
  if (place != kNames.end()) return place->first;
  return Error(ErrorCode::kInvalid, "there is no policy \"" + std::string(name) +
                                        "\"; choose original, batched or tiered");
}

std::string_view policy_name(ArrangePolicyKind policy) {
  const auto place = std::ranges::find(kNames, policy, &Name::first);
  return place == kNames.end() ? std::string_view("?") : place->second;
}

}  // namespace varve::cli
