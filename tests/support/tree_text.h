// SPDX-License-Identifier: Apache-2.0
// Describes a sealed version as text, to compare versions of two repositories.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <string>

#include "support/temp_repository.h"
#include "varve/browse.h"

namespace varve::test {

inline void append_tree(VersionReader& version, Rank directory, const std::string& path,
                        std::map<std::uint64_t, std::string>& links, std::string& out) {
  must(version.list(
      directory, 0, [&](std::uint64_t, std::string_view name, const SealedEntry& entry) {
        const auto& a = entry.attributes;
        const std::string here = path + "/" + std::string(name);
        out += fmt::format("{} {:o} {} {} {} {}.{}", here, a.mode, a.uid, a.gid, a.rdev,
                           a.mtime.seconds, a.mtime.nanoseconds);
        if (!S_ISDIR(a.mode)) out += fmt::format(" n{}", a.nlink);
        if (entry.link_group != 0) {
          out += " =" + links.emplace(entry.link_group, here).first->second;
        }
        for (const Xattr& xattr : must(version.xattrs(entry.rank))) {
          out += fmt::format(" {}={}", xattr.name, std::hash<std::string>()(xattr.value));
        }
        if (S_ISLNK(a.mode)) out += " -> " + must(version.read_link(entry.rank));
        if (S_ISREG(a.mode)) {
          const auto file = must(version.open(entry.rank));
          out += fmt::format(" {} {} {}", a.size, a.data_bytes,
                             std::hash<std::string>()(read_all(*file, a.size)));
        }
        out += "\n";
        if (S_ISDIR(a.mode)) append_tree(version, entry.rank, here, links, out);
        return true;
      }));
}

/// Returns one line for each entry, in tree order: path, attributes, links, content.
inline std::string tree_text(VersionReader& version) {
  std::string out;
  const auto root = must(version.get(0)).attributes;
  out += fmt::format("/ {:o} {} {} {}.{}", root.mode, root.uid, root.gid, root.mtime.seconds,
                     root.mtime.nanoseconds);
  for (const Xattr& xattr : must(version.xattrs(0))) out += " " + xattr.name + "=" + xattr.value;
  out += "\n";
  std::map<std::uint64_t, std::string> links;
  append_tree(version, 0, "", links, out);
  return out;
}

}  // namespace varve::test
