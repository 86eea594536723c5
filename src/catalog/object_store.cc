// SPDX-License-Identifier: Apache-2.0
#include "catalog/object_store.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <zstd.h>

#include <functional>
#include <unordered_set>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/container.h"
#include "format/dir_entry_codec.h"
#include "format/recipe_decoder.h"
#include "meta/schema.h"
#include "varve/options.h"

namespace varve::catalog {

namespace {

// ObjectRecord: XXH3-64 of the raw bytes u64, codec u8, raw length varint, payload.
constexpr int kZstdLevel = 3;
constexpr std::size_t kCompressFrom = 128;
constexpr std::uint64_t kObjectBytesMax = 1ULL << 30;
// The writer makes frames with windows of at most 2 MiB.
constexpr int kWindowLogMax = 23;
constexpr std::size_t kPieceBytes = std::size_t{128} << 10;

std::string encode_with(std::string_view raw, std::uint64_t checksum) {
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

struct ObjectRecord {
  std::uint64_t checksum = 0;
  Codec codec = Codec::kNone;
  std::uint64_t raw_bytes = 0;
  std::string_view payload;
};

// Splits a record into its fields. Returns nullopt if the lengths contradict each other.
std::optional<ObjectRecord> parse_record(std::string_view record) {
  base::ByteReader r(record);
  ObjectRecord object;
  object.checksum = r.u64();
  const auto codec = r.u8();
  object.codec = static_cast<Codec>(codec);
  object.raw_bytes = r.varint();
  object.payload = r.text(r.left());
  if (!r.ok() || object.raw_bytes > kObjectBytesMax) return std::nullopt;
  const bool fits = object.codec == Codec::kNone
                        ? object.payload.size() == object.raw_bytes
                        : object.codec == Codec::kZstd &&
                              ZSTD_getFrameContentSize(object.payload.data(),
                                                       object.payload.size()) == object.raw_bytes;
  return fits ? std::optional(object) : std::nullopt;
}

// Passes an object's raw bytes to `take` in pieces, then verifies the length and checksum. Stops
// when `take` returns false. Bounds the memory even for a forged record.
bool for_each_piece(const ObjectRecord& object,
                    const std::function<bool(std::string_view piece, bool last)>& take) {
  if (object.codec == Codec::kNone) {
    return take(object.payload, true) &&
           base::checksum64(base::as_bytes(object.payload)) == object.checksum;
  }
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (!context || ZSTD_isError(ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax,
                                                      kWindowLogMax)) != 0U) {
    return false;
  }
  base::ChecksumStream checksum;
  std::string piece(kPieceBytes, '\0');
  ZSTD_inBuffer in{object.payload.data(), object.payload.size(), 0};
  std::uint64_t done = 0;
  while (true) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const std::size_t state = ZSTD_decompressStream(context.get(), &out, &in);
    const bool last = state == 0;
    done += out.pos;
    if (ZSTD_isError(state) != 0U || done > object.raw_bytes) return false;
    if (!last && out.pos < out.size && in.pos == in.size) return false;  // The frame is truncated.
    const std::string_view got(piece.data(), out.pos);
    checksum.add(base::as_bytes(got));
    if (!take(got, last)) return false;
    if (last) break;
  }
  return in.pos == in.size && done == object.raw_bytes && checksum.sum() == object.checksum;
}

Error damaged_object(format::NodeId id, const char* what) {
  return {ErrorCode::kCorrupt,
          fmt::format("catalog: object {}.{} {}", id.value >> 32, id.value & 0xffffffffU, what)};
}

bool decode_recipe_record(std::string_view record, format::RecipeDecoder& decoder) {
  const auto object = parse_record(record);
  if (!object) return false;
  std::string waiting;  // The bytes not decoded yet.
  bool started = false;
  const auto take = [&](std::string_view piece, bool last) {
    waiting += piece;
    if (!started) {
      if (waiting.empty()) return !last;
      if (static_cast<format::NodeKind>(waiting.front()) != format::NodeKind::kRecipe) return false;
      waiting.erase(0, 1);
      started = true;
    }
    const auto used = decoder.take(base::as_bytes(waiting), last);
    if (used) waiting.erase(0, *used);
    return used.has_value();
  };
  return for_each_piece(*object, take);
}

// Calls `visit(table, id, span)` for each object referenced by a page. `span` is
// format::span_of_page of a referenced page, and 0 for a recipe.
template <typename Visit>
void for_each_reference(const format::DirPage& page, Visit&& visit) {
  if (const auto* leaf = std::get_if<format::LeafPage>(&page)) {
    for (const auto& entry : leaf->entries) {
      if ((entry.mode & S_IFMT) == S_IFDIR) {
        visit(meta::catalog::kNodes, entry.child, entry.subtree_entries);
      } else if ((entry.mode & S_IFMT) == S_IFREG && !entry.recipe) {
        visit(meta::catalog::kRecipes, entry.recipe_id, std::uint64_t{0});
      }
    }
  } else {
    for (const auto& ref : std::get<format::InnerPage>(page).refs) {
      visit(meta::catalog::kNodes, ref.page, ref.subtree_entries);
    }
  }
}

}  // namespace

std::size_t object_bytes_max(meta::TableIndex table) {
  return table == meta::catalog::kNodes ? format::kDirPageBytesMax : kObjectBytesMax;
}

std::string encode_object(std::string_view raw) {
  return encode_with(raw, base::checksum64(base::as_bytes(raw)));
}

