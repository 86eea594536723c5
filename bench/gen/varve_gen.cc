// SPDX-License-Identifier: Apache-2.0
// Generates and edits trees of real bytes. Equal seeds give equal trees.
//
// usage: varve-gen tree --seed N --bytes N --file-bytes MIN:MAX|lognormal --compressible 0|1 DIR
//        varve-gen edit --seed N --change-rate R --mix MODIFY/INSERT/DELETE --files-fraction F DIR
//
// `tree` fills DIR (made if absent) until its files hold the bytes. lognormal: median 8 KiB,
// sigma 2, at most 64 MiB. `edit` changes about R of all bytes below DIR, in runs of some tens of
// KiB in a share F of the files. --mix weighs the runs that replace, insert and delete. Numbers of
// bytes accept K, M and G. Options may be written --name=value.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support.h"

namespace varve::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlockBytes = 1U << 20;
constexpr std::uint64_t kFilesPerDirectory = 64;
constexpr double kEditRunBytes = 32 << 10;

using Options = std::map<std::string, std::string, std::less<>>;
using Buffer = std::vector<char>;

/// An endless source of bytes: noise, or words that zstd compresses to about a third.
class Source {
 public:
  Source(std::uint64_t seed, bool compressible) : random_(seed), compressible_(compressible) {}

  void fill(std::span<char> out) {
    std::size_t at = 0;
    while (at < out.size()) {
      char piece[16];
      std::size_t size = 8;
      const std::uint64_t bits = random_.next();
      std::memcpy(piece, &bits, 8);
      if (compressible_ && bits % 8 != 0) size = word(bits >> 3, piece);
      size = std::min(size, out.size() - at);
      std::memcpy(out.data() + at, piece, size);
      at += size;
    }
  }

 private:
  static std::size_t word(std::uint64_t bits, char (&out)[16]) {
    // 1,024 words of 4 to 11 letters, each a function of its number.
    const std::uint64_t number = bits % 1024;
    std::uint64_t letters = Random(number).next();
    const std::size_t size = 4 + number % 8;
    for (std::size_t i = 0; i < size; ++i, letters >>= 5) {
      out[i] = static_cast<char>('a' + (letters & 31) % 26);
    }
    out[size] = ' ';
    return size + 1;
  }

  Random random_;
  bool compressible_;
};

bool fail(const std::string& what) {
  fmt::print(stderr, "varve-gen: {}\n", what);
  return false;
}

bool write_all(int fd, std::span<const char> data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0) return false;
    data = data.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

std::uint64_t lognormal_bytes(Random& random) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random.unit()));
  const double normal = radius * std::cos(2.0 * std::numbers::pi * random.unit());
  const double bytes = 8192.0 * std::exp(2.0 * normal);
  return static_cast<std::uint64_t>(std::clamp(bytes, 1.0, 64.0 * (1 << 20)));
}

/// Returns the directory of a file. Directories have 64 files and are in groups of 64.
fs::path directory_of(const fs::path& root, std::uint64_t file) {
  const std::uint64_t directory = file / kFilesPerDirectory;
  return root / fmt::format("g{:03}", directory / 64) / fmt::format("d{:02}", directory % 64);
}

bool make_file(const fs::path& path, std::uint64_t bytes, Source source, Buffer& block) {
  const base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0) return fail("cannot make " + path.string());
  while (bytes > 0) {
    const auto piece = std::span(block).first(std::min<std::uint64_t>(bytes, block.size()));
    source.fill(piece);
    if (!write_all(fd.get(), piece)) return fail("cannot write " + path.string());
    bytes -= piece.size();
  }
  return true;
}

struct TreeOptions {
  std::uint64_t seed = 1;
  std::uint64_t bytes = 0;
  std::uint64_t file_bytes_min = 0;  // Both 0: lognormal.
  std::uint64_t file_bytes_max = 0;
  bool compressible = false;
};

