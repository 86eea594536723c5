// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "remote/folder_storage.h"

namespace varve::remote {

/// The storage of a repository whose data is on the local disk only.
class LocalFolder final : public FolderStorage {
 public:
  [[nodiscard]] store::StoreOpener opener() override { return {}; }
  [[nodiscard]] bool is_attached() const override { return false; }
  [[nodiscard]] bool may_be_ahead() const override { return false; }
  [[nodiscard]] EvictedFiles* evicted() override { return nullptr; }
  bool drop_cached() override { return false; }
  void will_read_once() override {}
  void end_reads() override {}
  [[nodiscard]] bucket::Traffic traffic() const override { return {}; }
  [[nodiscard]] Result<std::optional<Lease>> lease(const crypto::KeyRing*) override {
    return std::optional<Lease>();
  }
  [[nodiscard]] Result<bool> follow(const meta::Env&, std::shared_ptr<const crypto::KeyRing>,
                                    std::chrono::milliseconds, std::function<void()>) override {
    return false;
  }
  [[nodiscard]] std::uint64_t early_bytes() const override { return 0; }
  void before_write(const meta::Env&) override {}
  [[nodiscard]] Result<void> begin_writing(WrittenRepository) override { return {}; }
  [[nodiscard]] Replication& replication() override { return none_; }
  void stop() override {}

 private:
  NoReplication none_;
};

}  // namespace varve::remote
