// SPDX-License-Identifier: Apache-2.0
#include "cli/text_diff.h"

#include <algorithm>
#include <optional>

namespace varve::cli {
namespace {

using Lines = std::vector<std::string_view>;
using Kind = DiffLine::Kind;

constexpr std::size_t kContextLines = 3;

Lines split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Returns the steps of the shortest edit script, last step first, each kSame, kRemoved or kAdded;
/// nullopt for a script of more than kEditsMax edits.
std::optional<std::vector<Kind>> shortest_script(const Lines& a, const Lines& b) {
  const auto n = static_cast<std::int32_t>(a.size());
  const auto m = static_cast<std::int32_t>(b.size());
  const std::int32_t most = std::min<std::int32_t>(n + m, kEditsMax);
  // furthest[k + most]: the furthest x on diagonal k. rounds: the state of furthest before each
  // round.
  std::vector<std::int32_t> furthest(static_cast<std::size_t>(2 * most + 2), 0);
  std::vector<std::vector<std::int32_t>> rounds;
  const auto at = [most](std::int32_t k) { return static_cast<std::size_t>(k + most); };
  const auto goes_down = [](const auto& v, std::int32_t k, std::int32_t d) {
    return k == -d || (k != d && v(k - 1) < v(k + 1));
  };
  for (std::int32_t d = 0; d <= most; ++d) {
    // Only the diagonals -d … d matter, so all rounds together take most² numbers.
    rounds.emplace_back(furthest.begin() + (most - std::min(d, most)),
                        furthest.begin() + (most + std::min(d, most) + 1));
    const auto v = [&](std::int32_t k) { return furthest[at(k)]; };
    for (std::int32_t k = -d; k <= d; k += 2) {
      std::int32_t x = 0;
      if (d > 0) x = goes_down(v, k, d) ? v(k + 1) : v(k - 1) + 1;
      while (x < n && x - k < m &&
             a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(x - k)]) {
        ++x;
      }
      furthest[at(k)] = x;
      if (x != n || x - k != m) continue;
      // Walk back through the rounds.
      std::vector<Kind> steps;
      std::int32_t y = x - k;
      for (std::int32_t round = d; round > 0; --round) {
        const auto& old = rounds[static_cast<std::size_t>(round)];
        const auto before = [&](std::int32_t i) {
          return old[static_cast<std::size_t>(i + round)];
        };
        const std::int32_t diagonal = x - y;
        const bool down = goes_down(before, diagonal, round);
        const std::int32_t old_x = down ? before(diagonal + 1) : before(diagonal - 1);
        const std::int32_t start_x = down ? old_x : old_x + 1;
        for (; x > start_x; --x, --y) steps.push_back(Kind::kSame);
        steps.push_back(down ? Kind::kAdded : Kind::kRemoved);
        (down ? y : x) -= 1;
      }
      for (; x > 0; --x) steps.push_back(Kind::kSame);
      return steps;
    }
  }
  return std::nullopt;
}

/// Returns the lines of a whole edit script, without gaps.
std::vector<DiffLine> apply(const std::vector<Kind>& script, const Lines& a, const Lines& b) {
  std::vector<DiffLine> lines;
  std::size_t x = 0;
  std::size_t y = 0;
  for (const Kind kind : script) {
    DiffLine line{kind, 0, 0, {}};
    if (kind != Kind::kAdded) {
      line.text = a[x];
      line.before = static_cast<std::uint32_t>(++x);
    }
    if (kind != Kind::kRemoved) {
      line.text = b[y];
      line.after = static_cast<std::uint32_t>(++y);
    }
    lines.push_back(line);
  }
  return lines;
}

/// Returns the changes with the surrounding lines.
std::vector<DiffLine> without_far_lines(const std::vector<DiffLine>& all) {
  std::vector<bool> wanted(all.size(), false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind == Kind::kSame) continue;
    const std::size_t first = i - std::min(i, kContextLines);
    const std::size_t last = std::min(i + kContextLines, all.size() - 1);
    for (std::size_t j = first; j <= last; ++j) wanted[j] = true;
  }
  std::vector<DiffLine> lines;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!wanted[i]) continue;
    if (i > 0 && !wanted[i - 1]) lines.push_back({Kind::kGap, 0, 0, {}});
    lines.push_back(all[i]);
  }
  if (!lines.empty() && !wanted.back()) lines.push_back({Kind::kGap, 0, 0, {}});
  return lines;
}

}  // namespace

bool is_binary(std::string_view text) { return text.find('\0') != std::string_view::npos; }

TextDiff diff_texts(std::string_view before, std::string_view after) {
  const Lines a = split(before);
  const Lines b = split(after);
  std::size_t front = 0;
  while (front < a.size() && front < b.size() && a[front] == b[front]) ++front;
  std::size_t back = 0;
  while (back < a.size() - front && back < b.size() - front &&
         a[a.size() - 1 - back] == b[b.size() - 1 - back]) {
    ++back;
  }
  const auto middle = [&](const Lines& lines) {
    return Lines(lines.begin() + static_cast<std::ptrdiff_t>(front),
                 lines.end() - static_cast<std::ptrdiff_t>(back));
  };
  const Lines from = middle(a);
  const Lines to = middle(b);
  TextDiff diff;
  std::vector<Kind> script(front, Kind::kSame);
  if (const auto steps = shortest_script(from, to)) {
    script.insert(script.end(), steps->rbegin(), steps->rend());
  } else {
    diff.is_coarse = true;
    script.insert(script.end(), from.size(), Kind::kRemoved);
    script.insert(script.end(), to.size(), Kind::kAdded);
  }
  script.insert(script.end(), back, Kind::kSame);
  diff.lines = without_far_lines(apply(script, a, b));
  return diff;
}

}  // namespace varve::cli
