// SPDX-License-Identifier: Apache-2.0
// Joins the parts of labels that a store has, without a map of objects. docs/decisions/170.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "remote/head.h"
#include "remote/label_parts.h"
#include "varve/result.h"

namespace varve::remote {

/// Labels made of parts.
struct LabelChain {
  std::string labels{};
  std::uint64_t head = 0;  ///< Number of the head for which the last part was uploaded.
};

/// The parts of all labels in a store, of several states. A part follows the parts whose bytes have
/// the digest in the lead. Holds all parts in memory. Time: the bytes of the labels for each part.
class LabelChains {
 public:
  /// Adds the part of an object.
  void add(const LabelPart& part, std::string bytes, std::string object);
  /// Adds whole labels of an earlier release, which parts may follow. The last labels of a series
  /// count.
  void add_whole(SeriesId series, std::string labels);

  /// Joins the parts. Call once, after all parts were added.
  void join();
  [[nodiscard]] std::set<SeriesId> series() const;
  /// Calls `visit` with the labels of a series that parts give, those of the newest head first and
  /// of one head the longest first, until `visit` returns true.
  template <typename Visit>
  [[nodiscard]] Result<void> visit_newest(SeriesId series, const Visit& visit) const {
    for (const auto* const end : newest_ends(series)) {
      VARVE_TRY_ASSIGN(const bool done, visit(labels_at(series_.at(series), *end)));
      if (done) break;
    }
    return {};
  }
  /// Returns the object of the newest part that is newer than `chosen` and follows a lost part;
  /// nullopt if there is none. Null: no labels were chosen.
  [[nodiscard]] std::optional<std::string> newest_lost(SeriesId series,
                                                       const LabelChain* chosen) const;

 private:
  struct Part {
    LabelPart part{};
    std::string bytes{};
    std::string object{};
  };
  /// A place that parts reach from the start of labels.
  struct End {
    std::uint64_t head = 0;
    std::uint64_t offset = 0;
    bool is_whole = false;        ///< The end of whole labels of an earlier release.
    const Part* last = nullptr;   ///< Null for whole labels, and at the start of labels.
    const End* before = nullptr;  ///< The end that `last` follows.
  };
  struct OneSeries {
    std::multimap<std::uint64_t, Part> parts{};  // By offset.
    std::string whole{};                         // Of an earlier release; may be empty.
    std::list<End> ends{};                       // From the start of the labels on.
    std::set<const Part*> joined{};
  };
  static void join(OneSeries& one);
  [[nodiscard]] std::vector<const End*> newest_ends(SeriesId series) const;
  [[nodiscard]] static LabelChain labels_at(const OneSeries& one, const End& end);

  std::map<SeriesId, OneSeries> series_;
};

}  // namespace varve::remote
