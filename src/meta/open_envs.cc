// SPDX-License-Identifier: Apache-2.0
#include "meta/open_envs.h"

#include <sys/stat.h>

#include <cerrno>

namespace varve::meta {
namespace {

int open_new(const OpenEnvs::Request& request, MDB_env*& env) {
  int rc = mdb_env_create(&env);
  if (rc != 0) return rc;
  mdb_env_set_mapsize(env, request.map_bytes);
  mdb_env_set_maxdbs(env, static_cast<MDB_dbi>(request.tables_max));
  mdb_env_set_maxreaders(env, 1024);
  rc = mdb_env_open(env, request.folder.c_str(), request.flags, 0600);
  if (rc != 0) mdb_env_close(std::exchange(env, nullptr));
  return rc;
}

}  // namespace

OpenEnvs& OpenEnvs::of_process() {
  static OpenEnvs envs;
  return envs;
}

int OpenEnvs::open(const Request& request, MDB_env*& env) {
  env = nullptr;
  if ((request.flags & MDB_NOLOCK) != 0) return open_new(request, env);
  struct stat status {};
  if (::fstat(request.data, &status) != 0) return errno;
  const std::lock_guard lock(mutex_);
  const FileId id{status.st_dev, status.st_ino};
  File& file = files_[id];
  const bool only_reads = (request.flags & MDB_RDONLY) != 0;
  Shared& shared = only_reads && file.writes.env == nullptr ? file.reads : file.writes;
  if (shared.env == nullptr) {
    const int rc = open_new(request, shared.env);
    if (rc != 0) {
      if (file.reads.env == nullptr && file.writes.env == nullptr) files_.erase(id);
      return rc;
    }
  }
  ++shared.users;
  env = shared.env;
  return 0;
}

void OpenEnvs::close(MDB_env* env) {
  const std::lock_guard lock(mutex_);
  for (auto at = files_.begin(); at != files_.end(); ++at) {
    auto& [reads, writes] = at->second;
    if (reads.env != env && writes.env != env) continue;
    --(reads.env == env ? reads : writes).users;
    if (reads.users != 0 || writes.users != 0) return;
    if (reads.env != nullptr) mdb_env_close(reads.env);
    if (writes.env != nullptr) mdb_env_close(writes.env);
    files_.erase(at);
    return;
  }
  mdb_env_close(env);
}

}  // namespace varve::meta
