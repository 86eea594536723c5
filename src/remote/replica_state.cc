// SPDX-License-Identifier: Apache-2.0
#include "remote/replica_state.h"

#include <array>
#include <utility>

#include "base/coding.h"
#include "meta/schema.h"
#include "remote/lock_order.h"

namespace varve::remote {

namespace {

constexpr std::array<const char*, 5> kTables = {"state", "objects", "uploaded", "garbage", "looks"};
constexpr std::size_t kTablesOptional = 1;  // Tables at the end, unknown to early releases.
constexpr const char* kStateName = "state";
constexpr std::string_view kPendingKey = "pending";
constexpr std::string_view kFencedKey = "fenced";
constexpr std::string_view kTrafficKey = "traffic";

// Of a head after one with all copies, all small objects have copies, too (O64).
Result<void> advance_copies(meta::WriteTxn& txn, std::uint64_t number) {
  std::string before, now;
  {
    VARVE_TRY_ASSIGN(const auto text, txn.get(kState, kHeadKey));
    if (!text) return {};
    VARVE_TRY_ASSIGN(const auto head, decode_head(std::string(text->view())));
    VARVE_TRY_ASSIGN(const auto noted, txn.get(kState, kCopiesKey));
    base::ByteWriter(before).u64(head.number);
    base::ByteWriter(now).u64(number);
    if (!noted || noted->view() != before) return {};
  }
  return txn.put(kState, kCopiesKey, now);
}

Result<meta::Env> open_env(io::FileSystem& files, const std::string& root, const std::string& name,
                           std::span<const char* const> tables, bool read_only) {
  const auto folder = replica_folder(root) + "/" + name;
  if (!read_only) {
    VARVE_TRY(files.make_durable_directory(replica_folder(root)));
    VARVE_TRY(files.make_durable_directory(folder));
  }
  meta::EnvOptions options;
  options.tables = tables;
  if (name == kStateName) options.optional_tables = kTablesOptional;
  options.read_only = read_only;
  options.must_exist = read_only;
  options.writer_lock = store::RepositoryPaths(root).lock();
  options.without_keys = true;
  auto env = meta::Env::open(files, folder, options);
  if (!env) return std::move(env).error().with_context(folder);
  return env;
}

}  // namespace

std::string replica_folder(const std::string& root) { return root + "/replica"; }

Result<ReplicaState> ReplicaState::open(io::FileSystem& files, const std::string& root,
                                        bool read_only) {
  VARVE_TRY_ASSIGN(auto env, open_env(files, root, kStateName, kTables, read_only));
  return ReplicaState(std::make_unique<meta::Env>(std::move(env)));
}

Result<meta::Env> open_copy(io::FileSystem& files, const std::string& root, bool read_only) {
  return open_env(files, root, "catalog", meta::catalog::kTables, read_only);
}

Result<bool> has_state(io::FileSystem& files, const std::string& root) {
  return files.exists(replica_folder(root) + "/state/data.mdb");
}

Result<std::optional<ReplicaState>> find_state(io::FileSystem& files, const std::string& root) {
  VARVE_TRY_ASSIGN(const bool any, has_state(files, root));
  if (!any) return std::optional<ReplicaState>();
  VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files, root, true));
  return std::optional(std::move(state));
}

Result<std::optional<std::string>> ReplicaState::text(std::string_view key) const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(kState, key));
  if (!value) return std::optional<std::string>();
  return std::optional(std::string(value->view()));
}

Result<std::optional<std::string>> ReplicaState::head() const { return text(kHeadKey); }
Result<std::optional<std::string>> ReplicaState::pending() const { return text(kPendingKey); }

Result<std::optional<std::string>> ReplicaState::fenced() const { return text(kFencedKey); }

Result<void> ReplicaState::set_text(std::string_view purpose, std::string_view value) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*env_));
  VARVE_TRY(txn.put(kState, purpose, value));
  return txn.commit();
}

Result<void> ReplicaState::set_fenced(const std::string& message) {
  return set_text(kFencedKey, message);
}

Result<void> ReplicaState::forget_writing() {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*env_));
  for (const auto key : {kPendingKey, kFencedKey}) VARVE_TRY(txn.erase(kState, key));
  VARVE_TRY(txn.clear(kUploaded));
  return txn.commit();
}

Result<void> ReplicaState::set_pending(const std::string& head) {
  return set_text(kPendingKey, head);
}

Result<std::uint64_t> ReplicaState::number(std::string_view purpose) const {
  VARVE_TRY_ASSIGN(const auto value, text(purpose));
  base::ByteReader reader(value ? std::string_view(*value) : std::string_view());
  const auto number = reader.u64();
  return reader.done() ? number : 0;
}

Result<void> ReplicaState::set_number(std::string_view purpose, std::uint64_t value) {
  std::string text;
  base::ByteWriter(text).u64(value);
  return set_text(purpose, text);
}

Result<ObjectMap> ReplicaState::objects() const {
  std::map<std::string, std::string> records;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env_));
  VARVE_TRY(meta::for_each_prefix(
      txn, kObjects, "", [&](std::string_view key, std::string_view value) -> Result<bool> {
        records.emplace(key, value);
        return true;
      }));
  return map_of(records);
}

