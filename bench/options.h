// SPDX-License-Identifier: Apache-2.0
// The options that benches of series have in common.
#pragma once

#include <charconv>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

namespace varve::bench {

/// Sets a variable to the value of an option. Returns false if the value is wrong.
using SetOption = std::function<bool(std::string_view value)>;

/// Returns the setter of a text.
inline SetOption text_option(std::string& variable) {
  return [&variable](std::string_view value) {
    variable = value;
    return !value.empty();
  };
}
/// Returns the setter of a number without a sign.
template <typename Number>
SetOption number_option(Number& variable) {
  return [&variable](std::string_view value) {
    const auto* const end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, variable);
    return parsed.ec == std::errc() && parsed.ptr == end;
  };
}

/// Reads options, each a name and a value, from argument number `first` on. Returns false if a name
/// is unknown or a value is wrong or missing.
inline bool read_options(int argc, char** argv, int first,
                         const std::map<std::string_view, SetOption>& options) {
  for (int i = first; i < argc; i += 2) {
    const auto found = options.find(argv[i]);
    if (found == options.end() || i + 1 == argc || !found->second(argv[i + 1])) return false;
  }
  return true;
}

}  // namespace varve::bench
