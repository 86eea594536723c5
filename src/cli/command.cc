// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

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
    case ErrorCode::kNoRepository:
      return kExitNoRepository;
    case ErrorCode::kLocked:
      return kExitLocked;
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
  return {ErrorCode::kInvalid, "no repository is named; give REPO or set VARVE_REPO"};
}

Result<void> take_repository(std::initializer_list<Positional> positionals) {
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
    if (!place.value->empty()) continue;
    std::string order;
    for (const Positional& one : places) order += std::string(order.empty() ? "" : " ") + one.name;
    return Error(ErrorCode::kInvalid, std::string(place.name) + " is missing; the arguments are " +
                                          order + " (see --help)");
  }
  return {};
}

}  // namespace varve::cli
