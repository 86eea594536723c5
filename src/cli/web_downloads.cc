// SPDX-License-Identifier: Apache-2.0
#include "cli/web_downloads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/system_error.h"
#include "base/unique_fd.h"
#include "cli/output.h"
#include "cli/web_values.h"
#include "varve/restore.h"

namespace varve::cli {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;

struct ByteSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Returns the requested part of a file; nullopt if the file has no byte of the range.
std::optional<ByteSpan> part_of(const web::WantedRange& range, std::uint64_t size) {
  if (!range.first) {
    const std::uint64_t bytes = std::min(range.last.value_or(0), size);
    if (bytes == 0) return std::nullopt;
    return ByteSpan{size - bytes, size};
  }
  if (*range.first >= size) return std::nullopt;
  const std::uint64_t last = std::min(range.last.value_or(size - 1), size - 1);
  return ByteSpan{*range.first, last + 1};
}

Result<void> send_bytes(FileReader& file, ByteSpan part, web::Exchange& exchange) {
  std::vector<std::byte> buffer(
      static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, part.end - part.begin)));
  while (part.begin < part.end) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(part.end - part.begin, buffer.size()));
    VARVE_TRY_ASSIGN(const std::size_t got, file.read(part.begin, std::span(buffer).first(wanted)));
    if (got == 0) return Error(ErrorCode::kCorrupt, "the file ends before its size");
    VARVE_TRY(exchange.write(std::span(buffer).first(got)));
    part.begin += got;
  }
  return exchange.end();
}

/// Returns the name of a download on the user's disk.
std::string download_name(const WebPlace& place) {
  const std::string name = place.path.substr(place.path.rfind('/') + 1);
  return name.empty() ? place.reader->info().series_name + "-" + place.reader->info().name : name;
}

void log_failure(const std::string& what, const Error& error) {
  base::log(base::LogLevel::kError, printable(what + ": the download failed: " + error.message()));
}

/// Returns the first problem of an incomplete archive; nullopt if the archive lacks only entries
/// without a form in the archive's format.
std::optional<Error> loss_in(const TransferReport& report) {
  for (const std::string& problem : report.problems) {
    if (problem.ends_with(kSocketLeftOut) || problem.ends_with(kSpecialLeftOut)) continue;
    return Error(ErrorCode::kCorrupt, problem);
  }
  return std::nullopt;
}

}  // namespace

Result<void> send_file(Repository& repository, const web::Request& request,
                       web::Exchange& exchange) {
  VARVE_TRY_ASSIGN(const WebPlace place, find_web_place(repository, request));
  if (!S_ISREG(place.entry.attributes.mode)) {
    return Error(ErrorCode::kInvalid, std::string("only files can be sent so; this is a ") +
                                          type_text(place.entry.attributes.mode));
  }
  VARVE_TRY_ASSIGN(const auto file, place.reader->open(place.entry.rank));
  const std::uint64_t size = file->size();
  web::Headers headers{{"Content-Disposition", web::attachment(download_name(place))},
                       {"Accept-Ranges", "bytes"}};
  const char* const type = "application/octet-stream";
  ByteSpan part{0, size};
  unsigned status = 200;
  if (request.range) {
    const auto wanted = part_of(*request.range, size);
    if (!wanted) {
      return exchange.send_text(416, "The file is shorter.",
                                {{"Content-Range", "bytes */" + std::to_string(size)}});
    }
    part = *wanted;
    status = 206;
    headers.emplace_back("Content-Range", "bytes " + std::to_string(part.begin) + "-" +
                                              std::to_string(part.end - 1) + "/" +
                                              std::to_string(size));
  }
  VARVE_TRY(exchange.begin(status, type, part.end - part.begin, headers));
  if (exchange.is_head()) return {};
  auto sent = send_bytes(*file, part, exchange);
  if (!sent && sent.error().code() == ErrorCode::kCorrupt) log_failure(place.path, sent.error());
  return sent;
}

Result<void> send_archive(Repository& repository, const web::Request& request, bool is_tar,
                          web::Exchange& exchange) {
  VARVE_TRY_ASSIGN(const WebPlace place, find_web_place(repository, request));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::io_error("cannot make a pipe", errno);
  base::UniqueFd from(ends[0]);
  base::UniqueFd to(ends[1]);
  ::fcntl(to.get(), F_SETPIPE_SZ, static_cast<int>(kPieceBytes));  // A larger pipe is only faster.
  const std::string name = download_name(place) + (is_tar ? ".tar" : ".zip");
  VARVE_TRY(exchange.begin(200, is_tar ? "application/x-tar" : "application/zip", std::nullopt,
                           {{"Content-Disposition", web::attachment(name)}}));
  if (exchange.is_head()) return {};
  std::vector<std::string> paths;
  if (!place.path.empty()) paths.push_back(place.path);
  std::optional<Error> failure;
  std::thread writer([&] {
    const auto write = is_tar ? write_tar : write_zip;
    const auto written = write(*place.reader, to.get(), paths, {});
    failure = written ? loss_in(*written) : std::optional(written.error());
    to.reset();
  });
  std::vector<std::byte> buffer(kPieceBytes);
  Result<void> sent = {};
  while (true) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) sent = base::io_error("cannot read the pipe", errno);
    if (got > 0) sent = exchange.write(std::span(buffer).first(static_cast<std::size_t>(got)));
    if (got <= 0 || !sent) break;
  }
  from.reset();  // Makes a continuing writer fail.
  writer.join();
  if (!sent) return sent;
  if (failure) {
    log_failure(place.path, *failure);
    return *failure;
  }
  return exchange.end();
}

}  // namespace varve::cli
