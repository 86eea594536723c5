// SPDX-License-Identifier: Apache-2.0
#include "targets.h"
#include "base/checksum.h"

#include <array>
#include <cstring>
#include <memory>

#include "base/coding.h"
#include "base/id_runs.h"
#include "bucket_targets.h"
#include "catalog/link_table.h"
#include "catalog/location_table.h"
#include "catalog_values.h"
#include "checks.h"
#include "container_targets.h"
#include "control/protocol.h"
#include "copy_targets.h"
#include "environment_target.h"
#include "file_targets.h"
#include "format/birth_mark.h"
#include "format/container.h"
#include "format/dir_node.h"
#include "format/key_slot_text.h"
#include "format/parity.h"
#include "format/superblock.h"
#include "index/run_set.h"
#include "index/run_writer.h"
#include "index_targets.h"
#include "ingest/parameters.h"
#include "io/memory_file_system.h"
#include "open_version_target.h"
#include "replica_state_targets.h"
#include "replica_targets.h"
#include "right_sums.h"
#include "sealed_targets.h"
#include "setting_targets.h"
#include "store/repository_names.h"
#include "store/segment_files.h"
#include "support/format_samples.h"
#include "support/index_samples.h"
#include "transfer_targets.h"
#include "version/open_inode.h"
#include "web_targets.h"

