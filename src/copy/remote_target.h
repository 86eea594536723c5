// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "copy/message.h"
#include "copy/message_stream.h"
#include "copy/target.h"

namespace varve::copy {

/// A target behind a stream. Not thread-safe.
class RemoteTarget final : public Target {
 public:
  RemoteTarget(int in, int out) : stream_(in, out) {}

  /// Begins the conversation. Returns the id of the target's repository; "" if a dry run finds
  /// none.
  [[nodiscard]] Result<std::string> connect(const TargetSetup& setup, bool dry_run);

  [[nodiscard]] Result<std::string> repository_id() override { return repository_id_; }
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
  [[nodiscard]] Result<void> finish() override;

 private:
  template <typename Wanted>
  [[nodiscard]] Result<Wanted> receive();
  /// Sends a request and waits for its answer. Answers to earlier offers are dropped.
  template <typename Wanted>
  [[nodiscard]] Result<Wanted> ask(const Request& request);
  [[nodiscard]] Result<void> command(const Request& request);

  MessageStream stream_;
  std::string repository_id_;
  std::size_t offers_ = 0;  // Offers without an answer.
};

}  // namespace varve::copy
