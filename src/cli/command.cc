// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "cli/named_places.h"
#include "cli/output.h"

namespace varve::cli {
namespace {

void print_message(const std::string& message) {
  const std::string line = "varve: " + printable(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

int exit_code(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUsage:
      return kExitUsage;
    case ErrorCode::kNoRepository:
      return kExitNoRepository;
    case ErrorCode::kLocked:
      return kExitLocked;
    case ErrorCode::kWrongKey:
      return kExitWrongKey;
    case ErrorCode::kRefused:
      return kExitRefused;
    case ErrorCode::kIncomplete:
      return kExitIncomplete;
    case ErrorCode::kInterrupted:
      return kExitInterrupted;
    default:
      return kExitError;
  }
}

int fail(const Error& error) {
  print_message(error.message());
  return exit_code(error);
}

void note(const Context& context, const std::string& message) {
  if (!context.quiet) print_message(message);
}

void report_problems(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) print_message(problem);
}

Error no_repository_named() {
  return usage_error("no repository is named; give REPO or set VARVE_REPO");
}

Result<void> take_words(std::initializer_list<Positional> positionals) {
  const std::vector<Positional> places(positionals);
  const char* from_environment = std::getenv("VARVE_REPO");
  if (places.back().value->empty() && from_environment != nullptr && *from_environment != '\0') {
    for (std::size_t i = places.size() - 1; i > 0; --i) {
      *places[i].value = std::move(*places[i - 1].value);
    }
    *places.front().value = from_environment;
  }
  if (places.front().value->empty()) return no_repository_named();
  for (const Positional& place : places) {
    if (place.value->empty()) *place.value = place.otherwise;
  }
  std::string order;
  for (const Positional& one : places) order += std::string(order.empty() ? "" : " ") + one.name;
  std::vector<std::string> others;
  for (const Positional& one : places) {
    if (!one.may_hold_repository) others.push_back(*one.value);
  }
  if (auto swapped = others.size() > 1 ? swapped_words(others.front(), others) : std::nullopt) {
    return std::move(*swapped).with_more("; the arguments are " + order);
  }
  for (const Positional& place : places) {
    if (!place.value->empty()) continue;
    return usage_error(std::string(place.name) + " is missing; the arguments are " + order +
                       ", and VARVE_REPO can name the first");
  }
  return {};
}

Result<void> take_repository(std::initializer_list<Positional> positionals,
                             control::Purpose purpose) {
  VARVE_TRY(take_words(positionals));
  return use_folder_of_place(*positionals.begin()->value, purpose);
}

}  // namespace varve::cli
