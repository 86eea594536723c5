// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>

namespace varve::fsx {

namespace {
constexpr std::uint64_t kUndoBytesMax = 48U << 20;
constexpr std::size_t kLogLines = 3000;
constexpr std::size_t kLogLinesShown = 40;
}  // namespace

void Driver::note(const std::string& what) {
  log_.push_back(std::to_string(operation_) + " " + what);
  if (log_.size() > kLogLines) log_.pop_front();
  ++done_[what.substr(0, what.find(' '))];
}

void Driver::stop(const std::string& message, FileId file) {
  std::vector<std::string> lines;
  const std::string mark = "#" + std::to_string(file) + " ";
  for (auto it = log_.rbegin(); it != log_.rend() && lines.size() < kLogLinesShown; ++it) {
    if (file == 0 || it->find(mark) != std::string::npos || it->find(" === ") != std::string::npos)
      lines.push_back(*it);
  }
  std::reverse(lines.begin(), lines.end());
  for (const auto& line : lines) std::cout << line << "\n";
  fail("seed " + std::to_string(seed_) + ", operation " + std::to_string(operation_) + ", file #" +
       std::to_string(file) + ": " + message);
}

bool Driver::excused(const std::string& what, FileId file) {
  const int error = errno;
  if (mount_.is_killed()) return true;
  stop(what + ": " + std::strerror(error), file);
}

Bytes Driver::read_file(const std::string& path_of_file) {
  const int fd = ::open(path_of_file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0) stop(path_of_file + ": " + std::strerror(errno));
  Bytes bytes(static_cast<std::size_t>(status.st_size));
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto got = ::pread(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0) stop(path_of_file + ": read: " + std::strerror(errno));
    if (got == 0) stop(path_of_file + " ends before its size");
    at += static_cast<std::size_t>(got);
  }
  ::close(fd);
  return bytes;
}

// ---- Versions. ----

void Driver::begin_version() {
  const std::string series = mount_.point() + "/s";
  ::mkdir(series.c_str(), 0755);
  top_ = series + "/v" + std::to_string(++version_) + ".partial";
  note("=== version " + std::to_string(version_));
  if (::mkdir(top_.c_str(), 0755) != 0) stop("mkdir " + top_ + ": " + std::strerror(errno));
  for (const char* folder : kFolders) {
    if (*folder != '\0' && ::mkdir(path(folder).c_str(), 0755) != 0) stop("mkdir in the version");
  }
  tree_ = TreeModel();
  if (!sealed_.empty()) {
    for (const auto& [name, bytes] : sealed_.back().files) clone_from_last(name);
  }
  const int fd = ::open(top_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || ::fsync(fd) != 0) stop("fsync of a version's root");
  ::close(fd);
  tree_.all_is_durable();
}

// Clones the files of the previous version, by link(2) where the mount offers it.
void Driver::clone_from_last(const std::string& name) {
  const SealedModel& last = sealed_.back();
  const std::string from = mount_.point() + "/s/" + last.name + "/" + name;
  const Bytes& bytes = *last.files.at(name);
  struct stat status {};
  if (!unsupported_.contains("link-sealed")) {
    if (::link(from.c_str(), path(name).c_str()) == 0) {
      if (::stat(path(name).c_str(), &status) != 0) stop("stat of a clone");
      for (auto& [id, file] : tree_.files()) {
        if (file.st_ino == status.st_ino) {  // Another name of the same file.
          tree_.set_name(name, id);
          return;
        }
      }
      const FileId id = tree_.create(name);
      tree_.file(id).st_ino = status.st_ino;
      tree_.file(id).content.take_over(bytes);
      ++done_["link-sealed"];
      return;
    }
    if (errno != EXDEV && errno != EROFS && errno != EOPNOTSUPP && errno != EPERM) {
      stop("link from a sealed version: " + std::string(std::strerror(errno)));
    }
    unsupported_["link-sealed"] = static_cast<std::uint64_t>(errno);
  }
  const int source = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0 || !open_file(name, O_WRONLY | O_CREAT)) stop("opening for a copy");
  if (!copy(source, 0, handles_.back(), 0, bytes.size(), bytes)) stop("copy from a sealed version");
  ::close(source);
  close_handle(handles_.size() - 1);
}

