// SPDX-License-Identifier: Apache-2.0
#include "fs/session.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/interruption.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "control/mount_holder.h"
#include "control/mount_table.h"
#include "control/server.h"
#include "fs/command_handlers.h"
#include "fs/eager_receiver.h"
#include "fs/front_end.h"
#include "fs/loop_pool.h"
#include "varve/replication.h"

namespace varve::fs {
namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

/// Returns the signal for interrupting or waking a single thread.
sigset_t wake_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  return set;
}

/// Ends the reads that wait for an object store: from loop_ends() on, because nothing can receive
/// the bytes; after loop_ended() only while an ending signal is pending, so no read delays the end.
class EndOfReads {
 public:
  explicit EndOfReads(Repository& repository)
      : repository_(repository), thread_([this](const std::stop_token& stop) { watch(stop); }) {}
  void loop_ends() { enter(Stage::kEnding); }
  void loop_ended() { enter(Stage::kEnded); }

 private:
  enum class Stage : std::uint8_t { kServing, kEnding, kEnded };

  void enter(Stage stage) {
    {
      const std::lock_guard lock(mutex_);
      stage_ = std::max(stage_, stage);
    }
    changed_.notify_all();
  }

  // A request may begin a read just after watch() ended all reads, so watch() repeats the end. Most
  // loops end within the first pause, and no read is interrupted.
  void watch(const std::stop_token& stop) {
    base::name_this_thread("varve-end");
    constexpr std::chrono::milliseconds kPause{100};
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return stage_ != Stage::kServing; })) return;
    while (!changed_.wait_for(lock, stop, kPause, [&] { return stop.stop_requested(); })) {
      if (stage_ == Stage::kEnded && !ending_signal_waits()) continue;
      lock.unlock();
      repository_.end_store_reads();
      lock.lock();
    }
  }

  Repository& repository_;
  std::mutex mutex_;  // Guards stage_.
  std::condition_variable_any changed_;
  Stage stage_ = Stage::kServing;
  std::jthread thread_;  // The last member: the thread uses all members above.
};

/// Ends the loop on an ending signal. A thread that sleeps in read(2) on /dev/fuse returns only
/// when a signal interrupts that thread. A signal after the unmount stays pending, so
/// ending_signal_waits() returns true for the closing of the repository.
class SignalWatch {
 public:
  SignalWatch(fuse_session* session, LoopPool& pool, EndOfReads& reads)
      : session_(session), pool_(pool), reads_(reads) {
    // An empty handler without SA_RESTART: read(2) returns EINTR.
    struct sigaction interrupt {};
    interrupt.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &interrupt, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    // The thread inherits the mask, and so takes SIGUSR1 in sigwait(3) only.
    const sigset_t wake = wake_signal();
    sigset_t former;
    ::pthread_sigmask(SIG_BLOCK, &wake, &former);
    thread_ = std::thread([this] { watch(); });
    ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch() {
    loop_ended_ = true;
    ::pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }
  void loop_ended() { loop_ended_ = true; }

 private:
  void watch() {
    base::name_this_thread("varve-signals");
    const sigset_t ending = ending_signals();
    const sigset_t wake = wake_signal();
    sigset_t set;
    ::sigorset(&set, &ending, &wake);
    int signal = SIGUSR1;
    while (signal == SIGUSR1 && !loop_ended_) ::sigwait(&set, &signal);
    if (signal == SIGUSR1) return;
    if (loop_ended_ || fuse_session_exited(session_) != 0) ::kill(::getpid(), signal);
    if (loop_ended_) return;
    base::InterruptionScope::interrupt_all();
    reads_.loop_ends();
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
  EndOfReads& reads_;
  std::atomic<bool> loop_ended_ = false;
  std::thread thread_;
};

/// Makes the receiver of requests. With `spin`, the session's descriptor becomes non-blocking and
/// the thread sleeps in poll(2). Otherwise the thread sleeps in read(2), to save a system call.
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

LoopPool::Calls calls_of(fuse_session* session, EagerReceiver& receiver, EndOfReads& reads) {
  return {.receive =
              [&receiver, &reads](fuse_buf* buffer) {
                const int got = receiver.receive(buffer);
                // Unmounted. Waiting requests hold the pool's threads.
                if (got <= 0 && got != -EINTR) {
                  base::InterruptionScope::interrupt_all();
                  reads.loop_ends();
                }
                return got;
              },
          .process =
              [session](const fuse_buf& request) { fuse_session_process_buf(session, &request); },
          .ended = [session] { return fuse_session_exited(session) != 0; }};
}

/// Reports the daemon's mount to commands.
class MountIdentity {
 public:
  /// Records the new mount on `directory`. Reads the mount table, because stat(2) would first send
  /// a request to the daemon.
  void mounted_on(const std::string& directory) {
    std::optional<control::MountEntry> found;
    for (control::MountEntry& entry : control::read_mount_table()) {
      if (entry.is_fuse() && entry.mount_point == directory) found = std::move(entry);
    }
    const std::lock_guard lock(mutex_);
    mount_ = std::move(found);
  }

  void describe(control::Identity& identity) const {
    const std::lock_guard lock(mutex_);
    if (!mount_) return;
    // After an unmount, the daemon still has to write, and another mount may get the device number.
    for (const control::MountEntry& entry : control::read_mount_table()) {
      if (control::is_same_file_system(entry, *mount_)) identity.mount_device = entry.device;
    }
  }

 private:
  mutable std::mutex mutex_;  // Innermost. Guards mount_.
  std::optional<control::MountEntry> mount_;
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
  add_command_handlers(repository, front_end.commands(), handlers);
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

/// Unmounts on every exit path, so no dead mount remains.
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
          .rm_deletes_s = options.rm_deletes_s,
          .beside = options.beside,
          .permissions_checked = options.allow_other || options.default_permissions};
}

}  // namespace

void block_ending_signals() {
  const sigset_t set = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

bool ending_signal_waits() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return false;
  sigset_t waiting;
  const sigset_t ending = ending_signals();
  return ::sigandset(&waiting, &pending, &ending) == 0 && ::sigisemptyset(&waiting) == 0;
}

namespace {
// Called last before the loop: the repository is closed, and so stops following, before the
// FrontEnd ends.
void follow(Repository& repository, FrontEnd& front_end, std::chrono::seconds interval) {
  const auto follows =
      repository.follow_store(interval, [&front_end] { front_end.forget_latest(); });
  if (!follows) base::log(base::LogLevel::kWarning, follows.error().message());
  if (follows && *follows) front_end.keep_latest();
}
}  // namespace

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
  if (options.xattrs == XattrAnswers::kOff) front_end.xattrs().answer_nothing(true);
  if (options.xattrs == XattrAnswers::kAuto) front_end.drop_needless_xattr_requests();
  EndOfReads reads(repository);
  {
    EagerReceiver receiver = make_receiver(session.get(), options.spin);
    LoopPool pool(calls_of(session.get(), receiver, reads), {});
    SignalWatch signals(session.get(), pool, reads);
    if (options.follow_s) follow(repository, front_end, std::chrono::seconds(*options.follow_s));
    ready();
    pool.run();
    signals.loop_ended();
    reads.loop_ended();
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
