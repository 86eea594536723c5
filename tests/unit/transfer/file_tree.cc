// SPDX-License-Identifier: Apache-2.0
#include "file_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "support/file_content.h"

namespace varve::testing {
namespace fs = std::filesystem;
namespace {

std::string describe_xattrs(const std::string& path) {
  std::string names(65536, '\0');
  const ssize_t size = ::llistxattr(path.c_str(), names.data(), names.size());
  std::set<std::string> lines;
  for (std::size_t at = 0; size > 0 && at < static_cast<std::size_t>(size);) {
    const std::string name = names.c_str() + at;
    at += name.size() + 1;
    std::string value(65536, '\0');
    const ssize_t n = ::lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
    value.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    lines.insert(fmt::format(" {}={:x}", name, std::hash<std::string>()(value)));
  }
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

std::string describe_holes(const std::string& path, off_t size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string out;
  for (off_t at = 0; at < size;) {
    const off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0) break;
    const off_t hole = ::lseek(fd, data, SEEK_HOLE);
    out += fmt::format(" data {}-{}", data, hole);
    at = hole;
  }
  ::close(fd);
  return out;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  // Not /tmp: it may be a tmpfs, which has no user xattrs on older kernels.
  path_ = (fs::current_path() / "varve-transfer-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) std::abort();
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void write_file(const std::string& path, std::string_view data) {
  std::ofstream out(path, std::ios::binary);
  out.write(data.data(), static_cast<std::streamsize>(data.size()));
  ASSERT_TRUE(out.flush()) << path;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return varve::test::rest_of(in);
}

std::map<std::string, std::string> describe_tree(const std::string& directory) {
  std::map<std::string, std::string> lines;
  std::map<ino_t, std::size_t> links;
  const std::function<void(const std::string&)> visit = [&](const std::string& below) {
    const std::string path = directory + "/" + below;
    struct stat s {};
    ASSERT_EQ(::lstat(path.c_str(), &s), 0) << path;
    std::string line = fmt::format("mode {:o} owner {}:{} mtime {}.{:09}", s.st_mode, s.st_uid,
                                   s.st_gid, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    line += describe_xattrs(path);
    if (S_ISREG(s.st_mode)) {
      line +=
          fmt::format(" size {} hash {:x}", s.st_size, std::hash<std::string>()(read_file(path)));
      line += describe_holes(path, s.st_size);
    }
    if (S_ISLNK(s.st_mode)) line += " -> " + fs::read_symlink(path).string();
    if (S_ISCHR(s.st_mode) || S_ISBLK(s.st_mode)) line += fmt::format(" rdev {}", s.st_rdev);
    if (!S_ISDIR(s.st_mode) && s.st_nlink > 1) {
      line += fmt::format(" links {} group {}", s.st_nlink,
                          links.emplace(s.st_ino, links.size()).first->second);
    }
    lines[below] = line;
    if (!S_ISDIR(s.st_mode)) return;
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path)) {
      names.insert(entry.path().filename().string());
    }
    for (const std::string& name : names) visit(below.empty() ? name : below + "/" + name);
  };
  visit("");
  return lines;
}

}  // namespace varve::testing