void Driver::end_version() {
  close_all();
  SealedModel sealed;
  sealed.name = "v" + std::to_string(version_);
  for (const auto& [name, id] : tree_.names()) {
    sealed.files[name] = std::make_shared<const Bytes>(tree_.file(id).content.bytes());
  }
  const std::string target = mount_.point() + "/s/" + sealed.name;
  // The kernel reports a close(2) to the daemon only after it has returned.
  for (int tries = 0;
       ::renameat2(AT_FDCWD, top_.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) != 0;) {
    if (errno != EBUSY || ++tries > 200) stop("seal: " + std::string(std::strerror(errno)));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    note("busy");
  }
  verify_sealed(sealed);
  mount_.stop();
  mount_.start();
  verify_sealed(sealed);
  sealed_.push_back(std::move(sealed));
  // Of the versions before the last one, the model keeps only the names. Their bytes are compared
  // now.
  if (sealed_.size() > 2) {
    verify_sealed(sealed_[sealed_.size() - 3]);
    sealed_[sealed_.size() - 3].files.clear();
  }
}

void Driver::verify_sealed(const SealedModel& sealed) {
  const std::string folder = mount_.point() + "/s/" + sealed.name + "/";
  for (const auto& [name, bytes] : sealed.files) {
    if (read_file(folder + name) != *bytes) stop("sealed " + sealed.name + "/" + name + " differs");
  }
}

// ---- Restarts. ----

void Driver::close_all() {
  while (!handles_.empty()) close_handle(handles_.size() - 1);
}

void Driver::restart_clean() {
  note("=== restart");
  close_all();
  mount_.stop();
  mount_.start();
  ++restarts_;
  std::vector<std::string> names;
  for (const auto& [name, id] : tree_.names()) names.push_back(name);
  for (const auto& name : names) {
    const FileId id = tree_.find(name);
    struct stat status {};
    if (::stat(path(name).c_str(), &status) != 0) stop(name + " is gone after a remount", id);
    if (status.st_ino != tree_.file(id).st_ino) stop(name + " has another inode number", id);
    if (read_file(path(name)) != tree_.file(id).content.bytes()) {
      stop(name + " differs after a remount", id);
    }
  }
  tree_.all_is_durable();
}

void Driver::restart_killed(bool during_an_operation) {
  note("=== kill");
  if (!during_an_operation) mount_.kill();
  for (const Handle& handle : handles_) ::close(handle.fd);
  handles_.clear();
  mount_.clean_up();
  mount_.start();
  ++kills_;
  take_over_after_crash();
}

void Driver::take_over_after_crash() {
  std::map<std::string, std::uint64_t> found;
  std::map<std::string, struct stat> states;
  for (const std::string folder : kFolders) {
    DIR* directory = ::opendir(path(folder).c_str());
    if (directory == nullptr) stop("after a kill: " + folder + ": " + std::strerror(errno));
    while (const dirent* entry = ::readdir(directory)) {
      const std::string name = folder + entry->d_name;
      struct stat status {};
      if (::lstat(path(name).c_str(), &status) != 0) stop("after a kill: lstat " + name);
      if (!S_ISREG(status.st_mode)) continue;
      found[name] = status.st_ino;
      states[name] = status;
    }
    ::closedir(directory);
  }
  // A file that was being created has not reported its number.
  for (auto& [id, file] : tree_.files()) {
    if (file.st_ino != 0) continue;
    for (const auto& [name, other] : tree_.names()) {
      if (other == id && found.contains(name)) file.st_ino = found[name];
    }
  }
  if (const auto wrong = tree_.take_over_names(found); !wrong.empty())
    stop("after a kill: " + wrong);
  for (const auto& [name, status] : states) {
    const FileId id = tree_.find(name);
    File& file = tree_.file(id);
    if (status.st_nlink != static_cast<nlink_t>(file.names)) {
      stop(name + " has nlink " + std::to_string(status.st_nlink) + " and " +
               std::to_string(file.names) + " names",
           id);
    }
    Bytes bytes = read_file(path(name));
    if (const auto wrong = file.content.explain_after_crash(bytes); !wrong.empty()) {
      stop("after a kill: " + name + ": " + wrong, id);
    }
    file.content.take_over(std::move(bytes));
  }
}

