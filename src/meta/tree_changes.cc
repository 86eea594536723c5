// SPDX-License-Identifier: Apache-2.0
#include "meta/tree_changes.h"

#include <lmdb.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/system_error.h"
#include "meta/page_format.h"

namespace varve::meta {

namespace {

constexpr MDB_dbi kTreesTable = 1;  // LMDB's own table of the named tables.

template <typename Int>
Int number_at(const std::byte* p) {
  return base::load_le<Int>(p);
}

Error odd_page(PageNumber page) {
  return {ErrorCode::kCorrupt,
          "catalog: page " + std::to_string(page) + " is not as LMDB writes it; run `varve check`"};
}

// The next step of a walk over a tree: a page with keys of at least `key`, or a record.
enum class Next { kEnd, kPage, kRecord };

// Walks a tree in the order of keys. The caller chooses the pages to read.
class TreeWalk {
 public:
  TreeWalk(int fd, std::size_t page_bytes, TreeWork& work)
      : fd_(fd), page_bytes_(page_bytes), work_(work) {}

  Result<void> begin(const std::optional<Database>& tree) {
    frames_ = 0;
    next = Next::kEnd;
    if (!tree || tree->root == kNoPage) return {};
    if (tree->flags != 0 || tree->depth == 0 || tree->depth > kDepthMax) {
      return odd_page(tree->root);
    }
    next = Next::kPage;
    page = tree->root;
    height = tree->depth;
    key = {};
    return {};
  }

  /// Reads the next page. The page's first child or record is the next step.
  Result<void> enter() {
    std::string low(key);  // A copy: the key may point into a level that moves.
    if (frames_ == levels_.size()) levels_.emplace_back();
    auto& level = levels_[frames_];
    level.low = std::move(low);
    level.height = height;
    level.number = page;
    level.at = 0;
    level.bytes.resize(page_bytes_);
    VARVE_TRY(read(page, level.bytes));
    ++work_.pages;
    const auto* const bytes = level.bytes.data();
    const std::uint16_t expected = height == 1 ? kLeaf : kBranch;
    const std::size_t lower = number_at<std::uint16_t>(bytes + kLowerAt);
    if (number_at<PageNumber>(bytes) != page ||
        number_at<std::uint16_t>(bytes + kFlagsAt) != expected || lower <= kPageHeader ||
        lower > page_bytes_) {
      return odd_page(page);
    }
    level.count = (lower - kPageHeader) / 2;
    ++frames_;
    return show();
  }

  /// Skips the next step.
  Result<void> pass() {
    next = Next::kEnd;
    while (frames_ != 0) {
      if (++levels_[frames_ - 1].at < levels_[frames_ - 1].count) return show();
      --frames_;
    }
    return {};
  }

  Next next = Next::kEnd;
  std::string_view key;  // The record's key; for a page, the lower bound of the keys below.
  PageNumber page = 0;
  unsigned height = 0;  // 1 for a leaf.
  // The record's value, or the number of the value's first page, and the length.
  std::string_view value;
  std::uint32_t value_bytes = 0;
  std::uint16_t flags = 0;

 private:
  struct Level {
    std::vector<std::byte> bytes;
    std::string low;
    PageNumber number = 0;
    unsigned height = 0;
    std::size_t at = 0;
    std::size_t count = 0;
  };

