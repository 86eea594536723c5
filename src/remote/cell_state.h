// SPDX-License-Identifier: Apache-2.0
// The state of a CellReader: requests in flight, bytes in memory, and the cache.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "remote/ahead_window.h"
#include "remote/cell_flight.h"

namespace varve::remote {

/// A random read requests few cells at first, then the block around the cells, then the region: the
/// length of a container. So a random reader never receives much more than twice the bytes needed,
/// and a whole region takes three round trips.
inline constexpr std::uint64_t kCellsPerRegion = 4 * kCellsPerBlock;
inline constexpr std::size_t kRegionsMax = 16384;
/// After will_read_once(): bytes held in memory although already read. The next read may need the
/// block of the disk in which the last read ended.
inline constexpr std::uint64_t kHeldOnceBytesMax = std::uint64_t{8} << 20;
/// After will_read_once(): the share of CellReaderLimits::bytes_max that may stay unread while a
/// full `bytes_max` is in flight. Requests sharing a line end together, and the request needed
/// first may end last. Without the extra room, nothing would be requested until then.
inline constexpr std::uint64_t kUnreadShare = 4;
/// Number of requests in flight from which on the last prefetch waits for a following range.
inline constexpr std::size_t kFlyingWhileJoining = 8;
/// Longest gap, in cells, received twice rather than dividing a request.
inline constexpr std::uint64_t kGapCells = 2;

/// A cell: the object, and the cell's number within the object.
using Cell = std::pair<std::string, std::uint64_t>;

/// Outlives the CellReader until the last request has ended.
struct CellReader::State : std::enable_shared_from_this<State> {
  using FlightPointer = std::shared_ptr<Flight>;
  using Lock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kThreads = 2;

  State(bucket::Bucket& store, io::FileSystem& files, std::string folder, std::uint64_t bytes_max,
        CellReaderLimits given)
      : bucket(store), cache(files, std::move(folder), bytes_max), limits(given) {}

  bucket::Bucket& bucket;
  BlockCache cache;
  const CellReaderLimits limits;

  std::mutex mutex;  // Locked before the mutexes of batches and pools. Guards the members below.
  bool is_closed = false;
  bool has_ended = false;                     // Nothing more is requested.
  Clock::time_point answered_at{};            // Time of the last answer with bytes.
  Clock::time_point silent_until{};           // Until then, requests fail.
  std::unique_ptr<base::ThreadPool> workers;  // Created by the first read.
  std::unique_ptr<base::ThreadPool> writer;
  std::map<Cell, FlightPointer> cells;
  std::map<Cell, std::uint64_t> requested;  // Requested cells, by the region's number.
  std::deque<FlightPointer> needed;         // Waiting requests of reads in progress.
  std::deque<FlightPointer> ahead;          // Waiting prefetch requests.
  std::deque<FlightPointer> held;           // Successfully ended flights, the oldest first.
  std::deque<FlightPointer> failed;
  bool reads_once = false;  // Bytes taken by readers are not cached.
  std::size_t flying = 0;
  std::uint64_t flying_bytes = 0;
  std::uint64_t unwritten_bytes = 0;
  std::uint64_t held_bytes = 0;
  AheadWindow window;
  const std::shared_ptr<FlightMemory> memory = std::make_shared<FlightMemory>(
      static_cast<std::size_t>(bytes_max_of_all() + kHeldOnceBytesMax));

  // Returns the flight that has a cell or will receive the cell; nullptr if a request is needed.
  FlightPointer find(const std::string& object, std::uint64_t cell) {
    const auto found = cells.find({object, cell});
    if (found == cells.end()) return nullptr;
    const auto flight = found->second;
    if (flight->step != Flight::Step::kFailed ||
        Clock::now() - flight->failed_at < limits.failure_kept) {
      return flight;
    }
    forget(*flight);
    return nullptr;
  }
  void forget(const Flight& flight) {
    for (auto cell = flight.begin; cell < flight.end; ++cell) {
      const auto found = cells.find({flight.object, cell});
      if (found != cells.end() && found->second.get() == &flight) cells.erase(found);
    }
  }

  // Returns the most bytes of joined ranges. With small limits, one request may not use all memory.
  [[nodiscard]] std::uint64_t joined_max() const {
    return std::min(limits.joined_bytes_max, limits.bytes_max / 4);
  }
  // Returns a waiting prefetch flight to which `count` cells from `begin` on can be appended. One
  // request for two containers costs the store and the network less than two requests.
  FlightPointer waiting_before(const std::string& object, std::uint64_t begin,
                               std::uint64_t count) {
    if (begin == 0) return nullptr;
    auto flight = find(object, begin - 1);
    if (flight == nullptr || flight->step != Flight::Step::kQueued || !flight->is_ahead ||
        flight->end != begin) {
      return nullptr;
    }
    const auto cells_max = joined_max() / kCacheCellBytes;
    return begin + count - flight->begin <= cells_max ? flight : nullptr;
  }
  // Returns whether the last prefetch flight should wait for a following range: other requests keep
  // the store busy, and no reader waits for the bytes.
  [[nodiscard]] bool may_be_joined(const Flight& flight) const {
    return ahead.size() == 1 && flying >= kFlyingWhileJoining &&
           flight.bytes() + limits.request_bytes_max / 2 <= joined_max();
  }

