// SPDX-License-Identifier: Apache-2.0
#include "fs/session.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/log.h"
#include "base/thread_pool.h"
#include "control/mount_table.h"
#include "control/server.h"
#include "fs/eager_receiver.h"
#include "fs/front_end.h"
#include "fs/loop_pool.h"
#include "fs/version_commands.h"
#include "varve/new_series.h"

namespace varve::fs {
namespace {

constexpr std::chrono::milliseconds kCancelPoll{100};

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

/// Ends the loop on an ending signal. A thread that sleeps in read(2) on /dev/fuse returns only
/// when a signal interrupts that thread.
class SignalWatch {
 public:
  SignalWatch(fuse_session* session, LoopPool& pool) : session_(session), pool_(pool) {
    // An empty handler, without SA_RESTART, so that read(2) returns EINTR.
    struct sigaction interrupt {};
    interrupt.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &interrupt, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    thread_ = std::thread([this] { watch(); });
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch() {
    loop_ended_ = true;
    ::pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  void loop_ended() { loop_ended_ = true; }

 private:
  void watch() {
    base::name_this_thread("varve-signals");
    const sigset_t set = ending_signals();
    int signal = 0;
    ::sigwait(&set, &signal);
    fuse_session_exit(session_);
    // Repeats the signal until the loop has ended: the first may come just before the thread
    // sleeps.
    while (!loop_ended_) {
      pool_.interrupt(SIGUSR1);
      const timespec pause{.tv_sec = 0, .tv_nsec = 20'000'000};
      ::nanosleep(&pause, nullptr);
    }
  }

  fuse_session* session_;
  LoopPool& pool_;
  std::atomic<bool> loop_ended_ = false;
  std::thread thread_;
};

/// Makes the receiver of requests. With `spin`, the session's descriptor becomes non-blocking and
/// the thread sleeps in poll(2). Otherwise it sleeps in read(2), which saves a system call.
EagerReceiver make_receiver(fuse_session* session, std::chrono::microseconds spin) {
  const int fd = fuse_session_fd(session);
  const int flags = spin.count() > 0 ? ::fcntl(fd, F_GETFL) : -1;
  const bool never_blocks = flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
  return EagerReceiver(
      {.try_receive =
           [session](fuse_buf* buffer) { return fuse_session_receive_buf(session, buffer); },
       .wait =
           [fd] {
             pollfd waits{.fd = fd, .events = POLLIN, .revents = 0};
             return ::poll(&waits, 1, -1) > 0;
           }},
      never_blocks ? spin : std::chrono::microseconds(0));
}

LoopPool::Calls calls_of(fuse_session* session, EagerReceiver& receiver) {
  return {.receive = [&receiver](fuse_buf* buffer) { return receiver.receive(buffer); },
          .process =
              [session](const fuse_buf& request) { fuse_session_process_buf(session, &request); },
          .ended = [session] { return fuse_session_exited(session) != 0; }};
}

struct NamedVersion {
  std::string series;
  std::string version;
};

Result<NamedVersion> split(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    return Error(ErrorCode::kInvalid, fmt::format("{} is not of the form SERIES/VERSION", text));
  }
  return NamedVersion{text.substr(0, slash), text.substr(slash + 1)};
}

Result<control::SealReply> seal_by_name(Repository& repository, VersionCommands& commands,
                                        const control::SealRequest& request,
                                        const std::function<bool()>& cancelled) {
  VARVE_TRY_ASSIGN(const NamedVersion named, split(request.version));
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(named.series));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository.find_version(series.id, named.version));
  if (info.state == VersionState::kSealed) {
    return Error(ErrorCode::kReadOnly, fmt::format("{} is sealed already", request.version));
  }
  const VersionCommands::SealWish wish = {.new_name = request.new_name,
                                          .mode = request.keep ? SealMode::kKeep : SealMode::kEnd,
                                          .wait = request.wait,
                                          .wait_seconds = request.wait_seconds,
                                          .force = request.force};
  VARVE_TRY_ASSIGN(SealOutcome outcome, commands.seal(series.id, info.number, wish, cancelled));
  return control::SealReply{std::move(outcome.info), std::move(outcome.next),
                            std::move(outcome.warning)};
}

Result<VersionInfo> open_by_name(Repository& repository, VersionCommands& commands,
                                 const control::OpenRequest& request) {
  VARVE_TRY_ASSIGN(const NamedVersion named, split(request.version));
  NewFile root;
  root.mode = request.mode;
  root.uid = request.uid;
  root.gid = request.gid;
  return open_in_series(repository, named.series, [&](const SeriesInfo& series) {
    return commands.open_version(series, named.version, root);
  });
}

Result<VersionInfo> clone_by_name(Repository& repository, VersionCommands& commands,
                                  const control::OpenRequest& request) {
  VARVE_TRY_ASSIGN(const NamedVersion target, split(request.version));
  VARVE_TRY_ASSIGN(const NamedVersion source, split(request.source));
  if (source.series != target.series) {
    return Error(ErrorCode::kOtherVersion, "a version and its clone are of one series");
  }
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(source.series));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository.find_version(series.id, source.version));
  if (info.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid, fmt::format("{} is not sealed yet", request.source));
  }
  // A clone of a version onto itself reopens it.
  const bool reopens = request.version == request.source;
  return commands.clone_version(series, info.number, reopens ? info.name : target.version);
}

