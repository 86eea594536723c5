// SPDX-License-Identifier: Apache-2.0
#include "maintain/scrub.h"

#include <fmt/core.h>

#include <chrono>
#include <sstream>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "format/container.h"

namespace varve::maintain {

namespace {

constexpr const char* kStateName = "scrub";
constexpr std::size_t kStateBytesMax = 4096;
constexpr std::chrono::seconds kSaveEvery(30);
constexpr const char* kFirstLine = "# Where `varve scrub` stopped; without it, it starts again.\n";

}  // namespace

std::string encode_scrub_state(const ScrubState& state) {
  std::string text = kFirstLine;
  if (state.reached) {
    text += fmt::format("reached = {} {} {}\n", static_cast<std::uint32_t>(state.reached->series),
                        state.reached->segment, state.reached->offset);
  }
  text += fmt::format("damages = {}\n", state.damages);
  return text + fmt::format("checksum = {:016x}\n", base::checksum64(base::as_bytes(text)));
}

ScrubState decode_scrub_state(const std::string& text) {
  ScrubState state;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    std::string equals;
    words >> key >> equals;
    if (key == "reached") {
      std::uint32_t series = 0;
      CheckPosition position;
      words >> series >> position.segment >> position.offset;
      position.series = static_cast<SeriesId>(series);
      if (words) state.reached = position;
    } else if (key == "damages") {
      words >> state.damages;
    }
  }
  return encode_scrub_state(state) == text ? state : ScrubState();
}

Result<ScrubReport> scrub(const format::DataCodecs& codecs, const meta::Env& catalog,
                          io::FileSystem& files, const std::string& repository_path,
                          const ScrubOptions& options,
                          const std::function<void(const CheckProgress&)>& progress,
                          const CheckHelpers& helpers, LostChunks& lost) {
  ScrubReport report;
  const auto path = repository_path + "/" + kStateName;
  const auto text = files.read_file(path, kStateBytesMax);
  ScrubState state = text && !options.restart ? decode_scrub_state(*text) : ScrubState();
  report.resumed = state.reached.has_value();
  report.damages_before = state.damages;
  const auto save = [&](const ScrubState& now) {
    return files.write_file_atomically(repository_path, kStateName,
                                       base::as_bytes(encode_scrub_state(now)));
  };
  // Saves the state first, so that a run fails at once if saving fails.
  VARVE_TRY(save(state));
  CheckOptions how;
  how.verify_chunks = true;
  how.bytes_per_second = options.bytes_per_second;
  how.stop = options.stop;
  how.after = state.reached;
  auto saved_at = std::chrono::steady_clock::now();
  const auto on_progress = [&](const CheckProgress& done) {
    if (progress) progress(done);
    if (!state.reached || done.reached > *state.reached) state.reached = done.reached;
    const auto now = std::chrono::steady_clock::now();
    if (now - saved_at < kSaveEvery) return;
    saved_at = now;
    if (const auto saved = save(state); !saved) {
      base::log(base::LogLevel::kWarning, saved.error().message());
    }
  };
  Checker checker(codecs, catalog, files, repository_path, how, on_progress, helpers);
  VARVE_TRY_ASSIGN(report.check, checker.run());
  lost = checker.lost_chunks();
  state.damages += report.check.damages.size();
  if (report.check.finished) state = {};  // The next run starts a new pass.
  VARVE_TRY(save(state));
  return report;
}

}  // namespace varve::maintain
