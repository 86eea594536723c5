// SPDX-License-Identifier: Apache-2.0
// Stores the members of an archive in the order of the archive. A member name that is invalid in a
// version, or leads out of the version, ends the import: the archive is hostile or damaged, and
// half an archive would be no backup. The version's tree resolves no symlinks, so no member can
// leave the tree.
#include "transfer/archive_importer.h"

#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "transfer/archive_input.h"
#include "transfer/entry_lister.h"
#include "transfer/libarchive.h"
#include "transfer/member_metadata.h"
#include "transfer/problem_list.h"
#include "transfer/version_names.h"

namespace varve::transfer {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{1} << 20;
constexpr std::string_view kOwnXattrs = "user.varve.";

/// Sets the C locale in the calling thread, regardless of the user's locale. In a UTF-8 locale,
/// libarchive composes the characters of pax names, so that two names may become equal. In the C
/// locale, libarchive cannot convert a name with bytes above 0x7f, and passes the bytes of the
/// archive on.
class CLocale {
 public:
  CLocale()
      : locale_(::newlocale(LC_CTYPE_MASK, "C", nullptr)),
        before_(::uselocale(locale_ == nullptr ? LC_GLOBAL_LOCALE : locale_)) {}
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;
  ~CLocale() {
    ::uselocale(before_);
    if (locale_ != nullptr) ::freelocale(locale_);
  }

 private:
  locale_t locale_;
  locale_t before_;
};

/// Returns the components of a member's name, without empty components and ".".
/// Errors: kInvalid for ".." and for impossible file names.
Result<std::vector<std::string>> components_of(std::string_view path) {
  std::vector<std::string> components;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    const std::string_view first = path.substr(0, end);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    if (first.empty() || first == ".") continue;
    if (!safe_name(first)) {
      return Error(ErrorCode::kInvalid, "a version cannot have this name");
    }
    components.emplace_back(first);
  }
  if (components.size() > kDepthMax) {
    return Error(ErrorCode::kInvalid, "too many directories are nested");
  }
  return components;
}

class ArchiveImporter {
 public:
  ArchiveImporter(VersionWriter& version,
                  const std::function<bool(const TransferProgress&)>& progress)
      : version_(version), progress_(progress) {}

  Result<TransferReport> run(int fd) {
    const CLocale locale;
    const std::function<bool()> goes_on = [this] { return !progress_ || progress_(done_); };
    VARVE_TRY_ASSIGN(const auto input, ArchiveInput::open(fd, goes_on));
    while (true) {
      VARVE_TRY_ASSIGN(archive_entry* const entry, input->next());
      if (entry == nullptr) break;
      const std::string path = input->name();
      if (!input->warning().empty()) problems_.add(path, input->warning());
      path_ = path;
      auto stored = store(entry, path, *input);
      if (!stored) return std::move(stored).error().with_context(path.substr(0, kPathShownMax));
      ++done_.files_done;
    }
    VARVE_TRY(finish_directories());
    report_.entries = entries_;
    report_.bytes = done_.bytes_done;
    report_.problems = problems_.take();
    return std::move(report_);
  }

  Result<TransferReport> store_stream(const std::string& path, int fd) {
    VARVE_TRY_ASSIGN(const auto components, components_of(path));
    VARVE_TRY_ASSIGN(const Ino directory, parent_of(components));
    NewFile made;
    made.mode = S_IFREG | 0600;
    made.uid = ::geteuid();
    made.gid = ::getegid();
    VARVE_TRY_ASSIGN(const OpenEntry file, make(directory, components.back(), made));
    VARVE_TRY_ASSIGN(const auto open, version_.open(file.ino, true));
    std::vector<std::byte> buffer(kStreamBytes);
    const std::function<bool()> goes_on = [this] { return !progress_ || progress_(done_); };
    while (true) {
      VARVE_TRY_ASSIGN(const std::size_t got, read_stream(fd, buffer, goes_on));
      if (got == 0) break;
      VARVE_TRY(open->write(done_.bytes_done, std::span(buffer).first(got)));
      done_.bytes_done += got;
    }
    VARVE_TRY(open->flush());
    report_.entries = entries_;
    report_.bytes = done_.bytes_done;
    return std::move(report_);
  }

 private:
  static constexpr std::size_t kPathShownMax = 4096;

