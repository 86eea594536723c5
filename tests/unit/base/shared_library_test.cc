// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <gtest/gtest.h>

#include <cmath>

namespace varve::base {
namespace {

TEST(SharedLibrary, FunctionOfALoadedLibraryCanBeCalled) {
  SharedLibrary library("libm.so.6");
  double (*floor)(double) = nullptr;
  library.find("floor", floor);
  ASSERT_EQ(library.fault(), "");
  EXPECT_EQ(floor(2.5), 2.0);
}

TEST(SharedLibrary, MissingLibraryIsNamed) {
  SharedLibrary library("libvarve-has-none.so.1");
  EXPECT_NE(library.fault().find("libvarve-has-none.so.1"), std::string::npos);
  int (*function)() = [] { return 1; };
  library.find("anything", function);
  EXPECT_EQ(function, nullptr);
}

TEST(SharedLibrary, MissingFunctionIsNamed) {
  SharedLibrary library("libm.so.6");
  int (*function)() = nullptr;
  library.find("varve_has_none", function);
  EXPECT_EQ(function, nullptr);
  EXPECT_NE(library.fault().find("varve_has_none"), std::string::npos);
}

}  // namespace
}  // namespace varve::base
