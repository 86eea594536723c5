// SPDX-License-Identifier: Apache-2.0
#include "index_targets.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/id_runs.h"
#include "base/log.h"
#include "checks.h"
#include "index/zero_bin.h"
#include "index/zero_files.h"
#include "io/memory_file_system.h"
#include "repo/settled_mark.h"
#include "support/index_samples.h"
#include "transfer/source_states.h"

namespace varve::fuzz {
namespace {

constexpr const char* kZeroFolder = "/z";
constexpr const char* kZeroLog = "/z/index-zero-00000001.log";
constexpr const char* kZeroBins = "/z/index-zero-00000001.bins";
constexpr std::uint32_t kZeroParameter = 8;
constexpr std::size_t kStoredSlotBytes = 30;  // Of a bin: tag, id and heat.
constexpr const char* kStatesPath = "/s/states";
constexpr std::size_t kStatesBlock = 4096;
constexpr const char* kSettledPath = "/r/settled";
const std::string kCatalogId(16, 'i');
constexpr std::uint64_t kCatalogCommit = 90;

void put_bytes(io::FileSystem& files, const std::string& path, std::string_view bytes) {
  const auto file = files.open(path, io::OpenMode::kReadWrite);
  require(file && (*file)->write_at(0, base::as_bytes(bytes)), "a file in memory");
}

index::Entry sample_entry(std::uint32_t number) {
  return {index::tag_of(index::random_fingerprint(number)),
          ChunkId::make(VersionNumber{5}, number)};
}

// Corrects the checksums of a log of the Zero-Chunk index, and those of the bins that the log
// names.
void sum_zero_files(std::string& log, std::string& bins) {
  constexpr std::size_t kHeader = 24;
  constexpr std::size_t kBatchHeader = 16;
  constexpr std::size_t kBinHeader = 16;
  constexpr std::size_t kRecord = 24;
  if (log.size() < kHeader) return;
  put64(log, 16, sum(log, 0, 16));
  for (std::size_t at = kHeader; log.size() - at >= kBatchHeader;) {
    const auto* const start = base::as_bytes(log).data() + at;
    const std::size_t bytes = base::load_le<std::uint32_t>(start + 4);
    const auto body = at + kBatchHeader;
    if (bytes > log.size() - body) return;
    put64(log, at + 8, sum(log, body, body + bytes));
    for (auto record = body + 8; record + kRecord <= body + bytes; record += kRecord) {
      const auto* const place = base::as_bytes(log).data() + record;
      const std::size_t content = base::load_le<std::uint32_t>(place + 4);
      const auto offset = base::load_le<std::uint64_t>(place + 16);
      if (content > bins.size() || offset > bins.size()) continue;
      if (offset + kBinHeader + content > bins.size()) continue;
      std::copy_n(reinterpret_cast<const char*>(place), 8, bins.data() + offset);
      put64(bins, offset + 8, sum(bins, offset + kBinHeader, offset + kBinHeader + content));
    }
    at = body + bytes;
  }
}

// Corrects the checksums of the states of a source. docs/FORMAT.md §8.
void sum_states(std::string& bytes) {
  constexpr std::size_t kNumberAt = 24;
  if (bytes.size() < kStatesBlock) return;
  const auto number = base::load_le<std::uint64_t>(base::as_bytes(bytes).data() + kNumberAt);
  for (std::size_t i = 0; (i + 1) * kStatesBlock <= bytes.size(); ++i) {
    std::string place(16, '\0');
    put64(place, 0, static_cast<std::uint32_t>(number));
    put64(place, 8, i);
    base::ChecksumStream stream;
    stream.add(base::as_bytes(place));
    stream.add(base::as_bytes(bytes).subspan(i * kStatesBlock, kStatesBlock - 8));
    put64(bytes, (i + 1) * kStatesBlock - 8, stream.sum());
  }
}

}  // namespace

void zero_bin(Bytes input) {
  if (input.empty()) return;
  index::BinRules rules;
  const auto flags = static_cast<unsigned>(input[0]);
  rules.heat_step = (flags & 1) != 0 ? 255 : 3;
  rules.entries_kept = (flags & 2) != 0 ? 70 : 0;
  const auto text = text_of(input.subspan(1));
  auto bin = index::ZeroBin::decode(text, rules);
  require(bin.has_value() || bin.error().code() == ErrorCode::kCorrupt,
          "a bin is damaged or valid");
  if (!bin) return;
  require(bin->size() <= text.size() / kStoredSlotBytes, "a bin has at most the stored entries");
  std::string once;
  bin->encode(once);
  const auto again = index::ZeroBin::decode(once, rules);
  std::string twice;
  if (again) again->encode(twice);
  require(again && twice == once, "an encoded bin decodes to the same bin");
  const auto slots = bin->slots();
  for (const auto& entry : slots) {
    if (!entry.is_empty()) require(bin->find(entry.tag) == entry.id(), "an entry is found");
  }
  // A full bin must grow, reuse cold slots or drop them, whatever the heats are.
  for (std::uint32_t i = 0; i < 150; ++i) {
    const auto entry = sample_entry(i);
    bin->put(entry);
    require(bin->find(entry.tag) == entry.id(), "a new entry is found");
    if (!slots.empty() && i % 2 == 0) bin->use(slots[i % slots.size()].tag);
    if (!slots.empty() && i % 7 == 0) bin->erase(slots[i % slots.size()].tag);
  }
  const auto& rest = bin->slots();
  const auto used = std::ranges::count_if(rest, [](const auto& one) { return !one.is_empty(); });
  require(static_cast<std::size_t>(used) == bin->size(), "a bin counts its entries");
}

std::vector<std::string> zero_bin_seeds() {
  std::vector<std::string> seeds;
  for (const std::uint32_t count : {0U, 3U, 65U}) {
    index::ZeroBin bin{{}};
    for (std::uint32_t i = 0; i < count; ++i) bin.put(sample_entry(i));
    for (std::uint32_t i = 0; i < count; i += 3) bin.use(sample_entry(i).tag);
    std::string seed(1, static_cast<char>(count % 4));
    bin.encode(seed);
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

void zero_files(Bytes input) {
  if (input.size() < 2) return;
  base::set_log_level(base::LogLevel::kError);
  const auto text = text_of(input.subspan(2));
  const std::size_t log_bytes = base::load_le<std::uint16_t>(input.data());
  std::string log(text.substr(0, log_bytes));
  std::string bins(text.substr(log.size()));
  sum_zero_files(log, bins);
  const auto files = io::make_memory_file_system();
  require(files->make_directory(kZeroFolder).has_value(), "a folder in memory");
  put_bytes(*files, kZeroLog, log);
  put_bytes(*files, kZeroBins, bins);
  // The search for faults waits for a writer, so only few inputs have it.
  constexpr std::uint64_t kInputsPerSearch = 64;
  if (base::checksum64(base::as_bytes(log)) % kInputsPerSearch == 0) {
    static_cast<void>(index::ZeroFiles::find_faults(*files, kZeroFolder));
  }
  auto opened = index::ZeroFiles::open_present(*files, kZeroFolder);
  if (!opened) return;
  std::vector<std::optional<std::string>> contents;
  for (index::BinNumber bin = 0; bin < opened->bins().size(); ++bin) {
    require(opened->bins().find(opened->bins()[bin].hook).value_or(~0U) <= bin,
            "a hook has a first bin");
    auto content = opened->read(bin);
    contents.emplace_back(content ? std::optional(std::move(*content)) : std::nullopt);
  }
  const std::string added = "the content of a new bin";
  const auto bin = opened->add(99);
  if (!opened->write(bin, added) || !opened->commit({}, VersionNumber{3})) return;
  const auto parameter = opened->parameter();
  const auto told = opened->told();
  opened = index::ZeroFiles::open(*files, kZeroFolder, parameter);
  require(opened->bins().size() == contents.size() + 1, "a commit keeps the bins before it");
  require(opened->read(bin) && *opened->read(bin) == added, "a committed bin is read");
  require(opened->told() == told && opened->complete_below() == VersionNumber{3},
          "a commit keeps its notes");
  for (index::BinNumber old = 0; old < bin; ++old) {
    const auto content = opened->read(old);
    require(!contents[old] || (content && *content == *contents[old]), "a bin stays the same");
  }
  require(opened->compact(told, [](std::string one) { return one; }).has_value(), "compaction");
  require(opened->read(bin) && *opened->read(bin) == added, "a compacted bin is read");
  require(index::ZeroFiles::find_faults(*files, kZeroFolder).empty(), "new files have no fault");
}

std::vector<std::string> zero_files_seeds() {
  std::vector<std::string> seeds;
  for (const int commits : {1, 3}) {
    const auto files = io::make_memory_file_system();
    require(files->make_directory(kZeroFolder).has_value(), "a folder in memory");
    {
      const auto zero = index::ZeroFiles::open(*files, kZeroFolder, kZeroParameter);
      for (int i = 0; i < commits; ++i) {
        const auto bin = zero->add(static_cast<std::uint64_t>(i) % 2);
        const auto ids = base::IdRuns::from({{ChunkId::make(VersionNumber{5}, 10), 4}});
        require(zero->write(bin, std::string(40, 'b')) && zero->write(0, std::string(20, 'a')) &&
                    zero->commit(ids, VersionNumber{2}),
                "a bin is written to memory");
      }
    }
    const auto log = files->read_file(kZeroLog, 1U << 20);
    const auto bins = files->read_file(kZeroBins, 1U << 20);
    if (!log || !bins) continue;
    std::string seed(2, '\0');
    seed[0] = static_cast<char>(log->size() & 0xff);
    seed[1] = static_cast<char>(log->size() >> 8);
    seeds.push_back(seed + *log + *bins);
  }
  return seeds;
}

void source_states(Bytes input) {
  std::string bytes(text_of(input));
  sum_states(bytes);
  const auto files = io::make_memory_file_system();
  require(files->make_directory("/s").has_value(), "a folder in memory");
  put_bytes(*files, kStatesPath, bytes);
  const auto opened = transfer::SourceStates::open(*files, kStatesPath);
  require(opened || opened.error().code() == ErrorCode::kCorrupt, "states are damaged or valid");
  if (!opened) return;
  auto& states = **opened;
  const auto entries = states.header().entries;
  const bool whole = states.verify().has_value();
  require(!whole || entries < bytes.size(), "valid states have all their blocks");
  const transfer::SourceState state{7, 1, {1'764'000'000, 5}};
  for (const Rank rank : {Rank{0}, Rank{1}, entries - 1, entries, ~Rank{0}}) {
    const bool is_same = states.matches(rank, state);
    require(!is_same || rank < entries, "only an entry of the version has a state");
  }
  require(!states.matches(0, {0, 1, {1'764'000'000, 5}}), "no file has inode 0");
  const transfer::SourceState far{7, 1, {INT64_MAX, 999'999'999}};
  require(!states.matches(0, far), "a time out of range is no state");
}

std::vector<std::string> source_states_seeds() {
  std::vector<std::string> seeds;
  for (const std::uint64_t names : {0ULL, 300ULL}) {
    const auto files = io::make_memory_file_system();
    require(files->make_directory("/s").has_value(), "a folder in memory");
    transfer::SourceStatesHeader header;
    header.series = SeriesId{3};
    header.number = VersionNumber{7};
    header.base_sealed_at = {1'763'000'000, 1};
    header.source = 55;
    const auto writer = transfer::SourceStatesWriter::create(*files, "/s", "new", header);
    require(writer.has_value(), "states are written to memory");
    for (std::uint64_t i = 0; i <= names; ++i) {
      (*writer)->add(transfer::SourceState{7 + i, 1, {1'764'000'000, 5}});
    }
    require((*writer)->finish("states", {1'764'000'001, 0}, names).has_value(), "states end");
    if (auto bytes = files->read_file(kStatesPath, 1U << 20)) seeds.push_back(std::move(*bytes));
  }
  return seeds;
}

void settled(Bytes input) {
  std::string bytes(text_of(input));
  // A note without a list has its checksum at byte 40, and one with a list at its end.
  if (bytes.size() == 48) put64(bytes, 40, sum(bytes, 0, 40));
  if (bytes.size() > 48) put64(bytes, bytes.size() - 8, sum(bytes, 0, bytes.size() - 8));
  const auto files = io::make_memory_file_system();
  require(files->make_directory("/r").has_value(), "a folder in memory");
  put_bytes(*files, kSettledPath, bytes);
  repo::SettledMark mark(*files, kSettledPath);
  require(!mark.read(std::string(16, 'o'), kCatalogCommit).settled ||
              bytes.find(std::string(16, 'o')) != std::string::npos,
          "a note counts for its catalog only");
  require(!mark.read(kCatalogId, kCatalogCommit + 1).settled ||
              !mark.read(kCatalogId, kCatalogCommit).settled,
          "a note counts for one commit only");
  const auto note = mark.read(kCatalogId, kCatalogCommit);
  require(note.settled || !note.unarranged, "a void note lists no series");
  if (!note.settled) return;
  require(mark.write(kCatalogId, kCatalogCommit, note.unarranged).has_value(), "a note is written");
  repo::SettledMark second(*files, kSettledPath);
  const auto again = second.read(kCatalogId, kCatalogCommit);
  require(again.settled && again.unarranged == note.unarranged, "a written note says the same");
  require(second.clear() && !second.read(kCatalogId, kCatalogCommit).settled, "a note is voided");
}

std::vector<std::string> settled_seeds() {
  std::vector<std::string> seeds;
  const std::set<SeriesId> few{SeriesId{1}, SeriesId{7}};
  for (const auto& list : {std::optional<std::set<SeriesId>>(), std::optional(std::set<SeriesId>()),
                           std::optional(few)}) {
    const auto files = io::make_memory_file_system();
    require(files->make_directory("/r").has_value(), "a folder in memory");
    repo::SettledMark mark(*files, kSettledPath);
    require(mark.write(kCatalogId, kCatalogCommit, list).has_value(), "a note is written");
    if (auto bytes = files->read_file(kSettledPath, 1U << 10)) seeds.push_back(std::move(*bytes));
  }
  return seeds;
}

}  // namespace varve::fuzz
