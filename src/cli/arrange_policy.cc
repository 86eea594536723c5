// SPDX-License-Identifier: Apache-2.0
#include "cli/arrange_policy.h"

#include <string>

#include "cli/command.h"

namespace varve::cli {
namespace {

/// Returns the names as a list for messages: "a, b or c".
std::string all_names() {
  std::string text;
  for (const auto& one : kArrangePolicies) {
    if (&one != &kArrangePolicies.front()) text += &one == &kArrangePolicies.back() ? " or " : ", ";
    text += one.name;
  }
  return text;
}

}  // namespace

std::string policy_help() {
  std::string text = "Which stored data to put in order";
  for (const auto& one : kArrangePolicies) {
    text += (&one == &kArrangePolicies.front() ? ": " : "; ") + std::string(one.name) + ", " +
            std::string(one.help);
    if (one.kind == ArrangeSettings().policy) text += " (default)";
  }
  return text + ". The repository stores the choice";
}

Result<ArrangePolicyKind> parse_policy(std::string_view name) {
  if (const auto policy = arrange_policy(name)) return *policy;
  return usage_error("there is no policy \"" + std::string(name) + "\"; choose " + all_names());
}

}  // namespace varve::cli
