// SPDX-License-Identifier: Apache-2.0
#include "catalog/object_store.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zstd.h>

#include <cerrno>

#include "base/coding.h"
#include "format/container.h"
#include "meta/schema.h"
#include "varve/options.h"

namespace varve::catalog {

namespace {

// ObjectRecord: XXH3-64 of the raw bytes u64, codec u8, raw length varint, payload.
constexpr int kZstdLevel = 3;
constexpr std::size_t kCompressFrom = 128;
constexpr std::uint64_t kObjectBytesMax = 1ULL << 30;

std::string encode_with(const std::string& raw, std::uint64_t checksum) {
  std::string out;
  base::ByteWriter w(out);
  w.u64(checksum);
  if (raw.size() >= kCompressFrom) {
    std::string packed(ZSTD_compressBound(raw.size()), '\0');
    const std::size_t n =
        ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kZstdLevel);
    if (ZSTD_isError(n) == 0U && n + 8 < raw.size()) {
      w.u8(static_cast<std::uint8_t>(Codec::kZstd));
      w.varint(raw.size());
      w.text({packed.data(), n});
      return out;
    }
  }
  w.u8(static_cast<std::uint8_t>(Codec::kNone));
  w.varint(raw.size());
  w.text(raw);
  return out;
}

Error damaged(format::NodeId id, const char* what) {
  return {ErrorCode::kCorrupt,
          fmt::format("catalog: object {}.{} {}", id.value >> 32, id.value & 0xffffffffU, what),
          EIO};
}

// Calls `visit(table, id)` for what a page refers to.
template <typename Visit>
void for_each_reference(const format::DirPage& page, Visit&& visit) {
  if (const auto* leaf = std::get_if<format::LeafPage>(&page)) {
    for (const auto& entry : leaf->entries) {
      if ((entry.mode & S_IFMT) == S_IFDIR) {
        visit(meta::catalog::kNodes, entry.child);
      } else if ((entry.mode & S_IFMT) == S_IFREG && !entry.recipe) {
        visit(meta::catalog::kRecipes, entry.recipe_id);
      }
    }
  } else {
    for (const auto& ref : std::get<format::InnerPage>(page).refs) {
      visit(meta::catalog::kNodes, ref.page);
    }
  }
}

}  // namespace

std::string encode_object(const std::string& raw) {
  return encode_with(raw, format::checksum64(base::as_bytes(raw)));
}

Result<std::string> decode_object(format::NodeId id, std::string_view record) {
  base::ByteReader r(record);
  const std::uint64_t checksum = r.u64();
  const auto codec = static_cast<Codec>(r.u8());
  const std::uint64_t raw_bytes = r.varint();
  const auto payload = r.text(r.left());
  if (!r.ok() || raw_bytes > kObjectBytesMax) return damaged(id, "has a bad record");
  std::string raw;
  if (codec == Codec::kNone && payload.size() == raw_bytes) {
    raw = payload;
  } else if (codec == Codec::kZstd &&
             ZSTD_getFrameContentSize(payload.data(), payload.size()) == raw_bytes) {
    raw.resize(raw_bytes);
    const std::size_t n = ZSTD_decompress(raw.data(), raw.size(), payload.data(), payload.size());
    if (n != raw_bytes) return damaged(id, "does not decompress");
  } else {
    return damaged(id, "has a bad record");
  }
  if (format::checksum64(base::as_bytes(raw)) != checksum) {
    return damaged(id, "does not match its checksum");
  }
  return raw;
}

Result<std::string> ObjectReader::raw(meta::TableIndex table, format::NodeId id) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(table, meta::object_key(series_, id.value)));
  if (!value) return damaged(id, "is missing");
  return decode_object(id, *value);
}

Result<std::uint64_t> ObjectReader::checksum(meta::TableIndex table, format::NodeId id) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(table, meta::object_key(series_, id.value)));
  if (!value || value->size() < sizeof(std::uint64_t)) return damaged(id, "is missing");
  return base::ByteReader(*value).u64();
}

