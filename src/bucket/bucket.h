// SPDX-License-Identifier: Apache-2.0
// The interface to the objects of one bucket, below one prefix.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "varve/object_lock.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::bucket {

/// Limit for a name together with the prefix, in bytes.
inline constexpr std::size_t kNameBytesMax = 1024;
/// Limit for the body of one put(), in bytes. A bucket holds no copy of a body in memory: the
/// caller owns the parts.
inline constexpr std::uint64_t kPutBytesMax = std::uint64_t{5} << 30;
/// Limit for the interrupted copies removed by remove_unfinished().
inline constexpr std::size_t kUnfinishedMax = 100000;
/// Limit for the objects of one page of list().
inline constexpr std::size_t kListMax = 1000;

/// Whether put() may replace an object.
enum class PutCondition : std::uint8_t {
  kNone,      ///< Replaces an existing object of the same name.
  kIfAbsent,  ///< Creates an object. Needs a store with the ability Conditions::kHonoured.
};

struct PutOptions {
  PutCondition condition = PutCondition::kNone;
  std::string storage_class{};  ///< Such as "STANDARD_IA"; empty for the store's default.
  ObjectLock lock{};            ///< The lock of the new object. Only used by put().
  /// Receives the ETag of the new object from put(); null without a receiver. Stays unchanged if
  /// the store's answer has no ETag, or was lost.
  std::string* etag = nullptr;
};

/// The description of an object.
struct ObjectInfo {
  std::string name{};           ///< Below the prefix of the bucket.
  std::uint64_t bytes = 0;      ///< The length of the body.
  Timestamp modified{};         ///< The time of the last put, by the store's clock; whole seconds.
  std::string storage_class{};  ///< Empty for the store's default.
  std::string etag{};           ///< The store's text for the content, unquoted; empty without one.
  // Only returned by head():
  std::optional<Timestamp> locked_until{};  ///< The end of the object's lock; nullopt without one.
  std::string lock_mode{};                  ///< "GOVERNANCE" or "COMPLIANCE"; empty without a lock.
  std::string version{};  ///< Id of the object's version; empty if the bucket keeps no versions.
};

struct ListPage {
  std::vector<ObjectInfo> objects{};  ///< Ascending by the bytes of the names.
  bool is_last = true;                ///< False if more objects follow the page.
};

/// One range of a batch of reads.
struct ObjectRead {
  std::string name{};
  std::uint64_t offset = 0;
  std::span<std::byte> out{};  ///< Must stay valid until the range's completion.
};
/// Receives the position of a range in its batch, and the result of reading the range as get()
/// does.
using ReadCompletion = std::function<void(std::size_t position, Result<std::size_t> got)>;

/// The kinds of requests, as stores bill them.
enum class RequestKind : std::uint8_t { kPut, kGet, kList, kRemove, kHead, kCopy };
inline constexpr std::size_t kRequestKinds = 6;
/// Returns "put", "get", "list", "remove", "head" or "copy".
[[nodiscard]] std::string_view name_of(RequestKind kind);

/// The requests of one kind since the bucket was opened.
struct RequestCounts {
  std::uint64_t requests = 0;        ///< Requests sent, including repeated requests.
  std::uint64_t repeated = 0;        ///< Requests among `requests` that repeat an earlier request.
  std::uint64_t bytes_sent = 0;      ///< Bytes of bodies sent.
  std::uint64_t bytes_received = 0;  ///< Bytes of bodies received.

  bool operator==(const RequestCounts&) const = default;
};
using Traffic = std::array<RequestCounts, kRequestKinds>;
/// Returns the requests between two moments.
[[nodiscard]] Traffic difference(const Traffic& now, const Traffic& before);

/// The objects of a bucket whose names begin with the bucket's prefix. All names are relative to
/// the prefix. Thread-safe. Calls wait for the store, and repeat unanswered requests.
///
/// An object is durable and visible once put() or copy_prefix() has returned. After kUnavailable or
/// kInterrupted, a change may have happened, may happen later, or never; the caller repeats the
/// change with the same name and the same bytes. So no name is ever used for two contents.
///
/// Errors of all calls: kUnavailable if the store did not answer in time, and the caller may try
/// again; kNotPermitted with advice if the store refuses the credentials; kInvalid for a name
/// rejected by is_valid_name() and for a missing bucket; kInterrupted after stop(); kCorrupt if the
/// answers contradict the protocol; kUnsupported if the store lacks the operation; kIo otherwise.
class Bucket {
 public:
  virtual ~Bucket() = default;

  /// Writes an object consisting of the consecutive parts. A reader sees the whole object or
  /// nothing. The store receives a checksum of the body and refuses different bytes.
  /// With kIfAbsent, returns success only if this call created the object, even if an answer was
  /// lost meanwhile. If an earlier call ended with kUnavailable, kExists may mean the earlier
  /// call's object: the caller reads the object and compares its bytes.
  /// Errors: kExists with kIfAbsent; kNoSpace if a quota is used up; kTooLarge over kPutBytesMax.
  [[nodiscard]] virtual Result<void> put(const std::string& name,
                                         std::span<const std::span<const std::byte>> parts,
                                         const PutOptions& options) = 0;

