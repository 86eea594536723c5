// SPDX-License-Identifier: Apache-2.0
#include "cli/store_planning.h"

#include <fmt/core.h>

#include <utility>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "varve/store.h"

namespace varve::cli {
namespace {

const char* word_of(StoreChange change) {
  switch (change) {
    case StoreChange::kAdded:
      return "added";
    case StoreChange::kChanged:
      return "changed";
    case StoreChange::kMetadata:
      return "metadata";
    case StoreChange::kRemoved:
      return "removed";
  }
  return "";
}

}  // namespace

Result<TransferReport> print_plan(const std::string& repository, const StoreRequest& request,
                                  bool json, Progress& progress, const control::StopRequest& stop) {
  VARVE_TRY_ASSIGN(const auto opened, open_to_read(repository));
  const auto print_change = [&](StoreChange change, const std::string& path) {
    progress.clear();
    if (json) {
      Json object{{"change", word_of(change)}};
      put_name(object, "path", path);
      print_json("change", std::move(object));
    } else {
      print(fmt::format("{} {}\n", static_cast<char>(change), name_text(path)));
    }
  };
  VARVE_TRY_ASSIGN(const StorePlan planned,
                   opened->plan_store(request, print_change, [&](const TransferProgress& done) {
                     progress.update(0, 0, done.files_done);
                     return !stop.stopped();
                   }));
  progress.clear();
  TransferReport report;
  report.entries = planned.entries;
  report.unchanged = planned.unchanged;
  report.removed = planned.removed;
  report.bytes = planned.bytes;
  report.problems = planned.problems;
  if (json) {
    print_json("store_plan", {{"entries", report.entries},
                              {"unchanged", report.unchanged},
                              {"removed", report.removed},
                              {"read_bytes", report.bytes},
                              {"problems", report.problems.size()}});
  }
  if (planned.refusal.empty()) return report;
  report_problems(planned.problems);
  return Error(ErrorCode::kRefused, planned.refusal);
}

}  // namespace varve::cli
