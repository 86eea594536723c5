// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/known_damage.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "control/store_access.h"
#include "varve/check.h"
#include "varve/remote_folder.h"
#include "varve/repair.h"
#include "varve/replication.h"

namespace varve::cli {
namespace {

struct RepairArguments {
  std::string repository;
  RepairOptions how;
  std::string found;
  std::string mixed;
  bool catalog_only = false;
  bool dry_run = false;
  bool yes = false;
  bool json = false;
  bool progress = false;
};

// Each repair can reveal a further defect (a catalog, then parity, then a header), and each defect
// needs a new plan.
constexpr int kRoundsMax = 8;

const char* kind_name(RepairStep::Kind kind) {
  switch (kind) {
    case RepairStep::Kind::kSuperblock:
      return "superblock";
    case RepairStep::Kind::kCatalog:
      return "catalog";
    case RepairStep::Kind::kManifest:
      return "manifest";
    case RepairStep::Kind::kBeside:
      return "beside";
    case RepairStep::Kind::kDerived:
      return "derived";
    case RepairStep::Kind::kAliases:
      return "aliases";
    case RepairStep::Kind::kOpenVersion:
      return "open_version";
    case RepairStep::Kind::kParity:
      return "parity";
    case RepairStep::Kind::kHeader:
      return "header";
    case RepairStep::Kind::kPadding:
      return "padding";
    case RepairStep::Kind::kRehome:
      return "rehome";
    case RepairStep::Kind::kStore:
      return "store";
    case RepairStep::Kind::kQuarantine:
      return "quarantine";
  }
  return "";
}

void print_steps(const std::vector<RepairStep>& steps, bool json) {
  for (const RepairStep& step : steps) {
    if (json) {
      Json object{{"kind", kind_name(step.kind)}, {"what", printable(step.what)}};
      put_name(object, "where", step.where);
      print_json("step", std::move(object));
    } else {
      print(fmt::format("{}: {}: {}\n", kind_name(step.kind), printable(step.where),
                        printable(step.what)));
    }
  }
}

// Asks for consent at a terminal, unless --yes gave it.
bool agreed(const RepairArguments& options) {
  if (options.yes) return true;
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) return false;
  std::fputs("varve: do these steps? [y/N] ", stderr);
  const int answer = std::getchar();
  return answer == 'y' || answer == 'Y';
}

void print_problems(const std::vector<std::string>& problems, bool json) {
  for (const std::string& problem : problems) {
    if (json) {
      print_json("problem", {{"what", printable(problem)}});
    } else {
      print("lost: " + printable(problem) + "\n");
    }
  }
}

void print_report(const RepairReport& report, const RepairArguments& options,
                  const Context& context) {
  print_problems(report.problems, options.json);
  for (const std::string& what : report.notes) note(context, printable(what));
  if (options.json) {
    Json object{{"versions", report.versions},
                {"containers_restored", report.containers_restored},
                {"chunks_rehomed", report.chunks_rehomed},
                {"chunks_quarantined", report.chunks_quarantined},
                {"read_bytes", report.bytes_read},
                {"problems", report.problems.size()}};
    if (!report.old_catalog.empty()) put_name(object, "old_catalog", report.old_catalog);
    print_json("repair_summary", std::move(object));
    return;
  }
  if (context.quiet) return;
  if (report.versions != 0) print(fmt::format("{} versions were restored\n", report.versions));
  if (!report.old_catalog.empty()) {
    print("the old catalog is kept as " + printable(report.old_catalog) + "\n");
  }
  if (report.containers_restored != 0) {
    print(fmt::format("{} containers were restored from parity\n", report.containers_restored));
  }
  if (report.chunks_rehomed + report.chunks_quarantined != 0) {
    print(fmt::format("{} chunks were stored again, {} are in quarantine\n", report.chunks_rehomed,
                      report.chunks_quarantined));
  }
}

// Known damage is no step: a repair needs intact copies of the content.
void print_lost_chunks(std::uint64_t chunks, std::uint64_t unrecognizable,
                       const RepairArguments& options, const Context& context) {
  if (chunks == 0) return;
  if (options.json) {
    print_json(
        "lost_chunks",
        {{"chunks", chunks}, {"unrecognizable_chunks", unrecognizable}, {"what", kHowToHeal}});
  } else if (unrecognizable == chunks) {
    note(context,
         fmt::format("{} chunks are lost with the table of their container, so their "
                     "content cannot be recognized anywhere: store the source again, then "
                     "delete the versions that `varve check` names with `varve rm`, or keep "
                     "what is left of them",
                     chunks));
  } else {
    note(context, fmt::format("{} chunks are lost, and new data does not refer to them; {} (`varve "
                              "check` names the files)",
                              chunks, kHowToHeal));
  }
}

/// Counts of lost and left-out parts after a repair.
struct Rest {
  std::size_t left_out = 0;    ///< Kept files of another history.
  std::size_t lost_parts = 0;  ///< Parts of versions' trees.
  std::uint64_t chunks = 0;
  bool problems = false;  ///< True if this command has listed losses.

