// SPDX-License-Identifier: Apache-2.0
#include "varve/pool_index.h"

#include <fmt/core.h>

namespace varve {
namespace {

constexpr std::string_view kExactName = "exact";
constexpr std::string_view kZeroChunkName = "zero-chunk";
constexpr std::string_view kStreamName = "stream";

bool is_in_range(std::uint32_t hook_bits) {
  return hook_bits >= PoolIndexChoice::kHookBitsMin && hook_bits <= PoolIndexChoice::kHookBitsMax;
}

}  // namespace

std::string pool_index_text(const PoolIndexChoice& choice) {
  if (choice.kind == PoolIndexKind::kExact) return std::string(kExactName);
  if (choice.kind == PoolIndexKind::kStream) return std::string(kStreamName);
  if (choice.hook_bits == 0) return std::string(kZeroChunkName);
  return fmt::format("{}:{}", kZeroChunkName, choice.hook_bits);
}

std::string pool_index_names() {
  return fmt::format("{}, {}, {}, or {}:N with N from {} to {}", kExactName, kStreamName,
                     kZeroChunkName, kZeroChunkName, PoolIndexChoice::kHookBitsMin,
                     PoolIndexChoice::kHookBitsMax);
}

Result<PoolIndexChoice> parse_pool_index(std::string_view text) {
  for (const auto kind :
       {PoolIndexKind::kExact, PoolIndexKind::kZeroChunk, PoolIndexKind::kStream}) {
    const PoolIndexChoice choice{kind, 0};
    if (text == pool_index_text(choice)) return choice;
  }
  for (auto bits = PoolIndexChoice::kHookBitsMin; bits <= PoolIndexChoice::kHookBitsMax; ++bits) {
    const PoolIndexChoice choice{PoolIndexKind::kZeroChunk, bits};
    if (text == pool_index_text(choice)) return choice;
  }
  return Error(ErrorCode::kInvalid,
               fmt::format("unknown index of the pool `{}`; choose {}", text, pool_index_names()));
}

Result<void> check_pool_index(const PoolIndexChoice& choice) {
  const bool has_bits = choice.hook_bits != 0;
  const bool is_known =
      choice.kind == PoolIndexKind::kZeroChunk
          ? !has_bits || is_in_range(choice.hook_bits)
          : (choice.kind == PoolIndexKind::kExact || choice.kind == PoolIndexKind::kStream) &&
                !has_bits;
  if (is_known) return {};
  return Error(
      ErrorCode::kUnsupported,
      fmt::format("this build of Varve has no index of the pool number {} with the "
                  "parameter {}; it has {}",
                  static_cast<unsigned>(choice.kind), choice.hook_bits, pool_index_names()));
}

}  // namespace varve
