// SPDX-License-Identifier: Apache-2.0
// Streams of contents, generated after the published statistics of four traces (Wu et al., TPDS'18,
// tables 1, 2 and 3, figure 5), and the interleaving of the streams.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "support.h"

namespace varve::bench {

/// The contents written by a stream.
struct ContentStream {
  std::string name;
  std::vector<std::uint64_t> contents;
};

/// A kind of stream, after a trace.
struct TraceKind {
  std::string name;
  bool has_locality = true;
  // Two hours (table 1). Table 2: the part of the trace in the duplicates found by caches of 32,768
  // entries shared by the four traces.
  std::uint64_t requests = 0;
  double writes = 0;      ///< Share of the requests.
  double duplicates = 0;  ///< Share of the writes.
  double found_by_lru = 0;
  double found_by_lfu = 0;
  // One day (table 3).
  std::uint64_t day_requests = 0;
  double day_writes = 0;
  double day_duplicates = 0;
  // Share of the duplicates in runs of at least 2, and 16 (figure 5, according to the text).
  double in_runs_of_2 = 0;
  double in_runs_of_16 = 0;
  // Not published: fitted to table 2.
  double popular = 0;  ///< Share of the repeats of 10 popular objects. Log-uniform by rank.
  /// The LRU stack distances of the remaining repeats are log-uniform, from this share of the
  /// distinct contents so far to all distinct contents; uniform if 0.
  double far_least = 0;

  [[nodiscard]] std::size_t written() const {
    return static_cast<std::size_t>(static_cast<double>(requests) * writes);
  }
  [[nodiscard]] std::size_t written_in_a_day() const {
    return static_cast<std::size_t>(static_cast<double>(day_requests) * day_writes);
  }
};

/// Entries of the caches of table 2.
inline constexpr std::size_t kPublishedEntries = 32'768;

/// The four traces.
inline const std::vector<TraceKind>& trace_kinds() {
  static const std::vector<TraceKind> kinds{
      {"home", true, 293'605, 0.9103, 0.122, 0.0458, 0.0467, 2'020'127, 0.9044, 0.3048, 0.80, 0.320,
       0.98, 0.1},
      {"mail", true, 1'961'588, 0.9858, 0.844, 0.8904, 0.8900, 22'711'277, 0.9142, 0.9098, 0.98,
       0.957, 0.19, 0.06},
      {"web", true, 116'940, 0.4936, 0.528, 0.0371, 0.0375, 676'138, 0.7327, 0.5498, 0.619, 0.431,
       0.86, 0.1},
      {"ftp", false, 2'293'424, 0.8415, 0.143, 0.0267, 0.0258, 21'974'156, 0.8394, 0.2077, 0.96,
       0.909, 0, 0},
  };
  return kinds;
}

/// The objects of a stream, in the order of the last writing.
class ObjectStack {
 public:
  void push(std::size_t object, std::size_t contents) {
    if (used_ == slots_.size()) pack();
    slots_[used_] = {object, contents};
    add(used_++, static_cast<std::ptrdiff_t>(contents));
    contents_ += contents;
  }
  /// Takes the object with the content at a depth; 0 is the content written last.
  std::size_t take(std::size_t depth) {
    // The first slot with a prefix of more contents than lie below the depth.
    std::size_t below = contents_ - 1 - std::min(depth, contents_ - 1);
    std::size_t at = 0;
    for (std::size_t step = slots_.size(); step != 0; step /= 2) {
      if (at + step > slots_.size() || sums_[at + step] > below) continue;
      at += step;
      below -= sums_[at];
    }
    const auto [object, contents] = slots_[at];
    add(at, -static_cast<std::ptrdiff_t>(contents));
    slots_[at].contents = 0;
    contents_ -= contents;
    return object;
  }
  [[nodiscard]] std::size_t contents() const { return contents_; }

 private:
  struct Slot {
    std::size_t object = 0;
    std::size_t contents = 0;  // 0: taken.
  };
  void add(std::size_t slot, std::ptrdiff_t contents) {
    for (auto i = slot + 1; i <= slots_.size(); i += i & (~i + 1)) {
      sums_[i] += static_cast<std::size_t>(contents);
    }
  }
  void pack() {
    std::vector<Slot> all;
    for (const Slot& slot : slots_) {
      if (slot.contents != 0) all.push_back(slot);
    }
    used_ = contents_ = 0;
    slots_.assign(std::max<std::size_t>(64, 2 * std::bit_ceil(all.size())), {});
    sums_.assign(slots_.size() + 1, 0);
    for (const Slot& slot : all) push(slot.object, slot.contents);
  }