bool make_tree(const TreeOptions& options, const fs::path& root) {
  Random random(options.seed);
  Buffer block(kBlockBytes);
  std::error_code error;
  std::uint64_t left = options.bytes;
  for (std::uint64_t file = 0; left > 0; ++file) {
    const std::uint64_t span = options.file_bytes_max - options.file_bytes_min + 1;
    const std::uint64_t drawn = options.file_bytes_max == 0
                                    ? lognormal_bytes(random)
                                    : options.file_bytes_min + random.below(span);
    const std::uint64_t bytes = std::min(left, drawn);
    const fs::path directory = directory_of(root, file);
    if (file % kFilesPerDirectory == 0) fs::create_directories(directory, error);
    if (error) return fail("cannot make " + directory.string() + ": " + error.message());
    const fs::path path = directory / fmt::format("f{:07}", file);
    if (!make_file(path, bytes, Source(random.next(), options.compressible), block)) return false;
    left -= bytes;
  }
  return true;
}

struct EditOptions {
  std::uint64_t seed = 1;
  double change_rate = 0.01;
  std::uint64_t mix[3] = {60, 20, 20};  // Modify, insert, delete.
  double files_fraction = 0.2;
};

/// Returns the bytes of a file with about `change_bytes` of them edited.
Buffer edit_bytes(const Buffer& old, std::uint64_t change_bytes, const EditOptions& options,
                  Random& random) {
  Source source(random.next(), false);
  // Edits runs of a mean length, with gaps that spread them over the file.
  const auto runs =
      static_cast<std::uint64_t>(std::ceil(static_cast<double>(change_bytes) / kEditRunBytes));
  const std::uint64_t run_bytes = std::max<std::uint64_t>(1, change_bytes / runs);
  const std::uint64_t kept = old.size() - std::min<std::uint64_t>(old.size(), change_bytes);
  const std::uint64_t total = options.mix[0] + options.mix[1] + options.mix[2];
  Buffer out;
  out.reserve(old.size() + change_bytes);
  std::size_t at = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const std::uint64_t gap =
        std::min<std::uint64_t>(random.below(2 * (kept / runs) + 1), old.size() - at);
    out.insert(out.end(), old.begin() + static_cast<std::ptrdiff_t>(at),
               old.begin() + static_cast<std::ptrdiff_t>(at + gap));
    at += gap;
    const std::uint64_t kind = random.below(total);
    const bool removes = kind < options.mix[0] || kind >= options.mix[0] + options.mix[1];
    if (kind < options.mix[0] + options.mix[1]) {
      out.resize(out.size() + run_bytes);
      source.fill(std::span(out).last(run_bytes));
    }
    if (removes) at += std::min<std::uint64_t>(run_bytes, old.size() - at);
  }
  out.insert(out.end(), old.begin() + static_cast<std::ptrdiff_t>(at), old.end());
  return out;
}

bool read_file(const fs::path& path, Buffer& out) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (fd.get() < 0 || fstat(fd.get(), &st) != 0) return false;
  out.resize(static_cast<std::size_t>(st.st_size));
  for (std::size_t at = 0; at < out.size();) {
    const ssize_t n = ::read(fd.get(), out.data() + at, out.size() - at);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

/// Rewrites the existing file, so that its owner, mode and links stay.
bool rewrite_file(const fs::path& path, const Buffer& data) {
  const base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  return fd.get() >= 0 && write_all(fd.get(), data);
}

bool edit_tree(const EditOptions& options, const fs::path& root) {
  Random random(options.seed);
  std::uint64_t bytes = 0;
  std::uint64_t chosen_bytes = 0;
  std::vector<fs::path> chosen;
  std::error_code error;
  for (const auto& path : regular_files(root)) {
    const std::uint64_t size = fs::file_size(path, error);
    if (error || size == 0) continue;
    bytes += size;
    if (random.unit() >= options.files_fraction) continue;
    chosen_bytes += size;
    chosen.push_back(path);
  }
  if (chosen.empty()) return fail("no file was chosen: the tree is too small for the fraction");
  const double share = std::min(
      1.0, options.change_rate * static_cast<double>(bytes) / static_cast<double>(chosen_bytes));
  Buffer old;
  std::uint64_t changed = 0;
  for (const auto& path : chosen) {
    if (!read_file(path, old)) return fail("cannot read " + path.string());
    const auto change = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(share * static_cast<double>(old.size())));
    if (!rewrite_file(path, edit_bytes(old, change, options, random))) {
      return fail("cannot write " + path.string());
    }
    changed += change;
  }
  fmt::print("{} files edited, {} of {} bytes\n", chosen.size(), changed, bytes);
  return true;
}