Result<void> lock_by_number(Repository& repository, const control::LockRequest& request) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(request.series));
  return repository.lock_version(series.id, request.version, request.until);
}

Result<DeletionForecast> remove_by_number(Repository& repository, VersionCommands& commands,
                                          const control::DeleteRequest& request) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(request.series));
  if (request.discard) {
    DeletionForecast dropped;
    for (const VersionNumber number : request.versions) {
      VARVE_TRY(commands.discard_version(series.id, number));
      dropped.versions.push_back(number);
    }
    return dropped;
  }
  if (request.forecast_only) {
    return repository.forecast_deletion(series.id, request.versions, request.options);
  }
  return commands.delete_versions(series.id, request.versions, request.options);
}

/// Arranges a series. Arranging may sleep for long to keep to its rate, so another thread checks
/// whether the command still waits.
Result<ArrangeReport> arrange_by_name(Repository& repository,
                                      const control::ArrangeRequest& request,
                                      const std::function<bool()>& cancelled,
                                      const std::function<void(const ArrangeProgress&)>& progress) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(request.series));
  std::stop_source stop;
  const std::jthread watch([&](const std::stop_token& done) {
    base::name_this_thread("varve-watch");
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!done.stop_requested() && !cancelled()) {
      wake.wait_for(lock, done, kCancelPoll, [] { return false; });
    }
    stop.request_stop();
  });
  return repository.arrange(series.id, {.bytes_per_second = request.bytes_per_second,
                                        .stop = stop.get_token(),
                                        .progress = progress});
}

Result<ArrangeSettings> settle(Repository& repository,
                               const std::optional<ArrangeSettings>& settings) {
  if (settings) VARVE_TRY(repository.set_arrange_settings(*settings));
  return repository.arrange_settings();
}

void add_upkeep(Repository& repository, VersionCommands& commands, control::Handlers& handlers) {
  handlers.remove = [&](const control::DeleteRequest& request) {
    return remove_by_number(repository, commands, request);
  };
  handlers.lock = [&](const control::LockRequest& request) {
    return lock_by_number(repository, request);
  };
  handlers.arrange = [&](const control::ArrangeRequest& request,
                         const std::function<bool()>& cancelled,
                         const std::function<void(const ArrangeProgress&)>& progress) {
    return arrange_by_name(repository, request, cancelled, progress);
  };
  handlers.settings = [&](const std::optional<ArrangeSettings>& settings) {
    return settle(repository, settings);
  };
}

/// Reports this daemon's mount to commands.
class MountIdentity {
 public:
  /// Records the new mount on `directory`. Reads the mount table, because stat(2) would first send
  /// a request to this daemon.
  void mounted_on(const std::string& directory) {
    dev_t device = 0;
    for (const control::MountEntry& entry : control::read_mount_table()) {
      if (entry.is_fuse() && entry.mount_point == directory) device = entry.device;
    }
    device_ = device;
  }

  void describe(control::Identity& identity) const {
    const dev_t device = device_;
    if (device == 0) return;
    // After an unmount, the daemon still has to write, and another mount may get the device number.
    for (const control::MountEntry& entry : control::read_mount_table()) {
      if (entry.device == device) identity.mount_device = device;
    }
  }

 private:
  std::atomic<dev_t> device_ = 0;
};