Result<std::string> decode_object(format::NodeId id, std::string_view record,
                                  std::size_t bytes_max) {
  const auto object = parse_record(record);
  if (!object || object->raw_bytes > bytes_max) return damaged_object(id, "has a bad record");
  std::string raw;
  if (object->codec == Codec::kNone) {
    raw = object->payload;
  } else {
    raw.resize(object->raw_bytes);
    const std::size_t n =
        ZSTD_decompress(raw.data(), raw.size(), object->payload.data(), object->payload.size());
    if (n != object->raw_bytes) return damaged_object(id, "does not decompress");
  }
  if (base::checksum64(base::as_bytes(raw)) != object->checksum) {
    return damaged_object(id, "does not match its checksum");
  }
  return raw;
}

Result<std::string> ObjectReader::raw(meta::TableIndex table, format::NodeId id,
                                      std::size_t bytes_max) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(table, meta::object_key(series_, id.value)));
  if (!value) return damaged_object(id, "is missing");
  return decode_object(id, *value, bytes_max);
}

Result<std::uint64_t> ObjectReader::checksum(meta::TableIndex table, format::NodeId id) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(table, meta::object_key(series_, id.value)));
  if (!value || value->size() < sizeof(std::uint64_t)) return damaged_object(id, "is missing");
  return base::ByteReader(*value).u64();
}

Result<std::shared_ptr<const format::DirPage>> ObjectReader::page(format::NodeId id) {
  VARVE_TRY_ASSIGN(auto found, find_page(id));
  return std::move(found.page);
}

Result<std::shared_ptr<const format::DirPage>> ObjectReader::page(format::NodeId id,
                                                                  std::uint64_t span) {
  VARVE_TRY_ASSIGN(auto found, find_page(id));
  if (found.span != span) {
    return damaged_object(id, "has a different number of entries than its reference says");
  }
  return std::move(found.page);
}

Result<PageCache::Page> ObjectReader::find_page(format::NodeId id) {
  const PageCache::Key key{series_, id.value};
  if (auto cached = cache_.find(key)) return *std::move(cached);
  VARVE_TRY_ASSIGN(const auto bytes, raw(meta::catalog::kNodes, id, format::kDirPageBytesMax));
  auto decoded = format::decode_dir_page(bytes);
  if (!decoded) return std::move(decoded).error();
  bool older = true;
  for_each_reference(*decoded, [&](meta::TableIndex, format::NodeId child, std::uint64_t) {
    older = older && child < id;
  });
  if (!older) return damaged_object(id, "refers to an object that is not older");
  const std::size_t memory = format::memory_of_page(*decoded);
  PageCache::Page found{nullptr, format::span_of_page(*decoded)};
  found.page = std::make_shared<const format::DirPage>(std::move(*decoded));
  cache_.add(key, found, memory);
  return found;
}

Result<void> ObjectReader::decode_recipe(format::NodeId id, std::uint64_t file_bytes,
                                         format::RecipeDecoder& decoder) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kRecipes, meta::object_key(series_, id.value)));
  if (!value) return damaged_object(id, "is missing");
  if (!decode_recipe_record(*value, decoder))
    return damaged_object(id, "is not a recipe, or is damaged");
  if (file_bytes != format::kAnyFileBytes && decoder.bytes() != file_bytes) {
    return damaged_object(id, "does not fit its file's size");
  }
  return {};
}

Result<std::shared_ptr<const format::Recipe>> ObjectReader::recipe(format::NodeId id,
                                                                   std::uint64_t file_bytes) {
  format::RecipeDecoder decoder(file_bytes);
  VARVE_TRY(decode_recipe(id, file_bytes, decoder));
  return std::make_shared<const format::Recipe>(decoder.finish());
}

Result<void> ObjectReader::for_each_run(format::NodeId id, std::uint64_t file_bytes,
                                        const format::RecipeDecoder::Visitor& visit) {
  format::RecipeDecoder decoder(file_bytes, visit);
  return decode_recipe(id, file_bytes, decoder);
}

Result<PreviousObjects> PreviousObjects::collect(ObjectReader& objects, format::NodeId root) {
  PreviousObjects previous;
  const auto note = [&](meta::TableIndex table, format::NodeId id) -> Result<void> {
    VARVE_TRY_ASSIGN(const auto sum, objects.checksum(table, id));
    previous.by_checksum_.emplace(std::pair(table, sum), id);
    return {};
  };
  std::vector<format::NodeId> waiting{root};
  std::unordered_set<std::uint64_t> seen;
  while (!waiting.empty()) {
    const auto id = waiting.back();
    waiting.pop_back();
    if (!seen.insert(id.value).second) continue;
    VARVE_TRY(note(meta::catalog::kNodes, id));
    VARVE_TRY_ASSIGN(const auto page, objects.page(id));
    const bool inner = std::holds_alternative<format::InnerPage>(*page);
    std::vector<format::NodeId> recipes;
    for_each_reference(*page, [&](meta::TableIndex table, format::NodeId child, std::uint64_t) {
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
  const auto checksum = base::checksum64(base::as_bytes(raw));
  const auto [first, last] = previous.by_checksum_.equal_range({table, checksum});
  for (auto it = first; it != last; ++it) {
    const auto stored = reader_.raw(table, it->second, raw.size());
    if (stored && *stored == raw) return it->second;  // A damaged object is stored again.
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
