// SPDX-License-Identifier: Apache-2.0
#include "maintain/free_names.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace varve::maintain {

Result<std::string> free_name(io::FileSystem& files, const std::string& stem) {
  for (int i = 1;; ++i) {
    auto name = fmt::format("{}-{}", stem, i);
    VARVE_TRY_ASSIGN(const bool taken, files.exists(name));
    if (!taken) return name;
  }
}

Result<std::string> rename_to_free_name(io::FileSystem& files, const std::string& path) {
  VARVE_TRY_ASSIGN(auto name, free_name(files, path + ".damaged"));
  VARVE_TRY(files.rename(path, name));
  return name;
}

Result<std::string> copy_to_free_name(io::FileSystem& files, const std::string& path) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  VARVE_TRY_ASSIGN(auto copy, free_name(files, path + ".damaged"));
  VARVE_TRY_ASSIGN(const auto from, files.open(path, io::OpenMode::kRead));
  VARVE_TRY_ASSIGN(const auto to, files.open(copy, io::OpenMode::kReadWrite));
  std::vector<std::byte> piece(kPieceBytes);
  for (std::uint64_t at = 0;;) {
    VARVE_TRY_ASSIGN(const auto got, from->read_at(at, piece));
    if (got == 0) break;
    VARVE_TRY(to->write_at(at, std::span(piece).first(got)));
    at += got;
  }
  VARVE_TRY(to->sync());
  VARVE_TRY(files.sync_directory(path.substr(0, path.rfind('/'))));
  return copy;
}

}  // namespace varve::maintain
