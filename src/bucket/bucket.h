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
/// Limit for the body of one put(), in bytes. A bucket holds a body in memory only once: its parts
/// are the caller's.
inline constexpr std::uint64_t kPutBytesMax = std::uint64_t{5} << 30;
/// Limit for the interrupted copies that remove_unfinished() removes.
inline constexpr std::size_t kUnfinishedMax = 100000;
/// Limit for the objects of one page of list().
inline constexpr std::size_t kListMax = 1000;

/// Whether put() may replace an object.
enum class PutCondition : std::uint8_t {
  kNone,      ///< Replaces an object of that name.
  kIfAbsent,  ///< Creates an object. Needs a store with the ability Conditions::kHonoured.
};

struct PutOptions {
  PutCondition condition = PutCondition::kNone;
  std::string storage_class{};  ///< Such as "STANDARD_IA"; empty for the store's default.
  ObjectLock lock{};            ///< The lock of the new object. Only put() uses it.
};

/// The description of an object.
struct ObjectInfo {
  std::string name{};           ///< Below the prefix of the bucket.
  std::uint64_t bytes = 0;      ///< The length of the body.
  Timestamp modified{};         ///< The time of the last put, by the store's clock; whole seconds.
  std::string storage_class{};  ///< Empty for the store's default.
  // Only head() returns these:
  std::optional<Timestamp> locked_until{};  ///< The end of the object's lock; nullopt without one.
  std::string lock_mode{};                  ///< "GOVERNANCE" or "COMPLIANCE"; empty without a lock.
  std::string version{};  ///< The id of this version; empty if the bucket keeps no versions.
};

struct ListPage {
  std::vector<ObjectInfo> objects{};  ///< Ascending by the bytes of their names.
  bool is_last = true;                ///< False if more objects follow the last one.
};

/// One range of a batch of reads.
struct ObjectRead {
  std::string name{};
  std::uint64_t offset = 0;
  std::span<std::byte> out{};  ///< Must stay valid until the range's completion.
};
/// Receives the position of a range in its batch, and the result of reading it as get().
using ReadCompletion = std::function<void(std::size_t position, Result<std::size_t> got)>;

/// The kinds of requests, as stores bill them.
enum class RequestKind : std::uint8_t { kPut, kGet, kList, kRemove, kHead, kCopy };
inline constexpr std::size_t kRequestKinds = 6;
/// Returns "put", "get", "list", "remove", "head" or "copy".
[[nodiscard]] std::string_view name_of(RequestKind kind);

/// The requests of one kind since the bucket was opened.
struct RequestCounts {
  std::uint64_t requests = 0;        ///< Requests that were sent, repeated ones included.
  std::uint64_t repeated = 0;        ///< Requests among them that repeat an earlier one.
  std::uint64_t bytes_sent = 0;      ///< Bytes of bodies that were sent.
  std::uint64_t bytes_received = 0;  ///< Bytes of bodies that were received.

  bool operator==(const RequestCounts&) const = default;
};
using Traffic = std::array<RequestCounts, kRequestKinds>;
/// Returns what was requested between two moments.
[[nodiscard]] Traffic difference(const Traffic& now, const Traffic& before);

/// The objects of a bucket whose names begin with the bucket's prefix. All names are relative to
/// it. Thread-safe. Calls wait for the store and repeat what it does not answer.
///
/// An object is durable and visible once put() or copy_prefix() has returned. After kUnavailable or
/// kInterrupted, a change may have happened, may happen later, or never; the caller repeats it
/// under the same name, with the same bytes. So no name is ever used for two contents.
///
/// Errors of all calls: kUnavailable if the store did not answer in time, and the caller may try
/// again; kNotPermitted with advice if the store refuses the credentials; kInvalid for a name that
/// is_valid_name() refuses and for a bucket that does not exist; kInterrupted after stop();
/// kCorrupt if the answers contradict the protocol; kUnsupported if the store lacks the operation;
/// kIo otherwise.
class Bucket {
 public:
  virtual ~Bucket() = default;

  /// Writes an object of these parts, one after the other. A reader sees all of it or nothing. The
  /// store receives a checksum of the body and refuses other bytes.
  /// With kIfAbsent, returns success only if this call created the object, even if an answer was
  /// lost meanwhile. If an earlier call ended with kUnavailable, kExists may mean the object of
  /// that call: the caller reads and compares it. Errors: kExists with kIfAbsent; kNoSpace if a
  /// quota is used up; kTooLarge over kPutBytesMax.
  [[nodiscard]] virtual Result<void> put(const std::string& name,
                                         std::span<const std::span<const std::byte>> parts,
                                         const PutOptions& options) = 0;

