// SPDX-License-Identifier: Apache-2.0
// A bucket in memory with requests that fail on demand, over a store that can lack abilities.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/clock.h"
#include "bucket/bucket.h"

namespace varve::test {

/// The store behind buckets in memory. The buckets of several machines may share a store. Set the
/// abilities before the first use.
struct MemoryObjects {
  struct Object {
    std::vector<std::byte> bytes{};
    Timestamp modified{};
    std::string storage_class{};
    std::string etag{};
    std::uint64_t change = 0;       // Number of the change that wrote the object.
    std::int64_t locked_until = 0;  // Seconds since 1970; 0 without a lock.
  };
  bool ignores_conditions = false;  ///< Replaces an object despite PutCondition::kIfAbsent.
  bool copies_ranges = true;        ///< False: copy_prefix() fails with kUnsupported.
  bool has_locks = false;           ///< Objects can be locked. The store keeps no versions.
  bool gives_etags = true;
  std::atomic<std::int64_t> clock_ahead_s = 0;  ///< The store's clock less the machine's.
  std::uint64_t list_lag = 0;  ///< Number of the last changes not yet shown by list().

  std::mutex mutex{};  // Innermost. Guards the members below.
  /// Ending of the name of an object replaced once by a put() despite PutCondition::kIfAbsent.
  std::string lets_through{};
  std::map<std::string, Object> objects{};
  std::map<std::string, Object> removed{};  // With the number of the removing change.
  std::uint64_t changes = 0;
  std::uint64_t extensions = 0;  ///< Number of extended locks.
};

/// The outcome of one request.
enum class Fault : std::uint8_t {
  kNone,
  kBefore,  ///< kUnavailable, and nothing happened.
  kLost,    ///< The request is carried out, and the answer is lost: kUnavailable.
  kLater,   ///< kUnavailable; a change happens only at MemoryBucket::apply_late().
  kHangs,   ///< The request waits for a stop or an interruption, and nothing happens.
};

/// A bucket in memory. Thread-safe. Repeats no request. read_many() reads in the calling thread, so
/// the order of the requests is the order of the calls.
class MemoryBucket final : public bucket::Bucket {
 public:
  using Bytes = std::vector<std::byte>;
  /// Decides about the request of a number, from 0.
  using Faults = std::function<Fault(std::uint64_t request, bucket::RequestKind kind,
                                     const std::string& name)>;

  explicit MemoryBucket(std::shared_ptr<MemoryObjects> objects = std::make_shared<MemoryObjects>(),
                        std::string prefix = {}, const base::Clock* clock = nullptr)
      : objects_(std::move(objects)), prefix_(std::move(prefix)), clock_(clock) {}

  /// Sets the latency reported by the bucket. The answers come at once nevertheless.
  void set_round_trip(std::chrono::microseconds trip) { round_trip_ = trip; }
  [[nodiscard]] std::optional<std::chrono::microseconds> round_trip() const override {
    const auto trip = round_trip_.load();
    return trip.count() == 0 ? std::nullopt : std::optional(trip);
  }
  [[nodiscard]] std::optional<std::int64_t> clock_ahead() const override {
    return objects_->clock_ahead_s.load();
  }
  void set_faults(Faults faults) {
    const std::lock_guard lock(mutex_);
    faults_ = std::move(faults);
  }
  /// Makes `count` requests fail, from `request` on.
  void fail_at(std::uint64_t request, Fault fault, std::uint64_t count = 1) {
    set_faults([=](std::uint64_t at, bucket::RequestKind, const std::string&) {
      return at >= request && at - request < count ? fault : Fault::kNone;
    });
  }
  /// Returns the number of requests so far, failed ones included.
  [[nodiscard]] std::uint64_t requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// Carries out the changes held back by Fault::kLater, in the order of the requests.
  void apply_late() {
    std::vector<std::function<void()>> late;
    {
      const std::lock_guard lock(mutex_);
      late.swap(late_);
    }
    for (const auto& change : late) change();
  }
  [[nodiscard]] const std::shared_ptr<MemoryObjects>& objects() const { return objects_; }

