// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace varve::base {
namespace {

// Longer names are not compared: the work grows with the square of the length.
constexpr std::size_t kLengthMax = 64;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Returns the number of edits between two names of at most kLengthMax bytes (optimal string
/// alignment distance).
std::size_t edits_between(std::string_view a, std::string_view b) {
  using Row = std::array<std::size_t, kLengthMax + 1>;
  Row before{};
  Row last{};
  Row row{};
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view wanted,
                                        const std::vector<std::string>& names) {
  if (wanted.empty() || wanted.size() > kLengthMax) return std::nullopt;
  const std::string* nearest = nullptr;
  std::size_t fewest = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& name : names) {
    const std::size_t difference =
        std::max(name.size(), wanted.size()) - std::min(name.size(), wanted.size());
    if (name.size() > kLengthMax || difference >= fewest) continue;
    const std::size_t edits = edits_between(wanted, name);
    if (edits >= fewest || edits == name.size()) continue;
    fewest = edits;
    nearest = &name;
  }
  if (nearest == nullptr) return std::nullopt;
  return *nearest;
}

std::string nearest_name_hint(std::string_view wanted, const std::vector<std::string>& names) {
  const auto name = nearest_name(wanted, names);
  return name ? fmt::format("; did you mean \"{}\"?", *name) : std::string();
}

}  // namespace varve::base
