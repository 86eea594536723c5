// SPDX-License-Identifier: Apache-2.0
#include "crypto/sealed_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/random_bytes.h"
#include "crypto/sealed_blocks.h"

namespace varve::crypto {

namespace {

constexpr std::uint64_t kGapBytesMax = std::uint64_t{1} << 20;
constexpr std::uint64_t kAnnouncedBytesMax = std::uint64_t{1} << 30;

class SealedFile final : public io::File {
 public:
  SealedFile(std::unique_ptr<io::File> file, std::string path, std::shared_ptr<const KeyRing> keys,
             const SealedPlace& place, std::uint64_t texts_max)
      : file_(std::move(file)),
        path_(std::move(path)),
        keys_(std::move(keys)),
        place_(place),
        texts_max_(texts_max) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (out.empty()) return std::size_t{0};
    VARVE_TRY_ASSIGN(const auto cipher, present_cipher());
    return cipher ? read(*cipher, offset, out) : Result<std::size_t>(0);
  }

  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> data) override {
    if (data.empty()) return {};
    const std::lock_guard lock(writing_);
    VARVE_TRY_ASSIGN(const auto cipher, cipher_for_writing());
    VARVE_TRY_ASSIGN(const std::uint64_t end, text_bytes(*cipher));
    VARVE_TRY(fill_gap(*cipher, end, offset));
    return write(*cipher, std::max(end, block_begin(*cipher, offset)), offset, data);
  }

  Result<void> sync() override { return file_->sync(); }

  Result<std::uint64_t> size() override {
    VARVE_TRY_ASSIGN(const auto cipher, present_cipher());
    return cipher ? text_bytes(*cipher) : Result<std::uint64_t>(0);
  }

  Result<void> truncate(std::uint64_t bytes) override {
    const std::lock_guard lock(writing_);
    if (bytes == 0) {
      // The next write creates another salt, and so another key.
      const std::lock_guard guard(mutex_);
      cipher_.reset();
      texts_.reset();
      return file_->truncate(0);
    }
    VARVE_TRY_ASSIGN(const auto cipher, cipher_for_writing());
    VARVE_TRY_ASSIGN(const std::uint64_t end, text_bytes(*cipher));
    if (bytes < end) return cut(*cipher, bytes);
    if (bytes == end) return {};
    VARVE_TRY(fill_gap(*cipher, end, bytes - 1));
    const std::byte last{};
    return write(*cipher, std::max(end, block_begin(*cipher, bytes - 1)), bytes - 1, {&last, 1});
  }

