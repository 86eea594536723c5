// SPDX-License-Identifier: Apache-2.0
#include "version/staging_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/random_bytes.h"

namespace varve::version {

namespace {

// docs/FORMAT.md §14.3.
constexpr std::uint32_t kMagic = 0x47535656;  // "VVSG"
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kFileHeaderBytes = 64;
constexpr std::size_t kHeaderBytes = 48;  // Length of a block's header.
constexpr std::size_t kNonceAt = 4;
constexpr std::size_t kTagAt = kNonceAt + crypto::kNonceBytes;
constexpr std::size_t kDataSumAt = kTagAt + crypto::kTagBytes;
constexpr std::size_t kHeaderSumAt = kDataSumAt + 8;
static_assert(kHeaderSumAt + 8 == kHeaderBytes);
constexpr std::size_t kBlockBytes = std::size_t{32} << 10;

Error damaged_file() {
  return {ErrorCode::kCorrupt,
          "a staging file is damaged; write the file again, or remove it from the open version"};
}

std::string text_of(const StagingPlace& place) {
  std::string text;
  base::ByteWriter w(text);
  w.u32(static_cast<std::uint32_t>(place.series));
  w.u32(static_cast<std::uint32_t>(place.number));
  w.u64(place.ino);
  w.u64(place.generation);
  return text;
}

class PlainStagingFile final : public StagingFile {
 public:
  explicit PlainStagingFile(std::unique_ptr<io::File> file) : file_(std::move(file)) {}
  Result<std::uint64_t> write(std::uint64_t offset, std::span<const std::byte> data) override {
    VARVE_TRY(file_->write_at(offset, data));
    return offset;
  }
  Result<std::size_t> read(std::uint64_t from, std::span<std::byte> out) override {
    return file_->read_at(from, out);
  }
  [[nodiscard]] std::uint64_t log_bytes() const override { return 0; }

 private:
  const std::unique_ptr<io::File> file_;
};

/// A log of blocks. An offset in the log counts the raw bytes of the blocks. A written block never
/// changes, so a crash during a later write does not damage the block. Nonces are not counters,
/// because the writer after a crash gives the log's last offsets a second time.
class SealedStagingFile final : public StagingFile {
 public:
  SealedStagingFile(std::unique_ptr<io::File> file, crypto::HedgedAead aead,
                    const StagingPlace& place, std::uint64_t texts_max)
      : file_(std::move(file)), aead_(std::move(aead)), place_(place), texts_max_(texts_max) {}

  /// Finds the blocks of the log, up to the first block truncated by a crash.
  [[nodiscard]] Result<void> scan();
  [[nodiscard]] std::uint64_t end() const { return end_; }

  Result<std::uint64_t> write(std::uint64_t offset, std::span<const std::byte> data) override;
  Result<std::size_t> read(std::uint64_t from, std::span<std::byte> out) override;
  [[nodiscard]] std::uint64_t log_bytes() const override {
    const std::lock_guard lock(mutex_);
    return file_end_;
  }

 private:
  struct Block {
    std::uint64_t begin = 0;  // Offset in the log.
    std::uint64_t at = 0;     // Offset of the block's header in the file.
  };
  [[nodiscard]] std::string associated(std::uint64_t begin, std::uint32_t bytes) const;
  void append_block(const crypto::NonceSeed& seed, std::uint64_t begin,
                    std::span<const std::byte> data, std::string& out) const;
  /// Decrypts the block into `out`. `out` has the length of the block's data.
  [[nodiscard]] Result<void> open_block(const Block& block, std::span<std::byte> out) const;

