#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A class has at most 30 functions and 20 data members: its state and its task stay small.

Functions are the member functions declared in the class. Functions marked `override`, `= default` or `= delete` do
not count: an interface decides about the first. Data members are those of an object, so static members do not count.
A nested class counts by itself. check_lint.py shows that the counts are right.

usage: check_classes.py [FILE…]    prints the counts of each class
"""

import re
import sys

import tree

FUNCTIONS_MAX = 30
MEMBERS_MAX = 20
# Classes that may have more, each with the reason.
EXCEPTIONS = {
    "IngestPipeline": "one lock guards the order in which chunks pass from stage to stage",
    "Json": "a value, with a constructor from each type",
    "MountOptions": "a record: one field for each option",
    "Reply": "a record: one field for each part of a reply",
    "RepositoryStats": "a record: one field for each size",
    "TreeRestorer": "one walk, whose folders, links and threads end in an order",
    "WindowEngine": "one plan of reads: window, areas and slices change together",
}

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
HEAD = re.compile(r"\b(?:class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+)(?:\s*<[^{};()]*>)?(?:\s+final)?\s*(?::(?!:)[^{};()]*)?\{")
ENUM = re.compile(r"\benum\s+$")
ACCESS = re.compile(r"^\s*(?:public|protected|private)\s*:(?!:)")
# Parts of a declaration that may have parentheses of their own.
PREFIX = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)|\bexplicit\s*\((?:[^()]|\([^()]*\))*\)")
NO_MEMBER = re.compile(r"^(?:using|typedef|friend|static_assert|enum|class|struct|union)\b|^$")
NOT_COUNTED = re.compile(r"\boverride\b|=\s*(?:default|delete)\s*$")


def code_of(text):
    """The text without comments, texts in quotes, and lines of the preprocessor."""
    text = COMMENT_OR_TEXT.sub(lambda match: '""' if match.group()[0] in "\"'" else " ", text)
    return PREPROCESSOR.sub("", text)


def end_of(code, start):
    """The place after the bracket that closes the one at `start`."""
    pairs = {"{": "}", "(": ")"}
    opening, closing = code[start], pairs[code[start]]
    depth = 0
    for place in range(start, len(code)):
        if code[place] == opening:
            depth += 1
        elif code[place] == closing:
            depth -= 1
            if depth == 0:
                return place + 1
    return len(code)


def is_function(declaration):
    """Whether the first bracket or `=` outside of template arguments begins a list of parameters."""
    if re.search(r"\boperator\b", declaration):
        return True
    depth = 0
    for char in declaration:
        if char == "<":
            depth += 1
        elif char == ">":
            depth -= 1
        elif depth == 0 and char in "(={":
            return char == "("
    return False


def without_template(declaration):
    """The declaration after `template <…>` and `requires`."""
    while declaration.startswith("template"):
        depth = 0
        for place, char in enumerate(declaration):
            depth += (char == "<") - (char == ">")
            if char == ">" and depth == 0:
                declaration = declaration[place + 1:].strip()
                break
        else:
            break
    return declaration


def declarations(body):
    """The declarations in the body of a class, without bodies of functions and of nested classes."""
    place, words = 0, ""
    while place < len(body):
        char = body[place]
        if char == "(":
            end = end_of(body, place)
            words += body[place:end]
            place = end
        elif char == "{":
            end = end_of(body, place)
            head = PREFIX.sub(" ", words).strip()
            # In a list of initialisers, a brace after a name initialises; else the brace begins the body.
            in_initialisers = re.search(r"\)[\w\s]*:(?!:)", head) is not None
            begins_body = is_function(without_template(head)) and not (
                in_initialisers and re.search(r"[\w>]\s*$", head))
            words += "{}"
            place = end
            if begins_body:
                yield words
                words = ""
        elif char == ";":
            yield words
            words = ""
            place += 1
        else:
            words += char
            place += 1
            match = ACCESS.match(words)
            if match and char == ":" and not body[place:].startswith(":"):
                words = ""


def counts(code, scope=""):
    """(name, functions, data members) of each class in the code, nested classes included."""
    place = 0
    while True:
        head = HEAD.search(code, place)
        if not head:
            return
        brace = head.end() - 1
        end = end_of(code, brace)
        place = end
        if ENUM.search(code[:head.start()]):
            continue
        body = code[brace + 1:end - 1]
        name = scope + head.group(1)
        yield from counts(body, name + "::")
        functions = members = 0
        for declaration in declarations(body):
            declaration = without_template(PREFIX.sub(" ", declaration).strip())
            if NO_MEMBER.match(declaration):
                continue
            if is_function(declaration):
                functions += not NOT_COUNTED.search(declaration.replace("{}", "").strip())
            elif not re.match(r"(?:inline\s+)?(?:static|constexpr)\b", declaration):
                members += 1 + outer_commas(declaration)
        yield name, functions, members


def outer_commas(declaration):
    """Commas between several data members of one declaration."""
    depth = found = 0
    for char in declaration:
        depth += (char in "<({") - (char in ">)}")
        found += char == "," and depth == 0
    return found


def problems_of(path, text, exceptions):
    for name, functions, members in counts(code_of(text)):
        if name not in exceptions and (functions > FUNCTIONS_MAX or members > MEMBERS_MAX):
            yield (f"{path}: {name} has {functions} functions and {members} data members; at most {FUNCTIONS_MAX} "
                   f"and {MEMBERS_MAX}: split the class by its state")


def main():
    if len(sys.argv) > 1:
        for path in sys.argv[1:]:
            for name, functions, members in counts(code_of(tree.read(path))):
                print(f"{path}: {name} {functions} {members}")
        return
    paths = tree.files((".h",), "include") + tree.files((".h",), "src")
    problems, known = [], set()
    for path in paths:
        text = tree.read(path)
        problems += problems_of(path, text, EXCEPTIONS)
        known.update(name for name, _, _ in counts(code_of(text)))
    problems += [f"check_classes.py: no class is called {name}"
                 for name in sorted({*EXCEPTIONS} - known)]
    tree.finish("classes are small", len(known), problems)


if __name__ == "__main__":
    main()
