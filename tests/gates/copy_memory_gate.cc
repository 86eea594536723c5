// SPDX-License-Identifier: Apache-2.0
// A message of a copy costs at most 64 MiB of memory, whatever the other end sends. The gate counts
// the bytes that the decoder requests from the heap, so the machine's load has no effect.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/coding.h"
#include "copy/change.h"
#include "copy/message.h"
#include "support/sanitized.h"

namespace {

std::atomic<std::size_t> heap_bytes{0};
std::atomic<std::size_t> heap_bytes_peak{0};

}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  const std::size_t now = heap_bytes += ::malloc_usable_size(memory);
  if (now > heap_bytes_peak) heap_bytes_peak = now;
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) heap_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { operator delete(memory); }

namespace varve::copy {
namespace {

template <typename Type, typename Variant, std::size_t kIndex = 0>
constexpr std::size_t index_in() {
  if constexpr (std::is_same_v<std::variant_alternative_t<kIndex, Variant>, Type>) {
    return kIndex;
  } else {
    return index_in<Type, Variant, kIndex + 1>();
  }
}

/// Returns a message of the largest size. `fields` come before a list of `element`, repeated.
std::string largest_message(std::size_t index, std::string_view fields, std::string_view element,
                            std::size_t elements_max = SIZE_MAX) {
  constexpr std::size_t kCountBytes = 5;
  std::string message;
  message.reserve(kMessageBytesMax);
  base::ByteWriter out(message);
  out.u8(static_cast<std::uint8_t>(index + 1));
  out.text(fields);
  const std::size_t room = kMessageBytesMax - message.size() - kCountBytes;
  const std::size_t count = std::min(room / element.size(), elements_max);
  out.varint(count);
  for (std::size_t i = 0; i < count; ++i) message.append(element);
  return message;
}

/// Returns the size of a message and the most heap memory that its decoding had at one time.
template <typename Decode>
std::size_t cost_of(const Decode& decode, const std::string& message) {
  const std::size_t before = heap_bytes;
  heap_bytes_peak = before;
  { const auto decoded = decode(base::as_bytes(message)); }
  return message.size() + (heap_bytes_peak - before);
}
template <typename Type>
std::size_t cost_of_request(std::string_view fields, std::string_view element,
                            std::size_t elements_max = SIZE_MAX) {
  return cost_of(decode_request,
                 largest_message(index_in<Type, Request>(), fields, element, elements_max));
}
template <typename Type>
std::size_t cost_of_answer(std::string_view element) {
  return cost_of(decode_answer, largest_message(index_in<Type, Answer>(), "", element));
}

/// Returns the encoded form of one change.
std::string encoded(Change change) {
  constexpr std::size_t kTypeAndCountBytes = 2;
  return encode_request(ChangeBatch{{std::move(change)}}).substr(kTypeAndCountBytes);
}

std::string change_with_many_xattrs() {
  constexpr std::size_t kLetters = 50;
  constexpr std::size_t kXattrs = 60000;
  Change change;
  change.kind = ChangeKind::kAttributes;
  change.name = "f";
  change.mode = S_IFREG | 0644;
  const auto letter = [](std::size_t i) { return static_cast<char>('A' + i % kLetters); };
  for (std::size_t i = 0; i < kXattrs; ++i) {
    change.xattrs.push_back(
        {{letter(i / kLetters / kLetters), letter(i / kLetters), letter(i)}, ""});
  }
  return encoded(std::move(change));
}

class CopyMemoryGate : public testing::Test {
 protected:
  void SetUp() override {
    if constexpr (test::kSanitized) GTEST_SKIP() << "a sanitizer has another allocator";
  }
  const std::string zero_ = std::string(1, '\0');
  const std::string one_ = "\1";
  const std::string text_ = "\x10" + std::string(16, 'x');  // Too long for a string without heap.
};

TEST_F(CopyMemoryGate, NoListOfARequestCostsMoreThanTheLimit) {
  EXPECT_LE(cost_of_request<FillRequest>("", zero_), kMessageMemoryMax);
  EXPECT_LE(cost_of_request<FillRequest>("", text_), kMessageMemoryMax);
  EXPECT_LE(cost_of_request<DeleteRequest>(one_, one_), kMessageMemoryMax);
  const std::string no_time(2, '\0');
  const std::string file = zero_ + zero_ + std::string(3, '\0') + no_time + zero_;
  EXPECT_LE(cost_of_request<BesideRequest>(one_, file), kMessageMemoryMax);
}

TEST_F(CopyMemoryGate, NoBatchCostsMoreThanTheLimit) {
  const std::string xattrs = change_with_many_xattrs();
  Change long_link;
  long_link.kind = ChangeKind::kLink;
  long_link.name = "l";
  long_link.target = std::string(kLinkPathBytesMax, 'x');
  Change named;
  named.kind = ChangeKind::kRemove;
  named.name = std::string(kNameBytesMax, 'n');
  for (const std::string& change :
       {xattrs, encoded(std::move(long_link)), encoded(std::move(named))}) {
    EXPECT_LE(cost_of_request<ChangeBatch>("", change, kBatchChangesMax), kMessageMemoryMax);
    EXPECT_LE(cost_of_request<CheckRequest>("\1\1\1", change, kBatchChangesMax), kMessageMemoryMax);
  }
}

TEST_F(CopyMemoryGate, NoAnswerCostsMoreThanTheLimit) {
  const std::string version = one_ + text_ + one_ + zero_ + zero_ + zero_ + zero_;
  EXPECT_LE(cost_of_answer<std::vector<TargetSeries>>(one_ + zero_), kMessageMemoryMax);
  EXPECT_LE(cost_of_answer<std::vector<TargetVersion>>(version), kMessageMemoryMax);
  EXPECT_LE(cost_of_answer<ReasonsAnswer>(zero_), kMessageMemoryMax);
  EXPECT_LE(cost_of_answer<std::vector<Difference>>(one_ + zero_), kMessageMemoryMax);
  EXPECT_LE(cost_of_answer<std::vector<bool>>(zero_), kMessageMemoryMax);
}

// The largest messages of an honest source fit.
TEST_F(CopyMemoryGate, LargestHonestMessagesAreDecoded) {
  const auto is_decoded = [](const Request& request) {
    const std::string message = encode_request(request);
    return message.size() <= kMessageBytesMax && decode_request(base::as_bytes(message));
  };
  const FillRequest data{
      std::vector(kBatchDataMax / kChunkBytesMax, std::string(kChunkBytesMax, 'x'))};
  EXPECT_TRUE(is_decoded(data));
  EXPECT_TRUE(is_decoded(FillRequest{std::vector<std::string>(kBatchChunksMax, "x")}));
  Change chunks;
  chunks.kind = ChangeKind::kData;
  chunks.name = "f";
  chunks.chunks.resize(kBatchChunksMax);
  for (ChunkRef& chunk : chunks.chunks) chunk.bytes = 1;
  EXPECT_TRUE(is_decoded(ChangeBatch{{chunks}}));
  std::vector<VersionNumber> numbers(std::size_t{1} << 20, VersionNumber{1U << 31});
  EXPECT_TRUE(is_decoded(DeleteRequest{SeriesId{1}, std::move(numbers)}));
  std::vector<TargetVersion> versions(100000);
  for (TargetVersion& version : versions) {
    version.name = std::string(30, 'v');
    version.origin = VersionOrigin{std::string(32, 'a'), SeriesId{1}, VersionNumber{1}, {}, true};
  }
  EXPECT_TRUE(decode_answer(base::as_bytes(encode_answer(versions))));
}

}  // namespace
}  // namespace varve::copy