  /// Fills `out` from the object's bytes at `offset`. Returns fewer bytes only where the object
  /// ends, and 0 from its end on. Errors: kNotFound.
  [[nodiscard]] virtual Result<std::size_t> get(const std::string& name, std::uint64_t offset,
                                                std::span<std::byte> out) = 0;
  /// Returns all bytes of an object, and compares them with the checksum of the put() that wrote
  /// it. Errors: kNotFound; kTooLarge over `bytes_max`; kCorrupt for other bytes.
  [[nodiscard]] virtual Result<std::vector<std::byte>> get_all(const std::string& name,
                                                               std::size_t bytes_max) = 0;
  /// Reads ranges as get(), in any order, and keeps many requests in flight. Calls `done` once for
  /// each, from this thread or others, before or after read_many() returns, possibly at the same
  /// time. `done` must not wait for another call of the bucket.
  /// Lifetime: the bucket must outlive the last call of `done`; its destructor waits for it.
  virtual void read_many(std::vector<ObjectRead> reads, ReadCompletion done) = 0;

  /// Returns the description of an object. Errors: kNotFound.
  [[nodiscard]] virtual Result<ObjectInfo> head(const std::string& name) = 0;

  /// Returns at most `objects_max` objects, of 1 to kListMax, whose names begin with `prefix` and
  /// come after `after`. An empty `after` starts at the first one.
  [[nodiscard]] virtual Result<ListPage> list(const std::string& prefix, const std::string& after,
                                              std::size_t objects_max) = 0;

  /// Removes an object. A missing object is no error. A bucket that keeps versions only hides the
  /// object: its bytes stay until the bucket's lifecycle rule drops them.
  [[nodiscard]] virtual Result<void> remove(const std::string& name) = 0;
  /// Removes one version of an object, with its bytes. Errors: kNotPermitted also while the version
  /// is locked.
  [[nodiscard]] virtual Result<void> remove_version(const std::string& name,
                                                    const std::string& version);
  /// Locks an object from now on, by the store's clock. The store refuses to shorten a lock.
  /// Errors: kNotFound; kNotPermitted; kUnsupported or kIo if the bucket has no locks.
  [[nodiscard]] virtual Result<void> lock(const std::string& name, const ObjectLock& lock);

  /// Writes the first `bytes` of the object `from`, at least 1, to the object `to` and replaces it.
  /// The bytes do not pass through this machine. Only the storage class of `options` counts.
  /// Errors: kNotFound without `from`; kInvalid if it is shorter; kNoSpace; kTooLarge over
  /// kPutBytesMax; kUnsupported also if the prefix or `from` has a "%", which some stores decode
  /// twice, so that they would copy another object.
  [[nodiscard]] virtual Result<void> copy_prefix(const std::string& from, std::uint64_t bytes,
                                                 const std::string& to,
                                                 const PutOptions& options) = 0;
  /// Removes what interrupted calls of copy_prefix() left under names that begin with `prefix`.
  /// The caller is the only writer of these names, and no copy_prefix() to them is in progress.
  /// Removes each once, also if the store goes on listing it. Errors: kCorrupt if the store lists
  /// more than kUnfinishedMax.
  [[nodiscard]] virtual Result<void> remove_unfinished(const std::string& prefix) = 0;

  /// Ends all waiting calls, and all later ones, with kInterrupted.
  virtual void stop() = 0;
  /// Ends the gets, heads and lists that wait for the store with kUnavailable, perhaps after this
  /// call has returned. Changes and later calls go on.
  virtual void interrupt_reads() = 0;

  /// Returns the seconds that the store's clock is ahead of this machine's by the latest answer;
  /// nullopt before the first one.
  [[nodiscard]] virtual std::optional<std::int64_t> clock_ahead() const { return std::nullopt; }
  /// Returns the shortest time from the request of a get to the first byte of its answer; nullopt
  /// before the first one, and if nothing measures it.
  [[nodiscard]] virtual std::optional<std::chrono::microseconds> round_trip() const {
    return std::nullopt;
  }
  /// Returns what was requested so far.
  [[nodiscard]] virtual Traffic traffic() const = 0;
  /// Returns the place of the bucket, for messages: "s3://BUCKET/PREFIX". It has no secrets.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// Returns whether an object may have this name below a prefix of `prefix_bytes` bytes: 1 to
/// kNameBytesMax bytes of UTF-8 without control characters, in which no part between slashes is
/// ".", ".." or empty. Such a name means the same to all stores and proxies.
[[nodiscard]] bool is_valid_name(std::string_view name, std::size_t prefix_bytes);

/// Returns the error of copy_prefix() for names with a "%". Errors: kUnsupported.
[[nodiscard]] Result<void> check_copied_name(std::string_view prefix, std::string_view name);

/// Limit for the objects of one list: 512 TiB in segments of 8 MiB. A hostile store may list new
/// names without end.
inline constexpr std::uint64_t kListedObjectsMax = std::uint64_t{1} << 26;

/// Calls `found` for each object whose name begins with `prefix` and comes after `after`,
/// ascending by name, until `found` returns an error. Errors: those of list() and of `found`;
/// kCorrupt after `objects_max` objects if the list goes on.
[[nodiscard]] Result<void> list_all(Bucket& bucket, const std::string& prefix,
                                    const std::string& after,
                                    const std::function<Result<void>(const ObjectInfo&)>& found,
                                    std::uint64_t objects_max = kListedObjectsMax);

}  // namespace varve::bucket
