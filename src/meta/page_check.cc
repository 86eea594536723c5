// SPDX-License-Identifier: Apache-2.0
#include "meta/page_check.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "base/system_error.h"
#include "io/posix_file_system.h"
#include "meta/page_format.h"

namespace varve::meta {

namespace {

// 1 TiB of pages: four times the limit of Varve's environments. Bounds the memory of a check.
constexpr PageNumber kPagesMax = PageNumber{1} << 28;
constexpr std::size_t kTablesMax = 128;
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;  // Part of a long value per read.

struct Node {
  std::string_view key;
  std::uint16_t flags = 0;
  PageNumber child = 0;
  std::uint32_t value_bytes = 0;
  // Address in the page of the value, or of the number of the value's first page.
  const std::byte* value = nullptr;
};

enum class Kind { kFree, kMain, kTable };

struct Bounds {
  std::optional<std::string_view> from;   // Lower bound of the keys below a page.
  std::optional<std::string_view> until;  // All keys below the page are less.
};

template <typename Int>
Int load(const std::byte* p) {
  return base::load_le<Int>(p);
}

Error wrong(PageNumber page, const char* what) {
  return {ErrorCode::kCorrupt, "page " + std::to_string(page) + ": " + what};
}

class PageCheck {
 public:
  PageCheck(int fd, std::span<const char* const> tables) : fd_(fd), tables_(tables) {}

  /// Checks all pages. Returns false if the file no longer has the commit.
  Result<bool> run(std::optional<std::uint64_t> commit) {
    VARVE_TRY_ASSIGN(const auto found, read_metas(commit));
    if (!found) return false;
    // The check reads the pages in the order of keys; the advice lets the disk fetch pages before.
    const auto bytes = static_cast<off_t>((found->last_page + 1) * page_bytes_);
    static_cast<void>(::posix_fadvise(fd_, 0, bytes, POSIX_FADV_WILLNEED));
    used_.assign(found->last_page + 1, false);
    piece_.resize(kPieceBytes);
    starts_.assign(page_bytes_ / 2, 0);
    VARVE_TRY(claim(0, 0, kMetaPages));
    newest_ = found->commit;
    VARVE_TRY(check_tree(Kind::kFree, found->free));
    VARVE_TRY(check_tree(Kind::kMain, found->main));
    VARVE_TRY(check_names());
    for (const auto& [name, table] : found_) VARVE_TRY(check_tree(Kind::kTable, table));
    return true;
  }

 private:
  struct Level {
    std::vector<std::byte> page;
    std::vector<Node> nodes;
  };
  struct Counts {
    std::uint64_t branch_pages = 0;
    std::uint64_t leaf_pages = 0;
    std::uint64_t value_pages = 0;
    std::uint64_t entries = 0;
  };
  struct Tree {
    Kind kind = Kind::kTable;
    unsigned depth = 0;
    Counts counts;
  };

  Result<void> read(PageNumber page, std::size_t offset, std::span<std::byte> out) {
    const auto at = page * page_bytes_ + offset;
    std::size_t got = 0;
    while (got < out.size()) {
      const auto n = ::pread(fd_, out.data() + got, out.size() - got, static_cast<off_t>(at + got));
      if (n == 0) return wrong(page, "the file ends before it");
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::io_error("the disk cannot read it", errno);
      got += static_cast<std::size_t>(n);
    }
    return {};
  }

  Result<Meta> read_meta(PageNumber page) {
    std::array<std::byte, kPageHeader + kMetaBytes> bytes;
    VARVE_TRY(read(page, 0, bytes));
    const auto meta = load<Meta>(bytes.data() + kPageHeader);
    if (load<PageNumber>(bytes.data()) != page ||
        load<std::uint16_t>(bytes.data() + kFlagsAt) != kMeta || meta.magic != kMagic ||
        meta.version != kFormatVersion) {
      return wrong(page, "it is not a meta page");
    }
    const std::size_t page_bytes = meta.free.page_bytes;
    if (!std::has_single_bit(page_bytes) || page_bytes < kPageBytesMin ||
        page_bytes > kPageBytesMax || (page != 0 && page_bytes != page_bytes_)) {
      return wrong(page, "its page size is wrong");
    }
    if (meta.free.flags != kIntegerKeys || meta.main.flags != 0) return wrong(page, "its flags");
    return meta;
  }

