// SPDX-License-Identifier: Apache-2.0
// Changes of the catalog and of the map of objects, in the form of catalog objects.
// docs/FORMAT.md §15.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::remote {

/// The map of objects in the table numbers of changes.
inline constexpr std::uint8_t kObjectsTable = 255;
/// Returns the names of the catalog's tables, by their numbers in changes. The last table holds the
/// salt of an encrypted environment.
[[nodiscard]] const std::vector<const char*>& catalog_tables();

/// A written or removed record.
struct Change {
  std::uint8_t table = 0;  ///< Index in catalog_tables(), or kObjectsTable.
  std::string_view key{};
  std::optional<std::string_view> value{};  ///< The stored value; nullopt for a removed record.
};

/// Collects changes in parts, each part the content of one catalog object.
class ChangeWriter {
 public:
  void add(const Change& change);
  [[nodiscard]] bool empty() const { return parts_.empty() && raw_.empty(); }
  /// Returns the parts. Call it once, after all changes.
  [[nodiscard]] std::vector<std::string> finish();

 private:
  void end_part();
  std::string raw_;
  std::vector<std::string> parts_;
};

/// Calls `visit` for each change of a part, in order. Errors: kCorrupt; errors of `visit`.
[[nodiscard]] Result<void> for_each_change(std::string_view part,
                                           const std::function<Result<void>(const Change&)>& visit);

/// Adds the changes that turn the catalog `before` into the catalog `after`. Compares all records,
/// and returns the number of records.
[[nodiscard]] Result<std::uint64_t> compare_catalogs(const meta::Txn& before,
                                                     const meta::Txn& after, ChangeWriter& changes);
/// Adds the change of one record, if the record differs.
[[nodiscard]] Result<void> compare_record(const meta::Txn& before, const meta::Txn& after,
                                          std::uint8_t table, std::string_view key,
                                          ChangeWriter& changes);
/// Adds all records of a catalog, and returns the number of records.
[[nodiscard]] Result<std::uint64_t> write_catalog(const meta::Txn& catalog, ChangeWriter& changes);

/// Limit of an object's length. Writers end an object at 64 MiB, or at the next end of a container.
inline constexpr std::uint64_t kExtentBytesMax = std::uint64_t{1} << 30;

/// A part of a file of the repository, stored at the front of an object, behind the lead.
struct Extent {
  std::string object{};            ///< The name; empty for an empty file.
  std::uint64_t bytes = 0;         ///< Bytes of the file: the first bytes behind the lead.
  std::uint64_t object_bytes = 0;  ///< The length of the object.
  std::uint64_t checksum = 0;      ///< XXH3-64 of the whole object.
  /// In the last extent of a replaceable file, a number that differs between contents of the file;
  /// 0 for segments and volumes.
  std::uint64_t mark = 0;
  /// Bytes of the object before the bytes of the file: the lead of a part of labels, otherwise
  /// empty.
  std::string lead{};

  bool operator==(const Extent&) const = default;
};
/// Returns an extent with all bytes of the object, for which the checksum is.
[[nodiscard]] Extent whole_object(Extent extent);
/// Returns whether the object of an extent has a copy: not for segments, volumes and parity.
[[nodiscard]] bool has_copy(std::string_view path, const Extent& extent);
/// The extents of files by path in the repository, each file's extents from its start on.
using ObjectMap = std::map<std::string, std::vector<Extent>>;

/// Return the key and value of a record of the map.
[[nodiscard]] std::string extent_key(const std::string& path, std::uint64_t offset);
[[nodiscard]] std::string encode_extent(const Extent& extent);
/// Decodes a record. Errors: kCorrupt, also for a path that leads out of the repository.
struct ExtentRecord {
  std::string path{};
  std::uint64_t offset = 0;
  Extent extent{};
};
[[nodiscard]] Result<ExtentRecord> decode_extent(std::string_view key, std::string_view value);
/// The changes of a map.
struct MapUpdate {
  std::set<std::string> paths{};  ///< Files whose extents were written or removed.
  std::set<std::string> named{};  ///< Objects of the changed files, and the objects' copies.
  std::set<std::string> gone{};   ///< Former objects and copies that no changed file has now.
};
/// Applies the changes in `parts` to a map, or to an emptied map if `replaces`. The cost is
/// proportional to the changes. Errors: kCorrupt, also if a file has a gap; the map is then
/// unusable.
[[nodiscard]] Result<MapUpdate> update_map(ObjectMap& map, const std::vector<std::string>& parts,
                                           bool replaces);
/// Returns `before` with the changes in `parts`; with `replaces`, an empty map with the changes.
/// Errors: kCorrupt.
[[nodiscard]] Result<ObjectMap> map_after(ObjectMap before, const std::vector<std::string>& parts,
                                          bool replaces);
/// Adds the changes that turn the extents `before` of a file into `after`.
void compare_extents(const std::string& path, const std::vector<Extent>& before,
                     const std::vector<Extent>& after, ChangeWriter& changes);
/// Returns the map consisting of `records`. Errors: kCorrupt, also if a file has a gap.
[[nodiscard]] Result<ObjectMap> map_of(const std::map<std::string, std::string>& records);
/// Returns the length of a file.
[[nodiscard]] std::uint64_t bytes_of(const std::vector<Extent>& extents);
/// Returns the objects that a map names, and the copies of these objects.
[[nodiscard]] std::set<std::string> names_of(const ObjectMap& map);

}  // namespace varve::remote
