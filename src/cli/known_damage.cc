// SPDX-License-Identifier: Apache-2.0
#include "cli/known_damage.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cli/output.h"
#include "cli/repository_access.h"

namespace varve::cli {

void quarantine_damage(const std::string& repository, CheckReport& report, const Context& context) {
  if (report.lost_chunks != 0 && !report.quarantined && !report.quarantine_is_due) {
    note(context,
         "the damaged chunks cannot be recorded here, so new data may refer to them; run the check "
         "where it can write to the folder that stores new versions");
  }
  if (!report.quarantine_is_due) return;
  const auto done = [&]() -> Result<control::DamageReply> {
    VARVE_TRY_ASSIGN(const auto path, repository_at(repository, control::Purpose::kLook));
    // A reading command changes nothing in a trusted repository.
    if (is_trusted(path)) return Error(ErrorCode::kReadOnly, "VARVE_TRUST names " + path);
    VARVE_TRY_ASSIGN(const auto control,
                     open_control(repository, control::Purpose::kChange, {.wanted = false}));
    return close_after(*control, control->known_damage({.settles = true}));
  }();
  if (done) {
    report.quarantine_is_due = false;
    report.quarantined = true;
    return;
  }
  note(context, fmt::format("the quarantine of damaged chunks is not up to date yet ({}); the next "
                            "command that writes to the repository adds the chunks",
                            printable(done.error().message())));
}

std::string lost_files_text(const LostFiles& lost) {
  std::string text;
  for (const auto& name : lost.names) {
    if (!text.empty()) text += ", ";
    text += printable(name);
  }
  const auto more = lost.files - std::min<std::uint64_t>(lost.files, lost.names.size());
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

Json lost_files_json(const LostFiles& lost) {
  Json object{{"files", lost.files}};
  auto& names = object["names"] = Json::array();
  for (const auto& name : lost.names) {
    Json one;
    put_name(one, "name", name);
    names.push_back(std::move(one));
  }
  return object;
}

void report_lost_files(control::RepositoryControl& control, const std::string& version, bool json) {
  const auto known = control.known_damage({.version = version});
  // The command itself reports an unknown version.
  if (!known || known->lost.files == 0) return;
  if (json) {
    Json object = lost_files_json(known->lost);
    put_name(object, "version", version);
    print_json("lost_files", std::move(object));
  }
  report_problems({fmt::format(
      "{} has {} with lost content: {}; {}", version,
      known->lost.files == 1 ? std::string("a file") : fmt::format("{} files", known->lost.files),
      lost_files_text(known->lost), kHowToHeal)});
}

}  // namespace varve::cli