  const std::unique_ptr<io::File> file_;
  const crypto::HedgedAead aead_;
  const StagingPlace place_;
  const std::uint64_t texts_max_;
  std::uint64_t texts_ = 0;   // Texts under the file's key. Used only by the writing thread.
  mutable std::mutex mutex_;  // Innermost. Guards the members below.
  std::vector<Block> blocks_;
  std::uint64_t end_ = 0;                      // End of the log.
  std::uint64_t file_end_ = kFileHeaderBytes;  // Offset of the next block in the file.
  bool has_rest_ = false;                      // True if the file goes on behind `file_end_`.
  // The last partly read block, decrypted, for a reader that takes small pieces.
  std::uint64_t opened_begin_ = 0;
  std::vector<std::byte> opened_;
};

std::string SealedStagingFile::associated(std::uint64_t begin, std::uint32_t bytes) const {
  std::string text = text_of(place_);
  base::ByteWriter w(text);
  w.u64(begin);
  w.u32(bytes);
  return text;
}

// Returns the number of raw bytes of a block; nullopt if the block's header is not valid.
std::optional<std::uint32_t> block_bytes(std::span<const std::byte> header) {
  const auto bytes = base::load_le<std::uint32_t>(header.data());
  const auto sum = base::load_le<std::uint64_t>(header.data() + kHeaderSumAt);
  if (sum != base::checksum64(header.first(kHeaderSumAt))) return std::nullopt;
  if (bytes == 0 || bytes > kBlockBytes) return std::nullopt;
  return bytes;
}

Result<void> SealedStagingFile::scan() {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const std::uint64_t size, file_->size());
  std::array<std::byte, kHeaderBytes> header{};
  while (file_end_ + kHeaderBytes <= size) {
    VARVE_TRY_ASSIGN(const auto got, file_->read_at(file_end_, header));
    const auto bytes = got == header.size() ? block_bytes(header) : std::nullopt;
    if (!bytes || size - file_end_ - kHeaderBytes < *bytes) break;
    blocks_.push_back({end_, file_end_});
    ++texts_;
    end_ += *bytes;
    file_end_ += kHeaderBytes + *bytes;
  }
  has_rest_ = file_end_ < size;
  return {};
}

void SealedStagingFile::append_block(const crypto::NonceSeed& seed, std::uint64_t begin,
                                     std::span<const std::byte> data, std::string& out) const {
  const std::size_t at = out.size();
  out.resize(at + kHeaderBytes + data.size());
  const auto block = std::as_writable_bytes(std::span(out)).subspan(at);
  const auto text = block.subspan(kHeaderBytes);
  const auto bytes = static_cast<std::uint32_t>(data.size());
  std::ranges::copy(data, text.begin());
  const auto [nonce, tag] = aead_.seal(seed, base::as_bytes(associated(begin, bytes)), text);
  base::store_le(block.data(), bytes);
  std::ranges::copy(nonce, block.begin() + kNonceAt);
  std::ranges::copy(tag, block.begin() + kTagAt);
  base::store_le(block.data() + kDataSumAt, base::checksum64(text));
  base::store_le(block.data() + kHeaderSumAt, base::checksum64(block.first(kHeaderSumAt)));
}

Result<std::uint64_t> SealedStagingFile::write(std::uint64_t /*offset*/,
                                               std::span<const std::byte> data) {
  // Only the calling thread writes, so the ends do not change meanwhile.
  std::unique_lock lock(mutex_);
  const std::uint64_t begin = end_;
  const std::uint64_t file_begin = file_end_;
  if (has_rest_) VARVE_TRY(file_->truncate(file_begin));
  has_rest_ = false;
  lock.unlock();
  std::string out;
  out.reserve(data.size() + sealed_staging_overhead(data.size()));
  std::vector<Block> added;
  // All seeds are taken at once, which is much faster, and die with the call.
  std::vector<crypto::NonceSeed> seeds((data.size() + kBlockBytes - 1) / kBlockBytes);
  if (seeds.size() > texts_max_ - std::min(texts_, texts_max_)) {
    return Error(ErrorCode::kTooLarge,
                 "one key has encrypted as many writes to a file as it may; seal the open version, "
                 "then go on in the next one");
  }
  texts_ += seeds.size();
  VARVE_TRY(base::fill_random(std::as_writable_bytes(std::span(seeds))));
  for (std::size_t done = 0; done < data.size();) {
    const auto part = data.subspan(done, std::min(kBlockBytes, data.size() - done));
    const auto& seed = seeds[added.size()];
    added.push_back({begin + done, file_begin + out.size()});
    append_block(seed, begin + done, part, out);
    done += part.size();
  }
  const auto written = file_->write_at(file_begin, base::as_bytes(out));
  lock.lock();
  if (!written) {
    has_rest_ = true;
    return written.error();
  }
  blocks_.insert(blocks_.end(), added.begin(), added.end());
  end_ += data.size();
  file_end_ += out.size();
  return begin;
}

Result<void> SealedStagingFile::open_block(const Block& block, std::span<std::byte> out) const {
  std::vector<std::byte> stored(kHeaderBytes + out.size());
  VARVE_TRY_ASSIGN(const auto got, file_->read_at(block.at, stored));
  const std::span<const std::byte> header(stored.data(), kHeaderBytes);
  if (got != stored.size() || block_bytes(header) != out.size()) return damaged_file();
  const auto sealed = std::span<const std::byte>(stored).subspan(kHeaderBytes);
  if (base::checksum64(sealed) != base::load_le<std::uint64_t>(stored.data() + kDataSumAt)) {
    return damaged_file();
  }
  crypto::HedgedAead::Seal seal;
  std::copy_n(header.begin() + kNonceAt, seal.nonce.size(), seal.nonce.begin());
  std::copy_n(header.begin() + kTagAt, seal.tag.size(), seal.tag.begin());
  const auto text = associated(block.begin, static_cast<std::uint32_t>(out.size()));
  if (!aead_.open(seal, base::as_bytes(text), sealed, out)) return damaged_file();
  return {};
}

Result<std::size_t> SealedStagingFile::read(std::uint64_t from, std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t at = from + done;
    std::unique_lock lock(mutex_);
    if (at >= end_) break;
    const auto next = std::upper_bound(blocks_.begin(), blocks_.end(), at,
                                       [](std::uint64_t x, const Block& b) { return x < b.begin; });
    const Block block = *std::prev(next);
    const std::uint64_t block_end = next == blocks_.end() ? end_ : next->begin;
    const std::size_t skipped = at - block.begin;
    const auto part = out.subspan(done, std::min<std::uint64_t>(block_end - at, out.size() - done));
    if (opened_begin_ != block.begin || opened_.size() != block_end - block.begin) {
      lock.unlock();
      std::vector<std::byte> raw(block_end - block.begin);
      VARVE_TRY(open_block(block, raw));
      lock.lock();
      opened_begin_ = block.begin;
      opened_ = std::move(raw);
    }
    std::copy_n(opened_.begin() + static_cast<std::ptrdiff_t>(skipped), part.size(), part.begin());
    done += part.size();
  }
  return done;
}

}  // namespace

