// SPDX-License-Identifier: Apache-2.0
#include "open_version_target.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <memory>

#include "base/coding.h"
#include "base/log.h"
#include "checks.h"
#include "format/rewrite_counts.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/format_samples.h"
#include "temporary_folder.h"
#include "varve/repository.h"
#include "version/open_inode.h"

namespace varve::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kDepthMax = 6;
constexpr unsigned kEntriesMax = 300;
// Inode numbers in the copied repository. Its base has the numbers up to 6.
constexpr Ino kFolder = 2;
constexpr Ino kFirstFile = 3;

NewFile made(std::uint32_t mode) {
  NewFile file;
  file.mode = mode;
  return file;
}

void must(bool done) { require(done, "the repository to begin with can be made"); }

void write(VersionWriter& version, Ino ino, std::uint64_t offset, std::string_view bytes) {
  const auto file = version.open(ino, true);
  must(file && (*file)->write(offset, base::as_bytes(bytes)));
}

OpenOptions quiet_options() {
  OpenOptions options;
  options.checkpoint_interval_ms = 3600 * 1000;
  options.ingest_threads = 1;
  options.arrange = false;
  return options;
}

// A repository with one series: a sealed version, and an open clone of it with changes. Each input
// gets a copy.
class Work {
 public:
  Work() {
    base::set_log_level(base::LogLevel::kError);
    RepositoryParameters parameters;
    parameters.chunk_bytes_min = 1024;
    parameters.chunk_bytes_avg = 4096;
    parameters.chunk_bytes_max = 16384;
    const auto path = folder_.path() + "/begin";
    must(Repository::create(path, parameters).has_value());
    const auto opened = Repository::open(path, quiet_options());
    must(opened.has_value());
    Repository& repository = **opened;
    const auto series = repository.create_series("s");
    must(series.has_value());
    const auto first = repository.open_version(series->id, "v1", made(S_IFDIR | 0755));
    must(first.has_value());
    {
      const auto version = repository.writer(series->id);
      must(version.has_value());
      const auto top = (*version)->create(kRootIno, "d", made(S_IFDIR | 0755));
      must(top && top->ino == kFolder);
      const auto file = (*version)->create(kFolder, "a", made(S_IFREG | 0644));
      must(file && file->ino == kFirstFile);
      write(**version, kFirstFile, 0, format::compressible_text(30000));
      must((*version)->create(kFolder, "sub", made(S_IFDIR | 0700)).has_value());
      must((*version)->link(kFirstFile, kRootIno, "link").has_value());
    }
    must(repository.seal(series->id, first->number, "").has_value());
    must(repository.clone_version(series->id, first->number, "v2").has_value());
    {
      const auto version = repository.writer(series->id);
      must(version.has_value());
      const auto file = (*version)->create(kFolder, "new", made(S_IFREG | 0600));
      must(file.has_value());
      write(**version, file->ino, 0, "the end is in the overlay");
      const auto staged = (*version)->create(kRootIno, "staged", made(S_IFREG | 0600));
      must(staged.has_value());
      write(**version, staged->ino, 20000, "late");
      write(**version, staged->ino, 100, "early");
      must((*version)->sync().has_value());
      // Copies the repository as a crash leaves it.
      must(copy(path, folder_.path() + "/crashed"));
    }
    must((*opened)->close().has_value());
    for (const auto& one : fs::directory_iterator(folder_.path() + "/crashed/staging")) {
      overlay_ = "/staging/" + one.path().filename().string() + "/overlay";
    }
  }
  [[nodiscard]] std::string fresh() const {
    const auto path = folder_.path() + "/now";
    must(copy(folder_.path() + "/crashed", path));
    return path;
  }
  [[nodiscard]] const std::string& overlay() const { return overlay_; }

 private:
  static bool copy(const std::string& from, const std::string& to) {
    std::error_code error;
    fs::remove_all(to, error);
    fs::copy(from, to, fs::copy_options::recursive, error);
    return !error;
  }
  const TemporaryFolder folder_;
  std::string overlay_;
};

enum Kind : std::uint8_t { kInode, kName, kTail, kState, kNoInode, kNoName, kKinds };