  Result<std::optional<Meta>> read_metas(std::optional<std::uint64_t> commit) {
    VARVE_TRY_ASSIGN(auto first, read_meta(0));
    page_bytes_ = first.free.page_bytes;
    VARVE_TRY_ASSIGN(auto second, read_meta(1));
    if (commit) {
      // Another process may be committing: each meta page counts alone, and a torn page is read
      // again. The commit number only grows, so neither page is from before the last commit but
      // one.
      if (std::min(first.commit, second.commit) + 1 < *commit) {
        return wrong(first.commit < second.commit ? 0 : 1,
                     "it does not belong to an adjacent commit");
      }
      if (first.commit != *commit && second.commit != *commit) return std::optional<Meta>();
    } else if (first.commit != 0 || second.commit != 0) {
      // LMDB writes the two meta pages in turn.
      if (first.commit % 2 != 0 || second.commit % 2 != 1 ||
          std::max(first.commit, second.commit) - std::min(first.commit, second.commit) != 1) {
        return wrong(first.commit % 2 == 0 ? 1 : 0, "it does not belong to an adjacent commit");
      }
    }
    const bool is_first = commit ? first.commit == *commit : first.commit > second.commit;
    const auto& meta = is_first ? first : second;
    struct stat file {};
    if (::fstat(fd_, &file) != 0) return base::io_error("cannot examine the file", errno);
    const auto pages = static_cast<std::uint64_t>(file.st_size) / page_bytes_;
    if (meta.last_page >= std::min(pages, kPagesMax) || meta.last_page + 1 < kMetaPages) {
      return wrong(is_first ? 0 : 1, "the last page is not in the file");
    }
    return std::optional(meta);
  }

  // Marks pages as used, each page once. `by` is the page that holds the pages' number.
  Result<void> claim(PageNumber by, PageNumber first, std::uint64_t count) {
    if (first > used_.size() || count > used_.size() - first) {
      return wrong(by, "it refers to a page beyond the last one");
    }
    for (auto page = first; page < first + count; ++page) {
      if (used_[page]) return wrong(page, "it is used twice");
      used_[page] = true;
    }
    return {};
  }

  Result<void> check_tree(Kind kind, const Database& said) {
    Tree tree;
    tree.kind = kind;
    tree.depth = said.depth;
    if (said.depth > kDepthMax) return wrong(said.root, "the depth of its tree is wrong");
    if (said.root != kNoPage) {
      if (said.depth == 0) return wrong(said.root, "its tree has no depth");
      VARVE_TRY(check_page(tree, kMetaPages - 1, said.root, 1, {}));
    } else if (said.depth != 0) {
      return wrong(kMetaPages - 1, "a tree without a root has pages");
    }
    const auto& found = tree.counts;
    if (found.branch_pages != said.branch_pages || found.leaf_pages != said.leaf_pages ||
        found.value_pages != said.value_pages || found.entries != said.entries) {
      return wrong(said.root,
                   "its tree has a different number of pages or entries than its record says");
    }
    return {};
  }

