// SPDX-License-Identifier: Apache-2.0
#include "varve/rewrite.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace varve {
namespace {

struct RewriteRow {
  Rewrite rewrite;
  std::string_view name;
};

constexpr std::array kRewriteRows = {
    RewriteRow{Rewrite::kNone, "none"},      RewriteRow{Rewrite::kHar, "har"},
    RewriteRow{Rewrite::kCap, "cap"},        RewriteRow{Rewrite::kCbr, "cbr"},
    RewriteRow{Rewrite::kHarCap, "har+cap"}, RewriteRow{Rewrite::kHarCbr, "har+cbr"},
};

}  // namespace

std::string_view rewrite_name(Rewrite rewrite) {
  const auto row = std::ranges::find(kRewriteRows, rewrite, &RewriteRow::rewrite);
  return row == kRewriteRows.end() ? std::string_view("?") : row->name;
}

std::string rewrite_names() {
  std::string names;
  for (const RewriteRow& row : kRewriteRows)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

Result<Rewrite> parse_rewrite(std::string_view name) {
  const auto row = std::ranges::find(kRewriteRows, name, &RewriteRow::name);
  if (row != kRewriteRows.end()) return row->rewrite;
  return Error(
      ErrorCode::kInvalid,
      fmt::format("unknown rewriting policy `{}`; the policies are {}", name, rewrite_names()));
}

Result<void> check_rewrite(Rewrite rewrite) {
  if (std::ranges::find(kRewriteRows, rewrite, &RewriteRow::rewrite) != kRewriteRows.end())
    return {};
  return Error(ErrorCode::kUnsupported,
               fmt::format("this build of Varve has no rewriting policy number {}; it has {}",
                           static_cast<unsigned>(rewrite), rewrite_names()));
}

}  // namespace varve