Result<std::shared_ptr<const format::DirPage>> ObjectReader::page(format::NodeId id) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = page_of_.find(id.value);
    if (it != page_of_.end()) {
      pages_.splice(pages_.begin(), pages_, it->second);
      return it->second->second;
    }
  }
  VARVE_TRY_ASSIGN(const auto bytes, raw(meta::catalog::kNodes, id));
  auto decoded = format::decode_dir_page(bytes);
  if (!decoded) return std::move(decoded).error();
  bool older = true;
  for_each_reference(*decoded,
                     [&](meta::TableIndex, format::NodeId child) { older = older && child < id; });
  if (!older) return damaged(id, "refers to an object that is not older");
  auto shared = std::make_shared<const format::DirPage>(std::move(*decoded));
  const std::lock_guard lock(mutex_);
  if (!page_of_.contains(id.value)) {
    pages_.emplace_front(id.value, shared);
    page_of_[id.value] = pages_.begin();
    if (pages_.size() > kPagesCached) {
      page_of_.erase(pages_.back().first);
      pages_.pop_back();
    }
  }
  return shared;
}

Result<std::shared_ptr<const format::Recipe>> ObjectReader::recipe(format::NodeId id) {
  VARVE_TRY_ASSIGN(const auto bytes, raw(meta::catalog::kRecipes, id));
  VARVE_TRY_ASSIGN(auto decoded, format::decode_recipe_object(bytes));
  return std::make_shared<const format::Recipe>(std::move(decoded));
}

Result<PreviousObjects> PreviousObjects::collect(ObjectReader& objects, format::NodeId root) {
  PreviousObjects previous;
  const auto note = [&](meta::TableIndex table, format::NodeId id) -> Result<void> {
    VARVE_TRY_ASSIGN(const auto sum, objects.checksum(table, id));
    previous.by_checksum_.emplace(std::pair(table, sum), id);
    return {};
  };
  std::vector<format::NodeId> waiting{root};
  while (!waiting.empty()) {
    const auto id = waiting.back();
    waiting.pop_back();
    VARVE_TRY(note(meta::catalog::kNodes, id));
    VARVE_TRY_ASSIGN(const auto page, objects.page(id));
    const bool inner = std::holds_alternative<format::InnerPage>(*page);
    std::vector<format::NodeId> recipes;
    for_each_reference(*page, [&](meta::TableIndex table, format::NodeId child) {
      if (inner) waiting.push_back(child);
      if (table == meta::catalog::kRecipes) recipes.push_back(child);
    });
    for (const auto recipe : recipes) VARVE_TRY(note(meta::catalog::kRecipes, recipe));
  }
  return previous;
}

Result<format::NodeId> ObjectWriter::put_page(const format::DirPage& page,
                                              const PreviousObjects& previous) {
  return put(meta::catalog::kNodes, format::encode_dir_page(page), previous);
}

Result<format::NodeId> ObjectWriter::put_recipe(const format::Recipe& recipe,
                                                const PreviousObjects& previous) {
  return put(meta::catalog::kRecipes, format::encode_recipe_object(recipe), previous);
}

Result<format::NodeId> ObjectWriter::put(meta::TableIndex table, const std::string& raw,
                                         const PreviousObjects& previous) {
  const auto checksum = format::checksum64(base::as_bytes(raw));
  const auto [first, last] = previous.by_checksum_.equal_range({table, checksum});
  for (auto it = first; it != last; ++it) {
    const auto stored = reader_.raw(table, it->second);
    if (stored && *stored == raw) return it->second;  // A damaged one is stored anew.
  }
  const auto id = format::NodeId::make(birth_, next_++);
  pending_.push_back({table, id, encode_with(raw, checksum)});
  pending_bytes_ += pending_.back().record.size();
  if (pending_bytes_ > kBatchBytesMax) VARVE_TRY(flush());
  return id;
}

Result<void> ObjectWriter::flush() {
  if (pending_.empty()) return {};
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  for (const auto& object : pending_) {
    VARVE_TRY(txn.put(object.table, meta::object_key(series_, object.id.value), object.record));
  }
  VARVE_TRY(txn.commit());
  new_bytes_ += pending_bytes_;
  pending_.clear();
  pending_bytes_ = 0;
  return {};
}

}  // namespace varve::catalog
