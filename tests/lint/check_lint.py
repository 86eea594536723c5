#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of text and of file names find what they look for, and nothing else."""

import check_casts
import check_classes
import check_header_lines
import check_headers
import check_includes
import check_metrics
import check_names
import check_packages
import check_prose
import check_text
import tree

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
# (path, text below the SPDX line, is it a problem)
TEXTS = [
    ("src/a/b.h", "int x;\n", False),
    ("src/a/b.h", "// Made anew at each start.\n", True),
    ("src/a/b.h", "// The option --anew begins at the start.\n", False),
    ("src/a/b.h", "// Whoever writes must sync.\n", True),
    ("src/a/b.cc", "// A mender repairs it.\n", True),
    ("src/a/b.cc", "// The amendment is a mendacious commendation.\n", False),
    ("tests/fuse/a.sh", "# Let it be.\n", True),
    ("docs/A.md", "The crew works.\n", True),
    ("src/a/b.h", "int bytes;  ///< Of what goes.\n", True),
    ("src/a/b.h", "int bytes;  ///< That were written.\n", True),
    ("src/a/b.h", "int bytes;  ///< Bytes that were written.\n", False),
    ("include/varve/b.h", "/// Who writes must sync.\nint f();\n", True),
    ("include/varve/b.h", "/// Writes data. What was written\n/// is on disk.\nint f();\n", True),
    ("include/varve/b.h", "/// Returns what was written.\nint f();\n", False),
    ("src/a/b.cc", "/// Stores data. Whatever happens,\n/// it is on disk.\nint f();\n", True),
    ("src/a/b.cc", "// What a crash leaves.\nint f();\n", True),
    ("src/a/b.cc", "// Stores data.\n\n// Syncs it after what the\n// caller wrote.\n", False),
    ("tests/unit/a/b.cc", "/// What a test needs.\nint f();\n", True),
    ("include/varve/b.h", "/// Answers this: What is on disk?\nint f();\n", False),
    ("examples/a.cc", "int a;\n" * 79, False),
    ("examples/a.cc", "int a;\n" * 80, True),
    ("rescue/varve-read.py", "pass\n" * 559, False),
    ("rescue/varve-read.py", "pass\n" * 560, True),
    ("docs/ARCHITECTURE.md", "line\n" * 210, False),
    ("docs/ARCHITECTURE.md", "line\n" * 220, True),
]
# (text of a file, is it a problem) where rules 1 to 3 exist
CITATIONS = [("// O3: data first.\n", False), ("// O4.\n", True), ("gcc -O9\n", False)]
# (text of docs/A.md, is it a problem) where docs/B.md and src/a/b.h exist
LINKS = [("[B](B.md#part) and `a/b.h`\n", False), ("[C](C.md)\n", True), ("See `a/c.h`.\n", True),
         ("[web](https://example.org/a)\n", False)]
# (names of the pages of decisions, is it a problem) where the index lists 001-a.md
INDEXES = [(["001-a.md"], False), (["001-a.md", "002-b.md"], True), (["1-a.md"], True)]
# (text of a source, is it a problem)
PROSE = [("// Returns the size of the file, in bytes.\n" * 6, False),
         ("// Returns what it is that this one has.\n" * 6, True),
         ("// Returns what it is that this one has.\n" * 4, False),
         ("int it;  // Number of bytes of the file, as the header says.\n" * 6, False)]
