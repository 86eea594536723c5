// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/version_origin.h"
#include "copy/change_applier.h"
#include "copy/change_checker.h"
#include "copy/target.h"
#include "format/fingerprinter.h"
#include "varve/repository.h"

namespace varve::copy {

/// Receives copies in a repository opened by the process. Trusts no argument. Not thread-safe.
class LocalTarget final : public Target {
 public:
  /// Lifetime: the repository outlives the object.
  explicit LocalTarget(Repository& repository)
      : repository_(repository), fingerprinter_(format::make_sha256_fingerprinter()) {}

  [[nodiscard]] Result<std::string> repository_id() override { return repository_.id(); }
  [[nodiscard]] Result<std::vector<TargetSeries>> series() override;
  [[nodiscard]] Result<std::vector<TargetVersion>> versions(SeriesId series) override;
  [[nodiscard]] Result<SeriesId> create_series(const std::string& name,
                                               const SeriesSettings& settings) override;
  [[nodiscard]] Result<void> rename_series(SeriesId series, const std::string& name) override;
  [[nodiscard]] Result<void> rename_version(SeriesId series, VersionNumber number,
                                            const std::string& name) override;
  [[nodiscard]] Result<void> lock_version(SeriesId series, VersionNumber number,
                                          const Timestamp& until) override;
  [[nodiscard]] Result<std::vector<std::string>> delete_versions(
      SeriesId series, const std::vector<VersionNumber>& numbers) override;
  [[nodiscard]] Result<void> set_beside(SeriesId series,
                                        const std::vector<BesideFile>& files) override;
  [[nodiscard]] Result<std::uint64_t> begin(const CopyBegin& copy) override;
  [[nodiscard]] Result<void> offer(ChangeBatch batch) override;
  [[nodiscard]] Result<std::vector<bool>> wanted() override;
  [[nodiscard]] Result<void> fill(std::vector<std::string> chunks) override;
  [[nodiscard]] Result<void> settle() override;
  [[nodiscard]] Result<std::vector<Difference>> check(SeriesId series,
                                                      std::optional<VersionNumber> sealed,
                                                      bool first,
                                                      const ChangeBatch& batch) override;
  [[nodiscard]] Result<TargetVersion> seal(const CopySeal& copy) override;
  [[nodiscard]] Result<void> drop() override;
  [[nodiscard]] Result<void> finish() override { return repository_.sync(); }

 private:
  /// The version receiving a copy.
  struct Receiving {
    VersionInfo info;
    VersionOrigin origin;
    catalog::CopyMark mark;
    KnownChunks known = KnownChunks::kAll;
    std::shared_ptr<VersionWriter> writer;
    std::unique_ptr<ChangeApplier> applier;
    std::uint64_t unsettled_bytes = 0;
    std::chrono::steady_clock::time_point settled_at;
  };
  /// A batch whose changes are not made yet.
  struct Offered {
    ChangeBatch batch;
    std::vector<std::byte> memory;             // Bytes of all chunks, back to back.
    std::vector<std::span<std::byte>> chunks;  // In `memory`.
    std::unique_ptr<bool[]> found;
    bool is_answered = false;
  };
  /// Returns the open copy continued by `copy`; drops any interrupted copy of another version.
  [[nodiscard]] Result<std::optional<VersionInfo>> find_open(const CopyBegin& copy);
  [[nodiscard]] Result<VersionInfo> open_new(const CopyBegin& copy);
  [[nodiscard]] Result<void> set_mark();
  [[nodiscard]] Result<void> set_origin(const std::string& value);
  [[nodiscard]] Result<Receiving*> receiving();

  Repository& repository_;
  const std::unique_ptr<const format::Fingerprinter> fingerprinter_;
  std::optional<Receiving> receiving_;
  std::deque<Offered> offered_;
  std::shared_ptr<VersionReader> checked_;
  std::unique_ptr<ChangeChecker> checker_;
};

}  // namespace varve::copy
