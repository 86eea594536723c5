// SPDX-License-Identifier: Apache-2.0
// Repositories in folders that are removed after the test, and helpers to use them.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/coding.h"
#include "support/noise.h"
#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/repository.h"

namespace varve::test {

class TempDirectory {
 public:
  explicit TempDirectory(const std::string& parent = testing::TempDir())
      : path_(parent + "/varve-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Returns the value; an error ends the test.
template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}
inline void must(Result<void> result) {
  if (!result) throw std::runtime_error(result.error().message());
}

/// Returns the error's code; a success ends the test.
template <typename T>
ErrorCode code_of(const Result<T>& result) {
  if (result) throw std::runtime_error("an error was expected");
  return result.error().code();
}

/// Returns the key that encrypted repositories of tests have, by a key file of 32 bytes.
inline UserKey test_key(char fill = 'k') {
  const std::string bytes(32, fill);
  return {KeyKind::kKeyFile, must(Secret::copy_of(base::as_bytes(bytes)))};
}
/// Returns the options to create an encrypted repository that test_key() opens.
inline CreateOptions encrypted() {
  CreateOptions options;
  options.encryption = Encryption{.first_key = {.key = test_key()}};
  return options;
}
/// Returns `options` with test_key(), to open a repository made with encrypted().
inline OpenOptions with_key(OpenOptions options) {
  options.key = [] { return Result<UserKey>(test_key()); };
  return options;
}

inline RepositoryParameters small_chunks(Codec codec) {
  RepositoryParameters parameters;
  parameters.chunk_bytes_min = 1024;
  parameters.chunk_bytes_avg = 4096;
  parameters.chunk_bytes_max = 16384;
  parameters.codec = codec;
  return parameters;
}

/// Returns options without background work: the first checkpoint comes after an hour, and nothing
/// is arranged. Tests decide when.
inline OpenOptions quiet_options() {
  OpenOptions options;
  options.checkpoint_interval_ms = 3600 * 1000;
  options.ingest_threads = 2;
  options.arrange = false;
  options.autoseal_s = 0;
  return options;
}

inline std::unique_ptr<Repository> reopen(const std::string& path,
                                          OpenOptions options = quiet_options()) {
  return must(Repository::open(path, options));
}

inline NewFile regular_file(std::uint32_t permissions = 0644) {
  NewFile file;
  file.mode = S_IFREG | permissions;
  return file;
}
inline NewFile folder(std::uint32_t permissions = 0755) {
  NewFile file;
  file.mode = S_IFDIR | permissions;
  return file;
}

inline Ino write_file(VersionWriter& version, Ino parent, std::string_view name,
                      std::string_view bytes) {
  const auto entry = must(version.create(parent, name, regular_file()));
  const auto file = must(version.open(entry.ino, true));
  constexpr std::size_t kPiece = 100000;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    must(file->write(at, base::as_bytes(bytes.substr(at, kPiece))));
  }
  return entry.ino;
}

/// Reads a file of `size` bytes with one `read` for one byte more, and returns the bytes.
template <typename File>
std::string read_all(File& file, std::uint64_t size) {
  std::string out(size + 1, '\0');
  const auto got = must(file.read(0, std::as_writable_bytes(std::span(out.data(), out.size()))));
  out.resize(got);
  return out;
}

inline std::string read_open(VersionWriter& version, Ino ino) {
  const auto size = must(version.get(ino)).attributes.size;
  const auto file = must(version.open(ino, false));
  return read_all(*file, size);
}

inline Rank find(VersionReader& version, std::string_view path) {
  Rank at = 0;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    at = must(version.lookup(at, path.substr(0, slash))).rank;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return at;
}

inline std::string read_sealed(VersionReader& version, std::string_view path) {
  const Rank rank = find(version, path);
  const auto file = must(version.open(rank));
  return read_all(*file, must(version.get(rank)).attributes.size);
}

/// Copies the repository in the state that a crash at this moment would leave. The copy shares the
/// reserve's 8 MB, which are removed but never changed.
inline void copy_crashed(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::create_directory(to, from);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    const auto target = to + "/" + entry.path().filename().string();
    std::error_code unlinked;
    if (entry.path().filename() == "reserve") {
      std::filesystem::create_hard_link(entry.path(), target, unlinked);
      if (!unlinked) continue;
    }
    std::filesystem::copy(entry.path(), target, std::filesystem::copy_options::recursive);
  }
}

}  // namespace varve::test