# (includes of a.h, lines that b.cc pulls in through a.h), where c.h has 10 lines and a.h has 2
HEADER_LINES = [("", 2), ("c.h", 12), ("a.h", 2), ("unknown.h", 2)]
# (numbers of the rules in a page's order, is it a problem)
ORDERS = [([1, 2, 3], False), ([1, 3, 2], True), ([1, 2, 4], True)]
# (text of a header, functions and data members of the classes, in the order of their ends)
CLASSES = [
    ("class A;\nenum class B : int { kC };\n", []),
    ("class A final : public B {\n public:\n  A() : a_(1), b_{2} { f(); }\n  ~A() override;\n  A(const A&) = delete;\n"
     "  [[nodiscard]] virtual bool f(int a = 1) const = 0;\n  void g() override { if (a_) b_ = {}; }\n private:\n"
     "  using B = C;\n  friend class D;\n  int a_ = f();\n  std::vector<int> b_{1, 2};\n};\n", [(2, 2)]),
    ("struct A {\n  std::function<void(int)> f{};  // int g();\n  static constexpr int kA = 1;\n  static int h();\n"
     "  bool operator<(const A&) const;\n  std::map<int, B> a, b;\n};\n", [(2, 3)]),
    ("class A {\n  struct B {\n    int a = 0;\n  };\n  template <typename T, typename U = int>\n  void f(T t) { t({}); }\n"
     "  alignas(64) B b_;\n  const char* c_ = \"};\";\n};\nclass B { int f() { return 1; } int a; };\n",
     [(0, 1), (1, 2), (1, 1)]),
]
# (numbers of functions and data members, exceptions, is it a problem)
CLASS_SIZES = [((30, 20), {}, False), ((31, 20), {}, True), ((30, 21), {}, True), ((31, 21), {"A": ""}, False)]
# (path, text of a file, is it a problem) where only src/a/ and src/b/c_ may name Hidden and hidden_value()
HIDDEN = [("src/a/d.cc", "Hidden x;\n", False), ("src/b/c_d.h", "Hidden x;\n", False),
          ("src/b/d.h", "Hidden x;\n", True), ("src/b/d.h", "HiddenOptions x;\n", True),
          ("src/b/d.h", "Unhidden x;\n", False), ("src/b/d.cc", "e.hidden_value();\n", True),
          ("src/a/d.cc", "e.hidden_value();\n", False), ("src/b/d.cc", "int hidden_value;\n", False)]
# (files of a tree, is it a problem)
TREES = [
    ({"src/a/foo.h": "class Foo {", "src/a/foo.cc": "void Foo::bar() {\n"}, False),
    ({"src/a/foo.h": "class Foo {", "src/a/foo_part.cc": "void Foo::bar() {\n"}, False),
    ({"src/a/foo_impl.h": "class Foo {", "src/a/foo_part.cc": "void Foo::bar() {\n"}, False),
    ({"src/a/foo.h": "class Foo {", "src/a/bar.cc": "Result<int> Foo::bar() {\n"}, True),
    ({"src/a/foo.h": "class Foo {", "src/a/bar.cc": "void bar() {\n"}, False),
]
# (text of a public header, is it a problem)
OPAQUE_TYPES = [
    ("class A;\n", True),
    ("class A;\nclass A {\n};\n", False),
    ("enum class E : char;\n", True),
    ("enum class E : char;\nenum class E : char {\n  kA\n};\n", False),
    ("namespace base {\nclass Metrics;\n}\n", True),
]
CASTS = [
    ("auto* b = dynamic_cast<B*>(&a);\n", True),
    ("auto& b = static_cast<RepositoryImpl&>(a);\n", True),
    ("auto b = static_cast<std::size_t>(a);\n", False),
    ("// No dynamic_cast<B*>(&a).\n", False),
]
PUBLIC_HEADERS = [
    ("#include <span>\n#include \"varve/types.h\"\n", False),
    ("#include <fmt/format.h>\n", True),
    ("#include <lmdb.h>\n", True),
    ("#include \"base/log.h\"\n", True),
    ("/// Opens.\n/// Errors: kIo.\n[[nodiscard]] static Result<int> open(int a);\n", False),
    ("/// Opens.\n[[nodiscard]] static Result<int> open(int a);\n", True),
    ("/// Opens. Errors: kIo.\n[[nodiscard]] virtual Result<void> open() = 0;\n", True),
    ("/// Opens.\n/// Errors: kIo.\nResult<int> open();\nResult<int> close();\n", True),
    ("/// Opens.\n[[nodiscard]] Result<int>\n    open(int a);\n", True),
    ("/// Copies.\nResult(const Result& other);\n", False),
]

