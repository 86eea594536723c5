// SPDX-License-Identifier: Apache-2.0
// Counts the keys and nonces of all texts that this process seals.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/checksum.h"
#include "crypto/seal_observer.h"

namespace varve::test {

/// Observes sealed texts from its construction to its destruction. A process can have only one at a
/// time. Thread-safe.
class SealedPairs {
 public:
  SealedPairs() {
    {
      const std::lock_guard lock(seen().mutex);
      seen().texts.clear();
    }
    crypto::observe_seals(see);
  }
  ~SealedPairs() { crypto::observe_seals(nullptr); }
  SealedPairs(const SealedPairs&) = delete;
  SealedPairs& operator=(const SealedPairs&) = delete;

  /// A text as far as it is compared. Another process may send it as bytes.
  struct Text {
    std::array<std::byte, 16> key{};  ///< The first half of the key's digest.
    crypto::Nonce nonce{};
    std::array<std::uint64_t, 2> content{};  ///< Checksums of the associated data and of the text.
    auto operator<=>(const Text&) const = default;
  };
  struct Counts {
    std::uint64_t texts = 0;
    std::uint64_t keys = 0;
    /// Texts with a key and nonce that an earlier text had, which differs or whose associated data
    /// differ.
    std::uint64_t repeated = 0;
    std::uint64_t equal = 0;            ///< Texts that were sealed before in the same way.
    std::uint64_t mixed_keys = 0;       ///< Keys with both random and counted nonces.
    std::uint64_t random_per_key = 0;   ///< The most texts with random nonces under one key.
    std::uint64_t counted_per_key = 0;  ///< The most texts with counted nonces under one key.
  };
  /// Returns the texts so far.
  [[nodiscard]] std::vector<Text> texts() const {
    const std::lock_guard lock(seen().mutex);
    return seen().texts;
  }
  /// Returns the counts so far. Takes time and memory for all of them.
  [[nodiscard]] Counts counts() const {
    auto texts = this->texts();
    std::ranges::sort(texts);
    Counts counts;
    counts.texts = texts.size();
    for (auto first = texts.begin(); first != texts.end();) {
      const auto end = std::find_if(first, texts.end(),
                                    [&](const Text& text) { return text.key != first->key; });
      ++counts.keys;
      const auto counted = static_cast<std::uint64_t>(std::count_if(first, end, is_counted));
      const auto random = static_cast<std::uint64_t>(end - first) - counted;
      counts.mixed_keys += counted != 0 && random != 0 ? 1 : 0;
      counts.random_per_key = std::max(counts.random_per_key, random);
      counts.counted_per_key = std::max(counts.counted_per_key, counted);
      for (auto at = first + 1; at < end; ++at) {
        if (at->nonce == at[-1].nonce)
          ++(at->content == at[-1].content ? counts.equal : counts.repeated);
      }
      first = end;
    }
    return counts;
  }

  /// Adds a text, as the observer does.
  static void see(const crypto::SealedText& sealed) {
    Text text;
    std::copy_n(sealed.key.begin(), text.key.size(), text.key.begin());
    text.nonce = sealed.nonce;
    text.content = {base::checksum64(sealed.associated), base::checksum64(sealed.text)};
    add(text);
  }
  /// Adds a text that another process has sealed.
  static void add(const Text& text) {
    const std::lock_guard lock(seen().mutex);
    seen().texts.push_back(text);
  }

 private:
  // An observer is a plain function, so what it sees is in variables of the program.
  struct Seen {
    std::mutex mutex;
    std::vector<Text> texts;
  };
  static Seen& seen() {
    static Seen all;
    return all;
  }
  // Counted nonces are integers of 32 bits, so their other bytes are zero.
  static bool is_counted(const Text& text) {
    return std::all_of(text.nonce.end() - 8, text.nonce.end(),
                       [](std::byte b) { return b == std::byte{}; });
  }
};

}  // namespace varve::test
