// SPDX-License-Identifier: Apache-2.0
#include "environment_target.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <random>

#include "base/coding.h"
#include "checks.h"
#include "meta/lmdb.h"
#include "meta/page_check.h"
#include "support/file_content.h"
#include "temporary_folder.h"

namespace varve::fuzz {
namespace {

constexpr std::array<const char*, 2> kTables = {"names", "values"};
constexpr std::size_t kPage = 4096;
constexpr unsigned kKeys = 220;

std::string key_of(std::uint64_t n) {
  return base::be64(n) + std::string(n % 5 == 0 ? 60 + n % 180 : 0, 'n');
}

// Puts and erases records in each part of both tables. Returns false if LMDB reports an error.
bool write_some(const meta::Env& env, std::mt19937& random, unsigned changes) {
  auto txn = meta::WriteTxn::begin(env);
  if (!txn) return false;
  for (unsigned i = 0; i < changes; ++i) {
    const auto table = random() % kTables.size();
    const auto key = key_of(random() % kKeys);
    if (random() % 3 == 0) {
      if (!txn->erase(table, key)) return false;
      continue;
    }
    const auto bytes = random() % 12 == 0 ? random() % 12000 : random() % 120;
    if (!txn->put(table, key, std::string(bytes, 'v'))) return false;
  }
  return txn->commit().has_value();
}

void read_all(const meta::Env& env) {
  const auto txn = meta::ReadTxn::begin(env);
  if (!txn) return;
  for (meta::TableIndex table = 0; table < kTables.size(); ++table) {
    auto cursor = meta::Cursor::open(*txn, table);
    if (!cursor) continue;
    auto entry = cursor->seek("");
    for (unsigned i = 0; entry && *entry && i < 4 * kKeys; ++i) entry = cursor->next();
    for (unsigned n = 0; n < kKeys; ++n) static_cast<void>(txn->get(table, key_of(n)));
  }
}

// A folder with an environment. Restores its file before each input.
class Subject {
 public:
  Subject() {
    options_.tables = kTables;
    options_.map_bytes = std::size_t{64} << 20;
    const auto env = meta::Env::open(folder_.path(), options_);
    require(env.has_value(), "an environment can be made");
    std::mt19937 random(3);
    for (int commit = 0; commit < 9; ++commit) {
      require(write_some(*env, random, 60), "an environment can be written to");
    }
    std::ifstream in(path(), std::ios::binary);
    whole_ = varve::test::rest_of(in);
    // Cuts the part of the file that a commit did not need.
    const auto used = whole_.find_last_not_of('\0') / kPage + 1;
    whole_.resize(used * kPage);
    check(false);
  }

  [[nodiscard]] const std::string& whole() const { return whole_; }

  void run(const std::string& bytes, unsigned seed) {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
    if (!meta::check_pages(folder_.path(), kTables)) return;
    bool written = true;
    {
      const auto env = meta::Env::open(folder_.path(), options_);
      if (!env) return;
      read_all(*env);
      std::mt19937 random(seed);
      for (int commit = 0; written && commit < 4; ++commit) {
        written = write_some(*env, random, commit % 2 == 0 ? 40 : 200);
      }
      require(meta::check_pages(*env, kTables).has_value(), "what was accepted stays acceptable");
      read_all(*env);
    }
    require(written, "what was accepted can be written to");
    check(true);
  }

 private:
  [[nodiscard]] std::string path() const { return folder_.path() + "/data.mdb"; }
  void check(bool again) const {
    require(meta::check_pages(folder_.path(), kTables).has_value(),
            again ? "what was accepted is accepted again" : "what LMDB wrote is accepted");
  }

  TemporaryFolder folder_;
  meta::EnvOptions options_;
  std::string whole_;
};

// Applies one change, coded in 12 bytes: the page, the place in it, the kind of change, and a
// number.
void change(std::string& bytes, Bytes how) {
  const auto pages = bytes.size() / kPage;
  const auto page = base::load_le<std::uint8_t>(how.data()) % pages * kPage;
  const auto kind = base::load_le<std::uint8_t>(how.data() + 1);
  const std::size_t offset = base::load_le<std::uint16_t>(how.data() + 2);
  const auto value = base::load_le<std::uint64_t>(how.data() + 4);
  // Mostly changes the parts that LMDB trusts: a page's header and the headers of its nodes.
  std::size_t at = page + offset % kPage;
  if ((kind & 0x30) == 0x10) at = page + offset % 40;
  if ((kind & 0x30) == 0x20) {
    const auto* start = reinterpret_cast<const std::byte*>(bytes.data()) + page;
    const auto slot = 16 + offset / 16 % 64 * 2;
    at = page + (base::load_le<std::uint16_t>(start + slot) + offset % 16) % kPage;
  }
  const auto left = page + kPage - at;
  switch (kind % 8) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const auto width = std::min(left, std::size_t{1} << (kind % 4));
      bytes.replace(at, width, reinterpret_cast<const char*>(&value), width);
      break;
    }
    case 4:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (value % 8)));
      break;
    case 5:  // Copies a page to another place.
      bytes.replace(page, kPage, std::string(bytes, value % pages * kPage, kPage));
      break;
    case 6: {
      const auto count = std::min<std::size_t>(left, value % kPage);
      bytes.replace(at, count, count, '\0');
      break;
    }
    default: {
      const auto count = std::min<std::size_t>(left, value % 64);
      bytes.replace(at, count, std::string(bytes, page + value / 64 % (kPage - 64), count));
      break;
    }
  }
}

}  // namespace

void environment(Bytes input) {
  static Subject subject;
  if (input.empty()) return;
  constexpr std::size_t kChangeBytes = 12;
  constexpr std::size_t kChangesMax = 16;
  auto bytes = subject.whole();
  const auto seed = static_cast<unsigned>(input[0]);
  input = input.subspan(1);
  for (std::size_t i = 0; i < kChangesMax && input.size() >= kChangeBytes; ++i) {
    change(bytes, input.first(kChangeBytes));
    input = input.subspan(kChangeBytes);
  }
  subject.run(bytes, seed);
}
std::vector<std::string> environment_seeds() {
  std::vector<std::string> seeds{std::string(1, '\0')};
  for (unsigned page = 0; page < 12; ++page) {
    std::string input(1, static_cast<char>(page));
    for (unsigned n = 0; n < 2; ++n) {
      input += static_cast<char>(page + n);
      input += static_cast<char>(0x10 * (page % 3) + page % 8);
      input += base::be64(page * 0x0102030405060708ULL).substr(0, 2);
      input += base::be64(1ULL << (page * 5)).substr(0, 8);
    }
    seeds.push_back(input);
  }
  return seeds;
}

}  // namespace varve::fuzz
