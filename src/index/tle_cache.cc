// SPDX-License-Identifier: Apache-2.0
#include "index/tle_cache.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace varve::index {

namespace {

constexpr std::size_t kEntriesMin = 16;
constexpr std::size_t kTableMin = 64;
// A stream is not admitted with a TLI below kLowLocality times the highest TLI, if the share of
// repeated arrivals is also below kLowShare.
constexpr double kLowLocality = 0.1;
constexpr double kLowShare = 0.02;
// Fractions of an interval: an event ends the interval after a quarter; the share of hits is
// evaluated every eighth.
constexpr std::uint64_t kEventParts = 4;
constexpr std::uint64_t kRatioParts = 8;
constexpr double kRatioDrop = 0.7;
constexpr double kRatioWeight = 0.125;
constexpr double kIntervalInitial = 0.5;
constexpr double kIntervalMin = 0.1;
constexpr double kIntervalMax = 0.9;
// Minimum size of a useful sample; also the size for a stream with unknown arrivals.
constexpr std::size_t kSampleMin = 32;

std::uint64_t interval_for(std::size_t entries, double factor) {
  return std::max<std::uint64_t>(
      kEntriesMin, static_cast<std::uint64_t>(static_cast<double>(entries) *
                                              std::clamp(factor, kIntervalMin, kIntervalMax)));
}

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
      table_(kTableMin),
      streams_(1),
      interval_(interval_for(options_.entries, kIntervalInitial)) {
  streams_[0].is_used = true;
}

// ---- Streams. ----

StreamSlot TleCache::join() {
  auto slot = static_cast<StreamSlot>(std::ranges::find(streams_, false, &Stream::is_used) -
                                      streams_.begin());
  if (slot == streams_.size() && slot < options_.streams_max) {
    streams_.emplace_back();
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
    put_entries_aside(slot);
  }
  Stream& stream = streams_[slot];
  stream = {};
  stream.is_used = true;
  stream.number = ++joins_;
  stream.open = 1;
  stream.reservoir = Reservoir(sample_size(stream, 0, 0));
  has_event_ = true;
  return slot;
}

void TleCache::resume(StreamSlot slot) {
  VARVE_ASSERT(slot < streams_.size() && streams_[slot].is_used);
  Stream& stream = streams_[slot];
  ++stream.open;
  static_cast<void>(stream.reservoir.take(sample_size(stream, 0, 0)));
  stream.interval_hits = 0;
  has_event_ = true;
  admit();
}

void TleCache::quit(StreamSlot slot) {
  VARVE_ASSERT(slot < streams_.size() && streams_[slot].open != 0);
  Stream& stream = streams_[slot];
  --stream.open;
  stream.quit_at = ++quits_;
  has_event_ = true;
  admit();
}

void TleCache::put_entries_aside(StreamSlot slot) {
  for (Place place = streams_[slot].oldest; place != 0; place = streams_[slot].oldest) {
    unlink(place);
    link(place, 0);
  }
}

std::size_t TleCache::open_streams() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(streams_, [](const Stream& one) { return one.open != 0; }));
}

// A share of the expected arrivals, assuming that the stream continues unchanged.
std::size_t TleCache::sample_size(const Stream& stream, std::uint64_t last_arrivals,
                                  std::uint64_t all_arrivals) const {
  if (stream.open == 0 && &stream != streams_.data()) return 0;
  const double share = last_arrivals == 0
                           ? 1 / static_cast<double>(std::max<std::size_t>(open_streams(), 1))
                           : static_cast<double>(last_arrivals) / static_cast<double>(all_arrivals);
  const double size = options_.sample_share * static_cast<double>(interval_) * share;
  return std::max(kSampleMin, static_cast<std::size_t>(size));
}

// ---- Entries. ----

std::size_t TleCache::home(Place place) const {
  return static_cast<std::size_t>(part_of(node(place).entry.tag, table_.size()));
}

