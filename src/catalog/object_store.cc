// SPDX-License-Identifier: Apache-2.0
#include "catalog/object_store.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>

#include "base/coding.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

// ObjectRecord: references u32, codec u8, raw bytes varint, payload.
constexpr std::size_t kReferenceBytes = 4;
constexpr int kZstdLevel = 3;
constexpr std::size_t kCompressFrom = 128;

std::string_view id_text(const format::NodeId& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

std::string encode_object(std::uint32_t references, const std::string& raw) {
  std::string out;
  base::ByteWriter w(out);
  w.u32(references);
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

Error damaged(const format::NodeId& id, const char* what) {
  return {ErrorCode::kCorrupt,
          fmt::format("catalog: object {:02x} {}", fmt::join(id.begin(), id.begin() + 4, ""), what),
          EIO};
}

Result<std::string> decode_object(const format::NodeId& id, std::string_view record) {
  base::ByteReader r(record);
  r.u32();
  const auto codec = static_cast<Codec>(r.u8());
  const std::uint64_t raw_bytes = r.varint();
  const auto payload = r.text(r.left());
  constexpr std::uint64_t kObjectBytesMax = 1ULL << 30;
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
  if (format::node_id(raw) != id) return damaged(id, "does not match its fingerprint");
  return raw;
}

}  // namespace

std::size_t NodeIdHash::operator()(const format::NodeId& id) const {
  return base::load_le<std::size_t>(id.data());
}

Result<std::string> ObjectReader::load(meta::TableIndex table, const format::NodeId& id) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(table, meta::object_key(series_, id_text(id))));
  if (!value) return damaged(id, "is missing");
  return decode_object(id, *value);
}

Result<std::shared_ptr<const format::DirPage>> ObjectReader::page(const format::NodeId& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = page_of_.find(id);
    if (it != page_of_.end()) {
      pages_.splice(pages_.begin(), pages_, it->second);
      return it->second->second;
    }
  }
  VARVE_TRY_ASSIGN(const auto raw, load(meta::catalog::kNodes, id));
  VARVE_TRY_ASSIGN(auto decoded, format::decode_dir_page(raw));
  auto shared = std::make_shared<const format::DirPage>(std::move(decoded));
  const std::lock_guard lock(mutex_);
  if (!page_of_.contains(id)) {
    pages_.emplace_front(id, shared);
    page_of_[id] = pages_.begin();
    if (pages_.size() > kPagesCached) {
      page_of_.erase(pages_.back().first);
      pages_.pop_back();
    }
  }
  return shared;
}

Result<std::shared_ptr<const format::Recipe>> ObjectReader::recipe(const format::NodeId& id) {
  VARVE_TRY_ASSIGN(const auto raw, load(meta::catalog::kRecipes, id));
  VARVE_TRY_ASSIGN(auto decoded, format::decode_recipe_object(raw));
  return std::make_shared<const format::Recipe>(std::move(decoded));
}

Result<format::NodeId> ObjectWriter::put_page(const format::DirPage& page) {
  std::vector<Key> children;
  if (const auto* leaf = std::get_if<format::LeafPage>(&page)) {
    for (const auto& entry : leaf->entries) {
      if ((entry.mode & S_IFMT) == S_IFDIR) {
        children.emplace_back(meta::catalog::kNodes, entry.child);
      } else if ((entry.mode & S_IFMT) == S_IFREG && !entry.recipe) {
        children.emplace_back(meta::catalog::kRecipes, entry.recipe_id);
      }
    }
  } else {
    for (const auto& ref : std::get<format::InnerPage>(page).refs) {
      children.emplace_back(meta::catalog::kNodes, ref.page);
    }
  }
  return put(meta::catalog::kNodes, format::encode_dir_page(page), std::move(children));
}

Result<format::NodeId> ObjectWriter::put_recipe(const format::Recipe& recipe) {
  return put(meta::catalog::kRecipes, format::encode_recipe_object(recipe), {});
}

Result<format::NodeId> ObjectWriter::put(meta::TableIndex table, std::string raw,
                                         std::vector<Key> children) {
  const auto id = format::node_id(raw);
  const Key key(table, id);
  if (pending_.contains(key)) return id;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto stored, txn.get(table, meta::object_key(series_, id_text(id))));
    if (stored) return id;
  }
  pending_bytes_ += raw.size() + children.size() * sizeof(Key);
  pending_.emplace(key, Pending{std::move(raw), std::move(children)});
  if (pending_bytes_ > kBatchBytesMax) VARVE_TRY(flush());
  return id;
}

Result<void> ObjectWriter::flush() {
  if (pending_.empty()) return {};
  std::map<Key, std::uint32_t> references;
  for (const auto& [key, object] : pending_) {
    for (const auto& child : object.children) ++references[child];
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  for (const auto& [key, object] : pending_) {
    const auto counted = references.find(key);
    const auto record =
        encode_object(counted == references.end() ? 0 : counted->second, object.raw);
    if (counted != references.end()) references.erase(counted);
    VARVE_TRY(txn.put(key.first, meta::object_key(series_, id_text(key.second)), record));
    ++new_objects_;
    new_bytes_ += record.size();
  }
  for (const auto& [key, count] : references) VARVE_TRY(add_references(txn, key, count));
  VARVE_TRY(txn.commit());
  pending_.clear();
  pending_bytes_ = 0;
  return {};
}

Result<void> ObjectWriter::add_references(meta::WriteTxn& txn, const Key& key,
                                          std::uint32_t count) {
  const auto object_key = meta::object_key(series_, id_text(key.second));
  VARVE_TRY_ASSIGN(const auto value, txn.get(key.first, object_key));
  if (!value || value->size() < kReferenceBytes) return damaged(key.second, "is missing");
  std::string record(*value);
  auto* bytes = reinterpret_cast<std::byte*>(record.data());
  base::store_le(bytes, base::load_le<std::uint32_t>(bytes) + count);
  return txn.put(key.first, object_key, record);
}

Result<void> ObjectWriter::add_root_reference(meta::WriteTxn& txn, const format::NodeId& root) {
  return add_references(txn, {meta::catalog::kNodes, root}, 1);
}

}  // namespace varve::catalog