Result<std::unique_ptr<control::Server>> start_control(Repository& repository, FrontEnd& front_end,
                                                       const MountIdentity& mount) {
  if (repository.read_only()) return std::unique_ptr<control::Server>();
  control::Handlers handlers;
  handlers.identify = [&](control::Identity& identity) {
    identity.repository = repository.present_path();
    mount.describe(identity);
    if (identity.mount_device != 0) identity.mount_root = front_end.versions().root_path();
  };
  handlers.check_surroundings = [&] { (void)repository.present_path(); };
  handlers.seal = [&](const control::SealRequest& request, const std::function<bool()>& cancelled) {
    return seal_by_name(repository, front_end.commands(), request, cancelled);
  };
  handlers.open = [&](const control::OpenRequest& request) {
    return open_by_name(repository, front_end.commands(), request);
  };
  handlers.clone = [&](const control::OpenRequest& request) {
    return clone_by_name(repository, front_end.commands(), request);
  };
  handlers.stats = [&] { return repository.stats(); };
  handlers.sync = [&] { return repository.sync(); };
  handlers.open_versions = [&](const std::string& name) -> Result<std::vector<VersionInfo>> {
    VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(name));
    return repository.open_versions(series.id);
  };
  add_upkeep(repository, front_end.commands(), handlers);
  return control::Server::start(repository.path(), std::move(handlers));
}

struct SessionDeleter {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};
using SessionPtr = std::unique_ptr<fuse_session, SessionDeleter>;

Result<SessionPtr> new_session(const Repository& repository, FrontEnd& front_end,
                               const MountOptions& options) {
  std::string list = fuse_option_list(options, repository.path());
  if (options.debug) list += ",debug";
  char program[] = "varve";
  char dash_o[] = "-o";
  char* arguments[] = {program, dash_o, list.data(), nullptr};
  fuse_args args = FUSE_ARGS_INIT(3, arguments);
  SessionPtr session(
      fuse_session_new(&args, &FrontEnd::operations(), sizeof(fuse_lowlevel_ops), &front_end));
  fuse_opt_free_args(&args);
  if (session == nullptr) return Error(ErrorCode::kInvalid, "FUSE refuses the mount options");
  return session;
}

/// Unmounts on every exit path, so that no dead mount remains.
class MountGuard {
 public:
  explicit MountGuard(fuse_session* session) : session_(session) {}
  MountGuard(const MountGuard&) = delete;
  MountGuard& operator=(const MountGuard&) = delete;
  ~MountGuard() { fuse_session_unmount(session_); }

 private:
  fuse_session* session_;
};

ShowOptions show_options(const MountOptions& options) {
  return {.uid = options.uid,
          .gid = options.gid,
          .umask = options.umask,
          .owner_uid = getuid(),
          .owner_gid = getgid(),
          .rmdir_deletes = options.rmdir_deletes,
          .permissions_checked = options.allow_other || options.default_permissions};
}

}  // namespace

void block_ending_signals() {
  const sigset_t set = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Result<void> serve_mount(Repository& repository, const std::string& directory,
                         const MountOptions& options, const std::function<void()>& ready) {
  FrontEnd front_end(repository, show_options(options));
  VARVE_TRY(front_end.versions().set_root(options.series, options.version));
  VARVE_TRY_ASSIGN(const SessionPtr session, new_session(repository, front_end, options));
  MountIdentity identity;
  VARVE_TRY_ASSIGN(std::unique_ptr<control::Server> control,
                   start_control(repository, front_end, identity));
  if (fuse_session_mount(session.get(), directory.c_str()) != 0) {
    return Error(ErrorCode::kIo,
                 fmt::format("cannot mount on {}; the line above says why", directory));
  }
  const MountGuard mounted(session.get());
  identity.mounted_on(directory);
  front_end.attach(session.get(), directory);
  {
    EagerReceiver receiver = make_receiver(session.get(), options.spin);
    LoopPool pool(calls_of(session.get(), receiver), {});
    SignalWatch signals(session.get(), pool);
    ready();
    pool.run();
    signals.loop_ended();
    fuse_session_exit(session.get());
    // First stop waiting commands. Then answer the requests queued in the pool, while the kernel
    // can still receive the answers.
    control.reset();
    front_end.shut_down();
    fuse_session_unmount(session.get());
  }
  return repository.close();
}

}  // namespace varve::fs