  /// Fills `out` from the object's bytes at `offset`. Returns fewer bytes only where the object
  /// ends, and 0 from the object's end on. Errors: kNotFound.
  [[nodiscard]] virtual Result<std::size_t> get(const std::string& name, std::uint64_t offset,
                                                std::span<std::byte> out) = 0;
  /// Returns all bytes of an object, after comparing the bytes with the checksum of the put().
  /// Errors: kNotFound; kTooLarge over `bytes_max`; kCorrupt for different bytes.
  [[nodiscard]] virtual Result<std::vector<std::byte>> get_all(const std::string& name,
                                                               std::size_t bytes_max) = 0;
  /// Reads ranges as get() does, in any order, with many requests in flight. Calls `done` once per
  /// range, from this thread or another thread, before or after read_many() returns, possibly
  /// concurrently. `done` must not wait for another call of the bucket.
  /// Lifetime: the bucket must outlive the last call of `done`; its destructor waits for the call.
  virtual void read_many(std::vector<ObjectRead> reads, ReadCompletion done) = 0;

  /// Returns the description of an object. Errors: kNotFound.
  [[nodiscard]] virtual Result<ObjectInfo> head(const std::string& name) = 0;

  /// Returns at most `objects_max` objects, of 1 to kListMax, whose names begin with `prefix` and
  /// come after `after`. An empty `after` starts at the first object.
  [[nodiscard]] virtual Result<ListPage> list(const std::string& prefix, const std::string& after,
                                              std::size_t objects_max) = 0;

  /// Removes an object. A missing object is no error. A bucket with versions only hides the object:
  /// the bytes stay until the bucket's lifecycle rule drops the bytes.
  [[nodiscard]] virtual Result<void> remove(const std::string& name) = 0;
  /// Removes one version of an object, with its bytes. Errors: kNotPermitted also while the version
  /// is locked.
  [[nodiscard]] virtual Result<void> remove_version(const std::string& name,
                                                    const std::string& version);
  /// Locks an object from now on, by the store's clock. The store refuses to shorten a lock.
  /// Errors: kNotFound; kNotPermitted; kUnsupported or kIo if the bucket has no locks.
  [[nodiscard]] virtual Result<void> lock(const std::string& name, const ObjectLock& lock);

  /// Copies the first `bytes` of the object `from`, at least 1, to the object `to`, replacing `to`.
  /// The bytes do not pass through this machine. Only the storage class of `options` is used.
  /// Errors: kNotFound without `from`; kInvalid if `from` is shorter; kNoSpace; kTooLarge over
  /// kPutBytesMax; kUnsupported also for a "%" in the prefix or `from`, because some stores decode
  /// "%" twice, and would copy another object.
  [[nodiscard]] virtual Result<void> copy_prefix(const std::string& from, std::uint64_t bytes,
                                                 const std::string& to,
                                                 const PutOptions& options) = 0;
  /// Removes the remains of interrupted calls of copy_prefix() to names that begin with `prefix`.
  /// The caller is the only writer of the names, and no copy_prefix() to the names is in progress.
  /// Removes each upload once, even if the store continues to list the upload.
  /// Errors: kCorrupt if the store lists more than kUnfinishedMax.
  [[nodiscard]] virtual Result<void> remove_unfinished(const std::string& prefix) = 0;

  /// Ends all waiting and later calls with kInterrupted.
  virtual void stop() = 0;
  /// Ends the waiting gets, heads and lists with kUnavailable, possibly after the return of
  /// interrupt_reads(). Changes and later calls continue.
  virtual void interrupt_reads() = 0;

  /// Returns the seconds by which the store's clock is ahead of the local clock, as of the latest
  /// answer; nullopt before the first answer.
  [[nodiscard]] virtual std::optional<std::int64_t> clock_ahead() const { return std::nullopt; }
  /// Returns the shortest time from the request of a get to the first byte of its answer; nullopt
  /// before the first answer, and without a measurement.
  [[nodiscard]] virtual std::optional<std::chrono::microseconds> round_trip() const {
    return std::nullopt;
  }
  /// Returns the requests sent so far.
  [[nodiscard]] virtual Traffic traffic() const = 0;
  /// Returns the place of the bucket, for messages: "s3://BUCKET/PREFIX". Contains no secrets.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// Returns whether an object may have the name below a prefix of `prefix_bytes` bytes. Together,
/// prefix and name have at most kNameBytesMax bytes. A valid name is non-empty UTF-8 without
/// control characters, and no part between slashes is ".", ".." or empty. A valid name means the
/// same to all stores and proxies.
[[nodiscard]] bool is_valid_name(std::string_view name, std::size_t prefix_bytes);

/// Returns the error of copy_prefix() for names with a "%". Errors: kUnsupported.
[[nodiscard]] Result<void> check_copied_name(std::string_view prefix, std::string_view name);

/// Limit for the objects of one list: 512 TiB in segments of 8 MiB. A hostile store may list new
/// names without end.
inline constexpr std::uint64_t kListedObjectsMax = std::uint64_t{1} << 26;

/// Calls `found` for each object whose name begins with `prefix` and comes after `after`, ascending
/// by name, until `found` returns an error.
/// Errors: errors of list() and of `found`; kCorrupt if the list continues after `objects_max`
/// objects.
[[nodiscard]] Result<void> list_all(Bucket& bucket, const std::string& prefix,
                                    const std::string& after,
                                    const std::function<Result<void>(const ObjectInfo&)>& found,
                                    std::uint64_t objects_max = kListedObjectsMax);

}  // namespace varve::bucket
