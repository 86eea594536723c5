// SPDX-License-Identifier: Apache-2.0
// Can the storage of a repository tell whether a known file is in it? A game with many trials: the
// victim stores a known file or another one, and the attacker says which. Counts right answers.
//
// VARVE_TEST_TRIALS=N plays N trials of each game and kind; the attacker then trains more, too.
// VARVE_TEST_PRINT=1 prints the ranges that each restore reads.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "fingerprinting/known_files.h"
#include "fingerprinting/length_attack.h"
#include "fingerprinting/observer.h"
#include "fingerprinting/seeded_random.h"
#include "fingerprinting/size_attack.h"
#include "format/container.h"
#include "ingest/chunker.h"
#include "ingest/gear_chunker.h"
#include "support/file_content.h"
#include "support/prefer_memory.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"
#include "varve/restore.h"

namespace varve::fingerprinting {
namespace {

namespace fs = std::filesystem;
using test::must;

const test::PreferMemory kPreferMemory;

constexpr std::uint64_t kSeed = 20250321;
constexpr int kCandidates = 4;
/// Keys are random, so guesses are right in 15 of 20 trials of one game in 50. A score that guesses
/// reach less often than this is no chance.
constexpr double kChanceMin = 0.0002;
constexpr ingest::ChunkSizes kSizes{2048, 8192, 65536};

int trials_or(int standard) {
  const char* const given = std::getenv("VARVE_TEST_TRIALS");
  return given == nullptr ? standard : std::max(1, std::atoi(given));
}
/// Returns the number of repositories of each kind that the attacker makes to train.
int trainings() { return std::getenv("VARVE_TEST_TRIALS") == nullptr ? 6 : 24; }

/// Returns a number that depends on all of its arguments.
std::uint64_t mixed(std::initializer_list<std::uint64_t> parts) {
  std::seed_seq sequence(parts.begin(), parts.end());
  std::array<std::uint32_t, 2> out{};
  sequence.generate(out.begin(), out.end());
  return static_cast<std::uint64_t>(out[0]) << 32 | out[1];
}
std::uint64_t mixed(Kind kind, std::initializer_list<std::uint64_t> parts) {
  std::vector<std::uint64_t> all(parts);
  all.push_back(static_cast<std::uint64_t>(kind));
  std::seed_seq sequence(all.begin(), all.end());
  std::array<std::uint32_t, 2> out{};
  sequence.generate(out.begin(), out.end());
  return static_cast<std::uint64_t>(out[0]) << 32 | out[1];
}

/// A repository with two versions: one of the victim, and the same with one file more.
class Victim {
 public:
  Victim(bool encrypted, const std::string& file, std::uint64_t seed) : encrypted_(encrypted) {
    seed_random_bytes(seed);
    CreateOptions how;
    if (encrypted_) {
      how = test::encrypted();
      how.encryption->cipher = "aes-256-gcm";
    }
    must(Repository::create(path_, {}, how));
    const auto repository = must(Repository::open(path_, options()));
    series_ = must(repository->create_series("s")).id;
    store(*repository, "v1", nullptr);
    add_listing(path_, "before", seen_);
    store(*repository, "v2", &file);
    must(repository->close());
    add_listing(path_, "after", seen_);
  }

  /// Restores the file and returns all that the storage saw.
  [[nodiscard]] Observation observe() {
    auto how = options();
    how.read_only = true;
    const auto repository = must(Repository::open(path_, how));
    const auto version = must(repository->find_version(series_, "v2"));
    const auto reader = must(repository->reader(series_, version.number));
    std::vector<ReadRange> ranges;
    {
      const ReadWatch watch(path_);
      must(restore_version(*reader, directory_.path() + "/target", {}, nullptr));
      ranges = watch.ranges();
    }
    if (std::getenv("VARVE_TEST_PRINT") != nullptr) {
      for (const auto& range : ranges) {
        fmt::print("    {} {} {}\n", range.path, range.offset, range.bytes);
      }
    }
    add_reads(ranges, seen_);
    add_catalog(path_, seen_);
    return seen_;
  }