# (sources of a tree, is it a problem)
PROGRAMS = [
    ("x = {\n  'a': [['a.cc', 'b.cc'], 'index'],\n}\n", True),
    ("x = {\n  'a': ['a.cc', 'index'],\n  'b': ['b.cc', 'index'],\n}\n", False),
    ("executable('a', ['a.cc',\n  '../unit/b.cc'], dependencies: [d])\n", True),
]
PRIVATE = [
    ({"src/a/x.cc": "int f(int n) {", "src/a/y.cc": "int f(int n) {"}, True),
    ({"src/a/x.cc": "int f(int n) {", "src/a/y.cc": "int f(int m) {"}, True),
    ({"src/a/x.cc": "int f(int n) {", "src/a/y.cc": "int f(char c) {"}, False),
    ({"src/a/x.cc": "constexpr int kA = 1;", "src/a/y.cc": "constexpr int kA = 2;"}, True),
    ({"src/a/x.cc": "struct S {", "src/b/y.cc": "struct S {"}, False),
    ({"src/a/x.cc": "constexpr int kA = 1;", "src/a/y.h": "inline constexpr int kA = 2;"}, True),
    ({"src/a/x.cc": "constexpr int kA = 1;", "src/a/y.cc": "  constexpr int kA = 2;"}, True),
    ({"src/a/x.cc": "constexpr int kA = 1;", "src/a/y.cc": "  static constexpr int kA = 2;"}, False),
    ({"src/a/x.cc": "constexpr int kA = 1;", "src/b/y.cc": "  constexpr int kA = 2;"}, False),
]

# (list of packages, is it a problem) where debian/control has fuse and meson
PACKAGES = [("g++\nmeson\nfuse\n", False), ("fuse\n", True), ("fuse\nmeson\nzsh\n", True)]

# (declaration of a metric, is it a problem) where the page has varve_a_b_total
METRICS = [
    ('m.counter("varve_a_b_total", "Things that were made.");\n', False),
    ('m.counter("varve_a_b_total", "Things that were made.");\n'
     'm.counter("varve_a_b_total", "Things that were made.");\n', True),
    ('m.counter("varve_a_b_total", "Things that were lost.");\n', True),
    ('m.gauge("varve_a_b_total", "Things that were made.");\n', True),
    ('m.counter("varve_a_b_total", "Things that were made.");\nm.gauge("varve_a_c", "C.");\n', True),
    ('m.counter(name, "Things that were made.");\n', True),
    ("", True),
]
# (a declaration, is it a problem) where every metric is on the page
METRIC_RULES = [
    ('m.gauge("varve_a_bytes", "Memory in use.");\n', False),
    ('m.gauge("varve_a_total", "Memory in use.");\n', True),
    ('m.counter("varve_a_bytes", "Memory in use.");\n', True),
    ('m.histogram("varve_a_bytes", "Memory in use.");\n', True),
    ('m.gauge("memory_bytes", "Memory in use.");\n', True),
    ('m.gauge("varve_A_bytes", "Memory in use.");\n', True),
    ('m.gauge("varve_a_bytes", "memory");\n', True),
]


def header_lines(included):
    texts = {"a.h": "\n\n", "b.cc": "", "c.h": "\n" * 10}
    includes = {"a.h": [included] if included else [], "b.cc": ["a.h"], "c.h": ["a.h"]}
    headers = check_header_lines.Headers(
        texts.get, lambda path: ((1, True, name) for name in includes[path]),
        lambda name, quoted, source: name if name in texts else None)
    return headers.lines_of("b.cc")


def forbidden_headers(included):
    """Whether a source of the room a, which includes a header with another one, is found to depend on the room c."""
    includes = {"a/b.cc": ["a.h"], "a.h": [included] if included else [], "c.h": []}
    headers = check_header_lines.Headers(
        lambda path: "", lambda path: ((1, True, name) for name in includes[path]), lambda name, quoted, source: name)
    return bool(headers.forbidden("a/b.cc", {"a/": ("c",)}))


