// SPDX-License-Identifier: Apache-2.0
#include "index/tle_cache.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace varve::index {

namespace {

constexpr std::size_t kEntriesMin = 16;
// A stream is not admitted with a TLI below kLowLocality times the highest TLI, if the share of
// repeated arrivals is also below kLowShare.
constexpr double kLowLocality = 0.1;
constexpr double kLowShare = 0.02;
// Minimum size of a useful sample; also the size for a stream with unknown arrivals.
constexpr std::size_t kSampleMin = 32;
// Ticks of StreamEntries in one turnover of the cache.
constexpr std::size_t kTicks = 256;

TleOptions tle_in_bounds(TleOptions options) {
  options.entries = std::clamp<std::size_t>(options.entries, kEntriesMin, UINT32_MAX / 2);
  options.sample_share = std::clamp(options.sample_share, 0.01, 1.0);
  options.streams_max = std::clamp<std::size_t>(options.streams_max, 1, UINT16_MAX);
  return options;
}

std::uint64_t sampled_value(const Tag& tag) { return base::load_le<std::uint64_t>(tag.data() + 8); }

}  // namespace

TleCache::TleCache(const TleOptions& options)
    : options_(tle_in_bounds(options)),
      random_(options.seed),
      entries_(std::max<std::uint64_t>(options_.entries / kTicks, 1)),
      streams_(1),
      interval_(options_.entries),
      shares_(options_.entries) {
  streams_[0].is_used = true;
  entries_.add_streams(1);
}

// ---- Streams. ----

StreamSlot TleCache::join() {
  auto slot = static_cast<StreamSlot>(std::ranges::find(streams_, false, &Stream::is_used) -
                                      streams_.begin());
  if (slot == streams_.size() && slot < options_.streams_max) {
    streams_.emplace_back();
    entries_.add_streams(streams_.size());
  } else if (slot == streams_.size()) {
    slot = 0;
    for (StreamSlot i = 1; i < streams_.size(); ++i) {
      if (!is_waiting(i)) continue;
      if (slot == 0 || streams_[i].quit_at < streams_[slot].quit_at) slot = i;
    }
    if (slot == 0) {
      ++streams_[0].open;
      return 0;
    }
    entries_.move_all(slot, 0);
    shares_.remove_stream(slot);
  }
  Stream& stream = streams_[slot];
  stream = {};
  stream.is_used = true;
  stream.number = ++joins_;
  stream.open = 1;
  stream.reservoir = Reservoir(sample_size(stream, 0, 0));
  interval_.note_event();
  return slot;
}

void TleCache::resume(StreamSlot slot) {
  VARVE_ASSERT(slot < streams_.size() && streams_[slot].is_used);
  Stream& stream = streams_[slot];
  ++stream.open;
  static_cast<void>(stream.reservoir.take(sample_size(stream, 0, 0)));
  stream.interval_hits = 0;
  interval_.note_event();
  admit();
}

void TleCache::quit(StreamSlot slot) {
  VARVE_ASSERT(slot < streams_.size() && streams_[slot].open != 0);
  Stream& stream = streams_[slot];
  --stream.open;
  stream.quit_at = ++quits_;
  interval_.note_event();
  admit();
}

std::size_t TleCache::open_streams() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(streams_, [](const Stream& one) { return one.open != 0; }));
}

// A share of the expected arrivals, assuming that the stream continues unchanged.
std::size_t TleCache::sample_size(const Stream& stream, std::uint64_t last_arrivals,
                                  std::uint64_t all_arrivals) const {
  if (uses_shares() || (stream.open == 0 && &stream != streams_.data())) return 0;
  const double share = last_arrivals == 0
                           ? 1 / static_cast<double>(std::max<std::size_t>(open_streams(), 1))
                           : static_cast<double>(last_arrivals) / static_cast<double>(all_arrivals);
  const double size = options_.sample_share * static_cast<double>(interval_.length()) * share;
  return std::max(kSampleMin, static_cast<std::size_t>(size));
}

// ---- Entries. ----

std::optional<ChunkId> TleCache::find(const Tag& tag) const {
  const Entry* const entry = entries_.find(tag);
  return entry != nullptr ? std::optional(entry->id()) : std::nullopt;
}

void TleCache::use(StreamSlot slot, const Entry& entry) {
  const bool is_admitted = streams_[slot].is_admitted || options_.admits_all;
  if (entries_.replace(entry, slot, is_admitted) || !is_admitted) return;
  while (entries_.size() >= options_.entries) evict();
  entries_.add(entry, slot);
}

double TleCache::weight_of(StreamSlot slot) const {
  const Stream& stream = streams_[slot];
  const double locality = stream.forecast.empty() ? mean_locality_ : stream.forecast.next();
  const bool weighs_entries = options_.rule == EvictionRule::kLocality;
  const double entries = weighs_entries ? static_cast<double>(entries_.size_of(slot)) : 1;
  return entries / std::max(1.0, locality);
}

StreamSlot TleCache::draw_stream() {
  double sum = 0;
  for (StreamSlot slot = 0; slot < streams_.size(); ++slot) {
    sum += entries_.size_of(slot) != 0 ? weight_of(slot) : 0;
  }
  double left = random_.share() * sum;
  StreamSlot drawn = 0;
  for (StreamSlot slot = 0; slot < streams_.size(); ++slot) {
    if (entries_.size_of(slot) == 0) continue;
    drawn = slot;
    left -= weight_of(slot);
    if (left < 0) break;
  }
  return drawn;
}

