// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/system_error.h"
#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/tree_compare.h"

namespace varve::cli {
namespace {

constexpr std::size_t kDumpBytes = std::size_t{1} << 20;

struct DumpArguments {
  std::vector<std::string> words;
};

Result<void> write_out(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::system_error("cannot write to standard output", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> dump(const DumpArguments& options) {
  VARVE_TRY_ASSIGN(
      const NamedPlaces named,
      find_places(options.words, {.least = 1, .most = 1, .order = "REPO SERIES/VERSION/PATH"}));
  if (!named.rest.empty()) {
    return usage_error("there are too many arguments; see --help");
  }
  const VersionPath& place = named.places.front();
  if (place.path.empty()) {
    return usage_error("no file is named; give SERIES/VERSION/PATH");
  }
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(named.repository));
  VARVE_TRY_ASSIGN(const VersionInfo info, find_version(*repository, place));
  VARVE_TRY_ASSIGN(const auto reader, repository->reader(info.series, info.number));
  const auto entry = find_entry(*reader, place.path);
  const std::string shown = place.series + "/" + info.name + "/" + place.path;
  if (!entry && entry.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kNotFound, "there is no file \"" + shown + "\"");
  }
  if (!entry) return entry.error();
  if (!S_ISREG(entry->attributes.mode)) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("{} is a {}, not a regular file; `varve restore` copies it", shown,
                             type_text(entry->attributes.mode)));
  }
  VARVE_TRY_ASSIGN(const auto file, reader->open(entry->rank));
  std::vector<std::byte> buffer(
      std::min<std::uint64_t>(kDumpBytes, std::max<std::uint64_t>(file->size(), 1)));
  for (std::uint64_t offset = 0; offset < file->size();) {
    const auto got = file->read(offset, buffer);
    if (!got) return Error(got.error()).with_context(fmt::format("{} at byte {}", shown, offset));
    if (*got == 0) return Error(ErrorCode::kCorrupt, shown + " ends before its size");
    VARVE_TRY(write_out(std::span(buffer).first(*got)));
    offset += *got;
  }
  return {};
}

}  // namespace

void add_dump_command(CommandLine& line, const Context& /*context*/) {
  auto options = std::make_shared<DumpArguments>();
  auto command = line.add_command("dump", "Write the content of a file to standard output");
  command.add_places(options->words, "SERIES/VERSION/PATH of a regular file");
  command.run([options] {
    const auto dumped = dump(*options);
    return dumped ? kExitOk : fail(dumped.error());
  });
}

}  // namespace varve::cli
