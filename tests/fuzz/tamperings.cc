// SPDX-License-Identifier: Apache-2.0
#include "tamperings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "base/coding.h"
#include "right_sums.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "tampered_values.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPageSize = 4096;

class Choices {
 public:
  explicit Choices(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  std::mt19937_64 engine_;
};

void write_bytes(const std::string& path, const std::string& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string class_of(const std::string& path) {
  const auto name = fs::path(path).filename().string();
  const auto has = [&](std::string_view part) { return path.find(part) != std::string::npos; };
  if (has("staging/")) {
    if (has("/overlay/")) return "overlay";
    return has("/files/") ? "staged file" : "tails";
  }
  if (name == "data.mdb") return "catalog";
  if (has("/active/")) return "segment";
  if (has("/volumes/")) return "volume";
  if (has("/parity/")) return "parity";
  if (has("/manifests/")) return "manifest";
  if (name.starts_with("index-zero")) return "zero-chunk index";
  if (name.ends_with(".run")) return "index run";
  if (name.ends_with(".snap")) return "index snapshot";
  if (name.ends_with(".als")) return "aliases";
  if (name.starts_with("sources-")) return "sources";
  return name;
}

// Returns the paths of all files with content below a repository, relative to it.
std::vector<std::string> files_of(const std::string& repository) {
  std::vector<std::string> all;
  for (const auto& one : fs::recursive_directory_iterator(repository)) {
    const auto name = one.path().filename().string();
    if (!one.is_regular_file() || one.file_size() == 0) continue;
    if (name == "lock" || name == "lock.mdb" || name == "reserve") continue;
    all.push_back(fs::relative(one.path(), repository).string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Chooses the class first: some have many files.
std::string choose_file(const std::string& repository, Choices& random,
                        const std::vector<std::string>& classes = {}) {
  std::set<std::string> present;
  const auto files = files_of(repository);
  for (const auto& file : files) {
    const auto found = class_of(file);
    if (classes.empty() || std::ranges::find(classes, found) != classes.end()) {
      present.insert(found);
    }
  }
  if (present.empty()) return "";
  const auto wanted =
      *std::next(present.begin(), static_cast<std::ptrdiff_t>(random.below(present.size())));
  std::vector<std::string> of_class;
  for (const auto& file : files) {
    if (class_of(file) == wanted) of_class.push_back(file);
  }
  return random.of(of_class);
}

using Made = std::optional<Tampering>;

Made made(const std::string& what, const std::string& where) {
  return Tampering{what, where, class_of(where)};
}

// Writes changed bytes of a file, with right checksums half of the time.
Made put_changed(const TamperedWorld& world, const std::string& file, std::string bytes,
                 const std::string& before, std::string what, Choices& random) {
  const auto path = world.path + "/" + file;
  if (random.below(2) == 0) {
    fuzz::sum_file(path, bytes);
    what += ", with right checksums";
  }
  if (bytes == before) return std::nullopt;
  write_bytes(path, bytes);
  return made(what, file);
}

enum Kind : std::size_t {
  kFlip,
  kZeroPage,
  kCut,
  kExtend,
  kSwapRanges,
  kSwapContainersInside,
  kSwapContainersBetween,
  kSwapFiles,
  kTwinFile,
  kForeignFile,
  kOlderFile,
  kOlderPage,
  kOlderCatalog,
  kOlderKeys,
  kOlderLabels,
  kOlderCatalogAndLabels,
  kOlderStore,
  kRemovedFile,
  kRemovedBack,
  kSwappedValues,
  kOlderValue,
  kErasedValue,
  kChangedValue,
  kKinds,
};
constexpr std::array<std::string_view, kKinds> kNames = {"a flipped bit",
                                                         "a page of zeros",
                                                         "a cut",
                                                         "more bytes",
                                                         "two ranges swapped",
                                                         "two containers of a file swapped",
                                                         "containers of two files swapped",
                                                         "two files swapped",
                                                         "a file of another repository",
                                                         "a file of one with another key",
                                                         "an older file",
                                                         "an older page or block",
                                                         "an older catalog",
                                                         "an older varve.repo or varve.keys",
                                                         "older labels",
                                                         "an older catalog with its labels",
                                                         "an older state of one store",
                                                         "a removed file",
                                                         "a removed file put back",
                                                         "two values swapped",
                                                         "an older value",
                                                         "an erased value",
                                                         "a changed value"};

Made change_bytes(const TamperedWorld& world, Kind kind, Choices& random) {
  const auto file = choose_file(world.path, random);
  const auto before = bytes_of(world.path + "/" + file);
  auto bytes = before;
  const auto at = random.below(bytes.size());
  std::string what;
  switch (kind) {
    case kFlip:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      what = fmt::format("a bit at {}", at);
      break;
    case kZeroPage: {
      const auto begin = at / kPageSize * kPageSize;
      const auto end = std::min(bytes.size(), begin + kPageSize);
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                bytes.begin() + static_cast<std::ptrdiff_t>(end), '\0');
      what = fmt::format("zeros from {}", begin);
      break;
    }
    case kCut:
      bytes.resize(random.below(2) == 0 ? at : at / kPageSize * kPageSize);
      what = fmt::format("cut to {}", bytes.size());
      break;
    case kExtend:
      bytes += random.below(2) == 0 ? noise(1 + random.below(9000), at)
                                    : bytes.substr(at, 1 + random.below(9000));
      what = fmt::format("{} more bytes", bytes.size() - before.size());
      break;
    default: {
      // Also the sizes of pages, and of blocks of sealed files.
      constexpr std::array<std::size_t, 5> kSizes = {16, 552, 4096, 4136, 128};
      const auto size = kSizes[random.below(kSizes.size())];
      if (bytes.size() < 2 * size + 64) return std::nullopt;
      const auto first = size == 4096 ? 0 : random.below(2) == 0 ? 64 : random.below(64);
      const auto count = (bytes.size() - first) / size;
      if (count < 2) return std::nullopt;
      const auto one = first + random.below(count) * size;
      const auto other = first + random.below(count) * size;
      const auto moved = bytes.substr(one, size);
      bytes.replace(one, size, bytes, other, size);
      bytes.replace(other, size, moved);
      what = fmt::format("{} bytes at {} and {} swapped", size, one, other);
      break;
    }
  }
  return put_changed(world, file, std::move(bytes), before, std::move(what), random);
}

struct Container {
  std::size_t at = 0;
  std::size_t bytes = 0;
};
std::vector<Container> containers_of(const std::string& bytes) {
  std::vector<Container> all;
  for (std::size_t at = 0; bytes.size() - at >= 128;) {
    const auto length = base::load_le<std::uint32_t>(base::as_bytes(bytes).data() + at + 20);
    if (length < 128 || length > bytes.size() - at) break;
    all.push_back({at, length});
    at += length;
  }
  return all;
}

Made swap_containers(const TamperedWorld& world, bool inside, Choices& random) {
  const auto file = choose_file(world.path, random, {"segment", "volume"});
  const auto bytes = bytes_of(world.path + "/" + file);
  const auto all = containers_of(bytes);
  if (inside) {
    if (all.size() < 2) return std::nullopt;
    const auto first = random.below(all.size() - 1);
    const auto [one, other] = std::pair(all[first], all[first + 1]);
    auto changed = bytes.substr(0, one.at) + bytes.substr(other.at, other.bytes) +
                   bytes.substr(one.at, one.bytes) + bytes.substr(other.at + other.bytes);
    write_bytes(world.path + "/" + file, changed);
    return made(fmt::format("containers at {} and {} swapped", one.at, other.at), file);
  }
  const auto second = choose_file(world.path, random, {"segment", "volume"});
  if (second == file) return std::nullopt;
  const auto others = bytes_of(world.path + "/" + second);
  const auto theirs = containers_of(others);
  if (all.empty() || theirs.empty()) return std::nullopt;
  const auto one = random.of(all);
  const auto other = random.of(theirs);
  write_bytes(world.path + "/" + file, bytes.substr(0, one.at) +
                                           others.substr(other.at, other.bytes) +
                                           bytes.substr(one.at + one.bytes));
  write_bytes(world.path + "/" + second, others.substr(0, other.at) +
                                             bytes.substr(one.at, one.bytes) +
                                             others.substr(other.at + other.bytes));
  return made(fmt::format("container at {} swapped with {} at {}", one.at, second, other.at), file);
}

Made swap_files(const TamperedWorld& world, Choices& random) {
  const auto file = choose_file(world.path, random);
  std::vector<std::string> others = files_of(world.path);
  std::erase_if(others, [&](const auto& other) {
    return other == file || class_of(other) != class_of(file);
  });
  if (others.empty()) return std::nullopt;
  const auto other = random.of(others);
  const auto bytes = bytes_of(world.path + "/" + file);
  const auto theirs = bytes_of(world.path + "/" + other);
  if (bytes == theirs) return std::nullopt;
  write_bytes(world.path + "/" + file, theirs);
  write_bytes(world.path + "/" + other, bytes);
  return made("swapped with " + other, file);
}

// Takes a file of another folder that has the same path.
Made take_file(const TamperedWorld& world, const std::string& from, const std::string& file,
               const std::string& what) {
  const auto source = from + "/" + file;
  if (!fs::exists(source)) return std::nullopt;
  const auto bytes = bytes_of(source);
  if (fs::exists(world.path + "/" + file) && bytes == bytes_of(world.path + "/" + file)) {
    return std::nullopt;
  }
  write_bytes(world.path + "/" + file, bytes);
  return made(what + " from " + fs::path(from).filename().string(), file);
}

Made older_page(const TamperedWorld& world, Choices& random) {
  const auto file = choose_file(world.path, random);
  const auto older = random.of(world.older) + "/" + file;
  if (!fs::exists(older)) return std::nullopt;
  const auto theirs = bytes_of(older);
  const auto before = bytes_of(world.path + "/" + file);
  const auto of_class = class_of(file);
  const bool paged = of_class == "catalog" || of_class == "overlay" || of_class == "segment";
  const std::size_t size = paged ? kPageSize : of_class == "labels" ? 552 : 4136;
  const std::size_t first = paged ? 0 : 64;
  std::vector<std::size_t> differ;
  for (auto at = first; at + size <= std::min(theirs.size(), before.size()); at += size) {
    if (theirs.compare(at, size, before, at, size) != 0) differ.push_back(at);
  }
  if (differ.empty()) return std::nullopt;
  const auto at = random.of(differ);
  auto bytes = before;
  bytes.replace(at, size, theirs, at, size);
  write_bytes(world.path + "/" + file, bytes);
  return made(fmt::format("{} older bytes at {}", size, at), file);
}

Made older_labels(const TamperedWorld& world, const std::string& older, bool catalog) {
  Made done;
  if (catalog) {
    done = take_file(world, older, "catalog/data.mdb", "an older one");
    if (!done) return done;
    fs::remove(world.path + "/catalog/lock.mdb");
  }
  for (const auto& file : files_of(world.path)) {
    if (class_of(file) != "labels") continue;
    auto one = take_file(world, older, file, "an older one");
    if (one && !done) done = one;
    if (done && !catalog) break;  // Of one series.
  }
  return done;
}

Made older_store(const TamperedWorld& world, Choices& random) {
  const auto older = random.of(world.older);
  std::vector<std::string> folders;
  for (const auto& one : fs::directory_iterator(older + "/series")) {
    folders.push_back("series/" + one.path().filename().string());
  }
  if (fs::exists(older + "/pool")) folders.emplace_back("pool");
  std::sort(folders.begin(), folders.end());
  const auto folder = random.of(folders);
  bool same = true;
  std::vector<std::string> all;
  for (const auto& root : {older, world.path}) {
    for (const auto& file : files_of(root)) {
      if (file.starts_with(folder + "/")) all.push_back(file);
    }
  }
  for (const auto& file : all) {
    same = same && bytes_of(older + "/" + file) == bytes_of(world.path + "/" + file);
  }
  if (same) return std::nullopt;
  copy_crashed(older + "/" + folder, world.path + "/" + folder);
  return Tampering{"as in state " + fs::path(older).filename().string(), folder, "store"};
}

// Puts a file back that an older state had. One that only saves work counts by itself.
Made removed_back(const TamperedWorld& world, Choices& random) {
  const auto older = random.of(world.older);
  std::vector<std::string> gone;
  for (const auto& file : files_of(older)) {
    if (!fs::exists(world.path + "/" + file)) gone.push_back(file);
  }
  if (gone.empty()) return std::nullopt;
  return take_file(world, older, random.of(gone), "put back");
}

}  // namespace

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return varve::test::rest_of(in);
}

std::size_t tampering_kinds() { return kKinds; }
std::string_view name_of_tampering(std::size_t kind) { return kNames.at(kind); }

Made tamper(const TamperedWorld& world, std::size_t kind, std::uint64_t seed) {
  Choices random(seed * kKinds + kind);
  const auto older = random.of(world.older);
  switch (kind) {
    case kSwapContainersInside:
    case kSwapContainersBetween:
      return swap_containers(world, kind == kSwapContainersInside, random);
    case kSwapFiles:
      return swap_files(world, random);
    case kTwinFile:
      return take_file(world, world.twin, choose_file(world.path, random), "that");
    case kForeignFile:
      return take_file(world, world.foreign, choose_file(world.path, random), "that");
    case kOlderFile:
      return take_file(world, older, choose_file(world.path, random), "an older one");
    case kOlderPage:
      return older_page(world, random);
    case kOlderCatalog:
      fs::remove(world.path + "/catalog/lock.mdb");
      return take_file(world, older, "catalog/data.mdb", "an older one");
    case kOlderKeys: {
      const bool both = random.below(2) == 0;
      auto done = take_file(world, older, both ? "varve.repo" : "varve.keys", "an older one");
      if (done && both) static_cast<void>(take_file(world, older, "varve.keys", "an older one"));
      return done;
    }
    case kOlderLabels:
      return older_labels(world, older, false);
    case kOlderCatalogAndLabels:
      return older_labels(world, older, true);
    case kOlderStore:
      return older_store(world, random);
    case kRemovedFile: {
      const auto file = choose_file(world.path, random);
      fs::remove(world.path + "/" + file);
      return made("removed", file);
    }
    case kRemovedBack:
      return removed_back(world, random);
    case kSwappedValues:
    case kOlderValue:
    case kErasedValue:
    case kChangedValue: {
      std::vector<std::string> folders{"catalog"};
      for (const auto& one : fs::directory_iterator(world.path + "/staging")) {
        const auto overlay = "staging/" + one.path().filename().string() + "/overlay";
        if (fs::exists(world.path + "/" + overlay)) folders.push_back(overlay);
      }
      std::sort(folders.begin(), folders.end());
      const auto folder = random.below(3) == 0 ? random.of(folders) : folders.front();
      const auto change = kind == kSwappedValues ? ValueChange::kSwapped
                          : kind == kOlderValue  ? ValueChange::kOlder
                          : kind == kErasedValue ? ValueChange::kErased
                                                 : ValueChange::kChanged;
      const auto what = change_value(world.path + "/" + folder, older + "/" + folder, change, seed);
      if (!what) return std::nullopt;
      return Tampering{*what, folder, folder == "catalog" ? "catalog" : "overlay"};
    }
    default:
      return change_bytes(world, static_cast<Kind>(kind), random);
  }
}

}  // namespace varve::test