constexpr std::array<const char*, 4> kStateNames = {"next_ino", "format", "next_ino",
                                                    "rewrite_counts"};

// Also yields numbers near the end of their type.
Ino number_of(std::uint8_t byte) { return byte < 0xf0 ? byte : ~Ino{0} << (byte - 0xf0) * 4; }

bool put_records(meta::WriteTxn& txn, std::string_view input) {
  using namespace meta::overlay;
  base::ByteReader r(input);
  while (r.ok() && r.left() > 0) {
    const auto kind = r.u8() % kKinds;
    const auto ino = number_of(r.u8());
    const auto text = std::string(r.sized_text(2000));
    const auto name = [&] { return meta::dirent_key(ino, text.substr(0, 400)); };
    if (!r.ok()) return true;
    bool put = true;
    switch (kind) {
      case kInode:
        put = txn.put(kInodes, meta::ino_key(ino), text).has_value();
        break;
      case kName:
        put = txn.put(kDirents, name(), base::be64(number_of(r.u8()))).has_value();
        break;
      case kTail:
        put = txn.put(kTails, meta::ino_key(ino), text).has_value();
        break;
      case kState:
        put =
            txn.put(meta::overlay::kState, kStateNames[ino % kStateNames.size()], text).has_value();
        break;
      case kNoInode:
        put = txn.erase(kInodes, meta::ino_key(ino)).has_value();
        break;
      default:
        put = txn.erase(kDirents, name()).has_value();
        break;
    }
    if (!put) return false;
  }
  return true;
}

void visit_open(VersionWriter& version, Ino directory, int depth, unsigned& left) {
  std::vector<OpenEntry> found;
  static_cast<void>(version.list(directory, "", [&](std::string_view, const OpenEntry& entry) {
    found.push_back(entry);
    return --left > 0;
  }));
  static_cast<void>(version.parent(directory));
  std::array<std::byte, 4096> bytes;
  for (const auto& [ino, attributes, unchanged] : found) {
    static_cast<void>(version.read_link(ino));
    static_cast<void>(version.xattrs(ino));
    if (S_ISDIR(attributes.mode)) {
      if (depth > 0 && left > 0) visit_open(version, ino, depth - 1, left);
      continue;
    }
    const auto file = version.open(ino, false);
    if (!file) continue;
    static_cast<void>((*file)->read(0, bytes));
    static_cast<void>((*file)->read(attributes.size / 2, bytes));
    static_cast<void>((*file)->seek_hole(0));
    static_cast<void>((*file)->seek_data(0));
  }
}

// Changes names, content and attributes wherever possible.
void change(VersionWriter& version) {
  std::vector<std::string> names;
  static_cast<void>(version.list(kFolder, "", [&](std::string_view name, const OpenEntry&) {
    names.emplace_back(name);
    return names.size() < 8;
  }));
  AttributeChange shorter;
  shorter.size = 1500;
  for (const auto& name : names) {
    const auto entry = version.lookup(kFolder, name);
    if (!entry) continue;
    static_cast<void>(version.set_attributes(entry->ino, shorter));
    if (const auto file = version.open(entry->ino, true); file) {
      static_cast<void>((*file)->write(700, base::as_bytes(std::string_view("here"))));
      static_cast<void>((*file)->sync());
    }
    static_cast<void>(version.create(entry->ino, "below", made(S_IFDIR | 0755)));
    static_cast<void>(version.rename(kFolder, name, entry->ino, "moved", RenameMode::kReplace));
    static_cast<void>(version.rename(kFolder, name, kRootIno, "link", RenameMode::kExchange));
    static_cast<void>(version.rename(kRootIno, name, kRootIno, "moved", RenameMode::kReplace));
  }
  if (const auto top = version.create(kRootIno, "made", made(S_IFDIR | 0755)); top) {
    static_cast<void>(version.rename(kFolder, "a", top->ino, "a", RenameMode::kReplace));
    static_cast<void>(version.rename(kRootIno, "made", kFolder, "made", RenameMode::kReplace));
  }
  for (const auto& name : names) {
    static_cast<void>(version.unlink(kRootIno, name));
    static_cast<void>(version.remove_directory(kFolder, name));
  }
}

