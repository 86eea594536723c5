// SPDX-License-Identifier: Apache-2.0
// Measures what sealed containers cost. usage: bench-sealing [CONTAINERS]
//
// Makes containers in memory and opens all their frames, on one thread: plain ones, and sealed ones
// with each cipher. "finish" is FrameCodec::finish_container() alone. "store" adds the compression
// and the fingerprints of the chunks, which every stored byte needs. "decode" verifies, decrypts
// and decompresses. The ratios compare the speed with plain containers in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/key_ring.h"
#include "format/fingerprinter.h"
#include "format/frame_codec.h"

namespace varve::format {
namespace {

constexpr std::size_t kChunkBytes = 8192;

template <typename Value>
Value need(Result<Value> result) {
  if (!result) {
    fmt::print(stderr, "failed: {}\n", result.error().message());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Times {
  double finish = 0;
  double store = 0;
  double decode = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
};

// Stores and reads containers of frames of so many bytes.
Times measure(const FrameCodec& codec, std::span<const std::byte> content, std::size_t frame_bytes,
              unsigned containers) {
  const auto fingerprinter = make_sha256_fingerprinter();
  Times times;
  std::vector<std::byte> data(kContainerBytesMax);
  std::vector<std::byte> raw(frame_bytes);
  std::size_t at = 0;
  for (unsigned n = 0; n < containers; ++n) {
    ContainerHeader header;
    header.store = StoreId{1};
    header.number = static_cast<ContainerNumber>(n);
    std::size_t used = 0;
    std::uint32_t ordinal = 0;
    times.store += seconds_of([&] {
      while (used + frame_bytes < kContainerBytesMax - (256U << 10) && ordinal < 4096) {
        const auto part = content.subspan(at, frame_bytes);
        at = (at + frame_bytes) % (content.size() - frame_bytes);
        FrameEntry frame;
        for (std::size_t i = 0; i < frame_bytes; i += kChunkBytes) {
          ChunkEntry chunk;
          chunk.id = ChunkId::make(VersionNumber{1}, ordinal++);
          chunk.raw_bytes = kChunkBytes;
          chunk.fingerprint = fingerprinter->fingerprint(part.subspan(i, kChunkBytes));
          header.chunks.push_back(chunk);
          ++frame.chunk_count;
        }
        const auto encoded = codec.compress(part);
        const auto stored =
            encoded.codec == Codec::kNone ? part : std::span<const std::byte>(encoded.stored);
        std::ranges::copy(stored, data.begin() + static_cast<std::ptrdiff_t>(used));
        frame.codec = encoded.codec;
        frame.raw_bytes = static_cast<std::uint32_t>(frame_bytes);
        frame.stored_bytes = static_cast<std::uint32_t>(stored.size());
        header.frames.push_back(frame);
        used += stored.size();
      }
    });
    std::string encoded;
    const auto finish = seconds_of([&] { encoded = need(codec.finish_container(header, data)); });
    times.finish += finish;
    times.store += finish;
    times.decode += seconds_of([&] {
      const auto read =
          need(decode_container_header(std::as_bytes(std::span(encoded)), codec.keys()));
      for (std::uint32_t i = 0; i < read.frames.size(); ++i) {
        const auto& frame = read.frames[i];
        need(codec.decode(place_of_frame(read, i), frame,
                          std::span(data).subspan(frame.offset, frame.stored_bytes), raw));
      }
    });
    times.raw_bytes += header.raw_bytes;
    times.stored_bytes += header.stored_bytes();
  }
  return times;
}

std::unique_ptr<const FrameCodec> codec_with(crypto::Cipher cipher,
                                             const Compression& compression) {
  auto ring = need(crypto::KeyRing::make(need(crypto::SecretKey::random()), "bench", cipher));
  return make_sealed_frame_codec(compression, std::make_unique<const ContainerKeys>(ring));
}

void compare(std::string_view name, std::span<const std::byte> content,
             const Compression& compression, std::size_t frame_bytes, unsigned containers) {
  const auto plain =
      measure(*make_plain_frame_codec(compression), content, frame_bytes, containers);
  const auto speed = [](const Times& times, double seconds) {
    return static_cast<double>(times.raw_bytes) / 1e6 / seconds;
  };
  fmt::print(
      "{:10} plain    finish {:7.0f} MB/s        store {:6.0f} MB/s        decode {:6.0f} "
      "MB/s\n",
      name, speed(plain, plain.finish), speed(plain, plain.store), speed(plain, plain.decode));
  for (const auto cipher : {crypto::Cipher::kAes256Gcm, crypto::Cipher::kChaCha20Poly1305}) {
    const auto sealed = measure(*codec_with(cipher, compression), content, frame_bytes, containers);
    fmt::print(
        "{:10} {:8} finish {:7.0f} MB/s ({:.2f}) store {:6.0f} MB/s ({:.2f}) decode {:6.0f} "
        "MB/s ({:.2f}) stored bytes x{:.4f}\n",
        name, cipher == crypto::Cipher::kAes256Gcm ? "aes" : "chacha", speed(sealed, sealed.finish),
        plain.finish / sealed.finish, speed(sealed, sealed.store), plain.store / sealed.store,
        speed(sealed, sealed.decode), plain.decode / sealed.decode,
        static_cast<double>(sealed.stored_bytes) / static_cast<double>(plain.stored_bytes));
  }
}

int run(unsigned containers) {
  std::mt19937_64 random(1);
  std::vector<std::byte> noise(std::size_t{16} << 20);
  std::vector<std::byte> text(noise.size());
  for (std::size_t i = 0; i < noise.size(); ++i) {
    const auto value = random();
    noise[i] = static_cast<std::byte>(value);
    text[i] = static_cast<std::byte>('a' + (value >> 8) % 12);
  }
  compare("none", noise, {Codec::kNone, 1}, std::size_t{32} << 10, containers);
  compare("zstd:1", text, {Codec::kZstd, 1}, std::size_t{128} << 10, containers);
  return 0;
}

}  // namespace
}  // namespace varve::format

int main(int argc, char** argv) {
  return varve::format::run(argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 50);
}