namespace varve::fuzz {
namespace {

// Decodes and encodes twice. The two encodings must agree.
template <typename Decode, typename Encode>
void settles(std::string_view input, const Decode& decode, const Encode& encode) {
  auto first = decode(input);
  if (!first) return;
  const std::string once = encode(*first);
  auto second = decode(once);
  require(static_cast<bool>(second), "what was encoded can be decoded");
  require(encode(*second) == once, "encoding what was decoded gives the same bytes");
}

std::vector<std::string> no_seeds() { return {std::string(64, '\0')}; }

// ---- The repository's files ----

std::shared_ptr<const crypto::KeyRing> sample_keys() {
  const std::array<std::byte, crypto::kKeyBytes> zeros{};
  return *crypto::KeyRing::make(*crypto::SecretKey::copy_of(zeros), std::string(32, 'a'),
                                crypto::Cipher::kAes256Gcm);
}

void superblock(Bytes input) {
  std::string bytes(text_of(input));
  sum_text(bytes);
  settles(bytes, ingest::read_superblock,
          [](const format::Superblock& block) { return format::encode_superblock(block); });
  const auto keys = sample_keys();
  settles(bytes, ingest::read_superblock, [&](const format::Superblock& block) {
    return format::encode_superblock(block, keys.get());
  });
  const auto block = ingest::read_superblock(bytes);
  if (!block || !block->encryption) return;
  // The MAC keeps all that the input says from being used.
  const auto source = []() -> Result<UserKey> {
    UserKey key;
    key.kind = KeyKind::kKeyFile;
    VARVE_TRY_ASSIGN(key.secret, Secret::copy_of(base::as_bytes(std::string(32, 'k'))));
    return key;
  };
  const auto opened = format::unlock_superblock(*block, bytes, source, true);
  require(!opened || format::authenticate_superblock(bytes, **opened), "a used text is authentic");
}

void key_slot(Bytes input) {
  const auto slot = format::decode_key_slot(1, text_of(input));
  if (!slot) return;
  require(static_cast<bool>(crypto::check_cost(slot->info.cost)) ||
              !crypto::is_guessable(slot->info.kind),
          "the cost is bounded");
  require(format::encode_key_slot(*slot) == text_of(input), "a slot has one encoding");
}
std::vector<std::string> key_slot_seeds() {
  std::vector<std::string> seeds;
  for (const auto kind :
       {KeyKind::kPassphrase, KeyKind::kKeyFile, KeyKind::kCommand, KeyKind::kRecovery}) {
    crypto::KeySlot slot;
    slot.info = {.number = 1, .kind = kind, .label = "the laptop", .created_s = 1764000000};
    seeds.push_back(format::encode_key_slot(slot));
  }
  return seeds;
}
std::vector<std::string> superblock_seeds() {
  format::Superblock block;
  block.repository_id = std::string(32, 'a');
  std::vector<std::string> seeds = {format::encode_superblock(block)};
  block.encryption.emplace();
  seeds.push_back(format::encode_superblock(block));
  for (const auto& slot : key_slot_seeds()) {
    block.encryption->slots.push_back(*format::decode_key_slot(
        static_cast<std::uint32_t>(block.encryption->slots.size() + 1), slot));
  }
  seeds.push_back(format::encode_superblock(block, sample_keys().get()));
  return seeds;
}

// Decodes the first index of a parity file, after correcting its three checksums.
void parity_index(Bytes input) {
  std::string bytes(text_of(input));
  const auto header = sum_parity(bytes);
  if (!header) return;
  constexpr auto kHeader = format::kParityHeaderBytes;
  const auto sums_at = kHeader + header->member_bytes();
  const auto span = base::as_bytes(bytes);
  auto index =
      format::decode_parity_members(*header, span.subspan(kHeader, header->member_bytes()));
  const auto sums = format::decode_parity_sums(*header, span.subspan(sums_at, header->sum_bytes()));
  if (!index || !sums) return;
  const auto again = format::encode_parity_index(*index, *sums);
  require(again.header + again.members + again.sums == bytes.substr(0, header->index_bytes()),
          "a parity file's index that is accepted has one encoding");
}
std::vector<std::string> parity_index_seeds() {
  format::ParityIndex index;
  index.percent = 5;
  index.members = {{SegmentNumber{1}, 100'000}, {SegmentNumber{2}, 1}};
  format::ParitySums sums;
  sums.data.resize(8);
  sums.parity.resize(1);
  const auto parts = format::encode_parity_index(index, sums);
  return {parts.header + parts.members + parts.sums};
}

void index_snapshot(Bytes input) {
  std::string bytes(text_of(input));
  if (bytes.size() < 40) return;
  sum_snapshot(bytes);
  static_cast<void>(index::decode_snapshot(bytes, SeriesId{3}, VersionNumber{7}));
  const auto files = io::make_memory_file_system();
  const auto file = std::move(*files->open("/snapshot", io::OpenMode::kReadWrite));
  static_cast<void>(file->write_at(0, base::as_bytes(bytes)));
  index::RunSet runs(index::test_folder(*files, SeriesId{3}), 1U << 16);
  static_cast<void>(runs.import(*file, VersionNumber{7}));
}
std::vector<std::string> index_snapshot_seeds() {
  const auto ids = base::IdRuns::from({{ChunkId::make(VersionNumber{5}, 10), 4}});
  index::TagTable table;
  for (unsigned i = 0; i < 4; ++i) {
    const auto id = ChunkId::make(VersionNumber{5}, 10 + i);
    table.put({index::tag_of(format::chunk(id, 1).fingerprint), id});
  }
  return {index::old_snapshot(SeriesId{3}, VersionNumber{7}, ids, table.take_sorted()),
          index::encode_snapshot(SeriesId{3}, VersionNumber{7}, {{1, 4, 5}, {2, 6, 7}})};
}

// Damage to a run, with right checksums.
void index_run(Bytes input) {
  std::string bytes(text_of(input));
  if (bytes.size() < index::kBlockBytes) return;
  index::RunRef ref;
  for (std::uint64_t i = 0; (i + 1) * index::kBlockBytes <= bytes.size(); ++i) {
    index::Block block;
    std::memcpy(block.data(), bytes.data() + i * index::kBlockBytes, block.size());
    if (i == 0) std::memcpy(&ref.entries, block.data() + 16, sizeof ref.entries);
    index::seal_block(block, i);
    std::memcpy(bytes.data() + i * index::kBlockBytes, block.data(), block.size());
    if (i == 0) std::memcpy(&ref.header_checksum, block.data() + index::kBlockBodyBytes, 8);
  }
  ref.number = 1;
  const auto files = io::make_memory_file_system();
  const auto folder = index::test_folder(*files, SeriesId{3});
  const auto file = std::move(*files->open(folder.path_of(1), io::OpenMode::kReadWrite));
  static_cast<void>(file->write_at(0, base::as_bytes(bytes)));
  const auto run = index::IndexRun::open(folder, ref);
  if (!run) return;
  static_cast<void>((*run)->verify());
  index::BlockCache cache(1U << 16);
  for (std::uint64_t i = 0; i < 8; ++i) {
    static_cast<void>((*run)->find(index::tag_of(index::random_fingerprint(i)), cache));
  }
  index::RunScanner scanner(**run);
  for (auto entry = scanner.next(); entry && !entry->is_empty(); entry = scanner.next()) continue;
}
std::vector<std::string> index_run_seeds() {
  const auto files = io::make_memory_file_system();
  const auto folder = index::test_folder(*files, SeriesId{3});
  index::TagTable table;
  for (std::uint32_t i = 0; i < 300; ++i) {
    table.put({index::tag_of(index::random_fingerprint(i)), ChunkId::make(VersionNumber{5}, i)});
  }
  const auto writer = std::move(*index::RunWriter::create(folder, 1, 300));
  for (const auto& entry : table.take_sorted()) static_cast<void>(writer->add(entry));
  static_cast<void>(
      writer->finish(base::IdRuns::from({{ChunkId::make(VersionNumber{5}, 0), 300}})));
  return {*files->read_file(folder.path_of(1), 1U << 20)};
}

// ---- Structures of the catalog and of open versions ----

void page(Bytes input) {
  settles(text_of(input), format::decode_dir_page, format::encode_dir_page);
}
std::vector<std::string> page_seeds() {
  return {format::encode_dir_page(format::sample_leaf()),
          format::encode_dir_page(format::sample_inner())};
}

void entry(Bytes input) {
  settles(text_of(input), format::decode_dir_entry, format::encode_dir_entry);
}
std::vector<std::string> entry_seeds() {
  std::vector<std::string> seeds;
  for (const auto& one : format::sample_leaf().entries)
    seeds.push_back(format::encode_dir_entry(one));
  return seeds;
}

void recipe(Bytes input) {
  settles(text_of(input), format::decode_recipe_object, format::encode_recipe_object);
}
std::vector<std::string> recipe_seeds() {
  const auto leaf = format::sample_leaf();
  return {format::encode_recipe_object(*leaf.entries[5].recipe)};
}

template <typename T>
std::string encoded(const T& value) {
  std::string out;
  value.encode(out);
  return out;
}

void id_runs(Bytes input) { settles(text_of(input), base::IdRuns::decode, encoded<base::IdRuns>); }
std::vector<std::string> id_runs_seeds() {
  const auto ids = base::IdRuns::from({{ChunkId::make(VersionNumber{1}, 5), 9},
                                       {ChunkId::make(VersionNumber{1}, 50), 1},
                                       {ChunkId::make(VersionNumber{9}, 0), 70000}});
  return {encoded(ids)};
}

void births(Bytes input) {
  settles(text_of(input), format::decode_births, format::encode_births);
  settles(text_of(input), format::Birth::decode,
          [](const format::Birth& birth) { return birth.encode(); });
}
std::vector<std::string> births_seeds() {
  const format::Birth open{{std::byte{7}}, SeriesId{1}, VersionNumber{2}, {}};
  const format::Birth sealed{{std::byte{8}}, SeriesId{70000}, VersionNumber{kPoolBit + 3}, 99};
  return {format::encode_births(
              {{VersionNumber{1}, open}, {static_cast<VersionNumber>(kPoolBit + 300), sealed}}),
          open.encode(), sealed.encode()};
}

void link_table(Bytes input) {
  settles(text_of(input), catalog::LinkTable::decode, encoded<catalog::LinkTable>);
}

void location(Bytes input) {
  settles(
      text_of(input),
      [](std::string_view bytes) {
        return catalog::LocationRecord::decode(ChunkId::make(VersionNumber{1}, 2), bytes);
      },
      [](const catalog::LocationRecord& record) { return record.encode(); });
}

void container_record(Bytes input) {
  settles(
      text_of(input),
      [](std::string_view bytes) {
        return format::ContainerRecord::decode(ContainerNumber{1}, bytes);
      },
      [](const format::ContainerRecord& record) { return record.encode(); });
}

void open_inode(Bytes input) {
  settles(
      text_of(input),
      [](std::string_view bytes) { return version::decode_open_inode(5, bytes, 6); },
      [](const std::unique_ptr<version::OpenInode>& inode) {
        return version::encode_open_inode(*inode);
      });
}
std::vector<std::string> open_inode_seeds() {
  std::vector<std::string> seeds;
  for (const auto& one : format::sample_leaf().entries) {
    version::OpenInode inode;
    inode.ino = 5;
    inode.mode = one.mode;
    inode.uid = one.uid;
    inode.mtime = one.mtime;
    inode.xattrs = one.xattrs;
    inode.symlink_target = one.symlink_target;
    if (one.recipe) inode.content.recipe = std::make_shared<const format::Recipe>(*one.recipe);
    if (inode.is_regular() && !inode.content.recipe) continue;
    inode.content.size = one.size;
    seeds.push_back(version::encode_open_inode(inode));
  }
  // A file written out of order: parts of its staging file, of a recipe, and holes.
  version::OpenInode staged;
  staged.ino = 5;
  staged.mode = S_IFREG | 0644;
  auto ranges = std::make_unique<version::StagedContent>();
  ranges->write(0, 4096, 0);
  ranges->write(1U << 20, (1U << 20) + 100, 1U << 20);
  auto recipe = std::make_shared<const format::Recipe>(*format::sample_leaf().entries[5].recipe);
  ranges->clone(8192, 8192 + 5000, std::make_shared<version::OpenRecipe>(recipe), 3000);
  ranges->resize(2U << 20);
  staged.content.size = ranges->size();
  staged.staging.begin(1, std::move(ranges), {});
  seeds.push_back(version::encode_open_inode(staged));
  return seeds;
}

// ---- The socket ----

void request(Bytes input) {
  settles(text_of(input), control::decode_request,
          [](const control::Request& request) { return control::encode(request); });
}
std::vector<std::string> request_seeds() {
  control::Request seal;
  seal.operation = control::Operation::kSeal;
  seal.seal.version = "s/v";
  control::Request removal;
  removal.operation = control::Operation::kDelete;
  removal.removal = {"s", {VersionNumber{1}, VersionNumber{2}}, true};
  return {control::encode(seal), control::encode(removal)};
}

void reply(Bytes input) {
  settles(text_of(input), control::decode_reply,
          [](const control::Reply& reply) { return control::encode(reply); });
}
std::vector<std::string> reply_seeds() {
  control::Reply reply;
  reply.version.emplace();
  control::Reply forecast;
  forecast.forecast = DeletionForecast{
      {VersionNumber{3}}, {{VersionNumber{4}, "locked"}}, 4096, 1, 2, 3, 4, "open"};
  return {control::encode(reply), control::encode(forecast)};
}

constexpr Target kTargets[] = {
    {"superblock", superblock, superblock_seeds},
    {"key_slot", key_slot, key_slot_seeds},
    {"container", container, container_seeds},
    {"sealed_container", sealed_container, sealed_container_seeds},
    {"parity_index", parity_index, parity_index_seeds},
    {"frame", frame, frame_seeds},
    {"index_snapshot", index_snapshot, index_snapshot_seeds},
    {"index_run", index_run, index_run_seeds},
    {"manifest", manifest, manifest_seeds},
    {"volume", volume, volume_seeds},
    {"restore_log", restore_log, restore_log_seeds},
    {"check_record", check_record, check_record_seeds},
    {"scrub_state", scrub_state, scrub_state_seeds},
    {"alias_file", alias_file, alias_file_seeds},
    {"sealed_file", sealed_file, sealed_file_seeds},
    {"beside", beside, beside_seeds},
    {"page", page, page_seeds},
    {"entry", entry, entry_seeds},
    {"recipe", recipe, recipe_seeds},
    {"id_runs", id_runs, id_runs_seeds},
    {"births", births, births_seeds},
    {"link_table", link_table, no_seeds},
    {"location", location, no_seeds},
    {"container_record", container_record, no_seeds},
    {"open_inode", open_inode, open_inode_seeds},
    {"catalog_values", catalog_values, catalog_value_seeds},
    {"environment", environment, environment_seeds, 20},
    {"open_version", open_version, open_version_seeds, 500},
    {"request", request, request_seeds},
    {"reply", reply, reply_seeds},
    {"copy_request", copy_request, copy_request_seeds},
    {"copy_answer", copy_answer, copy_answer_seeds},
    {"sealed_value", sealed_value, sealed_value_seeds},
    {"staging_log", staging_log, staging_log_seeds, 4},
    {"store_document", store_document, store_document_seeds},
    {"store_answer", store_answer, store_answer_seeds},
    {"head", head, head_seeds},
    {"catalog_object", catalog_object, catalog_object_seeds},
    {"applied_object", applied_object, applied_object_seeds, 20},
    {"extent", extent, extent_seeds},
    {"lease", lease, lease_seeds},
    {"zero_bin", zero_bin, zero_bin_seeds, 2},
    {"zero_files", zero_files, zero_files_seeds, 5},
    {"source_states", source_states, source_states_seeds},
    {"settled", settled, settled_seeds},
    {"archive", archive, archive_seeds, 10},
    {"zip_directory", zip_directory, zip_directory_seeds, 10},
    {"pax_records", pax_records, pax_records_seeds, 10},
    {"posix_acl", posix_acl, posix_acl_seeds},
    {"web_request", web_request, web_request_seeds},
    {"credentials", credentials, credentials_seeds, 2},
    {"instance", instance, instance_seeds},
    {"patterns", patterns, patterns_seeds},
    {"bucket_config", bucket_config, bucket_config_seeds},
    {"probe_record", probe_record, probe_record_seeds},
    {"local_notes", local_notes, local_notes_seeds},
    {"damage_notes", damage_notes, damage_notes_seeds},
    {"replica_state", replica_state, replica_state_seeds, 20},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace varve::fuzz