  /// Returns the lengths of the chunks in a plain repository, in the order of its containers.
  [[nodiscard]] Lengths stored_lengths() const {
    Lengths lengths;
    std::vector<fs::path> segments;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      if (entry.path().extension() == ".seg") segments.push_back(entry.path());
    }
    std::ranges::sort(segments);
    for (const auto& segment : segments) {
      std::ifstream in(segment, std::ios::binary);
      const std::string bytes = varve::test::rest_of(in);
      for (std::size_t at = 0; at < bytes.size();) {
        const auto header =
            must(format::decode_container_header(base::as_bytes(bytes).subspan(at), nullptr));
        for (const auto& chunk : header.chunks) lengths.push_back(chunk.raw_bytes);
        at += header.stored_bytes();
      }
    }
    return lengths;
  }

 private:
  [[nodiscard]] OpenOptions options() const {
    const auto quiet = test::quiet_options();
    return encrypted_ ? test::with_key(quiet) : quiet;
  }

  void store(Repository& repository, const std::string& name, const std::string* file) {
    const auto version = must(repository.open_version(series_, name, test::folder()));
    const auto writer = must(repository.writer(series_));
    test::write_file(*writer, kRootIno, "a", make_file(Kind::kText, 300000, 1));
    if (file != nullptr) test::write_file(*writer, kRootIno, "f", *file);
    must(repository.seal(series_, version.number, name));
  }

  const bool encrypted_;
  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/r";
  SeriesId series_{};
  Observation seen_;
};

/// The rules by which other files differ from the known ones.
enum class Game : std::uint8_t {
  kSamePadded,  ///< Equal size and kind; trials with another padded size do not count.
  kSameSize,    ///< Equal size and kind; the files compress differently.
  kAnySize,     ///< Half to twice the size.
};

std::string_view name_of(Game game) {
  constexpr std::array<std::string_view, 3> kNames{"same padded size", "same size", "any size"};
  return kNames[static_cast<std::size_t>(game)];
}

/// One kind of files in one game: the known files, and other files beside each.
class Files {
 public:
  Files(Kind kind, Game game) : kind_(kind), game_(game) {}

  [[nodiscard]] std::string known(int candidate) const {
    return file(candidate, mixed(kind_, {kSeed, 1, static_cast<std::uint64_t>(candidate)}), false);
  }
  [[nodiscard]] std::string other(int candidate, std::uint64_t seed) const {
    return file(candidate, mixed(kind_, {kSeed, 2, static_cast<std::uint64_t>(candidate), seed}),
                true);
  }
  [[nodiscard]] Kind kind() const { return kind_; }

 private:
  [[nodiscard]] std::string file(int candidate, std::uint64_t seed, bool other) const {
    std::mt19937_64 sizes(mixed(kind_, {kSeed, 3, static_cast<std::uint64_t>(candidate)}));
    auto bytes = 600000 + sizes() % 800000;
    std::mt19937_64 random(seed);
    if (other && game_ == Game::kAnySize) {
      bytes = static_cast<std::size_t>(
          static_cast<double>(bytes) *
          std::exp2(std::uniform_real_distribution<double>(-1, 1)(random)));
    }
    const double mix = game_ == Game::kSamePadded ? 0 : static_cast<double>(random() % 1000) / 2000;
    return make_file(kind_, bytes, random(), mix);
  }

  Kind kind_;
  Game game_;
};

Observation without_clear_bytes(const Observation& seen) {
  Observation listing;
  for (const auto& [name, value] : seen) {
    const bool clear =
        name.starts_with("value ") || name.starts_with("records ") || name.starts_with("bytes ");
    if (!clear) listing.emplace(name, value);
  }
  return listing;
}

/// Returns the sizes of the files with containers: what padding hides.
std::vector<double> padded_sizes(const Observation& seen) {
  std::vector<double> sizes;
  for (const auto& [name, value] : seen) {
    if (name.starts_with("after size") && name.ends_with(".seg")) sizes.push_back(value);
  }
  return sizes;
}

/// Plays a game with repositories of one kind of files.
class Play {
 public:
  Play(Kind kind, Game game) : files_(kind, game), game_(game) {}