  [[nodiscard]] bool any() const { return problems || left_out + lost_parts + chunks != 0; }
};

std::string describe_rest(const Rest& rest) {
  std::string text;
  const auto add = [&](std::uint64_t count, std::string_view what, std::string_view end) {
    if (count == 0) return;
    text += fmt::format("{}{}: {} ({})", text.empty() ? "" : "; ", what, count, end);
  };
  add(rest.left_out, "kept files of another state", "until they are removed");
  add(rest.lost_parts, "lost parts of versions", "until `varve rm` deletes these versions");
  add(rest.chunks, "lost chunks", "until their content is stored again, or no version needs it");
  if (text.empty()) text = "the losses that the lines above name";
  return "nothing else can be repaired; this is left: " + text + "\n";
}

// Prints and counts the parts that were lost or left out before this repair.
Rest print_rest(const Repair& planned, const RepairArguments& options) {
  print_problems(planned.left_out(), options.json);
  print_problems(planned.lost_parts(), options.json);
  return {.left_out = planned.left_out().size(), .lost_parts = planned.lost_parts().size()};
}

bool has_step(const Repair& repair, std::initializer_list<RepairStep::Kind> kinds) {
  return std::ranges::any_of(repair.steps(), [&](const RepairStep& step) {
    return std::ranges::find(kinds, step.kind) != kinds.end();
  });
}

// Opens and closes the repository for writing: completes the manifests, frees the chunks of dropped
// versions, and proves that the repository opens.
Result<void> open_once(const std::string& path) {
  const auto info = RemoteFolder(path, is_trusted(path)).info();
  if (info && *info && (*info)->reads_only) return {};  // Another folder writes.
  VARVE_TRY_ASSIGN(const auto repository, open_to_write(path));
  return repository->close();
}

Result<int> repair(const RepairArguments& options, const Context& context) {
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("repairing", shown);
  // The repository can be repaired again after an interruption at any point.
  const SignalWatch signals(progress);
  const auto report_progress = [&](const CheckProgress& done) {
    progress.update(done.bytes_done, done.bytes_total, 0);
  };
  auto how = options.how;
  how.read_data = !options.catalog_only;
  if (!options.found.empty()) how.take_found = options.found == "use";
  how.skip_mixed = options.mixed == "skip";
  how.trust_owner = is_trusted(options.repository);
  const auto writing = options_to_write(options.repository);
  how.key = writing.key;
  how.encrypted_only = writing.encrypted_only;
  how.memory_folder = writing.memory_folder;
  how.store_access = control::store_access_of_environment();
  how.accept_older = writing.accept_older;
  Rest rest;
  bool dropped = false;
  int rounds = 0;
  for (bool again = true; again;) {
    if (++rounds > kRoundsMax) {
      note(context, "repaired data is damaged again; the disk may be failing");
      return kExitIncomplete;
    }
    // The quarantine must not keep the chunks of dropped versions.
    if (dropped) VARVE_TRY(open_once(options.repository));
    VARVE_TRY_ASSIGN(
        const auto planned, control::open_when_unlocked(options.repository, lock_wait(), [&] {
          return Repair::plan(options.repository, how, options.dry_run, report_progress);
        }));
    progress.clear();
    // With -q, lists the steps only if the user has to decide about the steps.
    const bool lists = options.json || !context.quiet || options.dry_run || !options.yes;
    if (lists) print_steps(planned->steps(), options.json);
    // A later plan also finds the parts that this command leaves out.
    if (rounds == 1) rest = print_rest(*planned, options);
    rest.chunks = planned->lost_chunks();
    if (planned->steps().empty() || options.dry_run) {
      print_lost_chunks(rest.chunks, planned->unrecognizable_chunks(), options, context);
    }
    if (planned->steps().empty()) {
      if (options.json || context.quiet) break;
      print(rest.any() ? describe_rest(rest) : "nothing more to repair\n");
      break;
    }
    if (options.dry_run) return kExitIncomplete;
    if (!agreed(options)) {
      note(context, "nothing was changed; --yes does the listed steps");
      return kExitIncomplete;
    }
    VARVE_TRY_ASSIGN(const auto report, planned->execute(report_progress));
    progress.clear();
    print_report(report, options, context);
    rest.chunks = std::max(report.chunks_quarantined, planned->lost_chunks());
    print_lost_chunks(rest.chunks, planned->unrecognizable_chunks(), options, context);
    rest.problems = rest.problems || !report.problems.empty() || rest.chunks != 0;
    // A plan finds all damage to the data only after the listed kinds of steps.
    again = has_step(*planned, {RepairStep::Kind::kCatalog, RepairStep::Kind::kHeader,
                                RepairStep::Kind::kParity});
    dropped = has_step(*planned, {RepairStep::Kind::kOpenVersion});
    again = again || dropped;
    how.trust_catalog = !report.catalog_stays;
    how.rebuild_catalog = false;
  }
  if (!options.dry_run) VARVE_TRY(open_once(options.repository));
  return rest.any() ? kExitIncomplete : kExitOk;
}

int run_repair(RepairArguments options, const Context& context) {
  if (const auto given = take_repository({{"REPO", &options.repository}}); !given) {
    return fail(given.error());
  }
  auto at = repository_at(options.repository, control::Purpose::kLook);
  if (!at) return fail(at.error());
  options.repository = *std::move(at);
  const auto code = repair(options, context);
  return code ? *code : fail(code.error());
}

}  // namespace

