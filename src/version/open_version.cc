// SPDX-License-Identifier: Apache-2.0
#include "version/open_version.h"

#include <linux/limits.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "meta/page_check.h"
#include "meta/schema.h"
#include "store/repository_names.h"
#include "version/open_version_file.h"

namespace varve::version {

namespace {
constexpr std::size_t kOverlayMapBytes = std::size_t{64} << 30;
constexpr std::size_t kSmallMapBytes = std::size_t{4} << 30;
constexpr std::size_t kSpillSlotBytes = 128U << 10;
constexpr std::uint64_t kRecordBytes = 1024;  // A usual inode and its name, with LMDB's slack.
constexpr std::uint64_t kGenerationsEnd = std::uint64_t{1} << 62;  // Counting never reaches it.

Error damaged(const char* what) {
  return {ErrorCode::kCorrupt, std::string("the open version's overlay: ") + what, EIO};
}
}  // namespace

OpenVersion::OpenVersion(const OpenVersionParts& parts, VersionInfo info)
    : parts_(parts),
      files_directory_(parts.staging_directory + "/files"),
      spill_(*parts.files, parts.staging_directory + "/tails", kSpillSlotBytes),
      pipeline_(*parts.chunker, *parts.index, *parts.layout, *parts.fingerprint_pool, spill_),
      reader_(*parts.layout, *parts.read_service,
              (std::uint64_t{1} << 63) | (static_cast<std::uint64_t>(info.series) << 32) |
                  static_cast<std::uint64_t>(info.number)),
      info_(std::move(info)),
      tree_(parts_.base.get()),
      index_entries_(parts_.index->size()) {
  if (parts_.space != nullptr) parts_.space->add(this);
}

Result<std::shared_ptr<OpenVersion>> OpenVersion::open(const OpenVersionParts& parts,
                                                       const VersionInfo& info,
                                                       const NewFile& root) {
  std::shared_ptr<OpenVersion> version(new OpenVersion(parts, info));
  VARVE_TRY_ASSIGN(const bool present, parts.files->exists(parts.staging_directory + "/overlay"));
  if (present) VARVE_TRY(version->open_overlay());
  VARVE_TRY(version->recover(root));
  return version;
}

// The caller holds mutex_, or nothing else can use the version yet.
Result<void> OpenVersion::open_overlay() {
  const std::string directory = parts_.staging_directory + "/overlay";
  meta::EnvOptions options;
  options.tables = meta::overlay::kTables;
  options.map_bytes = kOverlayMapBytes;
  auto& files = *parts_.files;
  if (const auto checked = meta::check_pages(files, directory, options.tables); !checked) {
    return Error(checked.error().code(),
                 directory + "/data.mdb is damaged (" + checked.error().message() +
                     "), so what the open version held cannot be read; `varve repair` drops it",
                 EIO);
  }
  VARVE_TRY(files.make_directory(files_directory_));
  auto env = meta::Env::open(files, directory, options);
  if (env) {
    overlay_.emplace(std::move(*env));
  } else if (env.error().errno_value() == ENOMEM) {
    options.map_bytes = kSmallMapBytes;  // Thousands of versions share the address space.
    VARVE_TRY_ASSIGN(auto small, meta::Env::open(files, directory, options));
    overlay_.emplace(std::move(small));
  } else {
    return std::move(env).error();
  }
  tree_.attach(*overlay_);
  return {};
}

Result<void> OpenVersion::make_overlay() {
  auto& files = *parts_.files;
  const std::string directory = parts_.staging_directory + "/overlay";
  // LMDB writes its first pages one by one; the rename makes the environment appear as a whole.
  const std::string fresh = directory + ".new";
  VARVE_TRY(files.make_durable_directory(parts_.staging_directory));
  VARVE_TRY(files.make_directory(files_directory_));
  VARVE_TRY(store::remove_folder(files, fresh, store::FolderKind::kEnvironment));
  VARVE_TRY(files.make_directory(fresh));
  meta::EnvOptions options;
  options.tables = meta::overlay::kTables;
  options.map_bytes = kSmallMapBytes;
  VARVE_TRY(meta::Env::open(files, fresh, options));
  VARVE_TRY(files.sync_directory(fresh));
  VARVE_TRY(files.rename(fresh, directory));
  VARVE_TRY(files.sync_directory(parts_.staging_directory));
  return open_overlay();
}

Result<void> OpenVersion::wake_up() {
  if (!overlay_) {
    VARVE_TRY(make_overlay());
    VARVE_TRY_ASSIGN(auto* root, tree_.get(kRootIno));
    if (!parts_.base) tree_.touch(*root);
  }
  start_background();
  return {};
}

void OpenVersion::start_background() {
  if (background_.joinable() || stopping_) return;
  background_ = std::thread([this] {
    base::name_this_thread("varve-checkpt");
    background();
  });
}

// Continues from the last checkpoint: creates the root if there is none, cuts the tails that were
// open, and queues the staged files.
Result<void> OpenVersion::recover(const NewFile& root) {
  VARVE_TRY(tree_.load());
  const Timestamp now = parts_.clock->now();
  const Timestamp changed = tree_.changed_at();
  if (changed.seconds == 0 || changed > now) tree_.set_changed_at(now);
  {
    const std::lock_guard lock(mutex_);
    auto top = tree_.get(kRootIno);
    if (!top && top.error().code() != ErrorCode::kStale) return std::move(top).error();
    if (top && !(*top)->is_directory()) return damaged("its root is no directory");
    if (!top) {
      auto inode = std::make_unique<OpenInode>();
      inode->ino = kRootIno;
      inode->parent = kRootIno;
      inode->mode = (root.mode & 07777) | S_IFDIR;
      inode->uid = root.uid;
      inode->gid = root.gid;
      inode->xattrs = root.xattrs;
      inode->mtime = inode->ctime = inode->atime = info_.opened_at;
      inode->recipe = std::make_shared<const format::Recipe>();
      auto* const added = inode.get();
      tree_.add_clean(std::move(inode));
      if (overlay_ || !added->xattrs.empty()) tree_.touch(*added);
    }
    if (!overlay_) return root.xattrs.empty() || parts_.base ? Result<void>() : wake_up();
    VARVE_TRY(recover_tails());
    VARVE_TRY(recover_staged());
    estimate_sealing();
    VARVE_TRY(finish_tails(Urgency::kIfAdmitted));
    if (!staged_.empty() || !waiting_tails_.empty()) start_background();
  }
  auto done = checkpoint(Extent::kAll);
  if (done || done.error().code() != ErrorCode::kNoSpace) return done;
  // The overlay keeps its contents, so the version can be read and dropped on a full disk.
  base::log(base::LogLevel::kWarning, "open version: " + done.error().message());
  return {};
}

Result<void> OpenVersion::recover_tails() {
  std::vector<std::pair<Ino, std::string>> tails;
  VARVE_TRY(tree_.for_each_tail([&](Ino ino, std::string_view tail) -> Result<void> {
    tails.emplace_back(ino, tail);
    return {};
  }));
  for (const auto& [ino, tail] : tails) {
    VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
    if (!inode->is_regular() || inode->staging != 0 || !inode->recipe) {
      return damaged("last bytes of what is no file");
    }
    ingest::Content content;
    content.recipe = *inode->recipe;
    const auto bytes = base::as_bytes(tail);
    content.tail.assign(bytes.begin(), bytes.end());
    inode->size = content.bytes();
    inode->stream = pipeline_.start(std::move(content));
    waiting_tails_.push_back(ino);
  }
  return {};
}

Result<void> OpenVersion::recover_staged() {
  VARVE_TRY_ASSIGN(const auto names, parts_.files->list(files_directory_));
  for (const auto& name : names) {
    // INO-GENERATION; a crash left any file to which no inode refers.
    const auto dash = name.find('-');
    const Ino ino = std::strtoull(name.c_str(), nullptr, 16);
    const std::uint64_t generation =
        dash == std::string::npos ? 0 : std::strtoull(name.c_str() + dash + 1, nullptr, 16);
    const auto path = files_directory_ + "/" + name;
    // Files with other names stay: the folder could have been forged to be another one.
    if (generation >= kGenerationsEnd || staging_path(ino, generation) != path) continue;
    staging_generation_ = std::max(staging_generation_, generation);
    auto inode = tree_.get(ino);
    if (inode && (*inode)->staging == generation && generation != 0) {
      staged_.push_back(ino);
      staged_bytes_ += (*inode)->staged_counted;
    } else {
      VARVE_TRY(parts_.files->remove(path));
    }
  }
  return {};
}

OpenVersion::~OpenVersion() {
  stop();
  if (parts_.space != nullptr) parts_.space->remove(this);
}

void OpenVersion::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (background_.joinable()) background_.join();
  // A handle may keep this object while the next version places its chunks.
  pipeline_.give_up();
}