  Result<void> put(const std::string& name, std::span<const std::span<const std::byte>> parts,
                   const bucket::PutOptions& options) override {
    Bytes body;
    for (const auto part : parts) body.insert(body.end(), part.begin(), part.end());
    const auto sent = body.size();
    const auto etag = etag_of(body);
    auto* const receiver = options.etag;  // The change may happen after this call.
    const auto done = change(bucket::RequestKind::kPut, name, sent,
                             [this, name, body = std::move(body), options]() -> Result<void> {
                               const std::lock_guard lock(objects_->mutex);
                               const bool exists = objects_->objects.contains(prefix_ + name);
                               if (exists && options.condition == bucket::PutCondition::kIfAbsent &&
                                   !objects_->ignores_conditions && !lets_through(name)) {
                                 return Error(ErrorCode::kExists, describe(name) + " exists");
                               }
                               if (options.lock.on() && !objects_->has_locks) return no_locks();
                               if (exists)
                                 VARVE_TRY(check_lock(objects_->objects[prefix_ + name], name));
                               write(name, body, options.storage_class);
                               if (options.lock.on()) {
                                 objects_->objects[prefix_ + name].locked_until =
                                     lock_end(options.lock);
                               }
                               return {};
                             });
    if (!done) return done;
    if (receiver != nullptr && !etag.empty()) *receiver = etag;
    return {};
  }
  Result<void> lock(const std::string& name, const ObjectLock& lock) override {
    return change(bucket::RequestKind::kPut, name, 0, [this, name, lock]() -> Result<void> {
      if (!objects_->has_locks) return no_locks();
      const std::lock_guard guard(objects_->mutex);
      VARVE_TRY(find(name));
      objects_->objects[prefix_ + name].locked_until = lock_end(lock);
      ++objects_->extensions;
      return {};
    });
  }

  Result<std::size_t> get(const std::string& name, std::uint64_t offset,
                          std::span<std::byte> out) override {
    return read(name, offset, out);
  }
  Result<Bytes> get_all(const std::string& name, std::size_t bytes_max) override {
    VARVE_TRY(begin(bucket::RequestKind::kGet, name, 0));
    Bytes bytes;
    {
      const std::lock_guard lock(objects_->mutex);
      VARVE_TRY_ASSIGN(const auto* const object, find(name));
      if (object->bytes.size() > bytes_max) {
        return Error(ErrorCode::kTooLarge, describe(name) + " is too large");
      }
      bytes = object->bytes;
    }
    count_received(bucket::RequestKind::kGet, bytes.size());
    return bytes;
  }
  void read_many(std::vector<bucket::ObjectRead> reads, bucket::ReadCompletion done) override {
    for (std::size_t i = 0; i < reads.size(); ++i) {
      done(i, read(reads[i].name, reads[i].offset, reads[i].out));
    }
  }

  Result<bucket::ObjectInfo> head(const std::string& name) override {
    VARVE_TRY(begin(bucket::RequestKind::kHead, name, 0));
    const std::lock_guard lock(objects_->mutex);
    VARVE_TRY_ASSIGN(const auto* const object, find(name));
    return info(name, *object);
  }

  Result<bucket::ListPage> list(const std::string& prefix, const std::string& after,
                                std::size_t objects_max) override {
    VARVE_TRY(begin(bucket::RequestKind::kList, {}, 0));
    const std::lock_guard lock(objects_->mutex);
    const auto shown = objects_->changes - std::min(objects_->changes, objects_->list_lag);
    const auto wanted = prefix_ + prefix;
    const auto from = std::max(wanted, prefix_ + after);
    std::map<std::string_view, const MemoryObjects::Object*> seen;
    const auto add = [&](const std::map<std::string, MemoryObjects::Object>& all, bool is_removed) {
      for (auto at = all.lower_bound(from); at != all.end(); ++at) {
        if (!at->first.starts_with(wanted)) break;
        if ((at->second.change > shown) == is_removed) {
          seen.insert_or_assign(at->first, &at->second);
        }
      }
    };
    if (objects_->list_lag != 0) add(objects_->removed, true);
    add(objects_->objects, false);
    seen.erase(prefix_ + after);
    bucket::ListPage page;
    for (const auto& [name, object] : seen) {
      if (page.objects.size() == objects_max) {
        page.is_last = false;
        break;
      }
      page.objects.push_back(info(std::string(name.substr(prefix_.size())), *object));
    }
    return page;
  }

