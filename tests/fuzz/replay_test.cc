// SPDX-License-Identifier: Apache-2.0
// Runs every target over its seeds, over the inputs in corpus/NAME/, and over mutations of both,
// from a fixed seed. VARVE_TEST_MUTATIONS sets the number of mutations for each target;
// VARVE_TEST_KEEP=FILE keeps the current input. No input may take more than 256 MiB of
// memory. Inputs in corpus/large/NAME/ take long, so the test does not mutate them.
#include <gtest/gtest.h>

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>

#include "base/coding.h"
#include "support/file_content.h"
#include "targets.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VARVE_MEMORY_COUNTED 0
#else
#define VARVE_MEMORY_COUNTED 1
#endif

#if VARVE_MEMORY_COUNTED
namespace {
std::atomic<std::size_t> g_bytes_used{0};
std::atomic<std::size_t> g_bytes_peak{0};

void* counted(void* memory) {
  if (memory == nullptr) std::abort();
  const std::size_t now = g_bytes_used += malloc_usable_size(memory);
  std::size_t peak = g_bytes_peak;
  while (now > peak && !g_bytes_peak.compare_exchange_weak(peak, now)) continue;
  return memory;
}

void give_back(void* memory) {
  if (memory != nullptr) g_bytes_used -= malloc_usable_size(memory);
  std::free(memory);
}
}  // namespace

// Count allocations. Not built with sanitizers, which have operators of their own.
void* operator new(std::size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new[](std::size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(to, (bytes + to - 1) / to * to));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
#endif

namespace varve::fuzz {
namespace {

constexpr std::size_t kMemoryMax = std::size_t{256} << 20;

// Runs the target, and returns the peak of its memory.
std::size_t memory_of(const Target& target, const std::string& input) {
#if VARVE_MEMORY_COUNTED
  const std::size_t before = g_bytes_used;
  g_bytes_peak = before;
  target.run(base::as_bytes(input));
  return g_bytes_peak - before;
#else
  target.run(base::as_bytes(input));
  return 0;
#endif
}

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::string> inputs;
  if (!std::filesystem::is_directory(folder)) return inputs;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(file.path(), std::ios::binary);
    inputs.push_back(varve::test::rest_of(in));
  }
  return inputs;
}

std::vector<std::string> inputs_of(const Target& target) {
  auto inputs = target.seeds();
  auto kept = files_in(std::filesystem::path(VARVE_FUZZ_CORPUS) / target.name);
  std::ranges::move(kept, std::back_inserter(inputs));
  return inputs;
}

std::string mutated(std::string bytes, const std::vector<std::string>& others,
                    std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (auto changes = below(4) + 1; changes > 0; --changes) {
    if (bytes.empty()) bytes.push_back('\0');
    // Most of the important bytes are near the start.
    const auto at =
        below(2) == 0 ? below(bytes.size()) : below(std::min<std::size_t>(bytes.size(), 256));
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, 1 + below(8), static_cast<char>(random()));
        break;
      case 4: {  // Numbers at the limits of their types.
        constexpr std::uint64_t kEdges[] = {0,          1,          0x7f,  0xff,
                                            0x7fffffff, 0xffffffff, ~0ULL, 1ULL << 63};
        const auto value = kEdges[below(std::size(kEdges))];
        const auto width = std::min<std::size_t>(1ULL << below(4), bytes.size() - at);
        bytes.replace(at, width, reinterpret_cast<const char*>(&value), width);
        break;
      }
      default: {
        const auto& other = others[below(others.size())];
        if (other.empty()) break;
        const auto from = below(other.size());
        bytes.replace(at, std::string::npos, other.substr(from));
        break;
      }
    }
  }
  return bytes;
}

class Fuzz : public testing::TestWithParam<std::size_t> {};

TEST_P(Fuzz, NoInputBreaksTheDecoder) {
  const auto& target = targets()[GetParam()];
  const auto inputs = inputs_of(target);
  for (const auto& input : inputs) ASSERT_LE(memory_of(target, input), kMemoryMax);
  const auto large = std::filesystem::path(VARVE_FUZZ_CORPUS) / "large" / target.name;
  for (const auto& input : files_in(large)) EXPECT_LE(memory_of(target, input), kMemoryMax);
  std::uint64_t count = 20'000;
  if (const char* text = std::getenv("VARVE_TEST_MUTATIONS")) count = std::stoull(text);
  count /= target.cost;
  std::mt19937_64 random(GetParam() + 1);
  const char* keep = std::getenv("VARVE_TEST_KEEP");  // File with the current input.
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto input = mutated(inputs[random() % inputs.size()], inputs, random);
    if (keep != nullptr) std::ofstream(keep, std::ios::binary) << input;
    ASSERT_LE(memory_of(target, input), kMemoryMax);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz, testing::Range<std::size_t>(0, targets().size()),
                         [](const auto& test) { return targets()[test.param].name; });

}  // namespace
}  // namespace varve::fuzz