VersionInfo OpenVersion::info() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

void OpenVersion::rename_to(std::string name) {
  const std::lock_guard lock(mutex_);
  info_.name = std::move(name);
}

Result<bool> OpenVersion::is_empty() {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const auto* root, tree_.get(kRootIno));
  return root->children == 0;
}

// Changes that are not in a checkpoint yet count as made now: they were made since the last one.
Timestamp OpenVersion::changed_at() const {
  const std::lock_guard lock(mutex_);
  return tree_.changed() != 0 ? parts_.clock->now() : tree_.changed_at();
}

std::uint64_t OpenVersion::entries() const {
  const std::lock_guard lock(mutex_);
  return tree_.entries();
}

std::optional<std::uint64_t> OpenVersion::entries_in(io::FileSystem& files,
                                                     const std::string& directory) {
  // LMDB trusts its pages, so they are checked.
  constexpr std::uint64_t kCheckedBytesMax = 64U << 20;
  const std::string overlay = directory + "/overlay";
  const auto bytes = files.tree_bytes(overlay + "/data.mdb");
  if (!bytes || *bytes > kCheckedBytesMax) return std::nullopt;
  if (!meta::check_pages(files, overlay, meta::overlay::kTables)) return std::nullopt;
  meta::EnvOptions options;
  options.tables = meta::overlay::kTables;
  options.map_bytes = kOverlayMapBytes;
  options.read_only = true;
  options.must_exist = true;
  const auto env = meta::Env::open(files, overlay, options);
  if (!env) return std::nullopt;
  return OpenTree::stored_entries(*env);
}