  /// Plays so many trials.
  void run(int trials) {
    for (int candidate = 0; candidate < kCandidates; ++candidate) {
      const std::string known = files_.known(candidate);
      usual_.clear();
      if (game_ == Game::kSamePadded) usual_ = usual_sizes(known);
      std::vector<Observation> with;
      std::vector<Observation> without;
      for (int i = 0; i < trainings(); ++i) {
        with.push_back(observe(candidate, &known));
        without.push_back(observe(candidate, nullptr));
      }
      const SizeAttack everything(with, without);
      std::ranges::transform(with, with.begin(), without_clear_bytes);
      std::ranges::transform(without, without.begin(), without_clear_bytes);
      const SizeAttack listing(with, without);
      for (const auto& clue : everything.clues()) ++clues_[clue];
      for (int i = candidate; i < trials; i += kCandidates) {
        const bool has_it = mixed(files_.kind(), {kSeed, 4, next_}) % 2 == 0;
        const auto seen = observe(candidate, has_it ? &known : nullptr);
        everything_.add(answers(everything, seen) == has_it);
        listing_.add(answers(listing, without_clear_bytes(seen)) == has_it);
      }
    }
  }

  [[nodiscard]] const Score& listing() const { return listing_; }
  [[nodiscard]] const Score& everything() const { return everything_; }
  /// Returns the best clues, each with the number of known files for which it was one.
  [[nodiscard]] std::string clues() const {
    std::vector<std::pair<int, std::string>> all;
    for (const auto& [name, count] : clues_) all.emplace_back(count, name);
    std::ranges::sort(all, std::greater<>());
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 8); ++i) {
      text += fmt::format("\n    {} × {}", all[i].first, all[i].second);
    }
    return text;
  }

 private:
  /// Returns what the storage sees of a victim with the known file, or with another one.
  Observation observe(int candidate, const std::string* known) {
    for (;;) {
      const std::uint64_t seed = ++next_;
      const std::string file = known != nullptr ? *known : files_.other(candidate, seed);
      auto seen = Victim(true, file, mixed(files_.kind(), {kSeed, 5, seed})).observe();
      if (usual_.empty() || padded_sizes(seen) == usual_) return seen;
    }
  }

  /// Returns the padded sizes that a known file has with most keys.
  std::vector<double> usual_sizes(const std::string& known) {
    std::map<std::vector<double>, int> counts;
    for (int i = 0; i < 5; ++i) {
      ++counts[padded_sizes(
          Victim(true, known, mixed(files_.kind(), {kSeed, 6, ++next_})).observe())];
    }
    return std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
  }

  /// Returns the attacker's answer; a guess if there is no evidence.
  bool answers(const SizeAttack& attack, const Observation& seen) {
    const double evidence = attack.evidence(seen);
    return evidence != 0 ? evidence > 0 : mixed(files_.kind(), {kSeed, 7, next_}) % 2 == 0;
  }

  Files files_;
  Game game_;
  std::vector<double> usual_;  // Empty: sizes do not matter.
  std::uint64_t next_ = 0;
  Score listing_;
  Score everything_;
  std::map<std::string, int> clues_;
};

void print(std::string_view what, Kind kind, const Score& score) {
  fmt::print("{:<48} {:<8} {:>5} trials, advantage {:>6.3f} [{:>6.3f}, {:>6.3f}]\n", what,
             name_of(kind), score.trials, score.advantage(), score.low(), score.high());
}

class Fingerprinting : public testing::TestWithParam<Kind> {};

TEST_P(Fingerprinting, APlainRepositoryShowsAKnownFile) {
  const Files files(GetParam(), Game::kSamePadded);
  const auto chunker = must(ingest::make_chunker("gear16", kSizes));
  Score score;
  for (int i = 0; i < trials_or(12); ++i) {
    const std::string known = files.known(i % kCandidates);
    const auto seed = static_cast<std::uint64_t>(i);
    const bool has_it = mixed(GetParam(), {kSeed, 8, seed}) % 2 == 0;
    const Victim victim(false, has_it ? known : files.other(i % kCandidates, seed), seed);
    const auto match = longest_match(lengths_of(*chunker, known), victim.stored_lengths());
    score.add((match > 0.25) == has_it);
  }
  print("plain", GetParam(), score);
  EXPECT_EQ(score.advantage(), 1.0);
}