  std::vector<Slot> slots_;
  std::vector<std::size_t> sums_;  // A Fenwick tree of the slots' contents.
  std::size_t used_ = 0;
  std::size_t contents_ = 0;
};

/// Writes objects of 1 to 64 contents: new objects, and earlier objects again. A part of the new
/// contents comes from a sequence shared by all streams of the kind, in the order of the sequence.
class StreamGenerator {
 public:
  StreamGenerator(const TraceKind& kind, double duplicates, std::uint64_t number, double overlap,
                  std::uint64_t seed)
      : kind_(kind), duplicates_(duplicates), number_(number), overlap_(overlap), random_(seed) {
    // Objects by size, from the shares of contents in runs.
    weights_[0] = 1 - kind.in_runs_of_2;
    weights_[1] = (kind.in_runs_of_2 - kind.in_runs_of_16) / 8.5;  // 2 to 15 contents.
    weights_[2] = kind.in_runs_of_16 / 40;                         // 16 to 64.
  }

  std::vector<std::uint64_t> write(std::size_t length) {
    std::vector<std::uint64_t> out;
    double repeated = 0;
    while (out.size() < length) {
      const auto kind = size_class();
      // Larger objects are taken more often, so the error of the share so far corrects the share.
      const double error = duplicates_ * static_cast<double>(out.size()) - repeated;
      const bool repeats =
          stacks_[kind].contents() != 0 && random_.unit() < duplicates_ + error / 256;
      const bool is_popular = repeats && random_.unit() < kind_.popular;
      const auto object = is_popular ? popular_object(kind)
                          : repeats  ? stacks_[kind].take(depth(kind))
                                     : make(object_size(kind));
      const auto& contents = objects_[object];
      if (!is_popular) stacks_[kind].push(object, contents.size());
      out.insert(out.end(), contents.begin(), contents.end());
      if (repeats) repeated += static_cast<double>(contents.size());
    }
    out.resize(length);
    return out;
  }

 private:
  static constexpr std::size_t kClasses = 3;
  static constexpr double kPopularObjects = 10;
  static constexpr std::size_t kMeanSizes[kClasses] = {1, 8, 40};
  std::size_t size_class() {
    const double drawn = random_.unit() * (weights_[0] + weights_[1] + weights_[2]);
    return drawn < weights_[0] ? 0 : drawn < weights_[0] + weights_[1] ? 1 : 2;
  }
  std::size_t object_size(std::size_t size_class) {
    const std::size_t sizes[] = {1, 2 + random_.below(14), 16 + random_.below(49)};
    return sizes[size_class];
  }
  std::size_t make(std::size_t size) {
    std::vector<std::uint64_t> object(size);
    const bool is_shared = random_.unit() < overlap_;
    for (auto& content : object) {
      content = is_shared ? (std::uint64_t{1} << 62) +
                                (static_cast<std::uint64_t>(kind_.name.front()) << 40) + shared_++
                          : (number_ << 40) + own_++;
    }
    objects_.push_back(std::move(object));
    return objects_.size() - 1;
  }
  std::size_t popular_object(std::size_t size_class) {
    const double most =
        kPopularObjects * weights_[size_class] / (weights_[0] + weights_[1] + weights_[2]);
    const double rank = std::pow(std::max(1.0, most), random_.unit());
    auto& all = popular_[size_class];
    while (all.size() < static_cast<std::size_t>(rank)) all.push_back(make(kMeanSizes[size_class]));
    return all[static_cast<std::size_t>(rank) - 1];
  }
  // Draws an LRU stack distance in the objects of a class, a part of all contents.
  std::size_t depth(std::size_t size_class) {
    const auto contents = static_cast<double>(stacks_[size_class].contents());
    double all = 0;
    for (const auto& stack : stacks_) all += static_cast<double>(stack.contents());
    const auto between = [&](double least, double most) {
      return least * std::pow(most / least, random_.unit());
    };
    double drawn = 0;
    if (kind_.far_least != 0)
      drawn = between(std::max(1.0, kind_.far_least * all), std::max(all, 2.0));
    else
      drawn = random_.unit() * all;
    return static_cast<std::size_t>(drawn * contents / all);
  }