def class_text(functions, members):
    lines = [f"  int f{number}();" for number in range(functions)] + [f"  int a{number}_;" for number in range(members)]
    return "\n".join(["class A {", *lines, "};"])


def metric_page_problems(text):
    rows = [["`varve_a_b_total{operation}`", "counter", "Things that were made."]]
    yield from check_metrics.source_problems("src/a/b.h", text)
    yield from check_metrics.page_problems(
        list(check_metrics.declarations("src/a/b.h", text)), rows)


def main():
    cases = [(text, list(check_text.problems_of(path, SPDX + text)), wrong)
             for path, text, wrong in TEXTS]
    cases += [(name, [1] * (header_lines(name) != lines), False) for name, lines in HEADER_LINES]
    cases += [(text, list(check_text.rule_problems("src/a/b.cc", text, [1, 2, 3])), wrong)
              for text, wrong in CITATIONS]
    cases += [(text, list(check_text.link_problems(
        "docs/A.md", text, {"docs/B.md", "src/a/b.h"}.__contains__)), wrong)
              for text, wrong in LINKS]
    hidden = {"Hidden": ("a/", "b/c_"), "hidden_value()": ("a/",)}
    cases += [(text, list(check_includes.hidden_names(path, text, hidden)), wrong)
              for path, text, wrong in HIDDEN]
    cases += [(text, [1] * check_prose.is_problem(text), wrong) for text, wrong in PROSE]
    cases += [(text, [found] * (found != expected), False) for text, expected in CLASSES
              for found in [[sizes[1:] for sizes in check_classes.counts(check_classes.code_of(text))]]]
    cases += [(str(sizes), list(check_classes.problems_of(
        "src/a/b.h", class_text(*sizes), exceptions)), wrong) for sizes, exceptions, wrong in CLASS_SIZES]
    cases += [(str(rules), list(check_text.order_problems(rules)), wrong) for rules, wrong in ORDERS]
    cases += [(str(pages), list(check_text.index_problems(pages, "| 1 | [A](001-a.md) [A](1-a.md) |\n")), wrong)
              for pages, wrong in INDEXES]
    cases += [(str(texts), list(check_headers.twin_problems(texts)), wrong)
              for texts, wrong in TREES]
    cases += [(str(texts), list(check_names.collisions(
        {path: ("namespace {\n" if path.endswith(".cc") else "namespace varve::a {\n") + text
         for path, text in texts.items()})), wrong)
              for texts, wrong in PRIVATE]
    cases += [(build_file, list(check_names.collisions_in_programs(
        {"tests/a": build_file}, lambda _: "namespace {\nconstexpr int kBytes = 1;\n")), wrong)
              for build_file, wrong in PROGRAMS]
    cases += [(text, list(check_headers.public_header_problems("include/varve/a.h", text)), wrong)
              for text, wrong in PUBLIC_HEADERS]
    cases += [(text, list(check_headers.unknown_types({"include/varve/a.h": text}, {})), wrong)
              for text, wrong in OPAQUE_TYPES]
    cases += [(text, list(check_casts.problems_of("src/a/b.cc", text)), wrong) for text, wrong in CASTS]
    cases += [(name, ["b.cc"] * (forbidden_headers(name) != bool(name)), False) for name in ("c.h", "")]
    control = "Build-Depends:\n meson (>= 1.0),\n fuse [amd64],\nStandards-Version: 4\n"
    cases += [(text, list(check_packages.differences(text, control)), wrong) for text, wrong in PACKAGES]
    cases += [(text, list(metric_page_problems(text)), wrong) for text, wrong in METRICS]
    cases += [(text, list(check_metrics.source_problems("src/a/b.h", text)), wrong)
              for text, wrong in METRIC_RULES]
    problems = []
    for case, found, wrong in cases:
        if bool(found) != wrong:
            problems.append(f"{case[:70]!r}: expected {'a' if wrong else 'no'} problem, got {found}")
    tree.finish("the checks can fail", len(cases), problems)


if __name__ == "__main__":
    main()
