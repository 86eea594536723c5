// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "copy/change.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::copy {

/// Lists the changes between two sealed versions of a series, or all of one, in tree order.
///
/// Directories whose content is the same object in both versions are not entered, and files that
/// share their recipe are not looked at. Memory grows with the depth of the tree, and with the
/// hard-linked files that changed.
class ChangeLister {
 public:
  /// Takes the next change. The rank of a file's change names the file in the newer version.
  using Sink = std::function<Result<void>(Change&&)>;
  /// Decides about a file that cannot be read: true leaves it out, false ends the listing.
  using Unreadable = std::function<bool(const std::string& path, const Error& error)>;

  /// `before` may be null. `left_out` has the ranks of the files that are left out: the listing
  /// adds those for which `unreadable` returns true. The sink may add others.
  /// Lifetime: all arguments outlive the object.
  ChangeLister(VersionReader& now, VersionReader* before, std::set<Rank>& left_out, Sink sink,
               Unreadable unreadable)
      : now_(now),
        before_(before),
        left_out_(left_out),
        sink_(std::move(sink)),
        unreadable_(std::move(unreadable)) {}

  /// Lists everything but the removals of the files that are left out.
  /// Errors: those of the versions and of the sink.
  [[nodiscard]] Result<void> run();
  /// Lists these removals, of all names of such files. Call it after run(), once no more files can
  /// be left out.
  /// Errors: as run().
  [[nodiscard]] Result<void> pass_left_out();

 private:
  struct Entry {
    std::string name;
    SealedEntry entry;
  };
  /// The entries of one directory, a few at a time.
  class Cursor {
   public:
    Cursor() = default;
    Cursor(VersionReader* version, Rank directory) : version_(version), directory_(directory) {}
    /// Returns the present entry, or null at the end.
    [[nodiscard]] Result<const Entry*> peek();
    void take() { ++next_; }

   private:
    VersionReader* version_ = nullptr;
    Rank directory_ = 0;
    std::uint64_t position_ = 0;
    std::vector<Entry> entries_;
    std::size_t next_ = 0;
    bool ended_ = false;
  };
  struct Frame {
    SealedEntry directory;
    Cursor now;
    Cursor before;
  };

  [[nodiscard]] Result<void> step();
  [[nodiscard]] Result<void> add(const Entry& entry);
  [[nodiscard]] Result<void> add_file(const Entry& entry);
  [[nodiscard]] Result<void> compare(const Entry& entry, const Entry& old);
  [[nodiscard]] Result<void> compare_directories(const Entry& entry, const Entry& old);
  [[nodiscard]] Result<void> compare_contents(const Entry& entry, const Entry& old);
  [[nodiscard]] Result<void> push(const Entry& entry, std::optional<Rank> before);
  [[nodiscard]] Result<void> pass_range(const Entry& entry, const FileRange& range);
  [[nodiscard]] Result<void> pass_data(const Entry& entry, const FileRange& range);
  [[nodiscard]] Result<void> pass_attributes(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> pass(Change&& change);
  [[nodiscard]] Result<void> readable(const Entry& entry, Result<void> passed);
  [[nodiscard]] Result<void> pass_links();
  [[nodiscard]] Result<void> pass_directories(const std::set<Rank>& directories);

  [[nodiscard]] std::string path_here(std::string_view name) const;

  VersionReader& now_;
  VersionReader* const before_;
  std::set<Rank>& left_out_;
  const Sink sink_;
  const Unreadable unreadable_;
  std::vector<Frame> frames_;
  std::vector<std::string> here_;         // Names of the directories of `frames_` but the root.
  std::vector<std::string> there_;        // The directory in which the last passed change was.
  std::map<std::uint64_t, Rank> remade_;  // By link group: the name that is made as a file.
};

/// Returns whether an error says that stored bytes are damaged, not that a version is gone.
[[nodiscard]] bool is_damage(const Error& error);

/// Returns whether an error says that a version or series was deleted.
[[nodiscard]] bool is_gone(const Error& error);

/// Returns the path of an entry of a sealed version.
[[nodiscard]] Result<std::string> path_of(VersionReader& version, Rank rank);

}  // namespace varve::copy