  Result<void> store(archive_entry* entry, const std::string& path, ArchiveInput& input) {
    VARVE_TRY_ASSIGN(const auto components, components_of(path));
    const char* link = libarchive().archive_entry_hardlink(entry);
    if (link != nullptr) return store_link(components, link, entry, input);
    VARVE_TRY_ASSIGN(MemberMetadata member, metadata_of(entry, path, problems_));
    const std::uint32_t type = member.file.mode & S_IFMT;
    if (components.empty()) {
      if (type != S_IFDIR)
        return Error(ErrorCode::kInvalid, "the archive has a file without a name");
      std::erase_if(member.file.xattrs,
                    [](const Xattr& xattr) { return xattr.name.starts_with(kOwnXattrs); });
      return set_directory(kRootIno, member);
    }
    if (type == 0) return Error(ErrorCode::kInvalid, "the archive has an entry without a type");
    VARVE_TRY_ASSIGN(const Ino directory, parent_of(components));
    if (type == S_IFDIR) return store_directory(directory, components.back(), member);
    if (type == S_IFLNK) {
      const char* target = libarchive().archive_entry_symlink(entry);
      if (target == nullptr) return Error(ErrorCode::kInvalid, "the symlink has no target");
      member.file.symlink_target = target;
    }
    const Xattrs xattrs = std::exchange(member.file.xattrs, {});
    VARVE_TRY_ASSIGN(const OpenEntry made, make(directory, components.back(), member.file));
    if (type == S_IFREG) VARVE_TRY(store_data(made.ino, entry, input));
    return set_metadata(made.ino, member, xattrs);
  }

  /// Returns the directory of a path's last component. Creates directories missing from the
  /// archive.
  Result<Ino> parent_of(const std::vector<std::string>& components) {
    Ino directory = kRootIno;
    for (std::size_t i = 0; i + 1 < components.size(); ++i) {
      auto found = version_.lookup(directory, components[i]);
      if (!found && found.error().code() == ErrorCode::kNotFound) {
        NewFile made;
        made.mode = S_IFDIR | 0755;
        made.uid = ::geteuid();
        made.gid = ::getegid();
        found = version_.create(directory, components[i], made);
        ++entries_;
      }
      if (!found) return std::move(found).error();
      if (!S_ISDIR(found->attributes.mode)) {
        return Error(ErrorCode::kInvalid, components[i] +
                                              " is no directory in the archive, so no member can "
                                              "be in it; unpack the archive and store the result");
      }
      directory = found->ino;
    }
    return directory;
  }

  /// Creates `name`, in place of an earlier member of the same name. A non-empty directory stays,
  /// as with tar(1), and is an error.
  Result<OpenEntry> make(Ino directory, const std::string& name, const NewFile& file) {
    auto made = version_.create(directory, name, file);
    if (!made && made.error().code() == ErrorCode::kExists) {
      VARVE_TRY(remove(directory, name));
      made = version_.create(directory, name, file);
    }
    if (made) ++entries_;
    return made;
  }

  Result<void> remove(Ino directory, const std::string& name) {
    VARVE_TRY_ASSIGN(const OpenEntry found, version_.lookup(directory, name));
    const bool is_directory = S_ISDIR(found.attributes.mode);
    auto removed = is_directory ? version_.remove_directory(directory, name)
                                : version_.unlink(directory, name);
    if (!removed && removed.error().code() == ErrorCode::kNotEmpty) {
      return Error(ErrorCode::kInvalid, "the archive has a directory of the same name");
    }
    VARVE_TRY(removed);
    if (is_directory) directories_.erase(found.ino);
    --entries_;
    return {};
  }

  Result<void> store_directory(Ino parent, const std::string& name, const MemberMetadata& member) {
    const auto found = version_.lookup(parent, name);
    if (found && S_ISDIR(found->attributes.mode)) return set_directory(found->ino, member);
    NewFile file = member.file;
    file.xattrs.clear();
    VARVE_TRY_ASSIGN(const OpenEntry made, make(parent, name, file));
    return set_directory(made.ino, member);
  }

  /// Sets the metadata of a directory. finish_directories() sets the mtime again, because new
  /// members change the mtime.
  Result<void> set_directory(Ino ino, const MemberMetadata& member) {
    directories_[ino] = member.mtime;
    return set_metadata(ino, member, member.file.xattrs);
  }

  Result<void> finish_directories() {
    for (const auto& [ino, mtime] : directories_) {
      AttributeChange change;
      change.mtime = mtime;
      VARVE_TRY(version_.set_attributes(ino, change));
    }
    return {};
  }

  Result<void> set_metadata(Ino ino, const MemberMetadata& member, const Xattrs& xattrs) {
    for (const Xattr& xattr : xattrs) {
      auto set = version_.set_xattr(ino, xattr.name, xattr.value, XattrMode::kAny);
      if (set) continue;
      if (set.error().code() != ErrorCode::kAttributeTooLarge &&
          set.error().code() != ErrorCode::kInvalid) {
        return set;
      }
      problems_.add_shared("attribute " + xattr.name + " not stored: " + set.error().message(),
                           path_);
    }
    AttributeChange change;
    change.mode = member.file.mode & 07777U;
    change.uid = member.file.uid;
    change.gid = member.file.gid;
    change.mtime = member.mtime;
    VARVE_TRY(version_.set_attributes(ino, change));
    return {};
  }

