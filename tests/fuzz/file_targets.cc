// SPDX-License-Identifier: Apache-2.0
#include "file_targets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "base/coding.h"
#include "base/unique_fd.h"
#include "checks.h"
#include "crypto/sealed_file.h"
#include "format/beside.h"
#include "format/container.h"
#include "format/manifest.h"
#include "io/memory_file_system.h"
#include "maintain/check_record.h"
#include "maintain/container_scan.h"
#include "maintain/manifest_file.h"
#include "maintain/scrub.h"
#include "right_sums.h"
#include "store/alias_files.h"
#include "store/folder_store.h"
#include "store/repository_names.h"
#include "support/format_samples.h"
#include "temporary_folder.h"
#include "transfer/restore_log.h"

namespace varve::fuzz {
namespace {

constexpr SeriesId kFileSeries{3};
constexpr StoreId kFileStore{3};
constexpr VersionNumber kFileVersion{7};

bool put_file(io::FileSystem& files, const std::string& path, std::string_view bytes) {
  const auto file = files.open(path, io::OpenMode::kReadWrite);
  return file && (*file)->write_at(0, base::as_bytes(bytes));
}

std::string manifest_image(const format::ManifestHeader& identity, Codec codec) {
  std::string body;
  const auto frames = format::make_plain_frame_codec({});
  const auto compression =
      codec == Codec::kNone ? format::Compression{} : format::kManifestCompression;
  format::ManifestEncoder encoder(identity, *frames, compression,
                                  [&](std::string_view bytes) -> Result<void> {
                                    body += bytes;
                                    return {};
                                  });
  const auto key = base::be32(7);
  const auto node = base::be64((7ULL << 32) + 1);
  using Record = format::ManifestRecord;
  bool added = encoder.add(Record::kSeries, "", "laptop").has_value();
  added = added && encoder.add(Record::kSuperblock, "", "text");
  added = added && encoder.add(Record::kVersion, key, "monday");
  added = added && encoder.add(Record::kSetting, maintain::kCatalogIdSetting, std::string(16, 'i'));
  added = added && encoder.add(Record::kNode, node, format::encode_dir_page(format::sample_leaf()));
  // Makes a record of two pieces where that costs no space.
  const std::size_t bytes = codec == Codec::kZstd ? format::kManifestBlockRawMax + 5000 : 500;
  added = added && encoder.add(Record::kVersionChunks, key, std::string(bytes, 'c'));
  const auto header = encoder.finish();
  return added && header ? format::encode_manifest_header(*header) + body : std::string();
}

}  // namespace

void manifest(Bytes input) {
  std::string bytes(text_of(input));
  sum_manifest(bytes);
  const auto files = io::make_memory_file_system();
  const auto path = maintain::manifest_path("/s", kFileVersion);
  if (!files->make_directory("/s") ||
      !files->make_directory(std::string("/s/") + maintain::kManifestFolder) ||
      !put_file(*files, path, bytes) ||
      !put_file(*files, std::string("/s/") + maintain::kLabelsName, bytes)) {
    return;
  }
  const auto listed = maintain::list_manifests(*files, "/s");
  require(listed && listed->size() == 1, "a manifest is found by its name");
  std::uint64_t records = 0;
  const auto codec = format::make_plain_frame_codec({});
  const auto read = maintain::read_manifest(
      *files, *codec, path,
      [&](format::ManifestRecord, std::string_view, std::string_view) -> Result<void> {
        ++records;
        return {};
      });
  if (read) {
    require(format::encode_manifest_header(read->header) ==
                bytes.substr(0, format::kManifestHeaderBytes),
            "a header that is accepted has one encoding");
  }
  const auto labels = maintain::read_labels(*files, *codec, "/s", kFileSeries);
  require(!labels || (read && read->damaged_blocks == 0), "labels are whole or not at all");
}
std::vector<std::string> manifest_seeds() {
  format::ManifestHeader identity;
  identity.series = kFileSeries;
  identity.number = kFileVersion;
  std::vector<std::string> seeds{manifest_image(identity, Codec::kZstd)};
  identity.kind = format::ManifestKind::kLabels;
  identity.number = {};
  identity.stamp = 9;
  seeds.push_back(manifest_image(identity, Codec::kNone));
  return seeds;
}

void volume(Bytes input) {
  if (input.empty()) return;
  const bool is_volume = (static_cast<unsigned>(input[0]) & 1) != 0;
  std::string bytes(text_of(input.subspan(1)));
  sum_containers(bytes);
  const auto files = io::make_memory_file_system();
  const std::string folder = is_volume ? "/s/volumes" : "/s/active";
  const auto segment = is_volume ? as_volume(SegmentNumber{5}) : SegmentNumber{5};
  if (!files->make_directory("/s") || !files->make_directory(folder) ||
      !put_file(*files, folder + "/" + store::segment_name(segment), bytes)) {
    return;
  }
  std::uint64_t passed = 0;
  store::FolderStore store(*files, "/s");
  const auto scan =
      maintain::scan_containers(store, nullptr, kFileStore, maintain::FoundBySearch::kTake,
                                [&](std::uint64_t n) { passed += n; });
  require(scan || scan.error().code() == ErrorCode::kUnsupported,
          "a file can be searched whatever it holds");
  if (!scan) return;
  require(passed == bytes.size(), "all of a file is searched");
  std::uint64_t told = 0;
  for (const auto& one : scan->containers) told += one.record.end() - one.record.offset;
  for (const auto& one : scan->unread) told += one.bytes;
  // A container may claim data beyond the end of the file. Readers of the data detect that.
  require(told >= bytes.size(), "each byte is in a container or unread");
}
std::vector<std::string> volume_seeds() {
  // Small, so that the test can try many.
  format::ContainerHeader header;
  header.store = kFileStore;
  header.chunks = {format::chunk(ChunkId::make(kFileVersion, 10), 300),
                   format::chunk(ChunkId::make(kFileVersion, 11), 40)};
  format::FrameEntry frame;
  frame.chunk_count = 2;
  frame.stored_bytes = frame.raw_bytes = 340;
  header.frames = {frame};
  const auto container = [&](std::uint32_t number, bool compact) {
    header.number = static_cast<ContainerNumber>(number);
    header.compact = compact;
    return format::encode_container_header(header) +
           std::string(format::padded_bytes(frame.stored_bytes, compact), 'x');
  };
  const auto damaged = [](std::string bytes) {
    bytes[32] = static_cast<char>(bytes[32] ^ 1);
    return bytes;
  };
  return {std::string(1, '\0') + container(1, false) + container(2, false),
          std::string(1, '\1') + container(1, true) + container(2, true),
          std::string(1, '\1') + damaged(container(1, true)) + container(2, true)};
}

void restore_log(Bytes input) {
  static const TemporaryFolder folder;
  const base::UniqueFd directory(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Adds checksums to all lines but the last, which may be torn.
  std::string text;
  std::string_view rest = text_of(input);
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : rest.substr(0, end)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    text += fmt::format("{} #{:016x}\n", rest.substr(0, end), hash);
    rest.remove_prefix(end + 1);
  }
  text += rest;
  const auto path = folder.path() + "/log";
  std::ofstream(path, std::ios::binary) << text;
  if (::chmod(path.c_str(), 0600) != 0) return;
  transfer::RestorePoint last;
  {
    transfer::RestoreLog log(directory.get(), "log", "identity");
    last = log.last();
    if (log.resumes()) {
      require(log.is_temporary_name(log.temporary_name(last.rank)), "a log knows its files");
      require(log.temporary_name(last.rank).find('/') == std::string::npos,
              "a log's files are in its folder");
    }
  }
  // Now only the torn line is gone.
  transfer::RestoreLog again(directory.get(), "log", "identity");
  require(again.last().rank == last.rank && again.last().offset == last.offset,
          "a log that was opened says the same again");
}
std::vector<std::string> restore_log_seeds() {
  const std::string header = "varve restore log 1\nidentity\n0123456789abcdef 1700000000\n";
  return {header + "5 4096\n9 0\n", header + "18446744073709551615 1\n7",
          "varve restore log 1\nother\n"};
}

void check_record(Bytes input) {
  std::string bytes(text_of(input));
  sum_text(bytes);
  const auto record = maintain::decode_check_record(bytes);
  require(!record || maintain::encode_check_record(*record) == bytes,
          "a record that is believed has one encoding");
}
std::vector<std::string> check_record_seeds() {
  const EarlierCheck quick{CheckDepth::kStructure, 1'800'000'000, 0};
  const EarlierCheck full{CheckDepth::kChunks, 1'700'000'000, 3};
  maintain::RecordOfChecks lost{{full}, {}};
  lost.lost[kFileStore] = base::IdRuns::from(
      {{ChunkId::make(kFileVersion, 10), 2}, {ChunkId::make(VersionNumber{9}, 0xfffffff0), 16}});
  return {maintain::encode_earlier_checks({quick, full}), maintain::encode_earlier_checks({full}),
          maintain::encode_earlier_checks({}), maintain::encode_check_record(lost)};
}

void beside(Bytes input) {
  std::string bytes(text_of(input));
  if (bytes.size() >= 8) put64(bytes, bytes.size() - 8, sum(bytes, 0, bytes.size() - 8));
  const auto image = format::decode_beside(SeriesId{3}, bytes);
  if (!image) return;
  const auto once = format::encode_beside(SeriesId{3}, *image);
  const auto again = format::decode_beside(SeriesId{3}, once);
  require(again && format::encode_beside(SeriesId{3}, *again) == once,
          "files beside versions that are believed have one encoding");
}
std::vector<std::string> beside_seeds() {
  format::BesideRecord folder;
  folder.ino = 2;
  folder.name = "dirvish";
  folder.mode = S_IFDIR | 0755;
  format::BesideRecord file;
  file.ino = 5;
  file.parent = 2;
  file.name = "default.hist";
  file.mode = S_IFREG | 0644;
  file.content = "text";
  format::BesideRecord link = file;
  link.ino = 9;
  link.parent = kRootIno;
  link.name = "latest";
  link.mode = S_IFLNK | 0777;
  return {format::encode_beside(SeriesId{3}, {.next = 10, .records = {folder, file, link}}),
          format::encode_beside(SeriesId{3}, {})};
}

void alias_file(Bytes input) {
  std::string bytes(text_of(input));
  sum_aliases(bytes);
  const auto files = io::make_memory_file_system();
  const store::FolderPath folder{files.get(), "/p"};
  if (!files->make_directory("/p") || !put_file(*files, "/p/" + store::alias_file_name(1), bytes)) {
    return;
  }
  std::vector<format::TaggedAliases> runs;
  format::Births births;
  const auto fault =
      store::read_alias_file(folder, 1, [&](const auto& its, const auto& run) -> Result<void> {
        births = its;
        require(format::is_alias_run(run.run) && run.tags.size() == run.run.count,
                "a run of aliases keeps the rules");
        runs.push_back(run);
        return {};
      });
  if (!fault || !fault->empty()) return;
  // A sound file can be written again, unless the runs of two blocks overlap.
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].run.first.value < runs[i - 1].run.first.value + runs[i - 1].run.count) return;
  }
  const auto writer = store::AliasFileWriter::begin(folder, 2);
  require(writer.has_value(), "a file of aliases can be begun");
  for (const auto& run : runs) require((*writer)->add(run).has_value(), "a run can be written");
  require((*writer)->finish(births).has_value(), "a file of aliases can be finished");
  std::size_t at = 0;
  const auto again =
      store::read_alias_file(folder, 2, [&](const auto& its, const auto& run) -> Result<void> {
        require(its == births, "the births of a file of aliases read back");
        require(at < runs.size() && run == runs[at++], "a file of aliases reads back");
        return {};
      });
  require(again && again->empty() && at == runs.size(), "a file of aliases reads back");
}
std::vector<std::string> alias_file_seeds() {
  const auto files = io::make_memory_file_system();
  const store::FolderPath folder{files.get(), "/p"};
  std::vector<std::string> seeds;
  const auto id = [](std::uint32_t birth, std::uint32_t ordinal) {
    return ChunkId::make(static_cast<VersionNumber>(kPoolBit + birth), ordinal);
  };
  if (!files->make_directory("/p")) return seeds;
  for (const std::uint32_t count : {1U, 40U}) {
    const auto writer = store::AliasFileWriter::begin(folder, count);
    if (!writer) return seeds;
    format::TaggedAliases run{{id(2, 5), count, id(1, 7)}, {}};
    for (std::uint32_t i = 0; i < count; ++i) run.tags.push_back(0x123456789abcdefULL * (i + 1));
    if (!(*writer)->add(run)) return seeds;
    run.run = {id(3, 0), count, id(9, 1000)};
    format::Births births;
    if (count != 1)
      births[run.run.first.birth()] = {{std::byte{7}}, SeriesId{1}, VersionNumber{2}, 3};
    if (!(*writer)->add(run) || !(*writer)->finish(births)) return seeds;
    if (auto bytes = files->read_file("/p/" + store::alias_file_name(count), 1U << 20)) {
      seeds.push_back(std::move(*bytes));
    }
  }
  return seeds;
}