  Result<void> remove(const std::string& name) override {
    return change(bucket::RequestKind::kRemove, name, 0, [this, name]() -> Result<void> {
      const std::lock_guard lock(objects_->mutex);
      const auto found = objects_->objects.find(prefix_ + name);
      if (found == objects_->objects.end()) return {};
      VARVE_TRY(check_lock(found->second, name));
      found->second.change = ++objects_->changes;
      objects_->removed.insert_or_assign(found->first, std::move(found->second));
      objects_->objects.erase(found);
      return {};
    });
  }

  Result<void> copy_prefix(const std::string& from, std::uint64_t bytes, const std::string& to,
                           const bucket::PutOptions& options) override {
    VARVE_TRY(check(from));
    VARVE_TRY(check(to));
    VARVE_TRY(bucket::check_copied_name(prefix_, from));
    return change(bucket::RequestKind::kCopy, to, 0,
                  [this, from, bytes, to, options]() -> Result<void> {
                    if (!objects_->copies_ranges) {
                      return Error(ErrorCode::kUnsupported, describe() + " copies no ranges");
                    }
                    const std::lock_guard lock(objects_->mutex);
                    VARVE_TRY_ASSIGN(const auto* const object, find(from));
                    if (bytes == 0 || bytes > object->bytes.size()) {
                      return Error(ErrorCode::kInvalid, describe(from) + " is shorter");
                    }
                    const auto begin = object->bytes.begin();
                    write(to, Bytes(begin, begin + static_cast<std::ptrdiff_t>(bytes)),
                          options.storage_class);
                    return {};
                  });
  }
  Result<void> remove_unfinished(const std::string& /*prefix*/) override {
    return begin(bucket::RequestKind::kList, {}, 0);
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    stopping_.notify_all();
  }
  void interrupt_reads() override {
    {
      const std::lock_guard lock(mutex_);
      ++interruptions_;
    }
    stopping_.notify_all();
  }
  [[nodiscard]] bucket::Traffic traffic() const override {
    const std::lock_guard lock(mutex_);
    return traffic_;
  }
  [[nodiscard]] std::string describe() const override {
    return "s3://memory/" + prefix_.substr(0, prefix_.empty() ? 0 : prefix_.size() - 1);
  }

 private:
  [[nodiscard]] std::string etag_of(const Bytes& body) const {
    return objects_->gives_etags ? std::to_string(base::checksum64(body)) : std::string();
  }
  [[nodiscard]] std::string describe(const std::string& name) const {
    return "s3://memory/" + prefix_ + name;
  }
  [[nodiscard]] std::int64_t now_s() const {
    return (clock_ == nullptr ? base::SystemClock().now() : clock_->now()).seconds;
  }
  [[nodiscard]] std::int64_t lock_end(const ObjectLock& lock) const {
    return now_s() + std::int64_t{86400} * lock.days;
  }
  [[nodiscard]] Result<void> check_lock(const MemoryObjects::Object& object,
                                        const std::string& name) const {
    if (object.locked_until <= now_s()) return {};
    return Error(ErrorCode::kNotPermitted, describe(name) + " is locked");
  }
  [[nodiscard]] Error no_locks() const {
    return {ErrorCode::kIo, describe() + ": the bucket has no Object Lock Configuration"};
  }
  // Returns whether the put() in progress may replace the object. The caller holds the mutex of the
  // objects.
  [[nodiscard]] bool lets_through(const std::string& name) {
    auto& ending = objects_->lets_through;
    if (ending.empty() || !name.ends_with(ending)) return false;
    ending.clear();
    return true;
  }
  static Error unavailable(const std::string& what) {
    return {ErrorCode::kUnavailable, what + ": the store in memory does not answer"};
  }
  [[nodiscard]] Result<void> check(const std::string& name) const {
    if (bucket::is_valid_name(name, prefix_.size())) return {};
    return Error(ErrorCode::kInvalid, "no object can have the name " + name);
  }

