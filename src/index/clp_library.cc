// SPDX-License-Identifier: Apache-2.0
#include "index/clp_library.h"

#ifndef VARVE_STATIC
#include <optional>

#include "base/log.h"
#include "base/shared_library.h"
#endif

namespace varve::index {

#ifdef VARVE_STATIC
const ClpLibrary* clp_library() { return nullptr; }
#else
namespace {

constexpr const char* kSoname = "libClp.so.1";

std::optional<ClpLibrary> load() {
  base::SharedLibrary library(kSoname);
  ClpLibrary clp;
  library.find("Clp_newModel", clp.new_model);
  library.find("Clp_deleteModel", clp.delete_model);
  library.find("Clp_setLogLevel", clp.set_log_level);
  library.find("Clp_setMaximumIterations", clp.set_maximum_iterations);
  library.find("Clp_loadProblem", clp.load_problem);
  library.find("Clp_initialDualSolve", clp.initial_dual_solve);
  library.find("Clp_status", clp.status);
  library.find("Clp_primalColumnSolution", clp.primal_column_solution);
  if (library.fault().empty()) return clp;
  base::log(
      base::LogLevel::kWarning,
      "a stream index estimates better with the library Clp; install it (" + library.fault() + ")");
  return std::nullopt;
}

}  // namespace

const ClpLibrary* clp_library() {
  static const std::optional<ClpLibrary> clp = load();
  return clp ? &*clp : nullptr;
}
#endif

}  // namespace varve::index
