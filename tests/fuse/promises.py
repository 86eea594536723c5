# SPDX-License-Identifier: Apache-2.0
"""Records outside a mount what Varve has promised to a writer, and checks it in the mount."""

import hashlib
import json
import os


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_of(top):
    """Returns {path below top: digest} for all regular files."""
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, top)] = digest(path)
    return found


class Promises:
    """A record of promises. Each line is written at once, so that it survives a kill of the
    writer.

    A version or file is *intended* before the call that promises it, *kept* when that call has
    returned, and *leaving* when a call begins that ends the promise.
    """

    def __init__(self, path):
        self.path = path
        self.versions, self.files = {}, {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as log:
                for line in log:
                    if line.endswith("\n"):
                        self._apply(json.loads(line))

    def _apply(self, event):
        kind, name = event["kind"], event["name"]
        table = self.files if kind == "file" else self.versions
        if event["state"] == "gone":
            table.pop(name, None)
        elif "content" in event:
            table[name] = {"state": event["state"], "content": event["content"]}
        else:
            table[name]["state"] = event["state"]

    def _note(self, event):
        self._apply(event)
        with open(self.path, "a", encoding="utf-8") as log:
            log.write(json.dumps(event) + "\n")

    def intend_version(self, name, tree):
        self._note({"kind": "version", "name": name, "state": "intended", "content": tree})

    def keep_version(self, name):
        self._note({"kind": "version", "name": name, "state": "kept"})
        for path in list(self.files):
            self._note({"kind": "file", "name": path, "state": "gone"})

    def leave_version(self, name):
        self._note({"kind": "version", "name": name, "state": "leaving"})

    def lose_version(self, name):
        self._note({"kind": "version", "name": name, "state": "gone"})

    def leave_file(self, path):
        if path in self.files:
            self._note({"kind": "file", "name": path, "state": "leaving"})

    def keep_file(self, path, content):
        self._note({"kind": "file", "name": path, "state": "kept", "content": content})

    def broken(self, series, open_name):
        """Returns the promises that a mounted series breaks, as a list of sentences."""
        wrong = []
        sealed = {name for name in os.listdir(series) if name not in ("latest", open_name)}
        for name, version in list(self.versions.items()):
            present = name in sealed
            if version["state"] == "kept" and not present:
                wrong.append(f"the version {name} is lost")
            if present and tree_of(os.path.join(series, name)) != version["content"]:
                wrong.append(f"the version {name} differs")
            sealed.discard(name)
            # The outcome of a crash is final.
            if present and version["state"] != "kept":
                self.keep_version(name)
            elif not present:
                self.lose_version(name)
        wrong += [f"nobody made the version {name}" for name in sealed]
        for path, file in self.files.items():
            if file["state"] != "kept":
                continue
            full = os.path.join(series, open_name, path)
            if not os.path.exists(full):
                wrong.append(f"the synced file {path} is lost")
            elif digest(full) != file["content"]:
                wrong.append(f"the synced file {path} differs")
        return wrong