// Lists a sealed directory, which must succeed.
void visit_sealed(VersionReader& version, Rank directory) {
  std::vector<Rank> below;
  const auto listed =
      version.list(directory, 0, [&](std::uint64_t, std::string_view, const SealedEntry& entry) {
        if (S_ISDIR(entry.attributes.mode)) below.push_back(entry.rank);
        return true;
      });
  require(listed.has_value(), "the folders of a version that was sealed can be read");
  for (const auto rank : below) visit_sealed(version, rank);
}

std::string record(Kind kind, Ino ino, std::string_view text, Ino target = 0) {
  std::string out{static_cast<char>(kind), static_cast<char>(ino)};
  base::ByteWriter(out).sized_text(text);
  if (kind == kName) out.push_back(static_cast<char>(target));
  return out;
}

}  // namespace

void open_version(std::span<const std::byte> input) {
  static const Work work;
  const auto path = work.fresh();
  {
    meta::EnvOptions options;
    options.tables = meta::overlay::kTables;
    options.map_bytes = std::size_t{1} << 30;
    const auto env = meta::Env::open(path + work.overlay(), options);
    must(env.has_value());
    auto txn = meta::WriteTxn::begin(*env);
    if (!txn || !put_records(*txn, text_of(input)) || !txn->commit()) return;
  }
  const auto repository = Repository::open(path, quiet_options());
  if (!repository) return;
  const auto series = (*repository)->find_series("s");
  const auto info = (*repository)->find_version(series->id, "v2");
  if (!info) return;
  {
    const auto version = (*repository)->writer(series->id);
    if (!version) return;
    unsigned left = kEntriesMax;
    visit_open(**version, kRootIno, kDepthMax, left);
    if (!input.empty() && (static_cast<unsigned>(input[0]) & 0x80U) != 0) change(**version);
  }
  const auto sealed = (*repository)->seal(series->id, info->number, "");
  if (sealed) {
    const auto reader = (*repository)->reader(series->id, info->number);
    require(reader.has_value(), "a version that was sealed can be opened");
    visit_sealed(**reader, 0);
  }
  static_cast<void>((*repository)->close());
}

std::vector<std::string> open_version_seeds() {
  version::OpenInode inode;
  inode.mode = S_IFDIR | 0755;
  inode.directory.parent = kRootIno;
  inode.content.recipe = std::make_shared<const format::Recipe>();
  const auto folder = version::encode_open_inode(inode);
  inode.directory.base_page = format::NodeId{(std::uint64_t{1} << 32) + 1};
  const auto of_base = version::encode_open_inode(inode);
  inode.directory.base_page = {};
  inode.mode = S_IFREG | 0644;
  const auto empty_file = version::encode_open_inode(inode);
  inode.mode = S_IFLNK | 0777;
  inode.symlink_target = "a";
  const auto link = version::encode_open_inode(inode);
  std::vector<std::string> seeds = {
      std::string(),
      // A folder that is inside itself and below the root.
      record(kInode, kFolder, folder) + record(kName, kFolder, "x", kFolder),
      record(kInode, kFolder, of_base) + record(kName, kFolder, "x", kRootIno),
      record(kInode, kFirstFile, empty_file) + record(kTail, kFirstFile, "the tail"),
      record(kInode, kFirstFile, link) + record(kNoInode, 7, "") + record(kNoName, 2, "new"),
      record(kState, 0, base::be64(900)) + record(kState, 1, base::be64(1)) +
          record(kName, kRootIno, "n", 7),
      record(kState, 3, format::encode_rewrite_counts({3, 9000, 1, 4000, 0, 0, 2})),
  };
  const auto some = seeds.size();
  for (std::size_t i = 1; i < some; ++i) {  // The same input, followed by changes of everything.
    auto seed = seeds[i];
    seed[0] = static_cast<char>(static_cast<std::uint8_t>(seed[0]) + 0x80 + 4);
    while (static_cast<std::uint8_t>(seed[0]) % kKinds !=
           static_cast<std::uint8_t>(seeds[i][0]) % kKinds) {
      ++seed[0];
    }
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace varve::fuzz