  // Creates flights for the missing cells without a flight, and for the `gaps` between missing
  // cells.
  void add_flights(const std::string& object, std::uint64_t object_bytes,
                   const std::set<std::uint64_t>& missing, bool is_ahead,
                   const std::set<std::uint64_t>& gaps = {}) {
    const auto most = std::max<std::uint64_t>(limits.request_bytes_max / kCacheCellBytes, 1);
    for (auto at = missing.begin(); at != missing.end();) {
      if (find(object, *at) != nullptr) {
        ++at;
        continue;
      }
      const auto begin = *at;
      auto end = begin;
      for (; at != missing.end() && *at == end && end - begin < most; ++at, ++end) {
        if (find(object, *at) != nullptr && !gaps.contains(*at)) break;
      }
      auto flight = is_ahead ? waiting_before(object, begin, end - begin) : nullptr;
      if (flight == nullptr) {
        flight = std::make_shared<Flight>();
        flight->object = object;
        flight->object_bytes = object_bytes;
        flight->begin = begin;
        flight->is_ahead = is_ahead;
        (is_ahead ? ahead : needed).push_back(flight);
      }
      flight->end = end;
      for (auto cell = begin; cell < end; ++cell) {
        if (find(object, cell) == nullptr) note_request(object, cell, flight);
      }
    }
  }

  void note_request(const std::string& object, std::uint64_t cell, const FlightPointer& flight) {
    cells[{object, cell}] = flight;
    if (requested.size() >= kRegionsMax) requested.clear();
    ++requested[{object, cell / kCellsPerRegion}];
  }

  // Adds cells around the cells missed by a random reader, as described at kCellsPerRegion. Returns
  // the gaps: added cells that are already present.
  std::set<std::uint64_t> widen(const std::string& object, std::uint64_t object_bytes,
                                std::set<std::uint64_t>& missing) {
    const auto end_of_object = (object_bytes + kCacheCellBytes - 1) / kCacheCellBytes;
    std::set<std::uint64_t> wide;
    for (const auto cell : missing) {
      const Lock lock(mutex);
      const auto known = requested.find({object, cell / kCellsPerRegion});
      if (known == requested.end()) continue;
      const auto span = known->second < kCellsPerBlock ? kCellsPerBlock : kCellsPerRegion;
      const auto begin = cell / span * span;
      for (auto other = begin; other < std::min(begin + span, end_of_object); ++other) {
        if (find(object, other) == nullptr) wide.insert(other);
      }
    }
    std::set<std::uint64_t> gaps;
    for (const auto cell : wide) {
      const auto block = cell / kCellsPerBlock;
      const auto present = cache.present(object, block, block_bytes(object_bytes, block));
      if ((present & cell_bit(cell)) == 0) missing.insert(cell);
    }
    for (auto at = missing.begin(); !wide.empty() && at != missing.end(); ++at) {
      const auto next = std::next(at);
      if (next == missing.end() || *next - *at > kGapCells + 1) continue;
      for (auto cell = *at + 1; cell < *next; ++cell) gaps.insert(cell);
    }
    missing.insert(gaps.begin(), gaps.end());
    return gaps;
  }

