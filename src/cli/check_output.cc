// SPDX-License-Identifier: Apache-2.0
#include "cli/check_output.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "cli/output.h"

namespace varve::cli {

namespace {

void print_damage(const Damage& damage, bool json) {
  if (json) {
    Json object{{"what", damage.what}};
    put_name(object, "where", damage.where);
    auto& affected = object["affected"] = Json::array();
    for (const std::string& name : damage.affected) {
      Json file;
      put_name(file, "name", name);
      affected.push_back(std::move(file));
    }
    print_json("damage", std::move(object));
    return;
  }
  print("damaged: " + printable(damage.where) + ": " + printable(damage.what) + "\n");
  for (const std::string& name : damage.affected) print("  affects " + printable(name) + "\n");
}

void print_note(const CheckNote& note, bool json) {
  if (!json) {
    print("note: " + printable(note.where) + ": " + note.what + "\n");
    return;
  }
  Json object{{"what", note.what}};
  put_name(object, "where", note.where);
  print_json("note", std::move(object));
}

void print_summary(const CheckReport& report, Checked checked) {
  Json object{{"containers", report.containers},
              {"read_bytes", report.bytes_read},
              {"finished", report.finished},
              {"notes", report.notes.size()},
              {"damages", report.damages.size()}};
  if (checked == Checked::kVersions) {
    object["versions"] = report.versions;
    object["chunks"] = report.chunks;
    object["parity_percent"] = report.parity.percent;
    object["parity_files"] = report.parity.files;
    object["parity_files_protected"] = report.parity.files_protected;
    if (report.sequence) object["sequence"] = *report.sequence;
    object["lost_chunks"] = report.lost_chunks;
    object["quarantined"] = report.quarantined;
  }
  print_json("check_summary", std::move(object));
}

}  // namespace

void print_check_report(const CheckReport& report, bool json, const Context& context,
                        Checked checked) {
  for (const Damage& damage : report.damages) print_damage(damage, json);
  if (json || !context.quiet) {
    for (const CheckNote& note : report.notes) print_note(note, json);
  }
  if (json) return print_summary(report, checked);
  if (context.quiet) return;
  const auto size = size_text(report.bytes_read, false);
  const auto what = checked == Checked::kVersions
                        ? fmt::format("{} versions, {} containers, {} chunks, {} read",
                                      report.versions, report.containers, report.chunks, size)
                        : fmt::format("{} containers, {} read", report.containers, size);
  const auto damages = report.damages.empty()
                           ? std::string("no damage")
                           : fmt::format("{} damaged places", report.damages.size());
  print(
      fmt::format("{}: {}{}\n", what, damages, report.finished ? "" : ", stopped before the end"));
  if (report.lost_chunks != 0) {
    print(fmt::format("{} chunks are damaged and {}\n", report.lost_chunks,
                      report.quarantined
                          ? "in quarantine; `varve repair` looks for other copies, and the next "
                            "`varve store` stores the content of others again"
                          : "not in quarantine yet"));
  }
  if (report.parity.percent != 0) {
    print(fmt::format("parity of {} %: {} of {} files are protected\n", report.parity.percent,
                      report.parity.files_protected, report.parity.files));
  }
  if (report.sequence) print(fmt::format("sequence number {}\n", *report.sequence));
}

}  // namespace varve::cli