std::uint64_t sealed_staging_overhead(std::uint64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kHeaderBytes;
}

std::string staging_file_path(const std::string& staging_directory, Ino ino,
                              std::uint64_t generation) {
  return fmt::format("{}/files/{:x}-{:x}", staging_directory, ino, generation);
}

Result<std::shared_ptr<StagingFile>> create_staging_file(io::FileSystem& files,
                                                         const std::string& path,
                                                         const crypto::KeyRing* keys,
                                                         const StagingPlace& place,
                                                         std::uint64_t texts_max) {
  VARVE_TRY_ASSIGN(auto file, files.open(path, io::OpenMode::kReadWrite));
  if (keys == nullptr) {
    return std::shared_ptr<StagingFile>(std::make_shared<PlainStagingFile>(std::move(file)));
  }
  VARVE_TRY(file->truncate(0));  // A crash may have left a file of the same name.
  VARVE_TRY_ASSIGN(const auto salt, keys->nonces().new_salt(base::as_bytes(text_of(place))));
  VARVE_TRY_ASSIGN(auto aead, keys->salted(crypto::Purpose::kStaging, salt));
  std::string header;
  base::ByteWriter w(header);
  w.u32(kMagic);
  w.u32(kFormat);
  header.append(base::as_text(salt));
  header.resize(kFileHeaderBytes - 8);
  w.u64(base::checksum64(base::as_bytes(header)));
  VARVE_TRY(file->write_at(0, base::as_bytes(header)));
  return std::shared_ptr<StagingFile>(
      std::make_shared<SealedStagingFile>(std::move(file), std::move(aead), place, texts_max));
}

Result<std::shared_ptr<StagingFile>> open_staging_file(io::FileSystem& files,
                                                       const std::string& path,
                                                       const crypto::KeyRing* keys,
                                                       const StagingPlace& place,
                                                       std::uint64_t needed) {
  VARVE_TRY_ASSIGN(auto file, files.open(path, io::OpenMode::kReadWrite));
  if (keys == nullptr) {
    return std::shared_ptr<StagingFile>(std::make_shared<PlainStagingFile>(std::move(file)));
  }
  std::array<std::byte, kFileHeaderBytes> header{};
  VARVE_TRY_ASSIGN(const auto got, file->read_at(0, header));
  const std::span<const std::byte> all(header);
  if (got != header.size() || base::load_le<std::uint32_t>(all.data()) != kMagic ||
      base::load_le<std::uint32_t>(all.data() + 4) != kFormat ||
      base::load_le<std::uint64_t>(all.last(8).data()) != base::checksum64(all.first(56))) {
    return damaged_file();
  }
  crypto::Salt salt{};
  std::copy_n(all.begin() + 8, salt.size(), salt.begin());
  VARVE_TRY_ASSIGN(auto aead, keys->salted(crypto::Purpose::kStaging, salt));
  auto opened = std::make_shared<SealedStagingFile>(std::move(file), std::move(aead), place,
                                                    crypto::kTextsMax);
  VARVE_TRY(opened->scan());
  if (opened->end() < needed) return damaged_file();
  return std::shared_ptr<StagingFile>(std::move(opened));
}

}  // namespace varve::version