  // Returns whether an ended flight must stay in memory.
  [[nodiscard]] bool is_pinned(const Flight& flight, Clock::time_point now) const {
    return flight.is_writing || flight.is_lent() || flight.is_unread(now, limits.unread_kept) ||
           (!flight.is_in_cache && !flight.is_taken());
  }
  // After will_read_once(): returns the limit for prefetched and unread bytes.
  [[nodiscard]] std::uint64_t bytes_max_of_all() const {
    return limits.bytes_max + limits.bytes_max / kUnreadShare;
  }
  // After will_read_once(): returns the limit for bytes prefetched and mostly unread. The limit
  // covers the round trip and no more: further memory has to be cleared by the processors, and
  // leaves the processors' caches before its use.
  [[nodiscard]] std::uint64_t ahead_bytes_max() const {
    const auto trip = std::max<std::chrono::microseconds>(
        bucket.round_trip().value_or(limits.near_trip), limits.near_trip);
    const auto milliseconds = static_cast<std::uint64_t>(trip / std::chrono::milliseconds(1));
    return limits.near_bytes_max * milliseconds / limits.near_trip.count();
  }
  // Returns whether the memory suffices for a prefetch flight.
  [[nodiscard]] bool has_room(const Flight& flight) const {
    const auto flying_after = flying_bytes + flight.bytes();
    if (reads_once && flying_after + unread_bytes() > ahead_bytes_max()) return false;
    const auto most = reads_once ? bytes_max_of_all() : limits.bytes_max;
    return flying_after <= limits.bytes_max && flying_after + pinned_bytes() <= most;
  }
  // Returns the bytes of the ended flights for which `counts` is true.
  [[nodiscard]] std::uint64_t held_bytes_if(const auto& counts) const {
    std::uint64_t bytes = 0;
    for (const auto& flight : held) bytes += counts(*flight) ? flight->bytes() : 0;
    return bytes;
  }
  // Returns the bytes of the ended flights that must stay in memory.
  [[nodiscard]] std::uint64_t pinned_bytes() const {
    const auto now = Clock::now();
    return held_bytes_if([&](const Flight& flight) { return is_pinned(flight, now); });
  }
  // Returns the bytes of the ended flights that are mostly unread.
  [[nodiscard]] std::uint64_t unread_bytes() const {
    const auto now = Clock::now();
    return held_bytes_if(
        [&](const Flight& flight) { return flight.is_unread(now, limits.unread_kept); });
  }
  [[nodiscard]] std::uint64_t lent_bytes() const {
    return held_bytes_if([](const Flight& flight) { return flight.is_lent(); });
  }
  // Lends the bytes of a read if one flight has all bytes, and only after will_read_once(): other
  // readers may hold lent memory for long. Returns false if the bytes must be copied.
  [[nodiscard]] bool lend(const FlightPointer& flight, const RangeToRead& what) const {
    if (!reads_once || what.lent == nullptr || !flight->has(what.range)) return false;
    if (!flight->is_lent() && lent_bytes() + flight->bytes() > limits.lent_bytes_max) return false;
    *what.lent = Flight::lend(flight, what.range);
    return true;
  }

  // Returns why no request is sent now; nullopt if the store is asked.
  [[nodiscard]] std::optional<Error> refusal(const Flight& flight) const {
    if (!has_ended && Clock::now() >= silent_until) return std::nullopt;
    return Error(ErrorCode::kUnavailable,
                 flight.object + (has_ended ? " is not read: the program ends"
                                            : " is not read: the object store does not answer"));
  }
  // Sends requests as far as the limits allow. Releases the lock meanwhile.
  void start(Lock& lock) {
    while (!is_closed) {
      auto& queue = !needed.empty() ? needed : ahead;
      if (queue.empty()) return;
      const auto flight = queue.front();
      if (flight->step != Flight::Step::kQueued || flight->is_ahead != (&queue == &ahead)) {
        queue.pop_front();  // A reader needed the flight meanwhile.
        continue;
      }
      if (has_ended) {
        // The limits apply to requests, and no requests are sent any more.
      } else if (flight->is_ahead) {
        if (flying >= window.size()) window.on_waiting(ahead.size());
        if (flying >= window.size() || may_be_joined(*flight)) return;
        if (!has_room(*flight)) {
          write_left();
          return;
        }
      } else if (flying > 0 &&
                 flying_bytes + unwritten_bytes + flight->bytes() > 2 * limits.bytes_max) {
        return;
      }
      queue.pop_front();
      flight->step = Flight::Step::kFlying;
      ++flying;
      flying_bytes += flight->bytes();
      const auto refused = refusal(*flight);
      if (!refused) flight->requested_at = Clock::now();
      lock.unlock();
      if (refused || !flight->allocate(*memory)) {
        receive(flight, refused
                            ? *refused
                            : Error(ErrorCode::kIo, "no memory for a read of " + flight->object));
        lock.lock();
        continue;
      }
      bucket.read_many({{flight->object, flight->offset(), flight->received()}},
                       [self = shared_from_this(), flight](std::size_t, Result<std::size_t> got) {
                         self->receive(flight, std::move(got));
                       });
      lock.lock();
    }
  }

  void receive(const FlightPointer& flight, Result<std::size_t> got) {
    const std::lock_guard lock(mutex);
    if (is_closed) return;
    workers->run(
        [self = shared_from_this(), flight, got = std::move(got)] { self->finish(flight, got); });
  }