// ---- The course. ----

void Driver::operate() {
  struct Weighted {
    bool (Driver::*operation)();
    unsigned weight;
  };
  static constexpr std::array kOperations = {
      Weighted{&Driver::op_open, 14},      Weighted{&Driver::op_close, 8},
      Weighted{&Driver::op_write, 40},     Weighted{&Driver::op_read, 20},
      Weighted{&Driver::op_read_all, 3},   Weighted{&Driver::op_truncate, 8},
      Weighted{&Driver::op_allocate, 10},  Weighted{&Driver::op_map, 6},
      Weighted{&Driver::op_copy_range, 5}, Weighted{&Driver::op_copy_from_sealed, 2},
      Weighted{&Driver::op_seek, 4},       Weighted{&Driver::op_fsync, 2},
      Weighted{&Driver::op_rename, 4},     Weighted{&Driver::op_fsync_directory, 1},
      Weighted{&Driver::op_link, 2},       Weighted{&Driver::op_unlink, 2},
      Weighted{&Driver::op_status, 6}};
  unsigned sum = 0;
  for (const auto& entry : kOperations) sum += entry.weight;
  auto choice = below(sum);
  const auto* chosen = kOperations.data();
  while (choice >= chosen->weight) choice -= (chosen++)->weight;
  if (!(this->*chosen->operation)()) restart_killed(true);
  for (auto& [id, file] : tree_.files()) {
    if (file.content.undo_bytes() > kUndoBytesMax) restart_clean();
  }
}

void Driver::run(std::uint64_t operations) {
  const std::uint64_t per_version = std::clamp<std::uint64_t>(operations / 4, 2000, 20000);
  std::uint64_t next_restart = 400 + below(1500);
  std::thread killer;
  begin_version();
  while (operation_ < operations) {
    ++operation_;
    operate();
    if (operation_ % per_version == 0 && operation_ < operations) {
      if (killer.joinable()) {
        killer.join();
        if (mount_.is_killed()) restart_killed(true);
      }
      end_version();
      begin_version();
    }
    if (operation_ < next_restart) continue;
    next_restart = operation_ + 400 + below(1500);
    if (killer.joinable()) killer.join();
    if (mount_.is_killed()) restart_killed(true);
    switch (below(3)) {
      case 0:
        restart_clean();
        break;
      case 1:
        restart_killed(false);
        break;
      default:  // A kill in the middle of later operations.
        killer = std::thread([this, delay = std::chrono::microseconds(below(100'000))] {
          std::this_thread::sleep_for(delay);
          const std::lock_guard lock(mapping_);
          mount_.kill();
        });
    }
  }
  if (killer.joinable()) killer.join();
  if (mount_.is_killed()) restart_killed(true);
  end_version();
  verify_sealed(sealed_.back());
  mount_.stop();
  if (fsx::run({mount_.varve(), "check", "--read-data", mount_.repository()}) != 0) {
    stop("varve check");
  }
  for (const auto& [name, error] : unsupported_) {
    std::cout << "left out: " << name << ": " << std::strerror(static_cast<int>(error)) << "\n";
  }
  for (const auto& [name, count] : done_) std::cout << name << " " << count << "  ";
  std::cout << "\nok - " << operation_ << " operations, seed " << seed_ << ": " << version_
            << " versions, " << restarts_ << " remounts, " << kills_ << " kills" << std::endl;
}

}  // namespace varve::fsx

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: fsx VARVE REPOSITORY MOUNT-POINT OPERATIONS SEED\n";
    return 2;
  }
  varve::fsx::Mount mount(argv[1], argv[2], argv[3]);
  mount.start();
  varve::fsx::Driver driver(mount, std::stoull(argv[5]));
  driver.run(std::stoull(argv[4]));
  return 0;
}