// Returns the table's place of the tag, or the free place for the tag.
std::size_t TleCache::place_in_table(const Tag& tag) const {
  auto i = static_cast<std::size_t>(part_of(tag, table_.size()));
  while (table_[i] != 0 && node(table_[i]).entry.tag != tag) i = (i + 1) % table_.size();
  return i;
}

void TleCache::grow_table() {
  const auto old = std::exchange(table_, std::vector<Place>(table_.size() * 2));
  for (const Place place : old) {
    if (place != 0) table_[place_in_table(node(place).entry.tag)] = place;
  }
}

TleCache::Place TleCache::new_node() {
  if (free_ != 0) return std::exchange(free_, node(free_).older);
  if (places_ % kBlockNodes == 0) blocks_.push_back(std::make_unique<Block>());
  return ++places_;
}

void TleCache::link(Place place, StreamSlot slot) {
  Stream& stream = streams_[slot];
  Node& its = node(place);
  its.stream = static_cast<std::uint16_t>(slot);
  its.newer = 0;
  its.older = stream.newest;
  if (stream.newest != 0) node(stream.newest).newer = place;
  stream.newest = place;
  if (stream.oldest == 0) stream.oldest = place;
  ++stream.entries;
}

void TleCache::unlink(Place place) {
  const Node& its = node(place);
  Stream& stream = streams_[its.stream];
  (its.newer != 0 ? node(its.newer).older : stream.newest) = its.older;
  (its.older != 0 ? node(its.older).newer : stream.oldest) = its.newer;
  --stream.entries;
}

void TleCache::remove(Place place) {
  std::size_t hole = place_in_table(node(place).entry.tag);
  const auto size = table_.size();
  // Moves the entries after the hole that a search would not find across the hole.
  for (auto i = (hole + 1) % size; table_[i] != 0; i = (i + 1) % size) {
    const auto distance = [&](std::size_t from) { return (i + size - from) % size; };
    if (distance(home(table_[i])) < distance(hole)) continue;
    table_[hole] = table_[i];
    hole = i;
  }
  table_[hole] = 0;
  unlink(place);
  node(place) = Node();
  node(place).older = free_;
  free_ = place;
  --size_;
}

std::optional<ChunkId> TleCache::find(const Tag& tag) const {
  const Place place = table_[place_in_table(tag)];
  if (place == 0) return std::nullopt;
  return node(place).entry.id();
}

void TleCache::use(StreamSlot slot, const Entry& entry) {
  const bool is_admitted = streams_[slot].is_admitted || options_.admits_all;
  if (const Place known = table_[place_in_table(entry.tag)]; known != 0) {
    node(known).entry = entry;
    const StreamSlot owner = node(known).stream;
    unlink(known);
    link(known, is_admitted ? slot : owner);
    return;
  }
  if (!is_admitted) return;
  while (size_ >= options_.entries) evict();
  if ((size_ + 1) * 4 > table_.size() * 3) grow_table();
  const Place place = new_node();
  node(place).entry = entry;
  table_[place_in_table(entry.tag)] = place;
  link(place, slot);
  ++size_;
}

void TleCache::erase(const Tag& tag) {
  if (const Place place = table_[place_in_table(tag)]; place != 0) remove(place);
}

void TleCache::erase_if(const std::function<bool(ChunkId)>& test) {
  for (const Stream& stream : streams_) {
    for (Place place = stream.newest; place != 0;) {
      const Place next = node(place).older;
      if (test(node(place).entry.id())) remove(place);
      place = next;
    }
  }
}

double TleCache::weight_of(const Stream& stream) const {
  const double locality = stream.forecast.empty() ? mean_locality_ : stream.forecast.next();
  const double entries = options_.weighs_entries ? static_cast<double>(stream.entries) : 1;
  return entries / std::max(1.0, locality);
}