void add_repair_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<RepairArguments>();
  auto command =
      line.add_command("repair", "Repair a damaged repository; lists the steps and asks first");
  command.add_repository(options->repository);
  command.add_option("--from", options->how.from,
                     "Folder with files whose content may replace damaged data");
  command.add_flag("--catalog-only", options->catalog_only,
                   "Check only the superblock and the catalog; read no data");
  command.add_flag("--read-store", options->how.read_store,
                   "Also read all objects of a repository in an object store");
  command
      .add_option("--found", options->found,
                  "While the catalog is rebuilt: use or skip containers that only a search behind "
                  "a damaged header finds")
      .one_of({"use", "skip"})
      .type_name("use|skip");
  command
      .add_option("--mixed", options->mixed,
                  "Skip what belongs to another history of the repository than most of the data")
      .one_of({"skip"})
      .type_name("skip");
  command.add_flag("--rebuild-catalog", options->how.rebuild_catalog,
                   "Rebuild the catalog even if it seems sound");
  command.add_flag("-n,--dry-run", options->dry_run, "Change nothing; print the planned steps");
  command.add_flag("--yes", options->yes, "Do the steps without asking");
  command.add_json_flag(options->json, "the results");
  command.add_progress_flag(options->progress);
  command.run([options, &context] { return run_repair(*options, context); });
}

}  // namespace varve::cli