template <typename Number>
bool parse_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_tree(const Options& given, TreeOptions& out) {
  for (const auto& [name, value] : given) {
    bool ok = true;
    if (name == "seed") {
      ok = parse_number(value, out.seed);
    } else if (name == "bytes") {
      const auto bytes = parse_bytes(value);
      ok = bytes.has_value();
      out.bytes = bytes.value_or(0);
    } else if (name == "file-bytes" && value != "lognormal") {
      const auto colon = value.find(':');
      const auto low = parse_bytes(value.substr(0, colon));
      const auto high = colon == value.npos ? low : parse_bytes(value.substr(colon + 1));
      ok = low && high && *low > 0 && *low <= *high;
      out.file_bytes_min = low.value_or(0);
      out.file_bytes_max = high.value_or(0);
    } else if (name == "compressible") {
      ok = value == "0" || value == "1";
      out.compressible = value == "1";
    } else if (name != "file-bytes") {
      ok = false;
    }
    if (!ok) return fail("bad option --" + name + " " + value);
  }
  return out.bytes > 0 || fail("--bytes is missing");
}

bool parse_edit(const Options& given, EditOptions& out) {
  for (const auto& [name, value] : given) {
    bool ok = false;
    if (name == "seed") {
      ok = parse_number(value, out.seed);
    } else if (name == "change-rate") {
      ok = parse_number(value, out.change_rate) && out.change_rate > 0 && out.change_rate <= 1;
    } else if (name == "files-fraction") {
      ok = parse_number(value, out.files_fraction) && out.files_fraction > 0 &&
           out.files_fraction <= 1;
    } else if (name == "mix") {
      const auto first = value.find('/');
      const auto second = value.find('/', first + 1);
      ok = second != value.npos && parse_number(value.substr(0, first), out.mix[0]) &&
           parse_number(value.substr(first + 1, second - first - 1), out.mix[1]) &&
           parse_number(value.substr(second + 1), out.mix[2]) &&
           out.mix[0] + out.mix[1] + out.mix[2] > 0;
    }
    if (!ok) return fail("bad option --" + name + " " + value);
  }
  return true;
}

int main_of(const std::vector<std::string>& args) {
  Options options;
  std::string root;
  for (std::size_t i = 1; i < args.size(); ++i) {
    if (!args[i].starts_with("--")) {
      root = args[i];
    } else if (const auto equals = args[i].find('='); equals != std::string::npos) {
      options[args[i].substr(2, equals - 2)] = args[i].substr(equals + 1);
    } else if (i + 1 < args.size()) {
      options[args[i].substr(2)] = args[i + 1];
      ++i;
    }
  }
  if (!root.empty() && args[0] == "tree") {
    TreeOptions tree;
    return parse_tree(options, tree) && make_tree(tree, root) ? 0 : 1;
  }
  if (!root.empty() && args[0] == "edit") {
    EditOptions edit;
    return parse_edit(options, edit) && edit_tree(edit, root) ? 0 : 1;
  }
  fmt::print(stderr,
             "usage: varve-gen tree --seed N --bytes N --file-bytes MIN:MAX|lognormal "
             "--compressible 0|1 DIR\n"
             "       varve-gen edit --seed N --change-rate R --mix M/I/D --files-fraction F DIR\n");
  return 1;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::main_of({argv + 1, argv + argc}); }
