// SPDX-License-Identifier: Apache-2.0
// A bucket of an S3-compatible store.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "bucket/location.h"
#include "bucket/s3_client.h"
#include "bucket/s3_tuning.h"
#include "varve/object_store.h"
#include "varve/result.h"

namespace varve::bucket {

/// Implements the promises of Bucket with the S3 protocol.
class S3Bucket final : public Bucket {
 public:
  /// Sends no request. Errors: kInvalid for wrong options; kNotPermitted without credentials; kIo.
  [[nodiscard]] static Result<std::unique_ptr<S3Bucket>> create(const Location& location,
                                                                const ObjectStoreOptions& options,
                                                                S3Tuning tuning);

  [[nodiscard]] Result<void> put(const std::string& name,
                                 std::span<const std::span<const std::byte>> parts,
                                 const PutOptions& options) override;
  [[nodiscard]] Result<std::size_t> get(const std::string& name, std::uint64_t offset,
                                        std::span<std::byte> out) override;
  [[nodiscard]] Result<std::vector<std::byte>> get_all(const std::string& name,
                                                       std::size_t bytes_max) override;
  void read_many(std::vector<ObjectRead> reads, ReadCompletion done) override;
  [[nodiscard]] Result<ObjectInfo> head(const std::string& name) override;
  [[nodiscard]] Result<ListPage> list(const std::string& prefix, const std::string& after,
                                      std::size_t objects_max) override;
  [[nodiscard]] Result<void> remove(const std::string& name) override;
  [[nodiscard]] Result<void> copy_prefix(const std::string& from, std::uint64_t bytes,
                                         const std::string& to, const PutOptions& options) override;
  [[nodiscard]] Result<void> remove_unfinished(const std::string& prefix) override;
  [[nodiscard]] Result<void> remove_version(const std::string& name,
                                            const std::string& version) override;
  [[nodiscard]] Result<void> lock(const std::string& name, const ObjectLock& lock) override;
  [[nodiscard]] std::optional<std::int64_t> clock_ahead() const override {
    return client_->clock_ahead();
  }
  [[nodiscard]] std::optional<std::chrono::microseconds> round_trip() const override {
    return client_->round_trip();
  }
  void stop() override { client_->stop(); }
  void interrupt_reads() override { client_->interrupt_reads(); }
  [[nodiscard]] Traffic traffic() const override { return client_->traffic(); }
  [[nodiscard]] std::string describe() const override { return text_of(location_); }

 private:
  /// Returns the current time by the store's clock, as far as known, in seconds since 1970.
  [[nodiscard]] std::int64_t store_seconds() const;
  S3Bucket(Location location, std::unique_ptr<S3Client> client);
  [[nodiscard]] Result<void> check_name(const std::string& name) const;
  [[nodiscard]] S3Request request(RequestKind kind, const char* method,
                                  const std::string& name) const;
  [[nodiscard]] S3Request get_request(const std::string& name, std::uint64_t offset,
                                      std::span<std::byte> out) const;
  /// Returns the answer to HEAD of an object.
  [[nodiscard]] Result<S3Answer> head_answer(const std::string& name);
  /// Returns whether the put() or copy_prefix() with the mark wrote the object.
  [[nodiscard]] Result<bool> has_mark(const std::string& name, const std::string& mark);
  [[nodiscard]] Result<void> copy_part(const std::string& from, std::uint64_t bytes,
                                       const std::string& to, const std::string& upload_id,
                                       const std::string& mark);
  [[nodiscard]] Result<void> abort_upload(const std::string& name, const std::string& upload_id);

  const Location location_;
  const std::unique_ptr<S3Client> client_;
};

}  // namespace varve::bucket
