// SPDX-License-Identifier: Apache-2.0
#include "store/alias_files.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "base/coding.h"
#include "store/repository_names.h"

namespace varve::store {

Result<std::vector<std::uint32_t>> list_alias_files(const FolderPath& folder) {
  std::vector<std::uint32_t> numbers;
  const auto names = folder.files->list(folder.path);
  if (!names && names.error().code() == ErrorCode::kNotFound) return numbers;
  if (!names) return names.error();
  for (const auto& name : *names) {
    if (const auto number = parse_alias_file_name(name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

namespace {

// Reads the last `bytes` bytes of the file: the part with the births.
Result<format::Births> read_births(io::File& file, std::uint64_t size, std::uint64_t bytes) {
  std::vector<std::byte> part(std::min(bytes, size));
  VARVE_TRY_ASSIGN(const auto got, file.read_at(size - part.size(), part));
  return format::decode_alias_births(std::span(part).first(got));
}

}  // namespace

Result<std::string> read_alias_file(const FolderPath& folder, std::uint32_t number,
                                    const AliasVisit& visit) {
  const auto path = folder.path + "/" + alias_file_name(number);
  VARVE_TRY_ASSIGN(const auto file, folder.files->open(path, io::OpenMode::kRead));
  std::string first;
  const auto note = [&](const Error& error) {
    if (first.empty()) first = error.message();
  };
  std::vector<std::byte> bytes(format::kAliasHeaderBytes);
  VARVE_TRY_ASSIGN(auto got, file->read_at(0, bytes));
  const auto header = format::decode_alias_header(std::span(bytes).first(got));
  // Blocks have separate checksums, so a damaged header is only noted.
  if (!header && header.error().code() == ErrorCode::kUnsupported) return header.error();
  if (!header) note(header.error());
  format::AliasFileHeader found;
  format::Births births;
  VARVE_TRY_ASSIGN(auto end, file->size());
  if (header && header->births_bytes != 0) {
    found.births_bytes = header->births_bytes;
    auto read = read_births(*file, end, header->births_bytes);
    if (read) {
      births = std::move(*read);
      end -= header->births_bytes;
    } else {
      note(read.error());
    }
  }
  for (std::uint64_t at = format::kAliasHeaderBytes; at < end;) {
    bytes.resize(format::kAliasBlockHeaderBytes);
    VARVE_TRY_ASSIGN(got, file->read_at(at, bytes));
    const auto content = format::alias_block_bytes(std::span(bytes).first(got));
    bytes.resize(format::kAliasBlockHeaderBytes + content);
    VARVE_TRY_ASSIGN(got, file->read_at(at, bytes));
    const auto runs = format::decode_alias_block(std::span(bytes).first(got));
    if (!runs) note(runs.error());
    for (const auto& run : runs ? *runs : std::vector<format::TaggedAliases>()) {
      VARVE_TRY(visit(births, run));
      found.chunks += run.run.count;
    }
    if (content == 0) break;  // Nothing says where the next block begins.
    ++found.blocks;
    at += format::kAliasBlockHeaderBytes + content;
  }
  if (header && first.empty() && *header != found) {
    note({ErrorCode::kCorrupt, "file of aliases: it has more or fewer blocks than it should"});
  }
  return first;
}

Result<void> remove_alias_file(const FolderPath& folder, std::uint32_t number) {
  auto removed = folder.files->remove(folder.path + "/" + alias_file_name(number));
  if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed;
  return {};
}

AliasFileWriter::AliasFileWriter(const FolderPath& folder, std::uint32_t number)
    : folder_(folder), name_(folder.path + "/" + alias_file_name(number)) {}

Result<std::unique_ptr<AliasFileWriter>> AliasFileWriter::begin(const FolderPath& folder,
                                                                std::uint32_t number) {
  std::unique_ptr<AliasFileWriter> writer(new AliasFileWriter(folder, number));
  const auto temporary = writer->name_ + std::string(kTemporarySuffix);
  VARVE_TRY_ASSIGN(writer->file_, folder.files->open(temporary, io::OpenMode::kReadWrite));
  VARVE_TRY(writer->file_->truncate(0));
  writer->end_ = format::kAliasHeaderBytes;
  return writer;
}

AliasFileWriter::~AliasFileWriter() {
  if (!file_) return;
  file_.reset();
  static_cast<void>(folder_.files->remove(name_ + std::string(kTemporarySuffix)));
}

Result<void> AliasFileWriter::add(const format::TaggedAliases& aliases) {
  for (std::uint32_t at = 0; at < aliases.run.count;) {
    const auto count = std::min(aliases.run.count - at, format::kAliasesInBlockMax);
    format::TaggedAliases part;
    part.run = {aliases.run.first.plus(at), count, aliases.run.target.plus(at)};
    part.tags.assign(aliases.tags.begin() + at, aliases.tags.begin() + at + count);
    if (!block_.add(part)) {
      VARVE_TRY(write_block());
      if (!block_.add(part)) return Error(ErrorCode::kTooLarge, "a run of aliases is too long");
    }
    header_.chunks += count;
    at += count;
  }
  return {};
}

Result<void> AliasFileWriter::write_block() {
  const auto block = block_.take();
  VARVE_TRY(file_->write_at(end_, base::as_bytes(block)));
  end_ += block.size();
  ++header_.blocks;
  return {};
}

Result<std::uint64_t> AliasFileWriter::finish(const format::Births& births) {
  if (!block_.empty()) VARVE_TRY(write_block());
  if (!births.empty()) {
    const auto part = format::encode_alias_births(births);
    VARVE_TRY(file_->write_at(end_, base::as_bytes(part)));
    end_ += part.size();
    header_.births_bytes = part.size();
  }
  VARVE_TRY(file_->write_at(0, base::as_bytes(format::encode_alias_header(header_))));
  VARVE_TRY(file_->sync());
  VARVE_TRY(folder_.files->rename(name_ + std::string(kTemporarySuffix), name_));
  file_.reset();
  VARVE_TRY(folder_.files->sync_directory(folder_.path));
  return end_;
}

}  // namespace varve::store