// The shares sum up to at most the entries of the cache. If no stream exceeds its share, each
// stream has its share exactly, and any stream may lose an entry.
StreamSlot TleCache::oldest_beyond_shares() const {
  StreamSlot oldest = 0;
  std::uint64_t tick = UINT64_MAX;
  for (const bool is_within : {false, true}) {
    for (StreamSlot slot = 0; slot < streams_.size() && (!is_within || tick == UINT64_MAX);
         ++slot) {
      const auto entries = entries_.size_of(slot);
      if (entries == 0 || (!is_within && entries <= shares_.share_of(slot))) continue;
      if (entries_.oldest_tick(slot) >= tick) continue;
      tick = entries_.oldest_tick(slot);
      oldest = slot;
    }
  }
  return oldest;
}

void TleCache::evict() {
  entries_.drop_oldest(uses_shares() ? oldest_beyond_shares() : draw_stream());
  ++evictions_;
}

// ---- Estimates. ----

void TleCache::arrive(StreamSlot slot, const Tag& tag, bool is_hit) {
  Stream& stream = streams_[slot];
  if (uses_shares()) {
    shares_.arrive(slot, tag);
  }
  stream.reservoir.offer(sampled_value(tag), random_);
  ++stream.arrivals;
  if (is_hit) {
    ++stream.hits;
    ++stream.interval_hits;
  }
  interval_.arrive(is_hit);
}

std::vector<StreamSample> TleCache::take_samples() {
  interval_.set_next_length();
  std::vector<StreamSample> samples;
  for (StreamSlot slot = 0; slot < streams_.size(); ++slot) {
    Stream& stream = streams_[slot];
    const auto arrivals = stream.reservoir.arrivals();
    const auto hits = std::exchange(stream.interval_hits, 0);
    auto values = stream.reservoir.take(sample_size(stream, arrivals, interval_.arrivals()));
    if (uses_shares() ? arrivals == 0 : values.size() < kSampleMin) continue;
    samples.push_back(
        {slot, stream.number, arrivals, hits, interval_.arrivals(), std::move(values)});
  }
  interval_.begin();
  return samples;
}

StreamEstimate TleCache::estimate(StreamSample sample, bool unseen) {
  StreamEstimate estimate;
  if (sample.values.empty()) {
    estimate.of = std::move(sample);
    return estimate;
  }
  const auto arrivals = static_cast<double>(sample.arrivals);
  const auto sampled = static_cast<double>(sample.values.size());
  const auto frequencies = frequencies_of(sample.values);
  if (unseen) {
    const auto distinct = estimate_distinct(frequencies, sample.arrivals);
    const double invented = distinct.is_solved && distinct.distinct < arrivals
                                ? invented_duplicates(sample.values.size(), sample.arrivals)
                                : 0;
    estimate.locality = std::max(arrivals - distinct.distinct - invented, 0.0);
    estimate.is_solved = distinct.is_solved;
  } else {
    double distinct = 0;
    for (const auto& one : frequencies) distinct += static_cast<double>(one.values);
    estimate.locality = (sampled - distinct) / sampled * arrivals;
  }
  estimate.of = std::move(sample);
  estimate.of.values = {};
  return estimate;
}

void TleCache::apply(const std::vector<StreamEstimate>& estimates) {
  if (uses_shares()) return;
  for (const auto& [of, locality, is_solved] : estimates) {
    if (of.slot >= streams_.size() || streams_[of.slot].number != of.stream) continue;
    Stream& stream = streams_[of.slot];
    // Intervals differ in length; the forecast is for as many arrivals as there are entries.
    stream.forecast.add(locality * static_cast<double>(options_.entries) /
                        static_cast<double>(of.all_arrivals));
    stream.repeated_share = locality / static_cast<double>(of.arrivals);
  }
  double sum = 0;
  double known = 0;
  for (const Stream& stream : streams_) {
    if (stream.forecast.empty()) continue;
    sum += stream.forecast.next();
    ++known;
  }
  mean_locality_ = known == 0 ? 0 : sum / known;
  admit();
}

void TleCache::admit() {
  double highest = 0;
  for (const Stream& stream : streams_) {
    if (stream.open != 0) highest = std::max(highest, stream.forecast.next());
  }
  for (Stream& stream : streams_) {
    stream.is_admitted = stream.forecast.empty() ||
                         stream.forecast.next() >= kLowLocality * highest ||
                         stream.repeated_share >= kLowShare;
  }
}

void TleCache::update() {
  std::vector<StreamEstimate> estimates;
  for (auto& sample : take_samples()) {
    estimates.push_back(estimate(std::move(sample), options_.estimates_unseen));
  }
  apply(estimates);
}

TleStreamState TleCache::state(StreamSlot slot) const {
  const Stream& stream = streams_[slot];
  return {entries_.size_of(slot),
          uses_shares() ? shares_.locality(slot) : stream.forecast.next(),
          uses_shares() ? stream.arrivals != 0 : !stream.forecast.empty(),
          stream.is_admitted,
          stream.open != 0,
          stream.arrivals,
          stream.hits};
}

std::size_t TleCache::memory_bytes() const {
  std::size_t bytes =
      entries_.memory_bytes() + shares_.memory_bytes() + streams_.size() * sizeof(Stream);
  for (const Stream& stream : streams_) bytes += stream.reservoir.bytes();
  return bytes;
}

}  // namespace varve::index
