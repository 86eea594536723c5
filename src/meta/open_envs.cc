// SPDX-License-Identifier: Apache-2.0
#include "meta/open_envs.h"

#include <lmdb.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/system_error.h"

namespace varve::meta {

OpenEnvs::Use::~Use() {
  if (group_ != nullptr) of_process().leave(group_);
}

const ReaderTable& OpenEnvs::Use::table() const { return group_->table; }

// Never destroyed: a static variable of the program may hold an environment to the end.
OpenEnvs& OpenEnvs::of_process() {
  static auto* const envs = new OpenEnvs();
  return *envs;
}

Result<OpenEnvs::Use> OpenEnvs::use(int lock, uid_t owner) {
  struct stat status {};
  if (::fstat(lock, &status) != 0) return base::io_error("cannot examine lock.mdb", errno);
  const std::lock_guard guard(mutex_);
  const FileId id{status.st_dev, status.st_ino};
  auto at = groups_.find(id);
  if (at == groups_.end()) {
    VARVE_TRY_ASSIGN(auto table, ReaderTable::open(lock, owner));
    if (table.is_new() && !std::exchange(has_cleaned_, true)) remove_unused_tables(table);
    at = groups_.emplace(id, Group{std::move(table), 0, {}}).first;
  }
  ++at->second.users;
  return Use(&at->second);
}

// Closing a descriptor of a table in use by the process would release LMDB's locks of the table.
void OpenEnvs::remove_unused_tables(const ReaderTable& table) {
  table.remove_unused([this](ino_t inode) {
    return std::any_of(groups_.begin(), groups_.end(), [inode](const auto& group) {
      struct stat status {};
      return ::fstat(group.second.table.descriptor(), &status) != 0 || status.st_ino == inode;
    });
  });
}

int OpenEnvs::open_unshared(const Request& request, MDB_env*& env) {
  int rc = mdb_env_create(&env);
  if (rc != 0) return rc;
  mdb_env_set_mapsize(env, request.map_bytes);
  mdb_env_set_maxdbs(env, static_cast<MDB_dbi>(request.tables_max));
  mdb_env_set_maxreaders(env, 1024);
  rc = mdb_env_open(env, request.folder.c_str(), request.flags, 0600);
  if (rc != 0) mdb_env_close(std::exchange(env, nullptr));
  return rc;
}

// A writer cannot share a read-only environment.
int OpenEnvs::open(const Use& use, const Request& request, MDB_env*& env) {
  env = nullptr;
  struct stat status {};
  if (::fstat(request.data, &status) != 0) return errno;
  const std::lock_guard guard(mutex_);
  const FileId id{status.st_dev, status.st_ino};
  const bool only_reads = (request.flags & MDB_RDONLY) != 0;
  auto& envs = use.group_->envs;
  const auto serves = [&](const Opened& opened) {
    return !opened.retired && opened.data == id && (only_reads || !opened.only_reads);
  };
  if (const auto at = std::find_if(envs.begin(), envs.end(), serves); at != envs.end()) {
    env = at->env;
    return 0;
  }
  const int rc = open_unshared(request, env);
  if (rc != 0) {
    if (!envs.empty()) use.group_->table.register_process();
    return rc;
  }
  use.group_->table.keep_initialised();
  envs.push_back({id, only_reads, env});
  return 0;
}

void OpenEnvs::retire(const Use& use, const MDB_env* failed) {
  const std::lock_guard guard(mutex_);
  for (auto& opened : use.group_->envs) {
    if (opened.env == failed) opened.retired = true;
  }
}

void OpenEnvs::leave(const Group* group) {
  const std::lock_guard guard(mutex_);
  const auto at = std::find_if(groups_.begin(), groups_.end(),
                               [group](const auto& one) { return &one.second == group; });
  if (--at->second.users != 0) return;
  for (const auto& opened : at->second.envs) mdb_env_close(opened.env);
  groups_.erase(at);
}

}  // namespace varve::meta
