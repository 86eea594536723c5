// SPDX-License-Identifier: Apache-2.0
#include "fingerprinting/known_files.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace varve::fingerprinting {
namespace {

using Random = std::mt19937_64;

constexpr std::size_t kPageBytes = 4096;

/// Fills bytes with noise.
void fill(std::span<char> out, Random& random) {
  while (!out.empty()) {
    const auto word = random();
    const auto bytes = std::min(out.size(), sizeof word);
    std::memcpy(out.data(), &word, bytes);
    out = out.subspan(bytes);
  }
}

double unit(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

const std::vector<std::string>& vocabulary() {
  static const auto words = [] {
    Random random(1);
    std::vector<std::string> all(2000);
    for (auto& word : all) {
      word.resize(2 + random() % 9);
      for (auto& c : word) c = static_cast<char>('a' + random() % 26);
      word += random() % 12 == 0 ? ".\n" : " ";
    }
    return all;
  }();
  return words;
}

std::string text(std::size_t bytes, Random& random) {
  const auto& words = vocabulary();
  std::string out;
  out.reserve(bytes + 16);
  while (out.size() < bytes) {
    const double u = unit(random);
    out += words[static_cast<std::size_t>(u * u * u * static_cast<double>(words.size()))];
  }
  out.resize(bytes);
  return out;
}

std::string records(std::size_t bytes, Random& random) {
  std::string out;
  out.reserve(bytes + 128);
  for (std::uint32_t row = 0; out.size() < bytes; ++row) {
    std::string record(128, '\0');
    std::copy_n(reinterpret_cast<const char*>(&row), sizeof row, record.begin());
    record[8] = static_cast<char>(random() % 5);
    fill(std::span(record).subspan(16, 12), random);
    const auto& word = vocabulary()[random() % vocabulary().size()];
    std::copy(word.begin(), word.end(), record.begin() + 40);
    out += record;
  }
  out.resize(bytes);
  return out;
}

std::string image(std::size_t bytes, Random& random) {
  constexpr std::size_t kBlockBytes = 64U << 10;
  const std::size_t count = std::max<std::size_t>(1, bytes / kBlockBytes);
  // A quarter of the blocks are zeros and a quarter repeats others, wherever they are.
  std::vector<std::size_t> source(count);
  for (std::size_t i = 0; i < count; ++i) source[i] = i;
  std::shuffle(source.begin(), source.end(), random);
  const std::size_t distinct = std::max<std::size_t>(1, count / 2);
  std::string out;
  std::vector<std::string> blocks(distinct);
  for (auto& block : blocks) {
    block.resize(kBlockBytes);
    fill(block, random);
  }
  for (const auto block : source) {
    if (block < distinct) {
      out += blocks[block];
    } else if (block < distinct + count / 4) {
      out += blocks[random() % distinct];
    } else {
      out.append(kBlockBytes, '\0');
    }
  }
  out.resize(bytes, '\0');
  return out;
}

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 4> kNames{"media", "text", "records", "image"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string make_file(Kind kind, std::size_t bytes, std::uint64_t seed, double mix) {
  Random random(seed);
  std::string out;
  switch (kind) {
    case Kind::kMedia:
      out.resize(bytes);
      fill(out, random);
      break;
    case Kind::kText:
      out = text(bytes, random);
      break;
    case Kind::kRecords:
      out = records(bytes, random);
      break;
    case Kind::kImage:
      out = image(bytes, random);
      break;
  }
  for (std::size_t at = 0; mix > 0 && at + kPageBytes <= out.size(); at += kPageBytes) {
    if (unit(random) < mix) fill(std::span(out).subspan(at, kPageBytes), random);
  }
  return out;
}

}  // namespace varve::fingerprinting
