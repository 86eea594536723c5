// SPDX-License-Identifier: Apache-2.0
#include "transfer/folded_names.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "transfer/source_listing.h"

namespace varve::transfer {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Returns whether the directory distinguishes upper and lower case, tested by the name with its
/// first letter in the opposite case. A name without an ASCII letter, or an existing entry of the
/// changed name, proves nothing.
bool tells_case_apart(int directory_fd, std::string name) {
  constexpr char kCaseBit = 0x20;
  const auto letter = std::ranges::find_if(name, is_letter);
  if (letter == name.end()) return false;
  *letter = static_cast<char>(*letter ^ kCaseBit);
  struct stat status {};
  return ::fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 &&
         errno == ENOENT;
}

}  // namespace

Result<std::optional<std::string>> FoldedNames::other_name(int directory_fd,
                                                           const std::string& name) {
  if (is_exact_ || has(name)) return std::optional<std::string>();
  is_exact_ = tells_case_apart(directory_fd, name);
  if (is_exact_) return std::optional<std::string>();
  if (auto found = like(name)) return found;
  // The restore may have made the entry after the last listing.
  VARVE_TRY_ASSIGN(names_, list_names(directory_fd));
  if (has(name)) return std::optional<std::string>();
  if (auto found = like(name)) return found;
  return same_inode(directory_fd, name);
}

std::optional<std::string> FoldedNames::take(const std::string& other, const std::string& name) {
  const auto [taken, is_first] = taken_.try_emplace(other, name);
  if (is_first || taken->second == name) return std::nullopt;
  return taken->second;
}

bool FoldedNames::has(const std::string& name) const {
  return std::ranges::binary_search(names_, name);
}

/// Returns the listed name that differs from `name` in the case of ASCII letters only.
std::optional<std::string> FoldedNames::like(const std::string& name) const {
  const auto found = std::ranges::find_if(
      names_, [&](const std::string& one) { return ::strcasecmp(one.c_str(), name.c_str()) == 0; });
  return found == names_.end() ? std::nullopt : std::optional(*found);
}

/// Returns the listed name of the same inode, for letters known only to the file system.
std::optional<std::string> FoldedNames::same_inode(int directory_fd,
                                                   const std::string& name) const {
  struct stat wanted {};
  if (::fstatat(directory_fd, name.c_str(), &wanted, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  const auto found = std::ranges::find_if(names_, [&](const std::string& one) {
    struct stat status {};
    return ::fstatat(directory_fd, one.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_ino == wanted.st_ino && status.st_dev == wanted.st_dev;
  });
  return found == names_.end() ? std::nullopt : std::optional(*found);
}

}  // namespace varve::transfer