  void finish(const FlightPointer& flight, Result<std::size_t> got) {
    if (got && *got != flight->bytes()) {
      got = Error(ErrorCode::kCorrupt, flight->object + " in the object store is too short");
    }
    if (!got && got.error().code() == ErrorCode::kNotFound) {
      got = Error(ErrorCode::kCorrupt,
                  flight->object +
                      " is missing in the object store; if its version was deleted "
                      "more than a day ago, mount or open the folder again");
    }
    const std::optional<Error> error = got ? std::nullopt : std::optional(got.error());
    std::vector<Flight::Waiter> waiters;
    {
      Lock lock(mutex);
      while (!error && !flight->waiters.empty()) {
        auto some = std::exchange(flight->waiters, {});
        waiters.insert(waiters.end(), some.begin(), some.end());
        std::erase_if(some, [&](const auto& waiter) { return lend(flight, waiter.what()); });
        lock.unlock();
        for (const auto& waiter : some) {
          copy_common(waiter.what(), flight->offset(), flight->received());
        }
        lock.lock();
      }
      if (error) waiters = std::exchange(flight->waiters, {});
      settle(flight, error);
      start(lock);
      if (flying == 0) memory->release();
    }
    for (const auto& waiter : waiters) waiter.batch->end(waiter.read, error);
  }

  // Ends a flight after its waiters were served.
  void settle(const FlightPointer& flight, const std::optional<Error>& error) {
    window.on_end(flight->bytes(), flying >= window.size(), Clock::now());
    --flying;
    flying_bytes -= flight->bytes();
    if (error) {
      flight->step = Flight::Step::kFailed;
      flight->error = error;
      flight->failed_at = Clock::now();
      const bool was_asked = flight->requested_at != Clock::time_point();
      if (was_asked && error->code() == ErrorCode::kUnavailable &&
          answered_at <= flight->requested_at &&
          flight->failed_at - flight->requested_at >= limits.silence) {
        silent_until = flight->failed_at + limits.failure_kept;
      }
      flight->memory.reset();
      failed.push_back(flight);
      while (Clock::now() - failed.front()->failed_at >= limits.failure_kept) {
        forget(*failed.front());
        failed.pop_front();
        if (failed.empty()) break;
      }
      return;
    }
    answered_at = Clock::now();
    silent_until = {};
    flight->step = Flight::Step::kReceived;
    flight->received_at = Clock::now();
    held.push_back(flight);
    held_bytes += flight->bytes();
    if (!reads_once || is_closed) write_later(flight);
    trim();
  }

  // The rest of a flight's life, and the cache: cell_state_cache.cc.
  // Schedules writing a flight to the cache. A disk slower than the network receives only a part of
  // the bytes, and delays no read.
  void write_later(const FlightPointer& flight);
  // Schedules writing the unread rest of mostly read flights, and of flights not read in time.
  void write_left();
  void write(const FlightPointer& flight);
  // Frees the memory of flights beyond the limits.
  void trim();
  // Drops all received bytes, in memory and in the cache.
  void drop_all();
  // Drops the received bytes of a range, and all bytes received by the same requests.
  void drop(const ObjectRange& range);

  // Joins a read to the flights that have or will receive its cells. Returns the cells without a
  // flight, and in `received` the flights with present bytes to copy.
  std::set<std::uint64_t> join(const std::shared_ptr<Batch>& batch, std::size_t at,
                               const std::set<std::uint64_t>& wanted,
                               std::vector<FlightPointer>& received) {
    std::set<std::uint64_t> missing;
    for (auto cell = wanted.begin(); cell != wanted.end();) {
      const auto& range = batch->reads[at].what.range;
      const auto flight = find(range.object, *cell);
      if (flight == nullptr) {
        missing.insert(*cell++);
        continue;
      }
      flight->take(range.offset, range.offset + range.bytes);
      if (flight->step == Flight::Step::kReceived) {
        if (!lend(flight, batch->reads[at].what)) received.push_back(flight);
      } else if (flight->step == Flight::Step::kFailed) {
        const std::lock_guard lock(batch->mutex);
        batch->reads[at].error = flight->error;
      } else {
        if (flight->step == Flight::Step::kQueued && std::exchange(flight->is_ahead, false)) {
          needed.push_back(flight);
        }
        flight->waiters.push_back({batch, at});
        const std::lock_guard lock(batch->mutex);
        ++batch->reads[at].left;
      }
      cell = wanted.lower_bound(flight->end);
    }
    return missing;
  }

  // Copies cells from the cache. Returns the missing cells.
  std::set<std::uint64_t> read_cache(const RangeToRead& what, const std::set<std::uint64_t>& wanted,
                                     std::unique_ptr<std::byte[]>& room);

  void make_threads() {
    if (workers) return;
    workers = std::make_unique<base::ThreadPool>(kThreads, "varve-distant");
    writer = std::make_unique<base::ThreadPool>(1, "varve-cache");
  }
};

}  // namespace varve::remote
