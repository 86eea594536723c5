// SPDX-License-Identifier: Apache-2.0
// A shared library, loaded at the program's first use of the library.
#pragma once

#include <string>

namespace varve::base {

/// A library loaded by dlopen(). The library stays loaded until the process ends. A program does
/// not link the library, because each command would load the library with all its dependencies.
/// Thread safety: none; load the library in the initialisation of a static variable.
class SharedLibrary {
 public:
  /// Loads the library with the soname, e.g. "libcurl.so.4". fault() tells of a failure.
  explicit SharedLibrary(const char* soname);

  /// Sets `function` to the function called `name`. Sets `function` to null and fault() if the
  /// library lacks the function.
  template <typename Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(address_of(name));
  }

  /// Returns why the library cannot be used, in words of the dynamic linker. Empty: all functions
  /// were found.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  void* address_of(const char* name);
  void note_fault();

  void* handle_ = nullptr;
  std::string fault_;
};

}  // namespace varve::base