  Result<std::uint64_t> seek_data(std::uint64_t offset) override { return seek(offset, false); }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override { return seek(offset, true); }

  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    const auto cipher = present_cipher();
    bytes = std::min(bytes, kAnnouncedBytesMax);
    if (!cipher || !*cipher || bytes == 0) return;
    const auto [at, count] = on_disk((*cipher)->shape(), offset, bytes);
    file_->will_read(at, count);
  }
  bool is_cached(std::uint64_t offset, std::uint64_t bytes) override {
    const auto cipher = present_cipher();
    if (!cipher || !*cipher || bytes == 0 || bytes > kAnnouncedBytesMax) return false;
    const auto [at, count] = on_disk((*cipher)->shape(), offset, bytes);
    return file_->is_cached(at, count);
  }

  std::uint64_t append_unit() override {
    const auto cipher = present_cipher();
    return cipher && *cipher ? (*cipher)->shape().block_bytes : place_.block_bytes;
  }

 private:
  using Cipher = std::shared_ptr<const BlockCipher>;

  [[nodiscard]] Error corrupt(const std::string& what) const {
    return {ErrorCode::kCorrupt, path_ + ": " + what};
  }

  static std::pair<std::uint64_t, std::uint64_t> on_disk(const SealedShape& shape,
                                                         std::uint64_t offset,
                                                         std::uint64_t bytes) {
    const auto first = offset / shape.block_bytes;
    const auto last = (offset + bytes - 1) / shape.block_bytes;
    return {shape.slot_at(first), shape.slot_at(last + 1) - shape.slot_at(first)};
  }

  /// Returns the cipher of the file's header; null while the file is empty.
  Result<Cipher> present_cipher() {
    const std::lock_guard guard(mutex_);
    if (cipher_) return cipher_;
    SealedHeader header{};
    VARVE_TRY_ASSIGN(const auto got, file_->read_at(0, header));
    if (got == 0) return Cipher();
    auto decoded = decode_sealed_header(std::span(header).first(got));
    if (!decoded) return std::move(decoded).error().with_context(path_);
    VARVE_TRY_ASSIGN(auto aead, keys_->salted(Purpose::kFiles, decoded->second));
    cipher_ = std::make_shared<const BlockCipher>(std::move(aead), place_, decoded->first);
    return cipher_;
  }

  /// Like present_cipher(), but writes a header to an empty file.
  Result<Cipher> cipher_for_writing() {
    VARVE_TRY_ASSIGN(auto present, present_cipher());
    if (present) return present;
    const std::array<std::uint32_t, 3> place{place_.kind, place_.store, place_.number};
    VARVE_TRY_ASSIGN(const auto salt, keys_->nonces().new_salt(std::as_bytes(std::span(place))));
    VARVE_TRY_ASSIGN(auto aead, keys_->salted(Purpose::kFiles, salt));
    VARVE_TRY(file_->write_at(0, encode_sealed_header(place_.block_bytes, salt)));
    const std::lock_guard guard(mutex_);
    cipher_ = std::make_shared<const BlockCipher>(std::move(aead), place_,
                                                  SealedShape{place_.block_bytes});
    return cipher_;
  }

  Result<std::uint64_t> text_bytes(const BlockCipher& cipher) {
    VARVE_TRY_ASSIGN(const std::uint64_t bytes, file_->size());
    return cipher.shape().text_bytes(bytes);
  }

  Result<std::uint64_t> seek(std::uint64_t offset, bool hole) {
    VARVE_TRY_ASSIGN(const std::uint64_t end, size());
    if (offset >= end) {
      return Error(ErrorCode::kPastEnd,
                   path_ + ": the file has neither data nor a hole from that offset on");
    }
    return hole ? end : offset;
  }

  /// Opens the block in `slot` to `text`, and returns the length of the text.
  [[nodiscard]] Result<std::size_t> open_block(const BlockCipher& cipher, std::uint64_t block,
                                               std::span<const std::byte> slot,
                                               std::span<std::byte> text) const {
    const auto sound = sound_block(slot, block);
    const auto length = sound ? sound->size() - kSealedTextAt : 0;
    if (!sound || length > text.size()) return corrupt(fmt::format("block {} is damaged", block));
    if (!cipher.open(block, *sound, text.first(length))) {
      return corrupt(fmt::format("block {} was changed, or is from another file or place", block));
    }
    return length;
  }

  Result<std::size_t> read(const BlockCipher& cipher, std::uint64_t offset,
                           std::span<std::byte> out) {
    const SealedShape& shape = cipher.shape();
    const std::uint64_t stop = (offset + out.size() - 1) / shape.block_bytes + 1;
    std::size_t done = 0;
    std::uint64_t block = offset / shape.block_bytes;
    const auto slots_max = std::min<std::uint64_t>(stop - block, shape.slots_at_once());
    // Not zeroed: most reads are one block of an index, and zeroing the buffer would be a tenth of
    // the time.
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(
        static_cast<std::size_t>(slots_max) * shape.slot_bytes());
    while (block < stop) {
      const auto count = std::min<std::uint64_t>(stop - block, slots_max);
      const std::span slots(buffer.get(), static_cast<std::size_t>(count) * shape.slot_bytes());
      VARVE_TRY_ASSIGN(const auto got, file_->read_at(shape.slot_at(block), slots));
      const auto present = std::span<const std::byte>(slots).first(got);
      for (std::size_t at = 0; at < slots.size(); at += shape.slot_bytes(), ++block) {
        if (at >= got) return done;
        const auto inside = static_cast<std::size_t>(offset + done - block * shape.block_bytes);
        const auto target =
            out.subspan(done, std::min(out.size() - done, shape.block_bytes - inside));
        const auto slot = present.subspan(at, std::min(got - at, shape.slot_bytes()));
        VARVE_TRY_ASSIGN(const auto filled, read_part(cipher, block, slot, inside, target));
        done += filled;
        if (filled < target.size()) return done;
      }
    }
    return done;
  }

  /// Fills `out` with the text of the block in `slot` from `inside` on. Returns fewer bytes only at
  /// the end of the file.
  Result<std::size_t> read_part(const BlockCipher& cipher, std::uint64_t block,
                                std::span<const std::byte> slot, std::size_t inside,
                                std::span<std::byte> out) {
    const SealedShape& shape = cipher.shape();
    std::size_t length = 0;
    if (out.size() == shape.block_bytes) {
      VARVE_TRY_ASSIGN(length, open_block(cipher, block, slot, out));
    } else {
      std::vector<std::byte> text(shape.block_bytes);
      VARVE_TRY_ASSIGN(length, open_block(cipher, block, slot, text));
      const auto from =
          std::span<const std::byte>(text).first(length).subspan(std::min(inside, length));
      std::ranges::copy(from.first(std::min(from.size(), out.size())), out.begin());
    }
    const auto present = std::min(out.size(), length - std::min(inside, length));
    if (present == out.size()) return present;
    VARVE_TRY_ASSIGN(const std::uint64_t bytes, file_->size());
    if (bytes > shape.slot_at(block + 1)) {
      // The next append began a block, so the rest of the block in `slot` stays empty.
      std::ranges::fill(out.subspan(present), std::byte{0});
      return out.size();
    }
    // A crash may have left bytes of an append in the slot.
    if (!place_.grows && bytes != shape.slot_at(block) + kSealedTextAt + length) {
      return corrupt(fmt::format("other bytes follow block {}", block));
    }
    return present;
  }

  /// Returns the start of the block that contains `offset`.
  static std::uint64_t block_begin(const BlockCipher& cipher, std::uint64_t offset) {
    return offset / cipher.shape().block_bytes * cipher.shape().block_bytes;
  }

  /// Writes zeros to the blocks between the block with the end and the block with `offset`. A
  /// partial block at the end stays unchanged.
  Result<void> fill_gap(const BlockCipher& cipher, std::uint64_t end, std::uint64_t offset) {
    const std::uint64_t unit = cipher.shape().block_bytes;
    const auto from = (end + unit - 1) / unit * unit;
    const auto to = block_begin(cipher, offset);
    if (from >= to) return {};
    if (to - from > kGapBytesMax) {
      return Error(ErrorCode::kInvalid, path_ + ": a write far behind the end of a sealed file");
    }
    const std::vector<std::byte> zeros(static_cast<std::size_t>(to - from));
    return write(cipher, from, from, zeros);
  }

  /// Counts texts about to be sealed under the file's key. Errors: kTooLarge at the limit.
  Result<void> count_texts(const BlockCipher& cipher, std::uint64_t texts) {
    if (!texts_) {
      VARVE_TRY_ASSIGN(const std::uint64_t bytes, file_->size());
      texts_ = bytes / cipher.shape().slot_bytes() + 1;
    }
    if (*texts_ > texts_max_ || texts > texts_max_ - *texts_) {
      return Error(ErrorCode::kTooLarge,
                   fmt::format("{}: one key has encrypted {} blocks, which is the limit; unmount "
                               "the repository and open it again, or seal the open version",
                               path_, texts_max_));
    }
    *texts_ += texts;
    return {};
  }

  /// Writes blocks. `end` is the end of the present text: the block of `offset` begins at `end` or
  /// earlier.
  Result<void> write(const BlockCipher& cipher, std::uint64_t end, std::uint64_t offset,
                     std::span<const std::byte> data) {
    const SealedShape& shape = cipher.shape();
    const std::uint64_t stop = (offset + data.size() - 1) / shape.block_bytes + 1;
    std::vector<std::byte> slots;
    std::vector<NonceSeed> seeds;
    std::size_t done = 0;
    for (std::uint64_t block = offset / shape.block_bytes; block < stop;) {
      const auto first = block;
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(stop - block, shape.slots_at_once()));
      VARVE_TRY(count_texts(cipher, count));
      slots.assign(count * shape.slot_bytes(), std::byte{0});
      seeds.resize(count);  // Drawn at once, which is much faster. Not reused after the call.
      VARVE_TRY(base::fill_random(std::as_writable_bytes(std::span(seeds))));
      std::size_t used = 0;
      for (std::size_t i = 0; i < count; ++i, ++block) {
        const auto begin = block * shape.block_bytes;
        const auto inside = static_cast<std::size_t>(offset + done - begin);
        const auto part = std::min(data.size() - done, shape.block_bytes - inside);
        const auto slot = std::span(slots).subspan(i * shape.slot_bytes(), shape.slot_bytes());
        std::size_t length = inside + part;
        const bool covers = inside == 0 && (length == shape.block_bytes || begin + length >= end);
        if (!covers && begin < end) {
          VARVE_TRY_ASSIGN(const auto old, read_block(cipher, block, slot.subspan(kSealedTextAt)));
          length = std::max(length, old);
        }
        std::ranges::copy(data.subspan(done, part),
                          slot.begin() + static_cast<std::ptrdiff_t>(kSealedTextAt + inside));
        cipher.seal(block, seeds[i], slot.first(kSealedTextAt + length));
        used = i * shape.slot_bytes() + kSealedTextAt + length;
        done += part;
      }
      VARVE_TRY(file_->write_at(shape.slot_at(first), std::span(slots).first(used)));
    }
    return {};
  }

  /// Reads one block to `text`, and returns the length of the text.
  Result<std::size_t> read_block(const BlockCipher& cipher, std::uint64_t block,
                                 std::span<std::byte> text) {
    std::vector<std::byte> slot(cipher.shape().slot_bytes());
    VARVE_TRY_ASSIGN(const auto got, file_->read_at(cipher.shape().slot_at(block), slot));
    return open_block(cipher, block, std::span(slot).first(got), text);
  }

  /// Cuts the text to fewer bytes.
  Result<void> cut(const BlockCipher& cipher, std::uint64_t bytes) {
    const SealedShape& shape = cipher.shape();
    const auto block = bytes / shape.block_bytes;
    const auto rest = static_cast<std::size_t>(bytes % shape.block_bytes);
    if (rest == 0) return file_->truncate(shape.slot_at(block));
    std::vector<std::byte> slot(shape.slot_bytes());
    VARVE_TRY_ASSIGN(const auto length,
                     read_block(cipher, block, std::span(slot).subspan(kSealedTextAt)));
    // A block that ends at `bytes` stays unchanged: a sync may have promised the block.
    if (length != rest) {
      VARVE_TRY(count_texts(cipher, 1));
      NonceSeed seed{};
      VARVE_TRY(base::fill_random(seed));
      const auto shorter = std::span(slot).first(kSealedTextAt + rest);
      cipher.seal(block, seed, shorter);
      VARVE_TRY(file_->write_at(shape.slot_at(block), shorter));
    }
    return file_->truncate(shape.slot_at(block) + kSealedTextAt + rest);
  }

  const std::unique_ptr<io::File> file_;
  const std::string path_;
  const std::shared_ptr<const KeyRing> keys_;
  const SealedPlace place_;
  const std::uint64_t texts_max_;
  std::mutex writing_;                  // Locked before mutex_. Guards texts_.
  std::optional<std::uint64_t> texts_;  // Texts of the file's key. Null until the first count.
  std::mutex mutex_;
  Cipher cipher_;  // Null until the header is known.
};

}  // namespace

std::unique_ptr<io::File> make_sealed_file(std::unique_ptr<io::File> file, std::string path,
                                           std::shared_ptr<const KeyRing> keys,
                                           const SealedPlace& place, std::uint64_t texts_max) {
  return std::make_unique<SealedFile>(std::move(file), std::move(path), std::move(keys), place,
                                      texts_max);
}

}  // namespace varve::crypto
