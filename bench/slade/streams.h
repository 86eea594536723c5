// SPDX-License-Identifier: Apache-2.0
// Streams of contents, generated after the published statistics of four traces (Wu et al., TPDS'18,
// tables 1 and 3, figures 1 and 5), and their interleaving.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "support.h"

namespace varve::bench {

/// The contents that one stream writes.
struct ContentStream {
  std::string name;
  std::vector<std::uint64_t> contents;
};

/// A kind of stream.
struct TraceKind {
  std::string name;
  double requests = 0;      ///< Millions in one day; only their ratios count.
  double duplicates = 0;    ///< Share of the writes of two hours.
  double in_runs_of_2 = 0;  ///< Share of the duplicates in runs of at least 2, and 16.
  double in_runs_of_16 = 0;
  bool has_locality = true;  ///< Distances are heavy-tailed and mostly short; else uniform.
};

/// Published: duplicates in table 1; runs as figure 5 tells in the text.
inline const std::vector<TraceKind>& trace_kinds() {
  static const std::vector<TraceKind> kinds{
      {"home", 2.02, 0.122, 0.80, 0.320, true},
      {"mail", 22.71, 0.844, 0.98, 0.957, true},
      {"web", 0.68, 0.528, 0.619, 0.431, true},
      {"ftp", 21.97, 0.143, 0.96, 0.909, false},
  };
  return kinds;
}

/// Writes objects of one to 64 contents: new ones, and earlier ones again. A part of the new
/// contents comes from a sequence that all streams of the kind have, in its order.
class StreamGenerator {
 public:
  StreamGenerator(const TraceKind& kind, std::uint64_t number, double overlap, std::uint64_t seed)
      : kind_(kind), number_(number), overlap_(overlap), random_(seed) {
    // Objects by size, from the shares of contents in runs.
    weights_[0] = 1 - kind.in_runs_of_2;
    weights_[1] = (kind.in_runs_of_2 - kind.in_runs_of_16) / 8.5;  // 2 to 15 contents.
    weights_[2] = kind.in_runs_of_16 / 40;                         // 16 to 64.
  }

  std::vector<std::uint64_t> write(std::size_t length) {
    std::vector<std::uint64_t> out;
    while (out.size() < length) {
      const auto& object = share() < kind_.duplicates && !last_.empty() ? again() : make();
      out.insert(out.end(), object.begin(), object.end());
    }
    out.resize(length);
    return out;
  }

 private:
  using Object = std::vector<std::uint64_t>;
  double share() { return static_cast<double>(random_.next() >> 11) * 0x1p-53; }
  std::size_t object_size() {
    const double drawn = share() * (weights_[0] + weights_[1] + weights_[2]);
    if (drawn < weights_[0]) return 1;
    if (drawn < weights_[0] + weights_[1]) return 2 + random_.next() % 14;
    return 16 + random_.next() % 49;
  }
  const Object& make() {
    Object object(object_size());
    const bool is_shared = share() < overlap_;
    for (auto& content : object) {
      content = is_shared ? (std::uint64_t{1} << 62) +
                                (static_cast<std::uint64_t>(kind_.name.front()) << 40) + shared_++
                          : (number_ << 40) + own_++;
    }
    objects_.push_back(std::move(object));
    last_.push_back(objects_.size() - 1);
    return objects_.back();
  }
  // Takes an object by the number of objects written since: Pareto with the exponent 0.6, so half
  // of the distances are short and some as long as the stream; or uniform.
  const Object& again() {
    const double back = kind_.has_locality ? std::pow(1 - share(), -1 / 0.6)
                                           : 1 + share() * static_cast<double>(last_.size());
    const auto distance =
        static_cast<std::size_t>(std::min(back, static_cast<double>(last_.size())));
    last_.push_back(last_[last_.size() - std::max<std::size_t>(distance, 1)]);
    return objects_[last_.back()];
  }

  const TraceKind kind_;
  const std::uint64_t number_;
  const double overlap_;
  Random random_;
  double weights_[3] = {};
  std::uint64_t own_ = 0;
  std::uint64_t shared_ = 0;
  std::vector<Object> objects_;
  std::vector<std::size_t> last_;  // Numbers of the objects, in the order of writing.
};

/// Statistics that a stream reaches.
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

/// Returns 32 streams, of whose contents `good` parts in `good + weak` have locality. Streams of a
/// kind share 0 to 40 % of their new contents.
inline std::vector<ContentStream> generated_streams(int good, int weak, std::size_t arrivals,
                                                    std::uint64_t seed) {
  constexpr int kStreams = 32;
  const int good_streams = kStreams * good / (good + weak);
  Random random(seed);
  std::vector<const TraceKind*> kinds;
  for (int i = 0; i < good_streams; ++i) kinds.push_back(&trace_kinds()[i % 3]);
  while (kinds.size() < kStreams) kinds.push_back(&trace_kinds()[3]);
  double sums[2] = {};
  for (const auto* kind : kinds) sums[kind->has_locality ? 0 : 1] += kind->requests;
  std::vector<ContentStream> streams;
  for (const auto* kind : kinds) {
    const double part = static_cast<double>(kind->has_locality ? good : weak) / (good + weak);
    const double length = part * kind->requests / sums[kind->has_locality ? 0 : 1];
    const double overlap = 0.4 * static_cast<double>(random.next() % 1000) / 1000;
    StreamGenerator generator(*kind, streams.size() + 1, overlap, random.next());
    streams.push_back({kind->name, generator.write(static_cast<std::size_t>(
                                       length * static_cast<double>(arrivals)))});
  }
  return streams;
}

/// Calls `visit(stream, contents)` with the streams' next contents, up to 256 at a time, each
/// stream about as often as it has contents left.
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