Result<std::map<std::string, Extent>> ReplicaState::uploaded() const {
  std::map<std::string, Extent> found;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env_));
  VARVE_TRY(meta::for_each_prefix(
      txn, kUploaded, "", [&](std::string_view key, std::string_view value) -> Result<bool> {
        VARVE_TRY_ASSIGN(auto record, decode_extent(key, value));
        found.emplace(key, std::move(record.extent));
        return true;
      }));
  return found;
}

Result<void> ReplicaState::add_uploaded(const std::string& key, const Extent& extent,
                                        const std::string& etag) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*env_));
  VARVE_TRY(txn.put(kUploaded, key, encode_extent(extent)));
  if (!etag.empty()) VARVE_TRY(txn.put(kState, etag_key(extent.object), etag));
  return txn.commit();
}

Result<void> ReplicaState::commit(const std::string& head, const std::vector<std::string>& map,
                                  bool replaces_map, const std::set<std::string>& dropped,
                                  std::int64_t seconds, std::uint64_t number,
                                  const std::map<std::string, FileLook>& looks) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*env_));
  VARVE_TRY_ASSIGN(auto locks, LockOrder::open(txn));
  if (replaces_map) VARVE_TRY(txn.clear(kObjects));
  for (const auto& part : map) {
    VARVE_TRY(for_each_change(part, [&](const Change& change) -> Result<void> {
      if (change.table != kObjectsTable) return {};
      if (!change.value) {
        const auto path = change.key.substr(0, change.key.find('\0'));
        const auto erased = path.empty() ? Result<void>() : txn.erase(kLooks, path);
        return erased ? txn.erase(kObjects, change.key) : erased;
      }
      const auto record = decode_extent(change.key, *change.value);
      if (!record) return record.error();
      auto added = locks.add(record->extent.object);
      if (added && has_copy(record->path, record->extent)) {
        added = locks.add(copy_name(record->extent.object));
      }
      if (!added) return added;
      return txn.put(kObjects, change.key, *change.value);
    }));
  }
  VARVE_TRY(locks.change_head(head));
  for (const auto& [path, look] : looks) VARVE_TRY(txn.put(kLooks, path, encode_look(look)));
  const auto note = garbage_note(seconds, number);
  for (const auto& name : dropped) {
    VARVE_TRY(txn.put(kGarbage, name, note));
    VARVE_TRY(locks.drop(name));
    VARVE_TRY(txn.erase(kState, etag_key(name)));
  }
  VARVE_TRY(advance_copies(txn, number));
  VARVE_TRY(txn.put(kState, kHeadKey, head));
  VARVE_TRY(txn.erase(kState, kPendingKey));
  VARVE_TRY(txn.clear(kUploaded));
  return txn.commit();
}

Result<std::optional<FileLook>> ReplicaState::look(const std::string& path) const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(kLooks, path));
  return value ? decode_look(value->view()) : std::optional<FileLook>();
}

// Of two extents at the same place of a file, the longer extent stays.
Result<void> ReplicaState::add_objects(const std::vector<std::string>& map) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*env_));
  for (const auto& part : map) {
    VARVE_TRY(for_each_change(part, [&](const Change& change) -> Result<void> {
      if (change.table != kObjectsTable || !change.value) return {};
      VARVE_TRY_ASSIGN(const auto record, decode_extent(change.key, *change.value));
      if (record.extent.mark != 0) return {};
      VARVE_TRY_ASSIGN(const auto known, txn.get(kObjects, change.key));
      if (known) {
        VARVE_TRY_ASSIGN(const auto present, decode_extent(change.key, *known));
        if (present.extent.bytes > record.extent.bytes) return {};
      }
      return txn.put(kObjects, change.key, *change.value);
    }));
  }
  return txn.commit();
}

namespace {

// A newer Varve may append kinds. A kind missing in a short value counts as zeros.
bucket::Traffic decode_traffic(std::string_view value) {
  bucket::Traffic traffic{};
  base::ByteReader reader(value);
  for (auto& one : traffic) {
    bucket::RequestCounts read;
    read.requests = reader.u64();
    read.repeated = reader.u64();
    read.bytes_sent = reader.u64();
    read.bytes_received = reader.u64();
    if (reader.ok()) one = read;
  }
  return traffic;
}

}  // namespace

Result<bucket::Traffic> ReplicaState::traffic() const {
  VARVE_TRY_ASSIGN(const auto value, text(kTrafficKey));
  return value ? decode_traffic(*value) : bucket::Traffic{};
}

Result<void> ReplicaState::add_traffic(const bucket::Traffic& more) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*env_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(kState, kTrafficKey));
  auto sum = value ? decode_traffic(value->view()) : bucket::Traffic{};
  std::string out;
  base::ByteWriter writer(out);
  for (std::size_t kind = 0; kind < sum.size(); ++kind) {
    writer.u64(sum[kind].requests + more[kind].requests);
    writer.u64(sum[kind].repeated + more[kind].repeated);
    writer.u64(sum[kind].bytes_sent + more[kind].bytes_sent);
    writer.u64(sum[kind].bytes_received + more[kind].bytes_received);
  }
  VARVE_TRY(txn.put(kState, kTrafficKey, out));
  return txn.commit();
}

}  // namespace varve::remote
