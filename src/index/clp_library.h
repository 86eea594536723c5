// SPDX-License-Identifier: Apache-2.0
// Clp, the solver of linear programmes, loaded when a stream index opens.
#pragma once

#ifdef VARVE_STATIC
using CoinBigIndex = int;
#else
#include <coin/Clp_C_Interface.h>
#endif

namespace varve::index {

#ifndef VARVE_STATIC
/// The functions of Clp that the room calls.
struct ClpLibrary {
  decltype(&Clp_newModel) new_model = nullptr;
  decltype(&Clp_deleteModel) delete_model = nullptr;
  decltype(&Clp_setLogLevel) set_log_level = nullptr;
  decltype(&Clp_setMaximumIterations) set_maximum_iterations = nullptr;
  decltype(&Clp_loadProblem) load_problem = nullptr;
  decltype(&Clp_initialDualSolve) initial_dual_solve = nullptr;
  decltype(&Clp_status) status = nullptr;
  decltype(&Clp_primalColumnSolution) primal_column_solution = nullptr;
};
#endif

struct ClpLibrary;

/// Returns the functions, and loads Clp at the first call. Returns null, after one warning in the
/// log, without the library or in the static program. Varve does not link Clp, because Clp brings
/// LAPACK, BLAS and the library of gfortran, and only the estimates of a stream index use it.
/// Thread-safe.
[[nodiscard]] const ClpLibrary* clp_library();

}  // namespace varve::index