  Result<void> check_page(Tree& tree, PageNumber parent, PageNumber number, unsigned depth,
                          const Bounds& bounds) {
    VARVE_TRY(claim(parent, number, 1));
    const bool is_leaf = depth == tree.depth;
    auto& level = levels_[depth];
    level.page.resize(page_bytes_);
    VARVE_TRY(read(number, 0, level.page));
    VARVE_TRY(read_nodes(number, is_leaf, level));
    VARVE_TRY(check_order(tree.kind, number, is_leaf, level.nodes, bounds));
    if (is_leaf) {
      ++tree.counts.leaf_pages;
      tree.counts.entries += level.nodes.size();
      for (const auto& node : level.nodes) VARVE_TRY(check_entry(tree, number, node));
      return {};
    }
    ++tree.counts.branch_pages;
    for (std::size_t i = 0; i < level.nodes.size(); ++i) {
      Bounds of_child = bounds;
      if (i > 0) of_child.from = level.nodes[i].key;
      if (i + 1 < level.nodes.size()) of_child.until = level.nodes[i + 1].key;
      VARVE_TRY(check_page(tree, number, level.nodes[i].child, depth + 1, of_child));
    }
    return {};
  }

  // Reads the nodes of a page. In LMDB's layout, the nodes fill the page from `upper` on.
  Result<void> read_nodes(PageNumber number, bool is_leaf, Level& level) {
    const auto* page = level.page.data();
    const std::uint16_t flags = is_leaf ? kLeaf : kBranch;
    if (load<PageNumber>(page) != number) return wrong(number, "it has another page's number");
    if (load<std::uint16_t>(page + kFlagsAt) != flags) return wrong(number, "its flags");
    const std::size_t lower = load<std::uint16_t>(page + kLowerAt);
    const std::size_t upper = load<std::uint16_t>(page + kUpperAt);
    if (lower < kPageHeader || lower % 2 != 0 || upper % 2 != 0 || lower > upper ||
        upper > page_bytes_) {
      return wrong(number, "the bounds of its free space are wrong");
    }
    const auto count = (lower - kPageHeader) / 2;
    if (count < (is_leaf ? 1 : 2)) return wrong(number, "it has too few nodes");
    level.nodes.clear();
    std::fill(starts_.begin(), starts_.end(), std::uint16_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = load<std::uint16_t>(page + kPageHeader + 2 * i);
      if (at < upper || at % 2 != 0 || at > page_bytes_ - kNodeHeader || starts_[at / 2] != 0) {
        return wrong(number, "the offset of a node is wrong");
      }
      VARVE_TRY_ASSIGN(const auto bytes, read_node(number, is_leaf, i == 0, at, level));
      starts_[at / 2] = static_cast<std::uint16_t>(bytes + bytes % 2);
    }
    std::size_t at = upper;
    std::size_t met = 0;
    for (; at < page_bytes_ && starts_[at / 2] != 0; ++met) at += starts_[at / 2];
    if (at != page_bytes_ || met != count) return wrong(number, "its nodes leave gaps or overlap");
    return {};
  }

  // Returns the number of bytes of the node in the page.
  Result<std::size_t> read_node(PageNumber number, bool is_leaf, bool is_first, std::size_t at,
                                Level& level) {
    const auto* start = level.page.data() + at;
    const auto low = load<std::uint32_t>(start);
    const auto flags = load<std::uint16_t>(start + 4);
    const std::size_t key_bytes = load<std::uint16_t>(start + 6);
    std::size_t bytes = kNodeHeader + key_bytes;
    // The first key of a branch page represents all keys less than the second key.
    if (key_bytes > kKeyBytesMax || (key_bytes == 0 && (is_leaf || !is_first))) {
      return wrong(number, "the length of a key is wrong");
    }
    Node node;
    node.key = {reinterpret_cast<const char*>(start) + kNodeHeader, key_bytes};
    if (is_leaf) {
      const auto long_from = (page_bytes_ - kPageHeader) / 2 / 2 * 2 - 2;
      node.flags = flags;
      node.value_bytes = low;
      node.value = start + bytes;
      const bool elsewhere = (flags & kValueElsewhere) != 0;
      bytes += elsewhere ? sizeof(PageNumber) : low;
      if (!elsewhere && bytes > long_from) return wrong(number, "the length of a value is wrong");
    } else {
      node.child = low | (PageNumber{flags} << 32);
    }
    if (bytes > page_bytes_ - at) return wrong(number, "the length of a node is wrong");
    level.nodes.push_back(node);
    return bytes;
  }