Result<void> OpenVersion::check_writable() {
  if (frozen_) return Error(ErrorCode::kReadOnly, "the version is being sealed", EROFS);
  return wake_up();
}

Result<void> OpenVersion::admit(std::uint64_t bytes) {
  return parts_.space != nullptr ? parts_.space->admit(bytes) : Result<void>();
}

Result<void> OpenVersion::has_room(std::uint64_t bytes) const {
  if (parts_.space == nullptr) return {};
  const auto admitted = parts_.space->admit(bytes);
  parts_.space->scan_again();
  return admitted;
}

Result<void> OpenVersion::admit_record(std::uint64_t bytes) {
  VARVE_TRY(admit(kRecordBytes + bytes));
  record_bytes_ += kRecordBytes + bytes;
  return {};
}

OpenEntry OpenVersion::entry_of(const OpenInode& inode) const {
  return {inode.ino, inode.attributes()};
}

Result<OpenEntry> OpenVersion::get(Ino ino) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const auto* inode, tree_.get(ino));
  return entry_of(*inode);
}

Result<OpenEntry> OpenVersion::set_attributes(Ino ino, const AttributeChange& change) {
  OpenEntry entry;
  {
    std::unique_lock lock(mutex_);
    VARVE_TRY(check_writable());
    VARVE_TRY_ASSIGN(auto* inode, change.size ? content_inode(lock, ino) : tree_.get(ino));
    const Timestamp now = parts_.clock->now();
    if (change.size) {
      if (inode->is_directory()) return Error(ErrorCode::kIsDirectory, "a directory", EISDIR);
      if (!inode->is_regular()) return Error(ErrorCode::kInvalid, "not a regular file", EINVAL);
      VARVE_TRY(truncate(*inode, *change.size));
      inode->mtime = now;
    }
    if (change.mode) inode->mode = (inode->mode & S_IFMT) | (*change.mode & 07777);
    if (change.uid) inode->uid = *change.uid;
    if (change.gid) inode->gid = *change.gid;
    if (change.atime) inode->atime = *change.atime;
    if (change.mtime) inode->mtime = *change.mtime;
    inode->ctime = now;
    tree_.touch(*inode);
    entry = entry_of(*inode);
  }
  VARVE_TRY(relieve());
  return entry;
}

