// SPDX-License-Identifier: Apache-2.0
#include "meta/probe.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/log.h"
#include "base/system_error.h"
#include "meta/page_check.h"

namespace varve::meta {

namespace {

constexpr int kSurvived = 0;
constexpr int kEndless = 1;
constexpr int kCrashed = 2;
constexpr std::size_t kSignalStackBytes = std::size_t{64} << 10;
constexpr std::uint64_t kEntriesMax = std::uint64_t{1} << 32;
constexpr unsigned kSecondsMax = 600;

int read_everything(const EnvFiles& files, const EnvOptions& options) {
  EnvOptions reading = options;
  reading.read_only = true;
  reading.without_keys = true;  // After fork(), libraries with locks may not work.
  reading.in_forked_child = true;
  auto opened = Env::open(files, reading);
  if (!opened) return kSurvived;  // The caller's own open() gets the same error.
  // Never destroyed: the last environment of LMDB destroys the mutexes of the reader table.
  const auto* const env = new Env(*std::move(opened));
  auto txn = ReadTxn::begin(*env);
  if (!txn) return kSurvived;
  volatile std::uint8_t sink = 0;
  for (TableIndex table = 0; table < options.tables.size(); ++table) {
    if (!env->has(table)) break;
    MDB_cursor* cursor = nullptr;
    if (mdb_cursor_open(txn->raw(), env->table(table), &cursor) != 0) continue;
    MDB_val key{};
    MDB_val value{};
    std::uint64_t entries = 0;
    int rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    while (rc == 0) {
      const auto* k = static_cast<const std::uint8_t*>(key.mv_data);
      const auto* v = static_cast<const std::uint8_t*>(value.mv_data);
      for (std::size_t i = 0; i < key.mv_size; ++i) sink = static_cast<std::uint8_t>(sink + k[i]);
      for (std::size_t i = 0; i < value.mv_size; ++i) sink = static_cast<std::uint8_t>(sink + v[i]);
      if (++entries > kEntriesMax) return kEndless;
      rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
  }
  return kSurvived;
}

// The kernel logs a fatal signal unless the process handles the signal. The log would look like a
// defect of Varve.
void end_quietly(std::span<std::byte> stack) {
  stack_t alternate{};
  alternate.ss_sp = stack.data();  // LMDB may have used up the other stack.
  alternate.ss_size = stack.size();
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = [](int) { _exit(kCrashed); };
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGALRM, SIGFPE, SIGILL}) {
    ::sigaction(signal, &action, nullptr);
  }
}

[[noreturn]] void run_child(const EnvFiles& files, const EnvOptions& options) {
  std::vector<std::byte> stack(kSignalStackBytes);
  end_quietly(stack);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // The child has the parent's locks.
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, STDERR_FILENO);
  alarm(kSecondsMax);
  _exit(read_everything(files, options));
}

}  // namespace

Result<bool> survives_reading(const EnvFiles& files, const EnvOptions& options) {
  const pid_t child = fork();
  if (child < 0) return base::system_error("cannot start a process to probe the catalog", errno);
  if (child == 0) run_child(files, options);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      return base::system_error("cannot wait for the process that probes the catalog", errno);
  }
  const bool survived = WIFEXITED(status) && WEXITSTATUS(status) == kSurvived;
  if (!survived) {
    base::log(
        base::LogLevel::kWarning,
        files.directory() +
            "/data.mdb is so damaged that LMDB cannot read it: a child process that tried crashed");
  }
  return survived;
}

Result<void> probe_environment(const EnvFiles& files, const EnvOptions& options) {
  const auto checked = check_pages(files, options.tables);
  if (checked) return {};
  if (options.read_only) {
    VARVE_TRY_ASSIGN(const bool survived, survives_reading(files, options));
    if (survived) return {};
  }
  return Error(checked.error().code(), files.directory() + "/data.mdb is damaged (" +
                                           checked.error().message() + "): it cannot be " +
                                           (options.read_only ? "read" : "written to"));
}

}  // namespace varve::meta