  Result<void> read(PageNumber number, std::span<std::byte> out) const {
    for (std::size_t got = 0; got < out.size();) {
      const auto at = static_cast<off_t>(number * page_bytes_ + got);
      const auto n = ::pread(fd_, out.data() + got, out.size() - got, at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::io_error("catalog: read a page", errno);
      if (n == 0) return odd_page(number);
      got += static_cast<std::size_t>(n);
    }
    return {};
  }

  // Sets the members from the current node of the innermost page.
  Result<void> show() {
    const auto& level = levels_[frames_ - 1];
    const auto* const bytes = level.bytes.data();
    const std::size_t at = number_at<std::uint16_t>(bytes + kPageHeader + 2 * level.at);
    if (at < kPageHeader || at + kNodeHeader > page_bytes_) return odd_page(level.number);
    const auto* const node = bytes + at;
    const auto low = number_at<std::uint32_t>(node);
    flags = number_at<std::uint16_t>(node + 4);
    const std::size_t key_bytes = number_at<std::uint16_t>(node + 6);
    const auto room = page_bytes_ - at - kNodeHeader;
    if (key_bytes > room) return odd_page(level.number);
    const auto* const text = reinterpret_cast<const char*>(node) + kNodeHeader;
    key = {text, key_bytes};
    height = level.height - 1;
    if (level.height > 1) {
      next = Next::kPage;
      page = low | (PageNumber{flags} << 32);
      // The first key of a branch stands for all keys less than the second key.
      if (level.at == 0) key = level.low;
      return {};
    }
    next = Next::kRecord;
    value_bytes = low;
    const std::size_t here = (flags & kValueElsewhere) != 0 ? sizeof(PageNumber) : low;
    if (here > room - key_bytes || (flags & ~kValueElsewhere) != 0) return odd_page(level.number);
    value = {text + key_bytes, here};
    ++work_.records;
    return {};
  }

  const int fd_;
  const std::size_t page_bytes_;
  TreeWork& work_;
  std::vector<Level> levels_;
  std::size_t frames_ = 0;  // Levels in use.
};

bool same_value(const TreeWalk& a, const TreeWalk& b) {
  return a.flags == b.flags && a.value_bytes == b.value_bytes && a.value == b.value;
}

Result<std::optional<Database>> tree_of(const ReadTxn& txn, const char* table) {
  MDB_val key{std::strlen(table), const_cast<char*>(table)};
  MDB_val value{};
  const int rc = mdb_get(txn.raw(), kTreesTable, &key, &value);
  if (rc == MDB_NOTFOUND) return std::optional<Database>();
  if (rc != 0 || value.mv_size != sizeof(Database)) {
    return Error(ErrorCode::kCorrupt, std::string("catalog: the table ") + table +
                                          " cannot be found: " + mdb_strerror(rc));
  }
  Database tree{};
  std::memcpy(&tree, value.mv_data, sizeof tree);
  return std::optional(tree);
}

// Compares the next steps of two walks, and advances both walks or one of them.
Result<void> step(TreeWalk& a, TreeWalk& b,
                  const std::function<Result<void>(std::string_view)>& visit) {
  const bool both_pages = a.next == Next::kPage && b.next == Next::kPage;
  if (both_pages && a.page == b.page && a.height == b.height) {
    VARVE_TRY(a.pass());
    return b.pass();
  }
  const int order = a.next == Next::kEnd ? 1 : b.next == Next::kEnd ? -1 : a.key.compare(b.key);
  if (order == 0 && a.next == Next::kRecord && b.next == Next::kRecord) {
    if (!same_value(a, b)) VARVE_TRY(visit(a.key));
    VARVE_TRY(a.pass());
    return b.pass();
  }
  if (order == 0 && both_pages && a.height == b.height) {
    VARVE_TRY(a.enter());
    return b.enter();
  }
  // The lesser record is in one tree only; the lesser page may have the other walk's key, too. For
  // equal keys, enters the higher of two pages, and a page before a record.
  bool is_a = order < 0;
  if (order == 0) is_a = both_pages ? a.height > b.height : a.next == Next::kPage;
  auto& first = is_a ? a : b;
  if (first.next == Next::kPage) return first.enter();
  VARVE_TRY(visit(first.key));
  return first.pass();
}

}  // namespace

Result<TreeWork> for_each_changed_key(
    const ReadTxn& before, const ReadTxn& after, std::span<const char* const> tables,
    const std::function<Result<void>(std::size_t table, std::string_view key)>& visit) {
  if (&before.env() != &after.env() || before.id() > after.id()) {
    return Error(ErrorCode::kInvalid, "the snapshots do not follow each other");
  }
  TreeWork work;
  if (before.id() == after.id()) return work;
  int fd = -1;
  mdb_env_get_fd(after.env().raw(), &fd);
  const auto page_bytes = used_bytes(after.env()).page_bytes;
  TreeWalk a(fd, page_bytes, work);
  TreeWalk b(fd, page_bytes, work);
  for (std::size_t table = 0; table < tables.size(); ++table) {
    VARVE_TRY_ASSIGN(const auto old_tree, tree_of(before, tables[table]));
    VARVE_TRY_ASSIGN(const auto new_tree, tree_of(after, tables[table]));
    VARVE_TRY(a.begin(old_tree));
    VARVE_TRY(b.begin(new_tree));
    const auto visit_here = [&](std::string_view key) { return visit(table, key); };
    while (a.next != Next::kEnd || b.next != Next::kEnd) VARVE_TRY(step(a, b, visit_here));
  }
  return work;
}

}  // namespace varve::meta
