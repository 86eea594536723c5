// SPDX-License-Identifier: Apache-2.0
#include "index/cache_shares.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/coding.h"

namespace varve::index {

namespace {

// A sampled fingerprint takes up to 56 bytes. With this rate and reach, the sample takes 1 % of the
// cache's memory.
// The sample of a small cache has at least kSampledMin fingerprints for a full cache.
constexpr double kRate = 1.0 / 512;
constexpr double kSampledMin = 256;
// Size of the sample, relative to the sampled fingerprints of a full cache. A stream with a quarter
// of the arrivals so has distances up to the whole cache.
constexpr double kReach = 4;
// An interval has half as many arrivals as the cache has entries. Each interval counts 0.9 of the
// next interval.
constexpr double kIntervalPart = 0.5;
constexpr double kDecay = 0.9;
// Difference between two numbers of hits, in standard deviations, that counts as significant.
constexpr double kDeviations = 2;

double rate_for(std::size_t entries) {
  return std::min(1.0, std::max(kRate, kSampledMin / static_cast<double>(entries)));
}

bool is_significant(double hits, double other) {
  return hits > other + kDeviations * std::sqrt(other);
}

}  // namespace

CacheShares::CacheShares(std::size_t entries)
    : entries_(std::max<std::size_t>(entries, 1)),
      rate_(rate_for(entries_)),
      sample_max_(
          static_cast<std::size_t>(std::ceil(kReach * rate_ * static_cast<double>(entries_)))),
      table_(std::bit_ceil(sample_max_ * 4 / 3 + 1)) {}

// ---- The sample. ----

// Returns the table's place of the hash, or the free place for the hash.
std::size_t CacheShares::place_of(std::uint64_t hash) const {
  auto place = static_cast<std::size_t>(hash) % table_.size();
  while (table_[place] != 0 && sample_[table_[place] - 1].hash != hash) {
    place = (place + 1) % table_.size();
  }
  return place;
}

void CacheShares::erase(std::uint64_t hash) {
  const auto size = table_.size();
  auto hole = place_of(hash);
  // Moves the items after the hole that a search would not find across the hole.
  for (auto i = (hole + 1) % size; table_[i] != 0; i = (i + 1) % size) {
    const auto home = static_cast<std::size_t>(sample_[table_[i] - 1].hash) % size;
    if ((i + size - home) % size < (i + size - hole) % size) continue;
    table_[hole] = table_[i];
    hole = i;
  }
  table_[hole] = 0;
}

CacheShares::Item CacheShares::take_new_item() {
  if (sample_.size() < sample_max_) {
    sample_.emplace_back();
    return static_cast<Item>(sample_.size());
  }
  const Item item = all_.oldest();
  erase(sample_[item - 1].hash);
  remove(item);
  return item;
}

void CacheShares::remove(Item item) {
  const Sampled& known = sample_[item - 1];
  streams_[known.slot].order.remove(known.in_stream);
  all_.remove(known.in_all);
}

void CacheShares::push(Item item, StreamSlot slot) {
  if (slot >= streams_.size()) streams_.resize(slot + 1);
  Stream& stream = streams_[slot];
  if (stream.hits.empty()) stream.hits.resize(kUnits);
  Sampled& its = sample_[item - 1];
  its.slot = slot;
  its.in_all = all_.push(item, [&](Item moved, Time time) { sample_[moved - 1].in_all = time; });
  its.in_stream =
      stream.order.push(item, [&](Item moved, Time time) { sample_[moved - 1].in_stream = time; });
}

void CacheShares::arrive(StreamSlot slot, const Tag& tag) {
  if (static_cast<double>(++arrivals_) >= kIntervalPart * static_cast<double>(entries_)) {
    end_interval();
  }
  const auto hash = base::load_le<std::uint64_t>(tag.data() + 12);
  if (static_cast<double>(hash >> 11) * 0x1p-53 >= rate_) return;
  const auto place = place_of(hash);
  Item item = table_[place];
  if (item != 0) {
    count_hit(sample_[item - 1]);
    remove(item);
  } else {
    item = take_new_item();
    sample_[item - 1].hash = hash;
    table_[place_of(hash)] = item;
  }
  push(item, slot);
}

void CacheShares::remove_stream(StreamSlot slot) {
  if (slot == 0 || slot >= streams_.size()) return;
  while (streams_[slot].order.size() != 0) {
    const Item item = streams_[slot].order.oldest();
    remove(item);
    push(item, 0);
  }
  streams_[slot] = {};
}

// ---- The shares. ----

// An entry belongs to the stream of its last use, so the hit counts for the owner.
void CacheShares::count_hit(const Sampled& known) {
  Stream& owner = streams_[known.slot];
  const auto entries = static_cast<double>(entries_);
  const auto in_all = static_cast<double>(all_.newer_than(known.in_all)) / rate_;
  const auto in_stream = static_cast<double>(owner.order.newer_than(known.in_stream)) / rate_;
  if (in_all < entries) ++hits_of_one_list_;
  if (in_stream < static_cast<double>(entries_ * owner.units / kUnits)) ++hits_of_shares_;
  if (in_stream < entries) ++owner.hits[static_cast<std::size_t>(in_stream * kUnits / entries)];
}

// Each hit was compared with the shares of an earlier interval.
void CacheShares::end_interval() {
  in_use_ = is_significant(hits_of_shares_, hits_of_one_list_);
  divide();
  arrivals_ = 0;
  intervals_ = (intervals_ + 1) * kDecay;
  hits_of_shares_ *= kDecay;
  hits_of_one_list_ *= kDecay;
  for (Stream& stream : streams_) {
    for (double& hits : stream.hits) hits *= kDecay;
  }
}

// Gives units to the stream with the most hits for each further unit, until no unit is left or no
// unit adds a hit. Streams compete for the remaining units by the age of their entries. A new
// division evicts entries that the old division kept. So a division stays until a new division has
// significantly more hits.
void CacheShares::divide() {
  struct Step {
    std::size_t units = 0;
    double slope = 0;  // Hits for each unit.
  };
  std::vector<std::size_t> given(streams_.size());
  std::vector<Step> next(streams_.size());
  std::size_t left = kUnits;
  const auto find_next = [&](std::size_t i) {
    const auto& hits = streams_[i].hits;
    next[i] = {};
    double sum = 0;
    for (std::size_t units = 1; units <= left && given[i] + units <= hits.size(); ++units) {
      sum += hits[given[i] + units - 1];
      const double slope = sum / static_cast<double>(units);
      if (slope > next[i].slope) next[i] = {units, slope};
    }
  };
  for (std::size_t i = 0; i < streams_.size(); ++i) find_next(i);
  while (left != 0 && !streams_.empty()) {
    const auto best =
        static_cast<std::size_t>(std::ranges::max_element(next, {}, &Step::slope) - next.begin());
    if (next[best].units == 0) break;
    given[best] += next[best].units;
    left -= next[best].units;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (i == best || next[i].units > left) find_next(i);
    }
  }
  double hits_now = 0;
  double hits_then = 0;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    hits_now += hits_within(streams_[i], streams_[i].units);
    hits_then += hits_within(streams_[i], given[i]);
  }
  if (!is_significant(hits_then, hits_now)) return;
  for (std::size_t i = 0; i < streams_.size(); ++i) streams_[i].units = given[i];
}

double CacheShares::hits_within(const Stream& stream, std::size_t units) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(units, stream.hits.size()); ++i) sum += stream.hits[i];
  return sum;
}

double CacheShares::locality(StreamSlot slot) const {
  if (slot >= streams_.size() || intervals_ == 0) return 0;
  return hits_within(streams_[slot], kUnits) / rate_ / (intervals_ * kIntervalPart);
}

std::size_t CacheShares::memory_bytes() const {
  std::size_t bytes =
      sample_.capacity() * sizeof(Sampled) + table_.capacity() * sizeof(Item) + all_.memory_bytes();
  for (const Stream& one : streams_) {
    bytes += sizeof(Stream) + one.order.memory_bytes() + one.hits.capacity() * sizeof(double);
  }
  return bytes;
}

}  // namespace varve::index