StreamSlot TleCache::draw_stream() {
  double sum = 0;
  for (const Stream& stream : streams_) sum += stream.entries != 0 ? weight_of(stream) : 0;
  double left = random_.share() * sum;
  StreamSlot drawn = 0;
  for (StreamSlot slot = 0; slot < streams_.size(); ++slot) {
    if (streams_[slot].entries == 0) continue;
    drawn = slot;
    left -= weight_of(streams_[slot]);
    if (left < 0) break;
  }
  return drawn;
}

void TleCache::evict() {
  remove(streams_[draw_stream()].oldest);
  ++evictions_;
}

// ---- Estimates. ----

void TleCache::arrive(StreamSlot slot, const Tag& tag, bool is_hit) {
  Stream& stream = streams_[slot];
  stream.reservoir.offer(sampled_value(tag), random_);
  ++stream.arrivals;
  ++arrivals_;
  ++part_arrivals_;
  if (is_hit) {
    ++stream.hits;
    ++stream.interval_hits;
    ++part_hits_;
  }
  if (part_arrivals_ * kRatioParts >= interval_) note_ratio();
}

void TleCache::note_ratio() {
  const double ratio = static_cast<double>(part_hits_) / static_cast<double>(part_arrivals_);
  part_arrivals_ = part_hits_ = 0;
  if (has_ratio_ && ratio < kRatioDrop * mean_ratio_) has_event_ = true;
  mean_ratio_ = has_ratio_ ? mean_ratio_ + kRatioWeight * (ratio - mean_ratio_) : ratio;
  has_ratio_ = true;
}

bool TleCache::wants_estimates() const {
  return arrivals_ >= interval_ || (has_event_ && arrivals_ * kEventParts >= interval_);
}

std::vector<StreamSample> TleCache::take_samples() {
  if (has_ratio_) interval_ = interval_for(options_.entries, 1 - mean_ratio_);
  std::vector<StreamSample> samples;
  for (StreamSlot slot = 0; slot < streams_.size(); ++slot) {
    Stream& stream = streams_[slot];
    const auto arrivals = stream.reservoir.arrivals();
    const auto hits = std::exchange(stream.interval_hits, 0);
    auto values = stream.reservoir.take(sample_size(stream, arrivals, arrivals_));
    if (values.size() < kSampleMin) continue;
    samples.push_back({slot, stream.number, arrivals, hits, arrivals_, std::move(values)});
  }
  arrivals_ = 0;
  has_event_ = false;
  return samples;
}

StreamEstimate TleCache::estimate(StreamSample sample, bool unseen) {
  StreamEstimate estimate;
  const auto arrivals = static_cast<double>(sample.arrivals);
  const auto sampled = static_cast<double>(sample.values.size());
  const auto frequencies = frequencies_of(sample.values);
  if (unseen) {
    const auto distinct = estimate_distinct(frequencies, sample.arrivals);
    estimate.locality = std::max(arrivals - distinct.distinct, 0.0);
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
  for (const auto& [of, locality, is_solved] : estimates) {
    if (of.slot >= streams_.size() || streams_[of.slot].number != of.stream) continue;
    Stream& stream = streams_[of.slot];
    // Intervals differ in length; the forecast is for as many arrivals as there are entries.
    stream.forecast.add(locality * static_cast<double>(options_.entries) /
                        static_cast<double>(of.all_arrivals));
    stream.repeated_share =
        std::max(locality, static_cast<double>(of.hits)) / static_cast<double>(of.arrivals);
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
  return {stream.entries,     stream.forecast.next(), !stream.forecast.empty(),
          stream.is_admitted, stream.open != 0,       stream.arrivals,
          stream.hits};
}

std::size_t TleCache::memory_bytes() const {
  std::size_t bytes = blocks_.size() * (sizeof(Block) + sizeof(void*)) +
                      table_.size() * sizeof(Place) + streams_.size() * sizeof(Stream);
  for (const Stream& stream : streams_) bytes += stream.reservoir.bytes();
  return bytes;
}

}  // namespace varve::index