  // Counts a request, and returns the fault of the request.
  Result<Fault> count(bucket::RequestKind kind, const std::string& name, std::uint64_t sent) {
    if (kind != bucket::RequestKind::kList) VARVE_TRY(check(name));
    std::unique_lock lock(mutex_);
    const auto stopped = [&] { return Error(ErrorCode::kInterrupted, "the bucket was stopped"); };
    if (stopped_) return stopped();
    auto& counts = traffic_[static_cast<std::size_t>(kind)];
    ++counts.requests;
    counts.bytes_sent += sent;
    const auto fault = faults_ ? faults_(requests_, kind, name) : Fault::kNone;
    ++requests_;
    if (fault != Fault::kHangs) return fault;
    const bool is_read = kind == bucket::RequestKind::kGet || kind == bucket::RequestKind::kHead ||
                         kind == bucket::RequestKind::kList;
    const auto before = interruptions_;
    stopping_.wait(lock, [&] { return stopped_ || (is_read && interruptions_ != before); });
    if (!stopped_) return unavailable(describe(name));
    return stopped();
  }
  // Begins a request without a change.
  Result<void> begin(bucket::RequestKind kind, const std::string& name, std::uint64_t sent) {
    VARVE_TRY_ASSIGN(const auto fault, count(kind, name, sent));
    if (fault != Fault::kNone) return unavailable(describe(name));
    return {};
  }
  Result<void> change(bucket::RequestKind kind, const std::string& name, std::uint64_t sent,
                      const std::function<Result<void>()>& work) {
    VARVE_TRY_ASSIGN(const auto fault, count(kind, name, sent));
    if (fault == Fault::kLater) {
      const std::lock_guard lock(mutex_);
      late_.emplace_back([work] { static_cast<void>(work()); });
    }
    if (fault == Fault::kNone) return work();
    if (fault == Fault::kLost) static_cast<void>(work());
    return unavailable(describe(name));
  }
  // The caller holds the lock of the objects.
  void write(const std::string& name, Bytes body, const std::string& storage_class) {
    auto now = clock_ == nullptr ? base::SystemClock().now() : clock_->now();
    now.nanoseconds = 0;
    auto etag = etag_of(body);
    objects_->objects.insert_or_assign(prefix_ + name,
                                       MemoryObjects::Object{.bytes = std::move(body),
                                                             .modified = now,
                                                             .storage_class = storage_class,
                                                             .etag = std::move(etag),
                                                             .change = ++objects_->changes});
    objects_->removed.erase(prefix_ + name);
  }
  // The caller holds the lock of the objects while it uses the object.
  [[nodiscard]] Result<const MemoryObjects::Object*> find(const std::string& name) const {
    const auto found = objects_->objects.find(prefix_ + name);
    if (found == objects_->objects.end()) {
      return Error(ErrorCode::kNotFound, "there is no object " + describe(name));
    }
    return &found->second;
  }
  static bucket::ObjectInfo info(const std::string& name, const MemoryObjects::Object& object) {
    bucket::ObjectInfo info{.name = name,
                            .bytes = object.bytes.size(),
                            .modified = object.modified,
                            .storage_class = object.storage_class,
                            .etag = object.etag};
    if (object.locked_until != 0) {
      info.locked_until = Timestamp{object.locked_until, 0};
      info.lock_mode = "COMPLIANCE";
    }
    return info;
  }
  Result<std::size_t> read(const std::string& name, std::uint64_t offset,
                           std::span<std::byte> out) {
    VARVE_TRY(begin(bucket::RequestKind::kGet, name, 0));
    std::size_t bytes = 0;
    {
      const std::lock_guard lock(objects_->mutex);
      VARVE_TRY_ASSIGN(const auto* const object, find(name));
      if (offset >= object->bytes.size() || out.empty()) return std::size_t{0};
      bytes = std::min(out.size(), object->bytes.size() - static_cast<std::size_t>(offset));
      std::memcpy(out.data(), object->bytes.data() + offset, bytes);
    }
    count_received(bucket::RequestKind::kGet, bytes);
    return bytes;
  }
  void count_received(bucket::RequestKind kind, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    traffic_[static_cast<std::size_t>(kind)].bytes_received += bytes;
  }

  const std::shared_ptr<MemoryObjects> objects_;
  const std::string prefix_;
  const base::Clock* const clock_;

  std::atomic<std::chrono::microseconds> round_trip_{std::chrono::microseconds(0)};
  mutable std::mutex mutex_;  // Locked before the mutex of the objects. Guards the members below.
  std::condition_variable stopping_;
  bool stopped_ = false;
  std::uint64_t interruptions_ = 0;
  Faults faults_;
  std::uint64_t requests_ = 0;
  std::vector<std::function<void()>> late_;
  bucket::Traffic traffic_{};
};

}  // namespace varve::test