namespace {

// The text that the seeds of sealed_file() begin with: three appends, with gaps between them.
std::string sealed_text() {
  std::string text(3072, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i < 700 || (i >= 1024 && i < 1100) || i >= 1536) text[i] = static_cast<char>(i * 7 + 1);
  }
  return text;
}

std::unique_ptr<io::File> open_sealed(io::FileSystem& files) {
  static const auto keys = [] {
    std::array<std::byte, crypto::kKeyBytes> bytes{};
    const auto master = crypto::SecretKey::copy_of(bytes);
    return master ? crypto::KeyRing::make(*master, "fuzz", crypto::Cipher::kAes256Gcm)
                  : master.error();
  }();
  auto file = files.open("/f", io::OpenMode::kReadWrite);
  require(keys && file, "keys and a file in memory");
  return crypto::make_sealed_file(std::move(*file), "/f", *keys,
                                  {.kind = 2, .store = 3, .block_bytes = 512, .grows = true});
}

}  // namespace

void sealed_file(Bytes input) {
  std::string bytes(text_of(input));
  sum_sealed(bytes);
  const auto files = io::make_memory_file_system();
  if (!put_file(*files, "/f", bytes)) return;
  const auto raw = files->open("/f", io::OpenMode::kRead);
  require(raw.has_value(), "a file in memory opens");
  static_cast<void>(crypto::find_sealed_fault(**raw));
  const auto file = open_sealed(*files);
  const auto text = sealed_text();
  std::string out(100, '\0');
  for (std::size_t at = 0; at < text.size() + 200; at += out.size()) {
    const auto got = file->read_at(at, std::as_writable_bytes(std::span(out)));
    if (!got) continue;
    // A block that opens is one that was written there. Behind a short one are zeros.
    for (std::size_t i = 0; i < *got; ++i) {
      require(out[i] == '\0' || (at + i < text.size() && out[i] == text[at + i]),
              "only what was sealed is read");
    }
  }
  static_cast<void>(file->truncate(1000));
  static_cast<void>(file->write_at(900, base::as_bytes(text)));
  static_cast<void>(file->size());
}
std::vector<std::string> sealed_file_seeds() {
  std::vector<std::string> seeds;
  const auto text = sealed_text();
  for (const std::size_t end : {std::size_t{700}, std::size_t{1100}, text.size()}) {
    const auto files = io::make_memory_file_system();
    const auto file = open_sealed(*files);
    for (const auto& [from, to] : {std::pair{0, 700}, {1024, 1100}, {1536, 3072}}) {
      if (static_cast<std::size_t>(to) > end) break;
      const auto part = std::string_view(text).substr(from, to - from);
      require(file->write_at(from, base::as_bytes(part)).has_value(), "a write to memory");
    }
    if (auto bytes = files->read_file("/f", 1U << 20)) seeds.push_back(std::move(*bytes));
  }
  return seeds;
}

void scrub_state(Bytes input) {
  std::string bytes(text_of(input));
  sum_text(bytes);
  const auto state = maintain::decode_scrub_state(bytes);
  require(state == maintain::ScrubState() || maintain::encode_scrub_state(state) == bytes,
          "a state that is believed has one encoding");
}
std::vector<std::string> scrub_state_seeds() {
  maintain::ScrubState state;
  state.reached = CheckPosition{kFileSeries, 5, 4096};
  state.damages = 2;
  return {maintain::encode_scrub_state(state), maintain::encode_scrub_state({})};
}

}  // namespace varve::fuzz
