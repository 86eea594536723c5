// SPDX-License-Identifier: Apache-2.0
#include "maintain/parity_repairer.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "format/container.h"
#include "io/memory_file_system.h"
#include "maintain/container_verifier.h"
#include "store/folder_store.h"
#include "store/segment_files.h"

namespace varve::maintain {

namespace {

using format::kParityBlockBytes;

// Returns the member containing the whole container.
std::optional<std::size_t> member_with(const format::ParityIndex& index,
                                       const format::ContainerRecord& record) {
  for (std::size_t i = 0; i < index.members.size(); ++i) {
    const auto& member = index.members[i];
    if (member.segment == record.segment && record.end() <= member.bytes) return i;
  }
  return std::nullopt;
}

}  // namespace

Result<void> ParityRepairer::scan(const std::vector<format::ContainerRecord>& damaged,
                                  const Pass& pass) {
  if (damaged.empty()) return {};
  VARVE_TRY_ASSIGN(listing_, parity::list_groups(store_, store_id_));
  auto left = damaged;
  // Newest first: a newer group protects all data that an older group still protects.
  for (auto group = listing_.groups.rbegin(); group != listing_.groups.rend(); ++group) {
    VARVE_TRY(
        restore(*group, left, pass,
                [&](const format::ContainerRecord& record, const Image& image) -> Result<void> {
                  restorable_.push_back(
                      {record, group->number, static_cast<std::uint32_t>(image.parts.size())});
                  return {};
                }));
    std::erase_if(left, [&](const auto& record) {
      return std::any_of(restorable_.begin(), restorable_.end(),
                         [&](const Restorable& one) { return one.record.number == record.number; });
    });
  }
  return {};
}

Result<void> ParityRepairer::scan_without_catalog(const Pass& pass) {
  VARVE_TRY_ASSIGN(const auto listing, parity::list_groups(store_, store_id_));
  std::vector<format::ContainerRecord> damaged;
  for (const auto& group : listing.groups) {
    const auto opened = parity::GroupRestorer::open(store_, group);
    if (!opened) continue;
    auto& restorer = **opened;
    restorer.scan(pass);
    std::set<std::uint32_t> wanted;
    for (std::uint32_t block = 0; block < group.index.blocks; ++block) {
      if (restorer.is_bad(block)) wanted.insert(block);
    }
    if (wanted.empty()) continue;
    const auto restored = restorer.restore(wanted);
    for (std::size_t i = 0; i < group.index.members.size(); ++i) {
      name_containers(restorer, i, restored, damaged);
    }
  }
  return scan(damaged, pass);
}

void ParityRepairer::name_containers(const parity::GroupRestorer& restorer, std::size_t member,
                                     const Blocks& restored,
                                     std::vector<format::ContainerRecord>& found) const {
  const auto& file = restorer.index().members[member];
  const auto opened = store_.open(file.segment, store::ReadMode::kCached);
  if (!opened) return;
  const auto size = (*opened)->size();
  const auto end = size ? std::min(*size, file.bytes) : 0;
  for (std::uint64_t at = 0; at + format::kContainerFixedHeaderBytes <= end;) {
    const auto start =
        repaired_bytes(restorer, member, restored, at, format::kContainerFixedHeaderBytes);
    const auto length = format::container_header_length(start, codecs_.frames().keys());
    if (!length || at + *length > end) return;
    const auto header = format::decode_container_header(
        repaired_bytes(restorer, member, restored, at, *length), codecs_.frames().keys());
    if (!header || header->store != store_id_ || at + header->stored_bytes() > end) return;
    const auto record = format::ContainerRecord::of(*header, file.segment, at);
    at += header->stored_bytes();
    const auto [first, last] = restorer.blocks_of(member, record.offset, at);
    const auto touched = restored.lower_bound(first);
    const bool is_restored = touched != restored.end() && touched->first < last;
    if (is_restored && !is_sound(file.segment, record.offset)) found.push_back(record);
  }
}

bool ParityRepairer::is_sound(SegmentNumber segment, std::uint64_t offset) const {
  const auto keys = codecs_.frames().keys();
  const auto fixed = read_leniently(segment, offset, format::kContainerFixedHeaderBytes);
  const auto length = format::container_header_length(fixed, keys);
  if (!length) return false;
  const auto header =
      format::decode_container_header(read_leniently(segment, offset, *length), keys);
  if (!header) return false;
  store::SegmentReader reader(store_, keys);
  const auto record = format::ContainerRecord::of(*header, segment, offset);
  const auto verdict = verify_container(codecs_, reader, store_id_, record, VerifyLevel::kChunks);
  return verdict.header.has_value() && verdict.faults.empty();
}

std::vector<std::byte> ParityRepairer::repaired_bytes(const parity::GroupRestorer& restorer,
                                                      std::size_t member, const Blocks& restored,
                                                      std::uint64_t offset,
                                                      std::uint64_t bytes) const {
  auto out = read_leniently(restorer.index().members[member].segment, offset, bytes);
  const auto [first, last] = restorer.blocks_of(member, offset, offset + bytes);
  const auto begin_of_file = restorer.blocks_of(member, 0, 1).first;
  for (auto block = restored.lower_bound(first); block != restored.end() && block->first < last;
       ++block) {
    const auto at = std::uint64_t{block->first - begin_of_file} * kParityBlockBytes;
    const auto begin = std::max(at, offset);
    const auto end = std::min(at + kParityBlockBytes, offset + bytes);
    std::copy_n(block->second.begin() + static_cast<std::ptrdiff_t>(begin - at), end - begin,
                out.begin() + static_cast<std::ptrdiff_t>(begin - offset));
  }
  return out;
}

Result<void> ParityRepairer::scan_parity() {
  VARVE_TRY_ASSIGN(listing_, parity::list_groups(store_, store_id_));
  for (const auto& [number, error] : listing_.damaged) {
    damaged_groups_.emplace_back(number, error.message());
  }
  for (const auto& group : listing_.groups) {
    VARVE_TRY_ASSIGN(auto faults, parity::faults_of_group(store_, group));
    if (!faults.empty()) damaged_groups_.emplace_back(group.number, std::move(faults));
  }
  return {};
}

Result<void> ParityRepairer::restore(const parity::Group& group,
                                     const std::vector<format::ContainerRecord>& records,
                                     const Pass& pass, const Found& found) {
  const bool any = std::any_of(records.begin(), records.end(), [&](const auto& record) {
    return member_with(group.index, record).has_value();
  });
  if (!any) return {};
  const auto opened = parity::GroupRestorer::open(store_, group);
  // The parity file itself is damaged. Another group may have the container.
  if (!opened) return {};
  auto& restorer = **opened;
  restorer.scan(pass);
  std::set<std::uint32_t> wanted;
  const auto blocks_of = [&](const format::ContainerRecord& record) {
    std::vector<std::uint32_t> bad;
    const auto member = member_with(group.index, record);
    if (!member) return bad;
    const auto [begin, end] = restorer.blocks_of(*member, record.offset, record.end());
    for (auto block = begin; block < end; ++block) {
      if (restorer.is_bad(block)) bad.push_back(block);
    }
    return bad;
  };
  for (const auto& record : records) {
    for (const auto block : blocks_of(record)) wanted.insert(block);
  }
  const auto restored = restorer.restore(wanted);
  for (const auto& record : records) {
    const auto bad = blocks_of(record);
    const bool all = std::all_of(bad.begin(), bad.end(),
                                 [&](std::uint32_t block) { return restored.contains(block); });
    // If no block is bad, the parity was computed from the damaged data.
    if (bad.empty() || !all) continue;
    const auto member = *member_with(group.index, record);
    Image image;
    image.bytes =
        repaired_bytes(restorer, member, restored, record.offset, record.end() - record.offset);
    const auto first = restorer.blocks_of(member, 0, 1).first;
    for (const auto block : bad) {
      const auto at = std::uint64_t{block - first} * kParityBlockBytes;
      const auto begin = std::max(at, record.offset);
      image.parts.emplace_back(begin - record.offset,
                               std::min(at + kParityBlockBytes, record.end()) - begin);
    }
    VARVE_TRY_ASSIGN(const bool whole, is_whole(record, image));
    if (whole) VARVE_TRY(found(record, image));
  }
  return {};
}

// Reads bytes and leaves unreadable bytes as zeros. Unreadable bytes belong to bad blocks, which
// are replaced.
std::vector<std::byte> ParityRepairer::read_leniently(SegmentNumber segment, std::uint64_t offset,
                                                      std::uint64_t bytes) const {
  std::vector<std::byte> out(bytes);
  const auto file = store_.open(segment, store::ReadMode::kCached);
  if (!file) return out;
  const auto all = std::span(out);
  if (const auto read = (*file)->read_at(offset, all); read) return out;
  constexpr std::size_t kPiece = 4096;  // Usual size of an unreadable place on a disk.
  for (std::size_t at = 0; at < all.size(); at += kPiece) {
    static_cast<void>(
        (*file)->read_at(offset + at, all.subspan(at, std::min(kPiece, all.size() - at))));
  }
  return out;
}

// Verifies a restored container with verify_container(), in a file in memory.
Result<bool> ParityRepairer::is_whole(const format::ContainerRecord& record,
                                      const Image& image) const {
  const auto memory = io::make_memory_file_system();
  const auto path = store::segment_path(record.segment);
  VARVE_TRY(memory->make_directory("image"));
  VARVE_TRY(memory->make_directory("image/" + path.substr(0, path.find('/'))));
  VARVE_TRY_ASSIGN(const auto file, memory->open("image/" + path, io::OpenMode::kReadWrite));
  VARVE_TRY(file->write_at(0, image.bytes));
  auto alone = record;
  alone.offset = 0;
  store::FolderStore alone_store(*memory, "image");
  store::SegmentReader reader(alone_store, codecs_.frames().keys());
  const auto verdict = verify_container(codecs_, reader, store_id_, alone, VerifyLevel::kChunks);
  return verdict.header.has_value() && verdict.faults.empty();
}

std::vector<RepairStep> ParityRepairer::steps() const {
  std::vector<RepairStep> steps;
  for (const auto& one : restorable_) {
    steps.push_back(
        {RepairStep::Kind::kParity,
         fmt::format("{} container {}", store_.describe(one.record.segment), one.record.number),
         fmt::format("{} damaged blocks are restored from parity", one.blocks)});
  }
  for (const auto& [number, what] : damaged_groups_) {
    steps.push_back({RepairStep::Kind::kParity, store_.describe(number),
                     what + "; the repair removes it, and arranging creates new parity"});
  }
  return steps;
}

Result<void> ParityRepairer::execute(RepairReport& report, const Pass& pass) {
  for (const auto& group : listing_.groups) {
    std::vector<format::ContainerRecord> records;
    for (const auto& one : restorable_) {
      if (one.group == group.number) records.push_back(one.record);
    }
    // At most as many bytes as the group's parity has.
    std::map<SegmentNumber, std::vector<store::Correction>> corrections;
    VARVE_TRY(
        restore(group, records, pass,
                [&](const format::ContainerRecord& record, const Image& image) -> Result<void> {
                  ++report.containers_restored;
                  for (const auto& [offset, bytes] : image.parts) {
                    const auto part = std::span(image.bytes).subspan(offset, bytes);
                    corrections[record.segment].push_back(
                        {record.offset + offset, {part.begin(), part.end()}});
                  }
                  return {};
                }));
    for (const auto& [segment, bytes] : corrections) {
      VARVE_TRY(store_.correct(segment, bytes));  // O26
    }
  }
  for (const auto& [number, what] : damaged_groups_) {
    const auto removed = store_.remove(number);
    if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed.error();
  }
  return {};
}

}  // namespace varve::maintain
