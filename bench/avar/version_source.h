// SPDX-License-Identifier: Apache-2.0
// Generates versions of a set of files as streams of chunks, with random changes between versions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

namespace varve::bench {

using Content = std::uint32_t;

/// The bytes of contents.
class ContentSource {
 public:
  virtual ~ContentSource() = default;
  /// Returns the size of a content: 2 to 64 KiB, 8 KiB on average.
  [[nodiscard]] virtual std::size_t bytes_of(Content content) const {
    std::mt19937_64 random(content * 2654435761ULL + 1);
    std::exponential_distribution<double> length(1.0 / 6144);
    return std::min<std::size_t>(65536, 2048 + static_cast<std::size_t>(length(random)));
  }
  /// Returns the bytes of a content. The next call replaces them.
  [[nodiscard]] virtual std::span<const std::byte> data_of(Content content) const {
    const std::size_t bytes = bytes_of(content);
    std::uint64_t state = content * 0x9e3779b97f4a7c15ULL + 1;
    for (auto& word : std::span(data_).first((bytes + sizeof(state) - 1) / sizeof(state))) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      word = state;
    }
    return std::as_bytes(std::span(data_)).first(bytes);
  }

 private:
  mutable std::array<std::uint64_t, 8192> data_{};
};

struct SourceOptions {
  std::size_t chunks = 60000;
  double change = 0.02;  ///< Share of the chunks that a version changes.
  /// Share of chunks whose content returns after one to three versions.
  double return_share = 0.003;
  bool clustered = true;  ///< 80 % of the edits in 20 % of the files, eight chunks at a time.
  /// True to spread the hot files over the tree instead of placing them at its start.
  bool hot_files_spread = false;
  /// Share of the first version's chunks that copy others, near and far.
  double self_duplicates = 0;
  std::uint64_t seed = 7;
};

class VersionSource final : public ContentSource {
 public:
  explicit VersionSource(const SourceOptions& options) : options_(options), random_(options.seed) {
    std::lognormal_distribution<double> length(2.3, 1.6);
    for (std::size_t total = 0; total < options.chunks;) {
      const auto n = std::clamp<std::size_t>(static_cast<std::size_t>(length(random_)), 1, 2000);
      std::vector<Content> file(n);
      for (auto& chunk : file) chunk = fresh();
      files_.push_back(std::move(file));
      total += n;
    }
    copy_runs();
    note();
  }

  [[nodiscard]] std::vector<Content> stream() const {
    std::vector<Content> all;
    for (const auto& file : files_) {
      for (const auto content : file) all.push_back(original(content));
    }
    return all;
  }

  void next_version() {
    const auto budget =
        static_cast<std::size_t>(options_.change * static_cast<double>(options_.chunks));
    std::vector<std::vector<Content>> gone;
    for (std::size_t done = 0; done < budget;) done += edit(gone);
    auto back =
        static_cast<std::ptrdiff_t>(options_.return_share * static_cast<double>(options_.chunks));
    // Random pieces, so that returning content has been absent for one, two or three versions with
    // equal probability.
    std::vector<const std::vector<Content>*> candidates;
    for (const auto& version : past_) {
      for (const auto& piece : version) candidates.push_back(&piece);
    }
    for (std::size_t left = candidates.size(); left > 0 && back > 0; --left) {
      std::swap(candidates[random_() % left], candidates[left - 1]);
      const auto& piece = *candidates[left - 1];
      auto& file = files_[random_() % files_.size()];
      file.insert(file.begin() + static_cast<std::ptrdiff_t>(random_() % (file.size() + 1)),
                  piece.begin(), piece.end());
      back -= static_cast<std::ptrdiff_t>(piece.size());
    }
    past_.push_back(std::move(gone));
    if (past_.size() > 3) past_.erase(past_.begin());
    note();
  }

  /// Returns the bytes of all versions so far, with each content once.
  [[nodiscard]] std::uint64_t distinct_bytes() const { return distinct_bytes_; }

 private:
  // Copies runs of chunks, twelve on average, half of them from nearby.
  void copy_runs() {
    const std::size_t count = next_;
    originals_.resize(count);
    for (std::size_t i = 0; i < count; ++i) originals_[i] = static_cast<Content>(i);
    std::exponential_distribution<double> length(1.0 / 12);
    const auto wanted =
        static_cast<std::size_t>(options_.self_duplicates * static_cast<double>(count));
    for (std::size_t done = 0; done < wanted;) {
      const auto run = std::min<std::size_t>(1 + static_cast<std::size_t>(length(random_)), 200);
      const std::size_t from = random_() % (count - run);
      const std::size_t distance = 1 + random_() % (random_() % 2 == 0 ? 3000 : count);
      const std::size_t to = (from + distance) % (count - run);
      for (std::size_t i = 0; i < run; ++i) originals_[to + i] = originals_[from + i];
      done += run;
    }
  }
  [[nodiscard]] Content original(Content content) const {
    return content < originals_.size() ? originals_[content] : content;
  }

  Content fresh() { return next_++; }

  std::size_t edit(std::vector<std::vector<Content>>& gone) {
    const std::size_t hot = std::max<std::size_t>(1, files_.size() / 5);
    const bool in_hot = options_.clustered && random_() % 10 < 8;
    std::size_t number = random_() % (in_hot ? hot : files_.size());
    if (in_hot && options_.hot_files_spread) number = number * 5 % files_.size();
    auto& file = files_[number];
    std::exponential_distribution<double> length(1.0 / 8);
    const std::size_t run =
        options_.clustered
            ? std::min<std::size_t>(static_cast<std::size_t>(length(random_)) + 1, 64)
            : 1;
    const std::size_t at = file.empty() ? 0 : random_() % file.size();
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t end = std::min(file.size(), at + run);
    const auto kind = random_() % 10;
    if (kind < 6 && end > at) {
      gone.emplace_back(begin, file.begin() + static_cast<std::ptrdiff_t>(end));
      for (std::size_t i = at; i < end; ++i) file[i] = fresh();
      return end - at;
    }
    if (kind < 8 || end == at) {
      std::vector<Content> added(run);
      for (auto& chunk : added) chunk = fresh();
      file.insert(begin, added.begin(), added.end());
      return run;
    }
    gone.emplace_back(begin, file.begin() + static_cast<std::ptrdiff_t>(end));
    file.erase(begin, file.begin() + static_cast<std::ptrdiff_t>(end));
    return end - at;
  }

  void note() {
    for (const auto& file : files_) {
      for (const auto content : file) {
        const auto stored = original(content);
        if (seen_.insert(stored).second) distinct_bytes_ += bytes_of(stored);
      }
    }
  }

  const SourceOptions options_;
  std::mt19937_64 random_;
  Content next_ = 0;
  std::vector<Content> originals_;  // The contents that the first version's chunks copy.
  std::vector<std::vector<Content>> files_;
  std::vector<std::vector<std::vector<Content>>> past_;
  std::unordered_set<Content> seen_;
  std::uint64_t distinct_bytes_ = 0;
};

}  // namespace varve::bench