  static bool is_less(Kind kind, std::string_view a, std::string_view b) {
    if (kind != Kind::kFree) return a < b;
    return load<std::uint64_t>(base::as_bytes(a).data()) <
           load<std::uint64_t>(base::as_bytes(b).data());
  }

  Result<void> check_order(Kind kind, PageNumber number, bool is_leaf,
                           const std::vector<Node>& nodes, const Bounds& bounds) const {
    const std::string_view* before = bounds.from ? &*bounds.from : nullptr;
    bool may_be_equal = is_leaf;
    for (std::size_t i = is_leaf ? 0 : 1; i < nodes.size(); ++i) {
      const auto& key = nodes[i].key;
      if (kind == Kind::kFree && key.size() != sizeof(std::uint64_t)) {
        return wrong(number, "the length of a commit's number is wrong");
      }
      if (before != nullptr && !(is_less(kind, *before, key) || (may_be_equal && *before == key))) {
        return wrong(number, "its keys do not ascend");
      }
      before = &key;
      may_be_equal = false;
    }
    if (bounds.until && !is_less(kind, nodes.back().key, *bounds.until)) {
      return wrong(number, "its keys do not ascend");
    }
    return {};
  }

  Result<void> check_entry(Tree& tree, PageNumber number, const Node& node) {
    const bool elsewhere = (node.flags & kValueElsewhere) != 0;
    if (tree.kind == Kind::kMain) {
      if (node.flags != kDatabase || node.value_bytes != kDatabaseBytes ||
          found_.size() >= kTablesMax) {
        return wrong(number, "the record of a table is malformed");
      }
      const auto table = load<Database>(node.value);
      if (table.flags != 0) return wrong(number, "the flags of a table are wrong");
      found_.emplace_back(node.key, table);
      return {};
    }
    if ((node.flags & ~kValueElsewhere) != 0)
      return wrong(number, "the flags of an entry are wrong");
    if (tree.kind == Kind::kFree) {
      const auto commit = load<std::uint64_t>(base::as_bytes(node.key).data());
      if (commit == 0 || commit > newest_)
        return wrong(number, "it lists pages that a later commit freed");
      free_left_ = 0;
      free_before_ = used_.size();
      if (node.value_bytes < sizeof(PageNumber))
        return wrong(number, "a list of free pages is malformed");
    }
    if (elsewhere) {
      VARVE_TRY(check_long_value(tree, number, load<PageNumber>(node.value), node.value_bytes));
    } else if (tree.kind == Kind::kFree) {
      VARVE_TRY(check_free(number, {node.value, node.value_bytes}, node.value_bytes));
    }
    return {};
  }

  Result<void> check_long_value(Tree& tree, PageNumber by, PageNumber first, std::uint64_t bytes) {
    VARVE_TRY(claim(by, first, 1));
    std::array<std::byte, kPageHeader> header;
    VARVE_TRY(read(first, 0, header));
    const std::uint64_t pages = load<std::uint32_t>(header.data() + kValuePagesAt);
    if (load<PageNumber>(header.data()) != first ||
        load<std::uint16_t>(header.data() + kFlagsAt) != kLongValue) {
      return wrong(first, "it is not a long value");
    }
    if (pages == 0 || pages * page_bytes_ < kPageHeader + bytes) {
      return wrong(first, "its value has too few pages");
    }
    VARVE_TRY(claim(by, first + 1, pages - 1));
    tree.counts.value_pages += pages;
    for (std::uint64_t done = 0; done < bytes;) {
      const auto part = std::min<std::uint64_t>(bytes - done, piece_.size());
      const auto out = std::span(piece_).first(part);
      VARVE_TRY(read(first, kPageHeader + done, out));
      if (tree.kind == Kind::kFree) VARVE_TRY(check_free(first, out, done == 0 ? bytes : 0));
      done += part;
    }
    return {};
  }

