// SPDX-License-Identifier: Apache-2.0
#include "cli/check_output.h"

#include <fmt/format.h>

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

}  // namespace

void print_check_report(const CheckReport& report, bool json, const Context& context) {
  for (const Damage& damage : report.damages) print_damage(damage, json);
  if (json || !context.quiet) {
    for (const CheckNote& note : report.notes) print_note(note, json);
  }
  if (json) {
    print_json("check_summary", {{"versions", report.versions},
                                 {"containers", report.containers},
                                 {"chunks", report.chunks},
                                 {"read_bytes", report.bytes_read},
                                 {"parity_percent", report.parity.percent},
                                 {"parity_files", report.parity.files},
                                 {"parity_files_protected", report.parity.files_protected},
                                 {"finished", report.finished},
                                 {"notes", report.notes.size()},
                                 {"damages", report.damages.size()}});
  } else if (!context.quiet) {
    print(fmt::format("{} versions, {} containers, {} chunks, {} read: {}{}\n", report.versions,
                      report.containers, report.chunks, size_text(report.bytes_read, false),
                      report.damages.empty()
                          ? std::string("no damage")
                          : fmt::format("{} damaged places", report.damages.size()),
                      report.finished ? "" : ", stopped before the end"));
    if (report.parity.percent != 0) {
      print(fmt::format("parity of {} %: {} of {} files are protected\n", report.parity.percent,
                        report.parity.files_protected, report.parity.files));
    }
  }
}

}  // namespace varve::cli
