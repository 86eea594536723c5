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

/// Lists the changes between two sealed versions of a series, or the whole content of a version, in
/// tree order.
///
/// The lister does not enter directories whose content is the same object in both versions, and
/// does not examine files sharing a recipe. Memory grows with the depth of the tree, and with the
/// number of changed hard-linked files.
class ChangeLister {
 public:
  /// Takes the next change. The rank of a file's change names the file in the newer version.
  using Sink = std::function<Result<void>(Change&&)>;
  /// Decides about an unreadable file: true leaves the file out, false ends the listing.
  using Unreadable = std::function<bool(const std::string& path, const Error& error)>;

  /// `before` may be null. `left_out` has the ranks of left-out files: the listing adds the files
  /// for which `unreadable` returns true. The sink may add more files.
  /// Lifetime: all arguments outlive the object.
  ChangeLister(VersionReader& now, VersionReader* before, std::set<Rank>& left_out, Sink sink,
               Unreadable unreadable)
      : now_(now),
        before_(before),
        left_out_(left_out),
        sink_(std::move(sink)),
        unreadable_(std::move(unreadable)) {}

  /// Lists all changes except the removals of left-out files.
  /// Errors: the errors of the versions and of the sink.
  [[nodiscard]] Result<void> run();
  /// Lists the removals of all names of left-out files. Must be called after run(), once no more
  /// files can be left out.
  /// Errors: as run().
  [[nodiscard]] Result<void> pass_left_out();

 private:
  struct Entry {
    std::string name;
    SealedEntry entry;
  };
  /// The entries of a directory, loaded a few at a time.
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
  std::vector<std::string> there_;        // Directory of the last passed change.
  std::map<std::uint64_t, Rank> remade_;  // By link group: the name made as a file.
};

/// Returns whether an error means damaged stored bytes, not a deleted version.
[[nodiscard]] bool is_damage(const Error& error);

/// Returns whether an error means a deleted version or series.
[[nodiscard]] bool is_gone(const Error& error);

/// Returns the path of an entry of a sealed version.
[[nodiscard]] Result<std::string> path_of(VersionReader& version, Rank rank);

}  // namespace varve::copy