// The storage would see lengths of chunks, as that of other programs does, but not the table.
TEST_P(Fingerprinting, AKeyedChunkerAloneHidesAFileOnlyUntilTheAttackerKnowsOne) {
  const Files files(GetParam(), Game::kSamePadded);
  const auto plain = must(ingest::make_chunker("gear16", kSizes));
  Score blind;
  Score trained;
  int recovered = 0;
  const int trials = trials_or(12);
  for (int i = 0; i < trials; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const auto keys = test::test_keys(static_cast<std::uint8_t>(i % 256),
                                      fmt::format("{:032x}", mixed({kSeed, 9, seed})));
    const auto keyed = must(ingest::make_chunker("gear16-keyed", kSizes, keys.get()));
    const std::string known = files.known(i % kCandidates);
    const bool has_it = mixed(GetParam(), {kSeed, 10, seed}) % 2 == 0;
    const auto seen = lengths_of(*keyed, has_it ? known : files.other(i % kCandidates, seed));
    const bool guess = mixed(GetParam(), {kSeed, 11, seed}) % 2 == 0;

    const bool fits = longest_match(lengths_of(*plain, known), seen) > 0.25;
    blind.add((fits || guess) == has_it);

    const std::string other_known =
        make_file(GetParam(), 24U << 20, mixed(GetParam(), {kSeed, 12, seed}));
    const auto table = recover_gear16(other_known, lengths_of(*keyed, other_known), kSizes);
    bool answer = guess;
    if (table) {
      ++recovered;
      const ingest::Gear16Chunker copy("recovered", kSizes, ingest::Gear16Form::kScalar, *table);
      answer = longest_match(lengths_of(copy, known), seen) > 0.25;
    }
    trained.add(answer == has_it);
  }
  print("lengths, keyed chunker", GetParam(), blind);
  print("lengths, keyed chunker, 24 MiB known", GetParam(), trained);
  fmt::print("  tables recovered: {} of {}\n", recovered, trials);
  EXPECT_LE(blind.low(), 0);
  EXPECT_GT(trained.low(), 0.5);
}

TEST_P(Fingerprinting, AnEncryptedRepositoryHidesAFileAmongOthersOfItsPaddedSize) {
  Play play(GetParam(), Game::kSamePadded);
  play.run(trials_or(20));
  print("encrypted, same padded size, sizes and ranges", GetParam(), play.listing());
  print("encrypted, same padded size, and catalog", GetParam(), play.everything());
  fmt::print("  clues:{}\n", play.clues());
  EXPECT_GT(play.listing().chance(), kChanceMin);
  EXPECT_GT(play.everything().chance(), kChanceMin);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Fingerprinting, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

/// Plays a game with all kinds. Returns the sum of the scores.
Score play_all(Game game, int trials) {
  Score sum;
  for (const Kind kind : kKinds) {
    Play play(kind, game);
    play.run(trials);
    print(fmt::format("encrypted, {}, sizes and ranges", name_of(game)), kind, play.listing());
    sum.trials += play.listing().trials;
    sum.right += play.listing().right;
  }
  return sum;
}

// Sizes are not hidden. This also shows that the attack works where there is something to see.
TEST(SizesShow, FilesOfOtherSizes) { EXPECT_GT(play_all(Game::kAnySize, trials_or(8)).low(), 0); }

TEST(SizesShow, FilesThatCompressDifferently) {
  if (std::getenv("VARVE_TEST_TRIALS") == nullptr) GTEST_SKIP() << "takes VARVE_TEST_TRIALS";
  EXPECT_GT(play_all(Game::kSameSize, trials_or(0)).low(), 0);
}

}  // namespace
}  // namespace varve::fingerprinting
