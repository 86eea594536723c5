// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crypto/key_ring.h"
#include "format/frame_codec.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/repair.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// The superblock of a repository under repair: the file `varve.repo`, or a copy in place of a
/// damaged file. For one repair.
class SuperblockRepair {
 public:
  /// Reads the superblock. If `varve.repo` is damaged or older, reads a copy and plans to write the
  /// file again. Errors: kNoRepository; kUnsupported for a newer format; kCorrupt without a
  /// readable copy; the errors of the key.
  [[nodiscard]] static Result<SuperblockRepair> scan(io::FileSystem& files, const std::string& path,
                                                     const RepairOptions& options);

  /// Finds key slots older than the catalog.
  [[nodiscard]] Result<void> scan_key_counter(const meta::Env& catalog,
                                              std::vector<RepairStep>& steps);
  /// Refuses to build a new catalog under the superblock of another repository. `files` opens
  /// sealed files. Errors: as check_superblock_place().
  [[nodiscard]] Result<void> check(io::FileSystem& files, const format::FrameCodec& codec,
                                   bool trust_owner) const;
  /// Writes the superblock, if planned.
  [[nodiscard]] Result<void> execute(io::FileSystem& files) const;

  /// Returns whether execute() writes the superblock.
  [[nodiscard]] bool is_needed() const { return is_needed_; }
  /// Returns the steps planned by scan().
  [[nodiscard]] const std::vector<RepairStep>& steps() const { return steps_; }
  /// Returns the text of the superblock, as labels have the text.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const RepositoryParameters& parameters() const { return parameters_; }
  /// Returns the keys of an encrypted repository, or null.
  [[nodiscard]] const std::shared_ptr<const crypto::KeyRing>& keys() const { return keys_; }
  /// Returns the superblock of an encrypted repository; nullopt for a plain repository.
  [[nodiscard]] const std::optional<format::Superblock>& encrypted() const { return encrypted_; }

 private:
  explicit SuperblockRepair(const std::string& path) : path_(path) {}

  [[nodiscard]] Result<void> read(io::FileSystem& files, const RepairOptions& options);
  void use(const format::Superblock& superblock, std::shared_ptr<const crypto::KeyRing> keys);
  /// Uses the file `varve.keys` instead of a bad `varve.repo`, if the repository is encrypted.
  /// Returns false without a file `varve.keys`.
  [[nodiscard]] Result<bool> use_copy(io::FileSystem& files, const RepairOptions& options,
                                      const std::string& damage);
  /// Uses the copy in labels that needs most features. `fault`: the fault of `varve.repo`.
  [[nodiscard]] Result<void> use_labels(io::FileSystem& files, const Error& fault);
  /// Returns true if the copy has later key slots of the same repository. Without keys, returns
  /// true if the copy claims later key slots.
  [[nodiscard]] bool has_newer_copy(io::FileSystem& files, const format::Superblock& superblock,
                                    const crypto::KeyRing* keys) const;
  void step(std::vector<RepairStep>& steps, std::string what) const;

  std::string path_;
  std::vector<RepairStep> steps_;
  std::string text_;
  std::optional<format::Superblock> encrypted_;
  std::shared_ptr<const crypto::KeyRing> keys_;
  RepositoryParameters parameters_;
  bool is_needed_ = false;
};

}  // namespace varve::maintain
