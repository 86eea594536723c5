// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/coding.h"
#include "format/fingerprinter.h"
#include "io/memory_file_system.h"
#include "store/container_writer.h"
#include "store/folder_store.h"
#include "support/faulty_file_system.h"
#include "support/test_keys.h"

namespace varve::store {

inline constexpr StoreId kStore{3};
inline constexpr VersionNumber kVersion{7};

inline std::vector<std::byte> chunk_bytes(std::uint32_t ordinal, bool compressible) {
  std::mt19937_64 random(ordinal);
  std::vector<std::byte> out(1 + random() % 16384);
  for (auto& b : out) b = compressible ? std::byte{0} : static_cast<std::byte>(random());
  // Also compressible chunks differ.
  for (std::size_t i = 0; i < std::min<std::size_t>(4, out.size()); ++i) {
    out[i] = static_cast<std::byte>(ordinal >> (8 * i));
  }
  return out;
}

class ContainerWriterTest : public testing::Test {
 protected:
  ContainerWriterTest() : files_(io::make_memory_file_system()), pool_(2, "test") {
    EXPECT_TRUE(files_.make_directory("/s"));
    EXPECT_TRUE(files_.make_directory("/s/active"));
    EXPECT_TRUE(files_.make_directory("/s/volumes"));
    options_.store = kStore;
    options_.numbers = &numbers_;
  }

  void start() {
    writer_.reset();
    codec_ = sealed_ ? test::sealed_codec(compression_, keys_)
                     : format::make_plain_frame_codec(compression_);
    writer_ = std::make_unique<ContainerWriter>(*store_, *codec_, pool_, options_,
                                                [this](WrittenContainer written) {
                                                  const std::lock_guard lock(mutex_);
                                                  written_.push_back(std::move(written));
                                                });
  }
  Result<void> append(std::uint32_t ordinal) {
    const auto raw = chunk_bytes(ordinal, compressible_);
    return writer_->append(ChunkId::make(kVersion, ordinal), fingerprinter_->fingerprint(raw), raw);
  }
  void append_all(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = from; i < to; ++i) {
      const auto done = append(i);
      ASSERT_TRUE(done) << done.error().message();
    }
  }

  // Every chunk of [0, count) is in exactly one container, with its bytes.
  void expect_on_disk(std::uint32_t count) {
    SegmentReader reader(*store_, codec_->keys());
    std::map<std::uint32_t, std::vector<std::byte>> found;
    std::map<SegmentNumber, std::uint64_t> ends;
    const std::lock_guard lock(mutex_);
    for (const auto& written : written_) {
      const auto& record = written.record;
      EXPECT_EQ(record.offset, ends[record.segment]) << "containers overlap, or leave a gap";
      ends[record.segment] = record.end();
      const auto decoded = format::ContainerRecord::decode(record.number, record.encode());
      ASSERT_TRUE(decoded);
      EXPECT_EQ(decoded->end(), record.end());
      const auto header = reader.read_header(kStore, record);
      ASSERT_TRUE(header) << header.error().message();
      EXPECT_EQ(header->chunks.size(), record.chunks);
      std::vector<std::byte> data(record.data_bytes);
      EXPECT_TRUE(reader.read_data(record, 0, data));
      const auto padding = test::must(reader.read_padding(record));
      const auto verified = codec_->verify_padding(*header, padding);
      EXPECT_TRUE(verified) << verified.error().message();
      EXPECT_LE(record.end() - record.offset, format::kContainerBytesMax);
      std::uint64_t listed = 0;
      for (const auto& run : written.ids) listed += run.count;
      EXPECT_EQ(listed, record.chunks);
      std::uint64_t raw_bytes = 0;
      for (const auto bytes : written.run_raw_bytes) raw_bytes += bytes;
      EXPECT_EQ(raw_bytes, record.raw_bytes);
      for (std::uint32_t f = 0; f < header->frames.size(); ++f) {
        const auto& frame = header->frames[f];
        std::vector<std::byte> stored(frame.stored_bytes);
        std::vector<std::byte> raw(frame.raw_bytes);
        ASSERT_TRUE(reader.read_data(record, frame.offset, stored));
        ASSERT_TRUE(codec_->decode(format::place_of_frame(*header, f), frame, stored, raw));
        for (std::uint32_t i = 0; i < frame.chunk_count; ++i) {
          const auto& chunk = header->chunks[frame.first_chunk + i];
          const auto bytes = std::span(raw).subspan(chunk.frame_offset, chunk.raw_bytes);
          EXPECT_TRUE(
              found.emplace(chunk.id.ordinal(), std::vector(bytes.begin(), bytes.end())).second)
              << "chunk " << chunk.id.ordinal() << " is stored twice";
        }
      }
    }
    ASSERT_EQ(found.size(), count);
    for (const auto& [ordinal, bytes] : found) {
      ASSERT_TRUE(bytes == chunk_bytes(ordinal, compressible_)) << ordinal;
    }
  }

  varve::test::FaultyFileSystem files_;
  base::ThreadPool pool_;
  std::optional<FolderStore> store_{std::in_place, files_, "/s"};
  NumberSource numbers_;
  ContainerWriterOptions options_;
  format::Compression compression_{Codec::kNone, 1};
  bool sealed_ = false;  // True for the codec of an encrypted repository.
  const std::shared_ptr<const crypto::KeyRing> keys_ = test::test_keys();
  std::unique_ptr<const format::FrameCodec> codec_;
  bool compressible_ = false;
  const std::unique_ptr<const format::Fingerprinter> fingerprinter_ =
      format::make_sha256_fingerprinter();
  std::mutex mutex_;
  std::vector<WrittenContainer> written_;
  std::unique_ptr<ContainerWriter> writer_;
};

}  // namespace varve::store
