// SPDX-License-Identifier: Apache-2.0
// The files of the pool without containers: the files of aliases and the files for sorting.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/alias_file.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::store {

/// A folder of a repository.
/// Lifetime: `files` outlives the users of the folder.
struct FolderPath {
  io::FileSystem* files = nullptr;
  std::string path;
};

/// Returns the numbers of the files of aliases, ascending; empty for a missing folder.
[[nodiscard]] Result<std::vector<std::uint32_t>> list_alias_files(const FolderPath& folder);

/// Receives the births of a file of aliases, and then one run per call. The births are empty if the
/// file has none, or if the births are unreadable.
using AliasVisit = std::function<Result<void>(const format::Births&, const format::TaggedAliases&)>;

/// Reads a file of aliases block by block. Calls `visit` for the runs of each sound block, until
/// `visit` fails. Returns the first fault; "" if the file is sound.
/// Errors: kUnsupported for another format; kNotFound; the errors of `visit`.
[[nodiscard]] Result<std::string> read_alias_file(const FolderPath& folder, std::uint32_t number,
                                                  const AliasVisit& visit);

/// Removes a file of aliases. A missing file is no error.
[[nodiscard]] Result<void> remove_alias_file(const FolderPath& folder, std::uint32_t number);

/// Writes a file of aliases. Without finish(), the destructor removes the incomplete file.
class AliasFileWriter {
 public:
  /// Begins the file `number`.
  [[nodiscard]] static Result<std::unique_ptr<AliasFileWriter>> begin(const FolderPath& folder,
                                                                      std::uint32_t number);
  AliasFileWriter(const AliasFileWriter&) = delete;
  AliasFileWriter& operator=(const AliasFileWriter&) = delete;
  ~AliasFileWriter();

  /// Adds a run. The runs ascend.
  [[nodiscard]] Result<void> add(const format::TaggedAliases& aliases);
  /// Makes the file durable under its name. `births`: the births with marks among the births of the
  /// aliases and of the aliases' targets. Returns the file's size in bytes.
  [[nodiscard]] Result<std::uint64_t> finish(const format::Births& births);

 private:
  AliasFileWriter(const FolderPath& folder, std::uint32_t number);
  [[nodiscard]] Result<void> write_block();

  const FolderPath folder_;
  const std::string name_;
  std::unique_ptr<io::File> file_;
  format::AliasBlockEncoder block_;
  format::AliasFileHeader header_;
  std::uint64_t end_ = 0;
};

}  // namespace varve::store
