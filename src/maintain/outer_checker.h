// SPDX-License-Identifier: Apache-2.0
// Checks a repository without keys or catalog, by checksums alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "io/file_system.h"
#include "maintain/owner_stores.h"
#include "store/folder_store.h"
#include "store/repository_paths.h"
#include "store/segment_files.h"
#include "varve/check.h"

namespace varve::maintain {

/// Compares all containers and parity files with their checksums. For one use by one thread.
/// Changes nothing and takes no lock. Checks each damaged file a second time at the end, because a
/// writer may have been appending to the file.
class OuterChecker {
 public:
  using Progress = std::function<void(const CheckProgress&)>;

  /// `open_store` is empty if all data is on the disk. Lifetime: `files` must outlive the checker.
  OuterChecker(io::FileSystem& files, store::StoreOpener open_store, std::string repository_path,
               const OuterCheckOptions& options, Progress progress)
      : files_(files),
        paths_(std::move(repository_path)),
        stores_(std::move(open_store), files, paths_.root()),
        options_(options),
        progress_(std::move(progress)),
        room_(io::direct_room(format::kContainerBytesMax)) {}

  /// Runs the check. Errors: kNoRepository; kUnsupported for data of a newer Varve.
  [[nodiscard]] Result<CheckReport> run();

 private:
  struct Place {
    SeriesId owner{};
    SegmentNumber segment{};
  };
  using Faults = std::vector<std::string>;

  [[nodiscard]] Result<std::vector<Place>> list_files(const std::vector<SeriesId>& owners);
  /// Returns the faults of a file; none if the file has been removed in the meantime.
  [[nodiscard]] Result<Faults> faults_of(const Place& place);
  /// Walks through the containers of a file.
  [[nodiscard]] Result<Faults> walk(store::OpenSegment& file, store::SegmentReader& reader,
                                    SegmentNumber segment, std::uint64_t size);
  /// Returns the fault of a container whose fixed header is sound; "" if the container is sound.
  [[nodiscard]] std::string fault_of_container(store::SegmentReader& reader, SegmentNumber segment,
                                               std::uint64_t offset,
                                               std::span<const std::byte> start,
                                               std::uint32_t length);
  [[nodiscard]] Result<void> check_parity(SeriesId owner);
  /// Notes files without parity if the repository has parity of further files: a parity file, which
  /// is derived data, may be missing.
  void note_unprotected(const std::vector<Place>& places);

  io::FileSystem& files_;
  const store::RepositoryPaths paths_;
  OwnerStores stores_;
  const OuterCheckOptions options_;
  const Progress progress_;
  base::AlignedBuffer room_;                               // Buffer for one container.
  std::map<SeriesId, std::set<SegmentNumber>> protected_;  // Protected by an existing parity file.
  CheckReport report_;
};

}  // namespace varve::maintain