Result<std::string> OpenVersion::read_link(Ino ino) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const auto* inode, tree_.get(ino));
  if ((inode->mode & S_IFMT) != S_IFLNK) {
    return Error(ErrorCode::kInvalid, "not a symlink", EINVAL);
  }
  return inode->symlink_target;
}

Result<Xattrs> OpenVersion::xattrs(Ino ino) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const auto* inode, tree_.get(ino));
  return inode->xattrs;
}

Result<void> OpenVersion::set_xattr(Ino ino, std::string_view name, std::string_view value,
                                    XattrMode mode) {
  if (name.empty() || name.size() > kNameBytesMax) {
    return Error(ErrorCode::kInvalid, "an attribute's name has 1 to 255 bytes", ERANGE);
  }
  const std::lock_guard lock(mutex_);
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
  auto& all = inode->xattrs;
  auto it =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const Xattr& a, std::string_view wanted) { return a.name < wanted; });
  const bool present = it != all.end() && it->name == name;
  VARVE_TRY(admit_record(value.size()));
  if (present && mode == XattrMode::kCreate) {
    return Error(ErrorCode::kExists, "the attribute is set already", EEXIST);
  }
  if (!present && mode == XattrMode::kReplace) {
    return Error(ErrorCode::kNoAttribute, "no such attribute", ENODATA);
  }
  std::size_t total = name.size() + value.size();
  std::size_t names = name.size() + 1;
  for (const auto& xattr : all) {
    if (xattr.name == name) continue;
    total += xattr.name.size() + xattr.value.size();
    names += xattr.name.size() + 1;
  }
  if (!present && names > XATTR_LIST_MAX) {
    return Error(ErrorCode::kTooLarge,
                 "the names of a file's extended attributes are limited to 64 KiB", ENOSPC);
  }
  if (value.size() > kXattrValueBytesMax || total > kXattrTotalBytesMax) {
    return Error(ErrorCode::kTooLarge,
                 "extended attributes are limited to 64 KiB each and "
                 "256 KiB a file",
                 E2BIG);
  }
  if (present) {
    it->value = value;
  } else {
    all.insert(it, Xattr{std::string(name), std::string(value)});
  }
  inode->ctime = parts_.clock->now();
  tree_.touch(*inode);
  return {};
}

Result<void> OpenVersion::remove_xattr(Ino ino, std::string_view name) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
  const auto gone = std::erase_if(inode->xattrs, [&](const Xattr& a) { return a.name == name; });
  if (gone == 0) return Error(ErrorCode::kNoAttribute, "no such attribute", ENODATA);
  inode->ctime = parts_.clock->now();
  tree_.touch(*inode);
  return {};
}

Result<std::unique_ptr<OpenFile>> OpenVersion::open(Ino ino, bool for_writing) {
  const std::lock_guard lock(mutex_);
  if (for_writing) VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
  if (inode->is_directory()) return Error(ErrorCode::kIsDirectory, "a directory", EISDIR);
  if (!inode->is_regular()) return Error(ErrorCode::kInvalid, "not a regular file", EINVAL);
  ++inode->handles;
  if (for_writing) {
    ++inode->writers;
    ++writers_;
  }
  return std::unique_ptr<OpenFile>(
      std::make_unique<OpenVersionFile>(shared_from_this(), ino, for_writing));
}

}  // namespace varve::version
