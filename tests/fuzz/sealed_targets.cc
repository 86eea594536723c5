// SPDX-License-Identifier: Apache-2.0
#include "sealed_targets.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/coding.h"
#include "checks.h"
#include "io/memory_file_system.h"
#include "meta/value_seal.h"
#include "support/test_keys.h"
#include "version/staging_file.h"

namespace varve::fuzz {
namespace {

constexpr std::size_t kRecordBytes =
    crypto::kSaltBytes + crypto::kNonceBytes + crypto::kTagBytes;  // FORMAT.md §14.3.
constexpr const char* kTable = "series";
constexpr const char* kKey = "key";
constexpr std::size_t kValueBytesMax = 5000;
constexpr const char* kLog = "/log";
constexpr version::StagingPlace kPlace{SeriesId{3}, VersionNumber{7}, 12, 1};

meta::EnvKeys value_keys() { return {test::test_keys(), crypto::Purpose::kOverlay, "a place"}; }

// The text that the seeds begin with.
std::string text_of_seeds() {
  std::string text(70'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 256);
  return text;
}

// Corrects the checksums of a staging file: of the header, and of all blocks that follow.
void sum_log(std::string& bytes) {
  constexpr std::size_t kFileHeader = 64;
  constexpr std::size_t kBlockHeader = 48;
  if (bytes.size() < kFileHeader) return;
  put64(bytes, 56, sum(bytes, 0, 56));
  for (std::size_t at = kFileHeader; bytes.size() - at >= kBlockHeader;) {
    const std::size_t length = base::load_le<std::uint32_t>(base::as_bytes(bytes).data() + at);
    const auto data = at + kBlockHeader;
    if (length > bytes.size() - data) return;
    put64(bytes, at + 32, sum(bytes, data, data + length));
    put64(bytes, at + 40, sum(bytes, at, at + 40));
    at = data + length;
  }
}

}  // namespace

void sealed_value(Bytes input) {
  const auto text = text_of(input);
  const auto record = text.substr(0, std::min(text.size(), kRecordBytes));
  const auto seal = meta::ValueSeal::open(value_keys(), record);
  if (!seal) return;
  const auto value = (*seal)->open(kTable, kKey, text.substr(record.size()));
  if (!value) return;
  const auto all = text_of_seeds();
  const auto found = value->view();
  require(found.size() <= kValueBytesMax && found == std::string_view(all).substr(0, found.size()),
          "a value that opens was sealed");
}

std::vector<std::string> sealed_value_seeds() {
  std::vector<std::string> seeds;
  const auto seal = meta::ValueSeal::make(value_keys());
  if (!seal) return seeds;
  const auto text = text_of_seeds();
  for (const auto bytes : {std::size_t{0}, std::size_t{40}, kValueBytesMax}) {
    std::string sealed(meta::ValueSeal::sealed_bytes(kTable, bytes), '\0');
    (*seal)->seal(kTable, kKey, crypto::NonceSeed{}, std::string_view(text).substr(0, bytes),
                  std::as_writable_bytes(std::span(sealed)));
    seeds.push_back((*seal)->record() + sealed);
  }
  return seeds;
}

void staging_log(Bytes input) {
  std::string bytes(text_of(input));
  sum_log(bytes);
  const auto files = io::make_memory_file_system();
  {
    const auto raw = files->open(kLog, io::OpenMode::kCreateNew);
    require(raw && (*raw)->write_at(0, base::as_bytes(bytes)), "a file in memory");
  }
  const auto keys = test::test_keys();
  const auto text = text_of_seeds();
  for (const std::size_t needed : {std::size_t{0}, std::size_t{100}, text.size()}) {
    const auto log = version::open_staging_file(*files, kLog, keys.get(), kPlace, needed);
    if (!log) continue;
    std::string out(9000, '\0');
    for (std::size_t at = 0; at < text.size() + 9000; at += out.size()) {
      const auto got = (*log)->read(at, std::as_writable_bytes(std::span(out)));
      if (!got || *got == 0) continue;
      require(at + *got <= text.size() &&
                  std::string_view(out).substr(0, *got) == std::string_view(text).substr(at, *got),
              "only what was sealed is read");
    }
  }
  const auto log = version::open_staging_file(*files, kLog, keys.get(), kPlace, 0);
  if (!log) return;
  const std::string more(500, 'm');
  const auto at = (*log)->write(0, base::as_bytes(more));
  if (!at) return;
  std::string out(more.size(), '\0');
  const auto got = (*log)->read(*at, std::as_writable_bytes(std::span(out)));
  require(got && *got == more.size() && out == more, "what was written is read");
}

std::vector<std::string> staging_log_seeds() {
  std::vector<std::string> seeds;
  const auto keys = test::test_keys();
  const auto text = text_of_seeds();
  for (const auto end : {std::size_t{100}, std::size_t{1100}, text.size()}) {
    const auto files = io::make_memory_file_system();
    const auto log = version::create_staging_file(*files, kLog, keys.get(), kPlace);
    require(log.has_value(), "a log in memory");
    for (const auto& [from, to] :
         {std::pair<std::size_t, std::size_t>{0, 100}, {100, 1100}, {1100, text.size()}}) {
      if (to > end) break;
      const auto part = std::string_view(text).substr(from, to - from);
      require((*log)->write(from, base::as_bytes(part)).has_value(), "a write to memory");
    }
    if (auto bytes = files->read_file(kLog, 1U << 20)) seeds.push_back(std::move(*bytes));
  }
  return seeds;
}

}  // namespace varve::fuzz