  // Checks the next part of a list of free pages: the count of pages, then the page numbers,
  // descending. `bytes` is the length of the whole list for the first part, and 0 later.
  Result<void> check_free(PageNumber by, std::span<const std::byte> part, std::uint64_t bytes) {
    if (bytes != 0) {
      free_left_ = load<std::uint64_t>(part.data());
      if (free_left_ > bytes / sizeof(PageNumber) - 1)
        return wrong(by, "a list of free pages is malformed");
      part = part.subspan(sizeof(PageNumber));
    }
    for (; free_left_ > 0 && part.size() >= sizeof(PageNumber); --free_left_) {
      const auto page = load<PageNumber>(part.data());
      part = part.subspan(sizeof(PageNumber));
      if (page >= free_before_) return wrong(by, "its free pages do not descend");
      VARVE_TRY(claim(by, page, 1));
      free_before_ = page;
    }
    return {};
  }

  // A writer creates a missing table. If a table's name is damaged, a writer would create the table
  // again without entries.
  Result<void> check_names() const {
    std::size_t known = 0;
    std::size_t others = 0;
    for (const auto& [name, table] : found_) {
      if (name == kSealTable) continue;
      ++(std::count(tables_.begin(), tables_.end(), name) != 0 ? known : others);
    }
    if (known < tables_.size() && others != 0) {
      return Error(ErrorCode::kCorrupt, "a table has a wrong name");
    }
    return {};
  }

  const int fd_;
  const std::span<const char* const> tables_;
  std::size_t page_bytes_ = 0;
  std::uint64_t newest_ = 0;
  std::vector<bool> used_;
  std::array<Level, kDepthMax + 1> levels_;
  // Index: half of the offset of a node in the page. Value: the bytes of the node.
  std::vector<std::uint16_t> starts_;
  std::vector<std::byte> piece_;
  std::vector<std::pair<std::string, Database>> found_;  // Tables, in the order of the names.
  std::uint64_t free_left_ = 0;  // Pages to come in the current list of free pages.
  PageNumber free_before_ = 0;   // The last page read from the current list.
};

}  // namespace

Result<void> check_pages(const EnvFiles& files, std::span<const char* const> tables) {
  const auto checked = PageCheck(files.data(), tables).run(std::nullopt);
  if (!checked) return checked.error();
  return {};
}

Result<void> check_pages(io::FileSystem& files, const std::string& directory,
                         std::span<const char* const> tables) {
  const auto file = files.descriptor(directory + "/data.mdb", io::OpenMode::kRead);
  if (!file && file.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kCorrupt, "it is missing");
  }
  if (!file) return file.error();
  const auto checked = PageCheck(file->get(), tables).run(std::nullopt);
  if (!checked) return checked.error();
  return {};
}

Result<void> check_pages(const std::string& directory, std::span<const char* const> tables) {
  return check_pages(*io::make_posix_file_system(), directory, tables);
}

Result<void> check_pages(const Env& env, std::span<const char* const> tables) {
  int fd = -1;
  mdb_env_get_fd(env.raw(), &fd);
  constexpr int kRoundsMax = 100;
  for (int round = 0; round < kRoundsMax; ++round) {
    // While the transaction is open, LMDB reuses no page of the snapshot.
    VARVE_TRY_ASSIGN(const auto txn, ReadTxn::begin(env));
    const auto checked = PageCheck(fd, tables).run(txn.id());
    if (!checked) return checked.error();
    if (*checked) return {};
  }
  return Error(ErrorCode::kBusy, "the catalog changes faster than its pages can be checked");
}

}  // namespace varve::meta
