// SPDX-License-Identifier: Apache-2.0
// Stores a directory as a new version of a series, and seals the version.
// Exit status: 0 stored, 1 failed, 2 wrong usage, 3 stored without the files named on stderr.
#include <varve/arrange.h>
#include <varve/backup.h>
#include <varve/repository.h>

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace {

/// Opens the repository. Creates it on the first run.
varve::Result<std::unique_ptr<varve::Repository>> open_or_create(const std::string& path) {
  varve::OpenOptions options;
  options.arrange = false;  // Not in the background: store_and_seal() arranges before it ends.
  auto opened = varve::Repository::open(path, options);
  if (opened || opened.error().code() != varve::ErrorCode::kNoRepository) return opened;
  VARVE_TRY(varve::Repository::create(path, {}));
  return varve::Repository::open(path, options);
}

/// Stores the directory, seals the version and prints its sizes. Returns the exit status.
varve::Result<int> store_and_seal(varve::Repository& repository,
                                  const varve::StoreRequest& request) {
  VARVE_TRY_ASSIGN(const auto stored, repository.store_version(request, {}));
  for (const std::string& problem : stored.report.problems) {
    std::fprintf(stderr, "backup: %s\n", problem.c_str());
  }
  // The version is on disk and immutable when seal() returns.
  VARVE_TRY_ASSIGN(const auto sealed, repository.seal(stored.info.series, stored.info.number, ""));
  if (!sealed.warning.empty()) std::fprintf(stderr, "backup: %s\n", sealed.warning.c_str());
  std::printf("%s/%s: %" PRIu64 " entries, %" PRIu64 " bytes, %" PRIu64 " of them new\n",
              sealed.info.series_name.c_str(), sealed.info.name.c_str(), sealed.info.entries,
              sealed.info.logical_bytes, sealed.info.unique_bytes);
  // Moves the chunks that only older versions use. The next run continues an interrupted call.
  VARVE_TRY(repository.arrange(sealed.info.series, {}));
  return stored.report.problems.empty() ? 0 : 3;
}

varve::Result<int> back_up(const std::string& path, const varve::StoreRequest& request) {
  VARVE_TRY_ASSIGN(const auto repository, open_or_create(path));
  auto status = store_and_seal(*repository, request);
  // A destructor cannot report errors: close() makes the data of open versions durable.
  auto closed = repository->close();
  if (status && !closed) return std::move(closed).error();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: backup REPOSITORY SERIES VERSION DIRECTORY\n");
    return 2;
  }
  varve::StoreRequest request;
  request.series = argv[2];
  request.version = argv[3];
  request.directory = argv[4];
  const auto status = back_up(argv[1], request);
  if (status) return *status;
  std::fprintf(stderr, "backup: %s\n", status.error().message().c_str());
  if (status.error().code() == varve::ErrorCode::kNoSpace) {
    std::fprintf(stderr, "backup: free some space; the same command then continues\n");
  }
  return 1;
}