  Result<void> store_data(Ino ino, archive_entry* entry, ArchiveInput& input) {
    VARVE_TRY_ASSIGN(const auto file, version_.open(ino, true));
    std::uint64_t end = 0;
    while (true) {
      VARVE_TRY_ASSIGN(const auto block, input.next_block());
      if (!block) break;
      if (block->bytes.empty()) continue;
      if (block->offset < end) {
        return Error(ErrorCode::kInvalid, "the archive's data overlaps; it is damaged");
      }
      VARVE_TRY(file->write(block->offset, block->bytes));
      end = block->offset + block->bytes.size();
      done_.bytes_done += block->bytes.size();
      if (progress_ && !progress_(done_)) return Error(ErrorCode::kInterrupted, "interrupted");
    }
    VARVE_TRY(file->flush());
    if (libarchive().archive_entry_size_is_set(entry) == 0) return {};
    const auto size = static_cast<std::uint64_t>(libarchive().archive_entry_size(entry));
    if (libarchive().archive_entry_size(entry) < 0 || size < end) {
      return Error(ErrorCode::kInvalid, "the member has more data than its size");
    }
    if (size == end) return {};
    // A sparse member ends in a hole. libarchive reports missing data as an error.
    AttributeChange change;
    change.size = size;
    VARVE_TRY(version_.set_attributes(ino, change));
    return {};
  }

  Result<void> store_link(const std::vector<std::string>& components, const std::string& target,
                          archive_entry* entry, ArchiveInput& input) {
    const Error nothing(ErrorCode::kInvalid, "it is a hard link to \"" +
                                                 target.substr(0, kPathShownMax) +
                                                 "\", which is no file before it in the archive");
    const auto wanted = components_of(target);
    if (!wanted) return nothing;
    if (components.empty()) return Error(ErrorCode::kInvalid, "a hard link has no name");
    Ino ino = kRootIno;
    for (const std::string& component : *wanted) {
      const auto found = version_.lookup(ino, component);
      if (!found) return nothing;
      ino = found->ino;
    }
    VARVE_TRY_ASSIGN(const OpenEntry file, version_.get(ino));
    if (S_ISDIR(file.attributes.mode)) return nothing;
    if (components == *wanted) return {};
    VARVE_TRY_ASSIGN(const Ino directory, parent_of(components));
    auto linked = version_.link(ino, directory, components.back());
    if (!linked && linked.error().code() == ErrorCode::kExists) {
      const auto present = version_.lookup(directory, components.back());
      if (!present || present->ino != ino) {
        VARVE_TRY(remove(directory, components.back()));
        linked = version_.link(ino, directory, components.back());
        ++entries_;
      } else {
        linked = present;
      }
    } else if (linked) {
      ++entries_;
    }
    if (!linked) return std::move(linked).error();
    // A cpio archive may have the data at the last of a file's names, or at each name.
    const bool has_data = S_ISREG(file.attributes.mode) &&
                          libarchive().archive_entry_size_is_set(entry) != 0 &&
                          libarchive().archive_entry_size(entry) > 0;
    if (!has_data) return {};
    AttributeChange empty;
    empty.size = 0;
    VARVE_TRY(version_.set_attributes(ino, empty));
    VARVE_TRY(store_data(ino, entry, input));
    VARVE_TRY_ASSIGN(const MemberMetadata member, metadata_of(entry, target, problems_));
    return set_metadata(ino, member, {});
  }

  VersionWriter& version_;
  const std::function<bool(const TransferProgress&)>& progress_;
  ProblemList problems_;
  std::string path_;  // Path of the present member, for messages.
  TransferProgress done_;
  TransferReport report_;
  std::uint64_t entries_ = 0;
  std::map<Ino, Timestamp> directories_;
};

}  // namespace

Result<void> check_stream_path(const std::string& path) {
  const auto components = components_of(path);
  const bool is_inside = components && !components->empty();
  if (is_inside && !path.starts_with('/') && !path.ends_with('/')) return {};
  return Error(ErrorCode::kInvalid, "\"" + path +
                                        "\" cannot be the path of a file in a version; give a name "
                                        "such as dump.sql");
}

Result<TransferReport> import_archive(
    VersionWriter& version, int fd, const std::function<bool(const TransferProgress&)>& progress) {
  return ArchiveImporter(version, progress).run(fd);
}

Result<TransferReport> import_stream(VersionWriter& version, const std::string& path, int fd,
                                     const std::function<bool(const TransferProgress&)>& progress) {
  VARVE_TRY(check_stream_path(path));
  return ArchiveImporter(version, progress).store_stream(path, fd);
}

}  // namespace varve::transfer
