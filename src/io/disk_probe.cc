// SPDX-License-Identifier: Apache-2.0
#include "io/disk_probe.h"

#include <algorithm>
#include <memory>
#include <random>

#include "base/aligned_buffer.h"

namespace varve::io {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = 64U << 10;
constexpr std::size_t kStretchBytes = 1U << 20;
constexpr std::size_t kPiecesPerRound = 8;
constexpr std::size_t kStretchesPerRound = 2;
constexpr std::size_t kRoundsMax = 12;
constexpr std::size_t kPiecesMin = 8;

/// Reads from `offset` and returns the time in seconds; nullopt if the read was not complete.
std::optional<double> timed_read(File& file, std::uint64_t offset, std::span<std::byte> out) {
  const auto begin = Clock::now();
  const auto read = file.read_at(offset, out);
  if (!read || *read != out.size()) return std::nullopt;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::optional<DiskSpeed> probe_disk(FileSystem& file_system, const std::vector<ProbedFile>& files,
                                    std::chrono::milliseconds limit, const std::stop_token& stop) {
  const auto deadline = Clock::now() + limit;
  base::AlignedBuffer buffer(kStretchBytes);
  std::mt19937_64 random(std::random_device{}());
  std::vector<double> pieces;
  std::vector<double> stretches;
  const auto is_over = [&] { return stop.stop_requested() || Clock::now() >= deadline; };
  const auto open_any = [&](std::size_t bytes_min, std::uint64_t& offset) {
    const ProbedFile& probed = files[random() % files.size()];
    std::unique_ptr<File> file;
    if (probed.bytes < bytes_min + kDirectAlignment) return file;
    offset = random() % (probed.bytes - bytes_min) / kDirectAlignment * kDirectAlignment;
    if (auto opened = file_system.open(probed.path, OpenMode::kReadDirect); opened) {
      file = std::move(*opened);
    }
    return file;  // The file may have been removed in the meantime.
  };
  for (std::size_t round = 0; !files.empty() && round < kRoundsMax && !is_over(); ++round) {
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < kPiecesPerRound && !is_over(); ++i) {
      const auto file = open_any(kPieceBytes, offset);
      if (!file) continue;
      const auto seconds = timed_read(*file, offset, buffer.span().first(kPieceBytes));
      if (seconds) pieces.push_back(*seconds);
    }
    // Only the first stretch of a row includes the seek, so the later ones show the rate.
    const auto file = open_any((kStretchesPerRound + 1) * kStretchBytes, offset);
    for (std::size_t i = 0; file && i <= kStretchesPerRound && !is_over(); ++i) {
      const auto seconds = timed_read(*file, offset + i * kStretchBytes, buffer.span());
      if (seconds && i > 0) stretches.push_back(*seconds);
    }
  }
  if (pieces.size() < kPiecesMin || stretches.empty()) return std::nullopt;
  DiskSpeed speed;
  speed.bytes_per_second = kStretchBytes / std::max(median(std::move(stretches)), 1e-6);
  speed.request_seconds =
      std::max(median(std::move(pieces)) - kPieceBytes / speed.bytes_per_second, 0.0);
  return speed;
}

}  // namespace varve::io
