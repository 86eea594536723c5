// SPDX-License-Identifier: Apache-2.0
#include "replica_targets.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/coding.h"
#include "checks.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/lease.h"
#include "support/test_keys.h"
#include "temporary_folder.h"

namespace varve::fuzz {
namespace {

constexpr std::uint64_t kHeadNumbersEnd = 10'000'000'000;  // A name has ten digits.

bool is_refusal(const Error& error) {
  return error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kUnsupported;
}

remote::Head sample_head() {
  remote::Head head;
  head.repository_id = test::kTestRepositoryId;
  head.number = 7;
  head.epoch = 2;
  head.holder = "0123456789abcdef";
  head.seconds = 1'764'000'000;
  head.previous = remote::digest_of("the head before");
  head.commit = 90;
  head.superblock = "varve repository 1\n";
  head.base_objects = 1;
  head.catalog = {{"c/1", 5000, remote::digest_of("1")}, {"c/2", 60, remote::digest_of("2")}};
  return head;
}

// A change whose key and value belong to the object.
struct OwnChange {
  std::uint8_t table = 0;
  std::string key;
  std::optional<std::string> value;

  bool operator==(const OwnChange&) const = default;
};

Result<std::vector<OwnChange>> changes_in(const std::vector<std::string>& parts) {
  std::vector<OwnChange> changes;
  for (const auto& part : parts) {
    VARVE_TRY(remote::for_each_change(part, [&](const remote::Change& one) -> Result<void> {
      changes.push_back({one.table, std::string(one.key), std::nullopt});
      if (one.value) changes.back().value = std::string(*one.value);
      return {};
    }));
  }
  return changes;
}

std::vector<std::string> parts_of(const std::vector<OwnChange>& changes) {
  remote::ChangeWriter writer;
  for (const auto& one : changes) {
    std::optional<std::string_view> value;
    if (one.value) value = *one.value;
    writer.add({one.table, one.key, value});
  }
  return writer.finish();
}

remote::ObjectMap sample_map() {
  return {{"series/1/active/0001", {{"d/1", 4096, 4096, 5, 0}, {"d/2", 100, 120, 6, 0}}},
          {"series/1/labels", {{"d/3", 700, 700, 7, 9}}}};
}

std::vector<OwnChange> sample_changes() {
  const std::string path = "series/1/active/0001";
  std::vector<OwnChange> changes{
      {0, "key", "value"},
      {1, std::string(200, 'k'), std::string(300, '\1')},
      {2, "gone", std::nullopt},
      {remote::kObjectsTable, remote::extent_key(path, 4096), std::nullopt},
      {remote::kObjectsTable, remote::extent_key("pool/volumes/0002", 0),
       remote::encode_extent({"d/9", 30, 30, 1, 0})}};
  changes.push_back({remote::kObjectsTable, remote::extent_key(path, 0),
                     remote::encode_extent({"d/8", 5000, 5000, 2, 0})});
  return changes;
}

// Returns the input as an object: as it is, or as the changes of an uncompressed one.
std::string object_of(Bytes input, bool is_object) {
  std::string part;
  if (!is_object) {
    part = parts_of({{0, "k", std::nullopt}}).front().substr(0, 8);
    base::ByteWriter header(part);
    header.u32(static_cast<std::uint32_t>(Codec::kNone));
    header.u64(input.size());
  }
  return part.append(text_of(input));
}

std::vector<std::string> object_seeds(char flags) {
  constexpr std::size_t kPartHeaderBytes = 20;
  const auto part = parts_of(sample_changes()).front();
  std::vector<std::string> seeds{std::string(1, static_cast<char>(flags | 1)) + part};
  // Without compression, mutations change keys and values.
  std::string raw;
  base::ByteWriter writer(raw);
  for (const auto& one : sample_changes()) {
    writer.u8(one.table);
    writer.u8(one.value ? 1 : 2);
    writer.sized_text(one.key);
    if (one.value) writer.sized_text(*one.value);
  }
  seeds.push_back(std::string(1, flags) + raw);
  const auto again = changes_in({object_of(base::as_bytes(raw), false)});
  require(again && *again == sample_changes() && part.size() > kPartHeaderBytes,
          "a seed has the changes of an object");
  return seeds;
}

// Checks that a map changes into another one by the differences of their files.
void require_differences(const remote::ObjectMap& before, const remote::ObjectMap& after) {
  remote::ChangeWriter writer;
  const std::vector<remote::Extent> none;
  for (const auto& [path, extents] : before) {
    const auto found = after.find(path);
    compare_extents(path, extents, found == after.end() ? none : found->second, writer);
  }
  for (const auto& [path, extents] : after) {
    if (!before.contains(path)) compare_extents(path, none, extents, writer);
  }
  const auto made = remote::map_after(before, writer.finish(), false);
  require(made && *made == after, "the differences of two maps lead from one to the other");
}

// A copy of the catalog in a folder that the program removes when it ends.
class CatalogCopy {
 public:
  CatalogCopy() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    options.map_bytes = std::size_t{64} << 20;
    auto env = meta::Env::open(folder_.path(), options);
    require(env.has_value(), "an environment can be made");
    env_ = std::make_unique<meta::Env>(std::move(*env));
  }
  [[nodiscard]] const meta::Env& env() const { return *env_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<meta::Env> env_;
};

}  // namespace

void head(Bytes input) {
  std::string bytes(text_of(input));
  if (bytes.size() >= 8) put64(bytes, bytes.size() - 8, sum(bytes, 0, bytes.size() - 8));
  static const auto keys = test::test_keys();
  static const auto known = head_seeds();
  require(!remote::authenticate_head(bytes, keys.get()) || bytes == known.back(),
          "a head with other bytes is not authentic");
  const auto first = remote::decode_head(bytes);
  require(first.has_value() || is_refusal(first.error()), "a head is damaged or of another format");
  if (!first) return;
  const auto once = remote::encode_head(*first, nullptr);
  const auto second = remote::decode_head(once);
  require(second && *second == *first, "an encoded head decodes to the same head");
  require(remote::authenticate_head(once, nullptr).has_value(), "a plain head needs no key");
  // Each with its copy.
  require(remote::names_of(*first).size() <= 2 * (first->catalog.size() + 1),
          "a head names objects");
  if (first->number >= kHeadNumbersEnd) return;
  const auto name = remote::head_name(first->repository_id, first->number);
  require(first->repository_id.empty() ||
              remote::head_number(first->repository_id, name) == first->number,
          "a head is found by its name");
}

std::vector<std::string> head_seeds() {
  auto first = sample_head();
  first.number = 1;
  first.previous = {};
  first.catalog.clear();
  first.base_objects = 0;
  return {remote::encode_head(sample_head(), nullptr), remote::encode_head(first, nullptr),
          remote::encode_head(sample_head(), test::test_keys().get())};
}

void catalog_object(Bytes input) {
  if (input.empty()) return;
  const auto flags = static_cast<unsigned>(input[0]);
  const auto part = object_of(input.subspan(1), (flags & 1) != 0);
  const auto changes = changes_in({part});
  require(changes.has_value() || is_refusal(changes.error()), "an object is damaged or newer");
  if (changes) {
    const auto again = changes_in(parts_of(*changes));
    require(again && *again == *changes, "changes that are written again stay the same");
  }
  const auto before = sample_map();
  const bool replaces = (flags & 2) != 0;
  auto after = before;
  const auto update = remote::update_map(after, {part}, replaces);
  if (!update) return;
  require(changes.has_value(), "a map changes by a whole object only");
  const auto names = names_of(after);
  for (const auto& name : update->named) require(names.contains(name), "a map names new objects");
  for (const auto& name : update->gone) require(!update->named.contains(name), "gone is not named");
  for (const auto& [path, extents] : after) {
    require(!extents.empty(), "a file of the map has an extent");
    std::uint64_t end = 0;
    for (const auto& one : extents) {
      require(one.bytes <= one.object_bytes, "an extent is inside its object");
      require(end + one.bytes >= end, "a file's length is a number");
      end += one.bytes;
    }
  }
  require_differences(before, after);
  require_differences(after, before);
}

std::vector<std::string> catalog_object_seeds() {
  auto seeds = object_seeds('\0');
  for (auto& one : object_seeds('\2')) seeds.push_back(std::move(one));
  return seeds;
}

void applied_object(Bytes input) {
  if (input.empty()) return;
  static const CatalogCopy copy;
  const auto flags = static_cast<unsigned>(input[0]);
  const auto part = object_of(input.subspan(1), (flags & 1) != 0);
  const auto applied = remote::apply_to_catalog(copy.env(), {part}, true);
  if (!applied) return;
  const auto changes = changes_in({part});
  require(changes.has_value(), "a whole object is applied, or nothing of it");
  const auto txn = meta::ReadTxn::begin(copy.env());
  require(txn.has_value(), "a copy of the catalog can be read");
  remote::ChangeWriter writer;
  const auto records = remote::write_catalog(*txn, writer);
  require(records && *records <= changes->size(), "a copy has the records of its objects");
}

std::vector<std::string> applied_object_seeds() { return object_seeds('\0'); }

void extent(Bytes input) {
  if (input.empty()) return;
  const auto text = text_of(input.subspan(1));
  const auto key = text.substr(0, static_cast<std::size_t>(input[0]));
  const auto record = remote::decode_extent(key, text.substr(key.size()));
  require(record.has_value() || record.error().code() == ErrorCode::kCorrupt,
          "a record is damaged or valid");
  if (!record) return;
  require(remote::extent_key(record->path, record->offset) == key, "a record has one key");
  const auto again = remote::decode_extent(key, remote::encode_extent(record->extent));
  require(again && again->extent == record->extent, "an encoded extent decodes to the same");
  const auto map = remote::map_of({{std::string(key), remote::encode_extent(record->extent)}});
  require(map.has_value() == (record->offset == 0), "a file begins with its first extent");
}

std::vector<std::string> extent_seeds() {
  std::vector<std::string> seeds;
  for (const std::uint64_t offset : {0, 4096}) {
    const auto key = remote::extent_key("series/1/volumes/0001", offset);
    seeds.push_back(std::string(1, static_cast<char>(key.size())) + key +
                    remote::encode_extent({"d/1", 4096, 5000, 77, 8}));
  }
  return seeds;
}

void lease(Bytes input) {
  static const auto keys = test::test_keys();
  static const auto known = lease_seeds();
  const auto text = text_of(input);
  const auto plain = remote::decode_lease(text, nullptr);
  const auto sealed = remote::decode_lease(text, keys.get());
  require(!sealed || std::ranges::find(known, text) != known.end(),
          "a lease that opens was sealed");
  if (!plain) {
    require(plain.error().code() == ErrorCode::kCorrupt, "a lease is damaged or valid");
    return;
  }
  const auto once = remote::encode_lease(*plain, nullptr);
  const auto again = once ? remote::decode_lease(*once, nullptr) : once.error();
  require(again && *again == *plain, "an encoded lease decodes to the same lease");
  const auto shown = remote::lease_text(*plain);
  require(std::ranges::none_of(shown, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }),
          "a lease is shown without control characters");
}

std::vector<std::string> lease_seeds() {
  static const auto seeds = [] {
    const remote::Lease one{"host", "user", "/srv/backup", 1'764'000'000};
    std::vector<std::string> made;
    for (const auto& keys : {std::shared_ptr<const crypto::KeyRing>(), test::test_keys()}) {
      if (auto text = remote::encode_lease(one, keys.get())) made.push_back(std::move(*text));
    }
    return made;
  }();
  return seeds;
}

}  // namespace varve::fuzz
