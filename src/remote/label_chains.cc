// SPDX-License-Identifier: Apache-2.0
#include "remote/label_chains.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace varve::remote {

void LabelChains::add(const LabelPart& part, std::string bytes, std::string object) {
  series_[part.series].parts.emplace(part.offset, Part{part, std::move(bytes), std::move(object)});
}

void LabelChains::add_whole(SeriesId series, std::string labels) {
  series_[series].whole = std::move(labels);
}

std::set<SeriesId> LabelChains::series() const {
  std::set<SeriesId> ids;
  for (const auto& [id, one] : series_) ids.insert(id);
  return ids;
}

void LabelChains::join() {
  for (auto& [id, one] : series_) join(one);
}

void LabelChains::join(OneSeries& one) {
  std::map<std::pair<std::uint64_t, Digest>, End*> known;
  const auto add = [&](const End& end) {
    const auto digest = digest_of(labels_at(one, end).labels);
    auto& same = known[{end.offset, digest}];
    if (same == nullptr) {
      one.ends.push_back(end);
      same = &one.ends.back();
    } else if (end.head > same->head) {
      *same = end;  // Other parts with the same bytes.
    }
  };
  add({});
  if (!one.whole.empty()) add({.offset = one.whole.size(), .is_whole = true});
  // A part leads to a higher offset, so everything that can come before the part is known.
  for (const auto& [offset, part] : one.parts) {
    const auto before = known.find({offset, part.part.before});
    if (before == known.end()) continue;
    one.joined.insert(&part);
    add({.head = part.part.head,
         .offset = part.part.end(),
         .last = &part,
         .before = before->second});
  }
}

std::vector<const LabelChains::End*> LabelChains::newest_ends(SeriesId series) const {
  std::vector<const End*> ends;
  for (const auto& end : series_.at(series).ends) {
    if (end.last != nullptr) ends.push_back(&end);
  }
  std::ranges::stable_sort(ends, [](const auto* a, const auto* b) {
    return std::tie(a->head, a->offset) > std::tie(b->head, b->offset);
  });
  return ends;
}

LabelChain LabelChains::labels_at(const OneSeries& one, const End& end) {
  LabelChain chain;
  chain.head = end.head;
  std::vector<const Part*> parts;
  const auto* at = &end;
  for (; at->last != nullptr; at = at->before) parts.push_back(at->last);
  if (at->is_whole) chain.labels = one.whole;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) chain.labels += (*part)->bytes;
  return chain;
}

std::optional<std::string> LabelChains::newest_lost(SeriesId series,
                                                    const LabelChain* chosen) const {
  const auto known = series_.find(series);
  if (known == series_.end()) return std::nullopt;
  const Part* newest = nullptr;
  const auto is_newer = [](const Part& part, std::uint64_t head, std::uint64_t end) {
    return part.part.head > head || (part.part.head == head && part.part.end() > end);
  };
  for (const auto& [offset, part] : known->second.parts) {
    if (known->second.joined.contains(&part)) continue;
    if (chosen != nullptr && !is_newer(part, chosen->head, chosen->labels.size())) continue;
    if (newest == nullptr || is_newer(part, newest->part.head, newest->part.end())) newest = &part;
  }
  return newest == nullptr ? std::nullopt : std::optional(newest->object);
}

}  // namespace varve::remote
