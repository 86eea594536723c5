// SPDX-License-Identifier: Apache-2.0
#include "version/overlay_names.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/coding.h"
#include "format/dir_entry_codec.h"
#include "meta/schema.h"
#include "version/open_inode.h"

namespace varve::version {

namespace {

constexpr std::size_t kInoBytes = sizeof(Ino);
constexpr std::size_t kNameOverhead = 64;  // Memory of a name beside the name's bytes.
constexpr NameLimits kListed{64, std::size_t{8} << 20};
constexpr std::size_t kKeptBytesMax = std::size_t{16} << 20;

Error bad_name() { return damaged_overlay("a bad name record"); }

std::size_t bytes_of(const OverlayName& name) { return kNameOverhead + name.name.size(); }

bool is_before(const OverlayName& a, const OverlayName& b) { return a.name < b.name; }

// Returns the name of a record: from the key in a plain overlay, otherwise from the value.
Result<OverlayName> decode_name(const meta::Env& overlay, std::string_view key,
                                std::string_view value) {
  const bool sealed = overlay.seal() != nullptr;
  if (key.size() < kInoBytes || value.size() < kInoBytes) return bad_name();
  const auto name = (sealed ? value : key).substr(kInoBytes);
  if (!format::is_entry_name(name) || (!sealed && value.size() != kInoBytes)) return bad_name();
  return OverlayName{std::string(name), base::load_be64(value)};
}

// Calls `visit(name)` for the directory's names in the order of the keys, from a key on. `visit`
// returns false to stop.
template <typename Visit>
Result<void> for_each_name(const meta::Txn& overlay, std::string_view prefix, std::string_view from,
                           const Visit& visit) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(overlay, meta::overlay::kDirents));
  VARVE_TRY_ASSIGN(auto at, cursor.seek(from));
  while (at && at->key.starts_with(prefix)) {
    VARVE_TRY_ASSIGN(auto name, decode_name(overlay.env(), at->key, at->value));
    if (!visit(std::move(name))) return {};
    VARVE_TRY_ASSIGN(at, cursor.next());
  }
  return {};
}

// Walks over all names, and keeps the first names within `bytes_max`. Once the limit is exceeded,
// the kept names are a heap with the last name on top, which gives way to an earlier name.
Result<NameBatch> select_names(const meta::Txn& overlay, std::string_view prefix,
                               std::string_view after, std::size_t bytes_max) {
  NameBatch batch;
  auto& names = batch.names;
  std::optional<std::string> end;  // The first name dropped for lack of memory.
  bool is_heap = false;
  VARVE_TRY(for_each_name(overlay, prefix, prefix, [&](OverlayName name) {
    if (name.name <= after || (end && name.name >= *end)) return true;
    batch.bytes += bytes_of(name);
    names.push_back(std::move(name));
    if (is_heap) {
      std::push_heap(names.begin(), names.end(), is_before);
    } else if (batch.bytes > bytes_max) {
      std::make_heap(names.begin(), names.end(), is_before);
      is_heap = true;
    }
    while (batch.bytes > bytes_max && names.size() > 1) {
      std::pop_heap(names.begin(), names.end(), is_before);
      batch.bytes -= bytes_of(names.back());
      end = std::move(names.back().name);
      names.pop_back();
    }
    return true;
  }));
  if (is_heap) {
    std::sort_heap(names.begin(), names.end(), is_before);
  } else {
    std::sort(names.begin(), names.end(), is_before);
  }
  // The keys are hashes, so only the values show two records of the same name.
  const auto has_name_of = [](const OverlayName& a, const OverlayName& b) {
    return a.name == b.name;
  };
  if (std::ranges::adjacent_find(names, has_name_of) != names.end()) return bad_name();
  batch.more = end.has_value();
  return batch;
}

}  // namespace

std::string name_key(const meta::Env& overlay, Ino directory, std::string_view name) {
  return overlay.key_of_name(meta::ino_key(directory), name);
}

std::string encode_name(const meta::Env& overlay, std::string_view name, Ino ino) {
  auto value = base::be64(ino);
  if (overlay.seal() != nullptr) value.append(name);
  return value;
}

Result<void> for_each_overlay_name(
    const meta::Txn& overlay, const std::function<bool(Ino directory, OverlayName name)>& visit,
    std::string_view prefix) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(overlay, meta::overlay::kDirents));
  VARVE_TRY_ASSIGN(auto at, cursor.seek(prefix));
  while (at && at->key.starts_with(prefix)) {
    VARVE_TRY_ASSIGN(auto name, decode_name(overlay.env(), at->key, at->value));
    if (!visit(base::load_be64(at->key), std::move(name))) return {};
    VARVE_TRY_ASSIGN(at, cursor.next());
  }
  return {};
}

Result<std::optional<Ino>> find_name(const meta::Txn& overlay, Ino directory,
                                     std::string_view name) {
  const auto key = name_key(overlay.env(), directory, name);
  VARVE_TRY_ASSIGN(const auto value, overlay.get(meta::overlay::kDirents, key));
  if (!value) return std::optional<Ino>();
  VARVE_TRY_ASSIGN(const auto found, decode_name(overlay.env(), key, *value));
  if (found.name != name) return bad_name();
  return std::optional(found.ino);
}

Result<NameBatch> read_names(const meta::Txn& overlay, Ino directory, std::string_view after,
                             const NameLimits& limits) {
  const auto prefix = meta::ino_key(directory);
  if (overlay.env().seal() != nullptr) {
    return select_names(overlay, prefix, after, limits.bytes);
  }
  NameBatch batch;
  VARVE_TRY(
      for_each_name(overlay, prefix, std::string(prefix).append(after), [&](OverlayName name) {
        if (name.name == after) return true;
        batch.more = batch.names.size() == limits.names;
        if (batch.more) return false;
        batch.bytes += bytes_of(name);
        batch.names.push_back(std::move(name));
        return true;
      }));
  return batch;
}

Result<std::shared_ptr<const NameBatch>> NameBatches::read(const meta::Txn& overlay, Ino directory,
                                                           std::string_view after) {
  const auto commit = overlay.id();
  std::erase_if(kept_, [&](const Kept& kept) { return kept.commit != commit; });
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    const auto& names = at->batch->names;
    const bool reaches = !at->batch->more || names.back().name > after;
    if (at->directory != directory || at->after > after || !reaches) continue;
    kept_.splice(kept_.begin(), kept_, at);
    return at->batch;
  }
  VARVE_TRY_ASSIGN(auto names, read_names(overlay, directory, after, kListed));
  const auto batch = std::make_shared<const NameBatch>(std::move(names));
  if (overlay.env().seal() == nullptr) return batch;
  kept_.push_front({directory, commit, std::string(after), batch});
  std::size_t bytes = 0;
  std::erase_if(kept_, [&](const Kept& kept) {
    bytes += kNameOverhead + kept.batch->bytes;
    return bytes > kKeptBytesMax;
  });
  return batch;
}

}  // namespace varve::version