  const TraceKind& kind_;
  const double duplicates_;
  const std::uint64_t number_;
  const double overlap_;
  Random random_;
  double weights_[kClasses] = {};
  std::uint64_t own_ = 0;
  std::uint64_t shared_ = 0;
  std::vector<std::vector<std::uint64_t>> objects_;
  ObjectStack stacks_[kClasses];
  std::vector<std::size_t> popular_[kClasses];
};

/// Returns `part` of each of the four traces of two hours, according to tables 1 and 2.
inline std::vector<ContentStream> two_hours(std::uint64_t seed, double part = 1) {
  Random random(seed);
  std::vector<ContentStream> streams;
  for (const auto& kind : trace_kinds()) {
    StreamGenerator generator(kind, kind.duplicates, streams.size() + 1, 0, random.next());
    streams.push_back({kind.name, generator.write(static_cast<std::size_t>(
                                      part * static_cast<double>(kind.written())))});
  }
  return streams;
}

/// The statistics reached by a stream.
struct StreamStatistics {
  double duplicates = 0;
  double in_runs_of_2 = 0;
  double in_runs_of_16 = 0;
  std::size_t distance_median = 0;  ///< Arrivals between two occurrences of a content.
  std::size_t distance_90 = 0;
};

inline StreamStatistics statistics_of(const std::vector<std::uint64_t>& contents) {
  std::unordered_map<std::uint64_t, std::size_t> last;
  std::vector<std::size_t> distances;
  double in_2 = 0;
  double in_16 = 0;
  std::size_t run = 0;
  std::size_t before = 0;
  const auto end_run = [&] {
    if (run >= 2) in_2 += static_cast<double>(run);
    if (run >= 16) in_16 += static_cast<double>(run);
    run = 0;
  };
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const auto known = last.find(contents[i]);
    if (known != last.end()) {
      distances.push_back(i - known->second);
      if (run != 0 && known->second != before + 1) end_run();
      ++run;
      before = known->second;
      known->second = i;
    } else {
      end_run();
      last.emplace(contents[i], i);
    }
  }
  end_run();
  StreamStatistics all;
  if (distances.empty()) return all;
  const auto count = static_cast<double>(distances.size());
  all.duplicates = count / static_cast<double>(contents.size());
  all.in_runs_of_2 = in_2 / count;
  all.in_runs_of_16 = in_16 / count;
  std::ranges::sort(distances);
  all.distance_median = distances[distances.size() / 2];
  all.distance_90 = distances[distances.size() * 9 / 10];
  return all;
}

/// Returns 32 streams of a day (table 3), with `arrivals` contents in all. The streams with
/// locality have `good` parts in `good + weak` of the contents. Streams of a kind share 0 to 40 %
/// of the new contents.
inline std::vector<ContentStream> generated_streams(int good, int weak, std::size_t arrivals,
                                                    std::uint64_t seed) {
  constexpr int kStreams = 32;
  const auto day = [](std::size_t kind) {
    return static_cast<double>(trace_kinds()[kind].written_in_a_day());
  };
  const double good_day = (day(0) + day(1) + day(2)) / 3;
  const double ratio = static_cast<double>(good) / weak * day(3) / good_day;
  const auto good_streams = static_cast<int>(std::lround(kStreams * ratio / (1 + ratio)));
  Random random(seed);
  std::vector<std::size_t> kinds;
  for (int i = 0; i < kStreams; ++i) {
    kinds.push_back(i < good_streams ? static_cast<std::size_t>(i) % 3 : 3);
  }
  double sum = 0;
  for (const auto kind : kinds) sum += day(kind);
  std::vector<ContentStream> streams;
  for (const auto kind : kinds) {
    const auto& its = trace_kinds()[kind];
    const double overlap = 0.4 * random.unit();
    StreamGenerator generator(its, its.day_duplicates, streams.size() + 1, overlap, random.next());
    streams.push_back({its.name, generator.write(static_cast<std::size_t>(
                                     day(kind) / sum * static_cast<double>(arrivals)))});
  }
  return streams;
}

/// Calls `visit(stream, contents)` with the streams' next contents, up to 256 at a time. A stream's
/// turns are proportional to the stream's remaining contents.
template <typename Visit>
void interleave(const std::vector<ContentStream>& streams, std::uint64_t seed, Visit&& visit) {
  Random random(seed);
  struct Left {
    std::size_t stream;
    std::size_t at;
  };
  std::vector<std::size_t> at(streams.size());
  std::size_t left = 0;
  for (const auto& one : streams) left += one.contents.size();
  while (left != 0) {
    auto drawn = random.next() % left;
    std::size_t stream = 0;
    while (drawn >= streams[stream].contents.size() - at[stream]) {
      drawn -= streams[stream].contents.size() - at[stream];
      ++stream;
    }
    const auto count = std::min<std::size_t>(1 + random.next() % 256,
                                             streams[stream].contents.size() - at[stream]);
    visit(stream, std::span(streams[stream].contents).subspan(at[stream], count));
    at[stream] += count;
    left -= count;
  }
}

}  // namespace varve::bench
