// SPDX-License-Identifier: Apache-2.0
// Damages a whole repository at random, then opens, lists, reads, checks, uses and repairs it.
// Every process must end by itself and in time. Reads of a sealed version must give correct bytes
// or an error. VARVE_TEST_DAMAGES sets the number of damages, VARVE_TEST_DAMAGE the first. With
// VARVE_TEST_DAMAGED=WORD, all are raw damages of files with that word in their path; with
// VARVE_TEST_FORGED, all are forged values. With VARVE_TEST_ENCRYPTED, the repository is encrypted.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "base/log.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "prefixed_frames.h"
#include "random_damage.h"
#include "right_sums.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/repair.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSecondsMax = 300;  // Limit for a busy machine.
constexpr int kWrongBytes = 77;        // Exit code of the child for wrong bytes.
constexpr int kNotReadable = 78;

using Contents = std::map<std::string, std::map<std::string, std::string>>;

std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return varve::test::rest_of(in);
}

std::vector<std::string> files_below(const std::string& path) {
  std::vector<std::string> found;
  for (const auto& one : fs::recursive_directory_iterator(path)) {
    const auto name = one.path().filename().string();
    if (one.is_regular_file() && name != "lock" && name != "lock.mdb" && name != "reserve") {
      found.push_back(one.path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void damage_a_file(const std::string& repository, const char* word, Random& random) {
  auto files = files_below(repository);
  std::erase_if(files, [&](const auto& name) {
    return word != nullptr && name.find(word, repository.size()) == std::string::npos;
  });
  const auto& path = files[random.below(files.size())];
  std::fprintf(stderr, "in %s\n", path.c_str());
  if (random.below(20) == 0) {
    fs::remove(path);
    // Sometimes puts a FIFO in its place, which would block open(2).
    if (random.below(4) == 0 && ::mkfifo(path.c_str(), 0600) != 0) std::abort();
    return;
  }
  auto bytes = read_whole(path);
  damage(bytes, random);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Replaces a value of the catalog or of the overlay, with a matching checksum. Only the decoders
// can then reject it.
void forge_a_value(const std::string& folder, std::span<const char* const> tables,
                   meta::EnvKeys keys, Random& random) {
  meta::EnvOptions options;
  options.keys = std::move(keys);
  options.tables = tables;
  options.map_bytes = std::size_t{1} << 30;
  const auto env = must(meta::Env::open(folder, options));
  struct Found {
    meta::TableIndex table = 0;
    std::string key;
    std::string value;
  };
  std::vector<Found> found;
  auto txn = must(meta::WriteTxn::begin(env));
  for (meta::TableIndex table = 0; table < tables.size(); ++table) {
    must(meta::for_each_prefix(txn, table, "",
                               [&](std::string_view key, std::string_view value) -> Result<bool> {
                                 found.push_back({table, std::string(key), std::string(value)});
                                 return true;
                               }));
  }
  for (auto changes = random.below(2) + 1; changes > 0 && !found.empty(); --changes) {
    // Chooses the table first, because some tables have many records.
    const auto table = found[random.below(found.size())].table;
    std::vector<Found> of_table;
    for (const auto& one : found) {
      if (one.table == table) of_table.push_back(one);
    }
    auto one = of_table[random.below(of_table.size())];
    std::fprintf(stderr, "forged in %s, %s\n", folder.c_str(), tables[one.table]);
    const auto hex = [](std::string_view bytes) {
      std::string digits;
      for (const char byte : bytes) {
        digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      }
      return digits;
    };
    const auto& other = of_table[random.below(of_table.size())];
    switch (random.below(9)) {
      case 0:
        must(txn.erase(one.table, one.key));
        continue;
      case 1:  // The value of another key.
        one.value = other.value;
        break;
      case 2:
        damage(one.key, random);
        one.key.resize(std::min<std::size_t>(one.key.size(), 200));
        break;
      case 3:
      case 4:
        put_extreme_key(one.key, random);
        break;
      case 5:
      case 6:
        put_extreme_number(one.value, random);
        break;
      default:
        damage(one.value, random);
        break;
    }
    std::fprintf(stderr, "now %s -> %s\n", hex(one.key).c_str(), hex(one.value).c_str());
    must(txn.put(one.table, one.key, one.value));
  }
  must(txn.commit());
}

// Changes a file's header, or any part of it, and corrects its checksums.
void forge_a_file(const std::string& repository, Random& random) {
  auto files = files_below(repository);
  std::erase_if(files, [](const auto& name) { return name.ends_with("data.mdb"); });
  const auto& path = files[random.below(files.size())];
  std::fprintf(stderr, "forged: %s\n", path.c_str());
  auto bytes = read_whole(path);
  auto start = bytes.substr(0, 400);
  const auto rest = bytes.substr(start.size());
  damage(start, random);
  bytes = start + rest;
  if (encrypts()) {
    fuzz::sum_encrypted_file(path, bytes);
  } else {
    fuzz::sum_file(path, bytes);
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// The keys of the overlay in a folder of the staging area, whose name is SERIES-NUMBER.
meta::EnvKeys overlay_keys_of(const std::string& repository, const std::string& folder) {
  unsigned series = 0;
  unsigned number = 0;
  const auto name = fs::path(folder).filename().string();
  if (std::sscanf(name.c_str(), "%8x-%8x", &series, &number) != 2) std::abort();
  return meta::overlay_keys(keys_of(repository), SeriesId{series}, VersionNumber{number});
}

struct Kind {
  Placement placement;
  bool delta = false;  // Volumes have frames with prefixes.
};

class DamagedRepository : public testing::TestWithParam<Kind> {
 protected:
  DamagedRepository() : path_(directory_.path() + "/whole") {
    base::set_log_level(base::LogLevel::kError);
    auto parameters = small_chunks(Codec::kZstd);
    parameters.placement = GetParam().placement;
    must(Repository::create(path_, parameters, chosen_encryption()));
    const auto repository = reopen(path_, keyed());
    const auto series = must(repository->create_series("s")).id;
    ArrangeSettings settings;
    settings.window = 1;
    settings.policy = ArrangePolicyKind::kOriginal;
    settings.parity_percent = 10;
    settings.delta = GetParam().delta ? 1 : 0;
    must(repository->set_arrange_settings(settings));
    const std::uint64_t versions = GetParam().delta ? kVersionsToJoin : 4;
    for (std::uint64_t i = 1; i <= versions; ++i) {
      const auto name = "v" + std::to_string(i);
      const auto number = must(repository->open_version(series, name, folder())).number;
      fill(*must(repository->writer(series)), name, i);
      must(repository->seal(series, number, ""));
    }
    must(repository->arrange(series, {}));
    EXPECT_EQ(containers_with_prefixes(path_) != 0, GetParam().delta);
    const auto newest = must(repository->find_version(series, "latest"));
    must(repository->clone_version(series, newest.number, "next"));
    {
      const auto version = must(repository->writer(series));
      write_file(*version, kRootIno, "short", "not cut yet");
      const auto ino = must(version->create(kRootIno, "staged", regular_file())).ino;
      const auto file = must(version->open(ino, true));
      must(file->write(50000, base::as_bytes(std::string_view("late"))));
      must(file->write(0, base::as_bytes(std::string_view("early"))));
      must(version->sync());
      copy_crashed(path_, directory_.path() + "/crashed");
    }
    must(repository->close());
  }

  void fill(VersionWriter& version, const std::string& name, std::uint64_t i) {
    const auto sub = must(version.create(kRootIno, "d", folder())).ino;
    std::string text;
    for (int line = 0; line < 2000; ++line) text += fmt_line(line, i);
    for (const auto& [file, bytes] : {std::pair<std::string, std::string>{"a", noise(30000, i)},
                                      {"b", noise(30000, i - 1)},
                                      {"text", text},
                                      {"same", noise(20000, 77)},
                                      {"edited", edited_noise(i)}}) {
      if (file == "edited" && !GetParam().delta) continue;
      write_file(version, sub, file, bytes);
      contents_[name]["d/" + file] = bytes;
    }
    for (int n = 0; n < 40; ++n) {
      const auto file = "small-" + std::to_string(n);
      write_file(version, sub, file, file);
      contents_[name]["d/" + file] = file;
    }
    must(version.link(must(version.lookup(sub, "same")).ino, kRootIno, "link"));
    contents_[name]["link"] = noise(20000, 77);
  }
  static std::string fmt_line(int line, std::uint64_t i) {
    return "line " + std::to_string(line) + " of version " + std::to_string(i) + "\n";
  }

  // Reads all sealed versions. Returns false if a byte is wrong.
  bool read_sealed_versions(Repository& repository) const {
    const auto series = repository.find_series("s");
    if (!series) return true;
    static_cast<void>(repository.series());
    static_cast<void>(repository.versions(series->id));
    static_cast<void>(repository.stats());
    static_cast<void>(repository.version_usage(series->id));
    static_cast<void>(repository.categories(series->id));
    for (const auto& [name, files] : contents_) {
      const auto info = repository.find_version(series->id, name);
      if (!info) continue;
      const auto reader = repository.reader(series->id, info->number);
      if (!reader) continue;
      for (const auto& [path, bytes] : files) {
        if (!is_right(**reader, path, bytes)) {
          std::fprintf(stderr, "wrong: %s/%s\n", name.c_str(), path.c_str());
          return false;
        }
      }
    }
    return true;
  }
  static bool is_right(VersionReader& version, const std::string& path, const std::string& bytes) {
    Rank at = 0;
    std::uint64_t size = 0;
    for (const auto& part : fs::path(path)) {
      const auto found = version.lookup(at, part.string());
      if (!found) return true;
      at = found->rank;
      size = found->attributes.size;
    }
    const auto file = version.open(at);
    if (!file) return true;
    if (size != bytes.size()) return false;
    std::string out(bytes.size() + 1, '\0');
    const auto got = (*file)->read(0, std::as_writable_bytes(std::span(out.data(), out.size())));
    return !got || (*got == bytes.size() && out.compare(0, *got, bytes) == 0);
  }

  static void use(Repository& repository) {
    const auto series = repository.find_series("s");
    if (!series) return;
    if (const auto version = repository.writer(series->id); version) {
      const auto entry = (*version)->create(kRootIno, "made", regular_file());
      if (entry) {
        if (const auto file = (*version)->open(entry->ino, true); file) {
          static_cast<void>((*file)->write(0, base::as_bytes(std::string_view("bytes"))));
        }
      }
      for (const char* name : {"short", "staged", "link"}) {
        const auto found = (*version)->lookup(kRootIno, name);
        if (!found) continue;
        const auto file = (*version)->open(found->ino, true);
        if (!file) continue;
        std::array<std::byte, 4096> bytes;
        static_cast<void>((*file)->read(0, bytes));
        static_cast<void>((*file)->write(3, base::as_bytes(std::string_view("bytes"))));
      }
    }
    if (const auto open = repository.find_version(series->id, "next"); open) {
      static_cast<void>(repository.seal(series->id, open->number, ""));
    }
    static_cast<void>(repository.arrange(series->id, {}));
    if (const auto first = repository.find_version(series->id, "v1"); first) {
      static_cast<void>(repository.delete_versions(series->id, {first->number}));
    }
  }

  static void check(Repository& repository) {
    CheckOptions options;
    options.verify_chunks = true;
    static_cast<void>(repository.check(options, {}));
  }

  // Uses a damaged repository in every way, in a separate process. `forged`: its checksums are
  // correct, so its versions may have any content.
  int live_through(const std::string& path, bool forged) const {
    OpenOptions options = keyed();
    options.ingest_threads = 1;
    for (const bool read_only : {true, false}) {
      options.read_only = read_only;
      const auto repository = Repository::open(path, options);
      if (!repository) continue;
      if (!read_sealed_versions(**repository) && !forged) return kWrongBytes;
      if (read_only) {
        check(**repository);
      } else {
        use(**repository);
      }
      static_cast<void>((*repository)->close());
    }
    for (int pass = 0; pass < 2; ++pass) {
      const auto planned = Repair::plan(path, keyed_repair(), false, {});
      if (planned) static_cast<void>((*planned)->execute({}));
    }
    options.read_only = true;
    const auto repository = Repository::open(path, options);
    if (!repository) return 0;
    return read_sealed_versions(**repository) || forged ? 0 : kWrongBytes;
  }

  void damage_number(std::uint64_t number) {
    const auto path = directory_.path() + "/damaged";
    const auto log = directory_.path() + "/log";
    copy_crashed(directory_.path() + "/crashed", path);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      if (std::freopen(log.c_str(), "w", stderr) == nullptr) ::_exit(1);
      std::setvbuf(stderr, nullptr, _IOLBF, 0);  // A signal must not lose the log.
      ::alarm(kSecondsMax);
      Random random(number);
      const char* word = std::getenv("VARVE_TEST_DAMAGED");
      const bool only_forged = std::getenv("VARVE_TEST_FORGED") != nullptr;
      const auto how = word != nullptr ? 0 : only_forged ? 3 : number % 4;
      if (how < 2) {
        damage_a_file(path, word, random);
      } else if (how == 2) {
        forge_a_file(path, random);
      } else if (random.below(2) == 0) {
        forge_a_value(path + "/catalog", meta::catalog::kTables, {keys_of(path)}, random);
      } else {
        const auto open = fs::directory_iterator(path + "/staging")->path().string();
        forge_a_value(open + "/overlay", meta::overlay::kTables, overlay_keys_of(path, open),
                      random);
      }
      // A file with right checksums opens only if its tags are right, too.
      ::_exit(live_through(path, encrypts() ? how == 3 : how >= 2));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    ADD_FAILURE() << "damage " << number << ": " << (WIFSIGNALED(status) ? "signal " : "code ")
                  << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)) << "\n"
                  << read_whole(log).substr(0, 6000);
  }

  TempDirectory directory_;
  std::string path_;
  Contents contents_;
};

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

TEST_P(DamagedRepository, GivesRightBytesOrErrorsAndEndsNoProcess) {
  // The undamaged repository must be readable.
  {
    const auto repository = reopen(path_, keyed());
    const auto series = must(repository->find_series("s")).id;
    for (const auto& [name, files] : contents_) {
      const auto number = must(repository->find_version(series, name)).number;
      const auto reader = must(repository->reader(series, number));
      for (const auto& [file, bytes] : files) EXPECT_TRUE(read_sealed(*reader, file) == bytes);
    }
  }
  const auto first = number_from("VARVE_TEST_DAMAGE", 1);
  const auto count = number_from("VARVE_TEST_DAMAGES", 40);
  for (auto i = first; i < first + count; ++i) damage_number(i);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamagedRepository,
                         testing::Values(Kind{Placement::kLineage}, Kind{Placement::kPool},
                                         Kind{Placement::kLineage, true}),
                         [](const auto& test) {
                           if (test.param.delta) return "LineageWithPrefixes";
                           return test.param.placement == Placement::kPool ? "Pool" : "Lineage";
                         });

}  // namespace
}  // namespace varve::test
