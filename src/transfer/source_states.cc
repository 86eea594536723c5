// SPDX-License-Identifier: Apache-2.0
#include "transfer/source_states.h"

#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"

namespace varve::transfer {

namespace {

using base::load_le;
using base::store_le;

constexpr std::size_t kStatesBlockBytes = 4096;
constexpr std::size_t kStatesChecksumBytes = 8;
// A record: inode (8), ctime in nanoseconds (8), checksum of the device's number (4). All zero: no
// state.
constexpr std::size_t kStatesRecordBytes = 20;
constexpr std::size_t kStatesRecordsPerBlock =
    (kStatesBlockBytes - kStatesChecksumBytes) / kStatesRecordBytes;
constexpr std::string_view kStatesMagic = "VarveSrc";
constexpr std::uint64_t kStatesFormat = 1;
constexpr std::int64_t kStatesNanoseconds = 1000000000;

// The checksum covers the version and the block's number, so a block of another place or of another
// file is not taken for the expected block.
std::uint64_t states_sum(std::span<const std::byte> block, VersionNumber version,
                         std::uint64_t number) {
  std::array<std::byte, 16> place{};
  store_le(place.data(), static_cast<std::uint64_t>(version));
  store_le(place.data() + 8, number);
  base::ChecksumStream stream;
  stream.add(place);
  stream.add(block.first(kStatesBlockBytes - kStatesChecksumBytes));
  return stream.sum();
}

void seal_states_block(std::span<std::byte> block, VersionNumber version, std::uint64_t number) {
  store_le(block.data() + kStatesBlockBytes - kStatesChecksumBytes,
           states_sum(block, version, number));
}

bool is_sound_block(std::span<const std::byte> block, VersionNumber version, std::uint64_t number) {
  return load_le<std::uint64_t>(block.data() + kStatesBlockBytes - kStatesChecksumBytes) ==
         states_sum(block, version, number);
}

std::vector<std::byte> encode_states_header(const SourceStatesHeader& header) {
  std::vector<std::byte> block(kStatesBlockBytes);
  std::memcpy(block.data(), kStatesMagic.data(), kStatesMagic.size());
  std::size_t at = kStatesMagic.size();
  const auto put = [&](std::uint64_t value) {
    store_le(block.data() + at, value);
    at += sizeof value;
  };
  const auto put_time = [&](const Timestamp& time) {
    put(static_cast<std::uint64_t>(time.seconds));
    put(time.nanoseconds);
  };
  put(kStatesFormat);
  put(static_cast<std::uint64_t>(header.series));
  put(static_cast<std::uint64_t>(header.number));
  put(static_cast<std::uint64_t>(header.base));
  put_time(header.base_sealed_at);
  put_time(header.sealed_at);
  put_time(header.started_at);
  put(header.name);
  put(header.source);
  put(header.root_inode);
  put(header.lost);
  put(header.user);
  put(header.entries);
  seal_states_block(block, header.number, 0);
  return block;
}

Result<SourceStatesHeader> decode_states_header(std::span<const std::byte> block) {
  const Error damaged(ErrorCode::kCorrupt, "the states of the source's files are damaged");
  if (std::memcmp(block.data(), kStatesMagic.data(), kStatesMagic.size()) != 0) return damaged;
  std::size_t at = kStatesMagic.size();
  const auto get = [&] {
    const auto value = load_le<std::uint64_t>(block.data() + at);
    at += sizeof value;
    return value;
  };
  const auto get_time = [&] {
    Timestamp time;
    time.seconds = static_cast<std::int64_t>(get());
    time.nanoseconds = static_cast<std::uint32_t>(get());
    return time;
  };
  if (get() != kStatesFormat) return damaged;
  SourceStatesHeader header;
  header.series = static_cast<SeriesId>(get());
  header.number = static_cast<VersionNumber>(get());
  header.base = static_cast<VersionNumber>(get());
  header.base_sealed_at = get_time();
  header.sealed_at = get_time();
  header.started_at = get_time();
  header.name = get();
  header.source = get();
  header.root_inode = get();
  header.lost = get();
  header.user = get();
  header.entries = get();
  if (!is_sound_block(block, header.number, 0)) return damaged;
  return header;
}

std::uint32_t device_stamp(std::uint64_t device) {
  std::array<std::byte, 8> bytes{};
  store_le(bytes.data(), device);
  return static_cast<std::uint32_t>(base::checksum64(bytes));
}

// Returns nullopt for a time outside the years 1678 to 2261.
std::optional<std::int64_t> whole_nanoseconds(const Timestamp& time) {
  constexpr std::int64_t kSecondsMax =
      std::numeric_limits<std::int64_t>::max() / kStatesNanoseconds - 1;
  if (time.seconds > kSecondsMax || time.seconds < -kSecondsMax) return std::nullopt;
  return time.seconds * kStatesNanoseconds + time.nanoseconds;
}

}  // namespace

Result<std::unique_ptr<SourceStates>> SourceStates::open(io::FileSystem& files,
                                                         const std::string& path) {
  VARVE_TRY_ASSIGN(auto file, files.open(path, io::OpenMode::kRead));
  std::vector<std::byte> block(kStatesBlockBytes);
  VARVE_TRY_ASSIGN(const auto got, file->read_at(0, block));
  if (got != kStatesBlockBytes) return Error(ErrorCode::kCorrupt, path + " is too short");
  VARVE_TRY_ASSIGN(const auto header, decode_states_header(block));
  return std::unique_ptr<SourceStates>(new SourceStates(std::move(file), header));
}

bool SourceStates::matches(Rank rank, const SourceState& state) {
  if (rank >= header_.entries) return false;
  const std::uint64_t number = 1 + rank / kStatesRecordsPerBlock;
  if (number != block_number_ && !read_block(number)) return false;
  const std::byte* record = block_.data() + rank % kStatesRecordsPerBlock * kStatesRecordBytes;
  const auto ctime = whole_nanoseconds(state.ctime);
  if (!ctime || load_le<std::uint64_t>(record) != state.inode || state.inode == 0 ||
      load_le<std::int64_t>(record + 8) != *ctime) {
    return false;
  }
  // The number of a device may change with each mount, so the number counts only for coarse times:
  // with coarse times, two file systems may have equal states by chance.
  return state.ctime.nanoseconds != 0 ||
         load_le<std::uint32_t>(record + 16) == device_stamp(state.device);
}

Result<void> SourceStates::read_block(std::uint64_t number) {
  block_.resize(kStatesBlockBytes);
  block_number_ = 0;
  VARVE_TRY_ASSIGN(const auto got, file_->read_at(number * kStatesBlockBytes, block_));
  if (got != kStatesBlockBytes || !is_sound_block(block_, header_.number, number)) {
    return Error(ErrorCode::kCorrupt, "the states of the source's files are damaged");
  }
  block_number_ = number;
  return {};
}

Result<void> SourceStates::verify() {
  for (std::uint64_t number = 1; (number - 1) * kStatesRecordsPerBlock < header_.entries;
       ++number) {
    VARVE_TRY(read_block(number));
  }
  return {};
}

Result<std::unique_ptr<SourceStatesWriter>> SourceStatesWriter::create(
    io::FileSystem& files, const std::string& directory, const std::string& name,
    const SourceStatesHeader& header) {
  std::unique_ptr<SourceStatesWriter> writer(
      new SourceStatesWriter(files, directory, name, header));
  VARVE_TRY_ASSIGN(writer->file_, files.open(directory + "/" + name, io::OpenMode::kReadWrite));
  VARVE_TRY(writer->file_->truncate(0));
  VARVE_TRY(writer->file_->write_at(0, encode_states_header(header)));
  VARVE_TRY(writer->file_->sync());
  VARVE_TRY(files.sync_directory(directory));
  return writer;
}

void SourceStatesWriter::add(const std::optional<SourceState>& state) {
  if (block_.empty()) block_.resize(kStatesBlockBytes);
  std::byte* record = block_.data() + header_.entries % kStatesRecordsPerBlock * kStatesRecordBytes;
  const auto ctime = state ? whole_nanoseconds(state->ctime) : std::nullopt;
  if (ctime) {
    store_le(record, state->inode);
    store_le(record + 8, *ctime);
    store_le(record + 16, device_stamp(state->device));
  }
  if (++header_.entries % kStatesRecordsPerBlock == 0) write_block();
}

void SourceStatesWriter::write_block() {
  const std::uint64_t number =
      (header_.entries + kStatesRecordsPerBlock - 1) / kStatesRecordsPerBlock;
  seal_states_block(block_, header_.number, number);
  if (!error_) {
    if (auto written = file_->write_at(number * kStatesBlockBytes, block_); !written) {
      error_ = std::move(written).error();
    }
  }
  block_.clear();
}

Result<void> SourceStatesWriter::finish(const std::string& name, Timestamp sealed_at,
                                        std::uint64_t entries) {
  if (!block_.empty()) write_block();
  if (error_) return *error_;
  if (entries + 1 != header_.entries) {
    return Error(ErrorCode::kInvalid, "the version has entries that were not stored with it");
  }
  header_.sealed_at = sealed_at;
  VARVE_TRY(file_->write_at(0, encode_states_header(header_)));
  file_.reset();
  return files_.rename(directory_ + "/" + name_, directory_ + "/" + name);
}

}  // namespace varve::transfer
